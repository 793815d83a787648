"""What several systems wrote for the same tasks, from files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from citerec.errors import InputError
from citerec.texts.read import read_tasks, read_written
from citerec.texts.tasks import TextTask, Written

_CITING_ID = "citing_id"
_OTHER_NAME = "Give one of the files another name: NAME=FILE."

Key = tuple[str, str]
"""Data set and id of a task."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What systems wrote for the tasks that all of them answered.

    Attributes:
        tasks: The tasks.
        systems: By name of the system its texts, in the order of the tasks.
        upper_bounds: The systems that saw the targets.
        asked: How many tasks there are in all files together.
        missing: For each system how many of those it did not answer.
    """

    tasks: tuple[TextTask, ...]
    systems: Mapping[str, tuple[Written, ...]]
    upper_bounds: frozenset[str]
    asked: int
    missing: Mapping[str, int]

    @property
    def left_out(self) -> int:
        """How many tasks are left out, as not every system answered them."""
        return self.asked - len(self.tasks)


def read_predictions(files: Sequence[tuple[str | None, Path]], references: Path | None = None) -> Predictions:
    """Reads written texts, and finds the tasks that all systems answered.

    A system is the writer that a record names, or else the file. The texts of one system may lie in several files.

    Args:
        files: Files of written texts, each with the name of its system, or None for what its records say.
        references: Tasks that the texts are for, found by id: what authors wrote is taken from there, and the sources
            too where a written text comes without.

    Raises:
        SourceError: A file cannot be read, or is empty.
        InputError: A record is no written text, a task is answered twice, is not in the references, or has other
            targets in another file; or no task is answered by all.
    """
    known = {task.task_id: task for task in read_tasks(references)} if references else {}
    tasks: dict[Key, TextTask] = {(task.dataset, task.task_id): task for task in known.values()}
    systems: dict[str, dict[Key, Written]] = {}
    for name, path in files:
        writers = set()
        for written in read_written(path):
            if references:
                written = _joined(written, known, path, references)
            key = (written.task.dataset, written.task.task_id)
            first = tasks.setdefault(key, written.task)
            if first.targets != written.task.targets:
                raise InputError(
                    f"{path}: the target of task {key[1]} is another one than before",
                    "Ids must mean the same in all files; give --references where records have ids only.",
                )
            writers.add(written.writer)
            if name and len(writers) > 1:
                raise InputError(
                    f"{path} has texts of several writers, such as {' and '.join(sorted(writers)[:2])}",
                    f"Leave the name {name} away: each writer is a system.",
                )
            system = name or written.writer or _stem(path)
            texts = systems.setdefault(system, {})
            if key in texts:
                raise InputError(f"{path}: {system} answers task {key[1]} for the second time", _OTHER_NAME)
            # Held once for all systems, where it is the same.
            texts[key] = replace(written, task=first) if written.task == first else written
    return _common(tasks, systems)


def citing_paper(task: TextTask) -> str | None:
    """What tells the citing paper of a task from others: its id, or else its abstract; None where neither is known."""
    return str(task.extra[_CITING_ID]) if task.extra.get(_CITING_ID) else task.citing or None


def _joined(written: Written, known: Mapping[str, TextTask], path: Path, references: Path) -> Written:
    task = known.get(written.task.task_id)
    if task is None:
        raise InputError(
            f"{path}: {written.task.task_id} is the id of no task in {references}",
            'Give each prediction the id of its task: {"id": …, "prediction": …}.',
        )
    return replace(written, task=replace(task, sources=written.task.sources or task.sources))


def _common(tasks: Mapping[Key, TextTask], systems: Mapping[str, Mapping[Key, Written]]) -> Predictions:
    common = [key for key in tasks if all(key in texts for texts in systems.values())]
    if not common:
        raise InputError(
            f"no task is answered by all of {', '.join(systems)}",
            "Ids and names of data sets must be the same in all files; give --references where records have ids only.",
        )
    return Predictions(
        tasks=tuple(tasks[key] for key in common),
        systems={name: tuple(texts[key] for key in common) for name, texts in systems.items()},
        upper_bounds=frozenset(
            name for name, texts in systems.items() if any(text.knows_target for text in texts.values())
        ),
        asked=len(tasks),
        missing={name: len(tasks) - len(texts) for name, texts in systems.items()},
    )


def _stem(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".jsonl", ".json"):
        name = name.removesuffix(ending)
    return name
