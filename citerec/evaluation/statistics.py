"""Confidence intervals and significance. Citing papers are resampled: sentences of one paper resemble each other."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 1000
FLIPS = 10_000
LEVEL = 0.95
_CELLS_AT_ONCE = 8_000_000


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of the scores of each citing paper's contexts, for resampling.

    Attributes:
        sums: Citing papers × (groups × metrics).
        counts: How many contexts, citing papers × groups.
    """

    sums: Floats
    counts: Floats


def total(scores: Floats, clusters: npt.NDArray[np.int32], members: npt.NDArray[np.bool_]) -> Totals:
    """Adds up scores, contexts × metrics, by the numbers of citing papers; members are contexts × groups."""
    order = np.argsort(clusters, kind="stable")
    _, starts = np.unique(clusters[order], return_index=True)
    scores, counts = scores[order], members[order].astype(np.float64)
    parts = [np.add.reduceat(scores * counts[:, [group]], starts, axis=0) for group in range(counts.shape[1])]
    return Totals(np.concatenate(parts, axis=1), np.add.reduceat(counts, starts, axis=0))


def intervals(totals: Totals, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Percentile bootstrap of means over contexts, citing papers drawn with replacement.

    Davison & Hinkley, Bootstrap Methods and their Application (1997), sections 5.3.1 (percentiles), 3.8 (clusters).

    Returns:
        Groups × metrics × 2: lower and upper bound of 95 %; NaN for a group of fewer than two citing papers.
    """
    papers, groups = totals.counts.shape
    metrics = totals.sums.shape[1] // groups
    random = np.random.default_rng(seed)
    means = []
    for size in _chunks(resamples, papers):
        times = _drawn(random, size, papers)
        sums = (times @ totals.sums).reshape(size, groups, metrics)
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append(sums / (times @ totals.counts)[:, :, None])
    tail = (1 - LEVEL) / 2
    enough = (totals.counts > 0).sum(axis=0) >= 2
    bounds = np.full((groups, metrics, 2), np.nan)
    if enough.any():
        drawn_means = np.concatenate(means)[:, enough]
        bounds[enough] = np.moveaxis(np.nanquantile(drawn_means, [tail, 1 - tail], axis=0), 0, -1)
    return bounds


def drawn_times(clusters: npt.NDArray[np.int_], seed: int, resamples: int = RESAMPLES) -> Floats:
    """How often each item counts in bootstrap samples as `intervals` draws them, for statistics that are no means.

    Args:
        clusters: The number of each item's citing paper, from 0 without gaps.
        seed: Seed of the samples.
        resamples: How many samples.

    Returns:
        Samples × items; no sample if there are fewer than two citing papers.
    """
    papers = int(clusters.max(initial=-1)) + 1
    return _drawn(np.random.default_rng(seed), resamples if papers > 1 else 0, papers)[:, clusters]


def randomisation_test(first: Totals, second: Totals, seed: int, flips: int = FLIPS) -> Floats:
    """Paired randomisation test, two-sided: how often is a difference as large when systems swap names at random?

    Names are swapped for all contexts of a citing paper at once (Smucker, Allan & Carterette, CIKM 2007). The p
    value counts the observed outcome among the random ones (Phipson & Smyth 2010), so it is never 0.

    Returns:
        p values, groups × metrics.
    """
    papers, groups = first.counts.shape
    differences = first.sums - second.sums
    observed = np.abs(differences.sum(axis=0))
    random = np.random.default_rng(seed)
    as_large = np.zeros(differences.shape[1])
    for size in _chunks(flips, papers):
        signs = random.integers(0, 2, (size, papers), dtype=np.int8) * 2.0 - 1.0
        # A tolerance, so that rounding does not make an equal difference smaller.
        as_large += (np.abs(signs @ differences) >= observed - 1e-9).sum(axis=0)
    return ((as_large + 1) / (flips + 1)).reshape(groups, -1)


def holm(p_values: Floats) -> Floats:
    """Corrects p values by Holm's step-down method (Holm, Scandinavian Journal of Statistics 1979)."""
    order = np.argsort(p_values)
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    return np.minimum(stepped, 1)[np.argsort(order)]


def _drawn(random: np.random.Generator, size: int, papers: int) -> Floats:
    """How often each citing paper is drawn in some bootstrap samples, samples × papers."""
    drawn = random.integers(0, papers, (size, papers))
    drawn += np.arange(size)[:, None] * papers
    return np.bincount(drawn.ravel(), minlength=size * papers).reshape(size, papers).astype(np.float64)


def _chunks(whole: int, width: int) -> Iterator[int]:
    """Splits a number of rows into chunks that fit into memory."""
    size = max(1, _CELLS_AT_ONCE // max(1, width))
    for start in range(0, whole, size):
        yield min(size, whole - start)
