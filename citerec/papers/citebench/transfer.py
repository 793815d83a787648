"""The matrix of transfer: writers trained on each of some data sets write for each (CiteBench, table 4)."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from citerec.errors import InputError
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.results import plain
from citerec.evaluation.statistics import OVERALL
from citerec.evaluation.tables import Cell, OverSeeds, Table, left, over_seeds, right, seed_name
from citerec.evaluation.texts import evaluate_texts
from citerec.files.hashing import file_digest
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import Journal
from citerec.files.writing import beside
from citerec.train.groups import Choice, Schedule
from citerec.train.writer import WriterOptions, train_seeds
from citerec.write.drafting import write_batch
from citerec.write.metrics import Column, TextMetric
from citerec.write.writers.models import Seq2seqWriter

_FEWEST_RESAMPLES = 100  # of intervals, which are not shown


class Transfer(NamedTuple):
    """What to train on and what to test on.

    Attributes:
        train: By name what to learn from.
        test: By name a file of tasks to write for.
        seeds: The seeds of training.
    """

    train: Mapping[str, Choice]
    test: Mapping[str, Path]
    seeds: Sequence[int] = (0,)


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
            plan = {"learnt": writers, "tasks": file_digest(tasks)}
            journal = Journal(beside(predictions_of(out, test, name, 0).parent, "journal"), plan)
            for seed in transfer.seeds:
                predictions = predictions_of(out, test, name, seed)
                if predictions.exists() and seed in (journal.notes.get("done") or ()):
                    continue
                predictions.parent.mkdir(parents=True, exist_ok=True)
                writer = Seq2seqWriter.open(str(models / f"seed-{seed}"), kind=options.writes, device=device)
                write_batch(tasks, writer, predictions, on_progress=on_progress)
                journal.note(done=[*(journal.notes.get("done") or ()), seed])


def predictions_of(out: Path, test: str, trained: str, seed: int) -> Path:
    """The file of what a writer wrote for a test set."""
    return out / "predictions" / test / f"{seed_name(trained, seed)}.jsonl"


def measure_transfer(
    transfer: Transfer, out: Path, metrics: Sequence[TextMetric], *, on_progress: Progress = no_progress
) -> dict[str, Any]:
    """Measures what `train_and_write` wrote.

    For each test set, tasks that any of the writers learnt from are left out for all.

    Returns:
        As JSON. `seeds`. `tasks`: by test set how many tasks all writers answered and none learnt from (`compared`),
        and how many there are (`asked`). `settings` of each metric. `values`: by training set, test set and column the
        `mean` over the seeds, its standard deviation `sd`, and the number `n` of seeds that have a value.

    Raises:
        SourceError: Predictions are missing.
        InputError: Nothing is left of a test set.
    """
    values: dict[str, dict[str, dict[str, OverSeeds]]] = {name: {} for name in transfer.train}
    tasks = {}
    for test in transfer.test:
        trained = itertools.product(transfer.train, transfer.seeds)
        predictions = read_predictions([(seed_name(*one), predictions_of(out, test, *one)) for one in trained])
        tasks[test] = {"compared": len(predictions.tasks), "asked": predictions.total}
        results = evaluate_texts(predictions, metrics, resamples=_FEWEST_RESAMPLES, on_progress=on_progress)
        for name, of_groups in over_seeds(results).items():
            values[name][test] = of_groups[OVERALL]
    settings = {metric.name: metric.settings for metric in metrics}
    facts = {"seeds": transfer.seeds, "tasks": tasks, "settings": settings, "values": values}
    return plain({"kind": "citerec-transfer", "version": 1, **facts})


def transfer_table(matrix: Mapping[str, Any], column: Column) -> Table:
    """The matrix of one column: a row for each set that was trained on, a column for each that was tested on.

    ★ marks the best of a column.
    """
    choose = min if column.better == "lower" else max
    table = Table([*left("trained on"), *right(*matrix["tasks"])], title=column.title)
    table.rows.extend([trained] for trained in matrix["values"])
    for test in matrix["tasks"]:
        over_seeds = [OverSeeds(**of_sets[test][column.name]) for of_sets in matrix["values"].values()]
        means = [one.mean for one in over_seeds if one.mean is not None]
        best = choose(means) if means and column.judges and len(over_seeds) > 1 else None
        for row, one in zip(table.rows, over_seeds, strict=True):
            cell, star = one.cell(column), one.mean is not None and one.mean == best
            row.append(Cell(cell.value, (("★ ", "warning"), *cell.spans)) if star else cell)
    return table


def _check(transfer: Transfer) -> None:
    for name in (*transfer.train, *transfer.test):
        if name != Path(name).name or name.startswith("."):
            raise InputError(f"{name!r} is no name of a folder", "Give another: NAME=FILE.")
    for tasks in transfer.test.values():
        if not tasks.is_file():
            raise InputError(f"there is no file {tasks}", "Give a file of tasks: --test NAME=FILE.")
