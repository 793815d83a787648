"""Tables of texts: writers write, metrics measure."""

import itertools
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson

from citerec.errors import InputError, ModelError, WriterError
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import ALL, DATASET, Group
from citerec.evaluation.summary import SystemSummary
from citerec.evaluation.texts import evaluate_texts
from citerec.files.hashing import digest_of, identity
from citerec.files.text import counted
from citerec.files.writing import writing_file
from citerec.papers.common.reproduce import base, here
from citerec.papers.common.reproduce.base import MEAN, Cells, Measured, Missing, Outcome, Recipe, Request, Row, Runner
from citerec.write.batch import write_batch
from citerec.write.metrics.base import open_metrics
from citerec.write.presets import PRESETS
from citerec.write.task_files import read_tasks, task_record
from citerec.write.tasks import TextTask
from citerec.write.writers.base import WRITERS, Kind, open_writer

ABSTRACTS = "abstracts"


class Texts(Runner):
    """Writes a text by each system that is here for each task that is here, and measures with the recipe's preset."""

    name = "texts"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        tasks, about, missing = gather(recipe, request)
        runs: dict[str, list[str]] = {}
        files: list[tuple[str | None, Path]] = []
        for row in recipe.rows:
            for number, paths in enumerate(_texts_of(row, recipe, request, tasks, missing), 1):
                name = f"{row.title} (run {number})" if number > 1 else row.title
                runs.setdefault(row.title, []).append(name)
                files += [(name, path) for path in paths]
        if not tasks:
            return Outcome({}, missing)
        names, left_out = here.metrics_here(recipe)
        missing += left_out
        if not files:
            return Outcome({}, missing, about)
        if not names:
            raise InputError(f"no metric of {recipe.name} can be computed here", str(left_out[0]))
        preset = PRESETS[recipe.preset]
        request.on_progress("opening metrics", 0, 0)
        metrics = open_metrics(**preset.arguments(names=names))
        # All tasks, as in the paper: a note says which of them a writer learned from.
        predictions = read_predictions(files, include_training_tasks=True)
        used = preset.used(names=names)
        results = evaluate_texts(predictions, *metrics, preset=used, on_progress=request.on_progress)
        return Outcome(
            cells=_cells(recipe, results, runs, list(about)),
            missing=missing,
            measured_on=about,
            settings=results.record.settings,
            sampled=next(iter(about.values())) if request.sample else "",
            results={"texts": results},
            notes=results.record.notes,
        )

    def runnable(self, recipe: Recipe) -> int:
        """How many rows have a writer or a checkpoint here."""
        return sum(bool(here.checkpoints(recipe, row, ())) for row in recipe.rows)


def gather(recipe: Recipe, request: Request) -> tuple[list[Path], dict[str, str], list[Missing]]:
    """The tasks to measure on: the sample, or the data sets of the recipe that are in the data folder.

    Returns:
        Files of tasks, what they are by group of the table, and what is missing.

    Raises:
        InputError: There is no sample.
        SourceError: A file cannot be read, or is not the published one.
    """
    if request.sample:
        what, tasks = here.sample_tasks(recipe, request)
        whole = MEAN if len(recipe.groups) > 1 else ""
        group = here.sample_of(recipe).group or whole
        return [_write_tasks(tasks, request.work)], {group: f"{len(tasks):,} {what}"}, []
    files: list[Path] = []
    about: dict[str, str] = {}
    missing: list[Missing] = []
    of_groups: list[TextTask] = []
    of_rows = {row.data for row in recipe.rows}
    for data in recipe.data:
        if data.training or data.name in of_rows:
            continue
        if not (paths := here.published(request.data, data, missing)):
            continue
        read = (task for path in paths for task in read_tasks(path))
        if recipe.groups:
            before = len(of_groups)
            of_groups += (replace(task, dataset=data.name) for task in read)
            about[data.name] = counted(len(of_groups) - before, "task")
        else:
            # As they are: full texts are read from the file itself.
            files += paths
            about[""] = counted(sum(1 for _ in read), "task")
    return [_write_tasks(of_groups, request.work)] if of_groups else files, about, missing


def _texts_of(
    row: Row, recipe: Recipe, request: Request, tasks: Sequence[Path], missing: list[Missing]
) -> list[list[Path]]:
    """For each run of a row its files of texts, one for each of tasks; adds to `missing` what cannot be written."""
    writers = here.checkpoints(recipe, row, request.writers.get(row.title, ()))
    if not writers:
        missing.append(here.missing_row(recipe, row))
    if not writers or not tasks:
        return []
    if request.sample and (row.given not in ("", ABSTRACTS) or row.data):
        missing.append(Missing(row.title, "the sample has abstracts only", "Measure the table's data."))
        return []
    if row.data:
        data = next(one for one in recipe.data if one.name == row.data)
        tasks = here.published(request.data, data, missing)
        if not tasks:
            return []
    runs = []
    for writer in writers:
        try:
            runs.append([_write(writer, row, recipe, request, path) for path in tasks])
        except (InputError, ModelError, WriterError) as error:
            missing.append(Missing(row.title, error.message, error.remedy))
    return runs


def _write_tasks(tasks: Sequence[TextTask], work: Path) -> Path:
    """A file of tasks, named by its content, so that the same tasks are the same file."""
    lines = [orjson.dumps(task_record(task)) for task in tasks]
    path = work / f"tasks-{digest_of([line.decode() for line in lines])}.jsonl"
    if not path.exists():
        with writing_file(path) as partial:
            partial.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def _write(name: str, row: Row, recipe: Recipe, request: Request, tasks: Path) -> Path:
    """The texts of one writer, as `write batch` writes them; a stopped file is continued, a whole one kept."""
    device = None if name in WRITERS else request.device
    options = None if name in WRITERS and name != row.writer else row.options
    writer = open_writer(name, cast(Kind, recipe.kind), device=device, options=options or None)
    stated = digest_of([identity(tasks), row.given, writer.name, dict(writer.settings)])
    out = request.work / f"{re.sub(r'[^a-z0-9]+', '-', row.title.lower()).strip('-')}-{stated}.jsonl"
    if not out.exists():
        request.work.mkdir(parents=True, exist_ok=True)
        write_batch(
            tasks,
            writer,
            out,
            input_name=None if request.sample else row.given or None,
            on_progress=lambda doing, done, whole: request.on_progress(f"{row.title}: {doing}", done, whole),
        )
    return out


def _cells(recipe: Recipe, results: Results, runs: Mapping[str, Sequence[str]], groups: Sequence[str]) -> Cells:
    cells: Cells = {}
    for title, measure in itertools.product(runs, recipe.measures):
        of_groups = []
        for group in groups:
            label = ALL if len(groups) == 1 else (DATASET, group)
            values = [_value(results.systems[name], label, measure) for name in runs[title]]
            of_runs = [value for value in values if value is not None]
            if of_runs and measure.group in ("", group):
                of_groups.append(cells.setdefault((title, group, measure.name), _of_runs(of_runs)))
        if len(groups) > 1 and len(of_groups) == len(recipe.groups):
            mean = statistics.fmean(one.value for one in of_groups)
            cells[title, MEAN, measure.name] = Measured(mean, sum(one.n for one in of_groups))
    return cells


def _value(system: SystemSummary, group: Group, measure: base.Measure) -> Measured | None:
    """A mean over texts, or a value of all texts together; None if it was not measured, or is not defined."""
    scores = system.scores(group)
    mean = scores.means.get(measure.column)
    if mean is None:
        value = system.summaries.get(measure.metric, {}).get(group[1], {}).get("values", {}).get(measure.column)
        return None if value is None else Measured(value * measure.scale, scores.n)
    if mean.value is None:
        return None
    ci = (mean.ci[0] * measure.scale, mean.ci[1] * measure.scale) if mean.ci else None
    return Measured(mean.value * measure.scale, mean.n, ci)


def _of_runs(runs: Sequence[Measured]) -> Measured:
    """One run as it is; several as their mean with the standard deviation of the sample."""
    values = [run.value for run in runs]
    if len(runs) == 1:
        return runs[0]
    return Measured(statistics.fmean(values), runs[0].n, sd=statistics.stdev(values), runs=len(runs))


TEXTS = Texts()
