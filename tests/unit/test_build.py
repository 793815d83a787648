"""Building a diagnostic set from a synthetic release, held against the truth of that release."""

import csv
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.base import FORMATS
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.diagnostics.families import FAMILIES, Facts, read_sentences
from citerec.diagnostics.sets import SetManifest, read_set
from citerec.errors import BuildError, InputError
from citerec.records import Context, Paper
from tests.conftest import write_lines

Record = dict[str, Any]


def sources(release: Path) -> Sources:
    return Sources([release / "papers"], [release / "s2orc_v2"], [release / "citations"])


def build(out: Path, given: Sources, **options: Any) -> SetManifest:
    """Builds with all papers drawn. Texts are few, and bad lines of each kind among them."""
    manifest = build_set(out, given, BuildOptions(**{"oversample": 1000.0, "workers": 1, "max_bad": 0.1, **options}))
    assert read_set(out).manifest == manifest
    return manifest


def lines_of(path: Path) -> list[Record]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def files_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def truth(s2_release: Path) -> dict[str, Record]:
    return {f"{one['citing_id']}-{one['start']}": one for one in lines_of(s2_release / "truth.jsonl")}


@pytest.fixture(scope="module")
def papers(s2_release: Path) -> dict[str, Paper]:
    lines = [line.record for path in (s2_release / "papers").iterdir() for line in FORMATS["s2ag-papers"].read(path)]
    return {paper.paper_id: paper for paper in lines if isinstance(paper, Paper)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one build has read here, the next need not read again."""
    return tmp_path_factory.mktemp("builds") / "mine"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"seed": 1, "per_class": 2},
        {"quota": {"length": 3, "intent": 0}, "conditions": False},
        {"quota": {"low_resource": 0, "location": 2}, "field_shares": "published"},
    ],
    ids=str,
)
def test_a_set_is_what_the_truth_allows(
    place: Path, truth: dict[str, Record], papers: dict[str, Paper], s2_release: Path, options: dict[str, Any]
) -> None:
    manifest, quota = build(place, sources(s2_release), **options), BuildOptions(**options).quotas()
    contexts, chosen, fits = lines_of(place / "contexts.jsonl"), Counter[tuple[str, ...]](), defaultdict(set)
    sentences = read_sentences([Context(text=one["text"]) for one in truth.values()])
    for one, sentence in zip(truth.values(), sentences, strict=True):
        paper = papers.get(str(one["cited_id"]))
        if paper and paper.title and paper.venue and paper.authors and paper.fields_of_study:
            facts = Facts(Context(text=one["text"], intent=one["intent"]), sentence, (paper,), manifest.bounds)
            label = {
                name: family.label(facts, conditions=options.get("conditions", True))
                for name, family in FAMILIES.items()
            }
            for name in ("length", "location", "intent", "low_resource"):
                cell = (paper.fields_of_study[0], label["year"], label["citation_count"], name, label[name])
                fits[cell].add(paper.paper_id)
    for record in [*contexts, *lines_of(place / "reserves.jsonl")]:
        one = truth[record["context_id"]]  # word for word
        for name in ("text", "before", "after", "section", "intent", "marker", "style", "start", "end"):
            assert record[name] == one[name], (name, record)
        cell = tuple(record["cell"].values())
        assert record["cited_ids"] == [one["cited_id"]] and str(one["cited_id"]) in fits[cell]
        assert record["labels"][cell[3]] == cell[4]
    chosen.update((*record["cell"].values(),) for record in contexts)
    assert {cell[3] for cell in chosen} == {"length", "location", "intent", "low_resource"} - {
        name for name in quota if not quota[name]
    }
    with (place / "cells.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = tuple(list(row.values())[:5])
            assert (int(row["chosen"]), int(row["fitting_papers"])) == (chosen[cell], len(fits[cell]))
            assert chosen[cell] <= int(row["wanted"]) == quota[row["family"]]
            assert row["why"] or chosen[cell] == quota[row["family"]]
    # No paper is cited twice. Reserves cite papers that are not used, or say more of the paper of their place.
    used = {record["cited_ids"][0]: record["cell"] for record in contexts}
    assert len(used) == len(contexts) == manifest.contexts == manifest.sampling.funnel["chosen"]
    for record in lines_of(place / "reserves.jsonl"):
        assert used.get(record["cited_ids"][0], record["cell"]) == record["cell"]
    traps = orjson.loads((s2_release / "traps.json").read_bytes())
    assert manifest.corpus_papers == len(papers) == traps["papers"]["records"]


def test_the_same_seed_gives_the_same_bytes_and_a_build_that_stands_is_not_done_again(
    place: Path, s2_release: Path, tmp_path: Path
) -> None:
    def receipts() -> dict[Path, int]:
        paths = (tmp_path / ".mine.work").rglob("*.json")
        return {path: path.stat().st_mtime_ns for path in paths if path.parent.name != ".mine.work"}

    build(place, sources(s2_release))
    build(tmp_path / "mine", sources(s2_release), workers=2)
    assert files_of(tmp_path / "mine") == files_of(place)
    before = receipts()
    build(tmp_path / "mine", sources(s2_release))
    assert len(before) > 6 and receipts() == before


def test_contexts_are_chosen_by_the_same_rules_and_what_is_unusable_is_left_out(
    place: Path, s2_release: Path, tmp_path: Path, truth: dict[str, Record]
) -> None:
    lines = [
        {**one, "context_id": key, "cited_ids": [one["cited_id"]], "source": "s2orc", "citing_id": one["citing_id"]}
        for key, one in truth.items()
    ]
    texts = (lines[0]["text"][:-1] + ",", "7 " + lines[1]["text"], "see <REF>.", "As [3] and <REF> have shown.")
    spoilt = [{**lines[number], "context_id": f"x-{number}", "text": text} for number, text in enumerate(texts)]
    shutil.copytree(s2_release / "papers", tmp_path / "papers")
    file = write_lines(tmp_path / "contexts.jsonl", [*spoilt, *lines])
    given = Sources([tmp_path / "papers"], [file], are_contexts=True)
    made = build(tmp_path / "mine", given)
    # Whatever they came from: the same contexts. Only full texts say what was cited before.
    build(place, sources(s2_release))
    of_texts = lines_of(place / "contexts.jsonl")
    same = [{name: one[name] for name in one if name != "cited_before"} for one in of_texts]
    assert lines_of(tmp_path / "mine" / "contexts.jsonl") == same != of_texts
    max((tmp_path / "papers").iterdir()).unlink()  # papers that changed are read again
    assert build(tmp_path / "mine", given).corpus_papers < made.corpus_papers


def test_what_cannot_be_built(s2_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    with pytest.raises(InputError, match="'field' has no quota of its own"):
        build(tmp_path / "mine", sources(s2_release), quota={"field": 1})
    (tmp_path / ".mine.work" / "papers").mkdir(parents=True)
    with FileLock(tmp_path / ".mine.work" / "lock"), pytest.raises(BuildError, match="another process is building"):
        build(tmp_path / "mine", sources(s2_release))
    stranger = [{"context_id": "a-1", "text": "This was shown a while ago by others <REF>.", "cited_ids": [1]}]
    strangers = Sources([s2_release / "papers"], [write_lines(tmp_path / "s.jsonl", stranger)], are_contexts=True)
    (tmp_path / ".mine.work" / "papers" / "journal.json").write_bytes(b'"c0ff')  # torn off as it was written
    with pytest.raises(InputError, match="of 1 papers that the texts cite, the corpus has 0"):
        build(tmp_path / "mine", strangers)
    monkeypatch.setattr("citerec.files.progress.ALWAYS_ALLOWED", 0)  # the corpus is small
    with pytest.raises(BuildError, match=r"of \d+ texts are bad, more than 1%.* first is s2orc.*, line \d+"):
        build(tmp_path / "bad", sources(s2_release), max_bad=0.01)
