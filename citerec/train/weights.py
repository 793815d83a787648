"""The weight of a reranker's score against that of the search, tuned on dev."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from citerec.evaluation.metrics import measure, parse_metrics
from citerec.evaluation.rank import NOT_FOUND
from citerec.rerank.base import standardised
from citerec.train.groups import Group

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0)
"""Weights of the reranker's score that are tried on dev."""

METRICS = ("mrr@10", "recall@10")
_CUTOFF = 10


def tuned(measured: Sequence[tuple[Group, npt.NDArray[np.float32]]]) -> tuple[float, dict[str, float]]:
    """The best mrr@10 on dev over the weights of a reranker's score, and results with the best weight.

    Args:
        measured: Dev groups, each with the scores of its first candidates.

    Returns:
        The best value with any weight but 0: a model that does not help yet may still be improving, and with weight 0
        this would not show. Then the best weight as `weight`, the metrics with it, and those `before`, without the
        reranker.
    """
    values = {weight: metrics_at(measured, weight) for weight in WEIGHTS}
    weight = max(WEIGHTS, key=lambda weight: (values[weight]["mrr@10"], -weight))
    before = {f"{metric} before": value for metric, value in values[0.0].items()}
    best = max(values[weight]["mrr@10"] for weight in WEIGHTS[1:])
    return best, {"weight": weight, **values[weight], **before}


def metrics_at(measured: Sequence[tuple[Group, npt.NDArray[np.float32]]], weight: float) -> dict[str, float]:
    """The metrics on dev with some weight of the reranker's score."""
    rankings = []
    for group, scores in measured:
        ids = [candidate.paper_id for candidate in group.candidates]
        own = np.array([candidate.score for candidate in group.candidates[: len(scores)]])
        new = zip((standardised(own) + weight * standardised(scores)).tolist(), ids, strict=False)
        read = [paper_id for _, paper_id in sorted(new, key=lambda one: (-one[0], one[1].encode()))]
        rankings.append([*read, *ids[len(read) :]])
    return metrics_of([group for group, _ in measured], rankings, METRICS)


def metrics_of(groups: Sequence[Group], rankings: Sequence[Sequence[str]], metrics: Sequence[str]) -> dict[str, float]:
    """Metrics with a cutoff of at most 10 for rankings of papers, a ranking for each group."""
    gold = np.full((len(groups), max(len(group.gold) for group in groups)), -1, np.int32)
    for row, (group, ranking) in enumerate(zip(groups, rankings, strict=True)):
        ranks = {paper_id: rank for rank, paper_id in enumerate(ranking, 1)}
        gold[row, : len(group.gold)] = [ranks.get(paper_id, NOT_FOUND) for paper_id in group.gold]
    means = measure(parse_metrics(metrics, _CUTOFF), gold, _CUTOFF).mean(axis=0)
    return {metric: round(float(mean), 4) for metric, mean in zip(metrics, means, strict=True)}
