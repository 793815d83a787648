"""The paper store on SQLite: one file inside the index directory (docs/formats.md)."""

import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.store import COLUMNS, KEYS, TABLES, Change, Counts, PaperStore, Row, json_text, name_digests
from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts

_IDS_PER_QUERY = 500
_CACHE_KIB = 32 * 1024
# SQLite's usual 4 KiB hold one abstract, and its rest on a page of its own: files of twice the size, and twice the
# time to write them.
_PAGE_BYTES = 16 * 1024
_LOG_PAGES = 4096  # the log is folded into the file when it has 64 MiB: a page that changes often is written once
# WITHOUT ROWID: rows are in order of id, so joins and the pass to the index read the file from front to back.
_TABLE = "CREATE TABLE IF NOT EXISTS {} ({}, PRIMARY KEY ({})) WITHOUT ROWID;"
_SCHEMA = "\n".join(
    _TABLE.format(table, columns, ", ".join(COLUMNS[table][: KEYS[table]])) for table, columns in TABLES.items()
) + _TABLE.format("names", "name INTEGER NOT NULL, paper_id TEXT NOT NULL", "name, paper_id")
_BY_ID = "CREATE INDEX IF NOT EXISTS citations_by_id ON citations (citation_id);"
# Made when the store is finished: rows come in any order, and an index is made faster all at once.
_INDEXES = f"CREATE INDEX IF NOT EXISTS citations_by_citing ON citations (citing_id);{_BY_ID}"
# Names of papers that changed since stay: what is found is compared with its record.
_NAMES = """
INSERT OR IGNORE INTO names
SELECT n.value, p.paper_id FROM papers p, json_each(names(p.title, p.external_ids)) n ORDER BY 1, 2;
"""
_COUNTS = """
SELECT
  (SELECT COUNT(*) FROM papers),
  (SELECT COUNT(text) FROM abstracts JOIN papers USING (paper_id)),
  (SELECT COUNT(text) FROM tldrs JOIN papers USING (paper_id)),
  (SELECT COUNT(year) FROM papers),
  (SELECT COALESCE(SUM(json_array_length(contexts)), 0) FROM citations JOIN papers ON paper_id = cited_id),
  (SELECT COUNT(*) FROM papers WHERE EXISTS (SELECT 1 FROM citations WHERE cited_id = paper_id)),
  (SELECT COUNT(*) FROM (SELECT paper_id FROM abstracts UNION ALL SELECT paper_id FROM tldrs
    UNION ALL SELECT cited_id FROM citations) WHERE paper_id NOT IN (SELECT paper_id FROM papers))
"""

_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC")


class SqliteStore(PaperStore):
    """Papers in one SQLite file, created if missing, unless `read_only`: then it is a finished file nobody changes.

    Reading is safe from several threads. Failures raise `sqlite3.Error`, or IndexUnusableError if it is `read_only`, as
    the store of an index is.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self.name, self._read_only = path, str(path), read_only
        self._lock = threading.Lock()
        with self._failures():
            address = f"{path.resolve().as_uri()}?mode=ro&immutable=1" if read_only else path
            self._connection = sqlite3.connect(address, uri=read_only, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        self._connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB // 8 if self._read_only else _CACHE_KIB}")
        if not self._read_only:
            # A killed process leaves a whole file: uncommitted work is rolled back. The size of pages is of a new file.
            self._connection.executescript(f"PRAGMA page_size={_PAGE_BYTES}; PRAGMA journal_mode=WAL;")
            self._connection.executescript(f"PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint={_LOG_PAGES};")
            self._connection.executescript(_SCHEMA)
        self._connection.execute("SELECT paper_id FROM papers LIMIT 1")  # opening takes any file

    # Writing

    def copy(self, path: Path) -> None:
        """Writes the same store into another file, in place of one that is there."""
        path.unlink(missing_ok=True)
        with self._failures(), contextlib.closing(sqlite3.connect(path)) as target:
            self._connection.backup(target)

    def write(self, changes: Sequence[Change]) -> None:
        with self._lock, self._connection:
            for change in changes:
                columns, key_size = COLUMNS[change.table], KEYS[change.table]
                if not change.deletes:
                    # In order of key, so that rows of one page come together. Sorting keeps the order of equal keys.
                    rows = sorted(change.rows, key=itemgetter(slice(key_size)))
                    marks = ", ".join("?" * len(columns))
                    self._connection.executemany(f"INSERT OR REPLACE INTO {change.table} VALUES ({marks})", rows)
                    continue
                if change.table == "citations":
                    self._connection.execute(_BY_ID)
                query = f"DELETE FROM {change.table} WHERE {columns[key_size - 1]} = ?"
                self._connection.executemany(query, change.rows)

    def finish(self) -> None:
        self._connection.executescript(_INDEXES)
        self._connection.create_function("names", 2, lambda *texts: json_text(name_digests(*texts)), deterministic=True)
        self._connection.executescript(_NAMES)
        self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()

    def close(self) -> None:
        """Folds the write-ahead log into the file, and closes it."""
        self._connection.close()

    # Reading

    def select(
        self, table: str, *columns: str, only: Sequence[str] | None = None, second: str | None = None
    ) -> Iterator[Row]:
        first, *others = COLUMNS[table][: KEYS[table]]
        where, parameters = ("1", ()) if second is None else (f"{others[0]} = ?", (second,))
        read = f"SELECT {', '.join(columns or '*')} FROM {table} WHERE {where}"
        order = f"ORDER BY {', '.join([first, *others])}"
        if only is None:
            return self._stream(f"{read} {order}", parameters)
        return self._in_parts(f"{read} AND {first} IN ({{}}) {order}", only, parameters)

    def ids_named(self, digests: Iterable[int]) -> set[str]:
        rows = self._in_parts("SELECT paper_id FROM names WHERE name IN ({})", digests)
        return {paper_id for (paper_id,) in rows}

    def counts(self) -> Counts:
        return Counts(*self._all(_COUNTS)[0])

    def check(self) -> None:
        """Raises an error if the store is clearly damaged, without reading its records, unlike `integrity_faults`."""
        pages, size = (self._all(f"PRAGMA {fact}")[0][0] for fact in ("page_count", "page_size"))
        if self.path.stat().st_size < pages * size:
            with self._failures():
                raise sqlite3.DatabaseError("the file is cut off")
        for table in COLUMNS:
            self._all(f"SELECT * FROM {table} LIMIT 1")

    def integrity_faults(self) -> list[str]:
        faults = [row[0] for row in self._all("PRAGMA integrity_check")]
        return [] if faults == ["ok"] else faults

    def json(self, text: str) -> Any:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            with self._failures():
                raise

    def _in_parts(self, query: str, ids: Iterable[Any], parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows that a query finds for some ids, in parts that it can take; it has `{}` for question marks."""
        for part in in_parts(ids, _IDS_PER_QUERY):
            yield from self._all(query.format(",".join("?" * len(part))), (*parameters, *part))

    def _all(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._failures():
            return self._connection.execute(query, parameters).fetchall()

    def _stream(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        with self._failures():
            # In a chain: a generator that is left early would close the cursor, perhaps of a closed database.
            yield from itertools.chain(self._connection.execute(query, parameters))

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turns a failure, also of parsing a row, into an IndexUnusableError if the file is only read."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a fault of ours, such as a closed database
        except (sqlite3.Error, orjson.JSONDecodeError) as error:
            full = getattr(error, "sqlite_errorname", "") in _FULL  # that is of a copy, and of no file that is read
            if not self._read_only or full:
                raise
            index = self.path.parent.parent if self.path.parent.name.isdecimal() else self.path.parent
            raise IndexUnusableError(
                f"the paper store of {index} cannot be read ({error})",
                f"Build it again: citerec index build … --out {index}",
            ) from error
