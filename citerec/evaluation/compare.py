"""Means of groups with confidence intervals, and tests of differences between systems."""

import functools
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from citerec.evaluation.figures import ALL, OVERALL, Comparison, Flags, Group, Mean, Scores
from citerec.evaluation.items import Ints
from citerec.evaluation.statistics import RESAMPLES, Floats, Totals, holm, intervals, randomisation_test, total
from citerec.files.progress import Progress, no_progress


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of items to average over, and clusters of items to resample.

    Attributes:
        groups: The groups, without that of all items.
        members: Which items belong to which groups, items × (1 + groups), all items first.
        clusters: Number of each item's citing paper: items of one paper resemble each other.
    """

    groups: Sequence[Group]
    members: Flags
    clusters: Ints


def group_scores(
    scores: Floats, columns: Sequence[str], grouping: Grouping, seed: int, resamples: int = RESAMPLES
) -> list[Scores]:
    """Means of each group with their bootstrap intervals, all items first.

    Scores are items × columns, NaN where a value is not defined.
    """
    found = [dict.fromkeys(columns, Mean(0, None, None)) for _ in range(grouping.members.shape[1])]
    for defined, numbers in _defined_alike(~np.isnan(scores)):
        totals = _total(scores[:, numbers], defined, grouping)
        counts = totals.counts.sum(axis=0).astype(int)
        sums = totals.sums.sum(axis=0).reshape(len(counts), len(numbers))
        bounds = intervals(totals, seed, resamples)
        for row, place in itertools.product(np.flatnonzero(counts).tolist(), range(len(numbers))):
            low, high = bounds[row, place].tolist()
            mean = float(sums[row, place]) / int(counts[row])
            found[row][columns[numbers[place]]] = Mean(int(counts[row]), mean, None if np.isnan(low) else (low, high))
    return [Scores(n, means) for n, means in zip(grouping.members.sum(axis=0).astype(int).tolist(), found, strict=True)]


def compare(
    scores: Mapping[str, Floats],
    columns: Sequence[str],
    grouping: Grouping,
    seed: int,
    *,
    together: Literal["classes", "pairs"] = "classes",
    on_progress: Progress = no_progress,
) -> tuple[Comparison, ...]:
    """Compares every pair of systems, over all items and in each class, on the items for which both have a value.

    Args:
        scores: By system, items × columns; NaN where a value is not defined.
        columns: Names of the columns.
        grouping: The groups.
        seed: Seed of the randomisation test.
        together: Which p values Holm's method corrects together. "classes": all classes of a pair of systems and a
            column; the test over all items, also as a class that holds all items, is not corrected. "pairs": all
            pairs and classes of a column; the tests over all items of all pairs apart from these.
        on_progress: Called with the pairs done.
    """

    @functools.cache  # sums over the same items are shared by all pairs
    def totals_of(name: str, numbers: tuple[int, ...], defined: bytes) -> Totals:
        return _total(scores[name][:, numbers], np.frombuffer(defined, bool), grouping)

    found: list[Comparison] = []
    pairs = list(itertools.combinations(scores, 2))
    for number, pair in enumerate(pairs):
        on_progress("testing pairs", number, len(pairs))
        both = ~np.isnan(scores[pair[0]]) & ~np.isnan(scores[pair[1]])
        for defined, numbers in _defined_alike(both):
            if defined.any():
                totals = [totals_of(name, tuple(numbers), defined.tobytes()) for name in pair]
                found += _pair(pair, totals, [columns[one] for one in numbers], grouping, seed)
    groups = [ALL, *grouping.groups]

    def order(one: Comparison) -> tuple[int, int, int]:
        pair, column = pairs.index((one.first, one.second)), columns.index(one.metric)
        group = groups.index((one.family, one.label))
        return (pair, column, group) if together == "classes" else (column, group, pair)

    whole = {(one.first, one.second, one.metric): one.n for one in found if one.family == OVERALL}

    def tests(one: Comparison) -> Hashable:
        if together == "pairs":
            return one.metric, one.family == OVERALL
        pair = one.first, one.second, one.metric
        # A class that holds all items repeats the test over all items.
        return pair if one.n < whole[pair] else (*pair, one.family, one.label)

    return tuple(_corrected(sorted(found, key=order), tests))


def _pair(
    pair: tuple[str, str], totals: Sequence[Totals], columns: Sequence[str], grouping: Grouping, seed: int
) -> Iterator[Comparison]:
    p_values = randomisation_test(totals[0], totals[1], seed)
    counts = totals[0].counts.sum(axis=0)
    sums = (totals[0].sums - totals[1].sums).sum(axis=0).reshape(p_values.shape)
    for row, group in enumerate([ALL, *grouping.groups]):
        for place, column in enumerate(columns if counts[row] else ()):
            p, difference = float(p_values[row, place]), float(sums[row, place] / counts[row])
            yield Comparison(*pair, column, *group, int(counts[row]), difference, p, p)


def _corrected(found: Sequence[Comparison], tests: Callable[[Comparison], Hashable]) -> Iterator[Comparison]:
    together: dict[Hashable, list[int]] = {}
    for number, one in enumerate(found):
        together.setdefault(tests(one), []).append(number)
    corrected = np.empty(len(found))
    for numbers in together.values():
        corrected[numbers] = holm(np.array([found[number].p for number in numbers]))
    yield from (replace(one, p_holm=p) for one, p in zip(found, corrected.tolist(), strict=True))


def _defined_alike(defined: Flags) -> Iterator[tuple[Flags, list[int]]]:
    """Groups columns that are defined for the same items, so that they are resampled together."""
    by_items: dict[bytes, list[int]] = {}
    for column in range(defined.shape[1]):
        by_items.setdefault(defined[:, column].tobytes(), []).append(column)
    for columns in by_items.values():
        yield defined[:, columns[0]], columns


def _total(scores: Floats, defined: Flags, grouping: Grouping) -> Totals:
    return total(np.where(defined[:, None], scores, 0.0), grouping.clusters, grouping.members & defined[:, None])
