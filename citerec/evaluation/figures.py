"""The results of an evaluation as data: systems × groups × columns, for ranked lists and for texts."""

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from citerec.diagnostics.label import FEW
from citerec.evaluation.cost import Cost
from citerec.evaluation.items import Items
from citerec.evaluation.predictions import ReadFile
from citerec.evaluation.reliability import Reliability
from citerec.write.metrics.base import Column

if TYPE_CHECKING:
    from citerec.evaluation.predictions import Predictions
    from citerec.evaluation.rank import Ranking

Flags = npt.NDArray[np.bool_]

OVERALL = "overall"
DATASET = "dataset"
"""The family whose classes are data sets."""

UNNAMED = "no name"
"""The data set of texts without a name of one, if other texts have one."""

SIGNIFICANT = 0.05
"""Differences with a lower corrected p are marked."""

Interval = tuple[float, float] | None
Group = tuple[str, str]
"""A family and a class of it; "overall" twice for all items."""

ALL: Group = (OVERALL, OVERALL)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over the n items of a group for which the value is defined; None if n is 0.

    `ci` is the 95 % interval; None if the items are of fewer than two citing papers.
    """

    n: int
    value: float | None
    ci: Interval


@dataclass(frozen=True, slots=True)
class Scores:
    """Means by column over the n items of one class, or over all."""

    n: int
    means: Mapping[str, Mean]

    @property
    def values(self) -> dict[str, float | None]:
        """The mean by column; None where there is no item."""
        return {name: mean.value for name, mean in self.means.items()}

    @property
    def ci(self) -> dict[str, Interval]:
        """The interval by column."""
        return {name: mean.ci for name, mean in self.means.items()}

    @property
    def few(self) -> bool:
        """Whether there are too few items to say much."""
        return self.n < FEW


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
    return tuple(_robustness(metric, overall, classes) for metric in metrics if classes)


def _robustness(metric: str, overall: Scores, classes: Sequence[tuple[str, str, Scores]]) -> Robustness:
    values = [(family, label, scores.means[metric].value or 0.0) for family, label, scores in classes]
    worst, best = (choice(values, key=operator.itemgetter(2)) for choice in (min, max))
    drop = (overall.means[metric].value or 0.0) - worst[2]
    return Robustness(metric, *worst, *best, best[2] - worst[2], drop)


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system.

    Attributes:
        kind: "citerec", "function" or "run"; "texts" for a system that writes.
        overall: Over all items.
        families: By family and class, in order.
        settings: Settings of a built-in system or of a writer; None or empty if unknown.
        is_oracle: Whether it saw the targets: an upper bound, which is never the best and takes no part in tests.
        robustness: Of ranked lists, one for each metric; none without classes.
        outcomes: Of ranked lists, how many cited papers had each outcome in `citerec.evaluation.rank.OUTCOMES`.
        ranks: Of ranked lists, how many cited papers came at each rank from 1 to k.
        empty: Items for which nothing was found or written; they count.
        removed: Lines of a run that broke a leak rule, by rule.
        cost: None for a run made elsewhere, and for texts.
        reliability: Of ranked lists whose system states how sure it is: how well that fits, by event.
        missing: Tasks that the system did not answer; they are left out for all systems.
        summaries: Summaries by corpus metric and group.
        files: The files that its texts were read from.
    """

    kind: str
    overall: Scores
    families: Mapping[str, Mapping[str, Scores]]
    settings: Mapping[str, Any] | str | None = None
    is_oracle: bool = False
    robustness: tuple[Robustness, ...] = ()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    ranks: Sequence[int] = ()
    empty: int = 0
    removed: Mapping[str, int] = field(default_factory=dict)
    cost: Cost | None = None
    reliability: Mapping[str, Reliability] = field(default_factory=dict)
    missing: int = 0
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    files: tuple[ReadFile, ...] = ()

    def scores(self, group: Group) -> Scores:
        """Its scores on a group."""
        return self.overall if group == ALL else self.families[group[0]][group[1]]

    def means(self) -> dict[str, Mapping[str, Mean]]:
        """Its means by group, "overall" and data sets, and column."""
        of_groups = {OVERALL: self.overall, **self.families.get(DATASET, {})}
        return {group: scores.means for group, scores in of_groups.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
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


@dataclass(frozen=True, slots=True)
class FamilyInfo:
    """A family: its title, what it holds constant, its classes in order.

    `without_class` says how many of the measured contexts have none of them: figures over all contexts count them, and
    the rows of the family do not. It is None if the results of different contexts were merged.
    """

    title: str
    conditions: tuple[str, ...]
    classes: tuple[str, ...]
    without_class: int | None = 0


def members_of(labels: Sequence[Mapping[str, str]], groups: Sequence[Group]) -> Flags:
    """Which items, by their classes, belong to which groups: items × (1 + groups), the group of all items first."""
    numbers = {group: column for column, group in enumerate(groups, 1)}
    members = np.zeros((len(labels), 1 + len(groups)), bool)
    members[:, 0] = True
    for row, of_item in enumerate(labels):
        for family, label in of_item.items():
            if (number := numbers.get((family, label or UNNAMED))) is not None:
                members[row, number] = True
    return members


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of an evaluation of ranked lists or of texts.

    Attributes:
        columns: The columns of scores; charts show the first one first.
        families: The families, by name.
        systems: The systems, by name, in the order given.
        seed: Seed of all random numbers.
        resamples: Number of bootstrap samples.
        set: The contexts or tasks (docs/formats.md). If `alike` is false, results of different contexts or tasks were
            merged, and this describes only the first of them.
        index: For ranked lists the pool: `path`, `fingerprint`, `papers`, `bytes`.
        rules: For ranked lists what was left out, and how contexts outside the index counted.
        k: For ranked lists how many hits of each context counted; 0 for texts.
        settings: For texts, the settings of each metric.
        preset: For texts the preset that was used, as `Preset.used` says it; None if none was.
        targets: For texts the scores of the targets, in columns that only describe; None if no text has a target.
        comparisons: Every pair of systems.
        items: Every context or task with its scores.
        notes: Notes for the reader.
        context_ids: For ranked lists ids of the contexts by their number in the rankings; in memory only.
        rankings: For ranked lists every system's run under the rules; in memory only.
        predictions: For texts the evaluated predictions; in memory only.
    """

    columns: Sequence[Column]
    families: Mapping[str, FamilyInfo]
    systems: Mapping[str, SystemResult]
    seed: int
    resamples: int
    set: Mapping[str, Any]
    index: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    k: int = 0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    preset: Mapping[str, Any] | None = None
    targets: SystemResult | None = None
    comparisons: Sequence[Comparison] = ()
    items: Items = field(default_factory=Items)
    notes: Sequence[str] = ()
    context_ids: Sequence[str] = ()
    rankings: "Mapping[str, Ranking]" = field(default_factory=dict)
    predictions: "Predictions | None" = None

    @property
    def of_texts(self) -> bool:
        """Whether texts were measured, not ranked lists."""
        return not self.k

    @property
    def alike(self) -> bool:
        """Whether all systems were given the same contexts or tasks."""
        return bool(self.set.get("alike", True))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that score items one by one, in order."""
        return tuple(dict.fromkeys(column.metric for column in self.columns))

    @property
    def corpus_metrics(self) -> tuple[str, ...]:
        """The metrics that look at all texts of a system together, in order."""
        return tuple(name for name in self.settings if name not in self.metrics)

    @property
    def discourse_metrics(self) -> tuple[str, ...]:
        """Those of them that give distributions of labels; the others give values."""
        return tuple(name for name in self.corpus_metrics if "labels" in self.settings[name])

    @property
    def groups(self) -> tuple[Group, ...]:
        """All items, then every class of every family."""
        return (ALL, *((name, label) for name, info in self.families.items() for label in info.classes))

    @property
    def first(self) -> str | None:
        """The system that others are compared with in tables: the first one that is no upper bound."""
        return next((name for name, system in self.systems.items() if not system.is_oracle), None)

    def rows(self) -> Iterator[tuple[str, str, str, Scores]]:
        """System, family, class and scores: overall first, then class by class."""
        for name, system in self.systems.items():
            for group in self.groups:
                yield name, *group, system.scores(group)

    def mean(self, system: str, group: Group, column: Column) -> Mean:
        """A system's mean on a group."""
        return self.systems[system].scores(group).means[column.name]

    def best(self, group: Group, column: Column) -> frozenset[str]:
        """The systems with the best mean; none if all are equal, or if the column does not judge."""
        sign = -1 if column.better == "lower" else 1
        means = {
            name: sign * value
            for name, system in self.systems.items()
            if not system.is_oracle and (value := self.mean(name, group, column).value) is not None
        }
        # Sums of the same numbers in another order differ in their last digits.
        best = {name for name, value in means.items() if math.isclose(value, max(means.values()), rel_tol=1e-9)}
        return frozenset(best) if column.judges and len(best) < len(means) else frozenset()

    def against_first(self, system: str, group: Group, column: Column) -> Comparison | None:
        """A system compared with the first one, if the difference is significant."""
        wanted = (self.first, system, *group, column.name)
        found = (c for c in self.comparisons if (c.first, c.second, c.family, c.label, c.metric) == wanted)
        return next((c for c in found if c.p_holm < SIGNIFICANT), None)

    def is_defined(self, columns: Sequence[Column]) -> bool:
        """Whether any system has a value in some columns."""
        every = (self.mean(name, group, column) for name in self.systems for group in self.groups for column in columns)
        return any(mean.value is not None for mean in every)
