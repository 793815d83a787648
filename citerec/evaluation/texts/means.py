"""Means over texts, how sure they are, and where two systems differ."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from citerec.evaluation.results import OVERALL, Comparison, Interval
from citerec.evaluation.statistics import Floats, Totals, holm, intervals, randomisation_test, total
from citerec.groundwork.progress import Progress, no_progress

DATASET = "dataset"
"""The family of groups that are data sets."""

UNNAMED = "no name"
"""What texts without the name of a data set stand under, where others have one."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over the texts of a group.

    Attributes:
        n: Over how many: those for which the value is defined.
        value: The mean; None where n is 0.
        ci: Bounds of 95 %; None where the texts are of fewer than two citing papers.
    """

    n: int
    value: float | None
    ci: Interval


@dataclass(frozen=True, slots=True)
class Groups:
    """Which texts a mean is over: all of them, and those of each data set where there are several.

    Attributes:
        names: Of the groups: "overall", then the data sets.
        members: Texts × groups: what belongs where.
        clusters: For each text the number of its citing paper: texts of one paper resemble each other.
    """

    names: tuple[str, ...]
    members: Flags
    clusters: npt.NDArray[np.int32]


def groups_of(datasets: Sequence[str], citing: Sequence[str]) -> Groups:
    """The groups of some texts.

    Args:
        datasets: For each text the name of its data set; it may be empty.
        citing: For each text what its citing paper is called.
    """
    datasets = [name or UNNAMED for name in datasets]
    names = list(dict.fromkeys(datasets))
    several = names if len(names) > 1 else []
    members = np.array([[True, *(dataset == name for name in several)] for dataset in datasets])
    _, clusters = np.unique(np.array(citing, dtype=object), return_inverse=True)
    return Groups((OVERALL, *several), members, clusters.astype(np.int32))


def means(scores: Floats, groups: Groups, seed: int, resamples: int) -> dict[str, list[Mean]]:
    """Means of each group with their intervals, by the name of the group and in the order of the columns.

    Args:
        scores: Texts × columns; NaN where a value is not defined.
        groups: The groups.
        seed: Of the bootstrap.
        resamples: How many samples it draws.
    """
    found: dict[str, list[Mean]] = {name: [Mean(0, None, None)] * scores.shape[1] for name in groups.names}
    for defined, columns in _defined_alike(~np.isnan(scores)):
        totals = _total(scores[:, columns], defined, groups)
        counts = totals.counts.sum(axis=0)
        sums = totals.sums.sum(axis=0).reshape(len(counts), len(columns))
        bounds = intervals(totals, seed, resamples)
        for row, name in enumerate(groups.names):
            for place, column in enumerate(columns):
                if counts[row]:
                    low, high = bounds[row, place].tolist()
                    interval = None if np.isnan(low) else (low, high)
                    found[name][column] = Mean(int(counts[row]), float(sums[row, place] / counts[row]), interval)
    return found


def comparisons(
    scores: Mapping[str, Floats],
    columns: Sequence[str],
    groups: Groups,
    seed: int,
    on_progress: Progress = no_progress,
) -> tuple[Comparison, ...]:
    """Every pair of systems by every column, on texts for which both have a value.

    P values are corrected, for each column, over all pairs of systems and data sets together; those of all texts over
    all pairs.

    Args:
        scores: By system, texts × columns; NaN where a value is not defined.
        columns: Names of the columns.
        groups: The groups.
        seed: Of the randomisation test.
        on_progress: Told of the pairs done.
    """
    found: list[Comparison] = []
    pairs = list(itertools.combinations(scores, 2))
    for number, (first, second) in enumerate(pairs):
        on_progress("testing pairs", number, len(pairs))
        both = ~np.isnan(scores[first]) & ~np.isnan(scores[second])
        for defined, numbers in _defined_alike(both):
            if defined.any():
                totals = [_total(scores[name][:, numbers], defined, groups) for name in (first, second)]
                found += _pair(first, second, totals, [columns[number] for number in numbers], groups, seed)
    return tuple(_corrected(found, columns, groups))


def _pair(
    first: str, second: str, totals: Sequence[Totals], columns: Sequence[str], groups: Groups, seed: int
) -> Iterator[Comparison]:
    p_values = randomisation_test(totals[0], totals[1], seed)
    counts = totals[0].counts.sum(axis=0)
    sums = (totals[0].sums - totals[1].sums).sum(axis=0).reshape(p_values.shape)
    for row, name in enumerate(groups.names):
        for place, column in enumerate(columns):
            if counts[row]:
                p, difference = float(p_values[row, place]), float(sums[row, place] / counts[row])
                family = OVERALL if row == 0 else DATASET
                yield Comparison(first, second, column, family, name, int(counts[row]), difference, p, p)


def _corrected(found: Iterable[Comparison], columns: Sequence[str], groups: Groups) -> Iterator[Comparison]:
    """With p values corrected, in the order of columns, groups and pairs."""

    def family(one: Comparison) -> tuple[int, bool]:
        return columns.index(one.metric), one.family == DATASET

    ordered = sorted(found, key=lambda one: (*family(one), groups.names.index(one.label)))
    for _, questions in itertools.groupby(ordered, key=family):
        asked = list(questions)
        corrected = holm(np.array([one.p for one in asked])).tolist()
        yield from (replace(one, p_holm=p) for one, p in zip(asked, corrected, strict=True))


def _defined_alike(defined: Flags) -> Iterator[tuple[Flags, list[int]]]:
    """Columns that are defined for the same texts, together: they are resampled at one go."""
    by_texts: dict[bytes, list[int]] = {}
    for column in range(defined.shape[1]):
        by_texts.setdefault(defined[:, column].tobytes(), []).append(column)
    for columns in by_texts.values():
        yield defined[:, columns[0]], columns


def _total(scores: Floats, defined: Flags, groups: Groups) -> Totals:
    return total(np.where(defined[:, None], scores, 0.0), groups.clusters, groups.members & defined[:, None])
