"""The engine on Qdrant: words and vectors on a server; records and columns stay in the index (docs/scale.md).

BM25 is a sparse vector. A term scores `weight · idf · tf / (tf + k1 · (1 − b + b · dl / mean))`. The last part depends
on the text alone: it is the text's value for the term. The weight is the query's. The server adds the idf, whose
formula is Lucene's (`Modifier.IDF`).
"""

import functools
import itertools
import re
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore, SearchableCitance
from citerec.errors import BuildError, IndexUnusableError, InputError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.files.resume import read_json
from citerec.index.arrays import Rows, mapped, rows_of
from citerec.index.base import (
    CITANCES,
    PAPERS,
    Layout,
    Searchable,
    Words,
    WordSettings,
    changes_between,
    items_of,
    key_of,
    texts_of,
)
from citerec.index.candidates import Floats
from citerec.index.columns import COLUMNS, PaperRows, hash_of
from citerec.index.filters import phrase_of
from citerec.index.hits import Hits, settled
from citerec.index.manifest import DENSE, FILE_NAME
from citerec.index.qdrant.address import Address, failures
from citerec.index.vectors.vectors import DenseManifest, Vectors, has_vectors
from citerec.index.words.analysis import STOP_WORDS, term_weights, terms_of, words_of
from citerec.index.words.postings import BUILT
from citerec.records import Filters, Paper

if TYPE_CHECKING:
    from qdrant_client import models

    from citerec.index.opened import OpenIndex

KIND = "citerec-qdrant-3"
"""Stands in the metadata of collections that this version of citerec made."""

WORDS = "words"
"""The name of the vector of BM25; that of the encoder is `DENSE`."""

ID, YEAR, CITATIONS, FIELDS, VENUE = "id", "year", "citations", "fields", "venue"
KEY, CITING, CITING_YEAR = "key", "citing", "citing_year"

_INDEXES: dict[str, Any] = {
    **dict.fromkeys((ID, FIELDS, CITING), "keyword"),
    **dict.fromkeys((YEAR, CITATIONS, CITING_YEAR), "integer"),
    VENUE: {"type": "text", "tokenizer": "word", "lowercase": True, "phrase_matching": True},
}
"""The kind of index of each field of the payload that filters name; the same in both collections."""

_QUANTIZATIONS = {
    "int8": {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
    "binary": {"binary": {"always_ram": True}},
}
_OVERSAMPLING = 2.0
"""Of quantised vectors so many times as many are found, and scored again by the vectors themselves."""

_MOST_DRIFT = 0.05
"""How far the mean length of a field may move before users are told that a new build would score better."""

_BATCH = 200
_TOKEN = 6  # random bytes in the names of collections
_NO_LETTERS = re.compile(r"[\W_]+")
_GAP = "0"  # in place of a stop word


class Metadata(NamedTuple):
    """The metadata of both collections.

    Attributes:
        fingerprint: That of the index whose papers they hold.
        means: How many terms each field has on average when the collections were made: part of their vectors.
        vectors: What made the vectors of the papers, and how they are kept; empty if there are none.
        updating: Fingerprint of the index that is being written; empty if none is.
        kind: What made the collections.
    """

    fingerprint: str
    means: dict[str, float]
    vectors: str
    updating: str = ""
    kind: str = KIND


def metadata_at(address: Address) -> Metadata | None:
    """The metadata of the collections of an address; None if there are none.

    Raises:
        IndexUnusableError: There is a collection that citerec did not make, or one of another version.
        ServiceError: The server cannot be asked.
    """
    collection = _aliases(address).get(address.alias(PAPERS))
    if collection is None:
        return None
    with failures(address):
        metadata = address.client.get_collection(collection).config.metadata or {}
    if metadata.get("kind") != KIND:
        raise IndexUnusableError(
            f"{address} was not made by this version of citerec", "Give another name, or remove its collections first."
        )
    return Metadata(**metadata)


def _aliases(address: Address) -> dict[str, str]:
    """The collections of all aliases, by alias."""
    with failures(address):
        return {one.alias_name: one.collection_name for one in address.client.get_aliases().aliases}


def _metadata_of(folder: Path, store: PaperStore, fields: Sequence[str], layout: Layout) -> Metadata:
    """The metadata of the collections of a generation, whose means are those of the texts that have a term."""
    words: Counter[str] = Counter()
    having: Counter[str] = Counter()
    papers, citances = map(texts_of, store.all_papers()), map(texts_of, store.searchable_citances())
    for field, text in itertools.chain.from_iterable(texts.items() for texts in itertools.chain(papers, citances)):
        length = sum(word not in STOP_WORDS for word in words_of(text))
        words[field] += length
        having[field] += length > 0
    vectors = ""
    if has_vectors(folder / DENSE):
        made = DenseManifest.read(folder / DENSE)
        vectors = f"{made.model} {made.identity} {made.max_tokens} {made.backend} {made.dimension} "
        vectors += layout.quantization
    return Metadata(store.fingerprint(), {field: words[field] / max(1, having[field]) for field in fields}, vectors)


class Collections:
    """Writes the points of a generation of an index into the collections of an address.

    Args:
        address: Where to.
        folder: The generation.
        store: The papers.
        metadata: That of the collections when all is written.
        counts: The counts of the store.
        on_progress: Called as the work goes on.
    """

    def __init__(
        self,
        address: Address,
        folder: Path,
        store: PaperStore,
        metadata: Metadata,
        counts: Counts,
        on_progress: Progress,
    ) -> None:
        self._address, self._client = address, address.client
        self._store, self._metadata, self._on_progress = store, metadata, on_progress
        self._ids = mapped(folder / COLUMNS / "ids.npy")
        self._vectors = Vectors(folder / DENSE) if has_vectors(folder / DENSE) else None
        self._counts = {kind: count for kind, count in ((PAPERS, counts.papers), (CITANCES, counts.citances)) if count}

    def write_all(self, layout: Layout) -> None:
        """Writes everything into new collections, which then take the place of the old ones in one step.

        Args:
            layout: How they lie in a cluster, and keep vectors.

        Raises:
            InputError: A collection that is no alias has one of the names.
            BuildError: The collections do not hold what was written.
        """
        names = {kind: f"{self._address.alias(kind)}-{secrets.token_hex(_TOKEN)}" for kind in self._counts}
        with failures(self._address):
            there = {one.name for one in self._client.get_collections().collections}
            if others := sorted(there.intersection(map(self._address.alias, names))):
                raise InputError(
                    f"{self._address.place} has a collection {others[0]}, which is not citerec's", "Name another."
                )
            for kind, name in names.items():
                self._create(kind, name, layout)
                self._upload(name, self._points(kind))
        self._check(names)
        self._swap(names)

    def write_changes(self, changes: Mapping[str, Sequence[str]]) -> None:
        """Writes the papers that changed into the collections that are there.

        Each paper is the old one or the new one at any moment; readers of both indexes are served meanwhile.

        Args:
            changes: The ids of the papers that changed, for `PAPERS` and `CITANCES`.

        Raises:
            BuildError: The collections do not hold what they should.
        """
        aliases = _aliases(self._address)
        names = {kind: aliases[self._address.alias(kind)] for kind in self._counts}
        self._state(names, {"updating": self._metadata.fingerprint})
        for kind, name in names.items():
            for done, ids in enumerate(in_parts(changes[kind], _BATCH)):
                self._on_progress("writing to Qdrant", done * _BATCH, len(changes[kind]))
                points = list(self._points(kind, ids))
                others = _filter([_one_of(ID, ids)], [{"has_id": [point.id for point in points]}])
                with failures(self._address):
                    self._upload(name, points)
                    self._client.delete(name, points_selector=others)
        self._check(names)
        self._state(names, self._metadata._asdict())

    def _create(self, kind: str, name: str, layout: Layout) -> None:
        from qdrant_client import models

        vectors = {}
        if kind == PAPERS and self._vectors is not None:
            # The vectors are of half precision. The server would round those of queries too, so they are kept in full.
            vectors[DENSE] = models.VectorParams(
                size=self._vectors.manifest.dimension,
                distance=models.Distance.DOT,
                on_disk=layout.quantization != "none",
                quantization_config=_QUANTIZATIONS.get(layout.quantization),  # type: ignore[arg-type]
            )
        self._client.create_collection(
            name,
            vectors_config=vectors,
            sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            shard_number=layout.shards,
            replication_factor=layout.replicas,
            on_disk_payload=True,
            metadata=self._metadata._asdict(),
        )
        for field, schema in _INDEXES.items() if not self._address.is_local else ():
            self._client.create_payload_index(name, field_name=field, field_schema=schema)

    def _points(self, kind: str, changed: Sequence[str] | None = None) -> "Iterator[models.PointStruct]":
        """The points of the papers that changed, or of all."""
        from qdrant_client import models

        for item in items_of(self._store, kind, changed, self._counts[kind], self._on_progress):
            payload, words = payload_of(item), text_vector(texts_of(item), self._metadata.means)
            vector: dict[str, Any] = {WORDS: words} if words else {}
            if kind == PAPERS and self._vectors is not None:
                row = rows_of(self._ids, [payload[ID]])[0]
                if self._vectors.known[row]:
                    vector[DENSE] = self._vectors.values[row].astype("float32").tolist()
            yield models.PointStruct(id=point_id(key_of(item)), vector=vector, payload=payload)

    def _upload(self, name: str, points: "Iterable[models.PointStruct]") -> None:
        self._client.upload_points(name, points, batch_size=_BATCH, max_retries=0, wait=True)

    def _state(self, names: Mapping[str, str], metadata: dict[str, Any]) -> None:
        with failures(self._address):
            for name in names.values():
                self._client.update_collection(name, metadata=metadata)

    def _check(self, names: Mapping[str, str]) -> None:
        """Raises BuildError unless the collections have as many points as the index has papers and citing sentences."""
        for kind, name in names.items():
            with failures(self._address):
                count = self._client.count(name, exact=True).count
            if count != self._counts[kind]:
                raise BuildError(
                    f"{self._address} has {count:,} {kind}, and the index {self._counts[kind]:,}",
                    "Build the index again: everything is written anew.",
                )

    def _swap(self, names: Mapping[str, str]) -> None:
        """Lets readers see the new collections, both in one step, and removes all earlier ones."""
        from qdrant_client import models

        aliases = {kind: self._address.alias(kind) for kind in (PAPERS, CITANCES)}
        live = _aliases(self._address)
        steps: list[dict[str, Any]] = [
            {"delete_alias": {"alias_name": alias}} for alias in aliases.values() if alias in live
        ]
        steps += [
            {"create_alias": {"collection_name": name, "alias_name": aliases[kind]}} for kind, name in names.items()
        ]
        own = re.compile(rf"{re.escape(self._address.name)}(-{CITANCES})?-[0-9a-f]{{{2 * _TOKEN}}}")
        with failures(self._address):
            actions = models.ChangeAliasesOperation.model_validate({"actions": steps}).actions
            self._client.update_collection_aliases(change_aliases_operations=actions)
            for one in self._client.get_collections().collections:
                if own.fullmatch(one.name) and one.name not in names.values():
                    self._client.delete_collection(one.name)


def point_id(key: str) -> str:
    """The id of the point of a paper or a citing sentence: the same in every index."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, key))


def text_vector(texts: Mapping[str, str], means: Mapping[str, float]) -> "models.SparseVector | None":
    """The vector of the texts of a paper or a citing sentence; None if they have no term.

    Args:
        texts: The texts, by field.
        means: The fields that are searched, and how many terms each has on average, of the texts that have one.
    """
    values: dict[tuple[str, str], float] = {}
    for field in means.keys() & texts.keys():
        terms = [term for term in terms_of(texts[field]) if term is not None]
        norm = BUILT.k1 * (1 - BUILT.b + BUILT.b * len(terms) / (means[field] or 1.0))
        values |= {(field, term): times / (times + norm) for term, times in Counter(terms).items()}
    return words_vector(values)


def words_vector(weights: Mapping[tuple[str, str], float]) -> "models.SparseVector | None":
    """The vector of the weights of terms, by field and term; None if there is none.

    Its indices are 32 bits of a hash, so no vocabulary has to be shared. Each field has indices of its own.
    """
    from qdrant_client import models

    values: Counter[int] = Counter()
    for (field, term), weight in weights.items():
        values[hash_of(f"{field} {term}") & 0xFFFFFFFF] += weight  # type: ignore[assignment]
    return models.SparseVector(indices=list(values), values=list(values.values())) if values else None


def payload_of(item: Searchable) -> dict[str, Any]:
    """What filters read of a paper; of a citing sentence what they read of the cited paper, and who cites it when.

    What is unknown is left out: no range matches it.
    """
    paper = item if isinstance(item, Paper) else item.cited
    payload = {
        ID: paper.paper_id,
        YEAR: paper.year,
        CITATIONS: paper.citation_count,
        FIELDS: [str(name).casefold() for name in paper.fields_of_study],
        VENUE: _phrase(terms_of(paper.venue or "")),
    }
    if isinstance(item, SearchableCitance):
        payload |= {KEY: key_of(item), CITING: item.citing_id, CITING_YEAR: item.citing_year}
    return {name: value for name, value in payload.items() if value not in (None, "", [])}


def filter_of(filters: Filters, *, citances: bool = False) -> "models.Filter | None":
    """The filter over papers, or over citing sentences, that is exactly these filters; None if all pass.

    Raises:
        FilterError: A venue has no word.
    """
    phrases = [_phrase(phrase_of(venue)) for venue in filters.venues]
    must = [
        _in_range(YEAR, gte=filters.year_from, lte=filters.year_to),
        _in_range(CITATIONS, gte=filters.min_citations),
        _in_range(CITING_YEAR, lte=filters.as_of_year if citances else None),
        _one_of(FIELDS, [name.casefold() for name in filters.fields]),
        {"should": [{"key": VENUE, "match": {"phrase": phrase}} for phrase in phrases]} if phrases else None,
    ]
    must_not = [
        _one_of(ID, [*filters.exclude, *filters.citing_ids]),
        _one_of(CITING, filters.citing_ids),
        _in_range(YEAR, gt=filters.as_of_year),  # a paper of unknown year is not known to be newer
    ]
    return _filter(must, must_not) if any(must + must_not) else None


Condition = dict[str, Any] | None
"""A condition of a filter, as JSON; None for no condition."""


def _filter(must: Sequence[Condition], must_not: Sequence[Condition] = ()) -> "models.Filter":
    from qdrant_client import models

    conditions = {"must": [*filter(None, must)] or None, "must_not": [*filter(None, must_not)] or None}
    return models.Filter.model_validate(conditions)


def _in_range(key: str, **limits: float | None) -> Condition:
    return None if set(limits.values()) == {None} else {"key": key, "range": limits}


def _one_of(key: str, values: Sequence[str]) -> Condition:
    return {"key": key, "match": {"any": list(values)}} if values else None


def _phrase(terms: Sequence[str | None]) -> str:
    """The terms of a name at their places, as words that every tokenizer of the server leaves whole."""
    words = [_NO_LETTERS.sub("", term) or _GAP if term else _GAP for term in terms]
    return " ".join(words).strip(f"{_GAP} ")


def _address_of(index: "OpenIndex") -> Address:
    """Where the words of an index are; IndexUnusableError if there is nothing, or what is of another index."""
    address = Address.parse(index.manifest.url or "")
    again = f"Build it again: citerec index build {index.path} --engine qdrant --url {address} --out {index.path}"
    metadata = metadata_at(address)
    if metadata is None:
        raise IndexUnusableError(f"there is nothing at {address}", again)
    if index.manifest.fingerprint not in (metadata.fingerprint, metadata.updating):
        raise IndexUnusableError(f"{address} holds other papers than {index.path}", again)
    return address


class QdrantWords(Words):
    """Words and vectors in collections of a server of Qdrant."""

    name = "qdrant"

    @classmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        fields = [*layout.fields[PAPERS], *(layout.fields[CITANCES] if counts.citances else ())]
        on_progress("measuring texts", 0, 1)
        metadata = _metadata_of(folder, store, fields, layout)
        address = Address.parse(layout.url or "")
        live, changes = metadata_at(address), changes_between(before, folder, layout, cls.name)
        means, of_before = metadata.means, (read_json(before / FILE_NAME) or {}).get("fingerprint")
        same = (of_before, metadata.vectors, means.keys())
        if live is None or changes is None or (live.fingerprint, live.vectors, live.means.keys()) != same:
            Collections(address, folder, store, metadata, counts, on_progress).write_all(layout)
            return ""
        metadata = metadata._replace(means=live.means)
        Collections(address, folder, store, metadata, counts, on_progress).write_changes(changes)
        drift = max(abs(means[name] / (live.means[name] or 1.0) - 1) for name in means)
        if drift <= _MOST_DRIFT:
            return ""
        return (
            f"The texts are {drift:.0%} longer or shorter than when {address} was filled: "
            "build the index again for more even scores."
        )

    @classmethod
    def vectors(cls, index: "OpenIndex", name: str, probe: int | None) -> Vectors:
        """Those of the papers are searched on the server."""
        folder = index.folder / name
        return QdrantVectors(index, folder, probe) if name == DENSE else Vectors(folder, probe)

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        super().__init__(index, settings)
        self._address = _address_of(index)

    def _finder(self, kind: str, topic: Topic, filters: Filters) -> Callable[[int], Hits] | None:
        fields, weights = self._fields[kind], term_weights(self.settings, topic)
        pairs = itertools.product(fields, weights)
        vector = words_vector({(field, term): fields[field] * weights[term] for field, term in pairs})
        if vector is None:
            return None
        query = {"query": vector, "using": WORDS, "query_filter": filter_of(filters, citances=kind == CITANCES)}
        return functools.partial(_nearest, self._address, kind, self._rows, query)

    def _key(self, document: Any) -> str:
        return str(document[KEY])

    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> Floats:
        from qdrant_client import models

        points = [point_id(key) for key in keys]
        only = _filter([{"has_id": points}])
        vectors = (words_vector({(field, term): 1.0}) for term in terms)
        asked = [models.QueryRequest(query=one, using=WORDS, filter=only, limit=len(points)) for one in vectors]
        with failures(self._address):
            answers = self._address.client.query_batch_points(self._address.alias(kind), requests=asked)
        scores = np.zeros((len(points), len(terms)))
        for place, answer in enumerate(answers):
            of_points = {str(point.id): point.score for point in answer.points}
            scores[:, place] = [of_points.get(point, 0.0) for point in points]
        return scores


class QdrantVectors(Vectors):
    """The vectors of an index's papers, searched in Qdrant; single ones are read from the files of the index."""

    def __init__(self, index: "OpenIndex", folder: Path, ef: int | None) -> None:
        super().__init__(folder)
        self._papers, self._ef = index.rows, ef
        self._address = _address_of(index)

    def search(self, vector: NDArray[np.float32], k: int, filters: Filters, _: Any) -> tuple[Rows, Floats]:
        """As `Vectors.search`, on the server."""
        from qdrant_client import models

        query = {"query": vector.tolist(), "using": DENSE, "query_filter": filter_of(filters)}
        if not self._address.is_local:
            quantized = models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
            query["search_params"] = models.SearchParams(hnsw_ef=self._ef, quantization=quantized)
        rows = settled(functools.partial(_nearest, self._address, PAPERS, self._papers, query), k).rows
        scores = self.scores(vector, rows)  # those of the server differ in the last digits
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]


def _nearest(address: Address, kind: str, papers: PaperRows, query: dict[str, Any], k: int) -> Hits:
    """The first k points of a query, with their payloads; -1 is the row of papers that the index lacks."""
    with failures(address):
        points = address.client.query_points(address.alias(kind), limit=k, with_payload=[ID, KEY], **query).points
    payloads = [point.payload or {} for point in points]
    rows = papers.rows([str(payload[ID]) for payload in payloads])
    scores = np.array([point.score for point in points], np.float64)
    return Hits(rows, scores, np.fromiter(payloads, object, len(payloads)))
