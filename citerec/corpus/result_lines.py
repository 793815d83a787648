"""Results as files of lines: compressed for shards, or final with their quarantine beside them."""

import contextlib
import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from citerec.corpus.json_lines import BadRecord
from citerec.files.writing import writing_file

QUARANTINE = b"\x00"
"""Begins a line of a result with a bad record."""

Write = Callable[[bytes], object]

_LEVEL = 1  # it takes a third of the time of 6, for files some fifth larger
_BUFFER = 1 << 20


@contextlib.contextmanager
def writing_lines(path: Path) -> Iterator[Write]:
    """Yields a function that writes a line to a gzip file without a time or a name in it."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
        io.BufferedWriter(cast("Any", packed), _BUFFER) as file,
    ):
        yield _write_to(file)


def reading_lines(path: Path) -> Iterator[bytes]:
    """The lines of such a file, without their ends."""
    with path.open("rb") as raw, gzip.open(raw, "rb") as file:
        for line in file:
            yield line.rstrip(b"\n")


def quarantine_of(out: Path) -> Path:
    """The path of a file's quarantine."""
    return out.with_name(f"{out.name}.quarantine.jsonl")


@contextlib.contextmanager
def writing_records(out: Path) -> Iterator[tuple[Write, Write]]:
    """Yields functions that write a line to a file, and to its quarantine: both are written whole or not at all.

    If nothing is bad, there is no quarantine.
    """
    quarantine = quarantine_of(out)
    with (
        writing_file(out) as whole,
        writing_file(quarantine) as aside,
        whole.open("wb") as records,
        aside.open("wb") as bad,
    ):
        yield _write_to(records), _write_to(bad)
    if not quarantine.stat().st_size:
        quarantine.unlink()


def quarantine_line(shard: str, line: int, bad: BadRecord) -> bytes:
    """A line of a quarantine: shard, line, reason, and how the record began."""
    return orjson.dumps({"shard": shard, "line": line, "reason": bad.reason, "beginning": bad.beginning})


def _write_to(file: BinaryIO) -> Write:
    return lambda line: file.write(line + b"\n")
