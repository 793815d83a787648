"""JSON Lines and CSV whose columns are the attributes of `Paper`."""

import csv
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from citerec.corpus.base import Format, json_lines
from citerec.corpus.json_lines import BadRecord, Line, LongLine, RecordError, bad_record, raw_lines, tried
from citerec.corpus.plain import plain
from citerec.corpus.values import read_count, read_id, read_plain, read_strings, read_text, read_year
from citerec.errors import SourceError
from citerec.files.text import printable
from citerec.records import Paper

COLUMNS = tuple(Paper.__dataclass_fields__)
_LISTS = ("authors", "fields_of_study")
_LIST_SEPARATOR = ";"
_LONGEST_CELL = 10_000_000
_MOST_LINES = 200  # of a row: so many are read again after a quote that is not closed
_NumberedLine = tuple[int, bytes, int]


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
    lines = raw_lines(path)
    header = _header(path, next(lines, (0, b"", 0))[1])
    waiting: deque[_NumberedLine] = deque()
    while row := _row(waiting, lines):
        record = tried(partial(_parse_row, header, row), row.raw)
        if isinstance(record, BadRecord) and len(row.lines) > 1 and len(row.cells) != len(header):
            reason = f"a quote in this line is not closed, or the row that it begins is bad: {record.reason}"
            record = bad_record(reason, row.lines[0][1])
            waiting.extendleft(reversed(row.lines[1:]))
            del row.lines[1:]
        yield Line(row.lines[0][0], record, row.lines[-1][2])


class _Row(NamedTuple):
    """The cells of a row, or what is wrong with it, and its lines as `raw_lines` gives them."""

    cells: list[str]
    fault: str
    lines: list[_NumberedLine]

    @property
    def raw(self) -> bytes:
        """The lines; or the first that is too long to be read, if one is."""
        long = (raw for _, raw, _ in self.lines if isinstance(raw, LongLine))
        return next(long, None) or b"".join(raw for _, raw, _ in self.lines)


def _row(waiting: deque[_NumberedLine], lines: Iterator[_NumberedLine]) -> _Row | None:
    """The next row: of lines that wait to be read again, then of further ones; None at the end."""
    row = _Row([], "", [])

    def texts() -> Iterator[str]:
        while len(row.lines) < _MOST_LINES and (line := waiting.popleft() if waiting else next(lines, None)):
            row.lines.append(line)
            yield line[1].decode("utf-8", "surrogateescape")

    try:
        # strict: an unclosed quote is an error. A reader of its own: after an error, one is of no more use.
        cells = next(csv.reader(texts(), strict=True), [])
    except csv.Error as error:
        return row._replace(fault=f"not CSV: {error}")
    return row._replace(cells=cells) if row.lines else None


def _header(path: Path, raw: bytes) -> list[str]:
    remedy = f"Columns are: {', '.join(COLUMNS)}."
    try:
        header = [name.strip() for name in next(csv.reader([raw.decode("utf-8", "surrogateescape")], strict=True), [])]
    except csv.Error as error:
        fault = f"the header is not CSV, such as a quote that is not closed ({error})"
        raise SourceError(f"{path}: {fault}", remedy) from None
    if "paper_id" not in header:
        raise SourceError(f"{path}: the header has no column paper_id", remedy)
    return header


def _parse_row(header: list[str], row: _Row) -> Paper:
    if row.fault:
        raise RecordError(row.fault)
    if len(row.cells) != len(header):
        raise RecordError(f"{len(row.cells)} cells where the header has {len(header)}")
    record: dict[str, Any] = dict(zip(header, row.cells, strict=True))
    for name in _LISTS:
        record[name] = (record.get(name) or "").split(_LIST_SEPARATOR)
    for name in ("external_ids", "origins"):
        if text := record.get(name):
            pairs = [pair.partition(":") for pair in text.split(_LIST_SEPARATOR)]
            record[name] = {key.strip(): value.strip() for key, _, value in pairs}
    row.raw.decode()  # what is not UTF-8 fails here
    return parse_paper(record)


JSONL = json_lines("jsonl", parse_paper, {"paper_id"}.issubset)
CSV = Format("csv", read_csv, (".csv",))
