"""Files of the ids of papers to be removed, one a line."""

from collections.abc import Iterator
from pathlib import Path

from citerec.corpus.base import REMOVED, Format
from citerec.corpus.json_lines import Line, raw_lines, tried
from citerec.corpus.values import read_id
from citerec.records import Deletion


def read_removed(path: Path) -> Iterator[Line]:
    """Yields a deletion for each line with an id; SourceError as for `raw_lines`."""
    for number, raw, bytes_read in raw_lines(path):
        yield Line(number, tried(lambda raw=raw: Deletion("papers", _id(raw)), raw), bytes_read)  # type: ignore[misc]


def _id(raw: bytes) -> str:
    return read_id({"id": raw.decode()}, "id")


IDS = Format(REMOVED, read_removed)
