"""CSL-JSON, as Zotero and pandoc read and write it."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus import reading
from citerec.corpus.base import Format, paper_of
from citerec.corpus.citation_keys import kind_of, parts_of
from citerec.corpus.matching import arxiv_in, doi_in, doi_of_address, first_of, identified, year_in
from citerec.corpus.reading import Line, RecordError, escaped, parsed, plain
from citerec.errors import SourceError
from citerec.records import Paper

_REMEDY = 'Give one list of items, as Zotero and pandoc write it, or {"items": [...]}.'
_SNIFFED_ITEMS = 20
_VENUES = ("container-title", "event-title", "event", "collection-title", "publisher")
_NAME = ("given", "dropping-particle", "non-dropping-particle", "family", "suffix")
_OF_ITEMS = {"title", "author", "issued", "container-title"}


def read_csl(path: Path) -> Iterator[Line]:
    """Yields the items of a CSL-JSON file. The item's id becomes the paper id; without one, the DOI or one made.

    Raises:
        SourceError: The file cannot be read, or is no JSON list.
    """
    values, total = list(reading.list_values(path, _REMEDY)), path.stat().st_size
    for position, (number, raw) in enumerate(values, 1):
        yield Line(number, parsed(raw, parse_item), total * position // len(values))


def is_csl(path: Path) -> bool:
    """Whether a file is a JSON list with items of CSL."""
    try:
        # One after the other: what follows the first item of CSL may be broken.
        items = (parsed(raw, dict) for _, raw in itertools.islice(reading.list_values(path, _REMEDY), _SNIFFED_ITEMS))
        records = (item for item in items if isinstance(item, dict))
        return any(type(item.get("type")) is str and not _OF_ITEMS.isdisjoint(item) for item in records)
    except SourceError:  # it may be of another format
        return False


def parse_item(item: Mapping[str, Any]) -> Paper:
    """The paper of an item; RecordError if it cannot be used."""
    names = reading.read_list(item, "author", str | dict) or reading.read_list(item, "editor", str | dict)
    addresses = [_text(item, name) for name in ("number", "URL", "archive_location", "container-title")]
    ids = {
        "DOI": doi_in(_text(item, "DOI")) or first_of(doi_of_address, addresses[1:]),
        "PubMed": reading.read_external_id(item, "PMID"),
        "ISBN": reading.read_external_id(item, "ISBN"),
        "ArXiv": first_of(arxiv_in, addresses),
    }
    paper = paper_of(
        None,
        ids,
        title=plain(_text(item, "title")),
        abstract=plain(_text(item, "abstract")) or None,
        year=year_in(orjson.dumps(item.get("issued")).decode()),
        venue=next((venue for name in _VENUES if (venue := plain(_text(item, name)))), None),
        authors=tuple(filter(None, map(_name, names))),
    )
    return identified(paper, reading.read_external_id(item, "id") or "")


def _text(item: Mapping[str, Any], name: str) -> str:
    """A text, or the first of a list of texts, as Crossref gives titles; numbers as text."""
    value = item.get(name)
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, str | int | float | None):
        raise RecordError(f"{name} is a {type(value).__name__}: {value!r:.60}")
    return "" if value is None else str(value)


def _name(name: str | dict[str, Any]) -> str:
    if isinstance(name, str):
        return plain(name)
    return plain(_text(name, "literal") or " ".join(filter(None, (_text(name, part) for part in _NAME))))


def csl_item(key: str, paper: Paper) -> dict[str, Any]:
    """The item of a paper, with a citation key as its id."""
    from citerec.corpus.bibtex import further_fields

    (type_name, venue), ids = kind_of(paper).csl, paper.external_ids
    item: dict[str, Any] = {name: escaped(value) for name, value in further_fields(paper, "csl").items()}
    item |= {
        "id": key,
        "type": type_name,
        "title": escaped(paper.title),
        "author": [_parts(author) for author in paper.authors],
        venue: escaped(paper.venue or ""),
        "issued": {"date-parts": [[paper.year]]} if paper.year else None,
        "DOI": ids.get("DOI"),
        "PMID": ids.get("PubMed"),
        "ISBN": ids.get("ISBN"),
        "number": f"arXiv:{ids['ArXiv']}" if ids.get("ArXiv") else None,
    }
    return {name: value for name, value in item.items() if value}


def _parts(author: str) -> dict[str, str]:
    given, family, suffix = parts_of(author)
    if not given or "," in author or ";" in author:
        return {"literal": escaped(author)}
    parts = {"family": family, "given": given, "suffix": suffix}
    return {name: escaped(part) for name, part in parts.items() if part}


CSL = Format("csl", read_csl, is_of=is_csl, entry=csl_item)
