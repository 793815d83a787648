"""Systems that write: their predictions from files, measured on the same tasks."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from citerec.errors import InputError
from citerec.evaluation.record import FamilyInfo, Measured, ReadFile, Record, SystemRecord
from citerec.evaluation.results import TARGET, Results, labels_table
from citerec.evaluation.statistics import ALL, DATASET, RESAMPLES, Floats, grouping_of
from citerec.evaluation.tables import said
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import digest_of
from citerec.files.text import counted
from citerec.write.metrics import DEFAULT_METRICS, Column, CorpusMetric, TextMetric
from citerec.write.task_files import read_prediction_file, read_tasks
from citerec.write.tasks import Prediction, TextTask

Key = tuple[str, str]
"""Data set and id of a task."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The predictions of systems for the tasks that all of them answered.

    Attributes:
        tasks: The tasks.
        systems: By system its texts, in the order of the tasks.
        oracles: The systems that saw the targets: upper bounds.
        total: How many tasks there are in all files together.
        missing: By system how many of those it did not answer.
        training: By system how many of those served in its training.
        files: By system the files that it was read from.
        references: The file that the tasks were read from.
    """

    tasks: tuple[TextTask, ...]
    systems: Mapping[str, tuple[Prediction, ...]]
    oracles: frozenset[str]
    total: int
    missing: Mapping[str, int]
    training: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, tuple[ReadFile, ...]] = field(default_factory=dict)
    references: ReadFile | None = None

    @property
    def left_out(self) -> int:
        """How many tasks are left out: a system did not answer them, or learned from them."""
        return self.total - len(self.tasks)

    def settings(self, system: str) -> dict[str, Any] | str:
        """The settings of a system's writer; empty if its predictions name none, "varies" if they differ."""
        first, *others = (prediction.settings for prediction in self.systems[system])
        return "varies" if any(other != first for other in others) else dict(first)


def read_predictions(
    files: Sequence[tuple[str | None, Path]], references: Path | None = None, *, include_training_tasks: bool = False
) -> Predictions:
    """Reads predictions, and finds the tasks that all systems answered and none learned from.

    A system is the writer that a record names, or else the file. The texts of one system may be in several files.

    Args:
        files: Files of predictions, each with the name of its system, or None to take it from its records.
        references: The tasks, found by id, and by data set if both name one. Targets are taken from there, and also
            sources if a prediction has none.
        include_training_tasks: Whether to keep tasks that a system learned from, as its records say.

    Raises:
        SourceError: A file cannot be read, or is empty.
        InputError: A record is no prediction, a task is answered twice, is not in the references, or has other
            targets in another file; or no task is left that is answered by all.
    """
    tasks: dict[Key, TextTask] = {_key(task): task for task in read_tasks(references)} if references else {}
    reference_tasks = list(tasks.values())
    systems: dict[str, dict[Key, Prediction]] = {}
    of_system: dict[str, dict[Path, None]] = {}
    for name, path in files:
        for prediction in read_prediction_file(path):
            if references:
                prediction = _joined(prediction, reference_tasks, path, references)
            key = _key(prediction.task)
            first = tasks.setdefault(key, prediction.task)
            if first.targets != prediction.task.targets:
                raise InputError(
                    f"{path}: the target of task {_called(key)} differs from an earlier one",
                    "Ids must mean the same in all files; give --references where records have ids only.",
                )
            system = name or prediction.writer or path.name.partition(".json")[0]
            of_system.setdefault(system, {})[path] = None
            texts = systems.setdefault(system, {})
            if key in texts:
                remedy = "Give one of the files another name: NAME=FILE."
                raise InputError(f"{path}: {system} answers task {_called(key)} twice", remedy)
            texts[key] = prediction
    seen = {name: {key for key, text in texts.items() if text.served_in_training} for name, texts in systems.items()}
    left_out = set[Key]() if include_training_tasks else set[Key]().union(*seen.values())
    common = [key for key in tasks if key not in left_out and all(key in texts for texts in systems.values())]
    if not common:
        raise InputError(
            f"no task is answered by all of {', '.join(systems)} and served in no training",
            "Ids and names of data sets must be the same in all files; give --references where records have ids only, "
            "--include-training-tasks where tasks served in training.",
        )
    read = {path: ReadFile.of(path) for _, path in files}
    return Predictions(
        tasks=tuple(tasks[key] for key in common),
        systems={name: tuple(texts[key] for key in common) for name, texts in systems.items()},
        oracles=frozenset(name for name, texts in systems.items() if any(text.is_oracle for text in texts.values())),
        total=len(tasks),
        missing={name: len(tasks) - len(texts) for name, texts in systems.items()},
        training={name: len(keys) for name, keys in seen.items()},
        files={system: tuple(read[path] for path in paths) for system, paths in of_system.items()},
        references=ReadFile.of(references) if references else None,
    )


def citing_paper(task: TextTask) -> str | None:
    """The identity of a task's citing paper: its id, or else its abstract; None if neither is known."""
    return task.citing_id or task.citing or None


def _key(task: TextTask) -> Key:
    return task.dataset, task.task_id


def _called(key: Key) -> str:
    return f"{key[1]} of {key[0]}" if key[0] else key[1]


def _joined(prediction: Prediction, tasks: Iterable[TextTask], path: Path, references: Path) -> Prediction:
    """A prediction with its task, found by id and data set, or by id alone if either names no data set."""
    dataset, task_id = _key(prediction.task)
    of_id = [task for task in tasks if task.task_id == task_id]
    matches = [task for task in of_id if task.dataset == dataset or not (dataset and task.dataset)]
    if len(matches) != 1:
        raise InputError(
            f"{path}: {len(matches) or 'no'} tasks in {references} have the id {_called((dataset, task_id))}",
            'Give each prediction the id and the data set of its task: {"id": …, "dataset": …, "prediction": …}.',
        )
    return replace(prediction, task=replace(matches[0], sources=prediction.task.sources or matches[0].sources))


def evaluate_texts(
    predictions: Predictions,
    text_metrics: Sequence[TextMetric],
    corpus_metrics: Sequence[CorpusMetric] = (),
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    preset: Mapping[str, Any] | None = None,
    on_progress: Progress = no_progress,
) -> Results:
    """Measures predictions of systems, over all texts and by data set.

    Means have percentile bootstrap intervals, and pairs of systems paired randomisation tests; both resample citing
    papers if these are known, else tasks. Upper bounds are not tested.

    Args:
        predictions: The predictions of all systems.
        text_metrics: Metrics that score texts one by one.
        corpus_metrics: Metrics that look at all texts of a system on a data set together.
        seed: Seed of intervals and tests.
        resamples: Number of bootstrap samples.
        preset: The preset that the metrics were opened with, as `Preset.used` says it.
        on_progress: Called as the work goes on.

    Raises:
        InputError: There is no metric, or too few samples.
        ModelError: The model that a metric needs cannot be opened.
    """
    if not text_metrics and not corpus_metrics:
        raise InputError("there is no metric", f"Name some: --metrics {','.join(DEFAULT_METRICS)}")
    if resamples < 100 or seed < 0:
        raise InputError(f"{resamples} samples from seed {seed}", "Draw at least 100, from a seed of at least 0.")
    tasks = predictions.tasks
    described: list[TextMetric | CorpusMetric] = [*text_metrics, *corpus_metrics]
    columns = tuple(replace(one, metric=metric.name) for metric in text_metrics for one in metric.columns)
    # If the citing paper is not known, the task counts as a paper of its own. No name starts with \0.
    citing = [citing_paper(task) or f"\0{number}" for number, task in enumerate(tasks)]
    datasets = [task.dataset for task in tasks]
    grouping = grouping_of(datasets, citing)
    classes = tuple(label for _, label in grouping.groups)
    values = {name: _scores(text_metrics, texts, columns, on_progress) for name, texts in predictions.systems.items()}
    if (of_targets := _target_scores(predictions, text_metrics, columns, on_progress)) is not None:
        values[TARGET] = of_targets
    systems = {
        name: SystemRecord(
            kind="texts",
            settings=predictions.settings(name),
            is_oracle=name in predictions.oracles,
            missing=predictions.missing[name],
            empty=sum(not text.text.strip() for text in texts),
            summaries={
                metric.name: {
                    label: dict(metric.summary([*itertools.compress(texts, members)], on_progress))
                    for (_, label), members in zip((ALL, *grouping.groups), grouping.members.T, strict=True)
                }
                for metric in corpus_metrics
            },
            files=predictions.files.get(name, ()),
        )
        for name, texts in predictions.systems.items()
    }
    record = Record(
        measures="texts",
        set=Measured(
            name="Written texts",
            fingerprint=digest_of([[task.dataset, task.task_id] for task in tasks]),
            contexts=len(tasks),
            asked=predictions.total,
            citing_known=sum(citing_paper(task) is not None for task in tasks),
            references=predictions.references,
        ),
        columns=columns,
        settings={one.name: dict(one.settings) for one in described},
        preset=None if preset is None else dict(preset),
        families={DATASET: FamilyInfo(title="Data sets", conditions=(), classes=classes)} if classes else {},
        systems=systems,
        seed=seed,
        resamples=resamples,
        notes=tuple(_notes(preset, systems, predictions)),
    )
    ids = {"task": [task.task_id for task in tasks], "dataset": datasets}
    wide = [pd.DataFrame(one, columns=[*map(str, columns)]).assign(**ids, system=name) for name, one in values.items()]
    return Results(
        record,
        labels_table(ids["task"], grouping.clusters, [""] * len(tasks), {DATASET: datasets}),
        texts=pd.concat(wide).melt(["task", "dataset", "system"], var_name="metric", value_name="value"),
        predictions=predictions,
    )


def _scores(
    metrics: Sequence[TextMetric], texts: Sequence[Prediction], columns: Sequence[Column], on_progress: Progress
) -> Floats:
    """Texts × columns; NaN in the columns of other metrics."""
    scores = np.full((len(texts), len(columns)), np.nan)
    for metric in metrics:
        mine = [number for number, column in enumerate(columns) if column.metric == metric.name]
        scores[:, mine] = metric.scores(texts, on_progress)
    return scores


def _target_scores(
    predictions: Predictions, metrics: Sequence[TextMetric], columns: Sequence[Column], on_progress: Progress
) -> Floats | None:
    """Scores of the first targets, in the columns that only describe a text."""
    describing = [metric for metric in metrics if not any(column.better for column in metric.columns)]
    has_target = np.array([bool(task.targets) for task in predictions.tasks])
    if not describing or not has_target.any():
        return None
    texts = [Prediction(task, task.targets[0] if task.targets else "", "target") for task in predictions.tasks]
    scores = _scores(describing, texts, columns, on_progress)
    scores[~has_target] = np.nan
    return scores


def _notes(
    preset: Mapping[str, Any] | None, systems: Mapping[str, SystemRecord], predictions: Predictions
) -> Iterator[str]:
    if preset and (differs := preset["differs"]):
        settings = preset["settings"]
        words = "; ".join(f"{name} {said(settings[name])} (there {said(value)})" for name, value in differs.items())
        yield f"Other than in the preset {preset['name']}: {words}."
    if predictions.left_out:
        left_out = f"{counted(predictions.left_out, 'task')} of {predictions.total:,} left out"
        reasons = {"not every system answered": predictions.missing, "some served in training": predictions.training}
        why = [f"{reason} ({counts})" for reason, numbers in reasons.items() if (counts := _by_system(numbers))]
        yield f"{left_out}: {'; '.join(why)}."
    elif counts := _by_system(predictions.training):
        yield f"Tasks that served in training are measured too ({counts}): little is known about new tasks."
    if without := sum(not task.targets for task in predictions.tasks):
        yield f"{counted(without, 'task')} without a target: metrics that compare with it are undefined."
    empty = {name: system.empty for name, system in systems.items() if system.empty}
    yield from (f"{name} wrote nothing for {counted(number, 'task')}." for name, number in empty.items())


def _by_system(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {number:,}" for name, number in numbers.items() if number)
