"""The interface of retrievers, and their registry.

A retriever is one module of `citerec.retrieve` (or an entry point of the group `citerec.retrievers` in another
package) with a subclass of `Retriever` that registers itself:

    @RETRIEVERS.register
    class Nearest(Retriever):
        name = "nearest"
        ...

It can then be named in a recipe, in `--system`, and in `-c nearest.KEY=VALUE`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.provenance import NOTHING, Provenance
from citerec.contexts.topic import Topic
from citerec.errors import FilterError, QueryError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.index.columns import PaperRows, Rows as Rows
from citerec.index.manifest import generation_of, trained_of
from citerec.records import FIRST, NO_FILTERS, Confidence, Filters, Match, Reason
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
    """

    papers: PaperRows
    rows: Rows
    scores: Floats
    signals: Mapping[str, Floats] = field(default_factory=dict)
    citances: tuple[Citances, ...] = ()
    reasons: tuple[tuple[Reason, ...], ...] = ()
    confidence: Confidence | None = None

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

    def evidence(self, signals: Sequence[str]) -> Floats:
        """What tells how good this answer is, (3 + 2 · signals,), of its first ten candidates; NaN where it is missing.

        The first score, its lead over the second, its lead over the tenth (or the last); then for each signal the first
        candidate's value and the mean. A candidate that a retriever did not find has the lowest value that it gave.
        """
        scores = self.scores[:FIRST]
        values = [scores[0], scores[0] - scores[1] if len(scores) > 1 else np.nan, scores[0] - scores[-1]]
        for name in signals:
            column = self.signal(name)[:FIRST]
            has_value = ~np.isnan(column)
            if has_value.any():
                column = np.where(has_value, column, column[has_value].min())
            values += [column[0], column.mean()]
        return np.array(values, np.float64)

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


if TYPE_CHECKING:
    from citerec.index.vectors import DenseOptions
    from citerec.retrieve.opened import OpenIndex


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
    """

    name: ClassVar[str]
    label: ClassVar[str]
    Settings: ClassVar[type[PartSettings]] = PartSettings
    filters_itself: ClassVar[bool] = False
    service: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the retriever on an index.

        Args:
            index: The index: its folder, paper store, manifest and words.
            settings: An instance of `Settings`.

        Raises:
            SettingsError: The index lacks what it needs.
            IndexUnusableError: What it needs is damaged.
        """

    @classmethod
    def encode(
        cls, _index: Path, _options: "DenseOptions", _on_progress: Progress, _parallelism: Parallelism = HERE
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

    def explain(self, _topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first; none by default."""
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


_RETRIEVE = "citerec.retrieve"
RETRIEVERS: Registry[type[Retriever]] = Registry(
    "retriever",
    {
        "dense": f"{_RETRIEVE}.dense:DenseRetriever",
        "draft": f"{_RETRIEVE}.draft:DraftRetriever",
        "openalex-api": f"{_RETRIEVE}.live:OpenAlexRetriever",
        "profile": f"{_RETRIEVE}.dense:ProfileRetriever",
        "s2-api": f"{_RETRIEVE}.live:S2Retriever",
        "words": f"{_RETRIEVE}.words:WordsRetriever",
    },
)
"""Every retriever, by name."""
