"""Results: what every system reached, class by class, and how sure that is (docs/formats.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.diagnostics.label import FEW
from citerec.evaluation.cost import Cost
from citerec.evaluation.rank import Ranking

if TYPE_CHECKING:
    import pandas as pd

KIND = "citerec-results"
VERSION = 1
"""Rises when results written before can no longer be read."""

OVERALL = "overall"
SIGNIFICANT = 0.05
"""Differences whose corrected p is lower are marked, in tables and in charts."""

Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over the contexts of one class, or over all.

    Attributes:
        n: How many contexts.
        values: Mean by metric; None where there is no context.
        ci: Bounds of 95 % by metric; None where there are fewer than two citing papers.
    """

    n: int
    values: Mapping[str, float | None]
    ci: Mapping[str, Interval]

    @property
    def few(self) -> bool:
        """Whether there are too few contexts to say much."""
        return self.n < FEW

    def to_json(self) -> dict[str, Any]:
        """As a JSON object: n, each metric, `ci`, `few`."""
        return {"n": self.n, **self.values, "ci": dict(self.ci), "few": self.few}


@dataclass(frozen=True, slots=True)
class Robustness:
    """How even a system is over the classes, by one metric.

    Only classes that are not too small take part, if there are such.

    Attributes:
        metric: The metric.
        worst_family: Family of the class where the system is worst.
        worst_class: That class.
        worst: What it reaches there.
        best_family: Family of the class where it is best.
        best_class: That class.
        best: What it reaches there.
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


def robustness(metric: str, overall: Scores, families: Mapping[str, Mapping[str, Scores]]) -> Robustness:
    """How even scores are over classes; over those that are not too small, if there are such."""
    classes = [
        (scores.values[metric] or 0.0, family, label, scores.few)
        for family, labels in families.items()
        for label, scores in labels.items()
        if scores.n
    ]
    classes = [entry for entry in classes if not entry[-1]] or classes
    worst, best = min(classes, key=lambda entry: entry[0]), max(classes, key=lambda entry: entry[0])
    return Robustness(
        metric=metric,
        worst_family=worst[1],
        worst_class=worst[2],
        worst=worst[0],
        best_family=best[1],
        best_class=best[2],
        best=best[0],
        spread=best[0] - worst[0],
        drop=(overall.values[metric] or 0.0) - worst[0],
    )


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system.

    Attributes:
        kind: "citerec", "function" or "run".
        overall: Over all contexts.
        families: By family and class, in order.
        robustness: One line a metric; none without classes.
        fates: How many cited papers had each of `citerec.evaluation.rank.FATES`.
        ranks: How many cited papers came at each rank from 1 to k.
        without_hit: Contexts for which nothing was found; each counts as zero.
        removed: Lines of the run that broke a leak rule, by rule.
        settings: Of a built-in system.
        cost: What the answers cost; None for a run made elsewhere.
    """

    kind: str
    overall: Scores
    families: Mapping[str, Mapping[str, Scores]]
    robustness: Sequence[Robustness]
    fates: Mapping[str, int]
    ranks: Sequence[int]
    without_hit: int
    removed: Mapping[str, int]
    settings: Mapping[str, Any] | None = None
    cost: Cost | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "kind": self.kind,
            "overall": self.overall.to_json(),
            "families": {
                family: {label: scores.to_json() for label, scores in classes.items()}
                for family, classes in self.families.items()
            },
            "robustness": [asdict(line) for line in self.robustness],
            "fates": dict(self.fates),
            "ranks": list(self.ranks),
            "without_hit": self.without_hit,
            "removed": dict(self.removed),
            "settings": self.settings,
            "cost": self.cost.to_json() if self.cost else None,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on one class, or on all contexts, by one metric.

    Attributes:
        first: A system.
        second: Another.
        metric: The metric.
        family: The family, or "overall".
        label: The class, or "overall".
        n: How many contexts.
        difference: First less second.
        p: Of the paired randomisation test, two-sided.
        p_holm: Corrected for all classes of this pair and metric; overall stands alone.
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
class Outcome:
    """One context: what it was, and where each system ranked the papers that it cites.

    Attributes:
        context_id: Its id.
        text: Its sentence.
        labels: Its classes.
        citing: Number of its citing paper; contexts of one paper have one number.
        in_index: Whether a paper that it cites is in the index.
        cited: Ids of the papers that it cites.
        ranks: Ranks of those papers by system; 0 for not found.
        scores: By system and metric.
    """

    context_id: str
    text: str
    labels: Mapping[str, str]
    citing: int
    in_index: bool
    cited: Sequence[str]
    ranks: Mapping[str, Sequence[int]]
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class FamilyInfo:
    """A family: how it is called, what it holds constant, its classes in order."""

    title: str
    conditions: Sequence[str]
    classes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Results:
    """What an evaluation found.

    Attributes:
        set: What was asked: `name`, `source`, `fingerprint`, `contexts` asked, of them `outside` (no cited paper in the
            index) and `counted`, `citing_papers`, `bounds`, `spacy_model`; `alike` is false where results of other
            contexts were laid beside, and what is said here is of the first of them only.
        index: The pool: `path`, `fingerprint`, `papers`, `bytes`.
        rules: What was left out, and how contexts outside the index counted.
        metrics: The metrics, the first one first in every chart.
        k: How many hits of each context counted.
        seed: Of everything random.
        resamples: Of the bootstrap.
        families: The families, by name.
        systems: The systems, by name.
        comparisons: Every pair of systems.
        outcomes: Every context; contexts.jsonl beside results.json.
        notes: What the reader should know besides.
        asked: Ids of the contexts by their number in the rankings; in memory only.
        rankings: Every system's run under the rules; in memory only.
    """

    set: Mapping[str, Any]
    index: Mapping[str, Any]
    rules: Mapping[str, Any]
    metrics: Sequence[str]
    k: int
    seed: int
    resamples: int
    families: Mapping[str, FamilyInfo]
    systems: Mapping[str, SystemResult]
    comparisons: Sequence[Comparison] = ()
    outcomes: Sequence[Outcome] = field(default=(), repr=False)
    notes: Sequence[str] = ()
    asked: Sequence[str] = field(default=(), repr=False)
    rankings: Mapping[str, Ranking] = field(default_factory=dict, repr=False)

    def rows(self) -> Iterator[tuple[str, str, str, Scores]]:
        """System, family, class and scores: overall first, then class by class."""
        for name, system in self.systems.items():
            yield name, OVERALL, OVERALL, system.overall
            for family, classes in system.families.items():
                for label, scores in classes.items():
                    yield name, family, label, scores

    def to_frame(self) -> "pd.DataFrame":
        """One row a system and class.

        Columns: `system`, `family`, `class`, `n`, `few` (n < 30), and each metric with its bounds `_low` and `_high`.
        """
        import pandas as pd

        records = []
        for system, family, label, scores in self.rows():
            record: dict[str, Any] = {"system": system, "family": family, "class": label, "n": scores.n}
            record["few"] = scores.few
            for metric in self.metrics:
                low, high = scores.ci[metric] or (None, None)
                record |= {metric: scores.values[metric], f"{metric}_low": low, f"{metric}_high": high}
            records.append(record)
        return pd.DataFrame.from_records(records)

    def comparisons_to_frame(self) -> "pd.DataFrame":
        """One row a pair of systems, metric and class; the columns are the attributes of `Comparison`."""
        import pandas as pd

        return pd.DataFrame([asdict(comparison) for comparison in self.comparisons])

    def write(self, folder: str | Path) -> None:
        """Writes a folder with results.json, results.csv, contexts.jsonl, qrels, runs and report.html.

        Raises:
            InputError: Something else than older results stands there.
            BuildError: The disk is full, or may not be written to.
        """
        from citerec.evaluation.files import write_results

        write_results(self, Path(folder))

    @staticmethod
    def read(folder: str | Path) -> "Results":
        """Reads back what `write` wrote, but for the runs.

        Raises:
            InputError: There are no results, or they are broken, or of another version.
        """
        from citerec.evaluation.files import read_results

        return read_results(Path(folder))

    def to_json(self) -> dict[str, Any]:
        """results.json, but for the outcomes of single contexts."""
        return {
            "kind": KIND,
            "version": VERSION,
            "set": dict(self.set),
            "index": dict(self.index),
            "rules": dict(self.rules),
            "metrics": list(self.metrics),
            "k": self.k,
            "seed": self.seed,
            "resamples": self.resamples,
            "families": {name: asdict(info) for name, info in self.families.items()},
            "systems": {name: system.to_json() for name, system in self.systems.items()},
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            "notes": list(self.notes),
        }
