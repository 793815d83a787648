"""JSON Lines, plain or gzip: one record per line, each line checked on its own."""

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from citerec.errors import SourceError
from citerec.records import Record

Parsed = TypeVar("Parsed")

_BOM = b"\xef\xbb\xbf"
_SHOWN_BYTES = 2000


class RecordError(ValueError):
    """A record that cannot be used; its text is the reason."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read: why, and how it began."""

    reason: str
    beginning: str


@dataclass(frozen=True, slots=True)
class Line:
    """The record of a line (from 1), or of an entry that begins there; `bytes_read` counts compressed bytes."""

    number: int
    record: Record | BadRecord
    bytes_read: int


def is_gzip(path: Path) -> bool:
    """Whether the file begins like gzip, regardless of its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_json_lines(path: Path, parse: Callable[[dict[str, Any]], Record]) -> Iterator[Line]:
    """Yields the records of a file in order; `parse` makes a record from a JSON object, or raises RecordError.

    Raises SourceError as `raw_lines` does.
    """
    for number, raw, bytes_read in raw_lines(path):
        yield Line(number, parsed(raw, parse), bytes_read)


def raw_lines(path: Path, *, blank_too: bool = False) -> Iterator[tuple[int, bytes, int]]:
    """Yields (line number, line, bytes of the file read so far), plain or gzip, by default without blank lines.

    Raises:
        SourceError: The file cannot be opened, or its gzip stream is broken.
    """
    with read_failures(path), path.open("rb") as file:
        # GzipFile by itself reads a line at a time slowly; a large buffer above it halves the time.
        unzipped = io.BufferedReader(cast("Any", gzip.GzipFile(fileobj=file)), 1 << 20) if is_gzip(path) else file
        for number, raw in enumerate(unzipped, 1):
            line = raw.removeprefix(_BOM) if number == 1 else raw
            if blank_too or (line and not line.isspace()):
                yield number, line, file.tell()


@contextlib.contextmanager
def read_failures(path: Path) -> Iterator[None]:
    """Raises SourceError if a file cannot be read, or its gzip stream is broken."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(
            f"{path}: the gzip stream is broken ({error})".replace("\n", " "),
            "Download the file again, or keep its readable part: zcat FILE > FILE.jsonl",
        ) from error
    except OSError as error:
        raise SourceError(
            f"cannot read {path}: {error.strerror or error}", "Check the path and its permissions."
        ) from error


def whole_lines(path: Path) -> int:
    """The number of lines of a file; an incomplete last line, left by a killed process, is cut off."""
    lines = end = 0
    if path.exists():
        with path.open("r+b") as file:
            for line in file:
                if line.endswith(b"\n"):
                    lines, end = lines + 1, end + len(line)
            file.truncate(end)
    return lines


def parsed(raw: bytes, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed | BadRecord:
    """The result of a function for a JSON object, or what is wrong with the object."""
    try:
        value = orjson.loads(raw)
        if not isinstance(value, dict):
            raise RecordError(f"a {type(value).__name__} where a JSON object should be")
        return parse(value)
    except RecordError as error:
        return bad_record(str(error), raw)
    except orjson.JSONDecodeError as error:
        return bad_record("not UTF-8" if "utf-8" in error.msg.lower() else f"not JSON: {error.msg}", raw)


def bad_record(reason: str, raw: bytes | str) -> BadRecord:
    """A bad record with the beginning of its text."""
    beginning = raw[:_SHOWN_BYTES]
    return BadRecord(reason, beginning if isinstance(beginning, str) else beginning.decode("utf-8", "replace").rstrip())
