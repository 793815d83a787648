"""The values of a JSON list, read piece by piece."""

import codecs
import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from citerec.corpus.json_lines import LongLine, is_gzip, read_failures
from citerec.errors import SourceError
from citerec.files.rejected import line_bytes

_PIECE = 1 << 20  # bytes
_LONGEST_OPENING = 1 << 16
# The list may be `items` of an object.
_OPENING = re.compile(r'\s*(?P<within>\{(?:[^\[\]{}]*,)?\s*"items"\s*:\s*)?\[')
# A sign after a backslash counts for nothing.
_SIGNS = re.compile(r'\\.|["\[\]{},]', re.DOTALL)


class ListValue(NamedTuple):
    """A value as it is written, and the line where it begins. One that is too long is a `LongLine`."""

    line: int
    raw: bytes


def list_values(path: Path, remedy: str, longest: int | None = None) -> Iterator[ListValue]:
    """Yields the values of a file that is one list, or an object with a list `items`; plain or gzip.

    Args:
        path: The file.
        remedy: What to give instead, for errors.
        longest: Characters of the longest value, by default `line_bytes`.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, or it is no such list.
    """
    # Only the ends of values count here: a number may be longer than Python would read.
    longest = longest or line_bytes()
    decoder, pieces = json.JSONDecoder(parse_int=len, parse_float=len), _pieces(path)
    buffer, asked, line = next(pieces, ""), _PIECE, 1
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
        if buffer[at : at + 1] == "]":
            rests = itertools.chain([buffer[at + 1 :]], pieces)
            if not opening["within"] and any(rest and not rest.isspace() for rest in rests):
                raise SourceError(f"{path}: more follows the end of its list", remedy)
            return
        try:
            _, end = decoder.raw_decode(buffer, at)
        except RecursionError:
            line += buffer.count("\n", counted, at)
            raise SourceError(f"{path}, line {line}: its list is nested too deep", remedy) from None
        except json.JSONDecodeError as error:
            line += buffer.count("\n", counted, at)
            if len(buffer) - at > longest:
                yield ListValue(line, LongLine.of(buffer[at : at + _PIECE].encode(), longest))
                buffer, lines = _after_value(buffer[at:], pieces)
                line, at, counted, asked = line + lines, 0, 0, _PIECE
                continue
            # Twice as much each time, so that a long value is not decoded again and again.
            more = ""
            while len(more) < min(asked, longest) and (piece := next(pieces, "")):
                more += piece
            if not more:
                raise SourceError(f"{path}, line {line}: its list is no JSON: {error.msg}", remedy) from None
            buffer, at, counted, asked = buffer[at:] + more, 0, 0, 2 * asked
            continue
        line += buffer.count("\n", counted, at)
        raw = buffer[at:end].encode()
        yield ListValue(line, LongLine.of(raw, longest) if len(raw) > longest else raw)
        counted, at, asked = at, end, _PIECE


def _after_value(text: str, pieces: Iterator[str]) -> tuple[str, int]:
    """What follows the value with which a text begins, and the line feeds in that value."""
    depth, quoted, lines = 0, False, 0
    while text:
        for match in _SIGNS.finditer(text):
            sign = match[0]
            if sign == '"':
                quoted = not quoted
            elif not quoted and sign in "[{":
                depth += 1
            elif not quoted and depth and sign in "]}":
                depth -= 1
            elif not quoted and not depth and sign in ",]}":
                return text[match.start() :], lines + text.count("\n", 0, match.start())
        lines += text.count("\n")
        # A backslash at the end escapes the first sign of the next piece.
        escape = "\\" * ((len(text) - len(text.rstrip("\\"))) % 2)
        text = (piece := next(pieces, "")) and escape + piece
    return "", lines


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
