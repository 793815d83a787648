"""The engine on Qdrant: words and vectors on a server; records and columns stay in the index (docs/scale.md).

BM25 is a sparse vector. A term scores `weight · idf · tf / (tf + k1 · (1 − b + b · dl / mean))`. The last part depends
on the text alone: it is the text's value for the term. The weight is the query's. The server adds the idf, whose
formula is Lucene's (`Modifier.IDF`).
"""

import atexit
import contextlib
import functools
import itertools
import os
import re
import secrets
import socket
import textwrap
import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from citerec.corpus.store import Counts, PaperStore
from citerec.errors import BuildError, IndexUnusableError, InputError, ServiceError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress
from citerec.files.resume import read_json
from citerec.files.text import one_line
from citerec.index import base
from citerec.index.columns import PaperRows, Rows, phrase_of
from citerec.index.manifest import DENSE, FILE_NAME, Layout, Manifest, generation_of
from citerec.index.vectors import Vectors, has_vectors
from citerec.index.words.analysis import STOP_WORDS, hash_of, term_weights, terms_of, words_of
from citerec.index.words.embedded import K1, B
from citerec.records import Filters

KEY = "CITEREC_QDRANT_API_KEY"
"""Name of the environment variable that holds the key of the server."""

LOCAL = "path:"
"""Before a folder, of the local mode of qdrant-client, which compares everything: for tests."""

FORM = "Write http://HOST:6333/NAME, or for tests, on this machine, path:FOLDER/NAME."

_NAME = r"(?P<name>\w[\w.-]{0,99})"
# No "@": an address with a user or a password is never taken, nor shown.
_SERVER = re.compile(rf"(?P<place>https?://(?:[\w.-]+|\[[\w:.]+\])(?::\d{{1,5}})?(?:/[\w./-]+)?)/{_NAME}/?", re.ASCII)
_FOLDER = re.compile(rf"{LOCAL}(?P<folder>[^\0]*[^\0/])/{_NAME}/?", re.ASCII)
_REACHED_WITHIN = 5.0  # seconds
_ANSWERED_WITHIN = 60  # seconds: of uploads too
_SHOWN = 160  # characters of what a server says

_opening = threading.Lock()


class Address(NamedTuple):
    """Where collections are: a server or a folder (`place`), and their name there."""

    place: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """An address as users write it; a folder becomes absolute.

        Raises:
            InputError: It has not this form. It is not shown: it may hold a password.
        """
        with contextlib.suppress(ValueError):  # of port 65536, or the host a..b
            if match := _SERVER.fullmatch(text):
                where = urlsplit(match["place"])
                (where.hostname or "").encode("idna")
                if where.port != 0:
                    return cls(match["place"].rstrip("/"), match["name"])
        if match := _FOLDER.fullmatch(text):
            return cls(f"{LOCAL}{Path(match['folder']).expanduser().absolute()}", match["name"])
        raise InputError("this is not an address of Qdrant that citerec knows", FORM)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder, of qdrant-client's local mode, which compares everything: for tests."""
        return self.place.startswith(LOCAL)

    @property
    def client(self) -> QdrantClient:
        """The client of the package qdrant-client, one for all of this process; use it within `failures`.

        Raises:
            ServiceError: No server answers within seconds, or the folder is in use.
        """
        with _opening, failures(self):
            return _client(self.place, os.environ.get(KEY, "").strip())

    def alias(self, kind: str) -> str:
        """The name under which `PAPERS` or `CITANCES` are read."""
        return self.name if kind == base.PAPERS else f"{self.name}-{kind}"

    def live(self) -> dict[str, str]:
        """The collections that are read, by kind."""
        with failures(self):
            names = {one.alias_name: one.collection_name for one in self.client.get_aliases().aliases}
        aliases = {kind: self.alias(kind) for kind in (base.PAPERS, base.CITANCES)}
        return {kind: names[alias] for kind, alias in aliases.items() if alias in names}

    def create(self, kind: str, dimension: int | None) -> str:
        """Creates a collection of `PAPERS` or `CITANCES`, which gets a new name; InputError if its alias is taken."""
        client, alias = self.client, self.alias(kind)
        if alias in {one.name for one in client.get_collections().collections}:
            raise InputError(f"{self.place} has a collection {alias}, which is not citerec's", "Name another.")
        # The vectors are of half precision. The server would round those of queries too, so they are kept in full.
        dense = models.VectorParams(size=dimension or 1, distance=models.Distance.DOT)
        vectors = {DENSE: dense} if dimension and kind == base.PAPERS else {}
        words = {base.WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        name = f"{alias}-{secrets.token_hex(_TOKEN)}"
        client.create_collection(name, vectors_config=vectors, sparse_vectors_config=words, on_disk_payload=True)
        for field, schema in _INDEXES.items() if not self.is_local else ():
            client.create_payload_index(name, field_name=field, field_schema=schema)
        return name

    def state(self, names: Mapping[str, str], metadata: Mapping[str, Any]) -> None:
        """Writes metadata of collections."""
        for name in names.values():
            self.client.update_collection(name, metadata=dict(metadata))

    def publish(self, names: Mapping[str, str]) -> None:
        """Lets readers see collections, in one step, and removes all earlier ones."""
        gone = [{"delete_alias": {"alias_name": self.alias(kind)}} for kind in self.live()]
        new = [{"create_alias": {"collection_name": names[kind], "alias_name": self.alias(kind)}} for kind in names]
        steps = models.ChangeAliasesOperation.model_validate({"actions": [*gone, *new]}).actions
        self.client.update_collection_aliases(change_aliases_operations=steps)
        own = re.compile(rf"{re.escape(self.name)}(-{base.CITANCES})?-[0-9a-f]{{{2 * _TOKEN}}}")
        for one in self.client.get_collections().collections:
            if own.fullmatch(one.name) and one.name not in names.values():
                self.client.delete_collection(one.name)

    def __str__(self) -> str:
        return f"{self.place}/{self.name}"


@functools.cache
def _client(place: str, key: str) -> QdrantClient:
    """A client of a server or a folder, open until the process ends: a folder can be opened only once."""
    if place.startswith(LOCAL):
        local = QdrantClient(path=place.removeprefix(LOCAL), force_disable_check_same_thread=True)
        atexit.register(local.close)  # when Python ends, its own destructor is too late
        return local
    where = urlsplit(place)
    port = where.port or (443 if where.scheme == "https" else 6333)
    # A wrong address is known in seconds, however long an upload may take.
    socket.create_connection((where.hostname, port), _REACHED_WITHIN).close()
    with warnings.catch_warnings(action="ignore"):  # of a key without encryption, which is said in docs/scale.md
        return QdrantClient(
            url=place, port=port, api_key=key or None, timeout=_ANSWERED_WITHIN, check_compatibility=False
        )


@contextlib.contextmanager
def failures(address: Address) -> Iterator[None]:
    """Turns what the client raises into a ServiceError of one line, which never holds the key."""
    place = address.place
    try:
        yield
    except UnexpectedResponse as error:
        if error.status_code in (401, 403):
            raise ServiceError(f"{place} refuses the key", f"Set {KEY} to its key.") from None
        reason = f"{error.status_code} {_short(error.reason_phrase)}"
        raise ServiceError(f"{place} refuses the request ({reason})", "See the log of the server.") from None
    except (OSError, ResponseHandlingException) as error:
        remedy = f"Check the address, and that the server runs. {FORM}"
        raise ServiceError(f"no server answers at {place} ({_short(error)})", remedy) from None


def _short(said: object) -> str:
    return textwrap.shorten(one_line(str(getattr(said, "strerror", None) or said)), _SHOWN, placeholder="…")


KIND = "citerec-qdrant-4"
"""Stands in the metadata of collections that this version of citerec made."""

_INDEXES: dict[str, Any] = {
    **dict.fromkeys((base.ID, base.FIELD, base.CITING_PAPER), "keyword"),
    **dict.fromkeys((base.YEAR, base.CITATIONS, base.CITING_YEAR), "integer"),
    base.VENUE: {"type": "text", "tokenizer": "word", "lowercase": True, "phrase_matching": True},
}
"""The kind of index of each field of the payload that filters name; the same in both collections."""

_MOST_DRIFT = 0.05
"""How far the mean length of a field may move before all texts are written anew: it is part of their vectors."""

_BATCH = 200
_TOKEN = 6  # random bytes in the names of collections
_NO_LETTERS = re.compile(r"[\W_]+")
_GAP = "0"  # in place of a stop word


class Metadata(NamedTuple):
    """The metadata of both collections.

    Attributes:
        fingerprint: That of the index whose papers they hold.
        means: How many terms each field has on average: part of their vectors.
        vectors: What made the vectors of the papers, and how they are kept; empty if there are none.
        updating: Fingerprint of the index that is being written; empty if none is.
        kind: What made the collections.
    """

    fingerprint: str
    means: dict[str, float]
    vectors: str
    updating: str = ""
    kind: str = KIND

    @classmethod
    def at(cls, address: Address) -> "Metadata | None":
        """That of the collections of an address; None if there are none.

        Raises:
            IndexUnusableError: There is a collection that citerec did not make, or one of another version.
            ServiceError: The server cannot be asked.
        """
        collection = address.live().get(base.PAPERS)
        if collection is None:
            return None
        with failures(address):
            metadata = address.client.get_collection(collection).config.metadata or {}
        if metadata.get("kind") != KIND:
            remedy = "Give another name, or remove its collections first."
            raise IndexUnusableError(f"{address} was not made by this version of citerec", remedy)
        return cls(**metadata)

    def fits(self, live: "Metadata", before: str | None) -> bool:
        """Whether collections of the index with a fingerprint can be changed into those of this one."""
        if (before, self.vectors, self.means.keys()) != (live.fingerprint, live.vectors, live.means.keys()):
            return False
        return all(abs(mean / (live.means[name] or 1.0) - 1) <= _MOST_DRIFT for name, mean in self.means.items())


def mean_lengths(store: PaperStore, layout: Layout) -> dict[str, float]:
    """How many terms each field has on average, of the texts that have a term."""
    totals, having = Counter[str](), Counter[str]()
    texts = itertools.chain(map(base.texts_of, store.all_papers()), map(base.texts_of, store.searchable_citances()))
    for field, text in itertools.chain.from_iterable(one.items() for one in texts):
        length = sum(word not in STOP_WORDS for word in words_of(text))
        totals[field] += length
        having[field] += length > 0
    fields = totals.keys() & {*base.fields_of(layout, base.PAPERS), *base.fields_of(layout, base.CITANCES)}
    return {name: totals[name] / max(1, having[name]) for name in sorted(fields)}


def _points(
    papers: PaperRows, vectors: Vectors | None, means: Mapping[str, float], items: Iterable[base.Searchable]
) -> Iterator[models.PointStruct]:
    """The points of some papers or citing sentences. What is unknown is left out: no range matches it."""
    for item in items:
        payload = base.payload_of(item)
        payload[base.VENUE] = _phrase(terms_of(payload[base.VENUE]))
        words = text_vector(base.texts_of(item), means)
        vector: dict[str, Any] = {base.WORDS: words} if words else {}
        if vectors is not None and base.KEY not in payload:
            has_vector, dense = vectors.of(papers.rows([payload[base.ID]]))
            if has_vector[0]:
                vector[DENSE] = dense[0].tolist()
        payload = {name: value for name, value in payload.items() if value not in (None, "", [])}
        yield models.PointStruct(id=point_id(base.key_of(item)), vector=vector, payload=payload)


def point_id(key: base.Key) -> str:
    """The id of the point of a paper or a citing sentence: the same in every index."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, " ".join(key)))


def text_vector(texts: Mapping[str, str], means: Mapping[str, float]) -> models.SparseVector | None:
    """The vector of the texts of a paper or a citing sentence; None if they have no term.

    Args:
        texts: The texts, by field.
        means: The fields that are searched, and how many terms each has on average, of the texts that have one.
    """
    values: dict[tuple[str, str], float] = {}
    for field in means.keys() & texts.keys():
        terms = [term for term in terms_of(texts[field]) if term is not None]
        norm = K1 * (1 - B + B * len(terms) / (means[field] or 1.0))
        values |= {(field, term): times / (times + norm) for term, times in Counter(terms).items()}
    return words_vector(values)


def words_vector(weights: Mapping[tuple[str, str], float]) -> models.SparseVector | None:
    """The vector of the weights of terms, by field and term; None if there is none.

    Its indices are 32 bits of a hash, so no vocabulary has to be shared. Each field has indices of its own.
    """
    values: Counter[int] = Counter()
    for (field, term), weight in weights.items():
        values[hash_of(f"{field} {term}") & 0xFFFFFFFF] += weight  # type: ignore[assignment]
    return models.SparseVector(indices=list(values), values=list(values.values())) if values else None


def filter_of(filters: Filters, kind: str) -> models.Filter | None:
    """The filter over `PAPERS` or `CITANCES` that is exactly these filters; None if all pass.

    Raises:
        FilterError: A venue has no word.
    """
    must, must_not = ([*map(_condition, some)] for some in base.conditions_of(filters, kind))
    return _filter(must, must_not) if must or must_not else None


def _condition(condition: base.Condition) -> dict[str, Any]:
    field, values, low, high = condition
    if field == base.VENUE:
        phrases = [_phrase(phrase_of(venue)) for venue in values]
        return {"should": [{"key": base.VENUE, "match": {"phrase": phrase}} for phrase in phrases]}
    if values:
        return {"key": field, "match": {"any": list(values)}}
    return {"key": field, "range": {"gte": low, "lte": high}}


def _filter(must: Sequence[dict[str, Any]], must_not: Sequence[dict[str, Any]] = ()) -> models.Filter:
    return models.Filter.model_validate({"must": list(must) or None, "must_not": list(must_not) or None})


def _phrase(terms: Sequence[str | None]) -> str:
    """The terms of a name at their places, as words that every tokenizer of the server leaves whole."""
    words = [_NO_LETTERS.sub("", term) or _GAP if term else _GAP for term in terms]
    return " ".join(words).strip(f"{_GAP} ")


def _address_of(manifest: Manifest, index: Path) -> Address:
    """Where the words of an index are; IndexUnusableError if there is nothing, or what is of another index."""
    address = Address.parse(manifest.url or "")
    again = f"Build it again: citerec index build {index} --engine qdrant --url {address} --out {index}"
    metadata = Metadata.at(address)
    if metadata is None:
        raise IndexUnusableError(f"there is nothing at {address}", again)
    if manifest.fingerprint not in (metadata.fingerprint, metadata.updating):
        raise IndexUnusableError(f"{address} holds other papers than {index}", again)
    return address


class QdrantWords(base.Engine):
    """Words and vectors in collections of a server of Qdrant."""

    name = "qdrant"

    @classmethod
    def write(cls, folder: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress) -> None:
        """As `Engine.write`.

        New collections take the place of the old ones in one step. In old ones, each paper is the old one or the new
        one at any moment; readers of both indexes are served meanwhile.
        """
        on_progress("measuring texts", 0, 1)
        address, papers = Address.parse(layout.url or ""), PaperRows.open(folder)
        vectors = Vectors(folder / DENSE) if has_vectors(folder / DENSE) else None
        dense = vectors.manifest if vectors else None
        maker = f"{dense.model} {dense.identity} {dense.max_tokens} {dense.backend} {dense.dimension}" if dense else ""
        metadata = Metadata(store.fingerprint(), mean_lengths(store, layout), maker)
        live, changes = Metadata.at(address), base.changes_for(folder, layout, cls.name)
        if live and metadata.fits(live, (read_json(generation_of(folder.parent) / FILE_NAME) or {}).get("fingerprint")):
            metadata = metadata._replace(means=live.means)
        else:
            changes = None
        expected = base.expected_of(counts)
        with failures(address):
            if changes is None:
                names = {kind: address.create(kind, dense.dimension if dense else None) for kind in expected}
            else:
                collections = address.live()
                names = {kind: collections[kind] for kind in expected}
                address.state(names, {"updating": metadata.fingerprint})
            for kind, name in names.items():
                for ids in [None] if changes is None else in_parts(changes[kind], _BATCH):
                    items = base.items_of(store, kind, ids, expected[kind], on_progress)
                    made_of = _points(papers, vectors, metadata.means, items)
                    points = made_of if ids is None else list(made_of)
                    address.client.upload_points(name, points, batch_size=_BATCH, max_retries=0, wait=True)
                    if ids is not None:
                        of_ids, kept = _condition(base.Condition(base.ID, tuple(ids))), [point.id for point in points]
                        address.client.delete(name, points_selector=_filter([of_ids], [{"has_id": kept}]))
                if (count := address.client.count(name, exact=True).count) != expected[kind]:
                    remedy = "Build the index again: everything is written anew."
                    raise BuildError(f"{address} has {count:,} {kind}, and the index {expected[kind]:,}", remedy)
            address.state(names, metadata._asdict())
            if changes is None:
                address.publish(names)

    @classmethod
    def vectors(cls, folder: Path, manifest: Manifest, rows: PaperRows, probe: int | None) -> Vectors:
        """Those of the papers are searched on the server."""
        return QdrantVectors(folder, manifest, rows, probe) if folder.name == DENSE else Vectors(folder, probe)

    def __init__(self, *index: Any) -> None:
        super().__init__(*index)
        self._address = _address_of(self._manifest, self._folder.parents[1])

    def _finder(self, kind: str, query: base.Query, filters: Filters) -> base.Find | None:
        fields, weights = query.weights(kind), term_weights(query.texts)
        pairs = itertools.product(fields, weights)
        vector = words_vector({(field, term): fields[field] * weights[term] for field, term in pairs})
        if vector is None:
            return None
        request = {"query": vector, "using": base.WORDS, "query_filter": filter_of(filters, kind)}
        return functools.partial(_nearest, self._address, kind, self._rows, request)

    def term_scores(self, _: base.Query, field: str, terms: Sequence[str], keys: Sequence[base.Key]) -> base.Floats:
        """As `Engine.term_scores`."""
        points = [point_id(key) for key in keys]
        only = _filter([{"has_id": points}])
        vectors = (words_vector({(field, term): 1.0}) for term in terms)
        batch = [models.QueryRequest(query=one, using=base.WORDS, filter=only, limit=len(points)) for one in vectors]
        with failures(self._address):
            answers = self._address.client.query_batch_points(self._address.alias(base.kind_of(field)), requests=batch)
        scores = np.zeros((len(points), len(terms)))
        for place, answer in enumerate(answers):
            of_points = {str(point.id): point.score for point in answer.points}
            scores[:, place] = [of_points.get(point, 0.0) for point in points]
        return scores


class QdrantVectors(Vectors):
    """The vectors of an index's papers, searched in Qdrant; single ones are read from the files of the index."""

    def __init__(self, folder: Path, manifest: Manifest, papers: PaperRows, ef: int | None) -> None:
        super().__init__(folder)
        self._papers, self._ef = papers, ef
        self._address = _address_of(manifest, folder.parents[1])

    def search(self, vector: NDArray[np.float32], k: int, filters: Filters, _: Any) -> tuple[Rows, base.Floats]:
        """As `Vectors.search`, on the server."""
        query = {"query": vector.tolist(), "using": DENSE, "query_filter": filter_of(filters, base.PAPERS)}
        if not self._address.is_local:
            query["search_params"] = models.SearchParams(hnsw_ef=self._ef)
        rows = base.settled(functools.partial(_nearest, self._address, base.PAPERS, self._papers, query), k).rows
        scores = self.scores(vector, rows)  # those of the server differ in the last digits
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]


def _nearest(address: Address, kind: str, papers: PaperRows, query: dict[str, Any], k: int) -> base.Hits:
    """The first k points of a query, with the keys of sentences; -1 is the row of papers that the index lacks."""
    with failures(address):
        name, shown = address.alias(kind), [base.ID, base.KEY]
        points = address.client.query_points(name, limit=k, with_payload=shown, **query).points
    payloads = [point.payload or {} for point in points]
    rows = papers.rows([str(payload[base.ID]) for payload in payloads])
    scores = np.array([point.score for point in points], np.float64)
    return base.Hits(rows, scores, np.array([payload.get(base.KEY) for payload in payloads], object))
