"""Building a diagnostic set from a synthetic release, held against the truth of that release.

Classes, cells and the best possible choice are worked out here once more, from papers and truth alone, by the rules of
docs/diagnostics.md.
"""

import contextlib
import csv
import gzip
import hashlib
import json
import shutil
import sqlite3
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.store import PaperStore
from citerec.corpus.stores import open_store
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.diagnostics.families import families_named
from citerec.diagnostics.sets import SetManifest, read_set
from citerec.errors import BuildError, InputError
from citerec.records import Paper
from tests.conftest import s2ag_paper, write_lines

Record = dict[str, Any]
Cell = tuple[str, str, str]
Slot = tuple[str, str]

YEARS = ((1996, 2000), (2001, 2005), (2006, 2010), (2011, 2015), (2016, 2020))
LARGE_FIELDS = ("length", "location", "intent", "pos_before", "pos_after")
TAGGED = ("pos_before", "pos_after")
SAMPLED = [family.name for family in families_named() if family.sampled]
CLASSES = {
    "length": ("short", "medium", "long"),
    "location": ("first", "middle", "last"),
    "intent": ("background", "method", "result"),
    "pos_before": ("verb", "noun", "adjective", "adverb", "pronoun", "preposition", "others"),
    "pos_after": ("verb", "noun", "adjective", "adverb", "pronoun", "preposition", "others"),
}
PENN = {
    "verb": "VB VBD VBG VBP VBZ VBN", "noun": "NN NNS NNP NNPS", "adjective": "JJ JJR JJS", "adverb": "RB RBR RBS",
    "pronoun": "PRP PRP$ WP EX", "preposition": "IN TO",
}  # fmt: skip
PUBLISHED = {"Biology", "Chemistry", "Computer Science", "Materials Science", "Mathematics", "Medicine", "Physics"}
PUBLISHED_SMALL = {
    "Psychology", "Environmental Science", "Engineering", "Business", "Geography", "Political Science", "Sociology",
    "Geology", "History", "Art", "Philosophy",
}  # fmt: skip
TABLES = ("drawn", "intents", "sentences", "candidates")
ALL_PAPERS = 1000.0
"""An oversample with which every paper is drawn."""
MAX_BAD = 0.1
"""Texts are few, and bad lines of each kind among them."""


@dataclass(frozen=True)
class Measures:
    """A citing sentence, in numbers."""

    length: int
    place: float
    ends: bool
    before: str | None = None
    after: str | None = None


class World:
    """The papers and the truth of a release, read by hand, and what follows from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.papers = {int(one["corpusid"]): one for one in self._good("papers", "corpusid")}
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

    def _good(self, dataset: str, key: str) -> Iterator[Record]:
        for path in sorted((self.folder / dataset).iterdir()):
            for line in gzip.decompress(path.read_bytes()).splitlines():
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(record, dict) and record.get(key) is not None:
                    yield record

    def citations(self) -> Iterator[tuple[int, int]]:
        """Who cites whom, by the rows of `citations`."""
        for one in self._good("citations", "citingcorpusid"):
            if one["citedcorpusid"] is not None:
                yield int(one["citingcorpusid"]), int(one["citedcorpusid"])

    def cell(self, number: int) -> Cell | None:
        """Field, years and tenth of a paper that may be drawn."""
        paper, field, years = self.papers.get(number), self.fields.get(number), self.years.get(number)
        if not paper or not field or not years or not is_complete(paper) or (paper["citationcount"] or 0) < 5:
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

    def eligible(self, large: Iterable[str], small: Iterable[str]) -> dict[tuple[int, int], Record]:
        """The truth's contexts of papers that can be sampled."""
        fields = {*large, *small}
        cells = {number: self.cell(number) for number in self.papers}
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


# Classes


def words_of(tokens: Iterable[Any]) -> list[Any]:
    return [token for token in tokens if any(one.isalpha() or one.isdecimal() for one in token.text)]


def measures_by_rule(sentences: Iterable[str]) -> list[Measures]:
    import spacy

    tokenizer = spacy.blank("en").tokenizer
    found = []
    for sentence in sentences:
        before, after = (len(words_of(tokenizer(part))) for part in sentence.split("<REF>"))
        found.append(Measures(before + 1 + after, (before + 1) / (before + 1 + after), after == 0))
    return found


def measures_by_model(sentences: Iterable[str], model: Path) -> list[Measures]:
    import spacy
    from spacy.tokens import Doc

    pipeline = spacy.load(model)
    found = []
    for sentence in sentences:
        before, after = ([token.text for token in pipeline.tokenizer(part)] for part in sentence.split("<REF>"))
        doc = Doc(pipeline.vocab, words=[*before, "<REF>", *after])
        for _, pipe in pipeline.pipeline:
            doc = pipe(doc)
        left, right = words_of(doc[: len(before)]), words_of(doc[len(before) + 1 :])
        length = len(left) + 1 + len(right)
        tags = [token.tag_ for token in left[-1:]] or [None], [token.tag_ for token in right[:1]] or [None]
        found.append(Measures(length, (len(left) + 1) / length, not right, tags[0][0], tags[1][0]))
    return found


def length_classes(lengths: Iterable[int]) -> Callable[[int], str | None]:
    lengths = list(lengths)
    mean, deviation = statistics.fmean(lengths), statistics.pstdev(lengths)
    kept = [one for one in lengths if abs(one - mean) <= 3 * deviation]
    middle, spread = statistics.fmean(kept), statistics.pstdev(kept)

    def class_of(length: int) -> str | None:
        if abs(length - mean) > 3 * deviation:
            return None
        return "short" if length < middle - spread else "long" if length > middle + spread else "medium"

    return class_of


def part_of_speech(tag: str | None) -> str | None:
    return None if tag is None else next((name for name, tags in PENN.items() if tag in tags.split()), "others")


def labels_of(
    intent: str | None, measures: Measures, length_class: Callable[[int], str | None], field: str, *, conditions: bool
) -> dict[str, str]:
    """Every class that a context has by itself, but for those of its cell."""
    length = length_class(measures.length)
    location = "first" if measures.place <= 1 / 3 else "middle" if measures.place <= 2 / 3 else "last"
    medium, middle = length == "medium", location == "middle"
    holds = {
        "length": measures.ends, "location": medium, "intent": medium and measures.ends,
        "pos_before": medium and middle, "pos_after": medium and middle, "low_resource": medium and measures.ends,
    }  # fmt: skip
    labels = {
        "length": length, "location": location, "intent": intent, "pos_before": part_of_speech(measures.before),
        "pos_after": part_of_speech(measures.after), "low_resource": field,
    }  # fmt: skip
    return {name: label for name, label in labels.items() if label and (holds[name] or not conditions)}


def maximum_matching(fits: Mapping[int, set[Slot]], slots: Mapping[Slot, int]) -> int:
    """How many places of slots papers can fill, one each: Kuhn's augmenting paths."""
    places = [(slot, number) for slot, wanted in slots.items() for number in range(wanted)]
    held: dict[int, tuple[Slot, int]] = {}  # the place that a paper fills

    def place(one: tuple[Slot, int], tried: set[int]) -> bool:
        for paper, options in fits.items():
            if one[0] in options and paper not in tried:
                tried.add(paper)
                if paper not in held or place(held[paper], tried):
                    held[paper] = one
                    return True
        return False

    return sum(place(one, set()) for one in places)


# Builds


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
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def key_of(record: Record) -> tuple[int, int]:
    """Citing paper and place of a context, as the truth has them."""
    return int(record["context_id"].partition("-")[0]), record["start"]


def sources(release: Path, texts: str = "s2orc_v2", *, citations: bool = True) -> Sources:
    return Sources([release / "papers"], [release / texts], [release / "citations"] if citations else [])


def build(out: Path, given: Sources, **options: Any) -> Built:
    settings = BuildOptions(**{"oversample": ALL_PAPERS, "workers": 1, "max_bad": MAX_BAD, **options})
    return Built(out, build_set(out, given, settings), settings)


class Bench:
    """A place where sets are built one after the other; what one has read, the next need not read again."""

    def __init__(self, folder: Path, release: Path) -> None:
        self.folder, self.release = folder, release
        self._sets = 0

    def build(self, texts: str = "s2orc_v2", *, citations: bool = True, **options: Any) -> Built:
        made = build(self.folder / "mine", sources(self.release, texts, citations=citations), **options)
        self._sets += 1
        kept = self.folder / f"kept-{self._sets}" / "mine"
        shutil.copytree(made.path, kept)
        return Built(kept, made.manifest, made.options)

    def store_of(self, built: Built) -> PaperStore:
        """The papers that were read for `built`."""
        self._return_to(built)
        return open_store(self.folder / ".mine.work" / "papers" / "papers.sqlite")

    def rows_of(self, built: Built) -> dict[str, list[Record]]:
        """The rows that `built` has kept, by table."""
        self._return_to(built)
        return kept(self.folder)

    def _return_to(self, built: Built) -> None:
        """Build `built` again: tests share the folder, and may run in any order."""
        assert digests(self.build().path) == digests(built.path)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, s2_release: Path) -> Bench:
    return Bench(tmp_path_factory.mktemp("builds"), s2_release)


@pytest.fixture(scope="module")
def built(bench: Bench) -> Built:
    """A build for which all papers were drawn."""
    return bench.build()


def check_against_truth(
    made: Built,
    world: World,
    *,
    intents: bool = True,
    measured: Callable[[list[str]], list[Measures]] = measures_by_rule,
    published: bool = False,
) -> Counter[Slot]:
    """Every claim of a set of single citations for which all papers were drawn; returns the contexts of each class."""
    large, small = (PUBLISHED, PUBLISHED_SMALL) if published else (world.large, world.small)
    conditions, quota = made.options.conditions, made.options.quotas()
    if not quota["low_resource"]:
        small = set()
    if not any(quota[family] for family in LARGE_FIELDS):
        large = set()
    truth = world.eligible(large, small)
    numbers = dict(zip(truth, measured([one["text"] for one in truth.values()]), strict=True))
    length_class = length_classes(one.length for one in numbers.values())
    cells = {number: world.cell(number) for number in world.papers}
    labels = {
        key: labels_of(
            one["intent"] if intents else None,
            numbers[key],
            length_class,
            cells[one["cited_id"]][0],
            conditions=conditions,
        )
        for key, one in truth.items()
    }

    def slots(cell: Cell) -> dict[Slot, int]:
        if cell[0] in small:
            return {("low_resource", cell[0]): quota["low_resource"]}
        return {
            (family, label): quota[family]
            for family in LARGE_FIELDS
            if quota[family] and (made.options.model or family not in TAGGED)
            for label in CLASSES[family]
        }

    # What each paper of a cell could stand for.
    fits: defaultdict[Cell, dict[int, set[Slot]]] = defaultdict(dict)
    for key, one in truth.items():
        cell = cells[one["cited_id"]]
        possible = fits[cell].setdefault(one["cited_id"], set())
        possible.update(slot for slot in labels[key].items() if slot in slots(cell))

    # Every context is one of the truth, word for word, with the class and the cell that its paper and sentence give.
    chosen: defaultdict[Cell, Counter[Slot]] = defaultdict(Counter)
    for record in [*made.contexts, *made.reserves]:
        one = truth[key_of(record)]
        assert record["text"] == one["text"]
        assert record["cited_ids"] == [one["cited_id"]]
        assert record["intent"] == (one["intent"] if intents else None)
        for name in ("before", "after", "section", "marker", "style", "end"):
            assert record[name] == one[name], (name, record)
        assert record["source"] == "s2orc"
        number = record["context_id"].partition("-")[0]
        if int(number) in world.papers:
            assert (record["citing_id"], record["citing_key"]) == (int(number), None)
            assert record["citing_year"] == world.papers[int(number)]["year"]
        else:
            assert (record["citing_id"], record["citing_key"]) == (None, f"CorpusId:{number}")
            assert record["citing_year"] is None
        cell = cells[one["cited_id"]]
        slot = record["cell"]["family"], record["cell"]["class"]
        assert tuple(record["cell"][name] for name in ("field", "years", "citation_count")) == cell
        assert slot[1] == labels[key_of(record)][slot[0]]
        assert slot in slots(cell)
        combined = {"field": cell[0], "year": cell[1], "citation_count": cell[2]} if cell[0] in large else {}
        assert record["labels"] == {**combined, slot[0]: slot[1]}
    for record in made.contexts:
        cell = tuple(record["cell"][name] for name in ("field", "years", "citation_count"))
        chosen[cell][record["cell"]["family"], record["cell"]["class"]] += 1

    # No paper is cited twice. Reserves cite papers that are not used, or say more of the paper of their place.
    used = [record["cited_ids"][0] for record in made.contexts]
    assert len(used) == len(set(used))
    holders: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for record in made.contexts:
        holders[(*record["cell"].values(),)].add(record["cited_ids"][0])
    by_place: defaultdict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in made.reserves:
        by_place[(*record["cell"].values(),)].append(record)
    chosen_ids = {record["context_id"] for record in made.contexts}
    for place, reserves in by_place.items():
        assert len(reserves) <= 5
        assert len({record["context_id"] for record in reserves}) == len(reserves)
        assert chosen_ids.isdisjoint(record["context_id"] for record in reserves)
        is_used = [record["cited_ids"][0] in used for record in reserves]
        assert is_used == sorted(is_used)
        assert {record["cited_ids"][0] for record in reserves} & set(used) <= holders[place]

    # As many as can be, and not one more.
    for cell, of_cell in fits.items():
        assert chosen[cell].total() == maximum_matching(of_cell, slots(cell)), cell
        assert all(count <= slots(cell)[slot] for slot, count in chosen[cell].items())
    assert set(chosen) <= set(fits)

    # cells.csv says so too.
    rows = {(tuple(list(row.values())[:3]), (row["family"], row["class"])): row for row in made.cells}
    assert len(rows) == len(made.cells)
    assert {cell for cell, _ in rows} >= set(fits)
    for cell, slot in rows:
        row, papers = rows[cell, slot], fits.get(cell, {})
        fitting = sum(slot in options for options in papers.values())
        wanted, taken = slots(cell)[slot], chosen[cell][slot]
        assert (row["wanted"], row["chosen"], row["fitting_papers"]) == (str(wanted), str(taken), str(fitting))
        assert row["drawn_papers"] == row["papers"]
        assert int(row["papers"]) >= len(papers)
        if taken == wanted:
            assert row["why"] == ""
        else:
            assert row["why"] == (
                "its papers stand for other classes" if fitting > taken else "no further paper has such a sentence"
            )
        assert set(slots(cell)) == {other for of_cell, other in rows if of_cell == cell}
    check_manifest(made)
    return sum(chosen.values(), Counter())


def check_manifest(made: Built) -> None:
    """A set reads as one, and its manifest counts what it holds."""
    found = read_set(made.path)
    assert found.manifest == made.manifest
    counts = Counter(label for record in made.contexts for label in record["labels"].items())
    for name, family in made.manifest.families.items():
        assert family.classes == {label: counts[name, label] for label in family.classes}
        assert bool(family.conditions) == (made.options.conditions and name not in ("field", "year", "citation_count"))
    assert {name for name, _ in counts} <= set(made.manifest.families)
    sampling = made.manifest.sampling
    assert sampling
    rows = made.cells
    assert sampling.cells == {
        "wanted": len(rows),
        "full": sum(row["chosen"] == row["wanted"] for row in rows),
        "partly": sum(0 < int(row["chosen"]) < int(row["wanted"]) for row in rows),
        "empty": sum(row["chosen"] == "0" for row in rows),
    }
    assert sampling.funnel["chosen"] == made.manifest.contexts == len(made.contexts)
    assert len({record["context_id"] for record in made.contexts}) == len(made.contexts)
    qrels = [line.split() for line in (made.path / "qrels.txt").read_text().splitlines()]
    assert qrels == [
        [record["context_id"], "0", str(cited), "1"] for record in made.contexts for cited in record["cited_ids"]
    ]
    assert made.manifest.name in (made.path / "DATASHEET.md").read_text(encoding="utf-8")


def test_a_set_is_what_the_truth_allows(built: Built, world: World) -> None:
    found = check_against_truth(built, world)
    assert {family for family, _ in found} == {"length", "location", "intent", "low_resource"}
    assert all(found[family, label] for family in ("length", "location", "intent") for label in CLASSES[family])
    assert found.total() > 100
    assert built.reserves
    # There is something to decide: papers that could stand for several classes, classes that go without.
    assert any(row["why"] == "its papers stand for other classes" for row in built.cells)
    assert built.manifest.spacy_model is None
    assert not set(TAGGED) & set(built.manifest.families)
    assert not (built.path / "figures" / "parts-of-speech.svg").exists()


def test_bounds_are_those_of_papers_and_truth(built: Built, world: World) -> None:
    bounds = built.manifest.bounds
    assert set(bounds.field.fields) == world.large
    assert set(bounds.field.low_resource) == world.small
    lengths = [
        one.length for one in measures_by_rule(one["text"] for one in world.eligible(world.large, world.small).values())
    ]
    assert bounds.length.sentences == len(lengths)
    mean, deviation = statistics.fmean(lengths), statistics.pstdev(lengths)
    assert bounds.length.outliers == sum(abs(one - mean) > 3 * deviation for one in lengths)
    for number, paper in world.papers.items():
        fields = (world.fields[number],) if world.fields[number] else ()
        given = Paper(str(number), year=paper["year"], fields_of_study=fields, citation_count=paper["citationcount"])
        group = bounds.citation_count.group_of_paper(given)
        assert group == (world.group(number) if world.years[number] else None), number


def test_the_funnel_counts_what_is_there(built: Built, world: World, bench: Bench) -> None:
    funnel = built.manifest.sampling.funnel
    truth = world.eligible(world.large, world.small)
    assert funnel["papers"] == built.manifest.corpus_papers == len(world.papers) == world.traps["papers"]["records"]
    assert funnel["in_strata"] == sum(
        bool(world.fields[number] and world.years[number] and (paper["citationcount"] or 0) >= 5)
        for number, paper in world.papers.items()
    )
    assert funnel["texts"] == world.traps["texts"]["records"] - world.traps["texts"]["doubled_text"]
    assert funnel["usable"] == len(truth)
    drawn = {int(row["paper_id"]) for row in bench.rows_of(built)["drawn"]}
    assert {one["cited_id"] for one in truth.values()} <= drawn
    assert all(world.cell(number) for number in drawn)
    assert funnel["drawn"] == funnel["eligible"] == len(drawn)
    assert funnel["cited"] >= len({one["cited_id"] for one in world.truth.values()})
    assert funnel["citing"] == len({citing for citing, cited in world.citations() if cited in drawn})
    assert len({citing for citing, _ in truth}) <= funnel["citing_texts"] <= world.traps["arguments"]["texts"]
    assert funnel["sentences"] >= funnel["usable"] >= funnel["chosen"]
    assert list(funnel) == [
        "papers", "in_strata", "texts", "cited", "eligible", "drawn", "citing", "citing_texts", "sentences", "usable",
        "chosen",
    ]  # fmt: skip
    assert sum(int(count) for count in {cell_of(row): row["papers"] for row in built.cells}.values()) == len(drawn)


def kept(folder: Path) -> dict[str, list[Record]]:
    """The rows that a build has kept, by table."""
    with contextlib.closing(sqlite3.connect(folder / ".mine.work" / "tables.sqlite")) as database:
        database.row_factory = sqlite3.Row
        return {name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")] for name in TABLES}


def cell_of(row: Mapping[str, str]) -> Cell:
    return row["field"], row["years"], row["citation_count"]


def test_what_could_not_be_read_is_set_aside_once(built: Built, world: World) -> None:
    lines = lines_of(built.path / "quarantine.jsonl")
    bad = [line for line in lines if not line["reason"].startswith(("body.", "bibliography."))]
    for dataset in ("s2orc_v2", "citations", "papers"):
        of_dataset = [line for line in bad if Path(line["shard"]).name.startswith(dataset)]
        assert len(of_dataset) == sum(world.traps["bad_records"][dataset].values()), dataset
    assert len({(line["shard"], line["line"], line["reason"]) for line in lines}) == len(lines)
    assert lines == sorted(lines, key=lambda line: (line["shard"], line["line"]))


# The same bytes


def test_the_same_seed_gives_the_same_bytes(built: Built, s2_release: Path, tmp_path: Path) -> None:
    assert built.options.workers == 1
    again = build(tmp_path / "elsewhere" / "mine", sources(s2_release), workers=2)
    assert digests(again.path) == digests(built.path)


def write_same_texts(release: Path, folder: Path) -> dict[str, Path]:
    """Some texts in both versions: those of a shard that the other version has in the same shard."""
    lines: dict[str, dict[int, bytes]] = {}
    for version in ("s2orc", "s2orc_v2"):
        shard = sorted((release / version).iterdir())[1]
        lines[version] = {}
        for line in gzip.decompress(shard.read_bytes()).splitlines():
            with contextlib.suppress(orjson.JSONDecodeError):
                record = orjson.loads(line)
                if isinstance(record, dict) and record.get("corpusid"):
                    lines[version][int(record["corpusid"])] = line
    same = set.intersection(*map(set, lines.values()))
    found = {}
    for version, by_id in lines.items():
        found[version] = folder / version / "texts.jsonl"
        found[version].parent.mkdir(parents=True)
        found[version].write_bytes(b"".join(by_id[number] + b"\n" for number in sorted(same)))
    return found


def test_both_versions_and_both_splitters_give_the_same_contexts(world: World, tmp_path: Path) -> None:
    """Of v2 the source tells most sentences, of v1 none: they are found by pysbd, or by spaCy."""
    made = {}
    shards = write_same_texts(world.folder, tmp_path)
    for texts, split in (("s2orc_v2", "pysbd"), ("s2orc", "pysbd"), ("s2orc", "spacy")):
        given = Sources([world.folder / "papers"], [shards[texts]], [world.folder / "citations"])
        made[texts, split] = build(tmp_path / "mine", given, split=split, max_bad=0.5)
        made[texts, split].path.rename(tmp_path / f"{texts}-{split}")
    for name in ("contexts.jsonl", "reserves.jsonl", "cells.csv", "qrels.txt"):
        found = {(tmp_path / f"{texts}-{split}" / name).read_bytes() for texts, split in made}
        assert len(found) == 1, name
    first = made["s2orc_v2", "pysbd"].manifest
    assert first.contexts > 50
    assert all(one.manifest.bounds == first.bounds for one in made.values())
    assert made["s2orc", "spacy"].manifest.sampling.split == "spacy"


def test_another_seed_gives_another_set(built: Built, bench: Bench, world: World) -> None:
    other = bench.build(seed=1)
    check_against_truth(other, world)
    one, two = ({record["context_id"] for record in made.contexts} for made in (built, other))
    assert one != two


@pytest.mark.slow
def test_mongodb_gives_the_same_bytes_twice_and_no_file_tells_more_of_the_address(
    built: Built, bench: Bench, nx_server: str, tmp_path: Path
) -> None:
    """Options of an address may be secrets: one stands for them, since the server of the tests takes no passwords."""
    address, counts = f"{nx_server}/citerec_build?appName=swordfish", []
    for workers in (2, 1):
        made = bench.build(store=address, workers=workers)
        assert digests(made.path) == digests(built.path)
        with contextlib.closing(open_store(address)) as store:
            assert store.counts().papers == made.manifest.corpus_papers
            counts.append((store.counts(), {name: len(one) for name, one in kept(bench.folder).items()}))
    assert counts[0] == counts[1]
    assert not [path for path in bench.folder.rglob("*") if path.is_file() and b"swordfish" in path.read_bytes()]
    # The database now holds these papers: others are not mixed in, the same are not read again.
    others = Sources([write_papers(tmp_path)], [write_strangers(tmp_path)], are_contexts=True)
    with pytest.raises(InputError, match="holds papers of other shards"):
        build(tmp_path / "other", others, store=address)
    assert digests(bench.build().path) == digests(built.path)  # and back to a file


@pytest.mark.slow
def test_two_builds_at_once_in_one_database(built: Built, bench: Bench, nx_server: str, tmp_path: Path) -> None:
    """The second one finds the papers that the first one has read."""
    address, given = f"{nx_server}/citerec_at_once", sources(bench.release, "s2orc_v2")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(bench.build, store=address), pool.submit(build, tmp_path / "mine", given, store=address)]
    assert [digests(made.result().path) for made in both] == [digests(built.path)] * 2


def write_papers(folder: Path) -> Path:
    papers = [
        s2ag_paper(
            number, f"Title {number}", year=2001, citationcount=5 + number, venue="V", authors=[{"name": "A. B"}],
            s2fieldsofstudy=[{"category": "Art", "source": "external"}],
        )
        for number in range(1, 40)
    ]  # fmt: skip
    return write_lines(folder / "papers" / "papers.jsonl", papers)


def test_a_build_that_stands_is_not_done_again(bench: Bench, built: Built) -> None:
    bench.build()  # another test may have built another set here
    before = {path: path.stat().st_mtime_ns for path in (bench.folder / ".mine.work").rglob("*.json")}
    assert len(before) > 6
    assert digests(bench.build(workers=2).path) == digests(built.path)
    after = {path: path.stat().st_mtime_ns for path in (bench.folder / ".mine.work").rglob("*.json")}
    receipts = {path for path in before if path.parent.name != ".mine.work"}
    assert {path: after[path] for path in receipts} == {path: before[path] for path in receipts}
    assert {path for path in after if path.parent.name != ".mine.work"} == receipts


def test_a_damaged_note_of_the_papers_is_no_end(s2_release: Path, tmp_path: Path) -> None:
    (tmp_path / ".mine.work" / "papers").mkdir(parents=True)
    (tmp_path / ".mine.work" / "papers" / "journal.json").write_bytes(b'"c0ff')  # torn off as it was written
    with pytest.raises(InputError, match="of 1 papers that the texts cite, the corpus has 0"):
        build(tmp_path / "mine", Sources([s2_release / "papers"], [write_strangers(tmp_path)], are_contexts=True))


def write_strangers(folder: Path) -> Path:
    """Contexts that cite a paper that no corpus has."""
    return write_lines(
        folder / "strangers.jsonl",
        [{"context_id": "a-1", "text": "This was shown a while ago by others <REF>.", "cited_ids": [1]}],
    )


def test_papers_that_changed_are_read_again(s2_release: Path, tmp_path: Path, world: World) -> None:
    shutil.copytree(s2_release / "papers", tmp_path / "papers")
    given = Sources([tmp_path / "papers"], [tmp_path / "contexts.jsonl"], are_contexts=True)
    write_truth(tmp_path / "contexts.jsonl", world)
    first = build(tmp_path / "mine", given, quota={"low_resource": 0})
    last = sorted((tmp_path / "papers").iterdir())[-1]
    last.unlink()
    second = build(tmp_path / "mine", given, quota={"low_resource": 0})
    assert second.manifest.corpus_papers < first.manifest.corpus_papers == len(world.papers)


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"per_class": 2},
        {"quota": {"length": 3, "intent": 0}},
        {"quota": {"low_resource": 0, "location": 2}},
        {"conditions": False},
    ],
    ids=str,
)
def test_options_change_the_choice_and_nothing_else(
    bench: Bench, built: Built, world: World, options: dict[str, Any]
) -> None:
    made = bench.build(**options)
    if "per_class" in options or not made.options.conditions:
        assert len(made.contexts) > len(built.contexts)
    found = check_against_truth(made, world)
    quota = made.options.quotas()
    families = {family for family, _ in found}
    assert families == {name for name in SAMPLED if quota[name] and name not in TAGGED}
    assert {name for name in SAMPLED if not quota[name]}.isdisjoint(made.manifest.families)
    assert made.manifest.sampling.quota == quota
    if made.options.conditions:
        assert all(made.manifest.families[name].conditions for name in families)
    most = Counter((*record["cell"].values(),) for record in made.contexts)
    assert max(most.values()) <= max(quota.values())


def test_published_shares_decide_by_the_list(bench: Bench, world: World) -> None:
    made = bench.build(field_shares="published")
    check_against_truth(made, world, published=True)
    assert made.manifest.bounds.field.decided_by == "published"
    assert {record["cell"]["field"] for record in made.contexts} <= PUBLISHED | PUBLISHED_SMALL


def test_without_citations_no_intent_is_known(bench: Bench, world: World) -> None:
    made = bench.build(citations=False)
    found = check_against_truth(made, world, intents=False)
    assert "intent" not in {family for family, _ in found}
    assert all(row["why"] == "no further paper has such a sentence" for row in made.cells if row["family"] == "intent")
    assert "citing" not in made.manifest.sampling.funnel


def write_truth(path: Path, world: World) -> Path:
    """The truth as a file of contexts."""
    names = ("text", "before", "after", "citing_id", "section", "intent", "marker", "style", "start", "end")
    return write_lines(
        path,
        [
            {"context_id": f"{citing}-{start}", "cited_ids": [one["cited_id"]], "source": "s2orc"}
            | {name: one[name] for name in names}
            for (citing, start), one in world.truth.items()
        ],
    )


def test_contexts_are_chosen_by_the_same_rules(s2_release: Path, tmp_path: Path, world: World, built: Built) -> None:
    given = Sources([s2_release / "papers"], [write_truth(tmp_path / "contexts.jsonl", world)], are_contexts=True)
    made = build(tmp_path / "mine", given)
    check_against_truth(made, world)
    # Whatever they came from: the same contexts. Only full texts say what was cited before.
    of_texts = [{name: one[name] for name in one if name != "cited_before"} for one in built.contexts]
    assert made.contexts == of_texts
    assert all("cited_before" in one for one in built.contexts)
    assert made.manifest.source == "contexts.jsonl"


def test_contexts_that_are_not_usable_are_left_out(s2_release: Path, tmp_path: Path, world: World) -> None:
    write_truth(tmp_path / "contexts.jsonl", world)
    lines = lines_of(tmp_path / "contexts.jsonl")
    spoilt = [
        {**lines[0], "context_id": "x-0", "text": lines[0]["text"].rstrip(".?!") + ","},
        {**lines[1], "context_id": "x-1", "text": "7 " + lines[1]["text"]},
        {**lines[2], "context_id": "x-2", "text": "see <REF>."},
        {**lines[3], "context_id": "x-3", "text": lines[3]["text"].replace("<REF>", "[3] and <REF>")},
    ]
    write_lines(tmp_path / "contexts.jsonl", [*spoilt, *lines])
    made = build(tmp_path / "mine", Sources([s2_release / "papers"], [tmp_path / "contexts.jsonl"], are_contexts=True))
    check_against_truth(made, world)
    assert not [row for row in kept(tmp_path)["sentences"] if row["id"].startswith("x-")]


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_draw_of_some_papers_is_a_part_of_all(bench: Bench, world: World, rounds: int) -> None:
    made = bench.build(oversample=1.0, rounds=rounds, quota=dict.fromkeys(LARGE_FIELDS[1:], 0))
    funnel = made.manifest.sampling.funnel
    assert funnel["drawn"] <= funnel["eligible"]
    rows = made.cells
    for row in rows:
        # Three places a cell of a large field, one of a small one; each round draws twice as many.
        most = (3 if row["family"] == "length" else 1) * (2**rounds - 1)
        assert int(row["drawn_papers"]) <= min(most, int(row["papers"]))
        assert int(row["fitting_papers"]) <= int(row["drawn_papers"])
        full, all_drawn = row["chosen"] == row["wanted"], row["drawn_papers"] == row["papers"]
        if not full and int(row["fitting_papers"]) == int(row["chosen"]) and not all_drawn:
            assert row["why"] == "not all papers were drawn"
            assert int(row["drawn_papers"]) == most
    truth = world.truth
    cited = [truth[key_of(record)]["cited_id"] for record in made.contexts]
    assert len(cited) == len(set(cited))
    check_manifest(made)


def test_groups_are_contexts_of_several_papers(bench: Bench, world: World) -> None:
    """Those that the corpus has must agree on a class, else the context has none (docs/diagnostics.md)."""
    made = bench.build(single=False)
    check_manifest(made)
    assert made.manifest.sampling.single is False
    assert any(len(record["cited_ids"]) > 1 for record in made.contexts)
    used = [paper for record in made.contexts for paper in record["cited_ids"]]
    assert len(used) == len(set(used))
    for record in made.contexts:
        known = [paper for paper in record["cited_ids"] if paper in world.papers]
        if record["cell"]["family"] == "low_resource":
            assert {world.fields[paper] for paper in known} == {record["cell"]["field"]}
        assert cell_of(record["cell"]) in [world.cell(paper) for paper in known]
        assert record["text"].count("<REF>") == 1
        if "field" in record["labels"]:
            assert {world.fields[paper] for paper in known} == {record["labels"]["field"]}, record["context_id"]
            assert {world.years[paper] for paper in known} == {record["labels"]["year"]}, record["context_id"]
            assert {world.group(paper) for paper in known} == {record["labels"]["citation_count"]}, record["context_id"]
    # A reserve cites no paper that another context of the set cites, else it could never take a place.
    place_of = {paper: (*one["cell"].values(),) for one in made.contexts for paper in one["cited_ids"]}
    assert any(len(record["cited_ids"]) > 1 for record in made.reserves)
    for record in made.reserves:
        places = {place_of[paper] for paper in record["cited_ids"] if paper in place_of}
        assert places <= {(*record["cell"].values(),)}, record["context_id"]


@pytest.mark.shared
def test_parts_of_speech_are_those_of_the_tagger(bench: Bench, world: World, shared: Path) -> None:
    model = shared.parent / "models" / "en_ewt_tagger"
    made = bench.build(model=str(model))
    found = check_against_truth(made, world, measured=lambda sentences: measures_by_model(sentences, model))
    assert {family for family, _ in found} == {"length", "location", "intent", "low_resource", *TAGGED}
    assert made.manifest.spacy_model == "en_ewt_tagger"
    for family in TAGGED:
        assert sum(found[family, label] > 0 for label in CLASSES[family]) >= 4


# What cannot be built


def test_the_quota_of_an_unknown_family_is_refused(s2_release: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'field' has no quota of its own"):
        build(tmp_path / "mine", sources(s2_release), quota={"field": 1})
    assert not list(tmp_path.iterdir())


def test_too_many_bad_texts_stop_the_work_and_the_first_is_named(
    s2_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.files.progress.ALWAYS_ALLOWED", 0)  # the corpus is small
    with pytest.raises(BuildError, match=r"\d+ of \d+ texts are bad, more than 1%") as caught:
        build(tmp_path / "mine", sources(s2_release), max_bad=0.01)
    # The line named is a bad one, not one of which merely an annotation does not fit.
    shard, line = caught.value.message.rpartition("first is ")[2].split(", line ")
    lines = gzip.decompress((s2_release / "s2orc_v2" / shard).read_bytes()).splitlines()
    raw = lines[int(line.partition(":")[0]) - 1]
    try:
        record = json.loads(raw)
    except json.JSONDecodeError:
        return
    assert not isinstance(record, dict) or not record.get("corpusid") or not (record["body"] or {}).get("text")


def test_a_lock_keeps_two_builds_apart(s2_release: Path, tmp_path: Path) -> None:
    from filelock import FileLock

    (tmp_path / ".mine.work").mkdir()
    with FileLock(tmp_path / ".mine.work" / "lock"), pytest.raises(BuildError, match="another process is building"):
        build(tmp_path / "mine", sources(s2_release))
