"""JSON Lines and CSV whose columns are the attributes of `Paper`."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from citerec.corpus.json_lines import Line, RecordError, bad_record, raw_lines
from citerec.corpus.values import read_count, read_id, read_strings, read_text, read_year
from citerec.errors import SourceError
from citerec.records import Paper

COLUMNS = tuple(Paper.__dataclass_fields__)
_LISTS = ("authors", "fields_of_study")
_LIST_SEPARATOR = ";"
_LONGEST_CELL = 10_000_000


def parse_paper(record: Mapping[str, Any]) -> Paper:
    """A paper from an object with the names of `Paper`'s attributes; RecordError if it is not valid."""
    external_ids = record.get("external_ids") or {}
    if not isinstance(external_ids, dict):
        raise RecordError(f"external_ids is a {type(external_ids).__name__}, not an object")
    paper = Paper(
        paper_id=read_id(record, "paper_id"),
        title=read_text(record, "title") or "",
        abstract=read_text(record, "abstract"),
        tldr=read_text(record, "tldr"),
        year=read_year(record, "year"),
        venue=read_text(record, "venue"),
        authors=read_strings(record, "authors"),
        fields_of_study=read_strings(record, "fields_of_study"),
        citation_count=read_count(record, "citation_count"),
        external_ids={str(scheme): str(value) for scheme, value in external_ids.items() if value},
        bibtex=record.get("bibtex") if isinstance(record.get("bibtex"), str) else None,
    )
    return searchable(paper)


def searchable(paper: Paper) -> Paper:
    """The paper itself; RecordError if it has no text to search."""
    if not paper.title and not paper.abstract:
        raise RecordError("neither title nor abstract: nothing to search")
    return paper


def read_csv(path: Path) -> Iterator[Line]:
    """Yields the papers of a CSV file with a header; lists are separated by semicolons.

    Raises:
        SourceError: The file cannot be read, or its header has no `paper_id`.
    """
    rows = _Rows(path)
    csv.field_size_limit(_LONGEST_CELL)
    # strict: an unclosed quote is an error, instead of making the rest of the file one cell.
    reader = csv.reader(rows, strict=True)
    header = [name.strip() for name in next(reader, [])]
    if "paper_id" not in header:
        raise SourceError(f"{path}: the header has no column paper_id", f"Columns are: {', '.join(COLUMNS)}.")
    while True:
        begins = rows.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            record = bad_record(f"not CSV: {error}", rows.last.encode("utf-8", "surrogateescape"))
        else:
            record = _parse_row(header, cells)
        yield Line(begins, record, rows.bytes_read)


def _parse_row(header: list[str], cells: list[str]) -> Any:
    try:
        if len(cells) != len(header):
            raise RecordError(f"{len(cells)} cells where the header has {len(header)}")
        record: dict[str, Any] = dict(zip(header, cells, strict=True))
        for name in _LISTS:
            record[name] = (record.get(name) or "").split(_LIST_SEPARATOR)
        if external_ids := record.get("external_ids"):
            pairs = [pair.partition(":") for pair in external_ids.split(_LIST_SEPARATOR)]
            record["external_ids"] = {scheme.strip(): value.strip() for scheme, _, value in pairs}
        if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
            raise RecordError("not UTF-8")
        return parse_paper(record)
    except RecordError as error:
        output = io.StringIO()
        csv.writer(output).writerow(cells)
        return bad_record(str(error), output.getvalue().rstrip().encode("utf-8", "surrogateescape"))


class _Rows(Iterator[str]):
    """The lines of the file as text, counted."""

    def __init__(self, path: Path) -> None:
        self._lines = raw_lines(path)
        self.number = self.bytes_read = 0
        self.last = ""

    def __next__(self) -> str:
        self.number, raw, self.bytes_read = next(self._lines)
        self.last = raw.decode("utf-8", "surrogateescape")
        return self.last
