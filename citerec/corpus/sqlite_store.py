"""The paper store on SQLite: one file inside the index directory (docs/storage.md)."""

import bisect
import contextlib
import itertools
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.rows import (
    COLUMNS,
    KEYS,
    RECORDS,
    Row,
    citation_of,
    digest_sum,
    fingerprint_of,
    json_text,
    paper_of,
    rows_of,
)
from citerec.corpus.sqlite_database import SqliteDatabase, id_parts
from citerec.corpus.store import (
    CensusRow,
    CitingPaper,
    Counts,
    NumberedRecord,
    PaperFacts,
    SearchableCitance,
    SearchableText,
    sum_of,
)
from citerec.corpus.titles import by_name, look_up_names, name_digest
from citerec.errors import IndexUnusableError
from citerec.records import Citation, Paper

# WITHOUT ROWID: rows are in order of id, so joins and the pass to Lucene read the file from front to back.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS main.papers (
  paper_id TEXT PRIMARY KEY, title TEXT NOT NULL, year INTEGER, venue TEXT, authors TEXT NOT NULL,
  fields_of_study TEXT NOT NULL, citation_count INTEGER, external_ids TEXT NOT NULL, bibtex TEXT,
  origins TEXT NOT NULL, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS main.abstracts (
  paper_id TEXT PRIMARY KEY, text TEXT, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS main.tldrs (
  paper_id TEXT PRIMARY KEY, text TEXT, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS main.citations (
  cited_id TEXT NOT NULL, citing_id TEXT NOT NULL, citation_id TEXT NOT NULL, contexts TEXT NOT NULL,
  intents TEXT NOT NULL, influential INTEGER NOT NULL, citing_year INTEGER, place INTEGER NOT NULL,
  PRIMARY KEY (cited_id, citing_id, citation_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS main.names (
  name INTEGER NOT NULL, paper_id TEXT NOT NULL, PRIMARY KEY (name, paper_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS main.deletions (
  of_table TEXT NOT NULL, of_key TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (of_table, of_key)) WITHOUT ROWID;
"""
# Made when the store is finished: rows come in any order, and an index is made faster all at once.
_INDEXES = """
CREATE INDEX IF NOT EXISTS main.citations_by_citing ON citations (citing_id);
CREATE INDEX IF NOT EXISTS main.citations_by_id ON citations (citation_id);
"""
# Names of papers that changed since stay: what is found is compared with its record.
_NAMES = """
INSERT OR IGNORE INTO main.names
SELECT n.value, p.paper_id FROM main.papers p, json_each(names(p.title, p.external_ids)) n ORDER BY 1, 2;
"""
# Joins are subqueries: where a name stands for a base and its changes, SQLite would read all of it for a join.
_ABSTRACT = "(SELECT text FROM abstracts a WHERE a.paper_id = p.paper_id)"
_TLDR = "(SELECT text FROM tldrs t WHERE t.paper_id = p.paper_id)"
_CITING_YEAR = "COALESCE((SELECT year FROM papers q WHERE q.paper_id = c.citing_id), c.citing_year)"
_IS_KNOWN = "EXISTS (SELECT 1 FROM papers p WHERE p.paper_id = x.paper_id)"
_SEARCHABLE = f"paper_id, title, COALESCE({_ABSTRACT}, ''), year, venue, fields_of_study, citation_count"
_FILTERABLE = "paper_id, '', '', year, venue, fields_of_study, citation_count"
_LIKE = re.compile("[%_!]")
_MERGED_ROWS = 10_000
_PAPER = ", ".join(f"p.{name}" for name in COLUMNS["papers"][:-1])

Encoded = dict[str, list[Row]]


class SqliteStore:
    """Papers in one SQLite file, opened as `SqliteDatabase` is. Reading is safe from several threads.

    With a `base`, the file holds only what changed after the base was finished: records, and the keys of all records
    that were written or deleted, `changed_TABLE`, which hide those of the base.
    """

    def __init__(self, path: Path, *, read_only: bool = False, base: Path | None = None) -> None:
        self.database = SqliteDatabase(path, read_only=read_only, base=base)
        try:
            self.database.define(_SCHEMA)
            self.database.add_column("citations", "citing_year", "INTEGER")
            self.database.add_column("papers", "origins", "TEXT NOT NULL DEFAULT '{}'")
            if base is not None:
                self.database.define(_INDEXES + "".join(_changed_table(table) for table in RECORDS))
                for table in RECORDS:
                    self.database.view(table, _with_changes(table))
                self.database.view("names", "SELECT * FROM base.names UNION ALL SELECT * FROM main.names")
            self.database.all("SELECT paper_id FROM papers LIMIT 1")  # opening does not notice a file that is no store
        except (sqlite3.Error, IndexUnusableError):
            self.database.close()
            raise

    @staticmethod
    def encode(records: Sequence[NumberedRecord]) -> Encoded:
        return rows_of(records)

    def write(self, *encoded: Encoded) -> None:
        # In order of key, so that rows of one page come together. Sorting keeps the order of equal keys.
        tables = {
            table: sorted((row for part in encoded for row in part[table]), key=itemgetter(slice(len(keys))))
            for table, keys in KEYS.items()
        }
        writes = [(_UPSERTS[table], rows) for table, rows in tables.items() if rows]
        if self.database.has_base:
            for table in RECORDS:
                keys = len(KEYS[table])
                writes.append((_CHANGED[table], [(*row[:keys], row[-1]) for row in tables[table]]))
        self.database.write(*writes)

    def apply_deletions(self) -> None:
        steps = []
        for table in RECORDS:
            keys, key = ", ".join(KEYS[table]), KEYS[table][-1]
            deleted = f"SELECT of_key FROM deletions WHERE of_table = '{table}'"
            if self.database.has_base:
                later = f"SELECT place FROM deletions WHERE of_table = '{table}' AND of_key = {key}"
                steps.append(
                    f"INSERT INTO changed_{table} SELECT {keys}, ({later}) FROM {table} WHERE {key} IN ({deleted}) "
                    f"AND place < ({later}) ON CONFLICT DO UPDATE SET place = excluded.place"
                )
            steps.append(
                f"DELETE FROM main.{table} WHERE {key} IN ({deleted}) AND place < "
                f"(SELECT place FROM deletions WHERE of_table = '{table}' AND of_key = {key})"
            )
        self.database.write(*((step, [()]) for step in [*steps, "DELETE FROM deletions"]))

    def changed(self, table: str, since: int) -> list[str]:
        """The first keys of the records of a table that were written or deleted at or after a place, in order.

        Only for a store with a base.
        """
        key = KEYS[table][0]
        rows = self.database.all(f"SELECT DISTINCT {key} FROM changed_{table} WHERE place >= ? ORDER BY 1", (since,))
        return [found for (found,) in rows]

    def cited_by(self, citing_ids: Iterable[str]) -> set[str]:
        """The papers that some papers cite."""
        return {
            cited_id
            for ids, marks in id_parts(citing_ids)
            for (cited_id,) in self.database.all(f"SELECT cited_id FROM citations WHERE citing_id IN ({marks})", ids)
        }

    def papers(self, paper_ids: Iterable[str], *, texts: bool = True) -> dict[str, Paper]:
        found: dict[str, Paper] = {}
        read = f"SELECT {_PAPER}, {f'{_ABSTRACT}, {_TLDR}' if texts else 'NULL, NULL'} FROM papers p"
        for ids, marks in id_parts(paper_ids):
            rows = self.database.all(f"{read} WHERE paper_id IN ({marks})", ids)
            with self.database.reading():
                found.update((row[0], paper_of(row, *row[-2:])) for row in rows)
        return found

    def ids_and_abstracts(self) -> Iterator[tuple[str, bool]]:
        rows = self.database.stream(f"SELECT paper_id, COALESCE({_ABSTRACT}, '') <> '' FROM papers p ORDER BY paper_id")
        return ((paper_id, bool(has_abstract)) for paper_id, has_abstract in rows)

    def facts(self) -> Iterator[PaperFacts]:
        rows = self.database.stream(f"SELECT {', '.join(PaperFacts._fields)} FROM papers ORDER BY paper_id")
        with self.database.reading():
            for paper_id, title, year, venue, authors, citation_count in rows:
                yield PaperFacts(paper_id, title, year, venue, orjson.loads(authors), citation_count)

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

    def searchable_texts(self, after: str = "", only: Sequence[str] | None = None) -> Iterator[SearchableText]:
        """As for `PaperStore`; with `only`, those of some papers, whose ids are given in order."""
        return map(SearchableText._make, self._in_order(f"SELECT {_SEARCHABLE} FROM papers p", "paper_id", after, only))

    def searchable_citances(self, after: str = "", only: Sequence[str] | None = None) -> Iterator[SearchableCitance]:
        """As for `PaperStore`; with `only`, those of some papers, whose ids are given in order."""
        papers = map(
            SearchableText._make, self._in_order(f"SELECT {_FILTERABLE} FROM papers p", "paper_id", after, only)
        )
        cited = next(papers, None)
        citations = f"SELECT cited_id, citing_id, citation_id, {_CITING_YEAR}, contexts FROM citations c"
        rows = self._in_order(citations, "cited_id, citing_id, citation_id", after, only)
        for (cited_id, citing_id), pair in itertools.groupby(rows, key=itemgetter(0, 1)):
            while cited and cited.paper_id < cited_id:  # Python orders strings as their UTF-8 bytes are ordered
                cited = next(papers, None)
            if not cited or cited.paper_id != cited_id:
                continue
            years, contexts = zip(*(row[-2:] for row in pair), strict=True)
            # If records give a paper several years, the latest counts.
            citing_year = max((year for year in years if year is not None), default=None)
            with self.database.reading():
                texts = [text for listed in contexts for text in orjson.loads(listed)]
            for position, text in enumerate(texts):
                yield SearchableCitance(cited, citing_id, citing_year, position, text)

    def _in_order(self, read: str, keys: str, after: str, only: Sequence[str] | None) -> Iterator[Any]:
        """Rows in the order of their keys, those after a first key, or with some first keys."""
        first = keys.partition(",")[0]
        if only is None:
            yield from self.database.stream(f"{read} WHERE {first} > ? ORDER BY {keys}", (after,))
            return
        for ids, marks in id_parts(only[bisect.bisect_right(only, after) :]):
            yield from self.database.all(f"{read} WHERE {first} IN ({marks}) ORDER BY {keys}", ids)

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        rows = self.database.all(
            "SELECT contexts FROM citations WHERE cited_id = ? AND citing_id = ? ORDER BY citation_id",
            (cited_id, citing_id),
        )
        with self.database.reading():
            return tuple(text for row in rows for text in orjson.loads(row[0]))

    def citations(self) -> Iterator[Citation]:
        """All citations, in order of cited paper, citing paper and id."""
        columns, keys = ", ".join(COLUMNS["citations"][:-1]), ", ".join(KEYS["citations"])
        return map(citation_of, self.database.stream(f"SELECT {columns} FROM citations ORDER BY {keys}"))

    def citing_papers(self, cited_ids: Iterable[str]) -> dict[str, list[CitingPaper]]:
        found: dict[str, list[CitingPaper]] = {}
        for ids, marks in id_parts(cited_ids):
            rows = self.database.all(
                f"SELECT cited_id, citing_id, MAX({_CITING_YEAR}), SUM(json_array_length(contexts)) AS sentences "
                f"FROM citations c WHERE cited_id IN ({marks}) "
                "GROUP BY cited_id, citing_id HAVING sentences > 0 ORDER BY cited_id, citing_id",
                ids,
            )
            for cited_id, *citing in rows:
                found.setdefault(cited_id, []).append(CitingPaper(*citing))
        return found

    def called(self, names: Sequence[str], most: int) -> list[str]:
        # In the JSON of a list or an object, a text ends with a quotation mark.
        texts = [_LIKE.sub(r"!\g<0>", json_text(name)[1:]) for name in names]
        patterns = [(f'%"{text}%', f"% {text}%", f'%:"{text}%') for text in texts]
        condition = "authors LIKE ? ESCAPE '!' OR authors LIKE ? ESCAPE '!' OR external_ids LIKE ? ESCAPE '!'"
        rows = self.database.all(
            f"SELECT paper_id FROM papers WHERE {' OR '.join([condition] * len(names)) or 0} "
            "ORDER BY COALESCE(citation_count, 0) DESC, paper_id LIMIT ?",
            (*itertools.chain(*patterns), most),
        )
        return [paper_id for (paper_id,) in rows]

    def named(self, names: Iterable[str]) -> dict[str, list[Paper]]:
        digests = {name_digest(name): name for name in names}
        ids: set[str] = set()
        for part, marks in id_parts(digests):
            ids.update(
                paper_id
                for (paper_id,) in self.database.all(f"SELECT paper_id FROM names WHERE name IN ({marks})", part)
            )
        return by_name(digests.values(), self.papers(ids, texts=False))

    def counts(self, only: Sequence[str] | None = None) -> Counts:
        """As for `PaperStore`; with `only`, of the records about some papers, whose ids are given."""
        whole: list[tuple[Sequence[str], str]] = [((), "")]
        parts = whole if only is None else [(ids, f"IN ({marks})") for ids, marks in id_parts(only)]
        return sum_of(self._counts_where(ids, chosen) for ids, chosen in parts)

    def _counts_where(self, ids: Sequence[str], chosen: str) -> Counts:
        """The counts of the records whose papers are chosen by the end of a condition; of all if it is empty."""
        of_paper = f"WHERE paper_id {chosen}" if chosen else ""
        papers, with_year = self.database.all(f"SELECT COUNT(*), COUNT(year) FROM papers {of_paper}", ids)[0]
        texts = [
            self.database.all(
                "SELECT COALESCE(SUM(known AND has_text), 0), COALESCE(SUM(NOT known), 0) FROM "
                f"(SELECT text IS NOT NULL AS has_text, {_IS_KNOWN} AS known FROM {table} x {of_paper})",
                ids,
            )[0]
            for table in ("abstracts", "tldrs")
        ]
        citances, with_citances, unmatched = self.database.all(
            "SELECT COALESCE(SUM(known * sentences), 0), COALESCE(SUM(known), 0), "
            f"COALESCE(SUM((NOT known) * records), 0) FROM (SELECT {_IS_KNOWN} AS known, sentences, records FROM "
            "(SELECT cited_id AS paper_id, SUM(json_array_length(contexts)) AS sentences, COUNT(*) AS records "
            f"FROM citations {f'WHERE cited_id {chosen}' if chosen else ''} GROUP BY cited_id) x)",
            ids,
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
        return fingerprint_of(self.digest_sum())

    def digest_sum(self, only: Sequence[str] | None = None) -> int:
        """The sum of the digests of all records, or of those about some papers."""
        return digest_sum(itertools.chain.from_iterable(self._keyed(table, only) for table in RECORDS))

    def _keyed(self, table: str, only: Sequence[str] | None) -> Iterator[tuple[str, Row]]:
        read = f"SELECT {', '.join(COLUMNS[table][:-1])} FROM {table}"
        rows = self._in_order(read, ", ".join(KEYS[table]), "", only)
        return zip(itertools.repeat(table), rows)

    def check(self) -> None:
        """Raises an error if the store is clearly damaged, without reading its records, unlike `integrity_faults`."""
        self.database.check(RECORDS)

    def integrity_faults(self) -> list[str]:
        faults = [row[0] for row in self.database.all("PRAGMA integrity_check")]
        return [] if faults == ["ok"] else faults

    def close(self) -> None:
        self.database.close()

    def interrupt(self) -> None:
        """Ends what other threads are reading, with an error there."""
        self.database.interrupt()

    def finish(self) -> None:
        self.database.define(_INDEXES)
        self.database.function("names", _names)
        self.database.define(_NAMES)
        self.database.finish()

    def merged(self, path: Path) -> None:
        """Writes a store of the same records, without a base, into a new file."""
        merged = SqliteStore(path)
        try:
            for table in RECORDS:
                columns = ", ".join(COLUMNS[table])
                rows = self._in_order(f"SELECT {columns} FROM {table}", ", ".join(KEYS[table]), "", None)
                while part := list(itertools.islice(rows, _MERGED_ROWS)):
                    merged.database.write((_UPSERTS[table], part))
            merged.finish()
        finally:
            with contextlib.suppress(sqlite3.Error):
                merged.close()


def _names(title: str, external_ids: str) -> str:
    """The names of a paper, as digests in a JSON list."""
    return json_text(sorted(map(name_digest, look_up_names(title, orjson.loads(external_ids)))))


def _upsert(table: str) -> str:
    columns, keys = COLUMNS[table], KEYS[table]
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    return (
        f"INSERT INTO main.{table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates} WHERE excluded.place >= {table}.place"
    )


def _changed_table(table: str) -> str:
    declared, keys = (", ".join(f"{key}{kind}" for key in KEYS[table]) for kind in (" TEXT NOT NULL", ""))
    return (
        f"CREATE TABLE IF NOT EXISTS main.changed_{table} "
        f"({declared}, place INTEGER NOT NULL, PRIMARY KEY ({keys})) WITHOUT ROWID;\n"
    )


def _note_changed(table: str) -> str:
    marks = ", ".join("?" * (len(KEYS[table]) + 1))
    return f"INSERT INTO changed_{table} VALUES ({marks}) ON CONFLICT DO UPDATE SET place = MAX(place, excluded.place)"


def _with_changes(table: str) -> str:
    """The records of a base that did not change, and those that did."""
    same = " AND ".join(f"h.{key} = b.{key}" for key in KEYS[table])
    columns = ", ".join(COLUMNS[table])
    return (
        f"SELECT {columns} FROM base.{table} b WHERE NOT EXISTS (SELECT 1 FROM main.changed_{table} h WHERE {same}) "
        f"UNION ALL SELECT {columns} FROM main.{table}"
    )


_UPSERTS = {table: _upsert(table) for table in COLUMNS}
_CHANGED = {table: _note_changed(table) for table in RECORDS}
