"""JSON Lines, plain or gzip: one record a line, each line answered for on its own."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from citerec.errors import SourceError
from citerec.records import Record

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
    """What one line of a file (or one entry that begins there) holds, and how much was read so far.

    Attributes:
        number: Line number, from 1.
        record: The record, or what is wrong with it.
        bytes_read: Bytes of the file taken so far; compressed bytes where it is compressed.
    """

    number: int
    record: Record | BadRecord
    bytes_read: int


def is_gzip(path: Path) -> bool:
    """Whether the file begins as gzip does, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_json_lines(path: Path, parse: Callable[[dict[str, Any]], Record]) -> Iterator[Line]:
    """Yields the records of a file in order; memory stays flat.

    Args:
        path: A JSON Lines file, plain or gzip.
        parse: Makes a record of a JSON object, or raises RecordError.

    Raises:
        SourceError: The file cannot be opened, or its gzip stream is broken.
    """
    for number, raw, bytes_read in raw_lines(path):
        yield Line(number, _parse(raw, parse), bytes_read)


def raw_lines(path: Path, *, blank_too: bool = False) -> Iterator[tuple[int, bytes, int]]:
    """Yields (line number, line, bytes of the file read so far), leaving blank lines out unless they are asked for.

    Raises:
        SourceError: The file cannot be opened, or its gzip stream is broken.
    """
    try:
        with path.open("rb") as file:
            lines = _decompressed(file) if is_gzip(path) else file
            for number, raw in enumerate(lines, 1):
                line = raw.removeprefix(_BOM) if number == 1 else raw
                if blank_too or (line and not line.isspace()):
                    yield number, line, file.tell()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(
            f"{path}: the gzip stream is broken ({error})".replace("\n", " "),
            "Download the file again, or keep its readable part: zcat FILE > FILE.jsonl",
        ) from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}", "Check the path and its rights.") from error


def whole_lines(path: Path) -> int:
    """How many lines a file has; what a killed process left of a last one is cut off."""
    lines = end = 0
    if path.exists():
        with path.open("r+b") as file:
            for line in file:
                if line.endswith(b"\n"):
                    lines, end = lines + 1, end + len(line)
            file.truncate(end)
    return lines


def _decompressed(file: BinaryIO) -> io.BufferedReader:
    # GzipFile by itself reads a line at a time slowly; a large buffer above it halves the time.
    return io.BufferedReader(cast("Any", gzip.GzipFile(fileobj=file)), 1 << 20)


def _parse(raw: bytes, parse: Callable[[dict[str, Any]], Record]) -> Record | BadRecord:
    try:
        value = orjson.loads(raw)
        if not isinstance(value, dict):
            raise RecordError(f"a {type(value).__name__} where a JSON object should be")
        return parse(value)
    except RecordError as error:
        return bad_record(str(error), raw)
    except orjson.JSONDecodeError as error:
        reason = "not UTF-8" if "utf-8" in error.msg.lower() else f"not JSON: {error.msg}"
        return bad_record(reason, raw)


def bad_record(reason: str, raw: bytes | str) -> BadRecord:
    """A bad record with the beginning of its text."""
    beginning = raw[:_SHOWN_BYTES]
    return BadRecord(reason, beginning if isinstance(beginning, str) else beginning.decode("utf-8", "replace").rstrip())
