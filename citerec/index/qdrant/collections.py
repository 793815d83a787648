"""Writing the points of an index into collections of Qdrant: all of them, or those that changed."""

import itertools
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.corpus.store import Counts, PaperStore
from citerec.errors import BuildError, IndexUnusableError, InputError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.arrays import mapped, rows_of
from citerec.index.base import CITANCES, PAPERS, Layout
from citerec.index.changes import items_of
from citerec.index.columns import COLUMNS
from citerec.index.hits import key_of, texts_of
from citerec.index.manifest import DENSE as VECTORS
from citerec.index.qdrant.address import Address, failures
from citerec.index.qdrant.points import DENSE, ID, WORDS, payload_indexes, payload_of, point_id, text_vector
from citerec.index.vectors.manifest import has_vectors
from citerec.index.vectors.vectors import Vectors
from citerec.index.words.analysis import STOP_WORDS, words_of

if TYPE_CHECKING:
    from qdrant_client import models

KIND = "citerec-qdrant-3"
"""Stands in the metadata of collections that this version of citerec made."""

_BATCH = 200
_TOKEN = 6  # random bytes in the names of collections


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
            f"{address} was not made by this version of citerec",
            "Give another name, or remove its collections first.",
        )
    return Metadata(**metadata)


def mean_lengths(store: PaperStore, fields: Sequence[str]) -> dict[str, float]:
    """How many terms some fields have in the texts of a store, on average of those that have one."""
    words: Counter[str] = Counter()
    having: Counter[str] = Counter()
    papers, citances = map(texts_of, store.all_papers()), map(texts_of, store.searchable_citances())
    for texts in itertools.chain(papers, citances):
        for field, text in texts.items():
            length = sum(word not in STOP_WORDS for word in words_of(text))
            words[field] += length
            having[field] += length > 0
    return {field: words[field] / max(1, having[field]) for field in fields}


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
        self._vectors = Vectors(folder / VECTORS) if has_vectors(folder / VECTORS) else None
        self._counts = {PAPERS: counts.papers}
        if counts.citances:
            self._counts[CITANCES] = counts.citances

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
        from qdrant_client import models

        aliases = _aliases(self._address)
        names = {kind: aliases[self._address.alias(kind)] for kind in self._counts}
        self._state(names, {"updating": self._metadata.fingerprint})
        for kind, name in names.items():
            for done, ids in enumerate(in_parts(changes[kind], _BATCH)):
                self._on_progress("writing to Qdrant", done * _BATCH, len(changes[kind]))
                points = list(self._points(kind, ids))
                of_papers = models.FieldCondition(key=ID, match=models.MatchAny(any=ids))
                written = models.HasIdCondition(has_id=[point.id for point in points])
                others = models.Filter(must=[of_papers], must_not=[written])
                with failures(self._address):
                    self._upload(name, points)
                    self._client.delete(name, points_selector=models.FilterSelector(filter=others))
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
                quantization_config=_quantization(layout.quantization),
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
        if not self._address.is_local:
            for field, schema in payload_indexes().items():
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

        live = _aliases(self._address)
        steps: list[Any] = []
        for kind in (PAPERS, CITANCES):
            alias = self._address.alias(kind)
            if alias in live:
                steps.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
            if kind in names:
                made = models.CreateAlias(collection_name=names[kind], alias_name=alias)
                steps.append(models.CreateAliasOperation(create_alias=made))
        own = re.compile(rf"{re.escape(self._address.name)}(-{CITANCES})?-[0-9a-f]{{{2 * _TOKEN}}}")
        with failures(self._address):
            self._client.update_collection_aliases(change_aliases_operations=steps)
            for one in self._client.get_collections().collections:
                if own.fullmatch(one.name) and one.name not in names.values():
                    self._client.delete_collection(one.name)


def _aliases(address: Address) -> dict[str, str]:
    """The collections of all aliases, by alias."""
    with failures(address):
        return {one.alias_name: one.collection_name for one in address.client.get_aliases().aliases}


def _quantization(kind: str) -> Any:
    from qdrant_client import models

    scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    binary = models.BinaryQuantizationConfig(always_ram=True)
    kinds = {"int8": models.ScalarQuantization(scalar=scalar), "binary": models.BinaryQuantization(binary=binary)}
    return kinds.get(kind)
