"""Rows of papers, abstracts, TLDRs and citations, as every store keeps them, and documents kept beside the papers."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from citerec.corpus.store import NumberedRecord
from citerec.records import Abstract, Citation, Paper, Tldr

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
"""The first columns of each table, which no two of its rows share; rows are digested in their order."""

JSON_COLUMNS = frozenset({"authors", "fields_of_study", "external_ids", "contexts", "intents"})
"""Columns whose values are JSON, as text: equal values are equal texts."""

_BATCH_DOCUMENTS = 1000
_BATCH_BYTES = 8_000_000  # full texts are large: a batch of them must not fill the memory


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
    paper_id, title, year, venue, authors, fields, citation_count, external_ids, bibtex = row[:9]
    return Paper(
        paper_id=paper_id,
        title=title,
        abstract=abstract,
        tldr=tldr,
        year=year,
        venue=venue,
        authors=tuple(orjson.loads(authors)),
        fields_of_study=tuple(orjson.loads(fields)),
        citation_count=citation_count,
        external_ids=orjson.loads(external_ids),
        bibtex=bibtex,
    )


def digest(tables: Iterable[tuple[str, Iterable[Row]]]) -> str:
    """A digest of every record: equal for equal contents, in whatever store, however they came there.

    Args:
        tables: Each of COLUMNS, in that order, with its rows without their place, in order of their keys.
    """
    whole = hashlib.blake2b(digest_size=16)
    for table, rows in tables:
        whole.update(table.encode())
        for row in rows:
            # A citation without a citing year is digested as it was before citations had one.
            known = row[:-1] if table == "citations" and row[-1] is None else row
            whole.update(repr(known).encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def json_text(value: Any) -> str:
    """A value as JSON."""
    return orjson.dumps(value).decode()


class Document(NamedTuple):
    """A document to be kept: its id, the paper it belongs to where it names one, and all of it as JSON."""

    document_id: str
    cited_id: str | None
    json: bytes


def document_batches(documents: Iterable[Mapping[str, Any]]) -> Iterator[list[Document]]:
    """Documents in batches that fit the memory, each with its id first.

    Raises:
        ValueError: A document has no `id`, or a `cited_id` that is no string, or holds what JSON cannot.
    """
    batch: list[Document] = []
    size = 0
    for fields in documents:
        document = _document(fields)
        batch.append(document)
        size += len(document.json)
        if len(batch) == _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _document(fields: Mapping[str, Any]) -> Document:
    document_id, cited_id = fields.get("id"), fields.get("cited_id")
    if not isinstance(document_id, str) or not document_id:
        raise ValueError(f"a document needs an id, a string that is not empty: {document_id!r:.60}")
    # A list would match here what it does not match there: MongoDB looks into lists, SQLite does not.
    if cited_id is not None and not isinstance(cited_id, str):
        raise ValueError(f"cited_id of document {document_id!r:.60} is no string: {cited_id!r:.60}")
    if "_id" in fields:
        raise ValueError(f"document {document_id!r:.60} has a field _id, which is MongoDB's own name for id")
    try:
        return Document(document_id, cited_id, orjson.dumps({"id": document_id, **fields}))
    except TypeError as error:
        raise ValueError(f"document {document_id!r:.60} is no JSON: {error}") from error


def _paper_row(place: int, paper: Paper) -> Row:
    return (
        paper.paper_id,
        paper.title,
        paper.year,
        paper.venue,
        json_text(paper.authors),
        json_text(paper.fields_of_study),
        paper.citation_count,
        json_text(dict(paper.external_ids)),
        paper.bibtex,
        place,
    )
