"""Rows of papers, abstracts, TLDRs and citations, as every store holds them."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from citerec.corpus.store import NumberedRecord
from citerec.records import Abstract, Citation, Deletion, Paper, Tldr

_DIGEST_BYTES = 16
_DIGESTS = 1 << (8 * _DIGEST_BYTES)

Row = tuple[Any, ...]

COLUMNS = {
    "papers": ("paper_id", "title", "year", "venue", "authors", "fields_of_study", "citation_count",
               "external_ids", "bibtex", "origins", "place"),
    "abstracts": ("paper_id", "text", "place"),
    "tldrs": ("paper_id", "text", "place"),
    "citations": ("cited_id", "citing_id", "citation_id", "contexts", "intents", "influential",
                  "citing_year", "place"),
    "deletions": ("of_table", "of_key", "place"),
}  # fmt: skip
"""Columns by table, `place` last."""

KEYS = {"papers": ("paper_id",), "abstracts": ("paper_id",), "tldrs": ("paper_id",),
        "citations": ("cited_id", "citing_id", "citation_id"), "deletions": ("of_table", "of_key")}  # fmt: skip
"""The first columns of each table, the key of its rows."""

RECORDS = ("papers", "abstracts", "tldrs", "citations")
"""The tables of records; `deletions` holds those that were read and not applied yet."""

JSON_COLUMNS = frozenset({"authors", "fields_of_study", "external_ids", "origins", "contexts", "intents"})
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
            case Deletion(table, key):
                rows["deletions"].append((table, key, place))
    return rows


def paper_of(row: Sequence[Any], abstract: str | None, tldr: str | None) -> Paper:
    """The paper of a row of `papers` (its place is not needed), with its texts."""
    values = dict(zip(COLUMNS["papers"], row[: len(COLUMNS["papers"]) - 1], strict=False))
    values |= {name: tuple(orjson.loads(values[name])) for name in ("authors", "fields_of_study")}
    values |= {name: orjson.loads(values[name]) for name in ("external_ids", "origins")}
    return Paper(abstract=abstract, tldr=tldr, **values)


def citation_of(row: Sequence[Any]) -> Citation:
    """The citation of a row of `citations`; its place is not needed."""
    cited_id, citing_id, citation_id, contexts, intents, influential, citing_year = row
    return Citation(
        citing_id=citing_id,
        cited_id=cited_id,
        contexts=tuple(orjson.loads(contexts)),
        intents=tuple(tuple(each) for each in orjson.loads(intents)),
        influential=bool(influential),
        citation_id=citation_id,
        citing_year=citing_year,
    )


def digest_sum(rows: Iterable[tuple[str, Row]]) -> int:
    """The sum of the digests of some records, each a table and a row without its place.

    A store's fingerprint is such a sum: it does not depend on the order of the records, and follows a change of a few
    of them by the sums of those before and after. It is not safe against records that are made up to have a sum.
    """
    keys = {table: hashlib.blake2b(digest_size=_DIGEST_BYTES, person=table.encode()) for table in RECORDS}
    total = 0
    for table, row in rows:
        whole = keys[table].copy()
        whole.update(repr(row).encode("utf-8", "surrogatepass"))
        total += int.from_bytes(whole.digest(), "little")
    return total % _DIGESTS


def fingerprint_of(total: int) -> str:
    """The fingerprint of a sum of digests."""
    return f"{total % _DIGESTS:0{2 * _DIGEST_BYTES}x}"


def json_text(value: Any) -> str:
    """A value as JSON."""
    return orjson.dumps(value).decode()


def _paper_row(place: int, paper: Paper) -> Row:
    lists, ids = (json_text(paper.authors), json_text(paper.fields_of_study)), json_text(dict(paper.external_ids))
    head = (paper.paper_id, paper.title, paper.year, paper.venue)
    origins = json_text(dict(sorted(paper.origins.items())))
    return (*head, *lists, paper.citation_count, ids, paper.bibtex, origins, place)
