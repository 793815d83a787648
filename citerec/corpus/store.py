"""The paper store: id to full record, in one SQLite file or a MongoDB database (docs/formats.md)."""

import contextlib
import hashlib
import heapq
import itertools
import os
import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.corpus.matching import look_up_names, name_digest
from citerec.errors import CiterecError, IndexUnusableError, InputError
from citerec.files.parallel import in_parts
from citerec.records import Citation, Deletion, Paper, PaperText, Record

Row = tuple[Any, ...]

TABLES = {
    "papers": """paper_id TEXT NOT NULL, title TEXT NOT NULL, year INTEGER, venue TEXT, authors TEXT NOT NULL,
        fields_of_study TEXT NOT NULL, citation_count INTEGER, external_ids TEXT NOT NULL, bibtex TEXT,
        origins TEXT NOT NULL""",
    "abstracts": "paper_id TEXT NOT NULL, text TEXT",
    "tldrs": "paper_id TEXT NOT NULL, text TEXT",
    "citations": """cited_id TEXT NOT NULL, citing_id TEXT NOT NULL, citation_id TEXT NOT NULL, contexts TEXT NOT NULL,
        intents TEXT NOT NULL, influential INTEGER NOT NULL, citing_year INTEGER""",
    "shards": """number INTEGER NOT NULL, path TEXT NOT NULL, format TEXT NOT NULL, bytes INTEGER NOT NULL,
        read INTEGER NOT NULL, bad INTEGER NOT NULL, without_context INTEGER NOT NULL, papers INTEGER NOT NULL""",
    "quarantine": "shard INTEGER NOT NULL, line INTEGER NOT NULL, reason TEXT NOT NULL, beginning TEXT NOT NULL",
}
"""The tables and their columns, in SQL: those of records, and what is known of the shards that they come from."""

COLUMNS = {table: tuple(column.split()[0] for column in columns.split(",")) for table, columns in TABLES.items()}
"""The names of the columns of each table."""

RECORDS = ("papers", "abstracts", "tldrs", "citations")
"""The tables of records."""

KEYS = {"papers": 1, "abstracts": 1, "tldrs": 1, "citations": 3, "shards": 1, "quarantine": 2}
"""How many of the first columns of each table are the key of its rows."""

JSON_COLUMNS = frozenset({"authors", "fields_of_study", "external_ids", "origins", "contexts", "intents"})
"""Columns whose values are JSON, as text: equal values are equal texts."""

_PAGE = 1000  # rows whose texts or years are looked up at once
_DIGEST_BYTES = 16


class StoreError(CiterecError):
    """A store failed while in use."""


class SearchableCitance(NamedTuple):
    """A citing sentence as it is indexed; `position` counts the sentences of one citing paper. `cited` has no texts."""

    cited: Paper
    citing_id: str
    citing_year: int | None
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a store: papers, those with an abstract, a TLDR, a year, or citances, and the citances of these.

    `unmatched` counts abstracts, TLDRs and citations whose paper is not in the store.
    """

    papers: int
    with_abstract: int
    with_tldr: int
    with_year: int
    citances: int
    with_citances: int
    unmatched: int


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Counts of a shard that was read completely.

    Attributes:
        read: Records that could be read; `papers` counts those of papers among them.
        without_context: Citations left out: without a sentence or a cited paper.
    """

    path: str
    format: str
    bytes: int
    read: int = 0
    bad: int = 0
    without_context: int = 0
    papers: int = 0


class PaperStore(ABC):
    """The interface of every store. Ids sort by their UTF-8 bytes; they have no white space (`corpus/reading.py`).

    Attributes:
        name: Its name in messages.
    """

    name: str

    # Writing: one process at a time.

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other processes from writing; StoreError if one is."""
        return contextlib.nullcontext()

    @abstractmethod
    def write(self, changes: Sequence["Change"]) -> None:
        """Applies changes in their order: of two rows of one key the later one stays."""

    @abstractmethod
    def finish(self) -> None:
        """Brings the data to its final form, then closes."""

    @abstractmethod
    def close(self) -> None:
        """Closes the database."""

    # Reading: from any number of threads.

    @abstractmethod
    def select(self, table: str, *columns: str, only: Sequence[str] | None = None, second: str = "") -> Iterator[Row]:
        """The rows of a table, in order of their keys; the values of `JSON_COLUMNS` are texts.

        Args:
            table: One of `COLUMNS`.
            columns: Names of the columns that are wanted; by default all.
            only: Those with some first keys, which are given in order; by default all.
            second: With `only`, those with this second key.
        """

    @abstractmethod
    def ids_named(self, digests: Iterable[int]) -> set[str]:
        """Ids of papers that may have a name with one of some digests (`name_digest`); of a finished store only."""

    @abstractmethod
    def counts(self) -> Counts:
        """The counts of the store."""

    @abstractmethod
    def integrity_faults(self) -> list[str]:
        """What the database finds wrong with itself; empty if nothing is."""

    # What follows from these.

    def papers(self, paper_ids: Iterable[str], *, texts: bool = True) -> dict[str, Paper]:
        """Records, by id, without abstracts and TLDRs unless `texts`; unknown ids are left out."""
        return {paper.paper_id: paper for paper in self.all_papers(sorted(set(paper_ids)), texts=texts)}

    def all_papers(self, only: Sequence[str] | None = None, *, texts: bool = True) -> Iterator[Paper]:
        """The records of all papers, in order of id; `only` as for `select`, the rest as for `papers`."""
        for page in in_parts(self.select("papers", only=only), _PAGE):
            with_texts = [row[0] for row in page] if texts else []
            abstract_of: dict[str, str | None] = dict(self.select("abstracts", only=with_texts))
            tldr_of: dict[str, str | None] = dict(self.select("tldrs", only=with_texts))
            for paper_id, title, year, venue, authors, fields, count, external_ids, bibtex, origins in page:
                texts_of = abstract_of.get(paper_id), tldr_of.get(paper_id)
                lists = tuple(self.json(authors)), tuple(self.json(fields))
                ids = self.json(external_ids)
                yield Paper(paper_id, title, *texts_of, year, venue, *lists, count, ids, bibtex, self.json(origins))

    def shards(self) -> dict[int, ShardCounts]:
        """Counts of the shards that were read completely, by number, in order."""
        return {number: ShardCounts(*counts) for number, *counts in self.select("shards")}

    def quarantine(self) -> Iterator[dict[str, Any]]:
        """The bad records of finished shards, in order of shard and line, as lines of a quarantine."""
        shards = self.shards()
        for number, *place in self.select("quarantine"):
            if number in shards:  # others are only half read
                yield dict(zip(COLUMNS["quarantine"], (shards[number].path, *place), strict=True))

    def ids_called(self, names: Sequence[str], most: int) -> list[str]:
        """Ids of papers with one of the names as the last word of an author's name, or as an identifier elsewhere.

        Case is ignored. The most cited come first, `most` at most. It reads all papers.
        """
        ends = [json_text(name)[1:].casefold() for name in names]  # in JSON, a text ends with a quotation mark

        def is_called(authors: str, ids: str) -> bool:
            return any(f'"{end}' in authors or f" {end}" in authors or f':"{end}' in ids for end in ends)

        rows = self.select("papers", "citation_count", "paper_id", "authors", "external_ids")
        called = ((-(count or 0), paper_id) for count, paper_id, *texts in rows if is_called(*map(str.casefold, texts)))
        return [paper_id for _, paper_id in heapq.nsmallest(most, called)]

    def years(self, paper_ids: Iterable[str]) -> dict[str, int | None]:
        """Years by id, without the rest of the record; unknown ids are left out."""
        return dict(self.select("papers", "paper_id", "year", only=sorted(set(paper_ids))))

    def searchable_citances(self, only: Sequence[str] | None = None) -> Iterator[SearchableCitance]:
        """Citances of papers that the store has, in order of cited paper, citing paper and id; `only` as for `select`.

        The year is that of the citing paper's own record, else the latest that its citations give.
        """
        rows = self.select("citations", "cited_id", "citing_id", "citing_year", "contexts", only=only)
        pairs = ((key, list(pair)) for key, pair in itertools.groupby(rows, itemgetter(0, 1)))
        for page in in_parts(pairs, _PAGE):
            papers = self.papers((cited_id for (cited_id, _), _ in page), texts=False)
            years = self.years(citing_id for (_, citing_id), _ in page)
            for (cited_id, citing_id), citations in page:
                if cited_id not in papers:
                    continue
                latest = max((year for _, _, year, _ in citations if year is not None), default=None)
                own = years.get(citing_id)
                texts = (text for *_, contexts in citations for text in self.json(contexts))
                for position, text in enumerate(texts):
                    yield SearchableCitance(papers[cited_id], citing_id, latest if own is None else own, position, text)

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        """The sentences in which one paper cites another."""
        rows = self.select("citations", "contexts", only=[cited_id], second=citing_id)
        return tuple(text for (contexts,) in rows for text in self.json(contexts))

    def named(self, names: Iterable[str]) -> dict[str, list[Paper]]:
        """Records, without texts, by each of their names that is asked for (`look_up_names`); in order of id.

        Only a finished store knows the names. It looks them up and does not read all papers.
        """
        wanted = set(names)
        papers: dict[str, list[Paper]] = {}
        for paper in self.all_papers(sorted(self.ids_named(map(name_digest, wanted))), texts=False):
            for name in look_up_names(paper.title, paper.external_ids) & wanted:
                papers.setdefault(name, []).append(paper)
        return papers

    def fingerprint(self) -> str:
        """A digest of every paper, abstract, TLDR and citation: equal for equal contents, in every store.

        It does not depend on the order of the records, and is not safe against records that are made up to have it.
        """
        total = 0
        for table in RECORDS:
            for row in self.select(table):
                text = repr(row).encode("utf-8", "surrogatepass")
                digest = hashlib.blake2b(text, digest_size=_DIGEST_BYTES, person=table.encode()).digest()
                total += int.from_bytes(digest, "little")
        return f"{total % (1 << 8 * _DIGEST_BYTES):0{2 * _DIGEST_BYTES}x}"

    def json(self, text: str) -> Any:
        """The value of a column of `JSON_COLUMNS`."""
        return orjson.loads(text)


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that a table gets, in place of those of their keys; or, if it `deletes`, keys whose rows it loses."""

    table: str
    rows: list[Row]
    deletes: bool = False


def changes_of(records: Iterable[Record], *, whole: bool = False) -> list[Change]:
    """What records change in a store, in their order; a citation without sentences or cited paper changes nothing.

    Args:
        records: The records.
        whole: Whether each paper is there with its texts: those that it lacks are removed, and all with the paper.
    """
    changes: list[Change] = []
    latest: dict[str, Change] = {}  # of each table: the order of changes of different tables makes no difference
    for record in records:
        deletes = isinstance(record, Deletion)
        for table, row in _rows(record, whole):
            if table not in latest or latest[table].deletes != deletes:
                changes.append(Change(table, [], deletes))
                latest[table] = changes[-1]
            latest[table].rows.append(row)
    return changes


def _rows(record: Record, whole: bool) -> Iterator[tuple[str, Row]]:
    """The rows of a record, with their tables; of a deletion, the key."""
    match record:
        case Paper(paper_id):
            yield "papers", _row("papers", record)
            for table, text in (("abstracts", record.abstract), ("tldrs", record.tldr)):
                if text or whole:
                    yield table, (paper_id, text)
        case PaperText(table, paper_id, text):
            yield table, (paper_id, text)
        case Citation(_, cited_id) if cited_id and record.contexts:
            yield "citations", _row("citations", record)
        case Deletion(table, deleted):
            tables = ("papers", "abstracts", "tldrs") if whole and table == "papers" else (table,)
            yield from ((table, (deleted,)) for table in tables)


def _row(table: str, record: Record) -> Row:
    values = ((name, getattr(record, name)) for name in COLUMNS[table])
    return tuple(
        json_text(value) if name in JSON_COLUMNS else int(value) if isinstance(value, bool) else value
        for name, value in values
    )


def json_text(value: Any) -> str:
    """A value as JSON."""
    return orjson.dumps(value).decode()


def name_digests(title: str, external_ids: str) -> list[int]:
    """The digests of the names by which a paper is looked up, from its columns."""
    return sorted(map(name_digest, look_up_names(title, orjson.loads(external_ids))))


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
_NAMES = """INSERT OR IGNORE INTO names
SELECT n.value, p.paper_id FROM papers p, json_each(names(p.title, p.external_ids)) n ORDER BY 1, 2;"""
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

    def write(self, changes: Sequence[Change]) -> None:
        with self._lock, self._connection:
            for change in changes:
                columns, key_size = COLUMNS[change.table], KEYS[change.table]
                if change.deletes and change.table == "citations":
                    self._connection.execute(_BY_ID)
                if change.deletes:
                    query = f"DELETE FROM {change.table} WHERE {columns[key_size - 1]} = ?"
                else:
                    query = f"INSERT OR REPLACE INTO {change.table} VALUES ({', '.join('?' * len(columns))})"
                # In order of key, so that rows of one page come together. Sorting keeps the order of equal keys.
                self._connection.executemany(query, sorted(change.rows, key=itemgetter(slice(key_size))))

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

    def select(self, table: str, *columns: str, only: Sequence[str] | None = None, second: str = "") -> Iterator[Row]:
        first, *others = COLUMNS[table][: KEYS[table]]
        where, parameters = (f"{others[0]} = ?", [second]) if second else ("1", [])
        read = f"SELECT {', '.join(columns or '*')} FROM {table} WHERE {where}"
        order = f"ORDER BY {', '.join([first, *others])}"
        if only is not None:
            yield from self._in_parts(f"{read} AND {first} IN ({{}}) {order}", only, parameters)
            return
        with self._failures():
            # In a chain: a generator that is left early would close the cursor, perhaps of a closed database.
            yield from itertools.chain(self._connection.execute(f"{read} {order}", parameters))

    def ids_named(self, digests: Iterable[int]) -> set[str]:
        return {paper_id for (paper_id,) in self._in_parts("SELECT paper_id FROM names WHERE name IN ({})", digests)}

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

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turns a failure, also of parsing a row, into an IndexUnusableError if the file is only read."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a fault of ours, such as a closed database
        except (sqlite3.Error, orjson.JSONDecodeError, UnicodeDecodeError) as error:
            if not self._read_only:
                raise
            index = self.path.parent.parent if self.path.parent.name.isdecimal() else self.path.parent
            remedy = f"Build it again: citerec index build … --out {index}"
            raise IndexUnusableError(f"the paper store of {index} cannot be read ({error})", remedy) from error


USERNAME = "CITEREC_MONGODB_USERNAME"
PASSWORD = "CITEREC_MONGODB_PASSWORD"
"""Names of the environment variables that hold what the address leaves out."""

_HOST = r"(?:[\w.%-]+|\[[\w.:%]+\])(?::\d{1,5})?"
# Stricter than the driver, so that no part of a password without percent-encoding is taken for a host.
_ADDRESS = re.compile(
    r"(?P<scheme>mongodb(?:\+srv)?://)"
    r"(?:(?P<user>[^@/?#:]*)(?::(?P<password>[^@/?#:]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)"
    r"(?:/(?P<database>[^@/?#. \"$\\]*))?"
    r"(?:\?[^@#]*)?"
)
# Options that hold no secret: with them an index finds its store again.
_KEPT_OPTIONS = re.compile(
    "authMechanism|authSource|directConnection|loadBalanced|maxStalenessSeconds|readPreference|readPreferenceTags|"
    "replicaSet|tls|tlsCAFile|tlsCertificateKeyFile",
    re.IGNORECASE,
)


def is_mongodb(where: str | Path) -> bool:
    """Whether an address means a MongoDB database."""
    return str(where).casefold().startswith(("mongodb:", "mongodb+srv:"))


def name_of(where: str | Path) -> str:
    """The name of a store in messages and manifests: its address without user, password and options."""
    if not is_mongodb(where):
        return str(where)
    address = _ADDRESS.fullmatch(str(where))
    return f"{address['scheme']}{address['hosts']}/{address['database'] or ''}" if address else "mongodb://…"


def address_of(uri: str) -> str:
    """The address of a MongoDB database as an index keeps it: no user, no password, no option that may be secret."""
    options = uri.partition("?")[2].split("&")
    kept = "&".join(option for option in options if _KEPT_OPTIONS.fullmatch(option.partition("=")[0]))
    return name_of(uri) + (f"?{kept}" if kept else "")


def open_store(where: str | Path, *, read_only: bool = False) -> PaperStore:
    """The store at an address: `mongodb://HOST/DATABASE`, `mongodb+srv://…`, or else the path of a SQLite file.

    A store that does not exist yet is created. User and password of MongoDB come from the address or the environment.
    With `read_only`, a MongoDB database is read where the read preference of the address says, else from the primary.

    Raises:
        InputError: The address is not valid, no server answers there, it refuses the user, or the file is not a store.
    """
    if is_mongodb(where):
        return _mongodb(str(where), read_only=read_only)
    if "://" in str(where) or "@" in str(where):
        # It may be an address with a password, so it is not shown.
        raise InputError("the store is not an address that citerec knows", "Write mongodb://HOST/DATABASE, or a path.")
    try:
        return SqliteStore(Path(where))
    except sqlite3.Error as error:
        raise InputError(f"{where} is no SQLite store ({error})", "Give a file of citerec, or a new one.") from error


def _mongodb(uri: str, *, read_only: bool) -> PaperStore:
    address = _ADDRESS.fullmatch(uri)
    if not address:
        remedy = "Write mongodb://HOST:PORT/DATABASE; in user and password @ : / ? # % are %40 %3A %2F %3F %23 %25."
        raise InputError("the address of the MongoDB server is not valid", remedy)
    name = name_of(uri)
    if not address["database"]:
        raise InputError(f"{name} names no database", f"Add one: {name.rstrip('/')}/citerec")
    from citerec.corpus.mongo_store import MongoStore  # the driver takes a moment to load

    return MongoStore(uri, name=name, credentials=_credentials(address), read_only=read_only)


def _credentials(address: re.Match[str]) -> dict[str, str]:
    """User name and password from the environment, if the address lacks them."""
    username, password = map(os.environ.get, (USERNAME, PASSWORD))
    if address["user"] is not None:
        return {"password": password} if password and address["password"] is None else {}
    if bool(username) != bool(password):
        raise InputError(f"only one of {USERNAME} and {PASSWORD} is set", "Set both, or neither.")
    return {"username": username, "password": password} if username and password else {}
