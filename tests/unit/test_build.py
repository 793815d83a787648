"""Building a diagnostic set from a synthetic release, held against the truth of that release.

Classes, cells and the best possible choice are worked out here once more, from papers and truth alone, by the rules of
docs/diagnostics.md.
"""

import contextlib
import csv
import gzip
import hashlib
import shutil
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from citerec.corpus.store import open_store
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.diagnostics.sets import SetManifest, read_set
from citerec.errors import BuildError, InputError
from citerec.records import Paper
from tests.conftest import write_lines

Record = dict[str, Any]
Cell = tuple[str, str, str]
Slot = tuple[str, str]

YEARS = ((1996, 2000), (2001, 2005), (2006, 2010), (2011, 2015), (2016, 2020))
CLASSES = {
    "length": ("short", "medium", "long"),
    "location": ("first", "middle", "last"),
    "intent": ("background", "method", "result"),
}
TAGGED = ("pos_before", "pos_after")


class Measures(NamedTuple):
    """A citing sentence, in numbers."""

    length: int
    place: float
    ends: bool


class World:
    """The papers and the truth of a release, read by hand, and what follows from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.papers = {int(one["corpusid"]): one for one in self._good_papers()}
        lines = (folder / "truth.jsonl").read_bytes().splitlines()
        self.truth = {(one["citing_id"], one["start"]): one for one in map(orjson.loads, lines)}
        self.traps = orjson.loads((folder / "traps.json").read_bytes())
        self.fields = {number: first_field(paper) for number, paper in self.papers.items()}
        self.years = {number: years_of(paper["year"]) for number, paper in self.papers.items()}
        self.by_field: defaultdict[tuple[str | None, str], list[int]] = defaultdict(list)
        for number, paper in self.papers.items():
            if (years := self.years[number]) and (paper["citationcount"] or 0) >= 5:
                self.by_field[self.fields[number], years].append(paper["citationcount"])
        self.pooled: defaultdict[str, list[int]] = defaultdict(list)
        for (_, years), counts in self.by_field.items():
            self.pooled[years] += counts
        known = Counter(field for field in self.fields.values() if field)
        self.large = {field for field, papers in known.items() if papers >= 0.03 * known.total()}
        self.small = set(known) - self.large

    def _good_papers(self) -> Iterator[Record]:
        for path in sorted((self.folder / "papers").iterdir()):
            for line in gzip.decompress(path.read_bytes()).splitlines():
                with contextlib.suppress(orjson.JSONDecodeError):
                    record = orjson.loads(line)
                    if isinstance(record, dict) and record.get("corpusid") is not None:
                        yield record

    def cell(self, number: int) -> Cell | None:
        """Field, years and tenth of a paper that may be drawn."""
        paper, field, years = self.papers.get(number), self.fields.get(number), self.years.get(number)
        if not paper or not field or not years or not is_complete(paper):
            return None
        group = self.group(number)
        return (field, years, group) if group is not None else None

    def group(self, number: int) -> str | None:
        """The tenth of its field and years (or of its years, where there are fewer than ten such) a paper stands in."""
        count, years = self.papers[number]["citationcount"] or 0, self.years[number] or ""
        among = self.by_field.get((self.fields[number], years), [])
        among = among if len(among) >= 10 and self.fields[number] else self.pooled[years]
        if count < 5 or len(among) < 10:
            return None
        below, alike = sum(other < count for other in among), among.count(count)
        return str(min(9, int(10 * (below + alike / 2) / len(among))))

    def eligible(self, fields: Iterable[str]) -> dict[tuple[int, int], Record]:
        """The truth's contexts of papers that can be sampled."""
        fields, cells = set(fields), {number: self.cell(number) for number in self.papers}
        return {key: one for key, one in self.truth.items() if (cell := cells[one["cited_id"]]) and cell[0] in fields}


@pytest.fixture(scope="module")
def world(s2_release: Path) -> World:
    return World(s2_release)


def first_field(paper: Record) -> str | None:
    names = [one["category"].replace(" And ", " and ") for one in paper["s2fieldsofstudy"] or []]
    return names[0] if names else None


def years_of(year: int | None) -> str | None:
    return next((f"{first}–{last}" for first, last in YEARS if year and first <= year <= last), None)


def is_complete(paper: Record) -> bool:
    venue = paper["venue"] or (paper["journal"] or {}).get("name")
    return bool((paper["title"] or "").strip() and venue and any(one["name"] for one in paper["authors"] or []))


def measures_of(sentences: Iterable[str]) -> list[Measures]:
    import spacy

    tokenizer = spacy.blank("en").tokenizer

    def words_of(part: str) -> int:
        return sum(any(one.isalpha() or one.isdecimal() for one in token.text) for token in tokenizer(part))

    both_sides = [[words_of(part) for part in sentence.split("<REF>")] for sentence in sentences]
    return [Measures(left + 1 + right, (left + 1) / (left + 1 + right), right == 0) for left, right in both_sides]


def length_classes(lengths: list[int]) -> Callable[[int], str | None]:
    mean, deviation = statistics.fmean(lengths), statistics.pstdev(lengths)
    kept = [one for one in lengths if abs(one - mean) <= 3 * deviation]
    middle, spread = statistics.fmean(kept), statistics.pstdev(kept)

    def class_of(length: int) -> str | None:
        if abs(length - mean) > 3 * deviation:
            return None
        return "short" if length < middle - spread else "long" if length > middle + spread else "medium"

    return class_of


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


def sources(release: Path, *, citations: bool = True) -> Sources:
    return Sources([release / "papers"], [release / "s2orc_v2"], [release / "citations"] if citations else [])


def build(out: Path, given: Sources, **options: Any) -> Built:
    """Builds with all papers drawn. Texts are few, and bad lines of each kind among them."""
    settings = BuildOptions(**{"oversample": 1000.0, "workers": 1, "max_bad": 0.1, **options})
    return Built(out, build_set(out, given, settings), settings)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, s2_release: Path) -> Callable[..., Built]:
    """A place where sets are built one after the other; what one has read, the next need not read again."""
    folder = tmp_path_factory.mktemp("builds")

    def build_here(*, citations: bool = True, **options: Any) -> Built:
        made = build(folder / "mine", sources(s2_release, citations=citations), **options)
        kept = folder / f"kept-{len(list(folder.iterdir()))}" / "mine"
        shutil.copytree(made.path, kept)
        return replace(made, path=kept)

    return build_here


@pytest.fixture(scope="module")
def built(bench: Callable[..., Built]) -> Built:
    return bench()


def check_against_truth(made: Built, world: World, *, intents: bool = True) -> Counter[Slot]:
    """Every claim of a set of single citations for which all papers were drawn; returns the contexts of each class."""
    quota, conditions = made.options.quotas(), made.options.conditions
    small = world.small if quota["low_resource"] else set()
    truth = world.eligible(world.large | small)
    numbers = dict(zip(truth, measures_of(one["text"] for one in truth.values()), strict=True))
    length_class = length_classes([one.length for one in numbers.values()])
    cells = {number: world.cell(number) for number in world.papers}

    def labels_of(key: tuple[int, int]) -> set[Slot]:
        one, (length, place, ends) = truth[key], numbers[key]
        medium = length_class(length) == "medium"
        location = "first" if place <= 1 / 3 else "middle" if place <= 2 / 3 else "last"
        labels = {
            ("length", length_class(length)): ends,
            ("location", location): medium,
            ("intent", one["intent"] if intents else None): medium and ends,
            ("low_resource", cells[one["cited_id"]][0]): medium and ends,
        }
        return {slot for slot, holds in labels.items() if slot[1] and (holds or not conditions)}

    def slots(cell: Cell) -> dict[Slot, int]:
        if cell[0] in small:
            return {("low_resource", cell[0]): quota["low_resource"]}
        return {(family, label): quota[family] for family in CLASSES if quota[family] for label in CLASSES[family]}

    # What each paper of a cell could stand for.
    fits: defaultdict[Cell, dict[int, set[Slot]]] = defaultdict(dict)
    for key, one in truth.items():
        cell = cells[one["cited_id"]]
        fits[cell].setdefault(one["cited_id"], set()).update(labels_of(key) & slots(cell).keys())

    # Every context is one of the truth, word for word, with the class and the cell that its paper and sentence give.
    chosen: defaultdict[Cell, Counter[Slot]] = defaultdict(Counter)
    for record in [*made.contexts, *made.reserves]:
        number = int(record["context_id"].partition("-")[0])
        key = number, record["start"]
        for name in ("text", "before", "after", "section", "marker", "style", "end"):
            assert record[name] == truth[key][name], (name, record)
        assert record["cited_ids"] == [truth[key]["cited_id"]]
        assert record["intent"] == (truth[key]["intent"] if intents else None)
        of_citing = [record["citing_id"], record["citing_key"], record["citing_year"]]
        is_known = number in world.papers
        assert of_citing == (
            [number, None, world.papers[number]["year"]] if is_known else [None, f"CorpusId:{number}", None]
        )
        cell, slot = cells[truth[key]["cited_id"]], slot_of(record["cell"])
        assert cell_of(record["cell"]) == cell and slot in labels_of(key) & slots(cell).keys()
        combined = dict(zip(("field", "year", "citation_count"), cell, strict=True)) if cell[0] in world.large else {}
        assert record["labels"] == {**combined, slot[0]: slot[1]}
    for record in made.contexts:
        chosen[cell_of(record["cell"])][slot_of(record["cell"])] += 1

    # No paper is cited twice. Reserves cite papers that are not used, or say more of the paper of their place.
    used = [record["cited_ids"][0] for record in made.contexts]
    assert len(used) == len(set(used))
    holders: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for record in made.contexts:
        holders[(*record["cell"].values(),)].add(record["cited_ids"][0])
    by_place: defaultdict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in made.reserves:
        by_place[(*record["cell"].values(),)].append(record)
    for place, reserves in by_place.items():
        assert len(reserves) <= 5
        is_used = [record["cited_ids"][0] in used for record in reserves]
        assert is_used == sorted(is_used)
        assert {record["cited_ids"][0] for record in reserves} & set(used) <= holders[place]
    ids = [record["context_id"] for record in made.contexts]
    assert len(set(ids)) == len(ids) and set(ids).isdisjoint(record["context_id"] for record in made.reserves)

    # As many as can be, and not one more; cells.csv says so too.
    assert set(chosen) <= set(fits)
    for cell, of_cell in fits.items():
        assert chosen[cell].total() == (most_places(of_cell, slots(cell)) if slots(cell) else 0), cell
    rows = made.cells
    assert len({(cell_of(row), slot_of(row)) for row in rows}) == len(rows)
    for row in rows:
        cell, slot = cell_of(row), slot_of(row)
        fitting, wanted = sum(slot in options for options in fits.get(cell, {}).values()), slots(cell)[slot]
        taken = chosen[cell][slot]
        assert (row["wanted"], row["chosen"], row["fitting_papers"]) == (str(wanted), str(taken), str(fitting))
        assert row["drawn_papers"] == row["papers"]
        missing = "its papers stand for other classes" if fitting > taken else "no further paper has such a sentence"
        assert row["why"] == ("" if taken == wanted else missing)
    check_manifest(made)
    return sum(chosen.values(), Counter())


def check_manifest(made: Built) -> None:
    """A set reads as one, and its manifest counts what it holds."""
    assert read_set(made.path).manifest == made.manifest
    counts = Counter(label for record in made.contexts for label in record["labels"].items())
    for name, family in made.manifest.families.items():
        assert family.classes == {label: counts[name, label] for label in family.classes}
        assert bool(family.conditions) == (made.options.conditions and name not in ("field", "year", "citation_count"))
    assert made.manifest.sampling and made.manifest.sampling.cells == {
        "wanted": len(made.cells),
        "full": sum(row["chosen"] == row["wanted"] for row in made.cells),
        "partly": sum(0 < int(row["chosen"]) < int(row["wanted"]) for row in made.cells),
        "empty": sum(row["chosen"] == "0" for row in made.cells),
    }
    assert made.manifest.sampling.funnel["chosen"] == made.manifest.contexts == len(made.contexts)
    qrels = [line.split() for line in (made.path / "qrels.txt").read_text().splitlines()]
    assert qrels == [[one["context_id"], "0", str(paper), "1"] for one in made.contexts for paper in one["cited_ids"]]
    assert made.manifest.name in (made.path / "DATASHEET.md").read_text(encoding="utf-8")


def test_a_set_is_what_the_truth_allows(built: Built, world: World) -> None:
    found = check_against_truth(built, world)
    assert {family for family, _ in found} == {*CLASSES, "low_resource"}
    assert all(found[family, label] for family in CLASSES for label in CLASSES[family])
    # There is something to decide: papers that could stand for several classes, classes that go without.
    assert found.total() > 100 and built.reserves
    assert any(row["why"] == "its papers stand for other classes" for row in built.cells)
    assert built.manifest.spacy_model is None and not set(TAGGED) & set(built.manifest.families)
    bounds, truth = built.manifest.bounds, world.eligible(world.large | world.small)
    assert (set(bounds.field.fields), set(bounds.field.low_resource)) == (world.large, world.small)
    assert bounds.length.sentences == len(truth)
    for number, paper in world.papers.items():
        fields = (world.fields[number],) if world.fields[number] else ()
        given = Paper(str(number), year=paper["year"], fields_of_study=fields, citation_count=paper["citationcount"])
        assert bounds.citation_count.group_of_paper(given) == (world.group(number) if world.years[number] else None)
    funnel = built.manifest.sampling.funnel
    assert funnel["papers"] == built.manifest.corpus_papers == len(world.papers) == world.traps["papers"]["records"]
    assert funnel["texts"] == world.traps["texts"]["records"] - world.traps["texts"]["doubled_text"]
    assert funnel["sentences"] >= funnel["usable"] == len(truth) and funnel["drawn"] == funnel["eligible"]
    # What could not be read is set aside once.
    lines = lines_of(built.path / "quarantine.jsonl")
    for dataset in ("s2orc_v2", "citations", "papers"):
        bad = [line for line in lines if Path(line["shard"]).name.startswith(dataset)]
        bad = [line for line in bad if not line["reason"].startswith(("body.", "bibliography."))]
        assert len(bad) == sum(world.traps["bad_records"][dataset].values()), dataset
    assert lines == sorted(lines, key=lambda line: (line["shard"], line["line"]))


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"per_class": 2},
        {"quota": {"length": 3, "intent": 0}},
        {"quota": {"low_resource": 0, "location": 2}},
        {"conditions": False},
        {"citations": False},
    ],
    ids=str,
)
def test_options_change_the_choice_and_nothing_else(
    bench: Callable[..., Built], built: Built, world: World, options: dict[str, Any]
) -> None:
    made = bench(**options)
    found, quota = check_against_truth(made, world, intents="citations" not in options), made.options.quotas()
    assert made.contexts != built.contexts
    families = {name for name in (*CLASSES, "low_resource") if quota[name]}
    if "citations" in options:
        families.remove("intent")
    assert {family for family, _ in found} == families
    assert {name for name in quota if not quota[name]}.isdisjoint(made.manifest.families)
    assert max(Counter((*record["cell"].values(),) for record in made.contexts).values()) <= max(quota.values())


def test_the_list_of_the_benchmark_may_decide_which_fields_are_large(bench: Callable[..., Built]) -> None:
    made = bench(field_shares="published")
    assert made.manifest.bounds.field.decided_by == "published"
    assert set(made.manifest.bounds.field.fields) >= {one["labels"]["field"] for one in made.contexts if "field" in one}
    check_manifest(made)


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


@pytest.mark.slow
def test_mongodb_gives_the_same_bytes_and_no_file_tells_more_of_the_address(
    built: Built, s2_release: Path, nx_server: str, tmp_path: Path
) -> None:
    """Options of an address may be secrets: one stands for them, since the server of the tests takes no passwords."""
    address = f"{nx_server}/citerec_build?appName=swordfish"
    made = build(tmp_path / "mine", sources(s2_release), store=address, workers=2)
    assert digests(made.path) == digests(built.path)
    with contextlib.closing(open_store(address)) as store:
        assert store.counts().papers == made.manifest.corpus_papers
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"swordfish" in path.read_bytes()]
    others = Sources([write_lines(tmp_path / "p.jsonl", [{"paper_id": 1, "title": "T"}])], [s2_release / "s2orc_v2"])
    with pytest.raises(InputError, match="holds papers of other shards"):
        build(tmp_path / "other", others, store=address)


def test_contexts_are_chosen_by_the_same_rules_and_what_is_unusable_is_left_out(
    s2_release: Path, tmp_path: Path, world: World, built: Built
) -> None:
    names = ("text", "before", "after", "citing_id", "section", "intent", "marker", "style", "start", "end")
    lines = [
        {"context_id": f"{citing}-{start}", "cited_ids": [one["cited_id"]], "source": "s2orc"}
        | {name: one[name] for name in names}
        for (citing, start), one in world.truth.items()
    ]
    spoilt = [
        {**lines[0], "context_id": "x-0", "text": lines[0]["text"].rstrip(".?!") + ","},
        {**lines[1], "context_id": "x-1", "text": "7 " + lines[1]["text"]},
        {**lines[2], "context_id": "x-2", "text": "see <REF>."},
        {**lines[3], "context_id": "x-3", "text": lines[3]["text"].replace("<REF>", "[3] and <REF>")},
    ]
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


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_draw_of_some_papers_is_a_part_of_all(bench: Callable[..., Built], rounds: int) -> None:
    made = bench(oversample=1.0, rounds=rounds, quota=dict.fromkeys(("location", "intent", *TAGGED), 0))
    for row in made.cells:
        # Three places a cell of a large field, one of a small one; each round draws twice as many.
        most = (3 if row["family"] == "length" else 1) * (2**rounds - 1)
        assert int(row["fitting_papers"]) <= int(row["drawn_papers"]) <= min(most, int(row["papers"]))
        is_short = row["chosen"] == row["fitting_papers"] and row["chosen"] != row["wanted"]
        if is_short and row["drawn_papers"] != row["papers"]:
            assert row["why"] == "not all papers were drawn" and int(row["drawn_papers"]) == most
    check_manifest(made)


def test_groups_are_contexts_of_several_papers(bench: Callable[..., Built], world: World) -> None:
    """Those that the corpus has must agree on a class, else the context has none (docs/diagnostics.md)."""
    made = bench(single=False)
    check_manifest(made)
    used = [paper for record in made.contexts for paper in record["cited_ids"]]
    assert len(used) == len(set(used)) > len(made.contexts)
    for record in made.contexts:
        known = [paper for paper in record["cited_ids"] if paper in world.papers]
        assert cell_of(record["cell"]) in [world.cell(paper) for paper in known]
        if "field" in record["labels"]:
            cells = {(world.fields[paper], world.years[paper], world.group(paper)) for paper in known}
            assert cells == {tuple(record["labels"][name] for name in ("field", "year", "citation_count"))}
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
