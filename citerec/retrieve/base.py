"""The interface of retrievers, the open index that each gets, and their registry.

A retriever is one module of `citerec.retrieve` (or an entry point of the group `citerec.retrievers` in another
package) with a subclass of `Retriever` that registers itself:

    @RETRIEVERS.register
    class Nearest(Retriever):
        name = "nearest"
        ...

It can then be named in a recipe, in `--system`, and in `-c nearest.KEY=VALUE`.
"""

import contextlib
import difflib
import functools
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.provenance import NOTHING, Provenance
from citerec.contexts.topic import Topic
from citerec.corpus.reading import LAST_YEAR
from citerec.corpus.store import PaperStore
from citerec.errors import FilterError, JavaError, QueryError, SearchError, ServiceError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.index.base import ENGINES, Engine
from citerec.index.columns import UNKNOWN, PaperRows, Rows as Rows
from citerec.index.manifest import Manifest, generation_of, open_store, opened, trained_of
from citerec.index.vectors import DenseOptions
from citerec.records import NO_FILTERS, Confidence, Filters, Match, Paper, Reason
from citerec.settings import PartSettings

Floats = NDArray[np.float64]


class CitanceKey(NamedTuple):
    """The citing sentence that adds most to a candidate's score, and what it adds."""

    citing_id: str
    position: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A found paper, by its id.

    Attributes:
        paper_id: The paper.
        score: Higher is better; comparable within one list only.
        citance: The citing sentence that adds most to its score, if any.
        signals: Values that each step gave it, by name; a missing signal was not found.
        reasons: What its score is made of, strongest first; empty unless `explain` is set.
    """

    paper_id: str
    score: float
    citance: CitanceKey | None = None
    signals: Mapping[str, float] = field(default_factory=dict, hash=False, compare=False)
    reasons: tuple[Reason, ...] = field(default=(), hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Citances:
    """The citing sentences that support some candidates, found by name only when they are asked for.

    Attributes:
        keys: For each candidate the number of its sentence, (candidates,); -1 if it has none.
        find: The sentence of a number.
    """

    keys: Rows
    find: Callable[[int], CitanceKey | None]


@dataclass(frozen=True, slots=True)
class Candidates(Sequence[Candidate]):
    """Found papers, best first, as columns; a sequence of `Candidate`.

    Attributes:
        papers: The ids of the index's papers.
        rows: The papers' rows in them, (candidates,).
        scores: Higher is better; comparable within one list only, (candidates,).
        signals: Values that each step gave them, by name, (candidates,) each; NaN where it was not found.
        citances: The citing sentences that support them; of several, the first that has one counts.
        reasons: What each score is made of; empty unless `explain` is set.
        confidence: How sure the system is of them; None if it is not calibrated for the index.
        are_shares: Whether the scores mean the same in all lists of their retriever: a fusion takes them as they are.
    """

    papers: PaperRows
    rows: Rows
    scores: Floats
    signals: Mapping[str, Floats] = field(default_factory=dict)
    citances: tuple[Citances, ...] = ()
    reasons: tuple[tuple[Reason, ...], ...] = ()
    confidence: Confidence | None = None
    are_shares: bool = False

    @classmethod
    def of(cls, papers: PaperRows, candidates: Iterable[Candidate]) -> "Candidates":
        """The columns of some candidates, in their order.

        Raises:
            KeyError: One of them is not a paper of the index; its id is the key.
        """
        listed = list(candidates)
        rows = papers.rows([one.paper_id for one in listed])
        if (rows < 0).any():
            raise KeyError(listed[int(np.argmin(rows))].paper_id)
        names = dict.fromkeys(name for one in listed for name in one.signals)
        supported = np.array([at if one.citance else -1 for at, one in enumerate(listed)], np.int64)
        return cls(
            papers,
            rows,
            np.array([one.score for one in listed], np.float64),
            {name: np.array([one.signals.get(name, np.nan) for one in listed], np.float64) for name in names},
            (Citances(supported, lambda key: listed[key].citance),) if (supported >= 0).any() else (),
            tuple(one.reasons for one in listed) if any(one.reasons for one in listed) else (),
        )

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> "Candidates": ...
    def __getitem__(self, place: int | slice) -> "Candidate | Candidates":
        if isinstance(place, slice):
            return self.taken(place)
        return list(self.taken(slice(place, place + 1 or None))).pop()

    def __iter__(self) -> Any:
        columns = zip(self.paper_ids(), self.scores.tolist(), self.reasons or [()] * len(self), strict=True)
        for place, (paper_id, score, why) in enumerate(columns):
            values = ((name, float(of_all[place])) for name, of_all in self.signals.items())
            signals = {name: value for name, value in values if value == value}
            yield Candidate(paper_id, score, self.citance(place), signals, why)

    def paper_ids(self) -> list[str]:
        """The ids of the papers."""
        return self.papers.paper_ids(self.rows)

    def pairs(self) -> list[tuple[str, float]]:
        """The ids of the papers with their scores."""
        return list(zip(self.paper_ids(), self.scores.tolist(), strict=True))

    def citance(self, place: int) -> CitanceKey | None:
        """The citing sentence that supports the candidate at a place."""
        for column in self.citances:
            if (key := int(column.keys[place])) >= 0:
                return column.find(key)
        return None

    def signal(self, name: str) -> Floats:
        """A signal, (candidates,); all NaN if no step gave it."""
        return self.signals[name] if name in self.signals else np.full(len(self), np.nan)

    def taken(self, places: slice | Rows) -> "Candidates":
        """The candidates at some places, in this order."""
        explained = np.arange(len(self.reasons))[places].tolist() if self.reasons else []
        return replace(
            self,
            rows=self.rows[places],
            scores=self.scores[places],
            signals={name: values[places] for name, values in self.signals.items()},
            citances=tuple(replace(one, keys=one.keys[places]) for one in self.citances),
            reasons=tuple(self.reasons[at] for at in explained),
        )

    def in_order(self) -> "Candidates":
        """The candidates by score, ties by id."""
        return self.taken(np.lexsort((self.rows, -self.scores)))


_NAMED_FIELDS = 25
_USUAL_K = 10


class OpenIndex:
    """An index directory, open for searching. Safe to use from several threads.

    Attributes:
        holds: What it holds, for errors.
        path: The directory.
        folder: The folder of its generation, whose files it has opened.
        manifest: Its manifest.
        store: The records of its papers.
        rows: The ids of its papers, what is known of them, and which pass filters.
        most_hits: How many hits a search has at most.
        encoders: What makes vectors of topics, opened when it is first needed: retrievers of the same vectors share it.
        opening: Held while one is opened.
    """

    holds: ClassVar[str] = "papers of the index"

    def __init__(self, path: Path, manifest: Manifest, store: PaperStore, settings: PartSettings) -> None:
        self.path, self.folder = path, generation_of(path)
        self.manifest = manifest
        self.store = store
        self.rows, self.most_hits = PaperRows.open(self.folder), manifest.counts.papers
        self._settings = settings
        self.encoders: dict[tuple[Any, ...], Any] = {}
        self.opening = threading.Lock()

    @functools.cached_property
    def engine(self) -> Engine:
        """What searches its words.

        Raises:
            JavaError: It is Lucene, and there is no Java runtime that can run it.
            ServiceError: It is Qdrant, and its server cannot be reached.
        """
        return ENGINES[self.manifest.engine](self.folder, self.manifest, self.rows)

    @functools.cached_property
    def words(self) -> "Retriever | None":
        """Its words, searched with the settings of the system; None if there are none. Errors as for `engine`."""
        return RETRIEVERS["words"].open(self, self._settings)

    @classmethod
    def open(cls, index: str | Path, settings: PartSettings | None = None) -> Self:
        """Opens an index directory; its words are searched with the given settings, by default the usual ones.

        Raises:
            IndexUnusableError: There is none, or it is half built, broken, or of another version.
        """
        path = Path(index)
        return opened(path, lambda: cls._open(path, settings or RETRIEVERS["words"].Settings()), cls.close)

    @classmethod
    def _open(cls, path: Path, settings: PartSettings) -> Self:
        manifest, store = Manifest.read(path), open_store(path)
        try:
            index = cls(path, manifest, store, settings)
            with contextlib.suppress(JavaError, ServiceError):  # what does not need the words works without them
                _ = index.engine  # all files are of the generation that is current now
        except BaseException:
            store.close()
            raise
        return index

    def close(self) -> None:
        """Closes the index's files."""
        if "engine" in vars(self):
            self.engine.close()
        self.store.close()

    def find(self, words: str, filters: Filters = NO_FILTERS, *, limit: int, offset: int = 0) -> list[str]:
        """A page of a list of papers, as ids: those that share a word, best first; without words all, by id.

        Raises:
            FilterError: A filter is out of range, or names a field that the index lacks.
            QueryError: The words are too many, or only punctuation and stop words.
        """
        self.check_filters(filters)
        if words and self.words is not None:
            hits = self.words.search(Topic(words), offset + limit, filters)[offset:]
            return [one.paper_id for one in hits]
        rows = np.flatnonzero(self.rows.passing(filters))
        return list(self.rows.paper_ids(rows[offset : offset + limit]))

    def number_of_hits(self, k: int | None) -> int:
        """k, or if it is None the usual number, at most `most_hits`.

        Raises:
            FilterError: k is no whole number, or under 1, or over `most_hits`.
        """
        most = self.most_hits
        if k is None:
            return min(_USUAL_K, most)
        if type(k) is bool or not hasattr(k, "__index__"):
            raise FilterError(f"k is {k!r}, no whole number", "Give one, such as 10.")
        if k < 1:
            raise FilterError(f"-k {k} asks for no paper", "Ask for at least one: -k 10")
        if k > most:
            raise FilterError(f"-k {k:,} is more than the {most:,} {self.holds}", f"Ask for at most -k {most}")
        return k

    def check_filters(self, filters: Filters) -> None:
        """Checks that the filters make sense, and name fields of study that the index has.

        Raises:
            FilterError: A range is reversed, a number is negative, a field is unknown, or there are no counts.
        """
        low, high = filters.year_from, filters.year_to
        for year in (low, high):
            if year is not None and not 0 <= year <= LAST_YEAR:
                raise FilterError(f"{year} is not a year", "Give years such as 1998.")
        if low is not None and high is not None and low > high:
            remedy = f"Exchange them: --year-from {high} --year-to {low}"
            raise FilterError(f"the years {low} to {high} are reversed", remedy)
        if filters.min_citations is not None and not 0 <= filters.min_citations < 2**31:
            raise FilterError(f"--min-citations {filters.min_citations} is out of range", "Give a number from 0.")
        counts = self.rows.columns.citation_counts  # of a live index it has none yet
        if filters.min_citations and len(counts) and (counts == UNKNOWN).all():
            raise FilterError("the index has no citation counts", "Get them: citerec index enrich INDEX")
        for name in filters.fields:
            if not self.rows.passing(Filters(fields=(name,))).any():
                raise FilterError(f"the index has no field of study {name!r}", self._field_near(name))

    def _field_near(self, name: str) -> str:
        """What to write in place of a field of study that no paper has."""
        fields = {field.casefold(): field for field in self.rows.names["fields"]}
        if not fields:
            return "Its papers name no fields at all: leave --field out."
        if near := difflib.get_close_matches(name.casefold(), fields, n=1):
            return f"Did you mean {fields[near[0]]!r}?"
        return f"It has: {', '.join(list(fields.values())[:_NAMED_FIELDS])}."

    def permitted(self, name: str, candidates: Sequence[Candidate], filters: Filters) -> Candidates:
        """The candidates of a retriever that pass the filters, each once, best first, ties by paper id.

        Raises:
            SearchError: A candidate is not a paper of the index.
        """
        try:
            if not isinstance(candidates, Candidates):
                candidates = Candidates.of(self.rows_for([str(one.paper_id) for one in candidates]), candidates)
        except KeyError as error:
            raise SearchError(
                f"the retriever {name} found {error.args[0]!r}, which is not in the index",
                "It must return ids of the index that it was opened on.",
            ) from None
        hits = candidates.in_order()
        _, firsts = np.unique(hits.rows, return_index=True)
        hits = hits.taken(np.sort(firsts))
        return hits.taken(np.flatnonzero(hits.papers.passing(filters)[hits.rows]))

    def rows_for(self, _paper_ids: Sequence[str]) -> PaperRows:
        """The papers of which the columns of some found papers are rows."""
        return self.rows

    def with_same_rows(self, lists: Mapping[str, Candidates]) -> Mapping[str, Candidates]:
        """Several lists, by retriever, as rows of the same papers."""
        return lists


def check_asked(topic: Topic, k: int) -> None:
    """Raises FilterError if k is under 1, and QueryError if the topic is blank."""
    if k < 1:
        raise FilterError(f"k is {k}", "Ask for at least one paper.")
    if not topic.passage:
        raise QueryError("the sentence is empty", "Write one with content words.")


def lacks_model(name: str, index: Path, settings: PartSettings) -> bool:
    """Whether a part that needs a model has none: neither in its settings nor trained for the index."""
    is_trained = trained_of(index, name).is_dir()
    return not is_trained and "model" in type(settings).model_fields and not getattr(settings, "model", None)


class Retriever(ABC):
    """Finds candidates for a topic. Safe to call from several threads; ties are ordered by paper id.

    Attributes:
        name: Its name in recipes, settings and errors.
        label: The name of its share of a fused score in reasons.
        Settings: The class of its settings: a `PartSettings` whose fields all have defaults and descriptions.
        filters_itself: Whether `search` leaves out what the filters forbid. If it does not, the pipeline does so
            afterwards, and the list may become shorter than k.
        service: The web service that it asks, which gets words of the text; it needs no index. Empty for all others.
        queries_by: The folder of a static encoder of queries that it uses, if any.
        index: The index that it was opened on.
        settings: Its settings.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    Settings: ClassVar[type[PartSettings]] = PartSettings
    filters_itself: ClassVar[bool] = False
    service: ClassVar[str] = ""
    queries_by: str | None = None

    def __init__(self, index: Any = None, settings: Any = None) -> None:
        self.index: OpenIndex = index
        self.settings = settings

    @classmethod
    def open(cls, index: OpenIndex, settings: Any) -> Self:
        """Opens the retriever on an index: by default its constructor does that.

        Args:
            index: The index: its folder, paper store, manifest and words.
            settings: An instance of `Settings`.

        Raises:
            SettingsError: The index lacks what it needs.
            IndexUnusableError: What it needs is damaged.
        """
        return cls(index, settings)

    @classmethod
    def encode(
        cls, _index: Path, _options: DenseOptions, _on_progress: Progress, _parallelism: Parallelism = HERE
    ) -> str:
        """Makes what it searches, such as vectors, in the folder of its name in an index: `citerec index encode`.

        Args:
            _index: The index.
            _options: The encoder, the kind of FAISS index, and so on.
            _on_progress: Called as the work goes on.
            _parallelism: Where it is made, as in `citerec index encode --on`; without meaning for quick work.

        Returns:
            What to print about them; nothing if the folder is one of `citerec.index.vectors.Vectors`.

        Raises:
            SettingsError: There is nothing to make, which is the default.
        """
        raise SettingsError(f"the retriever {cls.name!r} searches no vectors", "Name another with --retriever.")

    @classmethod
    def lacks(cls, index: Path | None, settings: Any) -> str:
        """What an index lacks for it to be opened with some settings, and how to get it; empty for nothing."""
        if cls.service or index is None:
            return "" if cls.service else "an index"
        if lacks_model(cls.name, index, settings):
            key = f"{cls.name.replace('-', '_')}.model"
            return f"its model: -c {key}=NAME, or one that was trained for the index"
        is_encoded = cls.encode.__func__ is not Retriever.encode.__func__  # type: ignore[attr-defined]
        is_there = not is_encoded or (generation_of(index) / cls.name).is_dir()
        return "" if is_there else f"its vectors: citerec index encode {index} --retriever {cls.name}"

    @classmethod
    def provenance_at(cls, _index: Path, _settings: Any) -> Provenance:
        """What it learnt from, if citerec trained it; nothing by default."""
        return NOTHING

    @abstractmethod
    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Any = None) -> Sequence[Candidate]:
        """The k best candidates, best first; fewer if fewer are found: a list, or `Candidates`, which are faster.

        Args:
            topic: The topic to search for.
            k: How many candidates, from 1.
            filters: Which papers may be found, and what must not be known; they include the leak rules.
            prepared: What `prepare` returned for the topic; None if it was not called.

        Raises:
            QueryError: The topic holds nothing to search for.
            FilterError: k is under 1.
        """

    def prepare(self, topics: Sequence[Topic]) -> Sequence[Any]:
        """What a search needs of each topic, made for many at once, such as vectors; None for each by default."""
        return [None] * len(topics)

    def with_feedback(self, _prepared: Any, _rows: Rows, _weight: float) -> Any | None:
        """What `prepare` returned, moved towards the papers at some rows; None (the default) if nothing can be moved.

        These papers are then scored by it if there is `scored`, else it is searched for.
        """
        return None

    def scored(self, _prepared: Any, _rows: Rows) -> Floats | None:
        """The scores of the papers at some rows, (rows,); None (the default) if only a search can score papers.

        NaN stands for a paper that has no score. The scores are also a signal of the candidates that only other
        retrievers found, under the retriever's name.
        """
        return None

    def signals(self, _topic: Topic, _rows: Rows, _filters: Filters) -> Mapping[str, Floats]:
        """Further signals of the candidates at some rows, for rerankers: by name, (rows,) each; none by default.

        NaN is unknown. What the filters hide must not be used.
        """
        return {}

    def explain(
        self, _topic: Topic, candidates: Sequence[Candidate], _papers: Mapping[str, Paper]
    ) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first; none by default.

        The records of the candidates are given, by id, with their texts.
        """
        return [()] * len(candidates)

    def counts(self) -> Counter[str]:
        """What was counted in the searches since the last call, such as what was not found; by default nothing."""
        return Counter()

    def remark(self, _counts: Mapping[str, int]) -> str:
        """What users should know of some counts, perhaps of several processes together; empty for nothing."""
        return ""

    def close(self) -> None:
        """Closes files and releases models."""
        return


class CountingRetriever(Retriever):
    """A retriever that counts in its searches: in `_counts`, while it holds `_lock`."""

    def __init__(self, index: OpenIndex, settings: Any) -> None:
        super().__init__(index, settings)
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def counts(self) -> Counter[str]:
        """As `Retriever.counts`."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts


RETRIEVERS: Registry[type[Retriever]] = Registry(
    "retriever",
    {
        "authors": "citerec.retrieve.authors:AuthorRetriever",
        "dense": "citerec.retrieve.dense:DenseRetriever",
        "draft": "citerec.retrieve.draft:DraftRetriever",
        "openalex-api": "citerec.retrieve.live:OpenAlexRetriever",
        "profile": "citerec.retrieve.dense:ProfileRetriever",
        "s2-api": "citerec.retrieve.live:S2Retriever",
        "words": "citerec.retrieve.words:WordsRetriever",
    },
)
"""Every retriever, by name."""
