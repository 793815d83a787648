"""The paper store on MongoDB: a collection for each table of the SQLite store (docs/storage.md).

Streams are read in pages by `_id`, never with one long cursor: a server drops a cursor that is idle for ten
minutes, and building an index takes longer. The index of `_id` gives the order, which is that of UTF-8 bytes.
"""

import contextlib
import itertools
import os
import re
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import orjson
import pymongo
from bson import encode
from bson.errors import InvalidDocument
from bson.raw_bson import RawBSONDocument
from pymongo import DeleteMany, MongoClient, ReadPreference, ReplaceOne
from pymongo.errors import BulkWriteError, ConnectionFailure, DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.write_concern import WriteConcern

from citerec.corpus.matching import look_up_names, name_digest
from citerec.corpus.store import (
    COLUMNS,
    JSON_COLUMNS,
    KEYS,
    CensusRow,
    CitationRow,
    Counts,
    PaperStore,
    Quarantined,
    Row,
    Rows,
    ShardCounts,
    StoreError,
    json_text,
    paper_of,
)
from citerec.errors import InputError
from citerec.records import Paper

Fields = dict[str, Any]

LOCK_SECONDS = 60.0
"""How long the lock of a writer lasts that does not renew it: so long a database of a killed one waits."""

_RENEWALS = 4  # in the time that the lock lasts: three may fail
_LARGEST = 16 * 1024 * 1024  # MongoDB's own limit
_PAGE = 1000
_PATIENCE_SECONDS = 5
_SHOWN = 200
# Codes of MongoDB's src/mongo/base/error_codes.yml; 8000 is Atlas's own.
_AUTHENTICATION_FAILED = (18, 8000)
_UNAUTHORIZED = 13


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
        self._renewed: float | None = None  # when the lock was, if this process has it
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
        """Takes the lock of the writer: a document that expires, and is renewed by a thread meanwhile."""
        owner, ended = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}", threading.Event()
        since = time.monotonic()
        while not self._renew(owner):
            if time.monotonic() - since > 2 * LOCK_SECONDS:
                raise StoreError(f"another process is writing to {self.name}", "Wait for it, or stop it.")
            time.sleep(min(1.0, LOCK_SECONDS / _RENEWALS))

        def renew() -> None:
            while not ended.wait(LOCK_SECONDS / _RENEWALS):
                with contextlib.suppress(StoreError, InputError):  # `write` sees when all of them failed
                    self._renew(owner)

        thread = threading.Thread(target=renew, name="lock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._renewed = None
            with contextlib.suppress(StoreError, InputError), self._failures():  # it ends by itself
                self._database["lock"].delete_one({"_id": "writer", "owner": owner})

    def _renew(self, owner: str) -> bool:
        """Takes the lock, or renews it; False if another process has it. Times are those of the primary's clock."""
        begun = time.monotonic()
        with self._failures():
            local: datetime = self._client.admin.command("hello")["localTime"]
            now = round(local.replace(tzinfo=UTC).timestamp() * 1000)
            ours = {"_id": "writer", "$or": [{"owner": owner}, {"until": {"$lte": now}}]}
            try:
                until = {"owner": owner, "until": now + round(LOCK_SECONDS * 1000)}
                self._database["lock"].update_one(ours, {"$set": until}, upsert=True)
            except DuplicateKeyError:
                return False
        self._renewed = begun
        return True

    def write(self, rows: Sequence[Rows], shard: int = 0) -> None:  # noqa: ARG002 - changes are not noted here
        if self._renewed is not None and time.monotonic() - self._renewed > LOCK_SECONDS:
            raise StoreError(
                f"{self.name} did not answer for {LOCK_SECONDS:.0f} seconds: another process may have taken over",
                "Run the same command again: it goes on with what is left.",
            )
        for some in rows:
            for table, of_table in some.tables.items():
                self._put(table, {_id(table, row): _fields(table, row) for row in of_table})
            for table, keys in itertools.groupby(some.deleted, itemgetter(0)):
                if table == "citations":
                    self._index(table, "citation_id")
                field = "citation_id" if table == "citations" else "_id"
                for part in _parts([key for _, key in keys]):
                    with self._failures():
                        self._database[table].bulk_write([DeleteMany({field: {"$in": part}})])

    def _put(self, collection: str, documents: Mapping[Any, Fields]) -> None:
        """Puts documents, each in place of the one with its `_id`."""
        operations: list[ReplaceOne[Fields]] = [
            ReplaceOne({"_id": key}, RawBSONDocument(_to_bson({"_id": key, **fields})), upsert=True)
            for key, fields in documents.items()
        ]
        if operations:
            with self._failures():
                self._database[collection].bulk_write(operations, ordered=False)

    def shards(self) -> dict[int, ShardCounts]:
        return {fields.pop("_id"): ShardCounts(**fields) for fields in self._sorted("shards", {})}

    def finish_shard(self, number: int, counts: ShardCounts) -> None:
        self._put("shards", {number: asdict(counts)})

    def quarantine(self, shard: int | None = None) -> Iterator[Quarantined]:
        found = self._sorted("quarantine", {} if shard is None else {"shard": shard})
        rows = [Quarantined._make(fields[name] for name in Quarantined._fields) for fields in found]
        return iter(sorted(rows))

    def set_aside(self, bad: Sequence[Quarantined]) -> None:
        self._put("quarantine", {f"{one.shard} {one.line}": one._asdict() for one in bad})

    def finish(self) -> None:
        self._index("papers", "names")
        self.close()  # MongoDB has acknowledged every write

    def interrupt(self) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    # Reading

    def papers(self, paper_ids: Iterable[str], *, texts: bool = True) -> dict[str, Paper]:
        found: dict[str, Paper] = {}
        for ids in _parts(paper_ids):
            abstracts, tldrs = (self._texts(table, ids) if texts else {} for table in ("abstracts", "tldrs"))
            for paper_id, fields in self._by_id("papers", ids).items():
                found[paper_id] = paper_of(_row("papers", fields), abstracts.get(paper_id), tldrs.get(paper_id))
        return found

    def _texts(self, table: str, ids: list[str]) -> dict[str, str | None]:
        return {paper_id: fields["text"] for paper_id, fields in self._by_id(table, ids, "text").items()}

    def scan(self, *columns: str, after: str = "", only: Sequence[str] | None = None) -> Iterator[Row]:
        names = [name for name in columns if name not in ("paper_id", "abstract")] or ["_id"]
        if only is None:
            pages = self._pages("papers", after, *names)
        else:
            parts = _parts(one for one in only if one > after)
            pages = (sorted(self._by_id("papers", ids, *names).values(), key=itemgetter("_id")) for ids in parts)
        for page in pages:
            abstracts = self._texts("abstracts", [fields["_id"] for fields in page]) if "abstract" in columns else {}
            for fields in page:
                found = {**fields, "paper_id": fields["_id"], "abstract": abstracts.get(fields["_id"])}
                yield tuple(json_text(found[name]) if name in JSON_COLUMNS else found[name] for name in columns)

    def citation_rows(
        self, after: str = "", only: Sequence[str] | None = None, citing_id: str | None = None
    ) -> Iterator[CitationRow]:
        names = ("cited_id", "citing_id", "citing_year", "contexts")
        if only is None:
            # "!" comes next after the space that ends a cited id: see _id.
            pages = self._pages("citations", f"{after}!", *names)
        else:
            begins = (f"{one} " if citing_id is None else f"{one} {citing_id} " for one in only if one > after)
            # "!" again: what comes after all ids that begin so.
            pages = (
                self._sorted("citations", {"_id": {"$gte": begin, "$lt": f"{begin[:-1]}!"}}, *names) for begin in begins
            )
        for page in pages:
            citing = self._by_id("papers", {fields["citing_id"] for fields in page}, "year") if page else {}
            for fields in page:
                year = citing.get(fields["citing_id"], {}).get("year")
                year = fields.get("citing_year") if year is None else year
                if citing_id is None or fields["citing_id"] == citing_id:
                    yield CitationRow(fields["cited_id"], fields["citing_id"], year, fields["contexts"])

    def rows(self, table: str) -> Iterator[Row]:
        return (_row(table, fields) for page in self._pages(table, "") for fields in page)

    def ids_called(self, names: Sequence[str], most: int) -> list[str]:
        if not names:
            return []
        either = "|".join(map(re.escape, names))
        # $elemMatch: nx-27017, on which the tests run, does not look into lists for a regular expression without it.
        surnames = {"authors": {"$elemMatch": {"$regex": f"(^| )({either})$", "$options": "i"}}}
        identifiers = {"external_ids": {"$elemMatch": {"id": {"$regex": f"^({either})$", "$options": "i"}}}}
        found = self._sorted("papers", {"$or": [surnames, identifiers]}, "citation_count")
        found.sort(key=lambda fields: -(fields["citation_count"] or 0))
        return [fields["_id"] for fields in found[:most]]

    def ids_named(self, digests: Iterable[int]) -> set[str]:
        found = (self._sorted("papers", {"names": {"$in": part}}, "_id") for part in _parts(digests))
        return {fields["_id"] for part in found for fields in part}

    def counts(self) -> Counts:
        with_abstract, unmatched_abstracts = self._matched("abstracts")
        with_tldr, unmatched_tldrs = self._matched("tldrs")
        citances = with_citances = unmatched = 0
        for part in _parts(self._groups("citations", "$cited_id", sentences={"$size": "$contexts"})):
            known = self._by_id("papers", [cited_id for cited_id, *_ in part], "_id")
            for cited_id, citations, sentences in part:
                if cited_id in known:
                    with_citances += 1
                    citances += sentences
                else:
                    unmatched += citations
        return Counts(
            papers=self._count("papers", {}),
            with_abstract=with_abstract,
            with_tldr=with_tldr,
            with_year=self._count("papers", {"year": {"$ne": None}}),
            citances=citances,
            with_citances=with_citances,
            unmatched=unmatched_abstracts + unmatched_tldrs + unmatched,
        )

    def _matched(self, table: str) -> tuple[int, int]:
        """How many papers have a text, and how many records of texts, empty ones too, have no paper."""
        with_text = without_paper = 0
        for page in self._pages(table, "", "text"):
            known = self._by_id("papers", [fields["_id"] for fields in page], "_id")
            with_text += sum(fields["text"] is not None and fields["_id"] in known for fields in page)
            without_paper += len(page) - len(known)
        return with_text, without_paper

    def census(self) -> Iterator[CensusRow]:
        names = ({"$toString": "$year"}, {"$toString": "$citation_count"}, {"$arrayElemAt": ["$fields_of_study", 0]})
        year, citation_count, field = ({"$ifNull": [name, ""]} for name in names)
        # One text, not an object of three fields: nx-27017, on which the tests run, takes that for a constant.
        key = {"$concat": [year, "/", citation_count, "/", field]}
        rows = [_census_row(text, papers) for text, papers in self._groups("papers", key)]
        # In SQLite's order: missing values come first.
        return iter(sorted(rows, key=lambda row: [(value is not None, value) for value in row]))

    def histogram(self, attribute: str) -> dict[Any, int]:
        if attribute == "fields_of_study":
            groups = self._groups("papers", "$fields_of_study", {"$unwind": "$fields_of_study"})
        elif attribute in ("venue", "year"):
            groups = self._groups("papers", f"${attribute}", {"$match": {attribute: {"$ne": None}}})
        else:
            raise ValueError(f"no histogram of {attribute}")
        found: dict[Any, int] = dict(sorted((value, papers) for value, papers in groups))
        return found if attribute == "year" else dict(sorted(found.items(), key=lambda item: -item[1]))

    def integrity_faults(self) -> list[str]:
        faults = []
        with self._failures():
            for table in COLUMNS.keys() & set(self._database.list_collection_names()):
                answer = self._database.command({"validate": table})
                found = [] if answer["valid"] else list(map(str, answer.get("errors") or ["not valid"]))
                faults += [f"{table}: {fault}" for fault in found]
        return sorted(faults)

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

    def _by_id(self, collection: str, ids: Iterable[str], *names: str) -> dict[str, Fields]:
        """Documents by `_id`."""
        with self._failures():
            found = self._database[collection].find({"_id": {"$in": list(ids)}}, list(names) or None)
            return {fields["_id"]: fields for fields in found}

    def _groups(self, collection: str, key: Any, *stages: Fields, **sums: Any) -> Iterator[tuple[Any, ...]]:
        """(key, documents, further sums …) of each group, after some stages of an aggregation, in no order."""
        group = {"_id": key, "n": {"$sum": 1}, **{name: {"$sum": of} for name, of in sums.items()}}
        with (
            self._failures(),
            self._database[collection].aggregate([*stages, {"$group": group}], allowDiskUse=True) as found,
        ):
            for fields in found:
                yield (fields.get("_id"), fields["n"], *(fields[name] for name in sums))

    def _count(self, collection: str, only: Mapping[str, Any]) -> int:
        """How many documents there are."""
        with self._failures():
            return self._database[collection].count_documents(only)

    @contextlib.contextmanager
    def _failures(self, *, opening: bool = False) -> Iterator[None]:
        """Reports failures in one line. From None: the driver's own texts are long, and name hosts and documents."""
        try:
            yield
        except DuplicateKeyError:
            raise
        except PyMongoError as error:
            raise _told(error, self.name, opening=opening) from None


def _id(table: str, row: Row) -> str:
    """The key of a row. Those of citations are three ids with spaces between.

    No id holds a space or anything that comes before it (corpus/values.py): so the keys sort like the three ids,
    one by one, and the citations of a paper are adjacent.
    """
    return " ".join(row[: KEYS[table]])


def _fields(table: str, row: Row) -> Fields:
    """The other fields of a row's document: JSON becomes lists, which MongoDB can search and index."""
    fields = dict(zip(COLUMNS[table], row, strict=True))
    for name in JSON_COLUMNS & fields.keys():
        fields[name] = orjson.loads(fields[name])
    if table == "papers":
        fields["names"] = sorted(map(name_digest, look_up_names(fields["title"], fields["external_ids"])))
        # A list of pairs: names of schemes come from files, and not every name may be that of a field.
        fields["external_ids"] = [{"scheme": scheme, "id": value} for scheme, value in fields["external_ids"].items()]
        fields["origins"] = [{"field": name, "source": value} for name, value in fields["origins"].items()]
    if KEYS[table] == 1:
        del fields[COLUMNS[table][0]]
    return fields


def _row(table: str, fields: Fields) -> Row:
    """The row of a document, equal to the one that SQLite gives."""
    if KEYS[table] == 1:
        fields[COLUMNS[table][0]] = fields["_id"]
    if table == "papers":
        fields["external_ids"] = {pair["scheme"]: pair["id"] for pair in fields["external_ids"]}
        fields["origins"] = {pair["field"]: pair["source"] for pair in fields["origins"]}
    return tuple(json_text(fields[name]) if name in JSON_COLUMNS else fields[name] for name in COLUMNS[table])


def _census_row(text: str, papers: int) -> CensusRow:
    *numbers, field = text.split("/", 2)
    year, citation_count = (int(number) if number else None for number in numbers)
    return CensusRow(field or None, year, citation_count, papers)


def _to_bson(document: Mapping[str, Any]) -> bytes:
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


def _parts(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Items in lists that one query can take."""
    remaining = iter(items)
    while part := list(itertools.islice(remaining, _PAGE)):
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
