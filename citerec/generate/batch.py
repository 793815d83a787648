"""Texts for all tasks of a file, written one by one into another."""

import glob
import hashlib
import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from citerec.corpus.json_lines import raw_lines, whole_lines
from citerec.errors import BuildError, InputError
from citerec.generate.writers.base import Writer
from citerec.groundwork.progress import Progress
from citerec.texts.read import read_tasks
from citerec.texts.write import written_record
from citerec.version import __version__


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


def write_batch(path: Path, writer: Writer, out: Path, *, limit: int | None = None, on_progress: Progress) -> Done:
    """Writes a text for each task of a file. What was stopped goes on where it stopped.

    Args:
        path: The tasks.
        writer: Who writes.
        out: JSON Lines: each task with its `prediction`, its `writer` and that one's `settings`, and what each sentence
            was drawn from. It stands there once it is whole.
        limit: How many tasks at most.
        on_progress: Told of the texts.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task, or the texts would take the place of the tasks, or of a folder.
        WriterError: The writer cannot write.
        BuildError: The file cannot be written, or another process writes it.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no file", "Tasks are read twice: put them into a file.")
    out = out.resolve()  # a link is followed, not replaced
    if out == path.resolve():
        raise InputError(f"{out} holds the tasks themselves", "Give another file to --out.")
    if out.is_dir():
        raise InputError(f"{out} is a folder", "Give a file to --out.")
    whole = sum(1 for _ in itertools.islice(read_tasks(path), limit))
    partial = out.with_name(f".{out.name}.{_plan(path, writer, limit)}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(out.with_name(f".{out.name}.lock"), timeout=0):
            _write(path, writer, partial, limit, whole, on_progress)
            done = _counted(partial)
            partial.replace(out)
            # What other settings left half done is of no use to the texts that stand there now.
            for other in out.parent.glob(f".{glob.escape(out.name)}.*.partial"):
                other.unlink()
    except Timeout:
        raise BuildError(f"another process writes {out}", "Wait for it, or give another file to --out.") from None
    except OSError as error:
        raise BuildError(
            f"cannot write {out}: {error.strerror or error}", "Give another path, or make room; it then goes on."
        ) from error
    return done


def _write(path: Path, writer: Writer, partial: Path, limit: int | None, whole: int, on_progress: Progress) -> None:
    begun = whole_lines(partial)
    with partial.open("ab") as file:
        texts = writer.write_many(itertools.islice(read_tasks(path), begun, limit))
        for number, written in enumerate(texts, begun + 1):
            record = written_record(replace(written, settings=writer.settings))
            file.write(orjson.dumps(record) + b"\n")
            on_progress("writing", number, whole)


def _counted(partial: Path) -> Done:
    done = Done()
    for _, line, _ in raw_lines(partial):
        record = orjson.loads(line)
        done.texts += 1
        done.empty += not record["prediction"].strip()
        done.flagged += any(sentence["unknown"] for sentence in record.get("sentences", ()))
    return done


def _plan(path: Path, writer: Writer, limit: int | None) -> str:
    """What tells one piece of work from another: what is written must come from one writer and one file."""
    status = path.stat()
    plan = [
        __version__,
        str(path.resolve()),
        status.st_size,
        status.st_mtime_ns,
        writer.name,
        dict(writer.settings),
        limit,
    ]
    return hashlib.blake2b(orjson.dumps(plan, option=orjson.OPT_SORT_KEYS), digest_size=6).hexdigest()
