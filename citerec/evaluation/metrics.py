"""Metrics in ranx's grammar, `recall@10`, and how right stated probabilities are; both from ranks of the cited papers.

ranx itself is not used: its import takes three seconds and its first call on a machine compiles for twenty, and from
ranks each metric is a line. Tests compare all of them with ranx, and most with trec_eval.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError
from citerec.files.text import names_in
from citerec.records import EVENTS, FIRST

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_METRICS = ("recall@10", "mrr@10", "ndcg@10")

Floats = npt.NDArray[np.float64]


class _Found:
    """The ranks of the cited papers of some contexts, as metrics with a cutoff see them.

    Attributes:
        ranks: Ascending, (contexts, papers); infinite where a paper is not among the first `cutoff` hits.
        hits: How many are, (contexts,).
        relevant: How many papers are cited, (contexts,).
    """

    def __init__(self, gold: npt.NDArray[np.int32], cutoff: int) -> None:
        self.cutoff = cutoff
        self.ranks = np.sort(np.where((gold > 0) & (gold <= cutoff), gold, np.inf), axis=1)
        self.hits = np.isfinite(self.ranks).sum(axis=1)
        self.relevant = np.maximum(1, (gold >= 0).sum(axis=1))


def _dcg(found: _Found) -> Floats:
    gains: Floats = (1 / np.log2(found.ranks + 1)).sum(axis=1)
    return gains


def _ideal_dcg(found: _Found) -> Floats:
    gains = np.cumsum(1 / np.log2(np.arange(found.ranks.shape[1]) + 2))
    ideal: Floats = gains[np.minimum(found.relevant, found.cutoff) - 1]
    return ideal


MEASURES: Mapping[str, Callable[[_Found], Floats]] = {
    "recall": lambda found: found.hits / found.relevant,
    "mrr": lambda found: 1 / found.ranks[:, 0],
    "ndcg": lambda found: _dcg(found) / _ideal_dcg(found),
    # Precision at the rank of each cited paper; 0 at one that is not found.
    "map": lambda found: (np.arange(1, found.ranks.shape[1] + 1) / found.ranks).sum(axis=1) / found.relevant,
    "hit_rate": lambda found: found.hits > 0,
    "precision": lambda found: found.hits / found.cutoff,
    "r-precision": lambda found: (found.ranks <= found.relevant[:, None]).sum(axis=1) / found.relevant,
    "f1": lambda found: 2 * found.hits / (found.cutoff + found.relevant),
    "hits": lambda found: found.hits,
    "dcg": _dcg,
}
_NAME = re.compile(r"([a-z][a-z0-9_-]*)(?:@([1-9][0-9]{0,8}))?")


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
        names = names_in(names)
    if not names:
        raise InputError("there is no metric", f"Name some: --metrics {','.join(DEFAULT_METRICS)}")
    return tuple(_parse(name, k) for name in dict.fromkeys(names))


def _parse(name: str, k: int) -> Metric:
    parsed = _NAME.fullmatch(name)
    measure = parsed[1] if parsed else ""
    if parsed is None or measure not in MEASURES:
        raise InputError(
            f"there is no metric {name!r}", f"Metrics are: {', '.join(MEASURES)}, with a cutoff such as @10."
        )
    cutoff = int(parsed[2] or 0)
    if cutoff and measure == "r-precision":
        raise InputError(f"{measure} has no cutoff", f"Write {measure}")
    if cutoff > k:
        raise InputError(f"{name} looks at {cutoff:,} hits, and {k:,} are retrieved", f"Ask for more: -k {cutoff}")
    return Metric(name, measure, cutoff)


def measure(metrics: Sequence[Metric], gold: npt.NDArray[np.int32], k: int) -> Floats:
    """Scores, contexts × metrics, by the ranks of the cited papers in the first k hits (`Ranking.gold`)."""
    of_cutoff = {cutoff: _Found(gold, cutoff or k) for cutoff in {metric.cutoff for metric in metrics}}
    scores = np.empty((len(gold), len(metrics)))
    for column, metric in enumerate(metrics):
        scores[:, column] = MEASURES[metric.measure](of_cutoff[metric.cutoff])
    return scores


BINS = 10


@dataclass(frozen=True, slots=True)
class Reliability:
    """How well stated probabilities fit what was right.

    Attributes:
        n: Number of answers.
        stated: Mean probability.
        right: Share of answers that are right.
        ece: Expected calibration error (Naeini et al., AAAI 2015), ten bins of equal width:
            `Σ_bin n_bin / n · |right_bin − stated_bin|`.
        brier: Mean squared difference between probability and outcome (Brier, 1950).
    """

    n: int
    stated: float
    right: float
    ece: float
    brier: float


def reliability(stated: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> Reliability:
    """The reliability of at least one probability, (answers,), given which answers are right, (answers,)."""
    of_bin = np.minimum((stated * BINS).astype(int), BINS - 1)
    sums = [np.bincount(of_bin, values, BINS) for values in (stated, right)]
    return Reliability(
        n=len(stated),
        stated=float(stated.mean()),
        right=float(right.mean()),
        ece=float(np.abs(sums[0] - sums[1]).sum() / len(stated)),
        brier=float(np.square(stated - right).mean()),
    )


def outcomes_stated(ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Which of `EVENTS` came true, (contexts, events), by the ranks of the cited papers, (contexts, papers)."""
    within = [((ranks >= 1) & (ranks <= last)).any(axis=1) for last in (1, FIRST)]
    return np.stack(within, axis=1)


def reliabilities(
    stated: "pd.DataFrame", ranks: npt.NDArray[np.int32], contexts: Any, k: int
) -> dict[str, Reliability]:
    """The reliability of a system by event; no event that k hits cannot show, and none if nothing was stated.

    Args:
        stated: The confidence in answers: `context`, and a column for each event.
        ranks: The ranks of the cited papers, (contexts, papers).
        contexts: The ids of these contexts.
        k: How many hits were looked at.
    """
    import pandas as pd

    right = outcomes_stated(ranks[pd.Index(contexts).get_indexer(stated["context"])])
    return {
        event: reliability(stated[event].to_numpy(np.float64), right[:, column])
        for column, event in enumerate(EVENTS)
        if len(stated) and (event == "first" or k >= FIRST)
    }
