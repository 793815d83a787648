"""Tasks and predictions as JSON objects in CiteBench's shape (docs/formats.md)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from citerec.files.progress import Progress, no_progress
from citerec.files.writing import write_failures, writing_file
from citerec.write.inputs import sees_target
from citerec.write.tasks import Prediction, Sentence, TextTask

_REPORTED_EVERY = 1000


def write_tasks(tasks: Iterable[TextTask], out: Path, on_progress: Progress = no_progress) -> int:
    """Writes tasks as JSON Lines, all of them or no file; returns how many.

    Raises:
        BuildError: The file cannot be written.
    """
    number = 0
    with write_failures(out), writing_file(out) as partial, partial.open("wb") as file:
        for number, task in enumerate(tasks, 1):
            file.write(orjson.dumps(task_record(task), option=orjson.OPT_APPEND_NEWLINE))
            if number % _REPORTED_EVERY == 0:
                on_progress("tasks", number, 0)
    return number


def input_of(task: TextTask) -> list[str]:
    """The input in CiteBench's form: citing abstract, context before, cited texts, context after, each if known."""
    before = [f"<abs> {task.citing} </abs>"] if task.citing else []
    before += [f"<ctx_b> {task.before} </ctx_b>"] if task.before else []
    after = [f"<ctx_a> {task.after} </ctx_a>"] if task.after else []
    # A source without text is kept, because the numbers in the text count it.
    return [*before, *(source.text for source in task.sources), *after]


def task_record(task: TextTask) -> dict[str, Any]:
    """The JSON object of a task, as `parse_task` reads it back; one target is a text, not a list."""
    record: dict[str, Any] = {"id": task.task_id}
    if task.dataset:
        record["dataset"] = task.dataset
    if len(task.sources) == 1 and task.sources[0].sentences:
        (source,) = task.sources
        record |= {"source": list(source.sentences)}
        if source.title:
            record["title"] = source.title
    else:
        record["input"] = input_of(task)
        if any(source.paper_id or source.title or source.authors or source.extra for source in task.sources):
            record["sources"] = [
                {"paper_id": source.paper_id, "title": source.title, "authors": list(source.authors), **source.extra}
                for source in task.sources
            ]
    if task.targets:
        record["target"] = task.targets[0] if len(task.targets) == 1 else list(task.targets)
    if task.given:
        record["given"] = task.given
    return {**record, **task.extra}


def sentence_record(sentence: Sentence) -> dict[str, Any]:
    """The JSON object of a sentence of a prediction."""
    return {
        "text": sentence.text,
        "drawn_from": sentence.attributions,
        "unknown": sentence.unknown,
        "unsupported": sentence.unsupported,
    }


def settings_record(prediction: Prediction) -> dict[str, Any]:
    """The settings of a prediction, with the input that its writer was given, if that was chosen."""
    given = prediction.task.given
    return {**prediction.settings, **({"input": given} if given else {})}


def prediction_record(prediction: Prediction) -> dict[str, Any]:
    """The JSON object of a prediction, as `citerec.write.task_files.parse_prediction` reads it back."""
    record = {**task_record(prediction.task), "prediction": prediction.text, "writer": prediction.writer}
    if prediction.sentences:
        record["sentences"] = list(map(sentence_record, prediction.sentences))
    if prediction.settings:
        record["settings"] = settings_record(prediction)
    if prediction.is_oracle or sees_target(prediction.task.given):
        record["knows_target"] = True
    if prediction.served_in_training:
        record["served_in_training"] = True
    return record
