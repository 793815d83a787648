"""From a run to the ranks of the cited papers: leak rules, order, cut."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.contexts.leaks import LeakRules
from citerec.evaluation.run import PooledRun, Years
from citerec.evaluation.topics import Topics

NOT_FOUND = 0


@dataclass(frozen=True, slots=True)
class Rules(LeakRules):
    """The leak rules, and what counts.

    Attributes:
        missing: How contexts count if none of their cited papers is in the index: as "zero", or "skip".
    """

    missing: str = "zero"


class Removed(NamedTuple):
    """How many lines of a run broke a rule."""

    citing_paper: int
    newer: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """A run under the rules.

    Attributes:
        run: Its rows, context by context, best first, k at most.
        places: Rank of each row, from 1.
        gold: Rank of each cited paper or NOT_FOUND, contexts × most papers cited in one; -1 in unused slots.
        removed: Lines that broke a rule.
    """

    run: PooledRun
    places: npt.NDArray[np.int32]
    gold: npt.NDArray[np.int32]
    removed: Removed

    def hits(self, number: int) -> list[tuple[str, float]]:
        """The papers that a context found with their scores, best first."""
        rows = slice(*np.searchsorted(self.run.contexts, (number, number + 1)))
        found = zip(self.run.papers[rows].tolist(), self.run.scores[rows].tolist(), strict=True)
        return [(self.run.paper_ids[paper], score) for paper, score in found]


def rank(run: PooledRun, topics: Topics, rules: Rules, k: int) -> Ranking:
    """Applies the rules to a run, orders it by score and paper id, and finds the cited papers in its first k hits."""
    broken = rules.breaches(topics.topics, run.contexts, run.papers, run.paper_ids, run.years)
    removed = Removed(int(broken.citing_paper.sum()), int(broken.newer.sum()))
    run = _ordered(run.only(~(broken.citing_paper | broken.newer)) if any(removed) else run)
    places = _places(run.contexts)
    run, places = run.only(places <= k), places[places <= k]
    numbers = {paper_id: number for number, paper_id in enumerate(run.paper_ids)}
    most = max(len(context.cited_ids) for context in topics.contexts)
    gold, cited = np.full((2, len(topics), most), -1, np.int32)
    for row, context in enumerate(topics.contexts):
        for slot, paper_id in enumerate(context.cited_ids):
            gold[row, slot] = NOT_FOUND
            cited[row, slot] = numbers.get(paper_id, -1)
    for slot in range(most):
        hits = run.papers == cited[run.contexts, slot]
        gold[run.contexts[hits], slot] = places[hits]
    return Ranking(run, places, gold, removed)


def _ordered(run: PooledRun) -> PooledRun:
    if (run.contexts[1:] < run.contexts[:-1]).any():
        run = run.only(np.argsort(run.contexts, kind="stable"))
    same = run.contexts[1:] == run.contexts[:-1]
    if not (same & (run.scores[1:] >= run.scores[:-1])).any():
        return run
    by_id = sorted(range(len(run.paper_ids)), key=run.paper_ids.__getitem__)
    id_order = np.empty(len(by_id), np.int32)
    id_order[by_id] = np.arange(len(by_id), dtype=np.int32)
    return run.only(np.lexsort((id_order[run.papers], -run.scores, run.contexts)))


def _places(contexts: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    _, sizes = np.unique(contexts, return_counts=True)
    return (np.arange(len(contexts)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1).astype(np.int32)


OUTCOMES = ("found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index")
"""The outcomes of a cited paper: among the first ten, ranked after them, or not found for one of three reasons."""

FOUND_UNTIL = 10


def outcomes(ranking: Ranking, topics: Topics, years: Years, rules: Rules) -> npt.NDArray[np.int8]:
    """The outcome of each cited paper, as an index into OUTCOMES; -1 in unused slots."""
    found = np.full(ranking.gold.shape, -1, np.int8)
    known = LeakRules(exclude_citing=False, as_of_year=rules.as_of_year)
    for row, topic in enumerate(topics.topics):
        for slot, paper_id in enumerate(topic.context.cited_ids):
            place = ranking.gold[row, slot]
            if place != NOT_FOUND:
                found[row, slot] = 0 if place <= FOUND_UNTIL else 1
            elif paper_id not in years:
                found[row, slot] = 4
            else:
                found[row, slot] = 2 if known.permits(topic, paper_id, years[paper_id]) else 3
    return found
