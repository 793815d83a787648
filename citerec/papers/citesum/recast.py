"""Other tasks of the papers of a data set: other inputs, and the title or the discipline as targets.

Mao et al. 2022 (CiteSum), sections 3.1 and 4.2. They do not say where in the input title, discipline and prefix stand,
nor what the prefix is. Here they come first, since the end of a long input is cut off; the words are ours.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from citerec.errors import InputError
from citerec.files.progress import Progress, no_progress
from citerec.write.task_files import read_tasks, write_tasks
from citerec.write.tasks import PREFIX, PROMPT, TextTask

Goal = Literal["summary", "title", "discipline"]
Part = Literal["title", "discipline", "introduction", "conclusion"]
PARTS: tuple[Part, ...] = ("title", "discipline", "introduction", "conclusion")


@dataclass(frozen=True, slots=True)
class Recast:
    """How tasks about one paper each are recast.

    Attributes:
        goals: What to write: the summary, which is the target of the file, the title, or the discipline. With several,
            each task is written once for each, with the name of the goal as prefix of the input.
        parts: What to read besides the text; never what is to be written.
        prompts: By goal the words with which its texts begin.
    """

    goals: Sequence[Goal] = ("summary",)
    parts: Sequence[Part] = ()
    prompts: Mapping[Goal, str] = field(default_factory=dict)

    def tasks(self, task: TextTask) -> Iterator[tuple[Goal, TextTask | None]]:
        """A task for each goal; None if its target is not known.

        Raises:
            InputError: The task is about several papers.
        """
        if len(task.sources) != 1:
            raise InputError(f"{task.task_id} has {len(task.sources)} sources", "Give tasks about one paper each.")
        known = parts_of(task)
        for goal in self.goals:
            targets = task.targets if goal == "summary" else (known[goal],)
            yield goal, self._task(task, goal, known, targets) if any(map(str.strip, targets)) else None

    def _task(self, task: TextTask, goal: Goal, known: Mapping[str, str], targets: tuple[str, ...]) -> TextTask:
        (source,) = task.sources
        if parts := {part: known[part] for part in self.parts if part != goal and known[part]}:
            first = [parts[part] for part in ("title", "discipline") if part in parts]
            first = [text if text.endswith((".", "?", "!")) else f"{text}." for text in first]
            last = [parts[part] for part in ("introduction", "conclusion") if part in parts]
            source = replace(source, text=" ".join([*first, source.text, *last]), sentences=())
        if goal == "title":
            source = replace(source, title="")
        extra = {**task.extra, **({PROMPT: self.prompts[goal]} if goal in self.prompts else {})}
        if len(self.goals) > 1:
            extra[PREFIX] = f"{goal}:"
        names = filter(None, [task.dataset, goal if goal != "summary" or len(self.goals) > 1 else ""])
        return replace(task, sources=(source,), targets=targets, dataset="-".join(names), extra=extra)


def recast_file(path: Path, out: Path, recast: Recast, *, on_progress: Progress = no_progress) -> dict[str, int]:
    """Writes the tasks of a file for each goal; returns how many, and how many were left out, by what is missing.

    Raises:
        SourceError: The file cannot be read.
        InputError: A record is no task about one paper, nothing is left, or no task has a part that is to be read.
        BuildError: The result cannot be written.
    """
    counts: Counter[str] = Counter()
    has: Counter[str] = Counter()
    if out.exists() and out.samefile(path):
        raise InputError(f"{out} holds the tasks themselves", "Give another file to --out.")

    def recast_tasks() -> Iterator[TextTask]:
        for task in read_tasks(path):
            has.update(part for part, value in parts_of(task).items() if value)
            for goal, made in recast.tasks(task):
                counts[goal if made else f"without {goal}: left out"] += 1
                if made:
                    yield made
        wanted = (*recast.parts, *(goal for goal in recast.goals if goal != "summary"))
        if missing := [name for name in wanted if not has[name]]:
            raise InputError(f"no task of {path} has a {missing[0]}", f'Give records with "{missing[0]}": "…".')

    write_tasks(recast_tasks(), out, on_progress)
    return dict(counts)


def parts_of(task: TextTask) -> dict[str, str]:
    """What is known about the first paper of a task, by the name of the part; empty texts if it is not."""
    parts = {"title": task.sources[0].title.strip(), "discipline": discipline_of(task.extra) or ""}
    for name in ("introduction", "conclusion"):
        value = task.extra.get(name)
        texts = value if isinstance(value, list) else [value]
        parts[name] = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip())
    return parts


def discipline_of(fields: Mapping[str, Any]) -> str | None:
    """The discipline of a paper: the first field of study, if there are several (Mao et al. 2022, section 2.2).

    `discipline` is a text, a list of them, or CiteSum's object with `mag_field_of_study`. None if none is known.
    """
    value = fields.get("discipline")
    if isinstance(value, Mapping):
        value = value.get("mag_field_of_study")
    if isinstance(value, list):
        value = next((one for one in value if isinstance(one, str) and one.strip()), None)
    return value.strip() or None if isinstance(value, str) else None
