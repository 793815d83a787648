"""JSON Lines and CSV whose columns are the attributes of `Paper`."""

import csv
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from citerec.corpus.base import Format, json_lines
from citerec.corpus.json_lines import (
    BadRecord,
    Line,
    LongLine,
    RecordError,
    bad_record,
    check_account,
    raw_lines,
    tried,
)
from citerec.corpus.plain import plain
from citerec.corpus.values import read_count, read_id, read_plain, read_strings, read_text, read_year
from citerec.errors import SourceError
from citerec.files.text import printable
from citerec.records import Paper

COLUMNS = tuple(Paper.__dataclass_fields__)
_LISTS = ("authors", "fields_of_study")
_LIST_SEPARATOR = ";"
_LONGEST_CELL = 10_000_000
_OFTEN = 8  # times that a file's lines are read again, at most


def parse_paper(record: Mapping[str, Any]) -> Paper:
    """A paper from an object with the names of `Paper`'s attributes; RecordError if it is not valid."""
    paper = Paper(
        paper_id=read_id(record, "paper_id"),
        title=read_plain(record, "title") or "",
        abstract=read_text(record, "abstract"),
        tldr=read_text(record, "tldr"),
        year=read_year(record, "year"),
        venue=read_plain(record, "venue"),
        authors=tuple(dict.fromkeys(filter(None, map(plain, read_strings(record, "authors"))))),
        fields_of_study=read_strings(record, "fields_of_study"),
        citation_count=read_count(record, "citation_count"),
        external_ids=_strings_by_name(record, "external_ids"),
        bibtex=record.get("bibtex") if isinstance(record.get("bibtex"), str) else None,
        origins=_strings_by_name(record, "origins"),
    )
    return searchable(paper)


def _strings_by_name(record: Mapping[str, Any], key: str) -> dict[str, str]:
    """The strings of an object by their names; empty if there is none."""
    found = record.get(key) or {}
    if not isinstance(found, dict):
        raise RecordError(f"{key} is a {type(found).__name__}, not an object")
    return {printable(str(name)): printable(str(value)) for name, value in found.items() if value}


def searchable(paper: Paper) -> Paper:
    """The paper itself; RecordError if it has no text to search."""
    if not paper.title and not paper.abstract:
        raise RecordError("neither title nor abstract: nothing to search")
    return paper


def read_csv(path: Path) -> Iterator[Line]:
    """Yields the papers of a CSV file with a header; lists are separated by semicolons.

    A quote that is not closed would take the lines after it into its cell: only its own line is bad.

    Raises:
        SourceError: The file cannot be read, or its header has no `paper_id`.
    """
    csv.field_size_limit(_LONGEST_CELL)
    lines = _Lines(path)
    header = _header(path, lines)
    while row := lines.row():
        record = tried(partial(_parse_row, header, row), row.cut or row.text)
        if isinstance(record, BadRecord) and len(row.lines) > 1 and not _fits(header, row):
            reason = f"a quote in this line is not closed, or the row that it begins is bad: {record.reason}"
            record = bad_record(reason, row.lines[0].text)
            lines.give_back(row)
        yield Line(row.lines[0].number, record, row.lines[-1].bytes_read)
    check_account(path, lines.read, lines.used, "lines")


class _PhysicalLine(NamedTuple):
    number: int
    text: str
    bytes_read: int
    cut: LongLine | None


class _Row(NamedTuple):
    """The cells of a row, or what is wrong with it, and its lines."""

    cells: list[str] | csv.Error
    lines: list[_PhysicalLine]

    @property
    def text(self) -> str:
        return "".join(line.text for line in self.lines)

    @property
    def cut(self) -> LongLine | None:
        """The first of its lines that is too long to be read, if there is one."""
        return next((line.cut for line in self.lines if line.cut), None)


class _Lines:
    """The lines of a file as rows, which may span several lines. Lines that are given back are read again.

    Attributes:
        read: How many lines of the file were read.
        used: How many lines the rows had that were not given back.
    """

    def __init__(self, path: Path) -> None:
        self._raw = raw_lines(path)
        self._waiting: deque[_PhysicalLine] = deque()
        self._taken: list[_PhysicalLine] = []
        self._length = self._first_read = self._read_again = 0
        self.read = self.used = 0

    def row(self) -> _Row | None:
        """The next row; None at the end."""
        self._taken, self._length = [], 0
        cells: list[str] | csv.Error
        try:
            # strict: an unclosed quote is an error. A reader of its own: after an error, one is of no more use.
            cells = next(csv.reader(self._more(), strict=True))
        except csv.Error as error:
            cells = error
        except StopIteration:
            return None
        self.used += len(self._taken)
        return _Row(cells, self._taken)

    def give_back(self, row: _Row) -> None:
        """Gives back all lines of the last row but the first."""
        self.used -= len(row.lines) - 1
        self._read_again += sum(len(line.text) for line in row.lines[1:])
        self._waiting.extendleft(reversed(row.lines[1:]))

    def _more(self) -> Iterator[str]:
        while line := self._next():
            self._taken.append(line)
            self._length += len(line.text)
            yield line.text
            # A row ends where it is longer than a cell may be. If lines were often read in vain, each is taken for a
            # row: no file, however made, takes more than time in proportion to its length.
            if self._length > _LONGEST_CELL or self._read_again > _OFTEN * self._first_read:
                return

    def _next(self) -> _PhysicalLine | None:
        if self._waiting:
            return self._waiting.popleft()
        if (found := next(self._raw, None)) is None:
            return None
        number, raw, bytes_read = found
        cut = raw if isinstance(raw, LongLine) else None
        line = _PhysicalLine(number, raw.decode("utf-8", "surrogateescape"), bytes_read, cut)
        self.read += 1
        self._first_read += len(line.text)
        return line


def _header(path: Path, lines: _Lines) -> list[str]:
    row = lines.row()
    remedy = f"Columns are: {', '.join(COLUMNS)}."
    if row and isinstance(row.cells, csv.Error):
        raise SourceError(f"{path}: the header is not CSV, such as a quote that is not closed ({row.cells})", remedy)
    header = [name.strip() for name in row.cells] if row and isinstance(row.cells, list) else []
    if "paper_id" not in header:
        raise SourceError(f"{path}: the header has no column paper_id", remedy)
    return header


def _fits(header: list[str], row: _Row) -> bool:
    return isinstance(row.cells, list) and len(row.cells) == len(header)


def _parse_row(header: list[str], row: _Row) -> Paper:
    cells = row.cells
    if isinstance(cells, csv.Error):
        raise RecordError(f"not CSV: {cells}")
    if len(cells) != len(header):
        raise RecordError(f"{len(cells)} cells where the header has {len(header)}")
    record: dict[str, Any] = dict(zip(header, cells, strict=True))
    for name in _LISTS:
        record[name] = (record.get(name) or "").split(_LIST_SEPARATOR)
    for name in ("external_ids", "origins"):
        if given := record.get(name):
            pairs = [pair.partition(":") for pair in given.split(_LIST_SEPARATOR)]
            record[name] = {key.strip(): value.strip() for key, _, value in pairs}
    row.text.encode()  # what is not UTF-8 fails here
    return parse_paper(record)


JSONL = json_lines("jsonl", parse_paper)
CSV = Format("csv", read_csv, (".csv",))
