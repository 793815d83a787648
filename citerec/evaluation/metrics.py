"""Metrics by ranx, in its grammar: `recall@10`. One line each."""

import difflib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError

DEFAULT_METRICS = ("recall@10", "mrr@10", "ndcg@10")

# Name in the grammar: name of the function in ranx.metrics.
MEASURES = {
    "recall": "recall",
    "mrr": "reciprocal_rank",
    "ndcg": "ndcg",
    "map": "average_precision",
    "hit_rate": "hit_rate",
    "precision": "precision",
    "r-precision": "r_precision",
    "f1": "f1",
    "hits": "hits",
    "dcg": "dcg",
}
_WITHOUT_CUTOFF = ("r-precision",)
_NAME = re.compile(r"([a-z][a-z0-9_-]*)(?:@([1-9][0-9]{0,8}))?")
_CELLS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure with its cutoff; 0 for none."""

    name: str
    measure: str
    cutoff: int


def parse_metrics(names: str | Sequence[str], k: int) -> tuple[Metric, ...]:
    """Metrics by name, such as "recall@10", a list or a string with commas, of the first k hits; repeats are left out.

    Raises:
        InputError: A metric is unknown, or its cutoff is above k.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    if not names:
        raise InputError("there is no metric", f"Name some: --metrics {','.join(DEFAULT_METRICS)}")
    return tuple(_parse(name, k) for name in dict.fromkeys(names))


def _parse(name: str, k: int) -> Metric:
    parsed = _NAME.fullmatch(name)
    measure = parsed[1] if parsed else ""
    if parsed is None or measure not in MEASURES:
        near = difflib.get_close_matches(name.partition("@")[0].lower(), MEASURES, n=1)
        known = f"Metrics are: {', '.join(MEASURES)}, with a cutoff such as @10."
        given = name.rpartition("@")[2]
        cutoff_of = given if given.isdecimal() and given not in ("0", name) else "10"
        raise InputError(f"there is no metric {name!r}", f"Did you mean {near[0]}@{cutoff_of}?" if near else known)
    cutoff = int(parsed[2] or 0)
    if cutoff and measure in _WITHOUT_CUTOFF:
        raise InputError(f"{measure} has no cutoff", f"Write {measure}")
    if cutoff > k:
        raise InputError(f"{name} looks at {cutoff:,} hits, and {k:,} are retrieved", f"Ask for more: -k {cutoff}")
    return Metric(name, measure, cutoff)


def load(metrics: Sequence[Metric]) -> None:
    """Imports ranx, and compiles what these metrics need; both take seconds, and happen once."""
    measure(metrics, np.ones((1, 1), np.int32), max(1, *(metric.cutoff for metric in metrics)))


def measure(metrics: Sequence[Metric], gold: npt.NDArray[np.int32], k: int) -> npt.NDArray[np.float64]:
    """Scores, contexts × metrics, by the ranks of the cited papers in the first k hits (`Ranking.gold`)."""
    functions = [_function(metric.measure) for metric in metrics]
    scores = np.empty((len(gold), len(metrics)))
    hits = np.arange(1.0, k + 1)
    # A metric sees ranks only. So all contexts may share one list of hits, named 1 … k, in which a paper found at rank
    # r is named r; the others get names beyond k. ranx ignores papers that are not relevant: unused slots.
    template = np.stack([hits, -hits], axis=1)
    size = max(1, _CELLS_AT_ONCE // k)
    for start in range(0, len(gold), size):
        part = gold[start : start + size]
        beyond = k + 1.0 + np.arange(part.shape[1])
        qrels = np.stack([np.where(part > 0, part, beyond), part >= 0], axis=2)
        run = np.repeat(template[None], len(part), axis=0)
        for column, (metric, function) in enumerate(zip(metrics, functions, strict=True)):
            arguments = () if metric.measure in _WITHOUT_CUTOFF else (metric.cutoff,)
            scores[start : start + size, column] = function(qrels, run, *arguments)
    return scores


def _function(name: str) -> Callable[..., npt.NDArray[np.float64]]:
    """A metric of ranx. Its import takes seconds; its first call on a machine compiles it, which takes as many.

    Warnings about ranx's own code are hidden: about imports, and about a cast that is safe for ranks.
    """
    with warnings.catch_warnings(action="ignore"):
        from ranx import metrics

    def unwarned(*arguments: Any) -> npt.NDArray[np.float64]:
        with warnings.catch_warnings(action="ignore"):
            scores: npt.NDArray[np.float64] = getattr(metrics, MEASURES[name])(*arguments)
        return scores

    return unwarned
