"""Building a diagnostic set from a synthetic release, held against the truth of that release."""

import contextlib
import csv
import gzip
import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from filelock import FileLock

from citerec.corpus.s2ag import parse_paper
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.diagnostics.families import FAMILIES, Facts, read_sentences
from citerec.diagnostics.sets import SetManifest, read_set
from citerec.errors import BuildError
from citerec.records import Context
from tests.conftest import write_lines

CHOSEN_FOR = ("length", "location", "intent", "low_resource")
Record = dict[str, Any]
MAX_BAD = 0.1
"""Texts are few, and bad lines of each kind among them."""


class World:
    """The papers and the truth of a release, read by hand."""

    def __init__(self, folder: Path) -> None:
        self.papers: dict[int, Record] = {}
        for path in (folder / "papers").iterdir():
            for line in gzip.decompress(path.read_bytes()).splitlines():
                with contextlib.suppress(orjson.JSONDecodeError, TypeError, KeyError):
                    record = orjson.loads(line)
                    self.papers[int(record["corpusid"])] = record
        self.truth = {(one["citing_id"], one["start"]): one for one in lines_of(folder / "truth.jsonl")}
        self.traps = orjson.loads((folder / "traps.json").read_bytes())


@pytest.fixture(scope="module")
def world(s2_release: Path) -> World:
    return World(s2_release)


def is_complete(paper: Record) -> bool:
    venue = paper["venue"] or (paper["journal"] or {}).get("name")
    return bool((paper["title"] or "").strip() and venue and any(one["name"] for one in paper["authors"] or []))


def key_of(record: Record) -> tuple[int, int]:
    """Citing paper and place of a context, as the truth has them."""
    return int(record["context_id"].partition("-")[0]), record["start"]


def lines_of(path: Path) -> list[Record]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_strangers(folder: Path) -> Path:
    """Contexts that cite a paper that no corpus has."""
    stranger = {"context_id": "a-1", "text": "This was shown a while ago by others <REF>.", "cited_ids": [1]}
    return write_lines(folder / "strangers.jsonl", [stranger])


def write_truth(path: Path, world: World, *more: Record) -> Path:
    """The truth as a file of contexts."""
    names = ("text", "before", "after", "citing_id", "section", "intent", "marker", "style", "start", "end")
    lines = [
        {"context_id": f"{citing}-{start}", "cited_ids": [one["cited_id"]], "source": "s2orc"}
        | {name: one[name] for name in names}
        for (citing, start), one in world.truth.items()
    ]
    return write_lines(path, [*more, *lines])


@dataclass(frozen=True)
class Built:
    """A set that was built."""

    path: Path
    manifest: SetManifest

    def records(self, name: str) -> list[Record]:
        return lines_of(self.path / name)


def sources(release: Path) -> Sources:
    return Sources([release / "papers"], [release / "s2orc_v2"], [release / "citations"])


def build(out: Path, given: Sources, **options: Any) -> Built:
    """Builds with all papers drawn."""
    settings = BuildOptions(**{"oversample": 1000.0, "workers": 1, "max_bad": MAX_BAD, **options})
    manifest = build_set(out, given, settings)
    assert read_set(out).manifest == manifest
    return Built(out, manifest)


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
def test_a_set_is_what_the_truth_allows(place: Path, world: World, s2_release: Path, options: dict[str, Any]) -> None:
    made, quota = build(place, sources(s2_release), **options), BuildOptions(**options).quotas()
    contexts, reserves = made.records("contexts.jsonl"), made.records("reserves.jsonl")
    sentences = read_sentences([Context(text=one["text"]) for one in world.truth.values()])
    fits: defaultdict[tuple[str | None, ...], set[int]] = defaultdict(set)  # the papers that could stand in each cell
    for one, sentence in zip(world.truth.values(), sentences, strict=True):
        record = world.papers.get(one["cited_id"])
        if record and is_complete(record) and (paper := parse_paper(record)).fields_of_study:
            facts = Facts(Context(text="", intent=one["intent"]), sentence, (paper,), made.manifest.bounds)
            held = options.get("conditions", True)
            label = {name: family.label(facts, conditions=held) for name, family in FAMILIES.items()}
            for name in CHOSEN_FOR:
                cell = (paper.fields_of_study[0], label["year"], label["citation_count"], name, label[name])
                fits[cell].add(one["cited_id"])
    for record in [*contexts, *reserves]:
        one, cell = world.truth[key_of(record)], tuple(record["cell"].values())
        assert (record["text"], record["intent"]) == (one["text"], one["intent"])  # word for word
        assert record["cited_ids"] == [one["cited_id"]] and one["cited_id"] in fits[cell]
        assert record["labels"][cell[3]] == cell[4]
    chosen = Counter((*record["cell"].values(),) for record in contexts)
    assert {cell[3] for cell in chosen} == {name for name in CHOSEN_FOR if quota[name]}
    with (place / "cells.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = tuple(list(row.values())[:5])
            assert (int(row["chosen"]), int(row["fitting_papers"])) == (chosen[cell], len(fits[cell]))
            assert chosen[cell] <= int(row["wanted"]) == quota[row["family"]]
            assert bool(row["why"]) == (chosen[cell] < quota[row["family"]])
    # No paper is cited twice. Reserves cite papers that are not used, or say more of the paper of their place.
    used = {record["cited_ids"][0]: record["cell"] for record in contexts}
    assert len(used) == len(contexts) == made.manifest.contexts == made.manifest.sampling.funnel["chosen"]
    assert all(used.get(record["cited_ids"][0], record["cell"]) == record["cell"] for record in reserves)
    assert made.manifest.corpus_papers == len(world.papers) == world.traps["papers"]["records"]


def test_the_same_seed_gives_the_same_bytes(place: Path, s2_release: Path, tmp_path: Path) -> None:
    def receipts() -> dict[Path, int]:
        paths = (tmp_path / ".mine.work").rglob("*.json")
        return {path: path.stat().st_mtime_ns for path in paths if path.parent.name != ".mine.work"}

    build(place, sources(s2_release))
    build(tmp_path / "mine", sources(s2_release), workers=2)
    assert digests(tmp_path / "mine") == digests(place)
    with FileLock(tmp_path / ".mine.work" / "lock"), pytest.raises(BuildError, match="another process is building"):
        build(tmp_path / "mine", sources(s2_release))
    before = receipts()
    build(tmp_path / "mine", sources(s2_release))
    assert len(before) > 6 and receipts() == before


def test_papers_without_citation_counts_are_sampled_by_field_and_years(s2_release: Path, tmp_path: Path) -> None:
    lines = []
    for path in sorted((s2_release / "papers").iterdir()):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            with contextlib.suppress(orjson.JSONDecodeError, TypeError):
                lines.append(orjson.loads(line) | {"citationcount": None})
    papers = write_lines(tmp_path / "papers.jsonl", lines)
    made = build(tmp_path / "mine", Sources([papers], [s2_release / "s2orc_v2"], [s2_release / "citations"]))
    cells = [record["cell"] for record in made.records("contexts.jsonl")]
    assert cells and {cell["citation_count"] for cell in cells} == {"any"}
    assert len({(cell["field"], cell["years"]) for cell in cells}) > 1
    assert not any(made.manifest.families["citation_count"].classes.values())
