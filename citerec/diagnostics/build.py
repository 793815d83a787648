"""Building a diagnostic set: survey the texts, draw papers, extract sentences, choose contexts, write the set.

What is read of each shard is kept beside the set, so that a stopped build continues from there. One process fills the
tables of a SQLite file with it; the rest are queries over them, and memory holds a page of sentences at a time.
"""

import contextlib
import functools
import hashlib
import heapq
import itertools
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import orjson
from pydantic import Field

from citerec.contexts.extract import Outcome, Rules, Tally, extract_contexts, outcome_of_context
from citerec.contexts.full_text import find_texts
from citerec.contexts.read import as_record, parse_context, read_contexts, write_records
from citerec.contexts.repeats import OUTCOMES, OfTexts, bad_records, full_texts, run_over_texts, set_aside, stop_if_bad
from citerec.contexts.split import pipeline_identity, splitter_identity
from citerec.corpus.base import FORMATS, find_shards
from citerec.corpus.ingest import ingest
from citerec.corpus.reading import QUARANTINE, BadRecord, reading_lines, writing_lines
from citerec.corpus.store import open_store
from citerec.diagnostics import families, sets
from citerec.errors import BuildError, InputError, SourceError
from citerec.files.addresses import expanded, path_of
from citerec.files.parallel import Parallelism, in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import Journal, Result, Step, digest_of, identity, run_stage
from citerec.files.writing import alone, beside, writing_file
from citerec.records import Citation, Context, Paper
from citerec.settings import Natural, Positive

ANY_COUNT = "any"
"""The group of all citation counts, in cells of papers that are not told apart by them."""

SPARE = 5
"""Contexts kept for each class of a cell, to replace those that a reviewer rejects."""


class Cell(NamedTuple):
    """Papers of one field, of some years, cited about as often (Maharjan 3.2.1, steps 1 to 3)."""

    field: str
    years: str
    citation_count: str


class Slot(NamedTuple):
    """A class of a family, to be filled in a cell."""

    family: str
    label: str


class Candidate(NamedTuple):
    """A sentence that could be chosen for a drawn paper that it cites; its labels are its classes by family."""

    id: str
    paper_id: str
    cited_ids: tuple[str, ...]
    labels: Mapping[str, str]


class Pick(NamedTuple):
    """A candidate that was chosen for a slot of a cell, or is a reserve of it."""

    cell: Cell
    slot: Slot
    candidate: Candidate


Fitting = dict[str, dict[Slot, list[Candidate]]]
"""For each paper, the slots that it could fill, each with the candidates for it: best first, and one more than SPARE
at most."""


@dataclass(slots=True)
class Choice:
    """What was chosen from the cells so far.

    Attributes:
        chosen: The contexts.
        reserves: Other contexts that fit the slots.
        used: The papers that the contexts cite.
        counts: How many contexts each slot has, over all cells.
    """

    chosen: list[Pick] = field(default_factory=list)
    reserves: list[Pick] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    counts: Counter[Slot] = field(default_factory=Counter)

    def fitting(self, candidates: Iterable[Candidate], slots: Iterable[Slot]) -> Fitting:
        """The candidates that fit the slots of a cell, in their order, but for those of papers that are used."""
        fitting = Fitting()
        for candidate in candidates:
            options = fitting.setdefault(candidate.paper_id, {})
            for slot in slots if candidate.paper_id not in self.used else ():
                if candidate.labels.get(slot.family) == slot.label and len(options.get(slot, ())) <= SPARE:
                    options.setdefault(slot, []).append(candidate)
        return fitting

    def matching(self, cell: Cell, fitting: Fitting, slots: Mapping[Slot, int]) -> list[Pick]:
        """A maximum matching of papers and the slots of a cell, each with its quota.

        Where papers are too few for all slots, classes with the fewest contexts so far come first. No paper is cited by
        two of its contexts.
        """
        options = {
            paper_id: {
                slot: free[0]
                for slot, candidates in of_paper.items()
                if (free := [one for one in candidates if self.used.isdisjoint(one.cited_ids)])
            }
            for paper_id, of_paper in fitting.items()
        }
        while True:
            matched = _maximum_matching(options, slots, self.counts)
            cited: set[str] = set()
            for slot, candidate in matched:
                if not cited.isdisjoint(candidate.cited_ids):  # only groups of papers can clash
                    del options[candidate.paper_id][slot]
                    break
                cited.update(candidate.cited_ids)
            else:
                return [Pick(cell, slot, candidate) for slot, candidate in matched]

    def take(self, cell: Cell, picks: Sequence[Pick], fitting: Fitting, slots: Iterable[Slot]) -> None:
        """Keeps what was chosen from a cell, with reserves: papers not used, then other sentences on the chosen."""
        taken = {pick.candidate.paper_id: pick for pick in picks}
        for slot in slots:
            unused = [fits[slot][0] for paper_id, fits in fitting.items() if paper_id not in taken and slot in fits]
            others = [
                other
                for paper_id, pick in taken.items()
                if pick.slot == slot
                for other in fitting[paper_id][slot]
                if other.id != pick.candidate.id
            ]
            self.reserves += [Pick(cell, slot, one) for one in [*unused, *others][:SPARE]]
        self.chosen += picks
        self.used.update(paper_id for pick in picks for paper_id in pick.candidate.cited_ids)
        self.counts.update(pick.slot for pick in picks)

    def free_reserves(self) -> Iterator[Pick]:
        """Reserves that could be used: the papers that they cite are cited nowhere else in the set."""
        place_of = {paper_id: pick[:2] for pick in self.chosen for paper_id in pick.candidate.cited_ids}
        for pick in self.reserves:
            if all(place_of.get(paper_id, pick[:2]) == pick[:2] for paper_id in pick.candidate.cited_ids):
                yield pick


def _maximum_matching(
    options: Mapping[str, Mapping[Slot, Candidate]], slots: Mapping[Slot, int], counts: Mapping[Slot, int]
) -> list[tuple[Slot, Candidate]]:
    from scipy.optimize import linear_sum_assignment

    places = [slot for slot, wanted in slots.items() for _ in range(min(wanted, len(options)))]
    papers = [paper_id for paper_id, of_paper in options.items() if of_paper]
    if not places or not papers:
        return []
    by_need = sorted(range(len(places)), key=lambda at: counts[places[at]])
    need = np.zeros(len(places))
    # All needs together weigh less than one place: the number of filled places comes first, their need second.
    need[by_need] = np.arange(len(places), 0, -1) / (len(places) * (len(places) + 1))
    fits = np.array([[slot in options[paper_id] for paper_id in papers] for slot in places])
    rows, columns = linear_sum_assignment(fits * (1 + need)[:, None], maximize=True)
    pairs = ((places[row], options[papers[column]]) for row, column in zip(rows, columns, strict=True))
    return [(slot, of_paper[slot]) for slot, of_paper in pairs if slot in of_paper]


_NO_PAPERS = ("s2ag-abstracts", "s2ag-tldrs", "s2ag-citations")
_PART = 500
# The file is made anew by each build, and worth nothing after a crash.
_SCHEMA = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;
CREATE TABLE eligible (
  paper_id TEXT PRIMARY KEY, field TEXT, years TEXT, citation_count TEXT, key BLOB) WITHOUT ROWID;
CREATE TABLE drawn (
  field TEXT, years TEXT, citation_count TEXT, number INTEGER, papers INTEGER, paper_id TEXT,
  PRIMARY KEY (field, years, citation_count, number)) WITHOUT ROWID;
CREATE TABLE intents (
  citing_id TEXT, cited_id TEXT, intent TEXT, PRIMARY KEY (citing_id, cited_id, intent)) WITHOUT ROWID;
CREATE TABLE sentences (
  paper_id TEXT, key BLOB, id TEXT, length INTEGER, position INTEGER, tag_before TEXT, tag_after TEXT,
  context BLOB, PRIMARY KEY (paper_id, key)) WITHOUT ROWID;
"""
# The first papers of each cell, in the order of their keys, and how many there are.
_DRAW = """
INSERT INTO drawn SELECT * FROM (
  SELECT field, years, citation_count, ROW_NUMBER() OVER (cell ORDER BY key) AS number, COUNT(*) OVER cell, paper_id
  FROM eligible WINDOW cell AS (PARTITION BY field, years, citation_count))
WHERE number <= most(field)
"""
# If S2AG has several intents for a pair of papers, it does not say which one is of a sentence: there is none.
_INTENT = """
SELECT MIN(intent) FROM intents WHERE citing_id = ? AND cited_id = ? AND intent <> ''
GROUP BY citing_id HAVING COUNT(*) = 1
"""
_CONTEXT = "SELECT context FROM sentences WHERE paper_id = ? AND key = ?"
_CELLS = "SELECT DISTINCT field, years, citation_count, papers FROM drawn ORDER BY 1, 2, 3"
_CANDIDATES = """
SELECT sentences.* FROM drawn JOIN sentences USING (paper_id)
WHERE field = ? AND years = ? AND citation_count = ? AND number <= ? ORDER BY number, key
"""


# Work on shards: each job reads one and writes one file of lines, so that many run side by side and none is done twice.


def _survey_shard(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the bad records of a shard of S2ORC, and the papers that its texts cite, in order."""
    counts, cited = Counter[str](), set[str]()
    with writing_lines(out) as write:
        for text in full_texts(shard, parameters, counts, write):
            cited |= text.cited_ids()
        for paper_id in sorted(cited):
            write(paper_id.encode())
    return {**counts, OUTCOMES: {}}


def _read_citations(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes `[citing, cited, intents]` of the drawn papers of a shard of S2AG's `citations`, and the bad records."""
    drawn, counts = _drawn_papers(parameters["drawn"]), Counter(citations=0, bad=0)
    with writing_lines(out) as write:
        for line in FORMATS["s2ag-citations"].read(shard):
            if isinstance(line.record, BadRecord):
                set_aside(line.record, shard, line.number, counts, write)
            elif isinstance(line.record, Citation):
                counts["citations"] += 1
                if line.record.cited_id in drawn:
                    intents = sorted(set(itertools.chain.from_iterable(line.record.intents)))
                    write(orjson.dumps([line.record.citing_id, line.record.cited_id, intents]))
    return counts


def _extract_shard(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the usable sentences of a shard of S2ORC that cite drawn papers, and the bad records."""
    drawn, counts, tally = _drawn_papers(parameters["drawn"]), Counter[str](), Tally()
    rules = Rules(single=parameters["single"], split=parameters["split"])
    with writing_lines(out) as write:
        contexts = (
            context
            for text in full_texts(shard, parameters, counts, write)
            if not drawn.isdisjoint(text.cited_ids())
            for context in extract_contexts(text, rules, tally, drawn.__contains__)
        )
        for row in _measured(contexts, drawn, parameters["model"]):
            write(orjson.dumps(row))
    return {**vars(tally), **counts, "citing_texts": tally.texts}


_SURVEY = Step(_survey_shard, version=3)
_CITATIONS = Step(_read_citations, version=2)
_EXTRACT = Step(_extract_shard, version=3)


@functools.cache
def _drawn_papers(path: str) -> frozenset[str]:
    """The ids in a file of drawn papers; read once a process."""
    return frozenset(line.decode() for line in reading_lines(path_of(path)))


def _usable_contexts(path: Path, drawn: Collection[str], tally: Tally, *, single: bool) -> Iterator[Context]:
    """The contexts of a file that cite drawn papers and whose sentence is usable; they are counted."""
    for record in read_contexts(path, cited=True):
        # A paper is never recommended to itself.
        context = replace(record, cited_ids=tuple(one for one in record.cited_ids if one != record.citing_id))
        if any(paper_id in drawn for paper_id in context.cited_ids):
            tally.sentences += 1
            outcome = outcome_of_context(context, single=single)
            tally.outcomes[outcome.value] += 1
            if outcome is Outcome.USABLE:
                yield context


Measured = tuple[str, str, tuple[Any, ...], dict[str, Any]]
"""The id of a sentence, a drawn paper that it cites, its numbers (`families.Sentence`), and its context as JSON."""


def _measured(contexts: Iterable[Context], drawn: Collection[str], model: str | None) -> Iterator[Measured]:
    """The contexts, measured by spaCy, once for each drawn paper that they cite."""
    for part in in_parts(contexts, _PART):
        for context, sentence in zip(part, families.read_sentences(part, model), strict=True):
            for paper_id in context.cited_ids:
                if paper_id in drawn:
                    own = context.context_id if len(context.cited_ids) == 1 else f"{context.context_id}/{paper_id}"
                    yield own, paper_id, tuple(sentence), as_record(context)


def _good_lines(result: Result) -> Iterator[bytes]:
    """The lines of a result without the bad records."""
    return (line for line in reading_lines(result.path) if not line.startswith(QUARANTINE))


def _rows_of(results: Iterable[Result]) -> Iterator[Any]:
    """The lines of results, read as JSON."""
    return map(orjson.loads, itertools.chain.from_iterable(map(_good_lines, results)))


def _cited_papers(surveyed: Sequence[Result]) -> Iterator[str]:
    """The papers that any text cites, in order of id; memory stays constant."""
    return (paper_id.decode() for paper_id, _ in itertools.groupby(heapq.merge(*map(_good_lines, surveyed))))


# The build


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to sample.

    Attributes:
        seed: Seed of the sample.
        quota: Contexts for each class of a cell, by family.
        per_class: The same for all other families.
        oversample: Papers drawn for each context wanted (Maharjan 3.2.1, step 4: 10 where 3 are needed).
        rounds: How often to draw: each round twice as many papers as the last, for classes that are not full.
        single: Whether a sentence must cite exactly one paper, once.
        split: Sentence splitter: `pysbd`, `spacy`, or a spaCy model.
        model: The spaCy model that tags parts of speech; None leaves those families out.
        field_shares: What decides which fields are small.
        conditions: Whether the conditions of families must hold.
        store: Where papers are kept: None for a file beside the set, or an address such as `mongodb://HOST/DATABASE`.
        max_bad: Share of bad records above which the work stops.
        workers: Processes, by default one for each processor; or Ray.
        work: Where the results of shards are kept, such as an address that all machines of a cluster reach; None for
            beside the set.
    """

    seed: Natural = 0
    quota: Mapping[str, int] = field(default_factory=dict)
    per_class: int = 1
    oversample: Annotated[float, Field(ge=1)] = 10 / 3
    rounds: Positive = 3
    single: bool = True
    split: str = "pysbd"
    model: str | None = None
    field_shares: families.FieldShares = "corpus"
    conditions: bool = True
    store: str | None = field(default=None, repr=False)  # it may hold a password
    max_bad: float = 0.05
    workers: Parallelism = None
    work: str | Path | None = None

    def quotas(self) -> dict[str, int]:
        """Contexts for each class of a cell, for every sampled family.

        Raises:
            InputError: A family is not sampled.
        """
        sampled = tuple(family.name for family in families.families_named() if family.sampled)
        for name in self.quota:
            if name not in sampled:
                raise InputError(f"{name!r} has no quota of its own", f"Families with one: {', '.join(sampled)}.")
        return {name: self.quota.get(name, self.per_class) for name in sampled}


class Sources(NamedTuple):
    """The sources of a set.

    Attributes:
        papers: S2AG `papers`: folders or files.
        texts: S2ORC shards, or one file of contexts.
        citations: S2AG `citations`; without them the intents stay unknown.
        are_contexts: Whether `texts` is a file of contexts.
    """

    papers: Sequence[Path]
    texts: Sequence[Path]
    citations: Sequence[Path] = ()
    are_contexts: bool = False


def build_set(
    out: Path, sources: Sources, options: BuildOptions, on_progress: Progress = no_progress
) -> sets.SetManifest:
    """Builds a diagnostic set. The same sources and options give the same bytes, whatever the number of processes.

    Args:
        out: Its directory. Work is kept beside it, in `.NAME.work`, for the next build from these sources.
        sources: What it is built from.
        options: How to sample.
        on_progress: Called as the work goes on.

    Returns:
        Its manifest.

    Raises:
        InputError: A source is missing or empty, nothing can be sampled from it, or something else is at `out`.
        BuildError: Too many records are bad, the disk is full, or another build is at work.
    """
    build, work = _Build(sources, options, beside(out, "work"), on_progress), beside(out, "work")
    with alone(work / "lock", "another process is building this set"):
        try:
            return build.run(out)
        except (OSError, sqlite3.Error) as error:
            what = f"{error.strerror or error}: {error.filename}" if isinstance(error, OSError) else str(error)
            raise BuildError(
                f"cannot go on in {work} ({what})",
                "Solve this (is the disk full, is the limit of open files too low?); the same command continues.",
            ) from error


class _Build:
    """A build: its sources and options, its papers, its tables, and what it has counted."""

    bounds: families.Bounds

    def __init__(self, sources: Sources, options: BuildOptions, work: Path, progress: Progress) -> None:
        self.options, self.quota, self.work, self.progress = options, options.quotas(), work, progress
        self.bounded: dict[str, Any] = {"max_bad": options.max_bad, "workers": options.workers}
        self.results, self.are_contexts = path_of(options.work) if options.work else work, sources.are_contexts
        self.papers = [shard for shard in find_shards(sources.papers) if shard.format not in _NO_PAPERS]
        if not self.papers:
            raise SourceError(f"{sources.papers[0]} holds no papers", "Give the folder of S2AG's `papers`: --papers")
        self.texts = expanded(sources.texts) if self.are_contexts else find_texts(sources.texts)
        if not self.texts[0].is_file():
            raise SourceError(f"{self.texts[0]} is no file", "Give a JSON Lines file of contexts: --from FILE")
        self.source = ", ".join(path.name for path in sources.texts)
        shards = find_shards(sources.citations) if sources.citations else []
        self.citations = [shard.path for shard in shards if shard.format == "s2ag-citations"]
        if shards and not self.citations:
            raise SourceError(f"{sources.citations[0]} holds no citations", "Give the folder of S2AG's `citations`.")
        # A missing model is an error before any work.
        self.models = {
            "model_is": pipeline_identity(families.tagger(options.model)) if options.model else [],
            "split_is": splitter_identity(options.split),
        }
        self.families = [one for one in families.kept_families(options.model) if self.quota.get(one.name, 1)]
        self.funnel, self.outcomes = Counter[str](), Counter[str]()
        self.rejected: list[Result] = []  # results that list bad records
        self.cells: list[dict[str, Any]] = []  # the rows of cells.csv

    def run(self, out: Path) -> sets.SetManifest:
        """Builds the set. Papers that an earlier build read from the same shards stay; the tables are made anew."""
        read = [[*identity(shard.path), shard.format] for shard in self.papers]
        journal = Journal(self.work / "papers", {"shards": read})  # empties the folder of papers of other shards
        tables, store = self.work / "tables.sqlite", self.options.store or journal.folder / "papers.sqlite"
        tables.unlink(missing_ok=True)
        with (
            contextlib.closing(open_store(store)) as self.store,
            contextlib.closing(sqlite3.connect(tables)) as self.tables,
        ):
            self.tables.executescript(_SCHEMA)
            self._read_papers()
            self._draw(self._survey())
            self._extract()
            return self._write(out, self._choose())

    def _read_papers(self) -> None:
        """Reads the papers, and their bounds."""
        ingest(self.papers, self.store, first=1, on_progress=self._telling("reading papers"), **self.bounded)
        census = families.census_of(self.store)
        self.bounds = families.compute_bounds([], census, self.options.field_shares)
        if self.bounds.field is None:
            raise InputError("the papers name no fields of study", "Sampling goes by field: give S2AG's papers.")
        least = families.strata()["citation_count"]["least"] if self.bounds.citation_count else 0
        for (name, year, count), papers in census.items():
            in_strata = name and families.group_of("year", year) and (count or 0) >= least
            self.funnel.update(papers=papers, in_strata=papers if in_strata else 0)

    def _telling(self, doing: str) -> Callable[..., None]:
        """Tells the progress of a step; only the last two arguments are read: how much is done, and of how much."""
        return lambda *done: self.progress(doing, *done[-2:])

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Adds rows to a table, each in place of one with its key."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            with self.tables:
                self.tables.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    def _count(self, what: str, table: str) -> int:
        return int(self.tables.execute(f"SELECT COUNT({what}) FROM {table}").fetchone()[0])

    def _key(self, name: str) -> bytes:
        """Decides the sample: papers and sentences are in the order of their keys."""
        return hashlib.sha256(f"{self.options.seed}\t{name}".encode()).digest()

    # Drawing

    def _survey(self) -> Iterable[str]:
        """The papers that some text cites, in order of id."""
        if self.are_contexts:
            cited, citing = set[str](), set[str]()
            for context in read_contexts(self.texts[0], cited=True):
                cited.update(context.cited_ids)
                citing.add(context.citing_id or context.citing_key or "")
            self.funnel["texts"] = len(citing)
            return sorted(cited)
        survey = self._over_texts("surveying texts", _SURVEY, {})
        self.funnel["texts"] = survey.counts["texts"]
        self.rejected += survey.results
        return _cited_papers(survey.results)

    def _draw(self, cited: Iterable[str]) -> None:
        """Draws from the papers that some text cites as many of each cell as all rounds could want."""
        fields = (*families.large_fields(self.bounds), *families.small_fields(self.bounds))
        most = {name: self._drawn_by(self.options.rounds, self._slots(name)) for name in fields}
        for part in in_parts(cited, _PART):
            papers = self.store.papers(part, texts=False)
            cells = {paper_id: _cell_of(paper, self.bounds) for paper_id, paper in papers.items()}
            rows = [(one, *cell, self._key(one)) for one, cell in cells.items() if cell and most.get(cell.field)]
            self._insert("eligible", rows)
            self.funnel.update(cited=len(part), known=len(papers), eligible=len(rows))
        if not self.funnel["eligible"]:
            raise InputError(
                f"of {self.funnel['cited']:,} papers that the texts cite, the corpus has {self.funnel['known']:,}, "
                "and none has a title, authors, venue, field and year (and citation count) that sampling needs",
                "Are papers and texts of one release? To label contexts as they are: citerec diagnostics label",
            )
        self.tables.create_function("most", 1, most.get)
        self.tables.execute(_DRAW)

    def _slots(self, of_field: str) -> dict[Slot, int]:
        """The slots of every cell of a field, each with its quota."""
        return {
            Slot(family.name, label): self.quota[family.name]
            for family in self.families
            if family.sampled
            for label in family.classes_in(of_field, self.bounds)
        }

    def _drawn_by(self, rounds: int, slots: Mapping[Slot, int]) -> int:
        """How many papers of a cell are drawn after some rounds, each of which draws twice as many as the last."""
        return int(math.ceil(self.options.oversample * sum(slots.values())) * (2**rounds - 1))

    # Sentences

    def _extract(self) -> None:
        """Reads why drawn papers are cited, and the sentences that cite them."""
        drawn = [paper_id for (paper_id,) in self.tables.execute("SELECT paper_id FROM drawn ORDER BY 1")]
        self.funnel["drawn"] = len(drawn)
        path = self.results / "drawn" / digest_of(drawn)  # for those who read shards
        with writing_file(path) as partial, writing_lines(partial) as write:
            for paper_id in drawn:
                write(paper_id.encode())
        place = {"drawn": str(path.resolve())}
        if self.citations:
            folder, on_progress = self.results / "citations", self._telling("reading citations")
            step, workers = _CITATIONS, self.options.workers
            results = run_stage(folder, self.citations, step, place, workers=workers, on_progress=on_progress)
            stop_if_bad(results, "citations", self.options.max_bad)
            self.rejected += results
            for pairs in in_parts(_rows_of(results), _PART):
                self._insert("intents", [(*pair, intent) for *pair, intents in pairs for intent in intents or [""]])
            self.funnel["citing"] = self._count("DISTINCT citing_id", "intents")
        for part in in_parts(self._sentences(place), _PART):
            self._add_facts(part)
            rows = [
                (cited, self._key(own), own, *numbers, orjson.dumps(context)) for own, cited, numbers, context in part
            ]
            self._insert("sentences", rows)
        self.funnel["usable"] = self._count("*", "sentences")
        lengths = (length for (length,) in self.tables.execute("SELECT length FROM sentences"))
        self.bounds = self.bounds.model_copy(update={"length": families.compute_bounds(lengths, {}).length})

    def _sentences(self, place: Mapping[str, str]) -> Iterator[Measured]:
        """The usable sentences that cite drawn papers, whose file is given; they are counted."""
        options = {name: getattr(self.options, name) for name in ("single", "split", "model")}
        if self.are_contexts:
            self.progress("extracting sentences", 0, 1)
            drawn, tally = _drawn_papers(place["drawn"]), Tally()
            contexts = _usable_contexts(self.texts[0], drawn, tally, single=self.options.single)
            yield from _measured(contexts, drawn, self.options.model)
            self.funnel["sentences"], self.outcomes = tally.sentences, tally.outcomes
            return
        extracted = self._over_texts("extracting sentences", _EXTRACT, {**place, **options, **self.models})
        self.funnel.update({name: extracted.counts[name] for name in ("sentences", "citing_texts")})
        self.outcomes = extracted.outcomes
        yield from _rows_of(extracted.results)

    def _over_texts(self, doing: str, step: Step, parameters: Mapping[str, Any]) -> OfTexts:
        folder, on_progress = self.results / "texts", self._telling(doing)
        return run_over_texts(folder, self.texts, step, parameters, on_progress=on_progress, **self.bounded)

    def _add_facts(self, sentences: Sequence[Measured]) -> None:
        """Adds facts from other sources to contexts: year of the citing paper, intent."""
        years = self.store.years({str(context["citing_id"]) for *_, context in sentences})
        for _, paper_id, _, context in sentences:
            citing_id = str(context["citing_id"])
            if citing_id in years:
                context["citing_year"] = years[citing_id] or context["citing_year"]
            elif context["citing_id"] is not None:  # not in the corpus: it cannot be recommended
                context |= {"citing_id": None, "citing_key": context["citing_key"] or f"CorpusId:{citing_id}"}
            for (intent,) in self.tables.execute(_INTENT, (citing_id, paper_id)):
                context["intent"] = intent

    # Choosing

    def _choose(self) -> Choice:
        """Fills the slots of each cell; while some are not full, from the papers of the next round too."""
        choice, cells = Choice(), self.tables.execute(_CELLS).fetchall()
        for done, (*names, papers) in enumerate(cells):
            self.progress("choosing contexts", done, len(cells))
            cell, drawn, picks, fitting = Cell(*names), 0, list[Pick](), Fitting()
            slots = self._slots(cell.field)
            for number in range(1, self.options.rounds + 1):
                if drawn < papers and len(picks) < sum(slots.values()):
                    drawn = min(papers, self._drawn_by(number, slots))
                    fitting = choice.fitting(self._candidates(cell, drawn), slots)
                    picks = choice.matching(cell, fitting, slots)
            choice.take(cell, picks, fitting, slots)
            chosen = Counter(pick.slot for pick in picks)
            fits = Counter(slot for options in fitting.values() for slot in options)
            counts = {slot: (wanted, chosen[slot], fits[slot], drawn, papers) for slot, wanted in slots.items()}
            rows = [(*cell, *slot, *figures, _why_not_full(*figures)) for slot, figures in counts.items()]
            self.cells += [dict(zip(sets.COLUMNS, row, strict=True)) for row in rows]
        self.funnel["chosen"] = len(choice.chosen)
        return choice

    def _candidates(self, cell: Cell, drawn: int) -> Iterator[Candidate]:
        """The candidates for the first papers drawn from a cell, in the order of drawing, with their labels.

        They are the sentences whose papers are all of one cell.
        """
        for page in in_parts(self.tables.execute(_CANDIDATES, (*cell, drawn)), _PART):
            read = [
                (parse_context(orjson.loads(context)), families.Sentence(*numbers))
                for _, _, _, *numbers, context in page
            ]
            for (paper_id, _, own, *_), facts in zip(
                page, families.facts_of(read, self.store, self.bounds), strict=True
            ):
                if len({_cell_of(paper, self.bounds) for paper in facts.papers}) == 1:
                    labels = families.labels_of(facts, self.families, conditions=self.options.conditions)
                    yield Candidate(own, paper_id, facts.context.cited_ids, labels)

    # The set

    def _write(self, out: Path, choice: Choice) -> sets.SetManifest:
        options, funnel = self.options, {step: self.funnel[step] for step in sets.FUNNEL if step in self.funnel}
        if not choice.chosen:
            steps = ", ".join(f"{count:,} {sets.FUNNEL[step]}" for step, count in funnel.items())
            raise InputError(f"no context could be chosen: {steps}", "Are papers and texts of one release?")
        facts = {
            "source": self.source,
            "corpus_papers": self.store.counts().papers,
            "corpus_fingerprint": None,
            "spacy_model": Path(options.model).name if options.model else None,
            "bounds": self.bounds,
            "families": {one.name: one.of_set(self.bounds, conditions=options.conditions) for one in self.families},
            "sampling": {
                **{name: getattr(options, name) for name in ("seed", "rounds", "single")},
                "quota": self.quota,
                "oversample": round(options.oversample, 6),
                "split": Path(options.split).name,
                "funnel": funnel,
                "outcomes": dict(sorted(self.outcomes.items())),
                "cells": sets.states_of(self.cells),
            },
        }

        def write_beside(folder: Path) -> None:
            sets.write_cells(folder / sets.CELLS, self.cells)
            write_records(folder / sets.RESERVES, map(self._record, choice.free_reserves()))
            if rejected := self._rejected():
                write_records(folder / sets.REJECTED_LINES, rejected)

        return sets.write_set(out, map(self._record, choice.chosen), facts, write_beside)

    def _record(self, pick: Pick) -> dict[str, Any]:
        """A context with the class that it was chosen for and, in a large field, by the families without a quota."""
        cell, slot, candidate = pick
        is_large = cell.field in families.large_fields(self.bounds)
        kept = {slot.family, *(name for name in candidate.labels if is_large and name not in self.quota)}
        labels = {name: label for name, label in candidate.labels.items() if name in kept}
        place_of_it = (candidate.paper_id, self._key(candidate.id))
        (context,) = self.tables.execute(_CONTEXT, place_of_it).fetchone()
        place = {**cell._asdict(), "family": slot.family, "class": slot.label}
        return {**orjson.loads(context), "labels": labels, "cell": place}

    def _rejected(self) -> list[dict[str, Any]]:
        """The bad records of papers (in the store), citations and texts, in order of shard and line."""
        bad = ({**one, "shard": Path(one["shard"]).name} for one in self.store.quarantine())
        records = itertools.chain(bad, *map(bad_records, self.rejected))
        return sorted(records, key=lambda one: (one["shard"], one["line"]))


def _cell_of(paper: Paper, bounds: families.Bounds) -> Cell | None:
    """The cell of a paper; None if it is in none, or lacks metadata that a usable citation needs.

    A usable citation is of a paper whose title, authors and venue are known (Maharjan 3.2.2, step 2). Where too few
    papers have a citation count, a cell has those of all counts.
    """
    years = families.group_of("year", paper.year)
    group = bounds.citation_count.group_of_paper(paper) if bounds.citation_count else ANY_COUNT
    is_whole = paper.title and paper.authors and paper.venue and paper.fields_of_study
    return Cell(paper.fields_of_study[0], years, group) if is_whole and years and group else None


def _why_not_full(wanted: int, chosen: int, fitting: int, drawn: int, papers: int) -> str:
    """Why a class of a cell has fewer contexts than were wanted; empty if it is full."""
    if chosen >= wanted:
        return ""
    if fitting > chosen:
        return "its papers stand for other classes"
    return "not all papers were drawn" if drawn < papers else "no further paper has such a sentence"
