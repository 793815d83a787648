"""The ledger of an ingest: which shards were read completely, and bad records; kept beside the papers."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.sqlite_database import SqliteDatabase
from citerec.corpus.store import PaperStore, place_of

if TYPE_CHECKING:
    from citerec.corpus.mongo_database import MongoDatabase


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Counts of a shard.

    Attributes:
        read: Records that could be read; `papers` counts those of papers among them.
        without_context: Citations left out: without a sentence or a cited paper.
    """

    path: str
    format: str
    bytes: int
    read: int
    bad: int
    without_context: int
    papers: int = 0


class Quarantined(NamedTuple):
    """A record that could not be read: its place, why, and how it begins."""

    shard: int
    line: int
    reason: str
    beginning: str


class Ledger(Protocol):
    """What is known of the shards of a store."""

    def finished_shards(self, first: int = 1, last: int | None = None) -> dict[int, ShardCounts]:
        """Counts of the shards that were read completely, by number, in order, from a number on, up to another."""

    def next_shard(self) -> int:
        """The number of the next shard to be read, from 1."""

    def finish_shard(self, number: int, counts: ShardCounts) -> None:
        """Notes that a shard was read completely: it will not be read again."""

    def set_aside(self, shard: int, bad: Sequence[tuple[int, BadRecord]]) -> None:
        """Puts bad records, each with its line, into the quarantine, in place of an earlier one of that line."""

    def quarantine(self) -> Iterator[Quarantined]:
        """The records set aside, in order of shard and line."""

    def first_bad(self, shard: int) -> Quarantined | None:
        """The first record of a shard that was set aside."""


def ledger_of(store: PaperStore) -> Ledger:
    """The ledger in the database of a store."""
    database = store.database
    return _SqliteLedger(database) if isinstance(database, SqliteDatabase) else _MongoLedger(database)


class _SqliteLedger:
    """A ledger in two tables."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        database.define("""
            CREATE TABLE IF NOT EXISTS main.shards (
              number INTEGER PRIMARY KEY, path TEXT NOT NULL, format TEXT NOT NULL, bytes INTEGER NOT NULL,
              read INTEGER NOT NULL, bad INTEGER NOT NULL, without_context INTEGER NOT NULL,
              papers INTEGER NOT NULL DEFAULT 0);
            CREATE TABLE IF NOT EXISTS main.quarantine (
              shard INTEGER NOT NULL, line INTEGER NOT NULL, reason TEXT NOT NULL, beginning TEXT NOT NULL,
              PRIMARY KEY (shard, line)) WITHOUT ROWID;
        """)
        database.add_column("shards", "papers", "INTEGER NOT NULL DEFAULT 0")
        if database.has_base:
            for table in ("shards", "quarantine"):
                database.view(table, f"SELECT * FROM base.{table} UNION ALL SELECT * FROM main.{table}")

    def finished_shards(self, first: int = 1, last: int | None = None) -> dict[int, ShardCounts]:
        within = "number >= ?1 AND (?2 IS NULL OR number <= ?2)"
        rows = self._database.all(f"SELECT * FROM shards WHERE {within} ORDER BY number", (first, last))
        return {number: ShardCounts(*counts) for number, *counts in rows}

    def next_shard(self) -> int:
        return int(self._database.all("SELECT COALESCE(MAX(number), 0) + 1 FROM shards")[0][0])

    def finish_shard(self, number: int, counts: ShardCounts) -> None:
        self._database.write(
            ("INSERT OR REPLACE INTO main.shards VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(number, *astuple(counts))])
        )

    def set_aside(self, shard: int, bad: Sequence[tuple[int, BadRecord]]) -> None:
        rows = [(shard, line, record.reason, record.beginning) for line, record in bad]
        self._database.write(("INSERT OR REPLACE INTO main.quarantine VALUES (?, ?, ?, ?)", rows))

    def quarantine(self) -> Iterator[Quarantined]:
        return map(Quarantined._make, self._database.stream("SELECT * FROM quarantine ORDER BY shard, line"))

    def first_bad(self, shard: int) -> Quarantined | None:
        rows = self._database.all("SELECT * FROM quarantine WHERE shard = ? ORDER BY line LIMIT 1", (shard,))
        return Quarantined(*rows[0]) if rows else None


class _MongoLedger:
    """A ledger in two collections."""

    def __init__(self, database: "MongoDatabase") -> None:
        self._database = database

    def finished_shards(self, first: int = 1, last: int | None = None) -> dict[int, ShardCounts]:
        within = {"$gte": first} if last is None else {"$gte": first, "$lte": last}
        found = self._database.sorted("shards", {"_id": within})
        return {fields.pop("_id"): ShardCounts(**fields) for fields in found}

    def next_shard(self) -> int:
        return max(self.finished_shards(), default=0) + 1

    def finish_shard(self, number: int, counts: ShardCounts) -> None:
        self._database.replace("shards", [{"_id": number, **asdict(counts)}])

    def set_aside(self, shard: int, bad: Sequence[tuple[int, BadRecord]]) -> None:
        found = {line: {"shard": shard, "line": line, **asdict(record)} for line, record in bad}
        self._database.replace("quarantine", [{"_id": place_of(shard, line), **row} for line, row in found.items()])

    def quarantine(self) -> Iterator[Quarantined]:
        return map(_quarantined, itertools.chain.from_iterable(self._database.pages("quarantine", 0)))

    def first_bad(self, shard: int) -> Quarantined | None:
        lines = {"_id": {"$gte": place_of(shard), "$lt": place_of(shard + 1)}}
        return next(map(_quarantined, self._database.sorted("quarantine", lines, limit=1)), None)


def _quarantined(fields: Mapping[str, Any]) -> Quarantined:
    return Quarantined._make(fields[name] for name in Quarantined._fields)
