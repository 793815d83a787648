"""The paper store on SQLite: one file inside the index directory (docs/index-format.md)."""

import hashlib
import itertools
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.store import CensusRow, Counts, NumberedRecord, SearchableCitance, SearchableText
from citerec.records import Abstract, Citation, Paper, Tldr

# WITHOUT ROWID: rows lie in order of id, so that joins and the pass to Lucene read the file from front to back.
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
  intents TEXT NOT NULL, influential INTEGER NOT NULL, place INTEGER NOT NULL,
  PRIMARY KEY (cited_id, citing_id, citation_id)) WITHOUT ROWID;
"""
_KEYS = {"papers": ("paper_id",), "abstracts": ("paper_id",), "tldrs": ("paper_id",),
         "citations": ("cited_id", "citing_id", "citation_id")}  # fmt: skip
_COLUMNS = {
    "papers": ("paper_id", "title", "year", "venue", "authors", "fields_of_study", "citation_count",
               "external_ids", "bibtex", "place"),
    "abstracts": ("paper_id", "text", "place"),
    "tldrs": ("paper_id", "text", "place"),
    "citations": ("cited_id", "citing_id", "citation_id", "contexts", "intents", "influential", "place"),
}  # fmt: skip
_SEARCHABLE = "p.paper_id, p.title, COALESCE(a.text, ''), p.year, p.venue, p.fields_of_study, p.citation_count"
_FILTERABLE = "p.paper_id, '', '', p.year, p.venue, p.fields_of_study, p.citation_count"
_FULL = "p.paper_id, p.title, a.text, t.text, p.year, p.venue, p.authors, p.fields_of_study, p.citation_count, p.external_ids, p.bibtex"  # noqa: E501
_IDS_PER_QUERY = 500
_CACHE_KIB = 128 * 1024

Encoded = dict[str, list[tuple[Any, ...]]]


class SqliteStore:
    """Papers in one SQLite file. Reading is safe from several threads.

    Args:
        path: The file; made where it does not exist, unless `read_only`.
        read_only: Open a finished store, which nobody changes any more.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if read_only:
            uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
            self._database = sqlite3.connect(uri, uri=True, check_same_thread=False)
        else:
            self._database = sqlite3.connect(path, check_same_thread=False)
            # A killed process leaves a whole file: what it had not committed is rolled back.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(_SCHEMA)
        self._database.execute(f"PRAGMA cache_size=-{_CACHE_KIB if not read_only else _CACHE_KIB // 8}")
        self._lock = threading.Lock()

    @property
    def database(self) -> sqlite3.Connection:
        """The connection, for what lives beside the papers in the same file."""
        return self._database

    @staticmethod
    def encode(records: Sequence[NumberedRecord]) -> Encoded:
        """Rows by table."""
        rows: Encoded = {"papers": [], "abstracts": [], "tldrs": [], "citations": []}
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
                    contexts, intents = _json(record.contexts), _json(record.intents)
                    key = (cited_id, citing_id, record.citation_id)
                    rows["citations"].append((*key, contexts, intents, record.influential, place))
        return rows

    def write(self, encoded: Encoded) -> None:
        """Upserts rows and commits them."""
        with self._database:
            for table, rows in encoded.items():
                if rows:
                    self._database.executemany(_UPSERTS[table], rows)

    def papers(self, paper_ids: Iterable[str]) -> dict[str, Paper]:
        """Full records, by id; unknown ids are left out."""
        found: dict[str, Paper] = {}
        for ids, marks in _parts(paper_ids):
            rows = self._all(
                f"SELECT {_FULL} FROM papers p LEFT JOIN abstracts a USING (paper_id) "
                f"LEFT JOIN tldrs t USING (paper_id) WHERE p.paper_id IN ({marks})",
                ids,
            )
            found.update((row[0], _paper(row)) for row in rows)
        return found

    def years(self, paper_ids: Iterable[str]) -> dict[str, int | None]:
        """Years by id, without the rest of the record; unknown ids are left out."""
        found: dict[str, int | None] = {}
        for ids, marks in _parts(paper_ids):
            found.update(self._all(f"SELECT paper_id, year FROM papers WHERE paper_id IN ({marks})", ids))
        return found

    def census(self) -> Iterator[CensusRow]:
        """Counts of papers by first field, year and citation count: one pass over all papers."""
        rows = self._all(
            "SELECT json_extract(fields_of_study, '$[0]'), year, citation_count, COUNT(*) FROM papers "
            "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        return map(CensusRow._make, rows)

    def searchable_texts(self, after: str = "", changed_since: int = 0) -> Iterator[SearchableText]:
        """All papers with an id above `after`, in order of id, changed at or after a place."""
        changed = "AND (p.place >= ? OR a.place >= ?)" if changed_since else ""
        cursor = self._database.execute(
            f"SELECT {_SEARCHABLE} FROM papers p LEFT JOIN abstracts a USING (paper_id) "
            f"WHERE p.paper_id > ? {changed} ORDER BY p.paper_id",
            (after, *[changed_since] * (2 if changed_since else 0)),
        )
        return map(SearchableText._make, cursor)

    def searchable_citances(self, after: str = "", changed_since: int = 0) -> Iterator[SearchableCitance]:
        """Citances of all papers with an id above `after`, in order of cited and citing id.

        With `changed_since`, all citances of a paper come if the paper, one of its citances or the paper that wrote
        one changed at or after that place: a whole paper is written anew or not at all.
        """
        changed = ""
        if changed_since:
            changed = (
                "AND c.cited_id IN (SELECT k.cited_id FROM citations k LEFT JOIN papers x ON x.paper_id = k.citing_id "
                "LEFT JOIN papers y ON y.paper_id = k.cited_id "
                "WHERE k.place >= ?1 OR x.place >= ?1 OR y.place >= ?1)".replace("?1", str(int(changed_since)))
            )
        cursor = self._database.execute(
            f"SELECT {_FILTERABLE}, c.citing_id, q.year, c.contexts "
            "FROM citations c JOIN papers p ON p.paper_id = c.cited_id "
            "LEFT JOIN papers q ON q.paper_id = c.citing_id "
            f"WHERE c.cited_id > ? {changed} ORDER BY c.cited_id, c.citing_id, c.citation_id",
            (after,),
        )
        pairs = itertools.groupby(cursor, key=lambda row: row[:-1])
        for (*cited, citing_id, citing_year), rows in pairs:
            texts = (text for row in rows for text in orjson.loads(row[-1]))
            for position, text in enumerate(texts):
                yield SearchableCitance(SearchableText._make(cited), citing_id, citing_year, position, text)

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        """The sentences in which one paper cites another."""
        rows = self._all(
            "SELECT contexts FROM citations WHERE cited_id = ? AND citing_id = ? ORDER BY citation_id",
            (cited_id, citing_id),
        )
        return tuple(text for row in rows for text in orjson.loads(row[0]))

    def counts(self) -> Counts:
        """How much the store holds."""
        papers, with_year = self._all("SELECT COUNT(*), COUNT(year) FROM papers")[0]
        texts = [
            self._all(
                f"SELECT COALESCE(SUM(p.paper_id IS NOT NULL AND x.text IS NOT NULL), 0), "
                f"COALESCE(SUM(p.paper_id IS NULL), 0) FROM {table} x LEFT JOIN papers p USING (paper_id)"
            )[0]
            for table in ("abstracts", "tldrs")
        ]
        citances, with_citances, unmatched = self._all(
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
        """How many papers have each value of `year`, `venue` or `fields_of_study`, most first, years in order."""
        if attribute == "fields_of_study":
            query = "SELECT f.value, COUNT(*) FROM papers, json_each(fields_of_study) f GROUP BY 1 ORDER BY 2 DESC, 1"
        elif attribute == "venue":
            query = "SELECT venue, COUNT(*) FROM papers WHERE venue IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
        elif attribute == "year":
            query = "SELECT year, COUNT(*) FROM papers WHERE year IS NOT NULL GROUP BY 1 ORDER BY 1"
        else:
            raise ValueError(f"no histogram of {attribute}")
        return dict(self._all(query))

    def fingerprint(self) -> str:
        """A digest of every record: equal for equal contents, however they came here."""
        digest = hashlib.blake2b(digest_size=16)
        for table, columns in _COLUMNS.items():
            kept = ", ".join(name for name in columns if name != "place")
            rows = self._database.execute(f"SELECT {kept} FROM {table} ORDER BY {', '.join(_KEYS[table])}")
            digest.update(table.encode())
            for row in rows:
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def integrity_faults(self) -> list[str]:
        """What SQLite finds wrong with its file; empty where nothing is."""
        faults = [row[0] for row in self._all("PRAGMA integrity_check")]
        return [] if faults == ["ok"] else faults

    def close(self) -> None:
        """Folds the write-ahead log into the file, and closes it."""
        self._database.close()

    def finish(self) -> None:
        """Leaves one plain file, then closes."""
        self._database.execute("PRAGMA journal_mode=DELETE")
        self._database.close()

    def _all(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._database.execute(query, parameters).fetchall()


def _upsert(table: str) -> str:
    columns, keys = _COLUMNS[table], _KEYS[table]
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates} WHERE excluded.place >= {table}.place"
    )


_UPSERTS = {table: _upsert(table) for table in _COLUMNS}


def _parts(paper_ids: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """Ids in parts that one query can take, with a question mark for each."""
    remaining = iter(paper_ids)
    while ids := list(itertools.islice(remaining, _IDS_PER_QUERY)):
        yield ids, ",".join("?" * len(ids))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _paper_row(place: int, paper: Paper) -> tuple[Any, ...]:
    return (
        paper.paper_id,
        paper.title,
        paper.year,
        paper.venue,
        _json(paper.authors),
        _json(paper.fields_of_study),
        paper.citation_count,
        _json(dict(paper.external_ids)),
        paper.bibtex,
        place,
    )


def _paper(row: Sequence[Any]) -> Paper:
    paper_id, title, abstract, tldr, year, venue, authors, fields, citation_count, external_ids, bibtex = row
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
