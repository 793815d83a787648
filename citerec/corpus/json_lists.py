"""The values of a JSON list, read piece by piece."""

import codecs
import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from citerec.corpus.json_lines import is_gzip, read_failures
from citerec.errors import SourceError
from citerec.files.rejected import FULL_TEXT_BYTES

_PIECE = 1 << 20  # bytes
_LONGEST_OPENING = 1 << 16
# The list may be `items` of an object.
_OPENING = re.compile(r'\s*(?P<within>\{(?:[^\[\]{}]*,)?\s*"items"\s*:\s*)?\[')


class ListValue(NamedTuple):
    """A value as it is written, and the line where it begins."""

    line: int
    raw: bytes


def list_values(path: Path, remedy: str) -> Iterator[ListValue]:
    """Yields the values of a file that is one list, or an object with a list `items`; plain or gzip.

    Args:
        path: The file.
        remedy: What to give instead, for errors.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, it is no such list, or a value is longer than
            `FULL_TEXT_BYTES`.
    """
    # Only the ends of values count here: a number may be longer than Python would read.
    decoder, pieces = json.JSONDecoder(parse_int=len, parse_float=len), _pieces(path)
    buffer, wanted, line = next(pieces, ""), _PIECE, 1
    while not (opening := _OPENING.match(buffer)):
        if len(buffer) > _LONGEST_OPENING or not (piece := next(pieces, "")):
            raise SourceError(f"{path} is no JSON list", remedy)
        buffer += piece
    at = counted = opening.end()
    line += buffer.count("\n", 0, at)
    while True:
        # Between values there are white space and a comma; the list's own bracket ends it.
        while at < len(buffer) and (buffer[at].isspace() or buffer[at] == ","):
            at += 1
        line += buffer.count("\n", counted, at)
        counted = at
        if buffer[at : at + 1] == "]":
            rests = itertools.chain([buffer[at + 1 :]], pieces)
            if not opening["within"] and any(rest and not rest.isspace() for rest in rests):
                raise SourceError(f"{path}: more follows the end of its list", remedy)
            return
        try:
            _, end = decoder.raw_decode(buffer, at)
        except RecursionError:
            raise SourceError(f"{path}, line {line}: its list is nested too deep", remedy) from None
        except json.JSONDecodeError as error:
            if len(buffer) - at > FULL_TEXT_BYTES:
                fault = f"a value has more than {FULL_TEXT_BYTES:,} characters, or its end is missing"
                raise SourceError(f"{path}, line {line}: {fault}", "Leave it out.") from None
            # Twice as much each time, so that a long value is not decoded again and again.
            more = ""
            while len(more) < wanted and (piece := next(pieces, "")):
                more += piece
            if not more:
                raise SourceError(f"{path}, line {line}: its list is no JSON: {error.msg}", remedy) from None
            buffer, at, counted, wanted = buffer[at:] + more, 0, 0, 2 * wanted
            continue
        yield ListValue(line, buffer[at:end].encode())
        at, wanted = end, _PIECE


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
