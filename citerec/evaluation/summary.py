"""All figures of results, computed from their tables: means, intervals, tests, robustness, outcomes, reliability."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.evaluation.metrics import Reliability, reliabilities
from citerec.evaluation.rank import OUTCOMES
from citerec.evaluation.record import SystemRecord
from citerec.evaluation.statistics import ALL, Comparison, Group, Grouping, Scores, compare, group_scores

if TYPE_CHECKING:
    from citerec.evaluation.results import Results


@dataclass(frozen=True, slots=True)
class Robustness:
    """How even a system is over the classes, by one metric.

    Attributes:
        metric: The metric.
        worst: The mean of the class where the system is worst: `worst_class` of `worst_family`.
        best: The mean of the class where it is best: `best_class` of `best_family`.
        spread: Best less worst.
        drop: Overall less worst.
    """

    metric: str
    worst_family: str
    worst_class: str
    worst: float
    best_family: str
    best_class: str
    best: float
    spread: float
    drop: float


class SystemSummary(SystemRecord):
    """One system: its record, and what is computed from the tables.

    Attributes:
        overall: Means over all items.
        families: Means by family and class, in order.
        robustness: Of ranked lists, one for each metric; none without classes.
        outcomes: Of ranked lists, how many cited papers had each outcome in `citerec.evaluation.rank.OUTCOMES`.
        ranks: Of ranked lists, how many cited papers came at each rank from 1 to k.
        reliability: Of ranked lists whose system states how sure it is: how well that fits, by event.
    """

    overall: Scores
    families: Mapping[str, Mapping[str, Scores]]
    robustness: Sequence[Robustness] = ()
    outcomes: Mapping[str, int] = {}
    ranks: Sequence[int] = ()
    reliability: Mapping[str, Reliability] = {}

    def scores(self, group: Group) -> Scores:
        """Its scores on a group."""
        return self.overall if group == ALL else self.families[group[0]][group[1]]


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of results: systems by name, the `targets` of texts, if they were measured, and every pair tested."""

    systems: Mapping[str, SystemSummary]
    targets: SystemSummary | None
    comparisons: tuple[Comparison, ...]


def summarise(results: "Results", seed: int, resamples: int) -> Summary:
    """Computes all figures of results.

    Args:
        results: The tables.
        seed: Seed of intervals and tests.
        resamples: Number of bootstrap samples.
    """
    columns = [column.name for column in results.columns]
    grouping = Grouping.of(results.classes, results.groups[1:], results.items["citing"])

    def summary(name: str, record: SystemRecord) -> SystemSummary:
        overall, *classes = group_scores(results.scores[name], columns, grouping, seed, resamples)
        families: dict[str, dict[str, Scores]] = {}
        for (family, label), scores in zip(grouping.groups, classes, strict=True):
            families.setdefault(family, {})[label] = scores
        ranked: dict[str, Any] = {} if results.of_texts else _of_ranks(results, name, columns, overall, families)
        return SystemSummary.model_construct(**dict(record), overall=overall, families=families, **ranked)

    tested = {name: results.scores[name] for name, one in results.record.systems.items() if not one.is_oracle}
    return Summary(
        {name: summary(name, record) for name, record in results.record.systems.items()},
        summary(TARGET, SystemRecord(kind="texts")) if TARGET in results.scores else None,
        compare(
            tested,
            columns,
            grouping,
            seed,
            together="pairs" if results.of_texts else "classes",
        ),
    )


TARGET = ""
"""The name, in tables, of what the authors wrote."""


def _of_ranks(
    results: "Results", name: str, columns: Sequence[str], overall: Scores, families: Mapping[str, Mapping[str, Scores]]
) -> dict[str, Any]:
    """What ranked lists alone have."""
    of_system = results.ranks[results.ranks["system"] == name]
    ranks, counts = of_system["rank"].to_numpy(), of_system["outcome"].value_counts()
    stated = results.confidence[results.confidence["system"] == name]
    return {
        "robustness": robustness(columns, overall, families),
        "outcomes": {outcome: int(counts.get(outcome, 0)) for outcome in OUTCOMES},
        "ranks": np.bincount(ranks[ranks > 0], minlength=results.record.k + 1)[1:].tolist(),
        "reliability": reliabilities(stated, results.gold(name), results.items["context"], results.record.k),
    }


def robustness(
    metrics: Sequence[str], overall: Scores, families: Mapping[str, Mapping[str, Scores]]
) -> tuple[Robustness, ...]:
    """How even scores are over classes, by metric; nothing without classes.

    Classes that are too small count only if all are.
    """
    classes = [
        (family, label, scores) for family, labels in families.items() for label, scores in labels.items() if scores.n
    ]
    classes = [entry for entry in classes if not entry[-1].few] or classes
    found = []
    for metric in metrics if classes else ():
        values = [(family, label, scores.means[metric].value or 0.0) for family, label, scores in classes]
        worst, best = (choice(values, key=operator.itemgetter(2)) for choice in (min, max))
        drop = (overall.means[metric].value or 0.0) - worst[2]
        found.append(Robustness(metric, *worst, *best, best[2] - worst[2], drop))
    return tuple(found)
