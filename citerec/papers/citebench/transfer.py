"""The matrix of transfer: writers trained on each of some data sets write for each (CiteBench, table 4)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from citerec.errors import InputError
from citerec.evaluation.results import plain
from citerec.evaluation.statistics import OVERALL
from citerec.evaluation.tables import Cell, OverSeeds, Table, left, over_seeds, right, seed_name
from citerec.evaluation.texts import evaluate_texts, read_predictions
from citerec.files.progress import no_note, no_progress
from citerec.files.resume import Journal, file_digest
from citerec.train.groups import Choice, How, Schedule
from citerec.train.writer import WriterOptions, train_seeds
from citerec.write.drafting import write_batch
from citerec.write.metrics import Column, TextMetric
from citerec.write.writers.models import Seq2seqWriter

_FEWEST_RESAMPLES = 100  # of intervals, which are not shown


def measure_transfer(
    train: Mapping[str, Choice],
    test: Mapping[str, Path],
    out: Path,
    options: WriterOptions,
    schedule: Schedule,
    *,
    seeds: Sequence[int],
    metrics: Sequence[TextMetric],
    **how: Unpack[How],
) -> dict[str, Any]:
    """Trains a writer on each set with each seed, writes for each test set, and measures; stopped work is continued.

    Writers are in `out/models/SET/seed-N`, their texts in `out/predictions/TEST/SET/seed-N.jsonl`. What is there
    already of the same work is kept. For each test set, tasks that any of the writers learnt from are left out for all.

    Args:
        train: By name what to learn from.
        test: By name a file of tasks to write for.
        out: The folder to write to.
        options: How to train the writers.
        schedule: How long, and how fast.
        seeds: The seeds of training.
        metrics: The metrics of the matrix.
        how: The device, and what is called as the work goes on.

    Returns:
        As JSON. `seeds`. `tasks`: by test set how many tasks all writers answered and none learnt from (`compared`),
        and how many there are (`asked`). `settings` of each metric. `values`: by training set, test set and column the
        `mean` over the seeds, its standard deviation `sd`, and the number `n` of seeds that have a value.

    Raises:
        InputError: A name is unknown or no name of a folder, nothing is left of a test set, or as `train_writer`.
        BuildError, ModelError, SourceError, WriterError: As `train_writer` and `write_batch`.
    """
    for name in (*train, *test):
        if name != Path(name).name or name.startswith("."):
            raise InputError(f"{name!r} is no name of a folder", "Give another: NAME=FILE.")
    for tasks in test.values():
        if not tasks.is_file():
            raise InputError(f"there is no file {tasks}", "Give a file of tasks: --test NAME=FILE.")
    device, on_progress = how.get("device"), how.get("on_progress", no_progress)
    files: dict[str, list[tuple[str | None, Path]]] = {name: [] for name in test}
    for name, choice in train.items():
        models = out / "models" / name
        how.get("note", no_note)(f"training on {name}")
        manifests = train_seeds(choice, models, options, schedule, seeds, **how)
        writers = {str(seed): manifest.model_dump(mode="json") for seed, manifest in manifests.items()}
        for tested, tasks in test.items():
            plan = {"learnt": writers, "tasks": file_digest(tasks)}
            folder = Journal(out / "predictions" / tested / name, plan).folder
            for seed in seeds:
                predictions = folder / f"seed-{seed}.jsonl"
                if not predictions.exists():
                    writer = Seq2seqWriter.open(str(models / f"seed-{seed}"), kind=options.writes, device=device)
                    write_batch(tasks, writer, predictions, on_progress=on_progress)
                files[tested].append((seed_name(name, seed), predictions))
    values: dict[str, dict[str, dict[str, OverSeeds]]] = {name: {} for name in train}
    numbers = {}
    for tested, of_test in files.items():
        read = read_predictions(of_test)
        numbers[tested] = {"compared": len(read.tasks), "asked": read.total}
        results = evaluate_texts(read, metrics, resamples=_FEWEST_RESAMPLES, on_progress=on_progress)
        for name, of_groups in over_seeds(results).items():
            values[name][tested] = of_groups[OVERALL]
    settings = {metric.name: metric.settings for metric in metrics}
    facts = {"seeds": seeds, "tasks": numbers, "settings": settings, "values": values}
    return plain({"kind": "citerec-transfer", "version": 1, **facts})


def transfer_table(matrix: Mapping[str, Any], column: Column) -> Table:
    """The matrix of one column: a row for each set that was trained on, a column for each that was tested on.

    ★ marks the best of a column.
    """
    choose = min if column.better == "lower" else max
    compared = ", ".join(f"{test} {n['compared']:,} of {n['asked']:,}" for test, n in matrix["tasks"].items())
    about = (
        f"Mean over {len(matrix['seeds'])} seeds ± standard deviation. Tasks that no writer learned from: {compared}."
    )
    table = Table([*left("trained on"), *right(*matrix["tasks"])], title=column.title, footnotes=[about])
    table.rows.extend([trained] for trained in matrix["values"])
    for test in matrix["tasks"]:
        over_seeds = [OverSeeds(**of_sets[test][column.name]) for of_sets in matrix["values"].values()]
        means = [one.mean for one in over_seeds if one.mean is not None]
        best = choose(means) if means and column.better and len(over_seeds) > 1 else None
        for row, one in zip(table.rows, over_seeds, strict=True):
            cell, star = one.cell(column), one.mean is not None and one.mean == best
            row.append(Cell(cell.value, (("★ ", "warning"), *cell.spans)) if star else cell)
    return table
