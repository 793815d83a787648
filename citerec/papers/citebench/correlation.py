"""How well metrics of texts agree with people's ratings: correlations over texts and over systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.figures import DATASET, Figures, Flags, Interval
from citerec.evaluation.files import plain
from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.evaluation.statistics import LEVEL, RESAMPLES, Floats, drawn_times
from citerec.papers.citebench.ratings import mean_ratings
from citerec.papers.citebench.sheets import SCALES

KIND = "citerec-rating-correlations"
VERSION = 1
COEFFICIENTS = ("pearson", "spearman", "kendall")

_LEAST = 3  # points: the correlation of two is always 1 or -1
_CELLS_AT_ONCE = 4_000_000
_ROUNDING = 1e-24


@dataclass(frozen=True, slots=True)
class Correlation:
    """A metric and a scale on which people rated.

    Attributes:
        level: Whether its points are texts of all systems, or means of systems over the texts that were rated.
        metric: The column of the metric.
        scale: The scale.
        n: How many texts or systems.
        values: By coefficient: Pearson's r, Spearman's rho, Kendall's tau-b; None if one of both is constant, or for
            fewer than three points.
        ci: Their intervals of 95 %.
    """

    level: str
    metric: str
    scale: str
    n: int
    values: Mapping[str, float | None]
    ci: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Correlated:
    """Correlations of all metrics with all scales.

    Attributes:
        texts: How many texts were both rated and measured, of how many rated (`of`).
        systems: The systems, without upper bounds.
    """

    correlations: tuple[Correlation, ...]
    texts: int
    of: int
    systems: tuple[str, ...]
    seed: int
    resamples: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return plain(
            {
                "kind": KIND,
                "version": VERSION,
                "texts": {"measured": self.texts, "of_rated": self.of},
                "systems": self.systems,
                "correlations": self.correlations,
                "seed": self.seed,
                "resamples": self.resamples,
            }
        )


def correlate(
    sheets: Sequence[Path], key: Path, results: Figures, *, seed: int = 0, resamples: int = RESAMPLES
) -> Correlated:
    """Correlates the metrics of results with ratings of the same texts.

    A text counts once, by the mean of its ratings. Upper bounds are left out. Intervals are percentiles of the
    bootstrap; citing papers are drawn, as for means (`citerec.evaluation.statistics`).

    Args:
        sheets: Sheets that people filled in.
        key: Their key.
        results: Results of `evaluate_texts` for the texts of the sheets; systems have the same names there.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.

    Raises:
        InputError: A sheet or the key cannot be read, the results are of ranked lists, or have none of the texts.
    """
    if not results.of_texts:
        raise InputError("these results are of ranked lists", "Give those of eval-text.")
    items = results.items
    places = {
        (labels.get(DATASET, ""), task_id): number
        for number, (labels, task_id) in enumerate(zip(items.labels, items.ids, strict=True))
    }
    oracles = {name for name, system in results.systems.items() if system.is_oracle}
    rated = [(item, means) for item, means in mean_ratings(sheets, key) if item.system not in oracles]
    rows = [
        (item.system, places[item.dataset, item.task_id], [means[scale] for scale in SCALES])
        for item, means in rated
        if item.system in items.scores and (item.dataset, item.task_id) in places
    ]
    if not rows:
        raise InputError(
            "the results have none of the texts that were rated",
            "Evaluate the files from which the sheets were made: citerec eval-text … --out FOLDER",
        )
    names, numbers, ratings = zip(*rows, strict=True)
    scores = np.array([items.scores[name][number] for name, number in zip(names, numbers, strict=True)])
    _, clusters = np.unique(items.citing[list(numbers)], return_inverse=True)
    systems = tuple(dict.fromkeys(names))
    of_system = np.array([[name == one for one in systems] for name in names])
    people = np.array(ratings, np.float64)
    times = drawn_times(clusters, seed, resamples)
    found = [
        correlation
        for place, column in enumerate(results.columns)
        for number, scale in enumerate(SCALES)
        for correlation in _both(column.name, scale, scores[:, place], people[:, number], of_system, times)
    ]
    return Correlated(tuple(found), len(rows), len(rated), systems, seed, resamples)


def coefficients(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Pearson's r, Spearman's rho and Kendall's tau-b of points that count several times, or not at all.

    Ranks, with the mean rank for equal values, and the pairs of Kendall (1945) come from the signs of the differences
    between all points, so that many samples are computed at once.

    Args:
        first: Samples × points, or 1 × points for all samples.
        second: In the same way.
        weights: Samples × points: how often each point counts.

    Returns:
        Samples × 3; NaN if one of both is constant.
    """
    signs = [np.sign(values[:, :, None] - values[:, None, :]) for values in (first, second)]
    first_ranks, second_ranks = ((one @ weights[:, :, None])[:, :, 0] for one in signs)

    def pairs(values: Floats) -> Floats:
        summed: Floats = ((weights[:, None, :] @ values)[:, 0] * weights).sum(axis=1)
        return summed

    with np.errstate(invalid="ignore", divide="ignore"):
        kendall = pairs(signs[0] * signs[1]) / np.sqrt(pairs(signs[0] ** 2) * pairs(signs[1] ** 2))
        pearson, spearman = _pearson(first, second, weights), _pearson(first_ranks, second_ranks, weights)
    return np.stack([pearson, spearman, kendall], axis=1)


def _pearson(first: Floats, second: Floats, weights: Floats) -> Floats:
    whole = weights.sum(axis=1, keepdims=True)
    x, y = (values - (values * weights).sum(axis=1, keepdims=True) / whole for values in (first, second))
    xx, yy, xy = ((one * weights).sum(axis=1) for one in (x * x, y * y, x * y))
    # Only rounding makes the differences of a constant from its mean.
    scale = (np.square(first) * weights).sum(axis=1) * (np.square(second) * weights).sum(axis=1)
    return np.asarray(xy / np.sqrt(np.where(xx * yy > _ROUNDING * scale, xx * yy, np.nan)), np.float64)


def _both(
    metric: str, scale: str, scores: Floats, ratings: Floats, of_system: Flags, times: Floats
) -> list[Correlation]:
    """Correlations over texts, and over means of systems, where both are known."""
    known = ~(np.isnan(scores) | np.isnan(ratings))
    scores, ratings, of_system, times = scores[known], ratings[known], of_system[known], times[:, known]
    every = np.concatenate([np.ones((1, int(known.sum()))), times])  # first the texts themselves, each once
    found = [_of_points("texts", metric, scale, scores[None], ratings[None], every)]
    counts = every @ of_system
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [(every * values) @ of_system / counts for values in (scores, ratings)]
    there = (counts > 0).astype(np.float64)  # a sample may have no text of a system
    kept = there[0] > 0
    measured, rated = (np.where(there > 0, one, 0)[:, kept] for one in means)
    return [*found, _of_points("systems", metric, scale, measured, rated, there[:, kept])]


def _of_points(level: str, metric: str, scale: str, first: Floats, second: Floats, weights: Floats) -> Correlation:
    """The first sample gives the values, the others the intervals."""
    n = weights.shape[1]
    if n < _LEAST:
        none = dict.fromkeys(COEFFICIENTS)
        return Correlation(level, metric, scale, n, none, none)
    size = max(1, _CELLS_AT_ONCE // n**2)
    same = len(first) == 1  # the points of all samples
    parts = [slice(begin, begin + size) for begin in range(0, len(weights), size)]
    points = [(first, second) if same else (first[part], second[part]) for part in parts]
    found = np.concatenate([coefficients(*pair, weights[part]) for pair, part in zip(points, parts, strict=True)])
    tail = (1 - LEVEL) / 2
    values: dict[str, float | None] = {}
    ci: dict[str, Interval] = {}
    for name, (value, *drawn) in zip(COEFFICIENTS, found.T.tolist(), strict=True):
        defined = [one for one in drawn if not np.isnan(one)]
        values[name] = None if np.isnan(value) else value
        ci[name] = None
        if defined and values[name] is not None:
            low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
            ci[name] = (low, high)
    return Correlation(level, metric, scale, n, values, ci)


def correlations_table(found: Correlated, level: str) -> Table:
    """The correlations over texts, or over systems."""
    table = Table([*left("scale", "metric"), *right("n", format=","), *right("Pearson", "Spearman", "Kendall")])
    last = ""
    for scale in SCALES:
        for one in found.correlations:
            if (one.level, one.scale) == (level, scale):
                cells = [_cell(one.values[name], one.ci[name]) for name in COEFFICIENTS]
                table.rows.append([scale if scale != last else "", one.metric, one.n, *cells])
                last = scale
    return table


def _cell(value: float | None, ci: Interval) -> Cell:
    shown, *bounds = ("–" if one is None else f"{round(one, 2) + 0.0:.2f}" for one in (value, *(ci or ())))
    return Cell(value, ((shown, ""), (f" [{' '.join(bounds)}]" if bounds else "", "faint")))
