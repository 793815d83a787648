"""Results of an evaluation, in memory and as a folder (docs/formats.md): tables, a run record, a page."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import orjson
import pandas as pd
from pydantic import ValidationError

from citerec.diagnostics.sets import write_qrels
from citerec.errors import InputError, first_fault
from citerec.evaluation import tables
from citerec.evaluation.figures import TABLES, Figures
from citerec.evaluation.page import to_html, write_page
from citerec.evaluation.record import KIND, Record
from citerec.files.writing import Kind
from citerec.retrieve.run import write_run

META, SUMMARY, SCORES = "meta.json", "results.csv", "scores.csv"
PAGE, QRELS, RUNS = "report.html", "qrels.txt", "runs"
RESULTS = Kind(
    "folder of results",
    KIND,
    META,
    frozenset({META, SUMMARY, SCORES, PAGE, QRELS, RUNS, *(f"{name}.parquet" for name in TABLES)}),
)


class Results(Figures):
    """Results of ranked lists by `citerec.evaluate`, or of texts by `evaluate_texts`."""

    def __repr__(self) -> str:
        return f"<Results of {tables.title_of(self)}: {', '.join(self.systems)}>"

    def _repr_html_(self) -> str:
        """The figures over all items, for notebooks."""
        return to_html(tables.overall_table(self))

    def to_latex(self, family: str | None = None) -> str:
        """The scores over all items, or in each class of a family, as a table for LaTeX.

        The best is bold, brackets are 95 % intervals, † marks what differs significantly from the first system.
        """
        blocks = {block.name: block for block in tables.blocks(self)}
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
