"""Predictions of several systems for the same tasks, from files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from citerec.errors import InputError
from citerec.files.resume import file_digest
from citerec.write.task_files import read_prediction_file, read_tasks
from citerec.write.tasks import Prediction, TextTask

Key = tuple[str, str]
"""Data set and id of a task."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read: its name without the folder, its size, and its digest."""

    name: str
    bytes: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} ({self.bytes:,} bytes, sha256 {self.sha256[:12]}…)"

    @classmethod
    def of(cls, path: Path) -> Self:
        """Reads the size and digest of a file."""
        return cls(path.name, path.stat().st_size, file_digest(path))


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
