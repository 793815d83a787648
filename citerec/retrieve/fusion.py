"""Fusion of ranked lists, and of retrievers."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.files.progress import stage
from citerec.records import NO_FILTERS, Filters, Match, Paper, Reason
from citerec.retrieve.base import Candidate, Candidates, Citances, Floats, OpenIndex, Retriever, Rows
from citerec.settings import PartSettings, Weight


class Fusion(PartSettings):
    """How the lists of several retrievers are fused. Defaults were chosen on dev contexts: docs/results.md.

    Attributes:
        method: `weighted`: scores of each list scaled to 0–1, then summed, shares as they are; rrf: reciprocal ranks.
        k: Of `rrf`: a hit scores weight / (k + rank).
        depth: How many hits of each list are fused.
        feedback: How many of the first fused papers feed a second search by vectors.
        feedback_weight: Weight of the mean of their vectors, against 1 for the query's.
    """

    method: Literal["weighted", "rrf"] = "weighted"
    k: float = Field(default=20, gt=0)
    depth: int = Field(default=1000, ge=1)
    feedback: int = Field(default=0, ge=0, le=1000)
    feedback_weight: Weight = 0.3


class FusedRetriever:
    """Searches with several retrievers and fuses their lists. Safe to call from several threads."""

    def __init__(
        self, index: OpenIndex, retrievers: Mapping[str, Retriever], weights: Mapping[str, float], fusion: Fusion
    ) -> None:
        self._index = index
        self._retrievers = dict(retrievers)
        self._weights = weights
        self._fusion = fusion

    def prepare(self, topics: Sequence[Topic]) -> list[dict[str, Any]]:
        """What the searches of each topic need, by retriever; made for all topics together."""
        by_retriever = {name: retriever.prepare(topics) for name, retriever in self._retrievers.items()}
        return [{name: of_topics[place] for name, of_topics in by_retriever.items()} for place in range(len(topics))]

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        prepared: Mapping[str, Any] | None = None,
        *,
        explain: bool = False,
    ) -> Candidates:
        """The k best candidates, best first; arguments and errors as for `Retriever.search`.

        With `explain`, candidates of several lists report what each list gave them.
        """
        with stage("query"):
            inputs = dict(prepared or self.prepare([topic])[0])
        depth = k if len(self._retrievers) == 1 else max(self._fusion.depth, k)
        lists = {name: self._list(name, topic, depth, filters, inputs) for name in self._retrievers}
        with stage("fusion"):
            if len(lists) == 1:
                (fused,) = lists.values()
            else:
                lists = dict(self._index.with_same_rows(lists))
                if self._fusion.feedback:
                    self._feed_back(lists, topic, depth, filters, inputs)
                labels = {name: retriever.label for name, retriever in self._retrievers.items()}
                fused = fuse(lists, self._weights, self._fusion, k, labels if explain else None)
            for name, retriever in self._retrievers.items():
                # Rerankers need its scores of the candidates that only other retrievers found.
                values = fused.signal(name).copy()
                missing = np.flatnonzero(np.isnan(values))
                further = dict(retriever.signals(topic, fused.rows, filters))
                if len(missing) and (scores := retriever.scored(inputs[name], fused.rows[missing])) is not None:
                    values[missing] = scores
                    further[name] = values
                fused = replace(fused, signals={**fused.signals, **further})
            return fused

    def _feed_back(
        self, lists: dict[str, Candidates], topic: Topic, depth: int, filters: Filters, inputs: dict[str, Any]
    ) -> None:
        """Searches again, where a retriever can, for what is nearer to the first fused papers."""
        at_hand, summed, _ = _summed(lists, self._weights, self._fusion)
        first = at_hand[np.argsort(-summed, kind="stable")[: self._fusion.feedback]]
        for name, retriever in self._retrievers.items():
            drawn = retriever.with_feedback(inputs[name], first, self._fusion.feedback_weight)
            if drawn is None:
                continue
            inputs[name] = drawn
            scores = retriever.scored(drawn, at_hand)
            if scores is None:
                lists[name] = self._list(name, topic, depth, filters, inputs)
            else:
                places = np.flatnonzero(~np.isnan(scores))
                again = Candidates(lists[name].papers, at_hand[places], scores[places], {name: scores[places]})
                lists[name] = again.in_order()[:depth]

    def explain(
        self, topic: Topic, candidates: Sequence[Candidate], papers: Mapping[str, Paper]
    ) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first, whatever found it."""
        if self._index.words is not None:
            return self._index.words.explain(topic, candidates, papers)
        matches = [retriever.explain(topic, candidates, papers) for retriever in self._retrievers.values()]
        return [tuple(itertools.chain.from_iterable(of_one)) for of_one in zip(*matches, strict=True)]

    def _list(self, name: str, topic: Topic, k: int, filters: Filters, prepared: Mapping[str, Any]) -> Candidates:
        retriever = self._retrievers[name]
        with stage(name):
            candidates = retriever.search(topic, k, filters, prepared[name])
        if not retriever.filters_itself:
            return self._index.permitted(name, candidates, filters)[:k]
        return candidates if isinstance(candidates, Candidates) else self._index.permitted(name, candidates, NO_FILTERS)


def fuse(
    lists: Mapping[str, Candidates],
    weights: Mapping[str, float],
    fusion: Fusion,
    k: int | None = None,
    labels: Mapping[str, str] | None = None,
) -> Candidates:
    """The k best candidates (all by default) of several lists, best first; ties are ordered by paper id.

    `rrf` is reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): `Σ_list w_list / (k + rank)`.
    `weighted` scales the scores of each list to 0–1 first: `Σ_list w_list · (score − least) / (most − least)`. A
    paper that is not in a list gets nothing for it. Lists (at least one), weights and labels are given by the names of
    retrievers; a missing weight is 1. With labels, candidates report what each list gave them.
    """
    rows, scores, shares = _summed(lists, weights, fusion)
    best = np.argsort(-scores, kind="stable")[:k]  # rows are in order: ties stay so
    to_best = np.full(len(rows), -1)
    to_best[best] = np.arange(len(best))
    signals: dict[str, Floats] = {}
    citances: list[Citances] = []
    for candidates in lists.values():
        places = to_best[np.searchsorted(rows, candidates.rows)]
        kept = np.flatnonzero(places >= 0)
        at = places[kept]
        for signal, values in candidates.signals.items():
            signals.setdefault(signal, np.full(len(best), np.nan))[at] = values[kept]
        for column in candidates.citances:
            keys = np.full(len(best), -1)
            keys[at] = column.keys[kept]
            citances.append(replace(column, keys=keys))
    reasons = _reasons(labels, {name: share[best].tolist() for name, share in shares.items()}) if labels else ()
    papers = next(iter(lists.values())).papers
    return Candidates(papers, rows[best], scores[best], {**signals, "fused": scores[best]}, tuple(citances), reasons)


def _summed(
    lists: Mapping[str, Candidates], weights: Mapping[str, float], fusion: Fusion
) -> "tuple[Rows, Floats, dict[str, Floats]]":
    """The rows of all candidates of some lists, in order, their fused scores, and what each list adds to these."""
    # Sorting is faster than np.unique, which hashes first.
    rows = np.sort(np.concatenate([hits.rows for hits in lists.values()]))
    rows = rows[np.diff(rows, prepend=-1) > 0]
    shares = {}
    for name, hits in lists.items():
        shares[name] = np.zeros(len(rows))
        shares[name][np.searchsorted(rows, hits.rows)] = weights.get(name, 1.0) * _shares(hits, fusion)
    return rows, np.sum(list(shares.values()), axis=0), shares


def _reasons(labels: Mapping[str, str], shares: Mapping[str, Sequence[float]]) -> tuple[tuple[Reason, ...], ...]:
    """What each list gave each candidate; a list that lacks a candidate gave it 0."""
    names = [labels[name] for name in shares]
    return tuple(strongest(map(Reason, names, values)) for values in zip(*shares.values(), strict=True))


def strongest(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Reasons whose score is not 0, the strongest first, positive or negative."""
    return tuple(sorted((one for one in reasons if one.score), key=lambda one: (-abs(one.score), one.name)))


def _shares(hits: Candidates, fusion: Fusion) -> Floats:
    """What each candidate of a list, best first, adds to its fused score, against a weight of 1."""
    scores = hits.scores
    if fusion.method == "rrf":
        return 1 / (fusion.k + np.arange(1, len(scores) + 1))
    if hits.are_shares:
        return scores
    # If all scores are equal, all are best.
    span = scores[0] - scores[-1] if len(scores) else 0.0
    return (scores - scores[-1]) / span if span > 0 else np.ones(len(scores))
