"""Choosing contexts: each class of each cell gets its share, and no cited paper is used twice (Maharjan 3.2.1)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from citerec.contexts.read import parse_context
from citerec.corpus.store import PaperStore
from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.build.documents import Collections
from citerec.diagnostics.build.draw import Cell, cell_of
from citerec.diagnostics.families import FAMILIES
from citerec.diagnostics.families.base import Facts
from citerec.diagnostics.sentences import Sentence
from citerec.files.hashing import hash_sample
from citerec.records import Context, Paper

RESERVES = 5
"""Contexts kept for each class of a cell, to replace those that a reviewer rejects."""


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A class of a family, to be filled in a cell."""

    family: str
    label: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A context that fits a slot of a cell, for one drawn paper that it cites; its labels depend on the facts."""

    slot: Slot
    cell: Cell
    cited_id: str
    facts: Facts

    @property
    def context(self) -> Context:
        """The context, without its labels."""
        return self.facts.context


@dataclass(frozen=True, slots=True)
class Filling:
    """How many contexts of a slot were wanted and chosen.

    Attributes:
        papers: Papers of the cell that a text at hand cites, and whose metadata are complete.
        drawn: How many of them were drawn.
        fitting: How many of those have a usable sentence of this class.
    """

    cell: Cell
    slot: Slot
    wanted: int
    chosen: int
    papers: int
    drawn: int
    fitting: int


@dataclass(frozen=True, slots=True)
class CellChoice:
    """What was chosen for a cell, slot by slot; reserves are other contexts that fit its slots."""

    chosen: tuple[Candidate, ...]
    reserves: tuple[Candidate, ...]
    filling: tuple[Filling, ...]


@dataclass(slots=True)
class SoFar:
    """The papers that the contexts chosen in earlier cells cite, and how many contexts of each slot there are."""

    used: set[str] = field(default_factory=set)
    counts: Counter[Slot] = field(default_factory=Counter)


def slots_of(of_field: str, bounds: Bounds, quota: Mapping[str, int], *, tagged: bool) -> dict[Slot, int]:
    """The slots of every cell of a field, each with its quota; those of parts of speech only if they are tagged."""
    return {
        Slot(name, label): quota[name]
        for name, family in FAMILIES.items()
        if family.sampled and quota[name] and (tagged or not family.needs_tagger)
        for label in family.classes_in(of_field, bounds)
    }


def choose(
    cell: Cell,
    drawn: Sequence[str],
    papers: int,
    slots: Mapping[Slot, int],
    collections: Collections,
    bounds: Bounds,
    *,
    seed: int,
    conditions: bool,
    so_far: SoFar,
) -> CellChoice:
    """Fills the slots of a cell as far as its papers allow: a maximum matching of slots and papers.

    Where papers are too few for all slots, classes with the fewest contexts so far come first. `drawn` is in the order
    of drawing; `papers` is the number of all papers of the cell, and `slots` has the quotas. The seed decides between
    sentences that fit equally well. What is chosen is added to `so_far`.
    """
    store = collections.papers
    found = store.papers(drawn)
    fitting: dict[str, dict[Slot, list[Candidate]]] = {}
    for paper_id in drawn:
        if paper_id in so_far.used or paper_id not in found:
            continue
        options = fitting[paper_id] = {}
        for document in sorted(
            collections.contexts(paper_id), key=lambda one: hash_sample(seed, one["id"], between="\t")
        ):
            for candidate in _candidates(document, cell, slots, store, found, bounds, conditions=conditions):
                if len(kept := options.setdefault(candidate.slot, [])) <= RESERVES:
                    kept.append(candidate)
    chosen = _without_shared(fitting, slots, so_far)
    so_far.used.update(paper_id for candidate in chosen for paper_id in candidate.context.cited_ids)
    so_far.counts.update(candidate.slot for candidate in chosen)
    reserves = [candidate for slot in slots for candidate in _reserves(slot, fitting, chosen)]
    filling = tuple(
        Filling(
            cell=cell,
            slot=slot,
            wanted=wanted,
            chosen=sum(candidate.slot == slot for candidate in chosen),
            papers=papers,
            drawn=len(drawn),
            fitting=sum(slot in options for options in fitting.values()),
        )
        for slot, wanted in slots.items()
    )
    return CellChoice(tuple(chosen), tuple(reserves), filling)


def free_reserves(choices: Mapping[Cell, CellChoice]) -> Iterator[Candidate]:
    """Reserves that could be used: the papers that they cite are cited nowhere else in the set."""
    place_of = {
        paper_id: (candidate.cell, candidate.slot)
        for choice in choices.values()
        for candidate in choice.chosen
        for paper_id in candidate.context.cited_ids
    }
    for choice in choices.values():
        for candidate in choice.reserves:
            own = (candidate.cell, candidate.slot)
            if all(place_of.get(paper_id, own) == own for paper_id in candidate.context.cited_ids):
                yield candidate


def _reserves(
    slot: Slot, fitting: Mapping[str, Mapping[Slot, Sequence[Candidate]]], chosen: Sequence[Candidate]
) -> list[Candidate]:
    """Possible replacements for the chosen of a slot: papers not used, then other sentences on the chosen papers."""
    taken = {candidate.cited_id: candidate for candidate in chosen}
    unused = [of_paper[slot][0] for paper_id, of_paper in fitting.items() if paper_id not in taken and slot in of_paper]
    others = [
        other
        for paper_id, candidate in taken.items()
        if candidate.slot == slot
        for other in fitting[paper_id][slot]
        if other.context.context_id != candidate.context.context_id
    ]
    return [*unused, *others][:RESERVES]


def _candidates(
    document: Mapping[str, Any],
    cell: Cell,
    slots: Mapping[Slot, int],
    store: PaperStore,
    found: Mapping[str, Paper],
    bounds: Bounds,
    *,
    conditions: bool,
) -> Iterator[Candidate]:
    """A context for each slot that it fits."""
    context = parse_context(dict(document["context"]))
    others = [paper_id for paper_id in context.cited_ids if paper_id not in found]
    known = {**found, **(store.papers(others) if others else {})}
    papers = tuple(known[paper_id] for paper_id in context.cited_ids if paper_id in known)
    if any(cell_of(paper, bounds) != cell for paper in papers):
        return  # a group of papers is in a cell only if all of them are
    facts = Facts(context, Sentence(**document["sentence"]), papers, bounds)
    for family in dict.fromkeys(slot.family for slot in slots):
        label = FAMILIES[family].label(facts, conditions=conditions)
        if label is not None and Slot(family, label) in slots:
            yield Candidate(Slot(family, label), cell, str(document["cited_id"]), facts)


def _without_shared(
    fitting: Mapping[str, Mapping[Slot, Sequence[Candidate]]], slots: Mapping[Slot, int], so_far: SoFar
) -> list[Candidate]:
    """The matching in which no paper of a group is cited by two chosen contexts."""
    options = {
        paper_id: {
            slot: free[0]
            for slot, found in of_paper.items()
            if (free := [candidate for candidate in found if so_far.used.isdisjoint(candidate.context.cited_ids)])
        }
        for paper_id, of_paper in fitting.items()
    }
    while True:
        matched = _matching(options, slots, so_far)
        cited: set[str] = set()
        for candidate in matched:
            if not cited.isdisjoint(candidate.context.cited_ids):  # only groups of papers can clash
                del options[candidate.cited_id][candidate.slot]
                break
            cited.update(candidate.context.cited_ids)
        else:
            return matched


def _matching(
    options: Mapping[str, Mapping[Slot, Candidate]], slots: Mapping[Slot, int], so_far: SoFar
) -> list[Candidate]:
    from scipy.optimize import linear_sum_assignment

    places = [slot for slot, wanted in slots.items() for _ in range(min(wanted, len(options)))]
    papers = [paper_id for paper_id, of_paper in options.items() if of_paper]
    if not places or not papers:
        return []
    by_need = sorted(range(len(places)), key=lambda at: so_far.counts[places[at]])
    need = np.zeros(len(places))
    # All needs together weigh less than one place: the number of filled places comes first, their need second.
    need[by_need] = np.arange(len(places), 0, -1) / (len(places) * (len(places) + 1))
    fits = np.array([[slot in options[paper_id] for paper_id in papers] for slot in places])
    rows, columns = linear_sum_assignment(fits * (1 + need)[:, None], maximize=True)
    return [
        options[papers[column]][places[row]] for row, column in zip(rows, columns, strict=True) if fits[row, column]
    ]
