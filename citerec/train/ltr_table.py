"""The examples that rankers learn from: each context is seen several times, with and without what it may lack later."""

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import Topic
from citerec.files.hashing import hash_sample
from citerec.files.parallel import HERE, Parallelism, outcomes_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.index.base import Words, WordSettings
from citerec.index.candidates import Candidates
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context, Filters
from citerec.rerank.features import Floats, features_of
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

# The views of the first context, of the second, and so on, in turns.
_OF_INDEX_WITHOUT_CITANCES = ((_PLAIN, _IN_DRAFT),)
_OF_INDEX = (_PLAIN, _HALF), (_PLAIN, _IN_DRAFT)
_PORTABLE = (_WITHOUT, _IN_DRAFT_WITHOUT, _PLAIN), (_WITHOUT, _IN_DRAFT_WITHOUT, _HALF)


class Example(NamedTuple):
    """A context in one view.

    Attributes:
        features: Of its candidates, (candidates, len(FEATURES)).
        cited: 1 for each cited one, (candidates,); one at least.
    """

    features: Floats
    cited: NDArray[np.int8]


def examples_of(
    recommender: Recommender,
    contexts: Sequence[Context],
    depth: int,
    seed: int,
    *,
    portable: bool,
    doing: str = "searching",
    on_progress: Progress = no_progress,
    parallelism: Parallelism = HERE,
) -> list[Example]:
    """The examples of some contexts; those whose cited papers are not among the candidates are left out.

    Args:
        recommender: Finds candidates, with the retriever `words`.
        contexts: Contexts with cited papers.
        depth: How many candidates each gets.
        seed: Seed of what is withheld, and of drafts.
        portable: Whether the ranker is for other indexes, which may have no citances at all.
        doing: What is being done, for `on_progress`.
        on_progress: Called as the work goes on.
        parallelism: Where they are searched for: each process opens the same system on an index at the same path.
    """
    turns: tuple[tuple[View, ...], ...] = _OF_INDEX_WITHOUT_CITANCES
    if recommender.manifest.counts.citances:
        turns = _PORTABLE if portable else _OF_INDEX
    in_drafts = list(drafted(contexts, seed))
    tasks: list[tuple[View, list[Context]]] = []
    for view in sorted({view for turn in turns for view in turn}):
        places = [place for place in range(len(contexts)) if view in turns[place % len(turns)]]
        seen = [in_drafts[at] if view.in_draft else replace(contexts[at], cited_before=None) for at in places]
        tasks += [(view, part) for part in in_parts((context for context in seen if context is not None), _TASK)]
    done, whole = 0, sum(len(part) for _, part in tasks)
    examples: dict[int, list[Example]] = {}
    work = functools.partial(_examples_in, recommender, depth, seed)
    with contextlib.closing(outcomes_of(work, tasks, parallelism)) as outcomes:
        for number, of_task in outcomes:
            examples[number] = of_task
            done += len(tasks[number][1])
            on_progress(doing, done * len(contexts) // whole, len(contexts))
    return [example for number in sorted(examples) for example in examples[number]]


def _examples_in(
    recommender: Recommender, depth: int, seed: int, task: tuple[View, Sequence[Context]]
) -> list[Example]:
    """The examples of some contexts in one view."""
    view, contexts = task

    def changed(retriever: Retriever) -> Retriever:
        if view.withheld and isinstance(retriever, WordsRetriever):
            return WithheldCitances(retriever.words, retriever.settings, view.withheld, seed)
        return retriever

    system, examples = recommender.with_retrievers(changed), []
    k = min(depth, recommender.manifest.counts.papers)
    for topic, candidates in system.candidates(system.topics(contexts), k):
        cited = np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)).astype(np.int8)
        if cited.any():
            uncited = hidden(topic, candidates.rows, view.withheld, seed)
            by_citations = {name: np.where(uncited, np.nan, candidates.signal(name)) for name in _BY_CITATIONS}
            candidates = replace(candidates, signals={**candidates.signals, **by_citations})
            examples.append(Example(features_of(topic, candidates, uncited), cited))
    return examples


class WithheldCitances(WordsRetriever):
    """A retriever of words whose citing sentences are withheld for a share of the papers, other ones for each context.

    Args:
        words: The words of an index.
        settings: How they are searched.
        share: The share of the papers.
        seed: Seed of the choice.
    """

    def __init__(self, words: Words, settings: WordSettings, share: float = 0.5, seed: int = 0) -> None:
        super().__init__(words, settings)
        self._share, self._seed = share, seed

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        _prepared: None = None,
        *,
        sort: str = "relevance",
    ) -> Candidates:
        """The candidates of the retriever, without what is withheld."""
        candidates = super().search(topic, k, filters, sort=sort)
        if "citance" not in candidates.signals:
            return candidates
        without = hidden(topic, candidates.rows, self._share, self._seed)
        rest = replace(
            candidates,
            scores=np.where(without, candidates.signals["bm25"], candidates.scores),
            signals={
                name: np.where(without, np.nan, values) if name.startswith("citance") else values
                for name, values in candidates.signals.items()
            },
            citances=tuple(replace(one, keys=np.where(without, -1, one.keys)) for one in candidates.citances),
        )
        return rest.taken(np.flatnonzero(~np.isnan(rest.scores))).in_order()


def hidden(topic: Topic, rows: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """For which papers the citing sentences are withheld from a context, (rows,)."""
    number = np.uint64(hash_sample(seed, topic.context.context_id))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + number) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
    return (mixed >> np.uint64(32)).astype(np.float64) < share * 2.0**32
