"""Means of groups of items with confidence intervals, and tests of differences between systems.

Citing papers are resampled: sentences of one paper resemble each other.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from citerec.diagnostics.families import FEW

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]
Group = tuple[str, str]
"""A family and a class of it; "overall" twice for all items."""

OVERALL = "overall"
ALL: Group = (OVERALL, OVERALL)
DATASET = "dataset"
"""The family whose classes are data sets."""
UNNAMED = "no name"
"""The data set of texts without a name of one, if other texts have one."""
SIGNIFICANT = 0.05
"""Differences with a lower corrected p are marked."""

RESAMPLES = 1000
FLIPS = 10_000
LEVEL = 0.95
_CELLS_AT_ONCE = 8_000_000


class Totals(NamedTuple):
    """Sums over each citing paper's items, for resampling: citing papers × groups × columns.

    Attributes:
        sums: Of the values that are defined.
        counts: How many these are.
    """

    sums: Floats
    counts: Floats


def total(scores: Floats, clusters: Ints, members: Flags) -> Totals:
    """Adds up scores, items × columns and NaN if not defined, by citing paper and group; members are items × groups."""
    order = np.argsort(clusters, kind="stable")
    _, starts = np.unique(clusters[order], return_index=True)
    inside, defined = members[order].astype(np.float64).T[:, :, None], ~np.isnan(scores[order])
    parts = [np.where(defined, scores[order], 0.0), defined.astype(np.float64)]
    sums, counts = (np.stack([np.add.reduceat(one * group, starts, axis=0) for group in inside], 1) for one in parts)
    return Totals(sums, counts)


def intervals(totals: Totals, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Percentile bootstrap of means over items, citing papers drawn with replacement.

    Davison & Hinkley, Bootstrap Methods and their Application (1997), sections 5.3.1 (percentiles), 3.8 (clusters).

    Returns:
        Groups × columns × 2: lower and upper bound of 95 %; NaN for a group of fewer than two citing papers.
    """
    papers, *shape = totals.counts.shape
    sums, counts = totals.sums.reshape(papers, -1), totals.counts.reshape(papers, -1)
    random = np.random.default_rng(seed)
    means = []
    for size in _chunks(resamples, papers):
        times = _drawn(random, size, papers)
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append((times @ sums) / (times @ counts))
    enough = (counts > 0).sum(axis=0) >= 2
    bounds = np.full((2, len(enough)), np.nan)
    if enough.any():
        tail = (1 - LEVEL) / 2
        bounds[:, enough] = np.nanquantile(np.concatenate(means)[:, enough], [tail, 1 - tail], axis=0)
    return bounds.T.reshape(*shape, 2)


def times_of(citing: Sequence[Any]) -> npt.NDArray[np.int64]:
    """How often items count, for statistics that are no means: each once, then in samples as `intervals` draws them.

    Args:
        citing: The citing paper of each item.

    Returns:
        (1 + samples) × items; no sample if there are fewer than two citing papers.
    """
    papers, clusters = np.unique(citing, return_inverse=True)
    drawn = _drawn(np.random.default_rng(0), RESAMPLES if len(papers) > 1 else 0, len(papers))
    return np.concatenate([np.ones((1, len(papers))), drawn]).astype(np.int64)[:, clusters]


def randomisation_test(differences: Totals, seed: int, flips: int = FLIPS) -> Floats:
    """Paired randomisation test, two-sided: how often is a difference as large when systems swap names at random?

    Names are swapped for all items of a citing paper at once (Smucker, Allan & Carterette, CIKM 2007). The p value
    counts the observed outcome among the random ones (Phipson & Smyth 2010), so it is never 0.

    Args:
        differences: Of the scores of two systems.
        seed: Seed of the flips.
        flips: How many.

    Returns:
        p values, groups × columns.
    """
    papers, *shape = differences.sums.shape
    sums = differences.sums.reshape(papers, -1)
    observed = np.abs(sums.sum(axis=0))
    random = np.random.default_rng(seed)
    as_large = np.zeros(len(observed))
    for size in _chunks(flips, papers):
        signs = random.integers(0, 2, (size, papers), dtype=np.int8) * 2.0 - 1.0
        # A tolerance, so that rounding does not make an equal difference smaller.
        as_large += (np.abs(signs @ sums) >= observed - 1e-9).sum(axis=0)
    return ((as_large + 1) / (flips + 1)).reshape(shape)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Corrects p values by Holm's step-down method (Holm, Scandinavian Journal of Statistics 1979)."""
    p_values = np.asarray(p_values, np.float64)
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


class Mean(NamedTuple):
    """A mean over the n items of a group for which the value is defined; None if n is 0.

    `ci` is the 95 % interval; None if the items are of fewer than two citing papers.
    """

    n: int
    value: float | None
    ci: tuple[float, float] | None


class Scores(NamedTuple):
    """Means by column over the n items of one class, or over all."""

    n: int
    means: Mapping[str, Mean]

    @property
    def values(self) -> dict[str, float | None]:
        """The mean by column; None where there is no item."""
        return {name: mean.value for name, mean in self.means.items()}

    @property
    def few(self) -> bool:
        """Whether there are too few items to say much."""
        return self.n < FEW


class Comparison(NamedTuple):
    """Two systems on one class, or on all items, by one column.

    Attributes:
        first: A system.
        second: Another.
        metric: The column.
        family: The family, or "overall".
        label: The class, or "overall".
        n: Number of items for which both have a value.
        difference: First less second.
        p: p value of the paired randomisation test, two-sided.
        p_holm: p value corrected by Holm's method.
    """

    first: str
    second: str
    metric: str
    family: str
    label: str
    n: int
    difference: float
    p: float
    p_holm: float


class Grouping(NamedTuple):
    """Groups of items to average over, and clusters of items to resample.

    Attributes:
        groups: The groups, without that of all items.
        members: Which items belong to which groups, items × (1 + groups), all items first.
        clusters: Number of each item's citing paper: items of one paper resemble each other.
    """

    groups: Sequence[Group]
    members: Flags
    clusters: Ints

    @classmethod
    def of(cls, labels: Mapping[str, Sequence[str | None]], groups: Sequence[Group], citing: Sequence[object]) -> Self:
        """The grouping of items by their classes, family by family, and by the identities of their citing papers."""
        _, clusters = np.unique(np.array(citing, dtype=object), return_inverse=True)
        named = {name: [UNNAMED if label == "" else label for label in of_items] for name, of_items in labels.items()}
        inside = [np.array([one == label for one in named[family]], bool) for family, label in groups]
        return cls(groups, np.stack([np.ones(len(clusters), bool), *inside], axis=1), clusters.astype(np.int32))


def grouping_of(datasets: Sequence[str], citing: Sequence[object]) -> Grouping:
    """Groups of texts, by the data set (empty if it has no name) and the citing paper of each."""
    names = list(dict.fromkeys(name or UNNAMED for name in datasets))
    groups = [(DATASET, name) for name in names] if len(names) > 1 else []
    return Grouping.of({DATASET: datasets}, groups, citing)


def group_scores(
    scores: Floats, columns: Sequence[str], grouping: Grouping, seed: int, resamples: int = RESAMPLES
) -> list[Scores]:
    """Means of each group with their bootstrap intervals, all items first.

    Scores are items × columns, NaN where a value is not defined.
    """
    totals = total(scores, grouping.clusters, grouping.members)
    figures = (totals.counts.sum(axis=0).astype(int), totals.sums.sum(axis=0), intervals(totals, seed, resamples))
    by_group = []
    for size, *of_group in zip(grouping.members.sum(axis=0).tolist(), *(one.tolist() for one in figures), strict=True):
        means = {
            column: Mean(n, whole / n if n else None, None if math.isnan(low) else (low, high))
            for column, n, whole, (low, high) in zip(columns, *of_group, strict=True)
        }
        by_group.append(Scores(size, means))
    return by_group


def compare(
    scores: Mapping[str, Floats], columns: Sequence[str], grouping: Grouping, seed: int
) -> tuple[Comparison, ...]:
    """Compares every pair of systems, over all items and in each class, on the items for which both have a value.

    Holm's method corrects the p values of all pairs over all items together, and those of all pairs and classes.

    Args:
        scores: By system, items × columns; NaN where a value is not defined.
        columns: Names of the columns.
        grouping: The groups.
        seed: Seed of the randomisation test.
    """
    import pandas as pd

    groups, rows = [ALL, *grouping.groups], []
    for first, second in itertools.combinations(scores, 2):
        totals = total(scores[first] - scores[second], grouping.clusters, grouping.members)
        p_values, counts, sums = randomisation_test(totals, seed), totals.counts.sum(axis=0), totals.sums.sum(axis=0)
        for (place, column), (row, group) in itertools.product(enumerate(columns), enumerate(groups)):
            if n := int(counts[row, place]):
                p = float(p_values[row, place])
                rows.append(Comparison(first, second, column, *group, n, float(sums[row, place] / n), p, p))
    table = pd.DataFrame(rows, columns=Comparison._fields)
    table["p_holm"] = table.groupby(["metric", table["family"] == OVERALL])["p"].transform(holm)
    comparisons = [Comparison(*one) for one in table.itertuples(index=False)]
    # What is corrected together stands together.
    comparisons.sort(key=lambda one: (columns.index(one.metric), groups.index((one.family, one.label))))
    return tuple(comparisons)
