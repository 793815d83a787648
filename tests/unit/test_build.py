"""Building a diagnostic set from a synthetic release, held against the truth of that release."""

import csv
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.base import FORMATS
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.diagnostics.families import FAMILIES, Facts, Sentence, read_sentences
from citerec.diagnostics.sets import SetManifest, read_set
from citerec.errors import BuildError, InputError
from citerec.records import Context, Paper
from tests.conftest import write_lines

Record = dict[str, Any]
Cell = tuple[str | None, ...]
Slot = tuple[str, str]
OF_CELL = ("field", "year", "citation_count")
CHOSEN_FOR = ("length", "location", "intent", "low_resource")


@dataclass(frozen=True)
class Built:
    """A set that was built, by which rules, and what it holds."""

    manifest: SetManifest
    options: BuildOptions
    files: Mapping[str, bytes]

    def records(self, name: str) -> list[Record]:
        return [orjson.loads(line) for line in self.files[name].splitlines()]

    @property
    def cells(self) -> list[dict[str, str]]:
        return list(csv.DictReader(self.files["cells.csv"].decode().splitlines()))


class World:
    """The papers and the truth of a release."""

    def __init__(self, folder: Path) -> None:
        found = [line.record for path in (folder / "papers").iterdir() for line in FORMATS["s2ag-papers"].read(path)]
        self.papers = {paper.paper_id: paper for paper in found if isinstance(paper, Paper)}
        truth = map(orjson.loads, (folder / "truth.jsonl").read_bytes().splitlines())
        self.truth = {f"{one['citing_id']}-{one['start']}": one for one in truth}
        contexts = [Context(text=one["text"], intent=one["intent"]) for one in self.truth.values()]
        self.sentences = dict(zip(self.truth, zip(contexts, read_sentences(contexts), strict=True), strict=True))
        self.traps = orjson.loads((folder / "traps.json").read_bytes())

    def labels(self, key: str, made: Built) -> dict[str, str | None]:
        """The classes of one of the contexts; none if its paper may not be drawn."""
        paper = self.papers.get(str(self.truth[key]["cited_id"]))
        if not (paper and paper.title and paper.venue and paper.authors and paper.fields_of_study):
            return {}
        facts = Facts(*self.sentences[key], (paper,), made.manifest.bounds)
        return {name: family.label(facts, conditions=made.options.conditions) for name, family in FAMILIES.items()}

    def cell(self, paper_id: int | str, made: Built) -> Cell:
        """Field, years and tenth of a paper."""
        paper = self.papers[str(paper_id)]
        facts = Facts(Context(text="<REF>"), Sentence(1, 1), (paper,), made.manifest.bounds)
        years, group = (FAMILIES[name].label(facts, conditions=False) for name in OF_CELL[1:])
        return (paper.fields_of_study[0] if paper.fields_of_study else None), years, group


@pytest.fixture(scope="module")
def world(s2_release: Path) -> World:
    return World(s2_release)


def sources(release: Path) -> Sources:
    return Sources([release / "papers"], [release / "s2orc_v2"], [release / "citations"])


def build(out: Path, given: Sources, **options: Any) -> Built:
    """Builds with all papers drawn. Texts are few, and bad lines of each kind among them."""
    settings = BuildOptions(**{"oversample": 1000.0, "workers": 1, "max_bad": 0.1, **options})
    manifest = build_set(out, given, settings)
    assert read_set(out).manifest == manifest
    files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return Built(manifest, settings, files)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, s2_release: Path) -> Callable[..., Built]:
    """Builds sets in one place, one after the other: what one has read, the next need not read again."""
    folder = tmp_path_factory.mktemp("builds")
    return lambda **options: build(folder / "mine", sources(s2_release), **options)


@pytest.fixture(scope="module")
def built(bench: Callable[..., Built]) -> Built:
    return bench()


def cell_of(row: Mapping[str, str]) -> Cell:
    return row["field"], row["years"], row["citation_count"]


def slot_of(row: Mapping[str, str]) -> Slot:
    return row["family"], row["class"]


def most_places(fits: Mapping[int, set[Slot]], wanted: Mapping[Slot, int]) -> int:
    """How many places papers can fill, one each."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    places = [slot for slot, number in wanted.items() for _ in range(number)]
    table = csr_matrix([[slot in options for slot in places] for options in fits.values()])
    return int((maximum_bipartite_matching(table, perm_type="column") >= 0).sum()) if fits else 0


def check_against_truth(made: Built, world: World) -> Counter[str]:
    """Every claim of a set of single citations for which all papers were drawn; returns the contexts of each family."""
    contexts, reserves = made.records("contexts.jsonl"), made.records("reserves.jsonl")
    labels = {key: world.labels(key, made) for key in world.truth}
    wanted: defaultdict[Cell, dict[Slot, int]] = defaultdict(dict)
    for row in made.cells:
        wanted[cell_of(row)][slot_of(row)] = int(row["wanted"])
    # What each paper of a cell could stand for.
    fits: defaultdict[Cell, dict[int, set[Slot]]] = defaultdict(dict)
    for key, one in world.truth.items():
        if labels[key] and (cell := world.cell(one["cited_id"], made)) in wanted:
            fits[cell].setdefault(one["cited_id"], set()).update(labels[key].items() & wanted[cell].keys())
    # Every context is one of the truth, word for word, with the class and the cell that its paper and sentence give.
    for record in [*contexts, *reserves]:
        one, cell, slot = world.truth[record["context_id"]], cell_of(record["cell"]), slot_of(record["cell"])
        for name in ("text", "before", "after", "section", "intent", "marker", "style", "start", "end"):
            assert record[name] == one[name], (name, record)
        assert record["cited_ids"] == [one["cited_id"]] and cell == world.cell(one["cited_id"], made)
        of_cell = {} if slot[0] == "low_resource" else dict(zip(OF_CELL, cell, strict=True))
        assert record["labels"] == {**of_cell, slot[0]: slot[1]}
        assert record["labels"].items() <= labels[record["context_id"]].items()
    # No paper is cited twice. Reserves cite papers that are not used, or say more of the paper of their place.
    used = {record["cited_ids"][0]: record["cell"] for record in contexts}
    assert len(used) == len(contexts)
    assert all(used.get(record["cited_ids"][0], record["cell"]) == record["cell"] for record in reserves)
    # As many as can be, and not one more; cells.csv says so too.
    chosen = Counter((cell_of(record["cell"]), slot_of(record["cell"])) for record in contexts)
    for cell, slots in wanted.items():
        assert sum(chosen[cell, slot] for slot in slots) == most_places(fits[cell], slots), cell
    for row in made.cells:
        cell, slot = cell_of(row), slot_of(row)
        taken, fitting = chosen[cell, slot], sum(slot in options for options in fits[cell].values())
        assert (int(row["chosen"]), int(row["fitting_papers"])) == (taken, fitting) and taken <= int(row["wanted"])
        missing = "its papers stand for other classes" if fitting > taken else "no further paper has such a sentence"
        assert row["why"] == ("" if taken == int(row["wanted"]) else missing)
    # The manifest counts what the set holds.
    counts = Counter(label for record in contexts for label in record["labels"].items())
    for name, family in made.manifest.families.items():
        assert family.classes == {label: counts[name, label] for label in family.classes}
    assert made.manifest.sampling.funnel["chosen"] == made.manifest.contexts == len(contexts)
    return Counter(record["cell"]["family"] for record in contexts)


def test_a_set_is_what_the_truth_allows(built: Built, world: World) -> None:
    found = check_against_truth(built, world)
    # There is something to decide: papers that could stand for several classes, classes that go without.
    assert set(found) == set(CHOSEN_FOR) and found.total() > 100
    assert any(row["why"] == "its papers stand for other classes" for row in built.cells)
    funnel = built.manifest.sampling.funnel
    assert funnel["papers"] == built.manifest.corpus_papers == len(world.papers) == world.traps["papers"]["records"]
    assert funnel["texts"] == world.traps["texts"]["records"] - world.traps["texts"]["doubled_text"]
    assert funnel["sentences"] >= funnel["usable"] == built.manifest.bounds.length.sentences
    # What could not be read is set aside once.
    lines = built.records("quarantine.jsonl")
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
    quota = made.options.quotas()
    assert set(check_against_truth(made, world)) == {name for name in CHOSEN_FOR if quota[name]}
    assert made.files["contexts.jsonl"] != built.files["contexts.jsonl"]


def test_the_same_seed_gives_the_same_bytes_and_a_build_that_stands_is_not_done_again(
    built: Built, s2_release: Path, tmp_path: Path
) -> None:
    def receipts() -> dict[Path, int]:
        paths = (tmp_path / ".mine.work").rglob("*.json")
        return {path: path.stat().st_mtime_ns for path in paths if path.parent.name != ".mine.work"}

    assert build(tmp_path / "mine", sources(s2_release), workers=2).files == built.files
    before = receipts()
    assert len(before) > 6
    assert build(tmp_path / "mine", sources(s2_release)).files == built.files and receipts() == before


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
    made, of_texts = build(tmp_path / "mine", given), built.records("contexts.jsonl")
    # Whatever they came from: the same contexts. Only full texts say what was cited before.
    assert all("cited_before" in one for one in of_texts)
    same = [{name: one[name] for name in one if name != "cited_before"} for one in of_texts]
    assert made.records("contexts.jsonl") == same
    max((tmp_path / "papers").iterdir()).unlink()  # papers that changed are read again
    assert build(tmp_path / "mine", given).manifest.corpus_papers < made.manifest.corpus_papers


def test_groups_are_contexts_of_several_papers(bench: Callable[..., Built], world: World) -> None:
    """Those that the corpus has must agree on a class, else the context has none (docs/diagnostics.md)."""
    made = bench(single=False)
    contexts = made.records("contexts.jsonl")
    used = [paper for record in contexts for paper in record["cited_ids"]]
    assert len(used) == len(set(used)) > len(contexts)
    for record in contexts:
        cells = {world.cell(paper, made) for paper in record["cited_ids"] if str(paper) in world.papers}
        assert cell_of(record["cell"]) in cells
        assert "field" not in record["labels"] or cells == {tuple(record["labels"][name] for name in OF_CELL)}
    # A reserve cites no paper that another context of the set cites, else it could never take a place.
    place_of = {paper: one["cell"] for one in contexts for paper in one["cited_ids"]}
    for record in made.records("reserves.jsonl"):
        assert all(place_of.get(paper, record["cell"]) == record["cell"] for paper in record["cited_ids"])


def test_what_cannot_be_built(s2_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    out = tmp_path / "mine"
    with pytest.raises(InputError, match="'field' has no quota of its own"):
        build(out, sources(s2_release), quota={"field": 1})
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
