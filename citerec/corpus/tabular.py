"""citerec's own formats: JSON Lines and CSV whose columns are the attributes of `Paper`, and files of contexts."""

import csv
import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from citerec.corpus import reading as values
from citerec.corpus.base import Format, json_lines, paper_of
from citerec.corpus.reading import Line, LongLine, NumberedLine, RecordError, plain, raw_lines, tried
from citerec.corpus.s2ag import known_intents
from citerec.errors import SourceError
from citerec.files.text import printable
from citerec.records import MARKER, Citation, Paper, citing_name

_LIST_SEPARATOR = ";"
_LONGEST_CELL = 10_000_000


def parse_paper(record: Mapping[str, Any]) -> Paper:
    """A paper from an object with the names of `Paper`'s attributes; RecordError if it is not valid."""
    return paper_of(
        values.read_id(record, "paper_id"),
        _strings_by_name(record, "external_ids"),
        title=values.read_plain(record, "title") or "",
        abstract=values.read_text(record, "abstract"),
        tldr=values.read_text(record, "tldr"),
        year=values.read_year(record, "year"),
        venue=values.read_plain(record, "venue"),
        authors=tuple(dict.fromkeys(filter(None, map(plain, values.read_strings(record, "authors"))))),
        fields_of_study=values.read_strings(record, "fields_of_study"),
        citation_count=values.read_count(record, "citation_count"),
        bibtex=record.get("bibtex") if isinstance(record.get("bibtex"), str) else None,
        origins=_strings_by_name(record, "origins"),
    )


def _strings_by_name(record: Mapping[str, Any], key: str) -> dict[str, str]:
    """The strings of an object by their names; empty if there is none."""
    entries = values.read_object(record, key)
    return {printable(str(name)): printable(str(value)) for name, value in entries.items() if value}


def parse_citances(record: Mapping[str, Any]) -> list[Citation]:
    """The citations of a context; one without a cited paper if it cites none. RecordError if it is not a context."""
    text = values.read_text(record, "text")
    if not text or text.count(MARKER) != 1:
        raise RecordError(f"not a context: its text holds {(text or '').count(MARKER)} {MARKER}, where one should be")
    name = citing_name(values.optional_id(record, "citing_id"), values.read_text(record, "citing_key"))
    citing_id = values.optional_id({"citing_key": name}, "citing_key")
    if citing_id is None:
        raise RecordError("citing_id and citing_key are missing: the paper of the sentence is unknown")
    # This distinguishes several sentences of one paper about another.
    citation_id = values.optional_id(record, "context_id") or hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    intents, year = (known_intents([record.get("intent")]),), values.read_year(record, "citing_year")
    cited = [values.optional_id({"cited_ids": value}, "cited_ids") for value in values.read_list(record, "cited_ids")]
    cited_ids = dict.fromkeys(filter(None, cited)) or [None]
    return [Citation(citing_id, one, (text,), intents, citation_id=citation_id, citing_year=year) for one in cited_ids]


def read_csv(path: Path, names: Mapping[str, str] = MappingProxyType({})) -> Iterator[Line]:
    """Yields the papers of a CSV file with a header; lists are separated by semicolons.

    Args:
        path: The file.
        names: Other names of its columns, by attribute of a paper.

    Raises:
        SourceError: The file cannot be read, its header has no `paper_id`, or a quote is not closed, so that nobody
            knows where its row ends.
    """
    csv.field_size_limit(_LONGEST_CELL)
    taken: list[NumberedLine] = []
    attributes = {column: attribute for attribute, column in names.items()}

    def texts() -> Iterator[str]:
        for line in raw_lines(path):
            taken.append(line)
            yield line[1].decode("utf-8", "surrogateescape")

    lines, remedy = texts(), f"Columns are: {', '.join(Paper.__dataclass_fields__)}; --map FIELD=NAME reads others."
    rows = csv.reader(lines, strict=True)
    try:
        header = [attributes.get(name.strip(), name.strip()) for name in next(rows, [])]
    except csv.Error as error:
        raise SourceError(f"{path}: the header is not CSV ({error})", remedy) from error
    if "paper_id" not in header:
        raise SourceError(f"{path}: the header has no column {names.get('paper_id', 'paper_id')}", remedy)
    while True:
        taken.clear()
        try:
            cells: list[str] | str = next(rows, [])
        except csv.Error as error:
            if len(taken) != 1:
                remedy = "Close the quote that begins there, or write two quotes for one."
                raise SourceError(f"{path}, line {taken[0][0]}: not CSV: {error}", remedy) from error
            cells, rows = f"not CSV: {error}", csv.reader(lines, strict=True)
        if not taken:
            return
        raws = [raw for _, raw, _ in taken]
        # The first line that is too long to be read, if one is.
        raw = next((raw for raw in raws if isinstance(raw, LongLine)), b"".join(raws))
        yield Line(taken[0][0], tried(partial(_parse_row, header, cells, raw), raw), taken[-1][2])


def _parse_row(header: list[str], cells: list[str] | str, raw: bytes) -> Paper:
    if isinstance(cells, str):
        raise RecordError(cells)
    if len(cells) != len(header):
        raise RecordError(f"{len(cells)} cells where the header has {len(header)}")
    record: dict[str, Any] = dict(zip(header, cells, strict=True))
    for name in ("authors", "fields_of_study"):
        record[name] = (record.get(name) or "").split(_LIST_SEPARATOR)
    for name in ("external_ids", "origins"):
        pairs = (pair.partition(":") for pair in (record.get(name) or "").split(_LIST_SEPARATOR))
        record[name] = {key.strip(): value.strip() for key, _, value in pairs}
    raw.decode()  # what is not UTF-8 fails here
    return parse_paper(record)


def parse_beir(record: Mapping[str, Any]) -> Paper:
    """A paper from a document of BEIR: its `_id`, `title` and `text`; and the rest, if citerec wrote it as metadata."""
    metadata = record.get("metadata")
    rest = metadata if isinstance(metadata, dict) and "paper_id" in metadata else {}
    return parse_paper({**rest, "paper_id": record["_id"], "title": record.get("title"), "abstract": record["text"]})


def _renamed_json(names: Mapping[str, str]) -> Format:
    def parse(record: Mapping[str, Any]) -> Paper:
        return parse_paper({**record, **{attribute: record.get(column) for attribute, column in names.items()}})

    return json_lines("jsonl", parse)


def _renamed_csv(names: Mapping[str, str]) -> Format:
    return Format("csv", partial(read_csv, names=names))


BEIR = json_lines("beir", parse_beir, {"_id", "text"}.issubset)
JSONL = json_lines("jsonl", parse_paper, {"paper_id"}.issubset, renamed=_renamed_json)
CSV = Format("csv", read_csv, (".csv",), renamed=_renamed_csv)
CONTEXTS = json_lines("contexts", parse_citances)
