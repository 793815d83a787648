"""CiteSum: citing sentences as summaries of the papers that they cite, and published summaries, read and recast."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from citerec.errors import BuildError, InputError
from citerec.papers.citesum.data import CITESUM_PLAN, STEPS, Nearness, recast_file, summary_of
from citerec.papers.common.pair_sets import SPLITS, Splitting, build_pairs
from citerec.write.task_files import read_tasks
from citerec.write.tasks import PREFIX
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.papers.datasets.conftest import ABSTRACTS


def build(corpus: tuple[Path, Path], out: Path, **options: Any) -> Any:
    index, shard = corpus
    splitting = options.pop("splitting", Splitting(0, 0))
    options = {"max_bad": 0.5, "workers": 1, **options}
    return build_pairs([shard], index, out, CITESUM_PLAN, Nearness(), splitting, **options)


@pytest.mark.parametrize(
    ("sentence", "summary"),
    [
        ("Roe et al. <REF> find rivers.", "REF find rivers."),
        ("Roe and Lee <REF> find rivers.", "REF find rivers."),
        ("In Roe et al. <REF>, rivers are found.", "In REF, rivers are found."),
        ("Rivers are found by GMAP <REF>.", "Rivers are found by GMAP REF."),  # a lone name may be a method
        ("Rivers are found <REF>.", "Rivers are found REF."),
    ],
)
def test_the_citation_span_becomes_ref(sentence: str, summary: str) -> None:
    assert summary_of(sentence) == summary


def test_pairs_come_from_related_work_only(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    built = build(corpus, tmp_path / "set")
    assert built["steps"] == dict(zip(STEPS, (3, 2, 5, 3, 3, 2), strict=True))
    assert built["left_out"] == {"its bib entry is matched to no paper": 1, "it holds several citations": 1}
    assert (built["bad"], built["splits"]) == (1, {"train": 2, "validation": 0, "test": 0})
    river, mountain = read_tasks(tmp_path / "set" / "train.jsonl")
    assert river.targets == ("REF find the mouth of every river by following water downhill.",)
    assert mountain.targets == ("Mountains are ranked by the length of their shadow REF.",)
    (source,) = river.sources
    assert (source.paper_id, source.title, source.text) == ("1", "Paper 1", ABSTRACTS[1])
    assert source.sentences == (
        "We propose a parser of rivers.",
        "It finds the mouth of every river in a map by following water downhill.",
    )
    assert river.extra["citing_id"] == "901"
    # Nearness is ROUGE's recall of the sentence as it is printed.
    printed = "Roe et al. [1] find the mouth of every river by following water downhill."
    scores = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True).score(printed, source.text)
    assert river.extra["rouge_recall"] == [round(score.recall, 4) for score in scores.values()]


def test_the_same_sources_give_the_same_bytes_and_nothing_is_read_again(
    corpus: tuple[Path, Path], tmp_path: Path
) -> None:
    out, work = tmp_path / "set", tmp_path / ".set.work"
    build(corpus, out)
    build(corpus, tmp_path / "other")
    for name in ("train.jsonl", "manifest.json", "quarantine.jsonl"):
        assert (out / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    with pytest.raises(BuildError, match="1 of 4 texts are bad"):
        build(corpus, out, max_bad=0)
    assert (out / "train.jsonl").read_bytes() == (tmp_path / "other" / "train.jsonl").read_bytes()
    first = {path.name: path.stat().st_mtime_ns for path in work.iterdir() if path.name != "lock"}
    built = build(corpus, out, splitting=Splitting(0.2, 0.3, seed=7))
    assert first == {path.name: path.stat().st_mtime_ns for path in work.iterdir() if path.name != "lock"}
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert (manifest["kind"], manifest["dataset"], manifest["seed"]) == ("citerec-texts", "citesum", 7)
    nearness = {"rouge1": 0.5, "rouge2": 0.2, "rouge_l": 0.4, "stemming": True, "min_abstract": 100}
    assert (manifest["settings"]["nearness"], manifest["settings"]["test"]) == (nearness, 0.3)
    assert manifest == built
    (line,) = (out / "quarantine.jsonl").read_text().splitlines()
    assert json.loads(line)["line"] == 4


@given(st.text(min_size=1, max_size=8), st.integers(0, 9), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_paper_stays_in_its_split(paper: str, seed: int, validation: float, test: float) -> None:
    split = Splitting(validation, test, seed).split_of(paper)
    assert split in SPLITS
    # A larger test split takes from the others, and gives none of its own back.
    assert split != "test" or Splitting(validation, min(1.0, test + 0.1), seed).split_of(paper) == "test"
    assert Splitting(0, 0, seed).split_of(paper) == "train"


def citesum(number: int, **more: Any) -> dict[str, Any]:
    """A record as in `yuningm/citesum`."""
    return {
        "src": f"We grow {number} trees.",
        "tgt": f"{number} trees were grown in REF .",
        "paper_id": f"p{number % 2}",
        "title": f"Trees {number}",
        "discipline": {"venue": None, "journal": None, "mag_field_of_study": ["Biology", "Art"]},
        **more,
    }


@pytest.fixture
def published(tmp_path: Path) -> Path:
    records = [citesum(0), citesum(1, title=None), citesum(2, discipline=None), citesum(3, introduction=["Trees", "?"])]
    return write_lines(tmp_path / "citesum.json", records)


def test_with_several_goals_each_task_is_written_for_each(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    counts = recast_file(published, out, ("summary", "title", "discipline"))
    assert counts == {
        "summary": 4,
        "title": 3,
        "discipline": 3,
        "without title: left out": 1,
        "without discipline: left out": 1,
    }
    tasks = list(read_tasks(out))
    first = tasks[:3]
    assert [task.task_id for task in first] == ["line-1"] * 3
    assert [task.dataset for task in first] == ["summary", "title", "discipline"]
    assert [task.targets[0] for task in first] == ["0 trees were grown in REF .", "Trees 0", "Biology"]
    assert [task.extra[PREFIX] for task in first] == ["summary:", "title:", "discipline:"]
    recast_file(published, out, ("title",), ("title", "discipline", "introduction"))
    texts = [task.sources[0].text for task in read_tasks(out)]
    assert texts == ["Biology. We grow 0 trees.", "We grow 2 trees.", "Biology. We grow 3 trees. Trees ?"]
    # What is to be written is nowhere in what is read, and they are known to be about one paper.
    assert [task.sources[0].title for task in first] == ["Trees 0", "", "Trees 0"]
    assert {task.sources[0].paper_id for task in first} == {"p0"}


def test_the_command_recasts_and_says_what_is_wrong(citerec_here: Citerec, published: Path, tmp_path: Path) -> None:
    done = citerec_here("data", "recast", published, "--out", "o.jsonl", "--target", "title", "--target", "discipline")
    assert done.returncode == 0, done.stderr
    assert "3  title" in done.stdout
    assert "1  without title: left out" in done.stdout
    before = (tmp_path / "o.jsonl").read_bytes()
    several = write_lines(tmp_path / "several.jsonl", [{"input": ["A.", "B."], "target": "C."}])
    for arguments, words in (((published, "--with", "conclusion"), "has a conclusion"), ((several,), "has 2 sources")):
        one_line(citerec_here("data", "recast", *arguments, "--out", "o.jsonl"), 2, words)
        assert (tmp_path / "o.jsonl").read_bytes() == before
    with pytest.raises(InputError, match="is the file that is read"):
        recast_file(published, published, ("summary",))
