"""The matrix of transfer: writers trained on each of some data sets write for each (CiteBench, table 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.rendering import Table
from citerec.evaluation.seeds import OverSeeds, by_seed, matrix_table, seed_name
from citerec.files.hashing import file_digest
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import Journal
from citerec.files.writing import beside
from citerec.train.base import Schedule
from citerec.train.groups import Choice
from citerec.train.writer import WriterOptions, train_seeds
from citerec.write.batch import write_batch
from citerec.write.metrics.base import Column, TextMetric
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
        values: By training set, test set and column.
        tasks: By test set how many tasks all writers answered and none learnt from, and how many there are.
        settings: The settings of each metric.
        seeds: The seeds.
    """

    columns: Sequence[Column]
    values: Mapping[str, Mapping[str, Mapping[str, OverSeeds]]]
    tasks: Mapping[str, tuple[int, int]]
    settings: Mapping[str, Mapping[str, Any]]
    seeds: Sequence[int]

    def table(self, column: str) -> Table:
        """The matrix of one column, trained × tested on; an InputError if there is none of this name."""
        found = next((one for one in self.columns if one.name == column), None)
        if found is None:
            known = ", ".join(one.name for one in self.columns)
            raise InputError(f"no metric has a column {column}", f"Choose: {known}.")
        values = {
            trained: {test: of_columns[column] for test, of_columns in row.items()}
            for trained, row in self.values.items()
        }
        return matrix_table(values, list(self.tasks), found, found.title)

    def to_json(self) -> dict[str, Any]:
        """All values, as metrics give them."""
        return {
            "kind": "citerec-transfer",
            "version": 1,
            "seeds": list(self.seeds),
            "tasks": {test: {"compared": number, "asked": asked} for test, (number, asked) in self.tasks.items()},
            "settings": {name: dict(of_metric) for name, of_metric in self.settings.items()},
            "values": {
                trained: {test: {name: asdict(value) for name, value in row.items()} for test, row in of_tests.items()}
                for trained, of_tests in self.values.items()
            },
        }


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
        InputError: There is no set, a name is unknown or no name of a folder, or as `train_writer`.
        BuildError, ModelError, SourceError, WriterError: As `train_writer` and `write_batch`.
    """
    _check(transfer)
    for name, choice in transfer.train.items():
        folder = out / "models" / name
        note(f"training on {name}")
        manifests = train_seeds(
            choice, folder, options, schedule, transfer.seeds, device=device, on_progress=on_progress, note=note
        )
        learnt = {str(seed): manifest.model_dump(mode="json") for seed, manifest in manifests.items()}
        for test, tasks in transfer.test.items():
            kind = transfer.kinds.get(test, options.writes)
            written_by = {"options": dict(transfer.options), "kind": kind}
            plan = {"learnt": learnt, "tasks": file_digest(tasks), **written_by}
            journal = Journal(beside(predictions_of(out, test, name, 0).parent, "journal"), plan)
            for seed in transfer.seeds:
                place = predictions_of(out, test, name, seed)
                if place.exists() and seed in journal.done:
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                writer = Seq2seqWriter.open(
                    str(folder / f"seed-{seed}"), task=kind, device=device, options=transfer.options
                )
                write_batch(tasks, writer, place, on_progress=on_progress)
                journal.finish(seed)


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
        files = [
            (seed_name(name, seed), predictions_of(out, test, name, seed))
            for name in transfer.train
            for seed in transfer.seeds
        ]
        predictions = read_predictions(files)
        tasks[test] = len(predictions.tasks), predictions.asked
        means: dict[str, list[float | None]] = {}
        for system, texts in predictions.systems.items():
            scores = np.concatenate([metric.scores(texts, on_progress) for metric in metrics], axis=1)
            known = [column[~np.isnan(column)] for column in scores.T]
            means[system] = [float(column.mean()) if len(column) else None for column in known]
        for name, seeds in by_seed(predictions.systems).items():
            of_seeds = [means[system] for system in seeds.values()]
            values[name][test] = {
                column.name: OverSeeds.of(row[place] for row in of_seeds) for place, column in enumerate(columns)
            }
    return Matrix(columns, values, tasks, {metric.name: metric.settings for metric in metrics}, tuple(transfer.seeds))


def _check(transfer: Transfer) -> None:
    if not transfer.train or not transfer.test:
        raise InputError("there is no set to train on, or none to test on", "Give --train NAME=FILE --test NAME=FILE.")
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
