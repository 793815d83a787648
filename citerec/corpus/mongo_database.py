"""A MongoDB database as store, ledger and collections use it: reading in pages, upserts, failures reported in one line.

Streams are read in pages by `_id`, never with one long cursor: a server drops a cursor that is idle for ten
minutes, and building an index takes longer. The index of `_id` gives the order, which is that of UTF-8 bytes.
"""

import contextlib
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import pymongo
from bson import encode
from bson.errors import InvalidDocument
from bson.raw_bson import RawBSONDocument
from pymongo import DeleteMany, InsertOne, MongoClient, ReadPreference, ReplaceOne
from pymongo.errors import BulkWriteError, ConnectionFailure, OperationFailure, PyMongoError
from pymongo.write_concern import WriteConcern

from citerec.corpus.store import StoreError
from citerec.errors import InputError

Fields = dict[str, Any]
Item = TypeVar("Item")

_LARGEST = 16 * 1024 * 1024  # MongoDB's own limit
_PAGE = 1000
_PATIENCE_SECONDS = 5
_SHOWN = 200
# Codes of MongoDB's src/mongo/base/error_codes.yml; 8000 is Atlas's own.
_DUPLICATE_KEY = 11000
_AUTHENTICATION_FAILED = (18, 8000)
_UNAUTHORIZED = 13


class MongoDatabase:
    """An open database.

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
        try:
            # Short here only: later, a replica set may need half a minute to choose a new primary.
            with self._failures(opening=True), pymongo.timeout(_PATIENCE_SECONDS):
                self._client.admin.command("ping")
            primary = None if read_only else ReadPreference.PRIMARY
            # A write that only one server has is lost with it, and the ledger would still count it as done.
            concern = self._client.write_concern if self._client.write_concern.document else WriteConcern("majority")
            self._database = self._client.get_default_database(read_preference=primary, write_concern=concern)
        except BaseException:
            self._client.close()
            raise

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def index(self, collection: str, field: str) -> None:
        """Makes sure that a field has an index."""
        with self._failures(opening=True):
            self._database[collection].create_index(field)

    def pages(
        self, collection: str, after: str | int, *names: str, only: Mapping[str, Any] | None = None, size: int = _PAGE
    ) -> Iterator[list[Fields]]:
        """Documents with an `_id` above `after`, in its order, in pages; with some of their fields, or with all."""
        while page := self.sorted(collection, {**(only or {}), "_id": {"$gt": after}}, *names, limit=size):
            after = page[-1]["_id"]
            yield page

    def ids(self, collection: str, after: str = "", only: Mapping[str, Any] | None = None) -> Iterator[str]:
        """Ids above `after`, in order."""
        return (fields["_id"] for page in self.pages(collection, after, "_id", only=only) for fields in page)

    def sorted(self, collection: str, only: Mapping[str, Any], *names: str, limit: int = 0) -> list[Fields]:
        """Documents in order of `_id`."""
        with self._failures():
            return list(self._database[collection].find(only, list(names) or None).sort("_id", 1).limit(limit))

    def by_id(self, collection: str, ids: Iterable[str], *names: str) -> dict[str, Fields]:
        """Documents by `_id`."""
        with self._failures():
            found = self._database[collection].find({"_id": {"$in": list(ids)}}, list(names) or None)
            return {fields["_id"]: fields for fields in found}

    def groups(self, collection: str, key: Any, *stages: Fields, **sums: Any) -> Iterator[tuple[Any, ...]]:
        """(key, documents, further sums …) of each group, after some stages of an aggregation, in no order."""
        group = {"_id": key, "n": {"$sum": 1}, **{name: {"$sum": of} for name, of in sums.items()}}
        with (
            self._failures(),
            self._database[collection].aggregate([*stages, {"$group": group}], allowDiskUse=True) as found,
        ):
            for fields in found:
                yield (fields.get("_id"), fields["n"], *(fields[name] for name in sums))

    def count(self, collection: str, only: Mapping[str, Any]) -> int:
        """How many documents there are."""
        with self._failures():
            return self._database[collection].count_documents(only)

    def upsert(self, collection: str, documents: Iterable[tuple[Mapping[str, Any], bytes]], *, later: bool) -> None:
        """Puts documents, as BSON, in place of those that a filter by `_id` finds, or beside them; no two of one `_id`.

        With `later`, filters also require that the existing document is not later. If it is, they find nothing, MongoDB
        inserts, and the id is taken: that document is left out. (An update pipeline would not need this error, but
        nx-27017, on which the tests run, does not support one.)
        """
        given = list(documents)
        if not given:
            return
        with self._failures():
            try:
                self._put(collection, given, upsert=True)
            except BulkWriteError as error:
                errors = error.details["writeErrors"]
                expected = later and errors and all(each["code"] == _DUPLICATE_KEY for each in errors)
                if not expected or error.details["writeConcernErrors"]:
                    raise
                # Another process may have inserted the id a moment ago: an earlier document, which has to go. Now
                # that the document is there, the filter alone decides.
                self._put(collection, [given[each["index"]] for each in errors], upsert=False)

    def _put(self, collection: str, documents: list[tuple[Mapping[str, Any], bytes]], *, upsert: bool) -> None:
        operations: list[ReplaceOne[Fields]] = [
            ReplaceOne(only, RawBSONDocument(bson), upsert=upsert) for only, bson in documents
        ]
        self._database[collection].bulk_write(operations, ordered=False)

    def insert_new(self, collection: str, documents: Iterable[Fields]) -> None:
        """Puts those documents whose `_id` no document has."""
        operations = [InsertOne(fields) for fields in documents]
        with self._failures():
            try:
                self._database[collection].bulk_write(operations, ordered=False)
            except BulkWriteError as error:
                if any(each["code"] != _DUPLICATE_KEY for each in error.details["writeErrors"]):
                    raise

    def change_one(self, collection: str, only: Mapping[str, Any], **values: Any) -> bool:
        """Sets fields of one document that a filter finds, in one step; whether there was one."""
        with self._failures():
            return self._database[collection].find_one_and_update(only, {"$set": values}) is not None

    def change(self, collection: str, only: Mapping[str, Any], **values: Any) -> int:
        """Sets fields of all documents that a filter finds; how many there were."""
        with self._failures():
            return self._database[collection].update_many(only, {"$set": values}).matched_count

    def milliseconds(self) -> int:
        """The time by the clock of the primary, since 1970: the clocks of those that ask may differ."""
        with self._failures():
            now: datetime = self._client.admin.command("hello")["localTime"]
        return round(now.replace(tzinfo=UTC).timestamp() * 1000)

    def replace(self, collection: str, documents: Iterable[Fields]) -> None:
        """Puts documents, each in place of the one with its `_id`."""
        self.upsert(collection, (({"_id": fields["_id"]}, to_bson(fields)) for fields in documents), later=False)

    def delete(self, collection: str, field: str, before: Iterable[tuple[str, int]]) -> None:
        """Removes the documents whose field has one of some values and whose place is before that beside it."""
        operations = [DeleteMany({field: value, "place": {"$lt": place}}) for value, place in before]
        if operations:
            with self._failures():
                self._database[collection].bulk_write(operations, ordered=False)

    def clear(self, collection: str) -> None:
        """Removes all documents of a collection."""
        with self._failures():
            self._database[collection].delete_many({})

    def faults(self, collection: str) -> list[str]:
        """What MongoDB finds wrong with a collection; empty for one that has never held a document."""
        with self._failures():
            if collection not in self._database.list_collection_names():
                return []
            answer = self._database.command({"validate": collection})
        return [] if answer["valid"] else list(map(str, answer.get("errors") or ["not valid"]))

    @contextlib.contextmanager
    def _failures(self, *, opening: bool = False) -> Iterator[None]:
        """Reports failures in one line. From None: the driver's own texts are long, and name hosts and documents."""
        try:
            yield
        except PyMongoError as error:
            raise _told(error, self.name, opening=opening) from None


def to_bson(document: Mapping[str, Any]) -> bytes:
    """A document as MongoDB stores it; InputError if it is too large, or holds values that MongoDB cannot store."""
    what = f"the record {document['_id']!r:.80}"
    try:
        bson = encode(document)
    except (InvalidDocument, OverflowError) as error:
        message = f"MongoDB cannot keep {what}: {_short(error)}"
        raise InputError(message, "Change it, or use a SQLite store, which can.") from None
    if len(bson) > _LARGEST:
        raise InputError(
            f"{what} takes {len(bson):,} bytes, and MongoDB keeps documents of up to {_LARGEST:,}",
            "Shorten it, leave it out, or use a SQLite store, which has no such limit.",
        )
    return bson


def parts(items: Iterable[Item], size: int = _PAGE) -> Iterator[list[Item]]:
    """Items in lists that one query can take."""
    remaining = iter(items)
    while part := list(itertools.islice(remaining, size)):
        yield part


def _client(uri: str, name: str, credentials: Mapping[str, Any]) -> MongoClient[Fields]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # an option that does not exist
            return MongoClient(uri, **credentials)
    # Their texts may quote the address, and the password in it.
    except (PyMongoError, ValueError, TypeError, OSError, UserWarning):
        raise InputError(
            f"MongoDB's driver cannot use the address {name}, or an option after it",
            "Check the host's name, and the spelling of the options (docs/storage.md).",
        ) from None


def _told(error: PyMongoError, name: str, *, opening: bool) -> InputError | StoreError:
    code = error.code if isinstance(error, OperationFailure) else None
    if code in _AUTHENTICATION_FAILED:
        return InputError(
            f"{name} refuses this user name or password",
            "Give those of a user of this database; if users are kept in another one, add ?authSource=admin",
        )
    if code == _UNAUTHORIZED:
        return InputError(
            f"{name} does not allow this user what citerec does there",
            "Give a user with the role readWrite on this database (verifying also needs dbAdmin).",
        )
    if isinstance(error, ConnectionFailure) or error.timeout:
        if opening:
            return InputError(
                f"no MongoDB server answers at {name} within {_PATIENCE_SECONDS} seconds",
                "Start it, or correct the host, the port and the options in the address.",
            )
        return StoreError(
            f"{name} no longer answers", "When it does, run the same command again: what was written stays."
        )
    return StoreError(
        f"{name} failed: {_short(error)}",
        "See the server's log; then run the same command again: what was written stays.",
    )


def _short(error: Exception) -> str:
    text = str(error)
    if isinstance(error, BulkWriteError) and error.details["writeErrors"]:
        text = error.details["writeErrors"][0]["errmsg"]
    elif isinstance(error, OperationFailure) and error.details:
        text = error.details.get("errmsg", text)
    return " ".join(text.split())[:_SHOWN]
