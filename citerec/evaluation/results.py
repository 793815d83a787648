"""Results of an evaluation, in memory and as a folder (docs/formats.md): tables, a run record, a page.

Figures are computed from the tables: means, intervals, tests, reliability.
"""

import functools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import orjson
import pandas as pd
from pydantic import ValidationError

from citerec.diagnostics.sets import write_qrels
from citerec.errors import InputError, first_fault
from citerec.evaluation import statistics, tables
from citerec.evaluation.metrics import OUTCOMES, Reliability, measure, parse_metrics, reliabilities
from citerec.evaluation.page import to_html, write_page
from citerec.evaluation.record import KIND, FamilyInfo, Record, SystemRecord
from citerec.evaluation.statistics import ALL, DATASET, SIGNIFICANT, Comparison, Floats, Group, Grouping, Ints, Mean
from citerec.files.writing import Kind, recover
from citerec.records import EVENTS
from citerec.retrieve.run import write_run
from citerec.write.metrics import Column

if TYPE_CHECKING:
    from citerec.evaluation.texts import Predictions


class Robustness(NamedTuple):
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
        outcomes: Of ranked lists, how many cited papers had each outcome in `citerec.evaluation.metrics.OUTCOMES`.
        ranks: Of ranked lists, how many cited papers came at each rank from 1 to k.
        reliability: Of ranked lists whose system states how sure it is: how well that fits, by event.
    """

    overall: statistics.Scores
    families: Mapping[str, Mapping[str, statistics.Scores]]
    robustness: Sequence[Robustness] = ()
    outcomes: Mapping[str, int] = {}
    ranks: Sequence[int] = ()
    reliability: Mapping[str, Reliability] = {}

    def scores(self, group: Group) -> statistics.Scores:
        """Its scores on a group."""
        return self.overall if group == ALL else self.families[group[0]][group[1]]


def robustness(
    metrics: Sequence[str], overall: statistics.Scores, by_class: Iterable[tuple[Group, statistics.Scores]]
) -> tuple[Robustness, ...]:
    """How even scores are over classes, by metric; nothing of a single class.

    Classes that are too small count only if all are.
    """
    classes = [(*group, scores) for group, scores in by_class if scores.n]
    classes = [entry for entry in classes if not entry[-1].few] or classes
    rows = []
    for metric in metrics if len(classes) > 1 else ():
        values = [(family, label, scores.means[metric].value or 0.0) for family, label, scores in classes]
        worst, best = (choice(values, key=operator.itemgetter(2)) for choice in (min, max))
        drop = (overall.means[metric].value or 0.0) - worst[2]
        rows.append(Robustness(metric, *worst, *best, best[2] - worst[2], drop))
    return tuple(rows)


TARGET = ""
"""The name, in tables, of what the authors wrote."""

TABLES = {
    "labels": ["item", "context", "citing", "text", "family", "class"],
    "ranks": ["context", "system", "paper", "rank", "outcome"],
    "confidence": ["context", "system", *EVENTS],
    "texts": ["task", "dataset", "system", "metric", "value"],
}
"""The columns of each table."""

META, SUMMARY, SCORES = "meta.json", "results.csv", "scores.csv"
PAGE, QRELS, RUNS = "report.html", "qrels.txt", "runs"
RESULTS = Kind(
    "folder of results",
    KIND,
    META,
    frozenset({META, SUMMARY, SCORES, PAGE, QRELS, RUNS, *(f"{name}.parquet" for name in TABLES)}),
)


@dataclass(frozen=True, repr=False, eq=False)
class Results:
    """Results of ranked lists by `citerec.evaluate`, or of texts by `evaluate_texts`.

    They are tables; everything else is computed from them.

    Attributes:
        record: What was measured, and how.
        labels: A row for each context or task that counts and family: `item`, its number; `context`, its id;
            `citing`, a number that items of one citing paper share; `text`, the sentence of a context; `family`,
            `class`. An item without a class has one row without a family.
        ranks: Of ranked lists, a row for each system, context and paper cited there: `context`, `system`, `paper`,
            `rank` (0 if it was not found), `outcome`.
        confidence: Of ranked lists, how sure systems are, where they say so and were not fitted on the context:
            `context`, `system`, and the probability of each event.
        texts: Of texts, a row for each system, task and metric: `task`, `dataset`, `system` (empty for what the authors
            wrote), `metric`, `value`, which is missing where it is not defined.
        runs: Every system's hits under the rules, by system: `context`, `paper`, `rank`, `score`; in memory only.
        predictions: The measured texts; in memory only.
    """

    record: Record
    labels: pd.DataFrame
    ranks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=TABLES["ranks"]))
    confidence: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=TABLES["confidence"]))
    texts: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=TABLES["texts"]))
    runs: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    predictions: "Predictions | None" = None

    @functools.cached_property
    def items(self) -> pd.DataFrame:
        """The contexts or tasks: `context`, `citing`, `text`."""
        return self.labels.drop_duplicates("item")[["context", "citing", "text"]].reset_index(drop=True)

    @functools.cached_property
    def classes(self) -> pd.DataFrame:
        """Their classes, a column for each family; missing where an item has none."""
        families = [*self.families, *[DATASET] * (self.of_texts and not self.families)]
        wide = self.labels.dropna(subset="family").pivot(index="item", columns="family", values="class")
        wide = wide.reindex(index=self.labels["item"].drop_duplicates(), columns=families)
        return wide.reset_index(drop=True).rename_axis(columns=None)

    @property
    def of_texts(self) -> bool:
        """Whether texts were measured, not ranked lists."""
        return self.record.measures == "texts"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of scores."""
        return self.record.columns

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that score items one by one, in order."""
        return tuple(dict.fromkeys(column.metric for column in self.columns))

    @property
    def corpus_metrics(self) -> tuple[str, ...]:
        """The metrics that look at all texts of a system together, in order."""
        return tuple(name for name in self.record.settings if name not in self.metrics)

    @property
    def families(self) -> Mapping[str, FamilyInfo]:
        """The families, by name."""
        return self.record.families

    @property
    def groups(self) -> tuple[Group, ...]:
        """All items, then every class of every family."""
        return (ALL, *((name, label) for name, info in self.families.items() for label in info.classes))

    @functools.cached_property
    def scores(self) -> Mapping[str, Floats]:
        """By system, items × columns; NaN where a value is not defined."""
        names = [column.name for column in self.columns]
        if self.of_texts:
            rows = pd.MultiIndex.from_arrays([self.classes[DATASET], self.items["context"]])
            values = self.texts.pivot(index=["dataset", "task"], columns=["system", "metric"], values="value")
            table = values.reindex(rows)
            systems = dict.fromkeys([*self.record.systems, *self.texts["system"]])
            return {one: table.reindex(columns=[(one, name) for name in names]).to_numpy(np.float64) for one in systems}
        metrics = parse_metrics(names, self.record.k)
        return {name: measure(metrics, self.gold(name), self.record.k) for name in self.record.systems}

    def gold(self, system: str) -> Ints:
        """Ranks of the cited papers, contexts × most papers cited in one; 0 for not found, -1 in unused slots."""
        ranks = self.ranks[self.ranks["system"] == system]
        rows = pd.Index(self.items["context"]).get_indexer(ranks["context"])
        slots = ranks.groupby("context", sort=False, observed=True).cumcount().to_numpy()
        gold = np.full((len(self.items), slots.max(initial=0) + 1), -1, np.int32)
        gold[rows, slots] = ranks["rank"]
        return gold

    @functools.cached_property
    def _grouping(self) -> Grouping:
        return Grouping.of(self.classes, self.groups[1:], self.items["citing"])

    @functools.cached_property
    def systems(self) -> Mapping[str, SystemSummary]:
        """The systems with their figures, in the order given."""
        return {name: self._summary(name, record) for name, record in self.record.systems.items()}

    @functools.cached_property
    def targets(self) -> SystemSummary | None:
        """The figures of what the authors wrote, if it was measured."""
        return self._summary(TARGET, SystemRecord(kind="texts")) if TARGET in self.scores else None

    @functools.cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every pair of systems; upper bounds are not tested."""
        tested = {name: self.scores[name] for name, one in self.record.systems.items() if not one.is_oracle}
        return statistics.compare(tested, list(map(str, self.columns)), self._grouping, self.record.seed)

    @property
    def citing_papers(self) -> int:
        """How many papers the items are from; each item whose paper is not known counts as a paper of its own."""
        return int(self._grouping.clusters.max(initial=-1)) + 1

    def _summary(self, name: str, record: SystemRecord) -> SystemSummary:
        columns, k = list(map(str, self.columns)), self.record.k
        scores = statistics.group_scores(
            self.scores[name], columns, self._grouping, self.record.seed, self.record.resamples
        )
        overall, families = scores[0], dict[str, dict[str, statistics.Scores]]()
        for (family, label), of_class in zip(self.groups[1:], scores[1:], strict=True):
            families.setdefault(family, {})[label] = of_class
        figures: dict[str, Any] = {"overall": overall, "families": families}
        if not self.of_texts:
            of_system = self.ranks[self.ranks["system"] == name]
            ranks, counts = of_system["rank"].to_numpy(), of_system["outcome"].value_counts()
            confidence = self.confidence[self.confidence["system"] == name]
            figures |= {
                "robustness": robustness(columns, overall, zip(self.groups[1:], scores[1:], strict=True)),
                "outcomes": {outcome: int(counts.get(outcome, 0)) for outcome in OUTCOMES},
                "ranks": np.bincount(ranks[ranks > 0], minlength=k + 1)[1:].tolist(),
                "reliability": reliabilities(confidence, of_system, k),
            }
        return SystemSummary.model_construct(**dict(record), **figures)

    @property
    def first(self) -> str | None:
        """The system that others are compared with in tables: the first one that is no upper bound."""
        return next((name for name, system in self.record.systems.items() if not system.is_oracle), None)

    def without_class(self, family: str) -> int:
        """How many items have no class of a family: figures over all count them, and the rows of the family do not."""
        return int(self.classes[family].isna().sum())

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
        return frozenset(best) if column.better and len(best) < len(means) else frozenset()

    @functools.cached_property
    def against_first(self) -> Mapping[tuple[str, ...], Comparison]:
        """The significant differences from the first system: by system, family, class, and column."""
        differences = (one for one in self.comparisons if one.first == self.first and one.p_holm < SIGNIFICANT)
        return {(one.second, one.family, one.label, one.metric): one for one in differences}

    def is_defined(self, columns: Sequence[Column]) -> bool:
        """Whether any system has a value in some columns."""
        return any(self.mean(name, ALL, column).n for name in self.systems for column in columns)

    def to_frame(self) -> pd.DataFrame:
        """One row for each system and class.

        Columns: `system`, `family`, `class`, `n`, `few` (n < 30), and each metric with its bounds `_low` and `_high`.
        """
        rows = []
        for name, system in self.systems.items():
            for family, label in self.groups:
                scores = system.scores((family, label))
                row = {"system": name, "family": family, "class": label, "n": scores.n, "few": scores.few}
                for metric, mean in scores.means.items():
                    low, high = mean.ci or (None, None)
                    row |= {metric: mean.value, f"{metric}_low": low, f"{metric}_high": high}
                rows.append(row)
        return pd.DataFrame(rows)

    def comparisons_to_frame(self) -> pd.DataFrame:
        """One row for each pair of systems, metric and class; the columns are the attributes of `Comparison`."""
        return pd.DataFrame(self.comparisons, columns=Comparison._fields)

    def contexts_to_frame(self) -> pd.DataFrame:
        """One row for each context and system, or task and system.

        Columns: `context_id`, `system`; the class of each family; `citing`, a number that contexts of one citing paper
        share; for ranked lists `rank`, the rank of the first cited paper found; each metric, NaN if it is not defined.
        """
        frames = []
        for system in self.record.systems:
            frame = pd.DataFrame({"context_id": self.items["context"], "system": system, **self.classes})
            frame["citing"] = self.items["citing"]
            if not self.of_texts:
                gold = self.gold(system)
                first = np.where(gold > 0, gold, np.inf).min(axis=1)
                frame["rank"] = pd.array(np.where(np.isinf(first), np.nan, first), dtype="Int64")
            scores = self.scores[system].T
            frames.append(frame.assign(**{one.name: of_one for one, of_one in zip(self.columns, scores, strict=True)}))
        return pd.concat(frames, ignore_index=True)

    def __repr__(self) -> str:
        return f"<Results of {tables.title_of(self)}: {', '.join(self.systems)}>"

    def _repr_html_(self) -> str:
        """The figures over all items, for notebooks."""
        return to_html(tables.overall_table(self))

    def to_latex(self, family: str | None = None) -> str:
        """The scores over all items, or in each class of a family, as a table for LaTeX.

        The best is bold, brackets are 95 % intervals, † marks what differs significantly from the first system.

        Raises:
            InputError: There is no such family.
        """
        blocks = {block.name: block for block in tables.blocks(self)}
        if family and family not in blocks:
            raise InputError(f"these results have no family {family!r}", f"They have: {', '.join(blocks) or 'none'}.")
        return tables.to_latex(tables.block_table(self, blocks[family]) if family else tables.overall_table(self))

    def to_json(self) -> dict[str, Any]:
        """The run record, and the summary as records: systems, `means`, `comparisons`, `over_seeds`."""
        shown = {**self.systems, **({"target": self.targets} if self.targets else {})}
        means = [
            {"system": name, "family": group[0], "class": group[1], "metric": metric, **mean._asdict()}
            for name, system in shown.items()
            for group in self.groups
            for metric, mean in system.scores(group).means.items()
        ]
        return plain(
            {
                **self.record.model_dump(mode="json", exclude={"systems"}),
                "systems": {name: dict(system) for name, system in self.systems.items()},
                "without_class": {name: self.without_class(name) for name in self.families},
                "means": means,
                "comparisons": self.comparisons,
                "over_seeds": tables.over_seeds(self),
            }
        )

    def write(self, folder: str | Path) -> None:
        """Writes the tables, `meta.json`, CSV files, a page, and for ranked lists runs and qrels.

        They are written to a temporary folder, which replaces older results at the end.

        Raises:
            InputError: The folder holds something other than older results.
            BuildError: The disk is full, or may not be written to.
        """
        with RESULTS.writing(Path(folder)) as partial:
            (partial / META).write_text(self.record.model_dump_json(indent=2), encoding="utf-8")
            for name in TABLES:
                if len(table := getattr(self, name)):
                    table.to_parquet(partial / f"{name}.parquet", index=False)
            if not self.of_texts:
                of_first = self.ranks[self.ranks["system"] == next(iter(self.record.systems))]
                write_qrels(partial / QRELS, of_first.groupby("context", sort=False)["paper"].agg(list).items())
                (partial / RUNS).mkdir()
            for name, run in self.runs.items():
                hits = run.set_index("context")[["paper", "score"]].groupby(level=0, sort=False)
                answers = ((one, [*of.itertuples(index=False, name=None)]) for one, of in hits)
                write_run(partial / RUNS / f"{name}.trec", answers, name)
            for name, frame in ((SUMMARY, self.to_frame()), (SCORES, self.contexts_to_frame())):
                (partial / name).write_text(tables.to_csv(tables.frame_table(frame)), encoding="utf-8", newline="")
            write_page(self, partial / PAGE)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Reads back what `write` wrote, except the runs and the texts.

        Raises:
            InputError: There are no results, or they are broken, or of another version.
        """
        path = Path(folder)
        recover(path)
        if not (path / META).is_file():
            raise InputError(f"{path} holds no results", "Give a folder that citerec eval --out has written.")
        try:
            record = Record.model_validate_json((path / META).read_bytes())
            frames = {
                name: pd.read_parquet(file, columns=columns)
                for name, columns in TABLES.items()
                if (file := path / f"{name}.parquet").exists()
            }
            results = cls(record, **frames)
            _ = results.systems, results.comparisons
        except (InputError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, OSError) as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else error
            raise InputError(
                f"{path} holds no results of this version, or they are broken ({fault})",
                f"Evaluate again: citerec eval … --out {folder}",
            ) from error
        return results


def labels_table(
    ids: Sequence[str], citing: Any, texts: Sequence[str], classes: Mapping[str, Sequence[str | None]]
) -> pd.DataFrame:
    """The table of labels, by the ids, citing papers, texts and classes of all items."""
    items = pd.DataFrame({"item": range(len(ids)), "context": ids, "citing": citing, "text": texts})
    wide = pd.DataFrame({"item": items["item"], **classes})
    return items.merge(wide.melt("item", var_name="family", value_name="class").dropna(), how="left", on="item")


def plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Data classes, named tuples, mappings and sequences as dictionaries and lists."""
    data: dict[str, Any] = orjson.loads(
        orjson.dumps(value, default=lambda one: one._asdict() if hasattr(one, "_asdict") else dict(one))
    )
    return data


def merge(parts: Mapping[str, Results]) -> Results:
    """Results with the systems of all parts: their tables, one below the other.

    A name of several parts gets the part's name appended.

    Raises:
        InputError: The parts are of other contexts, were not measured in the same way, or a name is that of different
            systems.
    """
    (first_name, first), *_ = parts.items()
    for name, part in parts.items():
        for what, of_first in _measured_by(first).items():
            if _measured_by(part)[what] != of_first:
                remedy = "Evaluate them on the same set and index, with the same options."
                raise InputError(f"{name} and {first_name} used different {what}", remedy)
    records = {name: part.record for name, part in parts.items()}
    often = Counter(system for record in records.values() for system in record.systems)
    for system in often:
        said = [(record.index, record.systems[system]) for record in records.values() if system in record.systems]
        first_said, *others = ((pool and pool.engine, one.kind, one.settings, one.digests) for pool, one in said)
        if any(other != first_said for other in others):
            remedy = "Measure one of them under another name."
            raise InputError(
                f"{system} is not the same system in all results: settings, digests or engines differ", remedy
            )
    names = {
        (name, system): f"{system}@{name}" if often[system] > 1 else system
        for name, record in records.items()
        for system in record.systems
    }
    changes = {
        "systems": {new: records[name].systems[system] for (name, system), new in names.items()},
        "notes": tuple(dict.fromkeys(note for record in records.values() for note in record.notes)),
        # What is said of a preset or of training holds for the systems of one part.
        "preset": None,
        "set": first.record.set.model_copy(update={"training_overlap": None}),
    }

    def joined(table: str) -> pd.DataFrame:
        frames = {name: getattr(part, table) for name, part in parts.items()}
        new = {name: [names.get((name, one), one) for one in frame["system"]] for name, frame in frames.items()}
        return pd.concat([frame.assign(system=new[name]) for name, frame in frames.items()], ignore_index=True)

    # What the authors wrote is in all parts.
    texts = joined("texts").drop_duplicates(["task", "dataset", "system", "metric"])
    record = first.record.model_copy(update=changes)
    return Results(record, first.labels, joined("ranks"), joined("confidence"), texts)


def _measured_by(results: Results) -> dict[str, Any]:
    """What must be the same in results that are merged."""
    record = results.record
    of_first = results.ranks[results.ranks["system"] == next(iter(record.systems))]
    return {
        "contexts or tasks": [results.items.to_numpy().tolist(), of_first[["context", "paper"]].to_numpy().tolist()],
        "indexes": record.index and record.index.fingerprint,
        "rules": [record.rules, record.k],
        "metrics": [record.columns, record.settings],
        "classes": [record.families, results.classes.fillna("").to_numpy().tolist()],
    }
