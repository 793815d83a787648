"""The records of a JSON file one by one: JSON Lines, or one list, which is read piece by piece."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from citerec.corpus.json_lines import BadRecord, list_values, parsed, raw_lines
from citerec.files.rejected import FULL_TEXT_BYTES

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
        numbered = ((number, raw) for number, raw, _ in raw_lines(path, longest=FULL_TEXT_BYTES))
    else:
        numbered = ((number, value.raw) for number, value in enumerate(list_values(path, REMEDY), 1))
    for number, raw in numbered:
        yield JsonRecord(number, parsed(raw, dict), raw)


def _is_list(path: Path) -> bool:
    first = next(raw_lines(path), None)
    return first is not None and first[1].lstrip().startswith(b"[")
