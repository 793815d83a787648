"""The paper store on SQLite: one file inside the index directory (docs/storage.md)."""

import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.rows import COLUMNS, KEYS, Row, digest, paper_of, rows_of
from citerec.corpus.sqlite_database import SqliteDatabase, id_parts
from citerec.corpus.store import CensusRow, CitingPaper, Counts, NumberedRecord, SearchableCitance, SearchableText
from citerec.errors import IndexUnusableError
from citerec.records import Paper

# WITHOUT ROWID: rows are in order of id, so joins and the pass to Lucene read the file from front to back.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS papers (
  paper_id TEXT PRIMARY KEY, title TEXT NOT NULL, year INTEGER, venue TEXT, authors TEXT NOT NULL,
  fields_of_study TEXT NOT NULL, citation_count INTEGER, external_ids TEXT NOT NULL, bibtex TEXT,
  place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS abstracts (
  paper_id TEXT PRIMARY KEY, text TEXT, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tldrs (
  paper_id TEXT PRIMARY KEY, text TEXT, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS citations (
  cited_id TEXT NOT NULL, citing_id TEXT NOT NULL, citation_id TEXT NOT NULL, contexts TEXT NOT NULL,
  intents TEXT NOT NULL, influential INTEGER NOT NULL, citing_year INTEGER, place INTEGER NOT NULL,
  PRIMARY KEY (cited_id, citing_id, citation_id)) WITHOUT ROWID;
"""
_SEARCHABLE = "p.paper_id, p.title, COALESCE(a.text, ''), p.year, p.venue, p.fields_of_study, p.citation_count"
_FILTERABLE = "p.paper_id, '', '', p.year, p.venue, p.fields_of_study, p.citation_count"
_PAPER = ", ".join(f"p.{name}" for name in COLUMNS["papers"][:-1])

Encoded = dict[str, list[Row]]


class SqliteStore:
    """Papers in one SQLite file, opened as `SqliteDatabase` is. Reading is safe from several threads."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.database = SqliteDatabase(path, read_only=read_only)
        try:
            self.database.define(_SCHEMA)
            if not read_only and not self._has_citing_years():
                self.database.define("ALTER TABLE citations ADD COLUMN citing_year INTEGER")
            self.database.all("SELECT paper_id FROM papers LIMIT 1")  # opening does not notice a file that is no store
        except (sqlite3.Error, IndexUnusableError):
            self.database.close()
            raise

    def _has_citing_years(self) -> bool:
        """Whether the table has the column: older stores without it are still read."""
        return any(row[1] == "citing_year" for row in self.database.all("PRAGMA table_info(citations)"))

    @staticmethod
    def encode(records: Sequence[NumberedRecord]) -> Encoded:
        return rows_of(records)

    def write(self, *encoded: Encoded) -> None:
        # In order of key, so that rows of one page come together. Sorting keeps the order of equal keys.
        tables = {
            table: sorted((row for part in encoded for row in part[table]), key=itemgetter(slice(len(keys))))
            for table, keys in KEYS.items()
        }
        self.database.write(*((_UPSERTS[table], rows) for table, rows in tables.items() if rows))

    def papers(self, paper_ids: Iterable[str], *, texts: bool = True) -> dict[str, Paper]:
        found: dict[str, Paper] = {}
        read = (
            f"SELECT {_PAPER}, a.text, t.text FROM papers p LEFT JOIN abstracts a USING (paper_id) "
            "LEFT JOIN tldrs t USING (paper_id)"
            if texts
            else f"SELECT {_PAPER}, NULL, NULL FROM papers p"
        )
        for ids, marks in id_parts(paper_ids):
            rows = self.database.all(f"{read} WHERE p.paper_id IN ({marks})", ids)
            with self.database.reading():
                found.update((row[0], paper_of(row, *row[-2:])) for row in rows)
        return found

    def ids_and_abstracts(self) -> Iterator[tuple[str, bool]]:
        rows = self.database.stream(
            "SELECT p.paper_id, a.text IS NOT NULL FROM papers p LEFT JOIN abstracts a USING (paper_id) "
            "ORDER BY p.paper_id"
        )
        return ((paper_id, bool(has_abstract)) for paper_id, has_abstract in rows)

    def years(self, paper_ids: Iterable[str]) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for ids, marks in id_parts(paper_ids):
            found.update(self.database.all(f"SELECT paper_id, year FROM papers WHERE paper_id IN ({marks})", ids))
        return found

    def census(self) -> Iterator[CensusRow]:
        rows = self.database.all(
            "SELECT json_extract(fields_of_study, '$[0]'), year, citation_count, COUNT(*) FROM papers "
            "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        return map(CensusRow._make, rows)

    def searchable_texts(self, after: str = "", changed_since: int = 0) -> Iterator[SearchableText]:
        changed = "AND (p.place >= ? OR a.place >= ?)" if changed_since else ""
        cursor = self.database.stream(
            f"SELECT {_SEARCHABLE} FROM papers p LEFT JOIN abstracts a USING (paper_id) "
            f"WHERE p.paper_id > ? {changed} ORDER BY p.paper_id",
            (after, *[changed_since] * (2 if changed_since else 0)),
        )
        return map(SearchableText._make, cursor)

    def searchable_citances(self, after: str = "", changed_since: int = 0) -> Iterator[SearchableCitance]:
        changed = ""
        if changed_since:
            changed = (
                "AND c.cited_id IN (SELECT k.cited_id FROM citations k LEFT JOIN papers x ON x.paper_id = k.citing_id "
                "LEFT JOIN papers y ON y.paper_id = k.cited_id "
                "WHERE k.place >= ?1 OR x.place >= ?1 OR y.place >= ?1)".replace("?1", str(int(changed_since)))
            )
        cursor = self.database.stream(
            f"SELECT {_FILTERABLE}, c.citing_id, COALESCE(q.year, c.citing_year), c.contexts "
            "FROM citations c JOIN papers p ON p.paper_id = c.cited_id "
            "LEFT JOIN papers q ON q.paper_id = c.citing_id "
            f"WHERE c.cited_id > ? {changed} ORDER BY c.cited_id, c.citing_id, c.citation_id",
            (after,),
        )
        for (*cited, citing_id), rows in itertools.groupby(cursor, key=lambda row: row[:-2]):
            years, contexts = zip(*(row[-2:] for row in rows), strict=True)
            # If records give a paper several years, the latest counts.
            citing_year = max((year for year in years if year is not None), default=None)
            with self.database.reading():
                texts = [text for listed in contexts for text in orjson.loads(listed)]
            for position, text in enumerate(texts):
                yield SearchableCitance(SearchableText._make(cited), citing_id, citing_year, position, text)

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        rows = self.database.all(
            "SELECT contexts FROM citations WHERE cited_id = ? AND citing_id = ? ORDER BY citation_id",
            (cited_id, citing_id),
        )
        with self.database.reading():
            return tuple(text for row in rows for text in orjson.loads(row[0]))

    def citing_papers(self, cited_ids: Iterable[str]) -> dict[str, list[CitingPaper]]:
        found: dict[str, list[CitingPaper]] = {}
        own_year = "c.citing_year" if self._has_citing_years() else "NULL"
        for ids, marks in id_parts(cited_ids):
            rows = self.database.all(
                f"SELECT c.cited_id, c.citing_id, MAX(COALESCE(q.year, {own_year})), "
                "SUM(json_array_length(c.contexts)) AS sentences "
                f"FROM citations c LEFT JOIN papers q ON q.paper_id = c.citing_id WHERE c.cited_id IN ({marks}) "
                "GROUP BY c.cited_id, c.citing_id HAVING sentences > 0 ORDER BY c.cited_id, c.citing_id",
                ids,
            )
            for cited_id, *citing in rows:
                found.setdefault(cited_id, []).append(CitingPaper(*citing))
        return found

    def counts(self) -> Counts:
        papers, with_year = self.database.all("SELECT COUNT(*), COUNT(year) FROM papers")[0]
        texts = [
            self.database.all(
                f"SELECT COALESCE(SUM(p.paper_id IS NOT NULL AND x.text IS NOT NULL), 0), "
                f"COALESCE(SUM(p.paper_id IS NULL), 0) FROM {table} x LEFT JOIN papers p USING (paper_id)"
            )[0]
            for table in ("abstracts", "tldrs")
        ]
        citances, with_citances, unmatched = self.database.all(
            "SELECT COALESCE(SUM(CASE WHEN p.paper_id IS NULL THEN 0 ELSE json_array_length(c.contexts) END), 0), "
            "COUNT(DISTINCT p.paper_id), COALESCE(SUM(p.paper_id IS NULL), 0) "
            "FROM citations c LEFT JOIN papers p ON p.paper_id = c.cited_id"
        )[0]
        return Counts(
            papers=papers,
            with_abstract=texts[0][0],
            with_tldr=texts[1][0],
            with_year=with_year,
            citances=citances,
            with_citances=with_citances,
            unmatched=texts[0][1] + texts[1][1] + unmatched,
        )

    def histogram(self, attribute: str) -> dict[Any, int]:
        if attribute == "fields_of_study":
            query = "SELECT f.value, COUNT(*) FROM papers, json_each(fields_of_study) f GROUP BY 1 ORDER BY 2 DESC, 1"
        elif attribute == "venue":
            query = "SELECT venue, COUNT(*) FROM papers WHERE venue IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
        elif attribute == "year":
            query = "SELECT year, COUNT(*) FROM papers WHERE year IS NOT NULL GROUP BY 1 ORDER BY 1"
        else:
            raise ValueError(f"no histogram of {attribute}")
        return dict(self.database.all(query))

    def fingerprint(self) -> str:
        return digest((table, self._keyed(table)) for table in COLUMNS)

    def _keyed(self, table: str) -> Iterator[Row]:
        columns = ", ".join(COLUMNS[table][:-1])
        if table == "citations" and not self._has_citing_years():
            columns = columns.replace("citing_year", "NULL")
        return self.database.stream(f"SELECT {columns} FROM {table} ORDER BY {', '.join(KEYS[table])}")

    def integrity_faults(self) -> list[str]:
        faults = [row[0] for row in self.database.all("PRAGMA integrity_check")]
        return [] if faults == ["ok"] else faults

    def close(self) -> None:
        self.database.close()

    def interrupt(self) -> None:
        """Ends what other threads are reading, with an error there."""
        self.database.interrupt()

    def finish(self) -> None:
        self.database.finish()


def _upsert(table: str) -> str:
    columns, keys = COLUMNS[table], KEYS[table]
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates} WHERE excluded.place >= {table}.place"
    )


_UPSERTS = {table: _upsert(table) for table in COLUMNS}
