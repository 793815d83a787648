"""Candidates: found papers, one by one or as columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from citerec.index.columns import PaperRows
from citerec.index.columns import Rows as Rows
from citerec.records import Confidence, Reason

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

    def taken(self, places: slice | Rows) -> "Candidates":
        """The candidates at some places, in this order."""
        reasons = self.reasons
        if reasons:
            reasons = reasons[places] if isinstance(places, slice) else tuple(reasons[at] for at in places.tolist())
        return replace(
            self,
            rows=self.rows[places],
            scores=self.scores[places],
            signals={name: values[places] for name, values in self.signals.items()},
            citances=tuple(replace(one, keys=one.keys[places]) for one in self.citances),
            reasons=reasons,
        )

    def in_order(self) -> "Candidates":
        """The candidates by score, ties by id."""
        return self.taken(np.lexsort((self.rows, -self.scores)))
