"""Every pair of systems, class by class."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from citerec.evaluation.results import OVERALL, Comparison
from citerec.evaluation.statistics import Totals, holm, randomisation_test


def compare(
    totals: Mapping[str, Totals], groups: Sequence[tuple[str, str]], metrics: Sequence[str], seed: int
) -> Iterator[Comparison]:
    """Compares every pair of systems over all contexts, and on each class.

    Args:
        totals: By system; the first group is of all contexts, the others are `groups`.
        groups: Family and class of each further group.
        metrics: Names of the metrics, in the order of the totals.
        seed: Of the randomisation test.
    """
    for first, second in itertools.combinations(totals, 2):
        p_values = randomisation_test(totals[first], totals[second], seed)
        counts = totals[first].counts.sum(axis=0)
        sums = (totals[first].sums - totals[second].sums).sum(axis=0).reshape(p_values.shape)
        # A class that is everything asks nothing new.
        tested = np.flatnonzero((counts[1:] > 0) & (counts[1:] < counts[0])) + 1
        for column, metric in enumerate(metrics):
            # Corrected for all classes of this pair and metric; over all contexts is one question of its own.
            corrected = dict(zip(tested.tolist(), holm(p_values[tested, column]).tolist(), strict=True))
            for row, (family, label) in enumerate([(OVERALL, OVERALL), *groups]):
                if counts[row]:
                    p = float(p_values[row, column])
                    yield Comparison(
                        first=first,
                        second=second,
                        metric=metric,
                        family=family,
                        label=label,
                        n=int(counts[row]),
                        difference=float(sums[row, column] / counts[row]),
                        p=p,
                        p_holm=corrected.get(row, p),
                    )
