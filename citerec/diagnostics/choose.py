"""Choosing contexts: each class of each cell gets its share, and no cited paper is used twice (Maharjan 3.2.1)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

RESERVES = 5
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
"""For each paper, the slots that it could fill, each with the candidates for it: best first, and one more than RESERVES
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
                if candidate.labels.get(slot.family) == slot.label and len(options.get(slot, ())) <= RESERVES:
                    options.setdefault(slot, []).append(candidate)
        return fitting

    def matching(self, cell: Cell, fitting: Fitting, slots: Mapping[Slot, int]) -> list[Pick]:
        """A maximum matching of papers and the slots of a cell, each with its quota.

        Where papers are too few for all slots, classes with the fewest contexts so far come first. No paper is cited by
        two of its contexts.
        """
        options = {
            paper_id: {slot: free[0] for slot, found in of_paper.items() if (free := self._free(found))}
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

    def _free(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return [candidate for candidate in candidates if self.used.isdisjoint(candidate.cited_ids)]

    def take(self, cell: Cell, picks: Sequence[Pick], fitting: Fitting, slots: Iterable[Slot]) -> None:
        """Keeps what was chosen from a cell, with reserves: papers not used, then other sentences on the chosen."""
        taken = {pick.candidate.paper_id: pick for pick in picks}
        for slot in slots:
            unused = [found[slot][0] for paper_id, found in fitting.items() if paper_id not in taken and slot in found]
            others = [
                other
                for paper_id, pick in taken.items()
                if pick.slot == slot
                for other in fitting[paper_id][slot]
                if other.id != pick.candidate.id
            ]
            self.reserves += [Pick(cell, slot, one) for one in [*unused, *others][:RESERVES]]
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
