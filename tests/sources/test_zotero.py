"""The library of Zotero, made by its schema: what is read of it, and that a running Zotero is not disturbed."""

import sqlite3
from pathlib import Path

import pytest

from citerec.corpus.base import papers_in
from tests.conftest import Citerec

SCHEMA = """
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT, templateItemTypeID INT, display INT DEFAULT 1);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT, fieldFormatID INT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT NOT NULL, dateAdded TIMESTAMP, dateModified TIMESTAMP,
  clientDateModified TIMESTAMP, libraryID INT NOT NULL, key TEXT NOT NULL, version INT, synced INT);
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value UNIQUE);
CREATE TABLE itemData (itemID INT, fieldID INT, valueID, PRIMARY KEY (itemID, fieldID));
CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
CREATE TABLE itemCreators (itemID INT, creatorID INT, creatorTypeID INT DEFAULT 1, orderIndex INT DEFAULT 0);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP);
"""
ARTICLE = {
    "title": "Ranking pages & links",
    "publicationTitle": "Lake Journal",
    "date": "1998-04-00 April 1998",
    "volume": "30",
    "issue": "1-7",
    "pages": "107–117",
    "publisher": "Elsevier",
    "DOI": "10.1016/S0169-7552(98)00110-X",
    "abstractNote": "We rank <i>pages</i>.",
}
PREPRINT = {"title": "Attention", "date": "2017", "extra": "arXiv: 1706.03762 [cs]\nCitation Key: vaswani_attention"}


class Library:
    """A database of Zotero."""

    def __init__(self, path: Path) -> None:
        self.path, self._base, self._known = path, sqlite3.connect(path), dict[tuple[str, str], int]()
        self._base.executescript(SCHEMA)

    def add(self, key: str, kind: str, fields: dict[str, str], *authors: tuple[str, str], trash: bool = False) -> None:
        values = self._id("itemTypes", "typeName", kind), key
        item = self._base.execute("INSERT INTO items (itemTypeID, libraryID, key) VALUES (?, 1, ?)", values).lastrowid
        for name, value in fields.items():
            values = item, self._id("fields", "fieldName", name), self._id("itemDataValues", "value", value)
            self._base.execute("INSERT INTO itemData VALUES (?, ?, ?)", values)
        for order, author in enumerate(authors):
            creator = self._base.execute("INSERT INTO creators (firstName, lastName) VALUES (?, ?)", author).lastrowid
            kind_id = self._id("creatorTypes", "creatorType", "author")
            self._base.execute("INSERT INTO itemCreators VALUES (?, ?, ?, ?)", (item, creator, kind_id, order))
        if trash:
            self._base.execute("INSERT INTO deletedItems (itemID) VALUES (?)", (item,))

    def _id(self, table: str, column: str, value: str) -> int:
        if (table, value) not in self._known:
            row = self._base.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (value,)).lastrowid
            assert row is not None
            self._known[table, value] = row
        return self._known[table, value]

    def save(self, *, locked: bool = False) -> None:
        self._base.commit()
        if locked:  # as a running Zotero holds it
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("BEGIN EXCLUSIVE")


@pytest.fixture
def library(tmp_path: Path) -> Library:
    (tmp_path / "Zotero").mkdir()
    made = Library(tmp_path / "Zotero" / "zotero.sqlite")
    made.add("AAAA1111", "journalArticle", ARTICLE, ("Sergey", "Brin"), ("Lawrence", "Page"))
    made.add("BBBB2222", "preprint", PREPRINT, ("Ashish", "Vaswani"))
    made.add("CCCC3333", "attachment", {"title": "PDF"})
    made.add("DDDD4444", "book", {"title": "Thrown away"}, trash=True)
    return made


def test_items_are_papers_with_whole_entries_while_zotero_runs(library: Library) -> None:
    library.save(locked=True)
    with sqlite3.connect(library.path.with_name("better-bibtex.sqlite")) as better:
        better.execute("CREATE TABLE citationkey (itemID, itemKey, libraryID, citationKey)")
        better.execute("INSERT INTO citationkey VALUES (1, 'AAAA1111', 1, 'brin1998')")
    first, second = papers_in(library.path)
    assert (first.paper_id, first.year, first.authors) == ("brin1998", 1998, ("Sergey Brin", "Lawrence Page"))
    assert (first.venue, first.abstract) == ("Lake Journal", "We rank pages.")
    assert (second.paper_id, second.external_ids) == ("vaswani_attention", {"ArXiv": "1706.03762"})
    entry = first.bibtex or ""
    for part in ("@article{brin1998,", r"{Ranking pages {\&} links}", "volume = {30}", "number = {1-7}", "{Elsevier}"):
        assert part in entry, entry
    assert "abstract" not in entry


def test_the_users_library_is_indexed_and_followed(
    library: Library, monkeypatch: pytest.MonkeyPatch, citerec_here: Citerec, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    library.save()
    assert citerec_here("index", "build", "zotero:", "--out", "mine", "--vectors", "none").returncode == 0
    library.add("EEEE5555", "book", {"title": "Introduction to lakes"}, ("Ada", "Roe"))
    library.save()
    assert citerec_here("index", "add", "mine", "zotero:").returncode == 0
    found = citerec_here("recommend", "an introduction to lakes", "--index", "mine", "--format", "bibtex")
    assert found.stdout.startswith("@book{EEEE5555,") and "Ada Roe" in found.stdout
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    lacking = citerec_here("index", "add", "mine", "zotero:")
    assert lacking.returncode == 2 and "there is no Zotero library here" in lacking.stderr


def test_a_database_of_something_else(tmp_path: Path, citerec_here: Citerec) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE a (b)")
    run = citerec_here("index", "build", "other.sqlite", "--out", "mine")
    assert run.returncode != 0 and "as a library of Zotero" in run.stderr and "Traceback" not in run.stderr
