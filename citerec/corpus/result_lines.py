"""Results of shards as files: compressed lines, equal bytes for equal lines."""

import contextlib
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from citerec.corpus.json_lines import BadRecord

QUARANTINE = b"\x00"
"""Begins a line of a result that tells of a bad record."""

Write = Callable[[bytes], None]


@contextlib.contextmanager
def writing_lines(path: Path) -> Iterator[Write]:
    """Gives a function that writes a line to a gzip file without a time or a name in it."""
    # Quick and a little larger: these files are read once or twice, and go.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 1, raw, mtime=0) as file:

        def write(line: bytes) -> None:
            file.write(line + b"\n")

        yield write


def reading_lines(path: Path) -> Iterator[bytes]:
    """The lines of such a file, without their ends."""
    with gzip.open(path, "rb") as file:
        for line in file:
            yield line.rstrip(b"\n")


def quarantine_line(shard: Path, line: int, bad: BadRecord) -> bytes:
    """A line of a quarantine: shard, line, reason, and how the record began."""
    return orjson.dumps({"shard": shard.name, "line": line, "reason": bad.reason, "beginning": bad.beginning})
