"""Tables of texts, which writers write and metrics measure, and of ranked lists."""

import itertools
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from citerec.errors import CiterecError, InputError, ModelError, WriterError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import ALL, DATASET, OVERALL, Group
from citerec.evaluation.summary import SystemSummary
from citerec.evaluation.texts import evaluate_texts
from citerec.files.hashing import digest_of, identity
from citerec.files.text import counted
from citerec.papers.common.reproduce import base, here
from citerec.papers.common.reproduce.base import MEAN, Measured, Missing, Outcome, Recipe, Request, Row, Runner
from citerec.recommend import Recommender
from citerec.systems import Recipe as System
from citerec.systems import default_system
from citerec.write.batch import write_batch
from citerec.write.metrics.base import open_metrics
from citerec.write.presets import PRESETS
from citerec.write.task_files import read_tasks, task_record, write_tasks
from citerec.write.tasks import TextTask
from citerec.write.writers.base import WRITERS, Kind, open_writer

ABSTRACTS = "abstracts"


def run_texts(recipe: Recipe, request: Request) -> Outcome:
    """Writes a text by each system that is here for each task that is here, and measures with the recipe's preset."""
    outcome = Outcome()
    tasks = _gather(recipe, request, outcome)
    runs: dict[str, list[str]] = {}
    files: list[tuple[str | None, Path]] = []
    for row in recipe.rows:
        for number, paths in enumerate(_texts_of(row, recipe, request, tasks, outcome.missing), 1):
            name = f"{row.title} (run {number})" if number > 1 else row.title
            runs.setdefault(row.title, []).append(name)
            files += [(name, path) for path in paths]
    names = here.metrics_here(recipe, outcome.missing) if tasks else []
    if not files:
        return outcome
    if not names:
        raise InputError(f"no metric of {recipe.name} can be computed here", str(outcome.missing[-1]))
    preset = PRESETS[recipe.preset]
    request.on_progress("opening metrics", 0, 0)
    metrics = open_metrics(**preset.arguments(names=names))
    # All tasks, as in the paper: a note says which of them a writer learned from.
    predictions = read_predictions(files, include_training_tasks=True)
    used = preset.used(names=names)
    results = evaluate_texts(predictions, *metrics, preset=used, on_progress=request.on_progress)
    _add_cells(outcome, recipe, results, runs)
    outcome.results, outcome.settings, outcome.notes = {"texts": results}, results.record.settings, results.record.notes
    return outcome


def _gather(recipe: Recipe, request: Request, outcome: Outcome) -> list[Path]:
    """Files of the tasks to measure on: the sample, or the data sets of the recipe that are in the data folder.

    The outcome gets what they are, by group of the table, and what is missing.
    """
    if request.sample:
        what, tasks = here.sample_tasks(recipe, request)
        outcome.sampled = f"{len(tasks):,} {what}"
        group = here.sample_of(recipe).group or (MEAN if len(recipe.groups) > 1 else "")
        outcome.measured_on[group] = outcome.sampled
        return [_write_tasks(tasks, request.work)]
    files: list[Path] = []
    of_groups: list[TextTask] = []
    of_rows = {row.data for row in recipe.rows}
    for data in recipe.data:
        if data.training or data.name in of_rows:
            continue
        if not (paths := here.published(request.data, data, outcome.missing)):
            continue
        read = (replace(task, dataset=data.name) for path in paths for task in read_tasks(path))
        if recipe.groups:
            tasks = list(read)
            outcome.measured_on[data.name] = counted(len(tasks), "task")
            of_groups += tasks
        else:
            # As they are: full texts are read from the file itself.
            outcome.measured_on[""] = counted(sum(1 for _ in read), "task")
            files += paths
    return [_write_tasks(of_groups, request.work)] if of_groups else files


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
    runs = []
    for writer in writers if tasks else ():
        try:
            runs.append([_write(writer, row, recipe, request, path) for path in tasks])
        except (InputError, ModelError, WriterError) as error:
            missing.append(Missing(row.title, error.message, error.remedy))
    return runs


def _write_tasks(tasks: Sequence[TextTask], work: Path) -> Path:
    """A file of tasks, named by its content, so that the same tasks are the same file."""
    path = work / f"tasks-{digest_of(list(map(task_record, tasks)))}.jsonl"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        write_tasks(tasks, path)
    return path


def _write(name: str, row: Row, recipe: Recipe, request: Request, tasks: Path) -> Path:
    """The texts of one writer, as `write batch` writes them; a stopped file is continued, a whole one kept."""
    is_registered = name in WRITERS
    options = None if is_registered and name != row.writer else row.options
    device = None if is_registered else request.device
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


def _add_cells(outcome: Outcome, recipe: Recipe, results: Results, runs: Mapping[str, Sequence[str]]) -> None:
    """Adds the values of rows in groups, and their means over the groups where all are known."""
    groups = list(outcome.measured_on)
    for (title, names), measure in itertools.product(runs.items(), recipe.measures):
        of_groups = []
        for group in groups:
            label = ALL if len(groups) == 1 else (DATASET, group)
            values = [_value(results.systems[name], label, measure) for name in names]
            known = [value for value in values if value is not None]
            if known and measure.group in ("", group):
                of_groups.append(outcome.cells.setdefault((title, group, measure.name), _of_runs(known)))
        if len(groups) > 1 and len(of_groups) == len(recipe.groups):
            mean = statistics.fmean(one.value for one in of_groups)
            outcome.cells[title, MEAN, measure.name] = Measured(mean, sum(one.n for one in of_groups))


def _value(system: SystemSummary, group: Group, measure: base.Measure) -> Measured | None:
    """A mean over texts, or a value of all texts together; None if it was not measured, or is not defined."""
    scores = system.scores(group)
    mean = scores.means.get(measure.column)
    if mean is None:
        value = system.summaries.get(measure.metric, {}).get(group[1], {}).get("values", {}).get(measure.column)
        return None if value is None else Measured(value * measure.scale, scores.n)
    ci = [bound * measure.scale for bound in mean.ci] if mean.ci else None
    return None if mean.value is None else Measured(mean.value * measure.scale, mean.n, ci)


def _of_runs(runs: Sequence[Measured]) -> Measured:
    """One run as it is; several as their mean with the standard deviation of the sample."""
    if len(runs) == 1:
        return runs[0]
    values = [run.value for run in runs]
    return Measured(statistics.fmean(values), runs[0].n, sd=statistics.stdev(values), runs=len(runs))


TEXTS = Runner("texts", run_texts)


def run_systems(recipe: Recipe, request: Request) -> Outcome:
    """Evaluates the systems that the index supports; each class of each family is a group of the table."""
    outcome = Outcome()
    contexts = here.DEMO
    if not request.sample:
        if not (paths := here.published(request.data, recipe.data[0], outcome.missing)):
            return outcome
        if request.index is None:
            remedy = "Name that of the sets' corpus: --index FOLDER"
            return Outcome(missing=[Missing("the index", "none is named", remedy)])
        contexts = str(paths[0].parent)
    index = request.index or here.demo_index(request)
    systems: dict[str, str] = {}
    for row in recipe.rows:
        system = (*request.writers.get(row.title, ()), row.system)[0]
        try:
            Recommender.open(index, System.load(system)).close()
            systems[row.title] = system
        except CiterecError as error:
            why, remedy = (text.rstrip(".").replace(str(index), "INDEX") for text in (error.message, error.remedy))
            own = f"--index FOLDER, or --writer '{row.title}=SYSTEM'"
            outcome.missing.append(Missing(row.title, why, f"{remedy}; then give index or system: {own}"))
    if (default := default_system(index)) not in systems.values():
        systems[default] = default
    metrics = [measure.column for measure in recipe.measures]
    results = evaluate(systems, contexts, index=index, metrics=metrics, on_progress=request.on_progress)
    for (name, system_result), (family, label) in itertools.product(results.systems.items(), results.groups):
        title = family if family == label else f"{family}: {label}"
        scores = system_result.scores((family, label))
        outcome.measured_on.setdefault(title, counted(scores.n, "context"))
        for measure in recipe.measures:
            mean = scores.means[measure.column]
            if mean.value is not None:
                outcome.cells[name, title, measure.name] = Measured(mean.value, mean.n, mean.ci)
    outcome.sampled = f"{outcome.measured_on[OVERALL]} of the demo set" if request.sample else ""
    outcome.settings = results.record.model_dump(mode="json", include={"rules", "k", "index"})
    outcome.results, outcome.notes = {"systems": results}, results.record.notes
    return outcome


SYSTEMS = Runner("systems", run_systems)
