"""Correlations of two measures of the same texts, with the intervals of the bootstrap over their citing papers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from citerec.evaluation.statistics import LEVEL, Floats, drawn_times

COEFFICIENTS = ("pearson", "spearman", "kendall")

_LEAST = 3  # points: the correlation of two is always 1 or -1
_DECIMALS = 12  # what differs after them differs by rounding


def times_of(citing: Sequence[Any]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """How often texts count, by their citing papers: each once, then in bootstrap samples; (1 + samples) × texts."""
    _, clusters = np.unique(citing, return_inverse=True)
    return np.concatenate([np.ones((1, len(clusters))), drawn_times(clusters, 0)]).astype(np.int64)


def bootstrapped(samples: Sequence[Floats]) -> dict[str, Any]:
    """Correlations of some points, with the 95 % intervals of their bootstrap samples.

    Args:
        samples: The points, then each bootstrap sample of them: 2 × points.

    Returns:
        `n` points; by coefficient `values`, None for fewer than three points or where `coefficients` has none; `ci`.
    """
    n = samples[0].shape[1]
    table = pd.DataFrame([coefficients(*sample) for sample in (samples if n >= _LEAST else ())], columns=COEFFICIENTS)
    if table[:1].dropna().empty:
        return {"n": n, "values": dict.fromkeys(COEFFICIENTS), "ci": dict.fromkeys(COEFFICIENTS)}
    bounds = table[1:].dropna().quantile([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    ci = {name: bounds[name].tolist() if len(bounds.dropna()) else None for name in COEFFICIENTS}
    return {"n": n, "values": table.iloc[0].to_dict(), "ci": ci}


def coefficients(first: Floats, second: Floats) -> list[float]:
    """Pearson's r, Spearman's rho and Kendall's tau-b (by scipy) of some points; NaN if one of both is constant."""
    from scipy import stats

    pair = np.round([first, second], _DECIMALS)
    if min(map(len, map(np.unique, pair))) < 2:
        return [np.nan] * len(COEFFICIENTS)
    # Spearman's rho is Pearson's r of the ranks; scipy's functions for both are slow, since they test it, too.
    pearson, spearman = (np.corrcoef(values)[0, 1] for values in (pair, stats.rankdata(pair, axis=1)))
    return [float(pearson), float(spearman), float(stats.kendalltau(*pair).statistic)]
