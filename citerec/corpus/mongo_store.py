"""The paper store on MongoDB: a collection for each table of the SQLite store (docs/scale.md).

Streams are read in pages by `_id`, never with one long cursor: a server drops a cursor that is idle for ten
minutes, and building an index takes longer. The index of `_id` gives the order, which is that of UTF-8 bytes.
"""

import contextlib
import itertools
import os
import socket
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import pymongo
from bson import encode
from bson.raw_bson import RawBSONDocument
from pymongo import DeleteMany, MongoClient, ReadPreference, ReplaceOne
from pymongo.errors import ConnectionFailure, DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.write_concern import WriteConcern

from citerec.corpus.store import COLUMNS, KEYS, Change, Counts, PaperStore, Row, StoreError, name_digests
from citerec.errors import InputError
from citerec.files.parallel import in_parts

Fields = dict[str, Any]

LOCK_SECONDS = 120.0
"""How long the lock of a writer lasts after each write: so long a database of a killed one waits."""

_LARGEST = 16 * 1024 * 1024  # MongoDB's own limit
_PAGE = 1000
_PATIENCE_SECONDS = 5
_SHOWN = 200
_REFUSED = (13, 18, 8000)
"""Unauthorized and AuthenticationFailed of MongoDB's error_codes.yml, and Atlas's own."""


class MongoStore(PaperStore):
    """Papers in a MongoDB database. Reading is safe from several threads.

    Args:
        uri: Connection string with the name of the database in its path.
        name: Its name in messages, without user and password.
        credentials: `username` and `password`, if the URI has none.
        read_only: Whether reads go where the read preference of the URI says. Who writes reads from the primary:
            a secondary may not have yet what was written.

    Raises:
        InputError: No server answers, or it refuses this user.
    """

    def __init__(self, uri: str, *, name: str, credentials: Mapping[str, Any], read_only: bool = False) -> None:
        self.name = name
        self._client = _client(uri, name, credentials)
        self._owner: str | None = None  # of the lock, if this store has it
        try:
            # Short here only: later, a replica set may need half a minute to choose a new primary.
            with self._failures(opening=True), pymongo.timeout(_PATIENCE_SECONDS):
                self._client.admin.command("ping")
            primary = None if read_only else ReadPreference.PRIMARY
            # A write that only one server has is lost with it, and its shard would still count as done.
            concern = self._client.write_concern if self._client.write_concern.document else WriteConcern("majority")
            self._database = self._client.get_default_database(read_preference=primary, write_concern=concern)
        except BaseException:
            self._client.close()
            raise

    # Writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Takes the lock of the writer: a document that expires, and that each write renews."""
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        since = time.monotonic()
        while not self._renew(owner):
            if time.monotonic() - since > 2 * LOCK_SECONDS:
                raise self._is_written()
            time.sleep(min(1.0, LOCK_SECONDS / 4))
        self._owner = owner
        try:
            yield
        finally:
            self._owner = None
            with contextlib.suppress(StoreError, InputError), self._failures():  # it ends by itself
                self._database["lock"].delete_one({"_id": "writer", "owner": owner})

    def _is_written(self) -> StoreError:
        return StoreError(f"another process is writing to {self.name}", "Wait for it, or stop it; then begin again.")

    def _renew(self, owner: str) -> bool:
        """Takes the lock, or renews it; False if another process has it. Times are those of the primary's clock."""
        with self._failures():
            local: datetime = self._client.admin.command("hello")["localTime"]
            now = round(local.replace(tzinfo=UTC).timestamp() * 1000)
            ours = {"_id": "writer", "$or": [{"owner": owner}, {"until": {"$lte": now}}]}
            try:
                until = {"owner": owner, "until": now + round(LOCK_SECONDS * 1000)}
                self._database["lock"].update_one(ours, {"$set": until}, upsert=True)
            except DuplicateKeyError:
                return False
        return True

    def write(self, changes: Sequence[Change]) -> None:
        if self._owner and not self._renew(self._owner):  # it had expired
            raise self._is_written()
        for change in changes:
            operations: list[DeleteMany | ReplaceOne[Fields]]
            if change.deletes:
                field = "citation_id" if change.table == "citations" else "_id"
                if field != "_id":
                    self._index(change.table, field)
                keys = in_parts([key for (key,) in change.rows], _PAGE)
                operations = [DeleteMany({field: {"$in": part}}) for part in keys]
            else:
                documents = {_key(change.table, row): _document(change.table, row) for row in change.rows}
                operations = [ReplaceOne({"_id": key}, document, upsert=True) for key, document in documents.items()]
            with self._failures():
                self._database[change.table].bulk_write(operations, ordered=False)

    def finish(self) -> None:
        self._index("papers", "names")
        self.close()  # MongoDB has acknowledged every write

    def close(self) -> None:
        self._client.close()

    # Reading

    def select(self, table: str, *columns: str, only: Sequence[str] | None = None, second: str = "") -> Iterator[Row]:
        columns = columns or COLUMNS[table]
        if only is None:
            pages = self._pages(table, "", *columns)
        elif KEYS[table] == 1:
            parts = in_parts(only, _PAGE)
            pages = (self._sorted(table, {"_id": {"$in": ids}}, *columns) for ids in parts)
        else:
            begins = (f"{one} {second} " if second else f"{one} " for one in only)
            # "!" comes next after the space that ends a first id: see _key.
            ranges = ({"_id": {"$gte": begin, "$lt": f"{begin[:-1]}!"}} for begin in begins)
            pages = (self._sorted(table, of_paper, *columns) for of_paper in ranges)
        return (tuple(document[name] for name in columns) for page in pages for document in page)

    def ids_named(self, digests: Iterable[int]) -> set[str]:
        pages = (self._sorted("papers", {"names": {"$in": part}}, "_id") for part in in_parts(digests, _PAGE))
        return {fields["_id"] for page in pages for fields in page}

    def counts(self) -> Counts:
        totals = Counter[str]()
        for table, column in (("abstracts", "text"), ("tldrs", "text"), ("citations", "contexts")):
            rows = itertools.groupby(self.select(table, COLUMNS[table][0], column), itemgetter(0))
            for page in in_parts(((key, [value for _, value in some]) for key, some in rows), _PAGE):
                years = self.years(key for key, _ in page)
                for key, values in page:
                    totals["unmatched"] += 0 if key in years else len(values)
                    texts = [value for value in values if key in years and value is not None]
                    totals[table] += bool(texts)
                    totals["citances"] += sum(len(self.json(text)) for text in texts if table == "citations")
        with self._failures():
            papers, dated = map(self._database["papers"].count_documents, ({}, {"year": {"$ne": None}}))
        of_tables = totals["abstracts"], totals["tldrs"], dated, totals["citances"], totals["citations"]
        return Counts(papers, *of_tables, totals["unmatched"])

    def integrity_faults(self) -> list[str]:
        with self._failures():
            tables = sorted(COLUMNS.keys() & set(self._database.list_collection_names()))
            answers = {table: self._database.command({"validate": table}) for table in tables}
        bad = {table: answer.get("errors") or ["not valid"] for table, answer in answers.items() if not answer["valid"]}
        return [f"{table}: {fault}" for table, faults in bad.items() for fault in faults]

    # The database

    def _index(self, collection: str, field: str) -> None:
        """Makes sure that a field has an index."""
        with self._failures(opening=True):
            self._database[collection].create_index(field)

    def _pages(self, collection: str, after: str, *names: str) -> Iterator[list[Fields]]:
        """Documents with an `_id` above `after`, in its order, in pages; with some of their fields, or with all."""
        while page := self._sorted(collection, {"_id": {"$gt": after}}, *names, limit=_PAGE):
            after = page[-1]["_id"]
            yield page

    def _sorted(self, collection: str, only: Mapping[str, Any], *names: str, limit: int = 0) -> list[Fields]:
        """Documents in order of `_id`."""
        with self._failures():
            return list(self._database[collection].find(only, list(names) or None).sort("_id", 1).limit(limit))

    @contextlib.contextmanager
    def _failures(self, *, opening: bool = False) -> Iterator[None]:
        """Reports failures in one line. From None: the driver's own texts are long, and name hosts and documents."""
        try:
            yield
        except DuplicateKeyError:
            raise
        except PyMongoError as error:
            raise _error_of(error, self.name, opening=opening) from None


def _key(table: str, row: Row) -> str:
    """The `_id` of a row: its key, as texts with spaces between.

    No id holds a space or anything that comes before it (`optional_id`), and numbers are padded: so these sort like
    the keys of rows, and the citations of a paper are adjacent.
    """
    return " ".join(f"{part:010}" if isinstance(part, int) else part for part in row[: KEYS[table]])


def _document(table: str, row: Row) -> RawBSONDocument:
    """The document of a row; InputError if it is too large for MongoDB."""
    fields = {"_id": _key(table, row), **dict(zip(COLUMNS[table], row, strict=True))}
    if table == "papers":
        fields["names"] = name_digests(fields["title"], fields["external_ids"])
    bson = encode(fields)
    if len(bson) > _LARGEST:
        fault = f"the record {fields['_id']!r:.80} takes {len(bson):,} bytes, and MongoDB keeps up to {_LARGEST:,}"
        raise InputError(fault, "Shorten it, leave it out, or use a SQLite store, which has no such limit.")
    return RawBSONDocument(bson)


def _client(uri: str, name: str, credentials: Mapping[str, Any]) -> MongoClient[Fields]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # an option that does not exist
            return MongoClient(uri, **credentials)
    # Their texts may quote the address, and the password in it.
    except (PyMongoError, ValueError, TypeError, OSError, UserWarning):
        fault = f"MongoDB's driver cannot use the address {name}, or an option after it"
        raise InputError(fault, "Check the host's name, and the spelling of the options (docs/scale.md).") from None


def _error_of(error: PyMongoError, name: str, *, opening: bool) -> InputError | StoreError:
    if isinstance(error, OperationFailure) and error.code in _REFUSED:
        remedy = "Give a user with the role readWrite on this database; "
        remedy += "if users are in another one, add ?authSource=admin"
        return InputError(f"{name} refuses this user", remedy)
    if opening and (isinstance(error, ConnectionFailure) or error.timeout):
        remedy = "Start it, or correct the host, the port and the options in the address."
        return InputError(f"no MongoDB server answers at {name} within {_PATIENCE_SECONDS} seconds", remedy)
    remedy = "See the server's log; then run the same command again: what was written stays."
    return StoreError(f"{name} failed: {_short(error)}", remedy)


def _short(error: Exception) -> str:
    details = getattr(error, "details", None) or {}
    first = next(iter(details.get("writeErrors") or ()), details)
    return " ".join(str(first.get("errmsg", error)).split())[:_SHOWN]
