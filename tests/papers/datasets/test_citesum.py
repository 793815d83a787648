"""Citing sentences as summaries of the papers that they cite."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from citerec.errors import BuildError, InputError
from citerec.papers.citesum.data import STEPS, Nearness, citesum_plan, summary_of
from citerec.papers.common.pair_sets import SPLITS, Splitting, build_pairs
from citerec.write.task_files import read_tasks
from tests.conftest import write_lines
from tests.papers.datasets.conftest import ABSTRACTS
from tests.papers.datasets.s2orc_records import Sections, s2orc_record


def build(corpus: tuple[Path, Path], out: Path, nearness: Nearness | None = None, **options: Any) -> Any:
    index, shard = corpus
    splitting = options.pop("splitting", Splitting(0, 0))
    plan = citesum_plan(nearness or Nearness())
    return build_pairs([shard], index, out, plan, splitting, **{"max_bad": 0.5, "workers": 1, **options})


@pytest.mark.parametrize(
    ("sentence", "summary"),
    [
        ("<REF> find rivers.", "REF find rivers."),
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
    assert built.steps == dict(zip(STEPS, (3, 2, 5, 3, 3, 2), strict=True))
    assert built.outcomes == {"its bib entry is matched to no paper": 1, "it holds several citations": 1}
    assert (built.bad, built.splits) == (1, {"train": 2, "validation": 0, "test": 0})
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


def test_thresholds_and_the_least_abstract_can_be_set(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    index, shard = corpus
    longest = max(len(abstract or "") for abstract in ABSTRACTS.values())
    for number, (nearness, least, kept) in enumerate(
        [(Nearness(0, 0, 0), 0, 3), (Nearness(0, 0, 0), longest - 1, 1), (Nearness(0.85, 0, 0), 0, 1)]
    ):
        plan, out = citesum_plan(replace(nearness, min_abstract=least)), tmp_path / str(number)
        built = build_pairs([shard], index, out, plan, Splitting(0, 0), max_bad=0.5, workers=1)
        assert sum(built.splits.values()) == kept


def test_nearness_is_rouge_recall_of_the_printed_sentence(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    build(corpus, tmp_path / "set")
    river = next(read_tasks(tmp_path / "set" / "train.jsonl"))
    printed = "Roe et al. [1] find the mouth of every river by following water downhill."
    scores = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True).score(printed, river.sources[0].text)
    expected = [round(score.recall, 4) for score in scores.values()]
    assert river.extra["rouge_recall"] == expected
    rouge1, rouge2, rouge_l = (score.recall for score in scores.values())
    assert Nearness(rouge1, rouge2, rouge_l).holds((rouge1, rouge2, rouge_l))
    for stricter in (Nearness(rouge1 + 1e-9), Nearness(rouge2=rouge2 + 1e-9), Nearness(rouge_l=rouge_l + 1e-9)):
        assert not stricter.holds((rouge1, rouge2, rouge_l))


def test_subsections_of_related_work_are_of_it(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    lakes = "Lakes are counted from pictures that were taken by night [2]."
    sections: Sections = [
        ("1", "Introduction", ["Water is on maps."]),
        ("2", "Related Work", ["Rivers are old."]),
        ("2.1", "Lakes", [lakes]),
        ("3", "Unrelated Work", ["Rivers in a map are found by following water downhill [1]."]),
        ("4", "Conclusion", [lakes]),
    ]
    index, _ = corpus
    shard = write_lines(tmp_path / "shard.jsonl", [s2orc_record(905, sections, {1: 1, 2: 2})])
    built = build((index, shard), tmp_path / "set")
    assert built.steps == dict(zip(STEPS, (1, 1, 1, 1, 1, 1), strict=True))
    (task,) = read_tasks(tmp_path / "set" / "train.jsonl")
    assert task.sources[0].paper_id == "2"


def test_nothing_kept_is_an_error_and_what_stood_there_stays(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    build(corpus, tmp_path / "set")
    before = (tmp_path / "set" / "train.jsonl").read_bytes()
    with pytest.raises(BuildError, match=r'no text is kept: .*3 "of them, whose .*", then 0 "of them, near enough'):
        build(corpus, tmp_path / "set", Nearness(1, 1, 1))
    assert (tmp_path / "set" / "train.jsonl").read_bytes() == before
    index, _ = corpus
    with pytest.raises(BuildError, match='no text is kept: 0 "texts"'):
        build((index, write_lines(tmp_path / "none.jsonl", [])), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_nothing_is_read_again_for_another_seed(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    work = tmp_path / ".set.work"
    build(corpus, tmp_path / "set")
    first = {path.name: path.stat().st_mtime_ns for path in work.iterdir()}
    build(corpus, tmp_path / "set", splitting=Splitting(0.2, 0.2, seed=3))
    again = {path.name: path.stat().st_mtime_ns for path in work.iterdir() if path.name != "lock"}
    assert again == {name: first[name] for name in again}


def test_the_manifest_says_how_it_was_made(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    built = build(corpus, tmp_path / "set", splitting=Splitting(0.2, 0.3, seed=7))
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_bytes())
    assert (manifest["kind"], manifest["dataset"], manifest["seed"]) == ("citerec-texts", "citesum", 7)
    nearness = {"rouge1": 0.5, "rouge2": 0.2, "rouge_l": 0.4, "stemming": True, "min_abstract": 100}
    assert manifest["settings"]["nearness"] == nearness
    assert (manifest["steps"], manifest["splits"]) == (built.steps, built.splits)
    assert manifest["settings"]["test"] == 0.3
    (line,) = (tmp_path / "set" / "quarantine.jsonl").read_text().splitlines()
    assert (json.loads(line)["line"], built.quarantine) == (4, tmp_path / "set" / "quarantine.jsonl")


def test_the_same_sources_give_the_same_bytes(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    for out in ("one", "other"):
        build(corpus, tmp_path / out)
    for name in ("train.jsonl", "manifest.json", "quarantine.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_too_many_bad_texts_leave_what_stood_there(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    build(corpus, tmp_path / "set")
    before = (tmp_path / "set" / "train.jsonl").read_bytes()
    with pytest.raises(BuildError, match="1 of 4 texts are bad"):
        build(corpus, tmp_path / "set", max_bad=0)
    assert (tmp_path / "set" / "train.jsonl").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".set.work", "set"]


def test_nothing_else_is_overwritten(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.tex").write_text("")
    with pytest.raises(InputError, match="is no data set of texts"):
        build(corpus, tmp_path / "thesis")
    with pytest.raises(InputError, match="add up to more than 1"):
        build(corpus, tmp_path / "set", splitting=Splitting(0.6, 0.6))


@given(st.sets(st.text(min_size=1, max_size=8)), st.integers(0, 9), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_paper_is_in_one_split_and_stays_there(papers: set[str], seed: int, validation: float, test: float) -> None:
    splitting = Splitting(validation, test, seed)
    for paper in papers:
        split = splitting.split_of(paper)
        assert split in SPLITS
        # A larger test split takes from the others, and gives none of its own back.
        if split == "test":
            assert Splitting(validation, min(1.0, test + 0.1), seed).split_of(paper) == "test"
    assert {Splitting(0, 0, seed).split_of(paper) for paper in papers} <= {"train"}


def test_shares_are_met() -> None:
    splits = [Splitting(0.05, 0.05).split_of(str(paper)) for paper in range(20_000)]
    assert splits.count("test") == pytest.approx(1000, abs=120)
    assert splits.count("validation") == pytest.approx(1000, abs=120)
    other = [Splitting(0.05, 0.05, seed=1).split_of(str(paper)) for paper in range(20_000)]
    assert other != splits


def test_no_paper_of_the_real_texts_is_in_two_splits(shared: Path, acm_index: Path, tmp_path: Path) -> None:
    """On ACM's full texts; each sentence that is kept cites one paper, and `REF` stands for it."""
    plan, out = citesum_plan(Nearness(0, 0, 0)), tmp_path / "all"
    build_pairs([shared / "acm" / "s2orc_v2"], acm_index, out, plan, Splitting(0.3, 0.3), workers=1)
    tasks = {split: list(read_tasks(out / f"{split}.jsonl")) for split in SPLITS}
    papers = [{task.sources[0].paper_id for task in tasks[split]} for split in SPLITS]
    assert sum(map(len, papers)) == len(set().union(*papers))
    assert {task.targets[0].count("REF") for split in SPLITS for task in tasks[split]} == {1}
    assert sum(map(len, tasks.values())) == 53


def test_versions_of_s2orc_give_the_same_steps(shared: Path, acm_index: Path, tmp_path: Path) -> None:
    """On ACM's full texts, which give 8 pairs."""
    for version in ("s2orc", "s2orc_v2"):
        plan, out = citesum_plan(Nearness()), tmp_path / version
        built = build_pairs([shared / "acm" / version], acm_index, out, plan, Splitting(), workers=1)
        assert built.steps == dict(zip(STEPS, (116, 68, 223, 63, 53, 8), strict=True))
