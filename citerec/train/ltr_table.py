"""The tables that rankers learn from: each context is seen several times, with and without what it may lack later."""

import contextlib
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import Topic
from citerec.files.hashing import hash_sample
from citerec.files.parallel import HERE, Parallelism, outcomes_of
from citerec.files.progress import Progress, no_progress
from citerec.index.candidates import Candidates
from citerec.index.opened import OpenIndex
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context, Filters
from citerec.rerank.features import FEATURES, Floats, features_of
from citerec.retrieve.base import Retriever
from citerec.retrieve.words import WordsRetriever
from citerec.train.own_contexts import drafted

_TASK = 1000
"""Contexts of a task: as many as a system prepares at once, so that it makes the same batches everywhere."""
_MIX = 0x9E3779B97F4A7C15  # of splitmix64: rows that differ by one get unlike numbers


class View(NamedTuple):
    """A way to see contexts: whether their draft is known, and for which share of the papers citances are withheld."""

    in_draft: bool
    withheld: float


_BY_CITATIONS = ("draft_cocited", "draft_coupled")  # signals that an index without citing sentences lacks
_PLAIN, _HALF, _IN_DRAFT = View(False, 0.0), View(False, 0.5), View(True, 0.0)
_WITHOUT, _IN_DRAFT_WITHOUT = View(False, 1.0), View(True, 1.0)


@dataclass(frozen=True, slots=True)
class Looks:
    """How contexts are searched for.

    Attributes:
        depth: How many candidates each gets.
        portable: Whether the ranker is for other indexes, which may have no citances at all.
        seed: Seed of what is withheld, and of drafts.
    """

    depth: int
    portable: bool
    seed: int

    def turns(self, *, has_citances: bool) -> tuple[tuple[View, ...], ...]:
        """The views of the first context, of the second, and so on, in turns."""
        if not has_citances:
            return ((_PLAIN, _IN_DRAFT),)
        if not self.portable:
            return (_PLAIN, _HALF), (_PLAIN, _IN_DRAFT)
        return (_WITHOUT, _IN_DRAFT_WITHOUT, _PLAIN), (_WITHOUT, _IN_DRAFT_WITHOUT, _HALF)


@dataclass(frozen=True, slots=True)
class Table:
    """Features (rows, len(FEATURES)) of candidates, 1 for each cited one (rows,), and the rows of each context."""

    features: Floats
    cited: "np.ndarray[tuple[int], np.dtype[np.int8]]"
    groups: tuple[int, ...]

    @classmethod
    def joined(cls, tables: Iterable["Table"]) -> "Table":
        """Several tables as one."""
        listed = list(tables)
        return cls(
            np.concatenate([np.empty((0, len(FEATURES)), np.float32), *(one.features for one in listed)]),
            np.concatenate([np.empty(0, np.int8), *(one.cited for one in listed)]),
            tuple(rows for one in listed for rows in one.groups),
        )


def look(
    recommender: Recommender,
    contexts: Sequence[Context],
    looks: Looks,
    doing: str = "searching",
    on_progress: Progress = no_progress,
    parallelism: Parallelism = HERE,
) -> Table:
    """The table of some contexts; those whose cited papers are not among the candidates are left out.

    Args:
        recommender: Finds candidates, with the retriever `words`.
        contexts: Contexts with cited papers.
        looks: How they are searched for.
        doing: What is being done, for `on_progress`.
        on_progress: Called as the work goes on.
        parallelism: Where they are searched for: each process opens the same system on an index at the same path.
    """
    turns = looks.turns(has_citances=recommender.manifest.counts.citances > 0)
    in_drafts = list(drafted(contexts, looks.seed))
    tasks: list[tuple[View, list[Context]]] = []
    for view in sorted({view for turn in turns for view in turn}):
        chosen = [at for at in range(len(contexts)) if view in turns[at % len(turns)]]
        seen = [in_drafts[at] if view.in_draft else replace(contexts[at], cited_before=None) for at in chosen]
        known = [context for context in seen if context is not None]
        tasks += [(view, known[begin : begin + _TASK]) for begin in range(0, len(known), _TASK)]
    done, whole = 0, sum(len(some) for _, some in tasks)
    tables: dict[int, Table] = {}
    work = functools.partial(_table_of, recommender, looks)
    with contextlib.closing(outcomes_of(work, tasks, parallelism)) as outcomes:
        for number, table in outcomes:
            tables[number] = table
            done += len(tasks[number][1])
            on_progress(doing, done * len(contexts) // whole, len(contexts))
    return Table.joined(tables[number] for number in sorted(tables))


def _table_of(recommender: Recommender, looks: Looks, task: tuple[View, Sequence[Context]]) -> Table:
    """The table of some contexts in one view."""
    view, contexts = task
    system = recommender.with_retrievers(functools.partial(_withholding, view, looks.seed))
    found = system.candidates(system.topics(contexts), min(looks.depth, recommender.manifest.counts.papers))
    made = (_table(topic, candidates, view, looks.seed) for topic, candidates in found)
    return Table.joined(table for table in made if table)


def _withholding(view: View, seed: int, retriever: Retriever) -> Retriever:
    if not view.withheld or not isinstance(retriever, WordsRetriever):
        return retriever
    return WithheldCitances(retriever, view.withheld, seed)


def _table(topic: Topic, candidates: Candidates, view: View, seed: int) -> Table | None:
    """The table of one context; None if no cited paper is among the candidates."""
    golds = np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)).astype(np.int8)
    if not golds.any():
        return None
    uncited = None
    if view.withheld:
        uncited = hidden(topic, candidates.rows, view.withheld, seed)
        signals = {
            name: np.where(uncited, np.nan, values) if name in _BY_CITATIONS else values
            for name, values in candidates.signals.items()
        }
        candidates = replace(candidates, signals=signals)
    return Table(features_of(topic, candidates, uncited), golds, (len(golds),))


class WithheldCitances(Retriever):
    """A retriever of words whose citing sentences are withheld for a share of the papers, other ones for each context.

    Args:
        retriever: The retriever; it gives the signals `bm25` and `citance`.
        share: The share of the papers.
        seed: Seed of the choice.
    """

    name = WordsRetriever.name
    label = WordsRetriever.label
    filters_itself = True

    @classmethod
    def open(cls, index: OpenIndex, settings: Any) -> Self:
        """Opens the retriever of words of an index, without the citing sentences of half of the papers."""
        return cls(WordsRetriever.open(index, settings))

    def __init__(self, retriever: Retriever, share: float = 0.5, seed: int = 0) -> None:
        self._retriever, self._share, self._seed = retriever, share, seed

    def prepare(self, topics: Sequence[Topic]) -> Sequence[Any]:
        """As the retriever does."""
        return self._retriever.prepare(topics)

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Any = None) -> Candidates:
        """The candidates of the retriever, without what is withheld."""
        found = self._retriever.search(topic, k, filters, prepared)
        assert isinstance(found, Candidates)
        if "citance" not in found.signals:
            return found
        without = hidden(topic, found.rows, self._share, self._seed)
        words = found.signals["bm25"]
        known = replace(
            found,
            scores=np.where(without, words, found.scores),
            signals={
                name: np.where(without, np.nan, values) if name.startswith("citance") else values
                for name, values in found.signals.items()
            },
            citances=tuple(replace(one, keys=np.where(without, -1, one.keys)) for one in found.citances),
        )
        return known.taken(np.flatnonzero(~np.isnan(known.scores))).in_order()


def hidden(topic: Topic, rows: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """For which papers the citing sentences are withheld from a context, (rows,)."""
    number = np.uint64(hash_sample(seed, topic.context.context_id))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + number) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
    return (mixed >> np.uint64(32)).astype(np.float64) < share * 2.0**32
