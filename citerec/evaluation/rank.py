"""From topics and the answers of a system to the ranks of the cited papers: leak rules, order, cut."""

import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.contexts.leaks import LeakRules
from citerec.contexts.topic import Topic, topics_of
from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.records import Context

Years = Mapping[str, int | None]
YearsOf = Callable[[Iterable[str]], Years]
"""Gives the years of the papers with these ids that are in the pool."""

NOT_FOUND = 0
OUTCOMES = ("found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index")
"""The outcomes of a cited paper: among the first ten, ranked after them, or not found for one of three reasons."""
FOUND_UNTIL = 10


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of an evaluation, in order.

    Attributes:
        topics: The topics.
        numbers: Number of each topic by the id of its context; -1 for contexts of the same file that are not evaluated,
            so that a run over the whole file can be read.
        clusters: Number of the citing paper of each topic.
    """

    topics: tuple[Topic, ...]
    numbers: Mapping[str, int]
    clusters: npt.NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        numbers: dict[tuple[str, str], int] = {}
        clusters = []
        for topic in self.topics:
            one = replace(topic.context, citing_id=topic.citing_id)
            kind = next((kind for kind in ("citing_id", "citing_key") if getattr(one, kind)), "context_id")
            clusters.append(numbers.setdefault((kind, getattr(one, kind)), len(numbers)))
        object.__setattr__(self, "clusters", np.array(clusters, np.int32))

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Their contexts."""
        return tuple(topic.context for topic in self.topics)

    def __len__(self) -> int:
        return len(self.topics)


def select_topics(contexts: Sequence[Context], store: PaperStore, left_out: Collection[str] = frozenset()) -> Topics:
    """The topics of contexts, except those left out by id.

    Raises:
        InputError: No context is left.
    """
    chosen = [context for context in contexts if context.context_id not in left_out]
    if not chosen:
        raise InputError("there is no context", "Give at least one, or the name of a diagnostic set.")
    numbers = dict.fromkeys((context.context_id for context in contexts), -1)
    numbers.update((context.context_id, number) for number, context in enumerate(chosen))
    return Topics(tuple(topics_of(chosen, store)), numbers)


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
class PooledRun:
    """A run over the topics of an evaluation, with the years of its papers; one row for each hit.

    Attributes:
        contexts: Number of the context.
        papers: Number of the paper in `paper_ids`.
        scores: Higher is better.
        paper_ids: Every paper that occurs, once.
        years: Year of each of them; 0 where it is unknown.
    """

    contexts: npt.NDArray[np.int32]
    papers: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    paper_ids: tuple[str, ...]
    years: npt.NDArray[np.int32]

    @classmethod
    def of(cls, answers: Iterable[Sequence[tuple[str, float]]], years_of: YearsOf, name: str) -> "PooledRun":
        """The run of a system's answers: paper ids with their scores, for each context in order.

        Raises:
            InputError: A paper is not in the pool, comes twice in an answer, or its score is not a number.
        """
        numbers: dict[str, int] = {}
        sizes: list[int] = []
        papers, scores = array.array("i"), array.array("d")
        for answer in answers:
            found = [numbers.setdefault(paper_id, len(numbers)) for paper_id, _ in answer]
            if len(set(found)) < len(found):
                raise InputError(
                    f"{name} gives a paper twice for one context", "Give each paper once, with its best score."
                )
            sizes.append(len(found))
            papers.extend(found)
            scores.extend(score for _, score in answer)
        years = years_of(numbers)
        if unknown := [paper_id for paper_id in numbers if paper_id not in years]:
            raise InputError(
                f"{name} gives the paper {unknown[0]!r}, which is not in the index", "Give ids of the index."
            )
        if not np.isfinite(scores).all():
            raise InputError(f"{name} gives a score that is not a number", "Give finite scores.")
        return cls(
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            np.array(papers, np.int32),
            np.array(scores, np.float64),
            tuple(numbers),
            np.array([years[paper_id] or 0 for paper_id in numbers], np.int32),
        )

    def __len__(self) -> int:
        return len(self.contexts)

    def only(self, rows: npt.NDArray[Any]) -> "PooledRun":
        """The same run with some rows only: a mask, or row numbers in the order wanted."""
        return PooledRun(self.contexts[rows], self.papers[rows], self.scores[rows], self.paper_ids, self.years)

    def ordered(self) -> "PooledRun":
        """The same run, context by context, by score and paper id."""
        by_id = np.argsort(np.array(self.paper_ids, dtype=object), kind="stable")
        id_order = np.empty(len(by_id), np.int32)
        id_order[by_id] = np.arange(len(by_id), dtype=np.int32)
        return self.only(np.lexsort((id_order[self.papers], -self.scores, self.contexts)))


@dataclass(frozen=True, slots=True)
class Ranking:
    """A run under the rules.

    Attributes:
        run: Its rows, context by context, best first, k at most.
        context_ids: The ids of all contexts, by number.
        gold: Rank of each cited paper or NOT_FOUND, contexts × most papers cited in one; -1 in unused slots.
        removed: Lines that broke a rule.
    """

    run: PooledRun
    context_ids: Sequence[str]
    gold: npt.NDArray[np.int32]
    removed: Removed

    def answers(self) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        """Every context with the papers found and their scores, best first."""
        ends = np.searchsorted(self.run.contexts, np.arange(len(self.context_ids) + 1))
        papers, scores = self.run.papers.tolist(), self.run.scores.tolist()
        for context_id, start, end in zip(self.context_ids, ends, ends[1:], strict=False):
            found = zip(papers[start:end], scores[start:end], strict=True)
            yield context_id, [(self.run.paper_ids[paper], score) for paper, score in found]


def rank(run: PooledRun, topics: Topics, rules: Rules, k: int) -> Ranking:
    """Applies the rules to a run, orders it by score and paper id, and finds the cited papers in its first k hits."""
    broken = rules.breaches(topics.topics, run.contexts, run.papers, run.paper_ids, run.years)
    removed = Removed(int(broken.citing_paper.sum()), int(broken.newer.sum()))
    run = run.only(~(broken.citing_paper | broken.newer)).ordered()
    _, sizes = np.unique(run.contexts, return_counts=True)
    places = (np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1).astype(np.int32)
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
    return Ranking(run, [context.context_id for context in topics.contexts], gold, removed)


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
