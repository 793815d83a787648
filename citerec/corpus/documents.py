"""JSON documents in named collections beside the papers, in the same database: the data of a builder."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from citerec.corpus.sqlite_database import SqliteDatabase, id_parts
from citerec.corpus.store import PaperStore
from citerec.errors import InputError

if TYPE_CHECKING:
    from citerec.corpus.mongo_database import MongoDatabase

_PAGE = 100  # documents may be full texts
_BATCH_DOCUMENTS = 1000
_BATCH_BYTES = 8_000_000  # a batch of full texts must not fill the memory


class Documents(ABC):
    """Collections of documents by name. Each method raises ValueError if there is no such collection."""

    def __init__(self, collections: Sequence[str]) -> None:
        self._collections = tuple(collections)

    def put(self, collection: str, documents: Iterable[Mapping[str, Any]]) -> int:
        """Stores documents, each in place of the one with its id, in batches; returns how many were given.

        A document is a JSON object with an `id`, a string; otherwise ValueError is raised.
        """
        name, count = self._known(collection), 0
        for batch in _batches(documents):
            self._put(name, batch)
            count += len(batch)
        return count

    def documents(self, collection: str, *, cited_id: str | None = None) -> Iterator[dict[str, Any]]:
        """The documents of a collection in order of id; only those of one cited paper if it is given."""
        return self._sorted(self._known(collection), cited_id)

    def documents_of(self, collection: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Documents by id; unknown ids are left out."""
        name = self._known(collection)
        return {document["id"]: document for part, _ in id_parts(ids) for document in self._found(name, part)}

    @abstractmethod
    def count(self, collection: str) -> int:
        """How many documents a collection has."""

    @abstractmethod
    def clear(self, collection: str) -> None:
        """Removes all documents of a collection."""

    def _known(self, name: str) -> str:
        if name not in self._collections:
            raise ValueError(f"no collection {name!r:.60}: there are {', '.join(self._collections)}")
        return name

    @abstractmethod
    def _put(self, name: str, batch: "list[_Document]") -> None: ...

    @abstractmethod
    def _sorted(self, name: str, cited_id: str | None) -> Iterator[dict[str, Any]]: ...

    @abstractmethod
    def _found(self, name: str, ids: list[str]) -> Iterator[dict[str, Any]]: ...


def documents_beside(store: PaperStore, collections: Sequence[str]) -> Documents:
    """Collections in the database of a store; they are created if they are missing."""
    database = store.database
    if isinstance(database, SqliteDatabase):
        return _SqliteDocuments(database, collections)
    return _MongoDocuments(database, collections)


class _SqliteDocuments(Documents):
    """Collections as tables."""

    def __init__(self, database: SqliteDatabase, collections: Sequence[str]) -> None:
        super().__init__(collections)
        self._database = database
        for name in collections:
            database.define(
                f"CREATE TABLE IF NOT EXISTS {name} (id TEXT PRIMARY KEY, cited_id TEXT, document TEXT NOT NULL);"
                f"CREATE INDEX IF NOT EXISTS {name}_of_cited ON {name} (cited_id, id) WHERE cited_id IS NOT NULL;"
            )

    def _put(self, name: str, batch: "list[_Document]") -> None:
        statement = f"INSERT OR REPLACE INTO {name} (id, cited_id, document) VALUES (?, ?, ?)"
        self._database.write((statement, [(one.document_id, one.cited_id, one.json.decode()) for one in batch]))

    def _sorted(self, name: str, cited_id: str | None) -> Iterator[dict[str, Any]]:
        """Page by page, without an open cursor between them: the reader may write to the same database meanwhile."""
        only, cited = ("", ()) if cited_id is None else ("AND cited_id = ?", (cited_id,))
        query, after = f"SELECT id, document FROM {name} WHERE id > ? {only} ORDER BY id LIMIT {_PAGE}", ""
        while page := self._database.all(query, (after, *cited)):
            yield from (orjson.loads(document) for _, document in page)
            after = page[-1][0]

    def _found(self, name: str, ids: list[str]) -> Iterator[dict[str, Any]]:
        marks = ",".join("?" * len(ids))
        rows = self._database.all(f"SELECT document FROM {name} WHERE id IN ({marks})", ids)
        return (orjson.loads(document) for (document,) in rows)

    def count(self, collection: str) -> int:
        return int(self._database.all(f"SELECT COUNT(*) FROM {self._known(collection)}")[0][0])

    def clear(self, collection: str) -> None:
        self._database.write((f"DELETE FROM {self._known(collection)}", [()]))


class _MongoDocuments(Documents):
    """Collections in MongoDB."""

    def __init__(self, database: "MongoDatabase", collections: Sequence[str]) -> None:
        super().__init__(collections)
        self._database = database
        for name in collections:
            database.index(name, "cited_id")

    def _put(self, name: str, batch: "list[_Document]") -> None:
        latest = {one.document_id: one.json for one in batch}
        self._database.replace(name, [_kept(json) for json in latest.values()])

    def _sorted(self, name: str, cited_id: str | None) -> Iterator[dict[str, Any]]:
        pages = self._database.pages(name, "", size=_PAGE) if cited_id is None else self._of_cited(name, cited_id)
        return (_given_back(fields) for page in pages for fields in page)

    def _of_cited(self, collection: str, cited_id: str) -> Iterator[list[dict[str, Any]]]:
        # Ids first: paging through the index of cited_id would sort all documents of the paper for every page.
        ids = [fields["_id"] for fields in self._database.sorted(collection, {"cited_id": cited_id}, "_id")]
        for start in range(0, len(ids), _PAGE):
            documents = self._database.by_id(collection, part := ids[start : start + _PAGE])
            yield [documents[document_id] for document_id in part if document_id in documents]

    def _found(self, name: str, ids: list[str]) -> Iterator[dict[str, Any]]:
        return map(_given_back, self._database.by_id(name, ids).values())

    def count(self, collection: str) -> int:
        return self._database.count(self._known(collection), {})

    def clear(self, collection: str) -> None:
        self._database.clear(self._known(collection))


class _Document(NamedTuple):
    document_id: str
    cited_id: str | None
    json: bytes


def _batches(documents: Iterable[Mapping[str, Any]]) -> Iterator[list[_Document]]:
    """Documents in batches that fit into memory."""
    batch: list[_Document] = []
    size = 0
    for fields in documents:
        document = _document(fields)
        batch.append(document)
        size += len(document.json)
        if len(batch) == _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _document(fields: Mapping[str, Any]) -> _Document:
    document_id, cited_id = fields.get("id"), fields.get("cited_id")
    if not isinstance(document_id, str) or not document_id:
        raise ValueError(f"a document needs an id, a string that is not empty: {document_id!r:.60}")
    # No lists: MongoDB looks into lists when it matches, SQLite does not.
    if cited_id is not None and not isinstance(cited_id, str):
        raise ValueError(f"cited_id of document {document_id!r:.60} is not a string: {cited_id!r:.60}")
    if "_id" in fields:
        raise ValueError(f"document {document_id!r:.60} has a field _id, which is MongoDB's own name for id")
    try:
        return _Document(document_id, cited_id, orjson.dumps({"id": document_id, **fields}))
    except TypeError as error:
        raise ValueError(f"document {document_id!r:.60} is not JSON: {error}") from error


def _kept(json: bytes) -> dict[str, Any]:
    fields = orjson.loads(json)
    if odd := next((name for name in fields if name.startswith("$")), None):
        raise InputError(
            f"the document {fields['id']!r:.80} has a field {odd!r:.80}",
            "MongoDB stores none that begins with $: rename it.",
        )
    return {"_id": fields.pop("id"), **fields}


def _given_back(fields: dict[str, Any]) -> dict[str, Any]:
    return {"id": fields.pop("_id"), **fields}
