"""Tables of texts: writers write, metrics measure."""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson

from citerec.errors import InputError, ModelError, WriterError
from citerec.evaluation.figures import ALL, DATASET, Group, SystemResult
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.results import Results
from citerec.evaluation.seeds import OverSeeds
from citerec.evaluation.texts import evaluate_texts
from citerec.files.hashing import digest_of, identity
from citerec.files.text import counted
from citerec.files.writing import writing_file
from citerec.papers.common.reproduce.base import MEAN, Measure, Measured, Missing, Outcome, Recipe, Request, Row, Runner
from citerec.papers.common.reproduce.here import checked, checkpoints, is_here, metrics_here, missing_data, missing_row
from citerec.papers.common.reproduce.samples import sample_tasks
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
        if not tasks:
            return Outcome({}, [*missing, *_missing_rows(recipe, request)])
        wanted, left_out = metrics_here(recipe)
        runs: dict[str, list[str]] = {}
        files: list[tuple[str | None, Path]] = []
        for row in recipe.rows:
            for number, paths in enumerate(_texts_of(row, recipe, request, tasks, missing), 1):
                name = f"{row.title} (run {number})" if number > 1 else row.title
                runs.setdefault(row.title, []).append(name)
                files += [(name, path) for path in paths]
        if not files:
            return Outcome({}, [*missing, *left_out], about)
        if not wanted:
            raise InputError(f"no metric of {recipe.name} can be computed here", str(left_out[0]))
        given = PRESETS[recipe.preset].arguments(names=wanted)
        used = PRESETS[recipe.preset].used(names=wanted)
        request.on_progress("opening metrics", 0, 0)
        opened = open_metrics(**given)
        # All tasks, as in the paper: a note says which of them a writer learned from.
        predictions = read_predictions(files, include_training_tasks=True)
        results = evaluate_texts(predictions, *opened, preset=used, on_progress=request.on_progress)
        return Outcome(
            cells=_cells(recipe, results, runs, list(about)),
            missing=[*missing, *left_out],
            measured_on=about,
            settings=results.settings,
            sampled=next(iter(about.values())) if request.sample else "",
            results={"texts": results},
            notes=results.notes,
        )

    def runnable(self, recipe: Recipe) -> int:
        """How many rows have a writer or a checkpoint here."""
        return sum(bool(checkpoints(recipe, row, ())) for row in recipe.rows)


def gather(recipe: Recipe, request: Request) -> tuple[list[Path], dict[str, str], list[Missing]]:
    """The tasks to measure on: the sample, or the data sets of the recipe that are in the data folder.

    Returns:
        Files of tasks, what they are by group of the table, and what is missing.

    Raises:
        InputError: There is no sample.
        SourceError: A file cannot be read, or is not the published one.
    """
    if request.sample:
        what, tasks = sample_tasks(recipe, request.data)
        whole = MEAN if len(recipe.groups) > 1 else ""
        group = recipe.sample.group or whole if recipe.sample else whole
        return [_write_tasks(tasks, request.work)], {group: f"{len(tasks):,} {what}"}, []
    files: list[Path] = []
    about: dict[str, str] = {}
    missing: list[Missing] = []
    grouped: list[TextTask] = []
    used = [data for data in recipe.data if not data.training and not any(row.data == data.name for row in recipe.rows)]
    for data in used:
        if request.data is None or not is_here(request.data, data):
            missing.append(missing_data(request.data, data))
        elif recipe.groups:
            tasks = [task for path in checked(request.data, data) for task in read_tasks(path)]
            grouped += [replace(task, dataset=data.name) for task in tasks]
            about[data.name] = counted(len(tasks), "task")
        else:
            # As they are: full texts are read from the file itself.
            files += checked(request.data, data)
            about[""] = counted(sum(1 for path in files for _ in read_tasks(path)), "task")
    return [_write_tasks(grouped, request.work)] if grouped else files, about, missing


def _missing_rows(recipe: Recipe, request: Request) -> Iterator[Missing]:
    for row in recipe.rows:
        if not checkpoints(recipe, row, request.writers.get(row.title, ())):
            yield missing_row(recipe, row)


def _texts_of(
    row: Row, recipe: Recipe, request: Request, tasks: Sequence[Path], missing: list[Missing]
) -> list[list[Path]]:
    """For each run of a row its files of texts, one for each of tasks; adds to `missing` what cannot be written."""
    names = checkpoints(recipe, row, request.writers.get(row.title, ()))
    if not names:
        missing.append(missing_row(recipe, row))
        return []
    if request.sample and (row.given not in ("", ABSTRACTS) or row.data):
        missing.append(Missing(row.title, "the sample has abstracts only", "Measure the table's data."))
        return []
    if row.data:
        data = next(one for one in recipe.data if one.name == row.data)
        if request.data is None or not is_here(request.data, data):
            missing.append(missing_data(request.data, data))
            return []
        tasks = checked(request.data, data)
    files = []
    for name in names:
        try:
            files.append([_write(name, row, recipe, request, path) for path in tasks])
        except (InputError, ModelError, WriterError) as error:
            missing.append(Missing(row.title, error.message, error.remedy))
    return files


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


def _cells(
    recipe: Recipe, results: Results, runs: Mapping[str, Sequence[str]], groups: Sequence[str]
) -> dict[tuple[str, str, str], Measured]:
    cells: dict[tuple[str, str, str], Measured] = {}
    for title, names in runs.items():
        for measure in recipe.measures:
            for group in groups:
                label = ALL if len(groups) == 1 else (DATASET, group)
                found = [one for name in names if (one := _value(results.systems[name], label, measure)) is not None]
                if found and measure.group in ("", group):
                    cells[title, group, measure.name] = _of_runs(found)
            known = [cells[title, group, measure.name] for group in groups if (title, group, measure.name) in cells]
            if len(groups) > 1 and len(known) == len(recipe.groups):
                n = sum(one.n for one in known)
                cells[title, MEAN, measure.name] = Measured(statistics.fmean(one.value for one in known), n)
    return cells


def _value(system: SystemResult, group: Group, measure: Measure) -> Measured | None:
    """A mean over texts, or a value of all texts together; None if it was not measured, or is not defined."""
    scores = system.scores(group)
    if (mean := scores.means.get(measure.column)) is not None:
        if mean.value is None:
            return None
        ci = (mean.ci[0] * measure.scale, mean.ci[1] * measure.scale) if mean.ci else None
        return Measured(mean.value * measure.scale, mean.n, ci)
    value = system.summaries.get(measure.metric, {}).get(group[1], {}).get("values", {}).get(measure.column)
    return None if value is None else Measured(value * measure.scale, scores.n)


def _of_runs(found: Sequence[Measured]) -> Measured:
    """One run as it is; several as their mean with the standard deviation of the sample."""
    if len(found) == 1:
        return found[0]
    over = OverSeeds.of(one.value for one in found)
    assert over.mean is not None  # there are runs
    return Measured(over.mean, found[0].n, None, over.sd, over.n)


TEXTS = Texts()
