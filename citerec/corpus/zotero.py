"""The library of Zotero: its database `zotero.sqlite`, of which a copy is read, so that Zotero may run meanwhile."""

import contextlib
import re
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from citerec.corpus.base import Format, paper_of
from citerec.corpus.bibtex import bibtex_names, bibtex_text
from citerec.corpus.matching import arxiv_in, doi_in, first_of, year_in
from citerec.corpus.reading import Line, plain, tried
from citerec.errors import InputError, SourceError
from citerec.files.text import names_in
from citerec.records import Paper

ADDRESS = "zotero:"
"""Names the user's own library."""
_FOLDERS = ("Zotero", "snap/zotero-snap/common/Zotero", ".zotero/zotero")
_BETTER = "better-bibtex.sqlite"
_CITATION_KEY = re.compile(r"^\s*citation key\s*:\s*(\S+)\s*$", re.IGNORECASE | re.MULTILINE)
_DOI = re.compile(r"^\s*doi\s*:\s*(10\.\S+)\s*$", re.IGNORECASE | re.MULTILINE)
_KINDS = {
    "journalArticle": ("article", "journal"),
    "magazineArticle": ("article", "journal"),
    "conferencePaper": ("inproceedings", "booktitle"),
    "bookSection": ("incollection", "booktitle"),
    "book": ("book", "publisher"),
    "thesis": ("phdthesis", "school"),
    "report": ("techreport", "institution"),
}
"""The types of BibTeX of items, and the fields of their venues; all others are `misc`."""
_NO_PAPERS = ("attachment", "note", "annotation")
_VENUES = names_in("publicationTitle, proceedingsTitle, bookTitle, conferenceName, university, institution, publisher")
_MORE = {"volume": "volume", "number": "issue", "pages": "pages", "publisher": "publisher", "series": "series"}
_ITEMS = """
SELECT i.itemID, i.key, t.typeName FROM items i JOIN itemTypes t ON t.itemTypeID = i.itemTypeID
WHERE i.itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY i.itemID"""
_FIELDS = """
SELECT d.itemID, f.fieldName, v.value FROM itemData d JOIN fields f ON f.fieldID = d.fieldID
JOIN itemDataValues v ON v.valueID = d.valueID"""
_CREATORS = """
SELECT l.itemID, c.firstName, c.lastName, t.creatorType FROM itemCreators l JOIN creators c ON c.creatorID = l.creatorID
JOIN creatorTypes t ON t.creatorTypeID = l.creatorTypeID ORDER BY l.itemID, l.orderIndex"""


def zotero_file() -> Path:
    """The database of the user's library.

    Raises:
        InputError: There is none at its usual places.
    """
    places = [Path.home() / folder / "zotero.sqlite" for folder in _FOLDERS]
    if found := next((place for place in places if place.exists()), None):
        return found
    raise InputError("there is no Zotero library here", f"Give its file: {places[0]}, or where Zotero keeps its data.")


def read_zotero(path: Path) -> Iterator[Line]:
    """Yields the items of a library, without those in the trash. Their ids are the keys of Better BibTeX, or Zotero's.

    Raises:
        SourceError: The file cannot be read, or is no library of Zotero.
    """
    total = path.stat().st_size
    with tempfile.TemporaryDirectory(prefix="citerec-") as folder:
        try:
            copies = [shutil.copy(one, folder) for one in (path, path.with_name(_BETTER)) if one.exists()]
            with contextlib.closing(sqlite3.connect(f"file:{copies[0]}?mode=ro&immutable=1", uri=True)) as database:
                items = list(database.execute(_ITEMS))
                fields, authors = _fields(database), _authors(database)
            keys = _better_keys(Path(copies[1])) if copies[1:] else {}
        except (sqlite3.Error, OSError) as error:
            raise SourceError(f"cannot read {path} as a library of Zotero: {error}", "Give zotero.sqlite.") from error
    papers = [one for one in items if one[2] not in _NO_PAPERS]
    for number, (item, key, kind) in enumerate(papers, 1):
        own = fields[item]
        citation = _CITATION_KEY.search(own.get("extra", ""))
        name = own.get("citationKey") or (citation[1] if citation else keys.get(key, key))
        make = partial(_paper, name, _KINDS.get(kind, ("misc", "howpublished")), own, authors[item])
        yield Line(number, tried(make, name.encode()), total * number // len(papers))


def _fields(database: sqlite3.Connection) -> dict[int, dict[str, str]]:
    """The fields of each item."""
    found = defaultdict[int, dict[str, str]](dict)
    for item, name, value in database.execute(_FIELDS):
        found[item][name] = str(value)
    return found


def _authors(database: sqlite3.Connection) -> dict[int, list[str]]:
    """The authors of each item; its editors and others, if it has none."""
    found, others = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
    for item, first, last, kind in database.execute(_CREATORS):
        name = " ".join(filter(None, (first, last)))
        (found if kind == "author" else others)[item].append(name)
    return others | found


def _better_keys(path: Path) -> dict[str, str]:
    """The citation keys of Better BibTeX, by the keys of items; none where it keeps them elsewhere."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT itemKey, citationKey FROM citationkey"))
    return {}


def _paper(key: str, kind: tuple[str, str], fields: Mapping[str, str], authors: list[str]) -> Paper:
    """The paper of an item, with its entry."""
    (type_name, venue_field), extra, title = kind, fields.get("extra", ""), plain(fields.get("title", ""))
    venue = next((plain(fields[name]) for name in _VENUES if fields.get(name)), None)
    noted = _DOI.search(extra)
    year, doi = year_in(fields.get("date", "")), doi_in(fields.get("DOI", "")) or (noted[1] if noted else "")
    arxiv = first_of(arxiv_in, [fields.get("archiveID", ""), extra, fields.get("url", "")])
    values = {
        "author": bibtex_names(authors),
        "title": f"{{{bibtex_text(title)}}}" if title else "",
        venue_field: bibtex_text(venue or ""),
        "year": str(year or ""),
        **{name: bibtex_text(fields.get(own, "")) for name, own in _MORE.items() if fields.get(own) != venue},
        "isbn": fields.get("ISBN", ""),
        "doi": doi or "",
        "eprint": arxiv or "",
        "archivePrefix": "arXiv" if arxiv else "",
        "url": "" if doi else fields.get("url", ""),
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in values.items() if value)
    return paper_of(
        key,
        {"DOI": doi, "ArXiv": arxiv, "ISBN": fields.get("ISBN")},
        title=title,
        abstract=plain(fields.get("abstractNote", "")) or None,
        year=year,
        venue=venue,
        authors=tuple(authors),
        bibtex=f"@{type_name}{{{key},\n{lines}\n}}",
    )


ZOTERO = Format("zotero", read_zotero, endings=(".sqlite",), header=re.compile(rb"SQLite format 3"))
