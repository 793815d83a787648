"""Texts for all tasks of a file, written one by one into another."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson

from citerec.corpus.json_lines import raw_lines, whole_lines
from citerec.errors import InputError
from citerec.files.hashing import digest_of, identity
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.writing import beside, write_failures
from citerec.write.related_work import tasks_with_input
from citerec.write.task_files import prediction_record, read_tasks
from citerec.write.tasks import served_in_training
from citerec.write.writers.base import Writer


class Done(NamedTuple):
    """How many texts were written, how many of them are empty, and how many cite no source."""

    texts: int
    empty: int
    flagged: int


def write_batch(
    path: Path,
    writer: Writer,
    out: Path,
    *,
    input_name: str | None = None,
    full_texts: Sequence[Path] = (),
    limit: int | None = None,
    note: Note = no_note,
    on_progress: Progress = no_progress,
) -> Done:
    """Writes a text for each task of a file; if it was stopped, it continues.

    Args:
        path: The tasks.
        writer: The writer.
        out: JSON Lines: each task with its `prediction`, its `writer`, the writer's `settings`, and its `sentences`. It
            appears when it is complete.
        input_name: What the writer is given of the papers, a name of INPUTS; by default what the data set gives.
        full_texts: S2ORC files or folders, for inputs with full texts: see `tasks_with_input`.
        limit: How many tasks at most.
        note: Called for each line of full texts that cannot be read.
        on_progress: Called after each text.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task, `out` is the file of the tasks, or full texts are missing.
        WriterError: The writer cannot write.
        BuildError: The file cannot be written.
    """
    out = out.resolve()  # a link is followed, not replaced
    if out == path.resolve():
        raise InputError(f"{out} holds the tasks themselves", "Give another file to --out.")
    whole = sum(1 for _ in itertools.islice(read_tasks(path), limit))
    writer.prepare(read_tasks(path))
    # A text of other settings is never continued.
    plan = [identity(path), dict(writer.settings), limit, input_name, list(map(str, full_texts))]
    part = beside(out, digest_of(plan))
    with write_failures(out, "Give another path, or make room; the same command then continues."):
        out.parent.mkdir(parents=True, exist_ok=True)
        begun = whole_lines(part)
        tasks = tasks_with_input(path, input_name, full_texts, note, start=begun, stop=limit)
        with part.open("ab") as file:
            for number, prediction in enumerate(writer.write_many(tasks), begun + 1):
                seen = served_in_training(prediction.task, writer.learnt)
                record = prediction_record(replace(prediction, settings=writer.settings, served_in_training=seen))
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
                on_progress("writing", number, whole)
        part.replace(out)
    empty = flagged = 0
    for _, line, _ in raw_lines(out):
        record = orjson.loads(line)
        empty += not record["prediction"].strip()
        flagged += any(sentence["unknown"] for sentence in record.get("sentences", ()))
    return Done(whole, empty, flagged)
