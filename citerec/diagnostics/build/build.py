"""Building a diagnostic set: survey the texts, draw papers, extract sentences, choose contexts, write the set.

Each step keeps its results beside the set, shard by shard, so that a stopped build continues from there.
"""

import contextlib
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.repeats import repeated, write_repeated
from citerec.contexts.s2orc import find_texts
from citerec.contexts.split import splitter_identity
from citerec.contexts.write import as_record
from citerec.corpus.ingest import ingest
from citerec.corpus.result_lines import writing_lines
from citerec.corpus.shards import Shard, find_shards
from citerec.corpus.store import PaperStore
from citerec.corpus.stores import open_store
from citerec.diagnostics.bounds import Bounds, FieldShares, census_of, compute_bounds
from citerec.diagnostics.build import survey, texts
from citerec.diagnostics.build.choose import Candidate, CellChoice, SoFar, choose, free_reserves, slots_of
from citerec.diagnostics.build.documents import Collections
from citerec.diagnostics.build.draw import Cell, Draw, draw_papers
from citerec.diagnostics.build.record import Record
from citerec.diagnostics.datasheet import FUNNEL
from citerec.diagnostics.families import FAMILIES, sampled_families
from citerec.diagnostics.sentences import model_identity
from citerec.diagnostics.sets import FamilyOfSet, Sampling, SetManifest, write_set
from citerec.errors import BuildError, InputError, SourceError
from citerec.files.hashing import digest_of, identity
from citerec.files.parallel import Parallelism
from citerec.files.progress import Progress
from citerec.files.rejected import Rejected, fault_at
from citerec.files.resume import Journal, Result, Step, run_stage
from citerec.files.writing import alone, beside, writing_file
from citerec.records import Context


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

    seed: int = 0
    quota: Mapping[str, int] = field(default_factory=dict)
    per_class: int = 1
    oversample: float = 10 / 3
    rounds: int = 3
    single: bool = True
    split: str = "pysbd"
    model: str | None = None
    field_shares: FieldShares = "corpus"
    conditions: bool = True
    store: str | None = field(default=None, repr=False)  # it may hold a password
    max_bad: float = 0.05
    workers: Parallelism = None
    work: Path | None = None

    def quotas(self) -> dict[str, int]:
        """Contexts for each class of a cell, for every sampled family.

        Raises:
            InputError: A family is not sampled.
        """
        sampled = sampled_families()
        for name in self.quota:
            if name not in sampled:
                raise InputError(f"{name!r} has no quota of its own", f"Families with one: {', '.join(sampled)}.")
        return {name: self.quota.get(name, self.per_class) for name in sampled}


@dataclass(frozen=True, slots=True)
class Sources:
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
    out: Path, sources: Sources, options: BuildOptions, on_progress: Progress = lambda _doing, _done, _whole: None
) -> SetManifest:
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
    quota = options.quotas()
    work = beside(out, "work")
    papers = [shard for shard in find_shards(sources.papers) if shard.format not in _NO_PAPERS]
    if not papers:
        raise SourceError(f"{sources.papers[0]} holds no papers", "Give the folder of S2AG's `papers`: --papers")
    with _kept_work(work):
        return _Build(out, work, papers, sources, options, quota, on_progress).run()


_NO_PAPERS = ("s2ag-abstracts", "s2ag-tldrs", "s2ag-citations")


@dataclass
class _Build:
    out: Path
    work: Path
    papers: list[Shard]
    sources: Sources
    options: BuildOptions
    quota: dict[str, int]
    progress: Progress

    def __post_init__(self) -> None:
        options, sources = self.options, self.sources
        if sources.are_contexts and not sources.texts[0].is_file():
            raise SourceError(f"{sources.texts[0]} is no file", "Give a JSON Lines file of contexts: --from FILE")
        self._results = options.work or self.work
        self._texts = list(sources.texts) if sources.are_contexts else find_texts(sources.texts)
        given = find_shards(sources.citations) if sources.citations else []
        self._citations = [shard.path for shard in given if shard.format == "s2ag-citations"]
        if given and not self._citations:
            raise SourceError(f"{sources.citations[0]} holds no citations", "Give the folder of S2AG's `citations`.")
        self._record = Record()
        self._quarantine: list[Result] = []
        # A missing model is an error before any work.
        self._models = {"model_is": model_identity(options.model), "split_is": splitter_identity(options.split)}
        self._repeated = ""

    def run(self) -> SetManifest:
        with contextlib.closing(self._filled_store()) as store:
            census = census_of(store)
            bounds = compute_bounds([], census, self.options.field_shares)
            if bounds.field is None:
                raise InputError("the papers name no fields of study", "Sampling goes by field: give S2AG's papers.")
            if bounds.citation_count is None:
                raise InputError(
                    "too few papers have a citation count and a year for groups of citation counts",
                    "Sampling goes by citation count. To label all contexts instead: citerec diagnostics label",
                )
            self._record.take_census(census, bounds)
            draw = self._draw(store, bounds)
            with contextlib.closing(Collections(store, self.work / "collections.sqlite")) as kept:
                choices, bounds = self._rounds(kept, bounds, draw)
                return self._write(kept, choices, bounds)

    # Papers

    def _filled_store(self) -> PaperStore:
        """The store with all papers in it; papers that an earlier build read from the same shards stay."""
        read = [[*identity(shard.path), shard.format] for shard in self.papers]
        journal = Journal(self.work / "papers", {"shards": read})  # empties the folder of papers of other shards
        where = self.options.store or journal.folder / "papers.sqlite"
        store = open_store(where)
        try:
            ingest(
                self.papers,
                store,
                first=1,
                max_bad=self.options.max_bad,
                workers=self.options.workers,
                on_progress=lambda _, done, whole: self.progress("reading papers", done, whole),
            )
        except BaseException:
            store.close()
            raise
        return store

    # Drawing

    def _draw(self, store: PaperStore, bounds: Bounds) -> Draw:
        stage = survey.SURVEY_CONTEXTS if self.sources.are_contexts else survey.SURVEY_TEXTS
        surveyed = self._stage("surveying texts", "survey", self._texts, stage, {})
        self._quarantine += surveyed
        self._stop_if_mostly_bad(surveyed, "texts")
        lost = repeated(surveyed)
        self._repeated = str(write_repeated(lost, self._results))
        self._record.funnel["texts"] = sum(result.counts["texts"] for result in surveyed) - sum(map(len, lost.values()))
        self.progress("drawing papers", 0, 1)
        needed = {name: sum(self._slots(name, bounds).values()) for name in _fields(bounds)}
        most = {name: self._drawn_by(self.options.rounds, count) for name, count in needed.items()}
        draw = draw_papers(survey.cited_papers(surveyed), store, bounds, most, self.options.seed)
        if not draw.papers:
            raise InputError(
                f"of {draw.cited:,} papers that the texts cite, the corpus has {draw.known:,}, "
                "and none has a title, authors, venue, field, year and citation count that sampling needs",
                "Are papers and texts of one release? To label contexts as they are: citerec diagnostics label",
            )
        self._record.take_draw(draw)
        return draw

    def _drawn_by(self, rounds: int, needed: int) -> int:
        """How many papers of a cell are drawn after some rounds, each of which draws twice as many as the last."""
        return int(math.ceil(self.options.oversample * needed) * (2**rounds - 1))

    def _slots(self, field_name: str, bounds: Bounds) -> dict[Any, int]:
        return slots_of(field_name, bounds, self.quota, tagged=self.options.model is not None)

    # Sentences

    def _rounds(self, kept: Collections, bounds: Bounds, draw: Draw) -> tuple[dict[Cell, CellChoice], Bounds]:
        drawn = dict.fromkeys(draw.papers, 0)
        wanting = set(draw.papers)
        choices: dict[Cell, CellChoice] = {}
        for number in range(1, self.options.rounds + 1):
            new: list[str] = []
            for cell in sorted(wanting):
                until = self._drawn_by(number, sum(self._slots(cell.field, bounds).values()))
                new += draw.papers[cell][drawn[cell] : until]
                drawn[cell] = min(until, len(draw.papers[cell]))
            if not new:
                break
            self._extract(kept, sorted(new), draw)
            bounds = self._with_lengths(kept, bounds)
            choices = self._choose(kept, bounds, draw, drawn)
            # A class whose own papers ran out gains nothing from drawing more.
            wanting = {
                cell
                for cell, choice in choices.items()
                if drawn[cell] < len(draw.papers[cell])
                and any(filling.chosen < filling.wanted for filling in choice.filling)
            }
        self._record.take_choices(choices)
        return choices, bounds

    def _extract(self, kept: Collections, drawn: list[str], draw: Draw) -> None:
        path = self._drawn_file(drawn)
        kept.add_cited(drawn, {paper_id: cell for cell, papers in draw.papers.items() for paper_id in papers})
        if self._citations:
            reader = survey.READ_INTENTS
            found = self._stage("reading citations", "intents", self._citations, reader, {"drawn": str(path)})
            self._quarantine += found
            self._stop_if_mostly_bad(found, "citations")
            kept.add_citing(found)
        parameters = {
            "drawn": str(path),
            "repeated": self._repeated,
            "single": self.options.single,
            "split": self.options.split,
            "model": self.options.model,
            **self._models,
        }
        stage = texts.EXTRACT_GIVEN if self.sources.are_contexts else texts.EXTRACT_TEXTS
        extracted = self._stage("extracting sentences", "contexts", self._texts, stage, parameters)
        for result in extracted:
            self._record.take_tally(result.counts)
            kept.add_texts(result.path)
            kept.add_contexts(result.path)

    def _drawn_file(self, drawn: list[str]) -> Path:
        path = self._results / "drawn" / digest_of(drawn)
        with writing_file(path) as partial, writing_lines(partial) as write:
            for paper_id in drawn:
                write(paper_id.encode())
        return path.resolve()

    def _with_lengths(self, kept: Collections, bounds: Bounds) -> Bounds:
        lengths = (document["sentence"]["length"] for document in kept.contexts())
        return bounds.model_copy(update={"length": compute_bounds(lengths, []).length})

    def _choose(
        self, kept: Collections, bounds: Bounds, draw: Draw, drawn: Mapping[Cell, int]
    ) -> dict[Cell, CellChoice]:
        so_far = SoFar()
        choices = {}
        for done, (cell, papers) in enumerate(sorted(draw.papers.items())):
            self.progress("choosing contexts", done, len(draw.papers))
            choices[cell] = choose(
                cell,
                papers[: drawn[cell]],
                draw.sizes[cell],
                self._slots(cell.field, bounds),
                kept,
                bounds,
                seed=self.options.seed,
                conditions=self.options.conditions,
                so_far=so_far,
            )
        return choices

    # The set

    def _write(self, kept: Collections, choices: Mapping[Cell, CellChoice], bounds: Bounds) -> SetManifest:
        self.progress("writing the set", 0, 1)
        self._record.bounds = bounds
        options = self.options
        chosen = [self._labelled(candidate) for choice in choices.values() for candidate in choice.chosen]
        self._record.take_store(kept, has_citations=bool(self._citations), has_texts=not self.sources.are_contexts)
        if not chosen:
            funnel = ", ".join(f"{count:,} {FUNNEL[step]}" for step, count in self._record.steps().items())
            raise InputError(f"no context could be chosen: {funnel}", "Are papers and texts of one release?")
        facts = {
            "source": ", ".join(path.name for path in self.sources.texts),
            "corpus_papers": kept.papers.counts().papers,
            "corpus_fingerprint": None,
            "spacy_model": Path(options.model).name if options.model else None,
            "bounds": bounds,
            "families": self._families(chosen, bounds),
            "sampling": Sampling(
                seed=options.seed,
                quota=self.quota,
                oversample=round(options.oversample, 6),
                rounds=options.rounds,
                single=options.single,
                split=Path(options.split).name,
                funnel=self._record.steps(),
                outcomes=dict(sorted(self._record.outcomes.items())),
                cells=self._record.cells(),
            ),
        }
        reserves = [self._labelled(candidate) for candidate in free_reserves(choices)]
        return write_set(
            self.out,
            chosen,
            facts,
            lambda folder: self._record.write(folder, reserves, survey.aside(kept.papers, self._quarantine)),
        )

    def _families(self, chosen: Sequence[tuple[dict[str, Any], Context]], bounds: Bounds) -> dict[str, FamilyOfSet]:
        counts = Counter(label for _, context in chosen for label in context.labels.items())
        return {
            name: FamilyOfSet(
                conditions=family.condition_names if self.options.conditions else (),
                classes={label: counts[name, label] for label in family.classes(bounds)},
            )
            for name, family in FAMILIES.items()
            if (self.options.model or not family.needs_tagger)
            and not family.on_the_spot
            and (not family.sampled or self.quota[name])
        }

    def _labelled(self, candidate: Candidate) -> tuple[dict[str, Any], Context]:
        """A context with the class that it was chosen for and, in a large field, by the families without a quota."""
        slot, facts = candidate.slot, candidate.facts
        large = facts.bounds.field is not None and candidate.cell.field in facts.bounds.field.fields
        labels = {
            name: slot.label if name == slot.family else family.label(facts, conditions=self.options.conditions)
            for name, family in FAMILIES.items()
            if name == slot.family
            or (
                large and not (family.sampled or family.on_the_spot) and (self.options.model or not family.needs_tagger)
            )
        }
        context = replace(candidate.context, labels={name: label for name, label in labels.items() if label})
        cell = {**candidate.cell._asdict(), "family": slot.family, "class": slot.label}
        return {**as_record(context), "cell": cell}, context

    # Shards

    def _stage(
        self, doing: str, name: str, shards: Sequence[Path], step: Step, parameters: Mapping[str, Any]
    ) -> list[Result]:
        return run_stage(
            self._results / name,
            shards,
            step,
            parameters,
            workers=self.options.workers,
            on_progress=lambda done, whole: self.progress(doing, done, whole),
        )

    def _stop_if_mostly_bad(self, results: Sequence[Result], what: str) -> None:
        rejected = Rejected(self.options.max_bad, what)
        for result in results:
            rejected.add(result.counts.get("texts", 0) + result.counts.get("rows", 0), result.counts["bad"])
        if rejected.bad:
            first = orjson.loads(next(survey.quarantine([result for result in results if result.counts["bad"]])))
            rejected.first = fault_at(first["shard"], first["line"], first["reason"])
        rejected.check()


def _fields(bounds: Bounds) -> tuple[str, ...]:
    return (*bounds.field.fields, *bounds.field.low_resource) if bounds.field else ()


@contextlib.contextmanager
def _kept_work(work: Path) -> Iterator[None]:
    """Locks the work of a build; errors of the disk or the database end it with a one-line message."""
    with alone(work / "lock", "another process is building this set"):
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            what = f"{error.strerror or error}: {error.filename}" if isinstance(error, OSError) else str(error)
            raise BuildError(
                f"cannot go on in {work} ({what})",
                "Solve this (is the disk full, is the limit of open files too low?); the same command continues.",
            ) from error
