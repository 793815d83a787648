"""A SQLite database as the paper store, the ledger and the collections use it: opening, reading, writing."""

import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import IndexUnusableError

_IN_MEMORY = ":memory:"
_IDS_PER_QUERY = 500
_CACHE_KIB = 128 * 1024
# SQLite's usual 4 KiB hold one abstract, and its rest on a page of its own: files of twice the size, and twice the
# time to write them.
_PAGE_BYTES = 16 * 1024
_LOG_PAGES = 4096  # the log is folded into the file when it has 64 MiB: a page that changes often is written once


class SqliteDatabase:
    """A database in one file, created if missing, unless `read_only`: then it is a finished file that nobody changes.

    With a `base`, a finished file too, it holds what changed after that. The tables of the base are named `base.NAME`.

    Reading is safe from several threads. Failures raise `sqlite3.Error`, or IndexUnusableError if it is `read_only`, as
    the store of an index is.
    """

    def __init__(self, path: Path, *, read_only: bool = False, base: Path | None = None) -> None:
        self.read_only, self._base = read_only, base
        self._lock = threading.Lock()
        self._path, self.name = path, str(path)
        with self.reading():
            if read_only:
                self._connection = sqlite3.connect(_finished(path), uri=True, check_same_thread=False)
            else:
                # A URI, so that the address of a base is taken as one too; but not one of a database in memory.
                place = str(path) if str(path) == _IN_MEMORY else path.absolute().as_uri()
                self._connection = sqlite3.connect(place, uri=True, check_same_thread=False)
                self._connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")  # of a new file
                # A killed process leaves a whole file: uncommitted work is rolled back.
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
            self._connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB if not read_only else _CACHE_KIB // 8}")
            if base is not None:
                self._connection.execute("ATTACH ? AS base", (_finished(base),))
                self._connection.execute(f"PRAGMA base.cache_size=-{_CACHE_KIB // 8}")

    @property
    def has_base(self) -> bool:
        """Whether it holds changes of another file."""
        return self._base is not None

    def define(self, schema: str) -> None:
        """Creates missing tables and indexes; does nothing to a file that is only read."""
        if not self.read_only:
            self._connection.executescript(schema)

    def add_column(self, table: str, column: str, declared: str) -> None:
        """Adds a column to a table of an earlier version that lacks it."""
        if not self.read_only and all(row[1] != column for row in self.all(f"PRAGMA main.table_info({table})")):
            self.define(f"ALTER TABLE main.{table} ADD COLUMN {column} {declared}")

    def check(self, tables: Iterable[str]) -> None:
        """Raises an error, as reading does, if tables cannot be read at all, or the files are too short.

        It does not read the rows.
        """
        for schema, path in (("main", self._path), ("base", self._base)):
            if path is not None:
                pages, size = (self.all(f"PRAGMA {schema}.{fact}")[0][0] for fact in ("page_count", "page_size"))
                if path.stat().st_size < pages * size:
                    with self.reading():
                        raise sqlite3.DatabaseError("the file is cut off")
        for table in tables:
            self.all(f"SELECT * FROM {table} LIMIT 1")

    def view(self, name: str, query: str) -> None:
        """Lets a name stand for what a query finds, in place of a table of that name, for this connection only."""
        self._connection.execute(f"CREATE TEMP VIEW IF NOT EXISTS {name} AS {query}")

    def function(self, name: str, compute: Callable[..., Any]) -> None:
        """Lets queries call a function of this process, for this connection only."""
        self._connection.create_function(name, -1, compute, deterministic=True)

    def all(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows that a query finds."""
        with self._lock, self.reading():
            return self._connection.execute(query, parameters).fetchall()

    def stream(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows that a query finds, one by one."""
        with self.reading():
            # In a chain: a generator that is left early would close the cursor, perhaps of a closed database.
            yield from itertools.chain(self._connection.execute(query, parameters))

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turns a failure, also of parsing a row, into an IndexUnusableError if the file is only read."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a fault of ours, such as a closed database
        except (sqlite3.Error, orjson.JSONDecodeError) as error:
            if not self.read_only:
                raise
            index = self._path.parent
            raise IndexUnusableError(
                f"the paper store of {index} cannot be read ({error})",
                f"Build it again: citerec index build … --out {index}",
            ) from error

    def write(self, *writes: tuple[str, Iterable[Sequence[Any]]]) -> None:
        """Runs statements, each for all its rows, and commits them together."""
        with self._lock, self._connection:
            for statement, rows in writes:
                self._connection.executemany(statement, rows)

    def interrupt(self) -> None:
        """Ends running queries of other threads; they raise `sqlite3.OperationalError`."""
        self._connection.interrupt()

    def finish(self) -> None:
        """Turns the database into one plain file, then closes it."""
        self._connection.execute("PRAGMA main.journal_mode=DELETE")
        self._connection.close()

    def close(self) -> None:
        """Folds the write-ahead log into the file, and closes it."""
        self._connection.close()


def _finished(path: Path) -> str:
    """The address of a file that nobody changes."""
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def id_parts(ids: Iterable[Any]) -> Iterator[tuple[list[Any], str]]:
    """Ids in parts that one query can take, with a question mark for each."""
    remaining = iter(ids)
    while part := list(itertools.islice(remaining, _IDS_PER_QUERY)):
        yield part, ",".join("?" * len(part))
