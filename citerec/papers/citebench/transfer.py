"""The matrix of transfer: writers trained on each of some data sets write for each (CiteBench, table 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.evaluation.results import plain
from citerec.evaluation.seeds import OverSeeds, seed_name
from citerec.files.hashing import file_digest
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import Journal
from citerec.files.writing import beside
from citerec.train.base import Schedule
from citerec.train.groups import Choice
from citerec.train.writer import WriterOptions, train_seeds
from citerec.write.batch import write_batch
from citerec.write.metrics.base import Column, TextMetric
from citerec.write.tasks import Prediction
from citerec.write.writers import Kind
from citerec.write.writers.seq2seq import Seq2seqWriter


@dataclass(frozen=True, slots=True)
class Transfer:
    """What to train on and what to test on.

    Attributes:
        train: By name what to learn from.
        test: By name a file of tasks to write for.
        seeds: The seeds of training.
        kinds: By name of a test set the kind of its texts; by default the one that was learnt.
        options: Changes to how the writers write, as `Seq2seqWriter.open` takes them.
    """

    train: Mapping[str, Choice]
    test: Mapping[str, Path]
    seeds: Sequence[int] = (0,)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values over seeds by training set, test set and column.

    Attributes:
        columns: The columns of all metrics.
        seeds: The seeds.
        tasks: By test set how many tasks all writers answered and none learnt from (`compared`), and how many there are
            (`asked`).
        settings: The settings of each metric.
        values: By training set, test set and column.
    """

    columns: Sequence[Column]
    seeds: Sequence[int]
    tasks: Mapping[str, Mapping[str, int]]
    settings: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Mapping[str, Mapping[str, OverSeeds]]]

    def table(self, column: str) -> Table:
        """The matrix of one column: a row for each set that was trained on, a column for each that was tested on.

        ★ marks the best of a column.
        """
        shown = next(one for one in self.columns if one.name == column)
        choose = min if shown.better == "lower" else max
        table = Table([*left("trained on"), *right(*self.tasks)], title=shown.title)
        table.rows.extend([trained] for trained in self.values)
        for test in self.tasks:
            over_seeds = [of_sets[test][column] for of_sets in self.values.values()]
            means = [one.mean for one in over_seeds if one.mean is not None]
            best = choose(means) if means and shown.judges and len(self.values) > 1 else None
            for row, one in zip(table.rows, over_seeds, strict=True):
                cell, star = one.cell(shown), one.mean is not None and one.mean == best
                row.append(Cell(cell.value, (("★ ", "warning"), *cell.spans)) if star else cell)
        return table

    def to_json(self) -> dict[str, Any]:
        """All values, as metrics give them."""
        values = asdict(self)
        del values["columns"]
        return plain({"kind": "citerec-transfer", "version": 1, **values})


def train_and_write(
    transfer: Transfer,
    out: Path,
    options: WriterOptions,
    schedule: Schedule,
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> None:
    """Trains a writer on each set with each seed, and writes for each test set; stopped work is continued.

    Writers are in `out/models/SET/seed-N`, their texts in `out/predictions/TEST/SET/seed-N.jsonl`. What is there
    already of the same work is kept.

    Raises:
        InputError: A name is unknown or no name of a folder, or as `train_writer`.
        BuildError, ModelError, SourceError, WriterError: As `train_writer` and `write_batch`.
    """
    _check(transfer)
    for name, choice in transfer.train.items():
        models = out / "models" / name
        note(f"training on {name}")
        manifests = train_seeds(
            choice, models, options, schedule, transfer.seeds, device=device, on_progress=on_progress, note=note
        )
        writers = {str(seed): manifest.model_dump(mode="json") for seed, manifest in manifests.items()}
        for test, tasks in transfer.test.items():
            kind, written_by = transfer.kinds.get(test, options.writes), dict(transfer.options)
            plan = {"learnt": writers, "tasks": file_digest(tasks), "options": written_by, "kind": kind}
            journal = Journal(beside(predictions_of(out, test, name, 0).parent, "journal"), plan)
            for seed in transfer.seeds:
                predictions = predictions_of(out, test, name, seed)
                if predictions.exists() and seed in (journal.get("done") or ()):
                    continue
                predictions.parent.mkdir(parents=True, exist_ok=True)
                writer = Seq2seqWriter.open(str(models / f"seed-{seed}"), kind=kind, device=device, options=written_by)
                write_batch(tasks, writer, predictions, on_progress=on_progress)
                journal.note(done=[*(journal.get("done") or ()), seed])


def predictions_of(out: Path, test: str, trained: str, seed: int) -> Path:
    """The file of what a writer wrote for a test set."""
    return out / "predictions" / test / f"{seed_name(trained, seed)}.jsonl"


def measure_transfer(
    transfer: Transfer, out: Path, metrics: Sequence[TextMetric], *, on_progress: Progress = no_progress
) -> Matrix:
    """Measures what `train_and_write` wrote.

    For each test set, tasks that any of the writers learnt from are left out for all.

    Raises:
        SourceError: Predictions are missing.
        InputError: Nothing is left of a test set.
    """
    columns = [column for metric in metrics for column in metric.columns]
    values: dict[str, dict[str, dict[str, OverSeeds]]] = {name: {} for name in transfer.train}
    tasks = {}
    for test in transfer.test:
        trained = [(name, seed) for name in transfer.train for seed in transfer.seeds]
        files = [(seed_name(*one), predictions_of(out, test, *one)) for one in trained]
        predictions = read_predictions(files)
        tasks[test] = {"compared": len(predictions.tasks), "asked": predictions.asked}
        for name in transfer.train:
            texts = [predictions.systems[seed_name(name, seed)] for seed in transfer.seeds]
            means = [_means(metrics, of_seed, on_progress) for of_seed in texts]
            values[name][test] = {
                column.name: OverSeeds.of(of_seeds)
                for column, of_seeds in zip(columns, zip(*means, strict=True), strict=True)
            }
    settings = {metric.name: metric.settings for metric in metrics}
    return Matrix(columns, transfer.seeds, tasks, settings, values)


def _means(metrics: Sequence[TextMetric], texts: Sequence[Prediction], on_progress: Progress) -> Iterator[float | None]:
    """The mean of each column of some metrics over the texts that have a value; None if none has."""
    for metric in metrics:
        for values in metric.scores(texts, on_progress).T:
            defined = values[~np.isnan(values)]
            yield float(defined.mean()) if len(defined) else None


def _check(transfer: Transfer) -> None:
    if str(transfer.options.get("gold_prompt") or 0) != "0":
        raise InputError("texts that begin as their targets do are upper bounds, no transfer", "Leave out gold_prompt.")
    for name in (*transfer.train, *transfer.test):
        if name != Path(name).name or name.startswith("."):
            raise InputError(f"{name!r} is no name of a folder", "Give another: NAME=FILE.")
    if unknown := [name for name in transfer.kinds if name not in transfer.test]:
        raise InputError(f"{unknown[0]} is no set to test on", "Give kinds of sets that are tested on.")
    if wrong := [kind for kind in transfer.kinds.values() if kind not in get_args(Kind)]:
        raise InputError(f"{wrong[0]!r} is no kind of text", f"Choose: {', '.join(get_args(Kind))}.")
    for tasks in transfer.test.values():
        if not tasks.is_file():
            raise InputError(f"there is no file {tasks}", "Give a file of tasks: --test NAME=FILE.")
