"""Texts for all tasks of a file, written one by one into another."""

import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

import orjson

from citerec.corpus.ingest import Progress
from citerec.corpus.json_lines import raw_lines, whole_lines
from citerec.errors import BuildError
from citerec.generate.writer import Writer
from citerec.texts.read import read_tasks
from citerec.texts.write import written_record


@dataclass(slots=True)
class Done:
    """What became of the tasks.

    Attributes:
        texts: How many texts were written.
        empty: How many of them are empty.
        flagged: How many cite what they were not given.
    """

    texts: int = 0
    empty: int = 0
    flagged: int = 0


def write_batch(path: Path, writer: Writer, out: Path, *, limit: int | None = None, progress: Progress) -> Done:
    """Writes a text for each task of a file. What was stopped goes on where it stopped.

    Args:
        path: The tasks.
        writer: Who writes.
        out: JSON Lines: each task with its `prediction`, its `writer`, and what each sentence was drawn from. It stands
            there once it is whole.
        limit: How many tasks at most.
        progress: Told of the texts.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task.
        WriterError: The writer cannot write.
        BuildError: The file cannot be written.
    """
    whole = sum(1 for _ in itertools.islice(read_tasks(path), limit))
    out = out.resolve()  # a link is followed, not replaced
    partial = out.with_name(f".{out.name}.{_plan(path, writer, limit)}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        begun = whole_lines(partial)
        with partial.open("ab") as file:
            texts = writer.write_many(itertools.islice(read_tasks(path), begun, limit))
            for number, written in enumerate(texts, begun + 1):
                file.write(orjson.dumps(written_record(written)) + b"\n")
                progress("writing", number, whole)
        done = Done()
        for _, line, _ in raw_lines(partial):
            record = orjson.loads(line)
            done.texts += 1
            done.empty += not record["prediction"].strip()
            done.flagged += any(sentence["unknown"] for sentence in record.get("sentences", ()))
        partial.replace(out)
    except OSError as error:
        raise BuildError(
            f"cannot write {out}: {error.strerror or error}", "Give another path, or make room; it then goes on."
        ) from error
    return done


def _plan(path: Path, writer: Writer, limit: int | None) -> str:
    """What tells one piece of work from another: what is written must come from one writer and one file."""
    status = path.stat()
    plan = [str(path.resolve()), status.st_size, status.st_mtime_ns, writer.name, dict(writer.settings), limit]
    return hashlib.blake2b(orjson.dumps(plan, option=orjson.OPT_SORT_KEYS), digest_size=6).hexdigest()
