"""Tables of texts: each row's writer writes, and the metrics of a preset measure."""

import itertools
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from citerec.errors import InputError, ModelError, WriterError
from citerec.evaluation.results import Results, SystemSummary
from citerec.evaluation.statistics import ALL, DATASET, Group
from citerec.evaluation.texts import evaluate_texts, read_predictions
from citerec.files.resume import digest_of, identity
from citerec.files.text import counted
from citerec.papers.common import reproduce
from citerec.write.drafting import write_batch
from citerec.write.metrics import PRESETS, open_metrics
from citerec.write.task_files import read_tasks, task_record, write_tasks
from citerec.write.tasks import TextTask
from citerec.write.writers.base import WRITERS, Kind, open_writer


def run(table: reproduce.Reproduction) -> None:
    """Writes a text by each system that is here for each task that is here, and measures with the recipe's preset."""
    recipe, tasks = table.recipe, _gather(table)
    runs: dict[str, list[str]] = {}
    files: list[tuple[str | None, Path]] = []
    for row in recipe.rows:
        for number, paths in enumerate(_texts_of(row, table, tasks), 1):
            name = f"{row.title} (run {number})" if number > 1 else row.title
            runs.setdefault(row.title, []).append(name)
            files += [(name, path) for path in paths]
    names = reproduce.metrics_here(recipe, table.missing) if tasks else []
    if not files:
        return
    if not names:
        raise InputError(f"no metric of {recipe.name} can be computed here", str(table.missing[-1]))
    preset = PRESETS[recipe.preset]
    table.on_progress("opening metrics", 0, 0)
    metrics = open_metrics(**preset.arguments(names=names))
    # All tasks, as in the paper: a note says which of them a writer learned from.
    predictions = read_predictions(files, include_training_tasks=True)
    results = evaluate_texts(predictions, *metrics, preset=preset.used(names=names), on_progress=table.on_progress)
    _add_cells(table, results, runs)
    table.results, table.settings = {"texts": results}, results.record.settings
    table.notes += results.record.notes


def _gather(table: reproduce.Reproduction) -> list[Path]:
    """Files of the tasks to measure on: the sample, or the data sets of the recipe that are in the data folder.

    The table gets what they are, by its groups, and what is missing.
    """
    recipe = table.recipe
    if table.sample:
        tasks = table.sample_tasks()
        table.measured_on[table.sample.group or (reproduce.MEAN if len(recipe.groups) > 1 else "")] = table.sampled
        return [_write_tasks(tasks, table.work)]
    files: list[Path] = []
    of_groups: list[TextTask] = []
    of_rows = {row.data for row in recipe.rows}
    for data in recipe.data:
        if data.training or data.name in of_rows:
            continue
        if not (paths := reproduce.published(table.data, data, table.missing)):
            continue
        read = (replace(task, dataset=data.name) for path in paths for task in read_tasks(path))
        if recipe.groups:
            tasks = list(read)
            of_groups += tasks
            table.measured_on[data.name] = counted(len(tasks), "task")
        else:  # as they are: full texts are read from the file itself
            files += paths
            table.measured_on[""] = counted(sum(1 for _ in read), "task")
    return [_write_tasks(of_groups, table.work)] if of_groups else files


def _texts_of(row: reproduce.Row, table: reproduce.Reproduction, tasks: Sequence[Path]) -> list[list[Path]]:
    """For each run of a row its files of texts, one for each of tasks; what cannot be written is added as missing."""
    writers = reproduce.checkpoints(table.recipe, row, table.writers.get(row.title, ()))
    if not writers:
        table.missing.append(reproduce.missing_row(table.recipe, row))
    if not writers or not tasks:
        return []
    if table.sample and (row.given not in ("", "abstracts") or row.data):
        table.missing.append(reproduce.Missing(row.title, "the sample has abstracts only", "Measure the table's data."))
        return []
    if row.data:
        tasks = reproduce.published(table.data, table.recipe.data_set(row.data), table.missing)
    runs = []
    for writer in writers if tasks else ():
        try:
            runs.append([_write(writer, row, table, path) for path in tasks])
        except (InputError, ModelError, WriterError) as error:
            table.missing.append(reproduce.Missing(row.title, error.message, error.remedy))
    return runs


def _write_tasks(tasks: Sequence[TextTask], work: Path) -> Path:
    """A file of tasks, named by its content, so that the same tasks are the same file."""
    path = work / f"tasks-{digest_of(list(map(task_record, tasks)))}.jsonl"
    if not path.exists():
        write_tasks(tasks, path)
    return path


def _write(name: str, row: reproduce.Row, table: reproduce.Reproduction, tasks: Path) -> Path:
    """The texts of one writer, as `write batch` writes them; a stopped file is continued, a whole one kept."""
    is_registered = name in WRITERS
    options = None if is_registered and name != row.writer else row.options
    device = None if is_registered else table.device
    writer = open_writer(name, cast(Kind, table.recipe.kind), device=device, options=options or None)
    content = digest_of([identity(tasks), row.given, writer.name, dict(writer.settings)])
    out = table.work / f"{re.sub(r'[^a-z0-9]+', '-', row.title.lower()).strip('-')}-{content}.jsonl"
    if not out.exists():
        input_name = None if table.sample else row.given or None

        def on_progress(doing: str, *done: float) -> None:
            table.on_progress(f"{row.title}: {doing}", *done)

        write_batch(tasks, writer, out, input_name=input_name, on_progress=on_progress)
    return out


def _add_cells(table: reproduce.Reproduction, results: Results, runs: Mapping[str, Sequence[str]]) -> None:
    """Adds the values of rows in groups, and their means over the groups where all are known."""
    groups = list(table.measured_on)
    for (title, names), measure in itertools.product(runs.items(), table.recipe.measures):
        of_groups = []
        for group in groups if not measure.group else {measure.group}.intersection(groups):
            label = ALL if len(groups) == 1 else (DATASET, group)
            if values := [one for name in names if (one := _value(results.systems[name], label, measure))]:
                of_groups.append(reproduce.Measured.of_runs(values))
                table.cells[title, group, measure.name] = of_groups[-1]
        if len(groups) > 1 and len(of_groups) == len(table.recipe.groups):
            mean = statistics.fmean(one.value for one in of_groups)
            table.cells[title, reproduce.MEAN, measure.name] = reproduce.Measured(mean, sum(one.n for one in of_groups))


def _value(system: SystemSummary, group: Group, measure: reproduce.Measure) -> reproduce.Measured | None:
    """A mean over texts, or a value of all texts together; None if it was not measured, or is not defined."""
    scores = system.scores(group)
    n, value, ci = scores.means.get(measure.column) or (scores.n, None, None)
    if measure.column not in scores.means:
        value = system.summaries.get(measure.metric, {}).get(group[1], {}).get("values", {}).get(measure.column)
    bounds = [bound * measure.scale for bound in ci] if ci else None
    return None if value is None else reproduce.Measured(value * measure.scale, n, bounds)
