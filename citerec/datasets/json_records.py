"""The records of a JSON file one by one: JSON Lines, or one list, which is read piece by piece."""

import codecs
import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from citerec.corpus.json_lines import BadRecord, is_gzip, parsed, raw_lines, read_failures
from citerec.errors import SourceError

_PIECE = 1 << 20  # bytes
REMEDY = "Give JSON Lines, or one list of objects."


class JsonRecord(NamedTuple):
    """An object of a file or what is wrong with it, its place (its line, or its number in the list), and as written."""

    number: int
    record: dict[str, Any] | BadRecord
    raw: bytes


def json_records(path: Path) -> Iterator[JsonRecord]:
    """Yields the objects of a file in order, plain or gzip; only in a list may an object span several lines.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, or its list is no JSON.
    """
    if not _is_list(path):
        numbered = ((number, raw) for number, raw, _ in raw_lines(path))
    else:
        numbered = ((number, text.encode()) for number, text in enumerate(_values(path), 1))
    for number, raw in numbered:
        yield JsonRecord(number, parsed(raw, dict), raw)


def _is_list(path: Path) -> bool:
    first = next(raw_lines(path), None)
    return first is not None and first[1].lstrip().startswith(b"[")


def _values(path: Path) -> Iterator[str]:
    """The values of a list, each as it is written."""
    # Only the ends of values count here: a number may be longer than Python would read.
    decoder, pieces = json.JSONDecoder(parse_int=len, parse_float=len), _pieces(path)
    buffer, at, asked = next(pieces, "").lstrip().removeprefix("["), 0, _PIECE
    while True:
        # Between values there are white space and a comma; the list's own bracket ends it.
        while at < len(buffer) and (buffer[at].isspace() or buffer[at] == ","):
            at += 1
        if buffer[at : at + 1] == "]":
            if any(rest and not rest.isspace() for rest in itertools.chain([buffer[at + 1 :]], pieces)):
                raise SourceError(f"{path}: more follows the end of its list", REMEDY)
            return
        try:
            _, end = decoder.raw_decode(buffer, at)
        except RecursionError:
            raise SourceError(f"{path}: its list is nested too deep", REMEDY) from None
        except json.JSONDecodeError as error:
            # Twice as much each time, so that a long value is not decoded again and again.
            more = ""
            while len(more) < asked and (piece := next(pieces, "")):
                more += piece
            if not more:
                raise SourceError(f"{path}: its list is no JSON: {error.msg}", REMEDY) from None
            buffer, at, asked = buffer[at:] + more, 0, 2 * asked
            continue
        yield buffer[at:end]
        at, asked = end, _PIECE


def _pieces(path: Path) -> Iterator[str]:
    decode = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        with read_failures(path), path.open("rb") as raw:
            file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if is_gzip(path) else raw
            while piece := file.read(_PIECE):
                if text := decode.decode(piece):
                    yield text
            yield decode.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is no UTF-8 ({error.reason})", "Give it in UTF-8.") from error
