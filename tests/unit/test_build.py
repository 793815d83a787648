"""Building a diagnostic set from a synthetic release, held against the truth of that release."""

import csv
import hashlib
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.base import FORMATS
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.diagnostics.families import FAMILIES, Bounds, Facts, Sentence, read_sentences
from citerec.diagnostics.sets import SetManifest, read_set
from citerec.errors import BuildError, InputError
from citerec.records import Context, Paper
from tests.conftest import write_lines

Record = dict[str, Any]
Cell = tuple[str | None, str | None, str | None]
Slot = tuple[str, str]

OF_CELL = ("field", "year", "citation_count")
OF_LARGE_FIELDS = ("length", "location", "intent")
TAGGED = ("pos_before", "pos_after")


class World:
    """The papers and the truth of a release."""

    def __init__(self, folder: Path) -> None:
        found = [line.record for path in (folder / "papers").iterdir() for line in FORMATS["s2ag-papers"].read(path)]
        self.papers = {paper.paper_id: paper for paper in found if isinstance(paper, Paper)}
        self.truth = {f"{one['citing_id']}-{one['start']}": one for one in lines_of(folder / "truth.jsonl")}
        contexts = [Context(text=one["text"], intent=one["intent"]) for one in self.truth.values()]
        self.sentences = dict(zip(self.truth, zip(contexts, read_sentences(contexts), strict=True), strict=True))
        self.traps = orjson.loads((folder / "traps.json").read_bytes())

    def labels(self, key: str, made: "Built") -> dict[str, str]:
        """The classes of one of the contexts, none if its paper may not be drawn."""
        paper = self.papers.get(str(self.truth[key]["cited_id"]))
        if not (paper and paper.title and paper.venue and paper.authors and paper.fields_of_study):
            return {}
        facts = Facts(*self.sentences[key], (paper,), made.manifest.bounds)
        found = {name: family.label(facts, conditions=made.options.conditions) for name, family in FAMILIES.items()}
        return {name: label for name, label in found.items() if label}

    def cell(self, paper_id: int | str, bounds: Bounds) -> Cell:
        """Field, years and tenth of a paper."""
        paper = self.papers[str(paper_id)]
        facts = Facts(Context(text="<REF>"), Sentence(1, 1), (paper,), bounds)
        years, group = (FAMILIES[name].label(facts, conditions=False) for name in ("year", "citation_count"))
        return (paper.fields_of_study[0] if paper.fields_of_study else None), years, group


@pytest.fixture(scope="module")
def world(s2_release: Path) -> World:
    return World(s2_release)


def most_places(fits: Mapping[int, set[Slot]], slots: Mapping[Slot, int]) -> int:
    """How many places of slots papers can fill, one each."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    places = [slot for slot, wanted in slots.items() for _ in range(wanted)]
    table = csr_matrix([[slot in options for slot in places] for options in fits.values()])
    return int((maximum_bipartite_matching(table, perm_type="column") >= 0).sum())


@dataclass(frozen=True)
class Built:
    """A set that was built, and by which rules."""

    path: Path
    manifest: SetManifest
    options: BuildOptions

    @property
    def contexts(self) -> list[Record]:
        return lines_of(self.path / "contexts.jsonl")

    @property
    def reserves(self) -> list[Record]:
        return lines_of(self.path / "reserves.jsonl")

    @property
    def cells(self) -> list[dict[str, str]]:
        with (self.path / "cells.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def lines_of(path: Path) -> list[Record]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def cell_of(row: Mapping[str, str]) -> Cell:
    return row["field"], row["years"], row["citation_count"]


def slot_of(row: Mapping[str, str]) -> Slot:
    return row["family"], row["class"]


def sources(release: Path) -> Sources:
    return Sources([release / "papers"], [release / "s2orc_v2"], [release / "citations"])


def build(out: Path, given: Sources, **options: Any) -> Built:
    """Builds with all papers drawn. Texts are few, and bad lines of each kind among them."""
    settings = BuildOptions(**{"oversample": 1000.0, "workers": 1, "max_bad": 0.1, **options})
    return Built(out, build_set(out, given, settings), settings)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, s2_release: Path) -> Callable[..., Built]:
    """A place where sets are built one after the other; what one has read, the next need not read again."""
    folder = tmp_path_factory.mktemp("builds")

    def build_here(**options: Any) -> Built:
        made = build(folder / "mine", sources(s2_release), **options)
        kept = folder / f"kept-{len(list(folder.iterdir()))}" / "mine"
        shutil.copytree(made.path, kept)
        return replace(made, path=kept)

    return build_here


@pytest.fixture(scope="module")
def built(bench: Callable[..., Built]) -> Built:
    return bench()


def check_against_truth(made: Built, world: World) -> Counter[Slot]:
    """Every claim of a set of single citations for which all papers were drawn; returns the contexts of each class."""
    quota, bounds = made.options.quotas(), made.manifest.bounds
    labels = {key: world.labels(key, made) for key in world.truth}

    def slots(cell: Cell) -> dict[Slot, int]:
        if cell[0] in bounds.field.low_resource:
            return {("low_resource", cell[0]): quota["low_resource"]}
        names = [name for name in OF_LARGE_FIELDS if quota[name] and cell[0] in bounds.field.fields]
        return {(name, label): quota[name] for name in names for label in FAMILIES[name].classes(bounds)}

    # What each paper of a cell could stand for.
    fits: defaultdict[Cell, dict[int, set[Slot]]] = defaultdict(dict)
    for key, one in world.truth.items():
        if "citation_count" in labels[key] and "year" in labels[key]:
            cell = world.cell(one["cited_id"], bounds)
            fits[cell].setdefault(one["cited_id"], set()).update(labels[key].items() & slots(cell).keys())

    # Every context is one of the truth, word for word, with the class and the cell that its paper and sentence give.
    for record in [*made.contexts, *made.reserves]:
        one = world.truth[record["context_id"]]
        for name in ("text", "before", "after", "section", "intent", "marker", "style", "start", "end"):
            assert record[name] == one[name], (name, record)
        assert record["cited_ids"] == [one["cited_id"]]
        assert record["citing_key"] == (
            None if str(one["citing_id"]) in world.papers else f"CorpusId:{one['citing_id']}"
        )
        cell, slot = cell_of(record["cell"]), slot_of(record["cell"])
        assert cell == world.cell(one["cited_id"], bounds) and slot in slots(cell)
        of_cell = dict(zip(OF_CELL, cell, strict=True)) if cell[0] in bounds.field.fields else {}
        assert record["labels"].items() == {**of_cell, slot[0]: slot[1]}.items() <= labels[record["context_id"]].items()

    # No paper is cited twice. Reserves cite papers that are not used, or say more of the paper of their place.
    used = {record["cited_ids"][0]: record["cell"] for record in made.contexts}
    assert len(used) == len(made.contexts)
    assert all(used.get(record["cited_ids"][0], record["cell"]) == record["cell"] for record in made.reserves)

    # As many as can be, and not one more; cells.csv says so too.
    chosen: defaultdict[Cell, Counter[Slot]] = defaultdict(Counter)
    for record in made.contexts:
        chosen[cell_of(record["cell"])][slot_of(record["cell"])] += 1
    assert set(chosen) <= set(fits)
    for cell, of_cell in fits.items():
        assert chosen[cell].total() == (most_places(of_cell, slots(cell)) if any(slots(cell).values()) else 0), cell
    for row in made.cells:
        cell, slot = cell_of(row), slot_of(row)
        fitting, wanted = sum(slot in options for options in fits.get(cell, {}).values()), slots(cell)[slot]
        taken = chosen[cell][slot]
        assert (row["wanted"], row["chosen"], row["fitting_papers"]) == (str(wanted), str(taken), str(fitting))
        missing = "its papers stand for other classes" if fitting > taken else "no further paper has such a sentence"
        assert row["why"] == ("" if taken == wanted else missing) and row["drawn_papers"] == row["papers"]
    check_manifest(made)
    return sum(chosen.values(), Counter())


def check_manifest(made: Built) -> None:
    """A set reads as one, and its manifest counts what it holds."""
    assert read_set(made.path).manifest == made.manifest
    counts = Counter(label for record in made.contexts for label in record["labels"].items())
    for name, family in made.manifest.families.items():
        assert family.classes == {label: counts[name, label] for label in family.classes}
    assert made.manifest.sampling.cells["full"] == sum(row["chosen"] == row["wanted"] for row in made.cells)
    assert made.manifest.sampling.funnel["chosen"] == made.manifest.contexts == len(made.contexts)
    qrels = [line.split() for line in (made.path / "qrels.txt").read_text().splitlines()]
    assert qrels == [[one["context_id"], "0", str(paper), "1"] for one in made.contexts for paper in one["cited_ids"]]


def test_a_set_is_what_the_truth_allows(built: Built, world: World) -> None:
    found = check_against_truth(built, world)
    assert Counter(family for family, _ in found).keys() == {*OF_LARGE_FIELDS, "low_resource"}
    # There is something to decide: papers that could stand for several classes, classes that go without.
    assert found.total() > 100 and built.reserves
    assert any(row["why"] == "its papers stand for other classes" for row in built.cells)
    assert built.manifest.spacy_model is None and not set(TAGGED) & set(built.manifest.families)
    funnel = built.manifest.sampling.funnel
    assert funnel["papers"] == built.manifest.corpus_papers == len(world.papers) == world.traps["papers"]["records"]
    assert funnel["texts"] == world.traps["texts"]["records"] - world.traps["texts"]["doubled_text"]
    assert funnel["sentences"] >= funnel["usable"] == built.manifest.bounds.length.sentences
    # What could not be read is set aside once.
    lines = lines_of(built.path / "quarantine.jsonl")
    for dataset in ("s2orc_v2", "citations", "papers"):
        bad = [line for line in lines if Path(line["shard"]).name.startswith(dataset)]
        bad = [line for line in bad if not line["reason"].startswith(("body.", "bibliography."))]
        assert len(bad) == sum(world.traps["bad_records"][dataset].values()), dataset


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"per_class": 2},
        {"quota": {"length": 3, "intent": 0}},
        {"quota": {"low_resource": 0, "location": 2}},
        {"conditions": False},
        {"field_shares": "published"},
    ],
    ids=str,
)
def test_options_change_the_choice_and_nothing_else(
    bench: Callable[..., Built], built: Built, world: World, options: dict[str, Any]
) -> None:
    made = bench(**options)
    found, quota = check_against_truth(made, world), made.options.quotas()
    assert made.contexts != built.contexts
    families = {name for name in (*OF_LARGE_FIELDS, "low_resource") if quota[name]}
    assert {family for family, _ in found} == families
    assert {name for name in quota if not quota[name]}.isdisjoint(made.manifest.families)
    assert max(Counter((*record["cell"].values(),) for record in made.contexts).values()) <= max(quota.values())


def test_the_same_seed_gives_the_same_bytes_and_a_build_that_stands_is_not_done_again(
    built: Built, s2_release: Path, tmp_path: Path
) -> None:
    def receipts() -> dict[Path, int]:
        paths = (tmp_path / ".mine.work").rglob("*.json")
        return {path: path.stat().st_mtime_ns for path in paths if path.parent.name != ".mine.work"}

    assert digests(build(tmp_path / "mine", sources(s2_release), workers=2).path) == digests(built.path)
    before = receipts()
    assert len(before) > 6
    assert digests(build(tmp_path / "mine", sources(s2_release)).path) == digests(built.path)
    assert receipts() == before


def test_contexts_are_chosen_by_the_same_rules_and_what_is_unusable_is_left_out(
    s2_release: Path, tmp_path: Path, world: World, built: Built
) -> None:
    names = ("text", "before", "after", "citing_id", "section", "intent", "marker", "style", "start", "end")
    lines = [
        {"context_id": key, "cited_ids": [one["cited_id"]], "source": "s2orc", **{name: one[name] for name in names}}
        for key, one in world.truth.items()
    ]
    texts = (lines[0]["text"][:-1] + ",", "7 " + lines[1]["text"], "see <REF>.", "As [3] and <REF> have shown.")
    spoilt = [{**lines[number], "context_id": f"x-{number}", "text": text} for number, text in enumerate(texts)]
    shutil.copytree(s2_release / "papers", tmp_path / "papers")
    file = write_lines(tmp_path / "contexts.jsonl", [*spoilt, *lines])
    given = Sources([tmp_path / "papers"], [file], are_contexts=True)
    made = build(tmp_path / "mine", given)
    # Whatever they came from: the same contexts. Only full texts say what was cited before.
    assert all("cited_before" in one for one in built.contexts)
    assert made.contexts == [{name: one[name] for name in one if name != "cited_before"} for one in built.contexts]
    assert made.manifest.source == "contexts.jsonl"
    max((tmp_path / "papers").iterdir()).unlink()  # papers that changed are read again
    assert build(tmp_path / "mine", given).manifest.corpus_papers < made.manifest.corpus_papers


def test_groups_are_contexts_of_several_papers(bench: Callable[..., Built], world: World) -> None:
    """Those that the corpus has must agree on a class, else the context has none (docs/diagnostics.md)."""
    made = bench(single=False)
    check_manifest(made)
    used = [paper for record in made.contexts for paper in record["cited_ids"]]
    assert len(used) == len(set(used)) > len(made.contexts)
    bounds = made.manifest.bounds
    for record in made.contexts:
        cells = {world.cell(paper, bounds) for paper in record["cited_ids"] if str(paper) in world.papers}
        assert cell_of(record["cell"]) in cells
        assert "field" not in record["labels"] or cells == {tuple(record["labels"][name] for name in OF_CELL)}
    # A reserve cites no paper that another context of the set cites, else it could never take a place.
    place_of = {paper: one["cell"] for one in made.contexts for paper in one["cited_ids"]}
    for record in made.reserves:
        assert all(place_of.get(paper, record["cell"]) == record["cell"] for paper in record["cited_ids"])


@pytest.mark.shared
def test_a_tagger_gives_parts_of_speech(bench: Callable[..., Built], shared: Path) -> None:
    made = bench(model=str(shared.parent / "models" / "en_ewt_tagger"))
    assert made.manifest.spacy_model == "en_ewt_tagger"
    for family in TAGGED:
        assert sum(count > 0 for count in made.manifest.families[family].classes.values()) >= 4
    check_manifest(made)


def test_what_cannot_be_built(s2_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    out = tmp_path / "mine"
    with pytest.raises(InputError, match="'field' has no quota of its own"):
        build(out, sources(s2_release), quota={"field": 1})
    assert not list(tmp_path.iterdir())
    (tmp_path / ".mine.work" / "papers").mkdir(parents=True)
    with FileLock(tmp_path / ".mine.work" / "lock"), pytest.raises(BuildError, match="another process is building"):
        build(out, sources(s2_release))
    stranger = [{"context_id": "a-1", "text": "This was shown a while ago by others <REF>.", "cited_ids": [1]}]
    strangers = Sources([s2_release / "papers"], [write_lines(tmp_path / "s.jsonl", stranger)], are_contexts=True)
    (tmp_path / ".mine.work" / "papers" / "journal.json").write_bytes(b'"c0ff')  # torn off as it was written
    with pytest.raises(InputError, match="of 1 papers that the texts cite, the corpus has 0"):
        build(out, strangers)
    monkeypatch.setattr("citerec.files.progress.ALWAYS_ALLOWED", 0)  # the corpus is small
    with pytest.raises(BuildError, match=r"of \d+ texts are bad, more than 1%.* first is s2orc.*, line \d+"):
        build(tmp_path / "bad", sources(s2_release), max_bad=0.01)
