"""Rows of papers, abstracts, TLDRs and citations, as every store holds them."""

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from citerec.corpus.store import NumberedRecord
from citerec.records import Abstract, Citation, Paper, Tldr

_AT_ONCE = 256  # rows that are digested together

Row = tuple[Any, ...]

COLUMNS = {
    "papers": ("paper_id", "title", "year", "venue", "authors", "fields_of_study", "citation_count",
               "external_ids", "bibtex", "place"),
    "abstracts": ("paper_id", "text", "place"),
    "tldrs": ("paper_id", "text", "place"),
    "citations": ("cited_id", "citing_id", "citation_id", "contexts", "intents", "influential",
                  "citing_year", "place"),
}  # fmt: skip
"""Columns by table, `place` last."""

KEYS = {"papers": ("paper_id",), "abstracts": ("paper_id",), "tldrs": ("paper_id",),
        "citations": ("cited_id", "citing_id", "citation_id")}  # fmt: skip
"""The first columns of each table, the key of its rows; rows are digested in the order of their keys."""

JSON_COLUMNS = frozenset({"authors", "fields_of_study", "external_ids", "contexts", "intents"})
"""Columns whose values are JSON, as text: equal values are equal texts."""


def rows_of(records: Sequence[NumberedRecord]) -> dict[str, list[Row]]:
    """Rows by table, in the order of the records; a citation without sentences or cited paper has none."""
    rows: dict[str, list[Row]] = {table: [] for table in COLUMNS}
    for place, record in records:
        match record:
            case Paper():
                rows["papers"].append(_paper_row(place, record))
                if record.abstract:
                    rows["abstracts"].append((record.paper_id, record.abstract, place))
                if record.tldr:
                    rows["tldrs"].append((record.paper_id, record.tldr, place))
            case Abstract(paper_id, text):
                rows["abstracts"].append((paper_id, text, place))
            case Tldr(paper_id, text):
                rows["tldrs"].append((paper_id, text, place))
            case Citation(citing_id, cited_id) if cited_id and record.contexts:
                contexts, intents = json_text(record.contexts), json_text(record.intents)
                key = (cited_id, citing_id, record.citation_id)
                values = (contexts, intents, record.influential, record.citing_year)
                rows["citations"].append((*key, *values, place))
    return rows


def paper_of(row: Sequence[Any], abstract: str | None, tldr: str | None) -> Paper:
    """The paper of a row of `papers` (its place is not needed), with its texts."""
    values = dict(zip(COLUMNS["papers"], row[: len(COLUMNS["papers"]) - 1], strict=False))
    values |= {name: tuple(orjson.loads(values[name])) for name in ("authors", "fields_of_study")}
    values["external_ids"] = orjson.loads(values["external_ids"])
    return Paper(abstract=abstract, tldr=tldr, **values)


def digest(tables: Iterable[tuple[str, Iterable[Row]]]) -> str:
    """A digest of every record: equal for equal contents, in any store, regardless of how they were added.

    Args:
        tables: Each of COLUMNS, in that order, with its rows without their place, in order of their keys.
    """
    whole = hashlib.blake2b(digest_size=16)
    for table, rows in tables:
        whole.update(table.encode())
        if table == "citations":
            # A citation without a citing year is digested as it was before citations had one.
            rows = (row[:-1] if row[-1] is None else row for row in rows)
        shown = map(repr, rows)
        while text := "".join(itertools.islice(shown, _AT_ONCE)):
            whole.update(text.encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def json_text(value: Any) -> str:
    """A value as JSON."""
    return orjson.dumps(value).decode()


def _paper_row(place: int, paper: Paper) -> Row:
    lists, ids = (json_text(paper.authors), json_text(paper.fields_of_study)), json_text(dict(paper.external_ids))
    head = (paper.paper_id, paper.title, paper.year, paper.venue)
    return (*head, *lists, paper.citation_count, ids, paper.bibtex, place)
