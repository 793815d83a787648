"""Writing the points of an index into collections: all of them, or those that changed."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from citerec.contexts.topic import clean
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import PaperStore, SearchableCitance, SearchableText
from citerec.errors import BuildError, InputError
from citerec.files.hashing import digest_of
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.retrieve.dense.listing import paper_text
from citerec.retrieve.dense.vectors import Vectors
from citerec.retrieve.lucene.jvm import java_failures
from citerec.retrieve.lucene.tokens import analyzed
from citerec.retrieve.qdrant.address import Connection, failures
from citerec.retrieve.qdrant.manifest import CITANCES, PAPERS, Stated, alias_of, aliases
from citerec.retrieve.qdrant.points import (
    CITANCE,
    DENSE,
    ID,
    TEXT,
    TITLE,
    WORDS,
    Scoring,
    citance_payload,
    indexed_fields,
    paper_payload,
    point_id,
)
from citerec.retrieve.update import Changes

if TYPE_CHECKING:
    from qdrant_client import models

_BATCH = 200
_NOTE_EVERY = 10  # batches
_DIGITS = 12, 6  # of the fingerprint and of the digest of the rest, in the names of collections

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Layout:
    """How collections lie in a cluster: their shards, and copies of each; None for the server's default."""

    shards: int | None = None
    replicas: int | None = None


class Upload:
    """Writes the points of a store into the collections of an address.

    Args:
        connection: Where to.
        store: The papers.
        stated: What the collections will state.
        layout: How new ones lie in a cluster.
        on_progress: Called as the work goes on.
        vectors: The folder of the papers' vectors, if there are any.
    """

    def __init__(
        self,
        connection: Connection,
        store: PaperStore,
        stated: Stated,
        layout: Layout,
        on_progress: Progress,
        vectors: Path | None,
    ) -> None:
        self._connection, self._client = connection, connection.client
        self._address = connection.address
        self._store = store
        self._stated = stated
        self._layout = layout
        self._on_progress = on_progress
        self._vectors = Vectors(vectors) if vectors else None
        self._scoring = Scoring(stated.k1, stated.b, stated.means)
        self._kinds = (PAPERS, CITANCES) if stated.citances else (PAPERS,)

    def whole(self, journal: Journal) -> None:
        """Writes everything into new collections, which then take the place of the old ones in one step.

        Raises:
            InputError: A collection that is no alias has one of the names.
            BuildError: The collections do not hold what was written.
        """
        live = aliases(self._connection)
        with failures(self._address):
            there = {one.name for one in self._client.get_collections().collections}
        for kind in self._kinds:
            if (name := alias_of(self._address, kind)) in there:
                raise InputError(
                    f"{self._address.place} has a collection {name}, which is not citerec's", "Name another."
                )
        names = {kind: self._name(kind, live) for kind in self._kinds}
        if journal.get("after") is None or not there.issuperset(names.values()):  # not all were made
            for kind, name in names.items():
                self._create(kind, name, exists=name in there)
            journal.note(after={})
        for kind, name in names.items():
            self._fill(kind, name, journal)
        self._check(names)
        self._swap(names, live)

    def changes(self, since: int) -> int:
        """Writes the papers that changed since a place into the collections that are there; returns how many.

        Each paper is the old one or the new one at any moment; readers of both indexes are served meanwhile.

        Raises:
            BuildError: The collections do not hold what they should.
        """
        names = {kind: alias_of(self._address, kind) for kind in self._kinds}
        assert isinstance(self._store, SqliteStore)  # an index with its records in MongoDB is not updated
        found = Changes.since(self._store, since)
        self._state(names, {"updating": self._stated.fingerprint})
        there = self._store.years(found.texts)
        for gone in _batches(one for one in found.texts if one not in there):
            self._delete(names[PAPERS], [point_id(one) for one in gone])
        for papers in _batches(self._store.searchable_texts(only=found.texts)):
            self._upsert(names[PAPERS], self._paper_points(papers))
        for ids in _batches(found.cited if CITANCES in names else ()):
            said = [self._citance_points(part) for part in _batches(self._store.searchable_citances(only=ids))]
            for points in said:
                self._upsert(names[CITANCES], points)
            self._delete_others(names[CITANCES], ids, [point.id for points in said for point in points])
        self._check(names)
        self._state(names, self._stated.model_dump(mode="json"))
        return len({*found.texts, *found.cited})

    def _name(self, kind: str, live: dict[str, str]) -> str:
        """The name of a new collection: with the fingerprint, and unlike that of the one that is read now."""
        rest = digest_of(self._stated.model_dump(mode="json", exclude={"fingerprint"}))
        alias = alias_of(self._address, kind)
        name = f"{alias}-{self._stated.fingerprint[: _DIGITS[0]]}-{rest[: _DIGITS[1]]}"
        return f"{name}-2" if live.get(alias) == name else name

    def _create(self, kind: str, name: str, *, exists: bool) -> None:
        from qdrant_client import models

        vectors = {}
        if kind == PAPERS and self._vectors is not None:
            # The vectors are of half precision. The server would round those of queries too, so they are kept in full.
            vectors[DENSE] = models.VectorParams(
                size=self._vectors.manifest.dimension,
                distance=models.Distance.DOT,
                on_disk=self._stated.quantization != "none",
                quantization_config=_quantization(self._stated.quantization),
            )
        words = models.SparseVectorParams(modifier=models.Modifier.IDF)
        with failures(self._address):
            if exists:
                self._client.delete_collection(name)
            self._client.create_collection(
                name,
                vectors_config=vectors,
                sparse_vectors_config={WORDS: words},
                shard_number=self._layout.shards,
                replication_factor=self._layout.replicas,
                on_disk_payload=True,
                metadata=self._stated.model_dump(mode="json"),
            )
            if not self._address.is_plain:
                for field, schema in indexed_fields(citances=kind == CITANCES):
                    self._client.create_payload_index(name, field_name=field, field_schema=schema)

    def _fill(self, kind: str, name: str, journal: Journal) -> None:
        """Writes all points of a kind, after those that the journal notes."""
        after = journal.get("after").get(kind, ["", 0])
        if after is True:
            return
        last, done = after
        points_of: Callable[[Any], Any] = self._paper_points if kind == PAPERS else self._citance_points
        id_of: Callable[[Any], str] = _paper_id if kind == PAPERS else _cited_id
        items = self._store.searchable_texts(last) if kind == PAPERS else self._store.searchable_citances(last)
        whole = self._stated.papers if kind == PAPERS else self._stated.citances
        for number, batch in enumerate(_batches(items, key=id_of), 1):
            self._upsert(name, points_of(batch))
            done += len(batch)
            self._on_progress(f"pushing {kind}", done, whole)
            if number % _NOTE_EVERY == 0:
                journal.note(after={**journal.get("after"), kind: [id_of(batch[-1]), done]})
        journal.note(after={**journal.get("after"), kind: True})

    def _paper_points(self, papers: Sequence[SearchableText]) -> "list[models.PointStruct]":
        from qdrant_client import models

        with java_failures("analysing words"):
            terms = analyzed([*map(paper_text, papers), *(paper.title for paper in papers)])
        rows = None if self._vectors is None else self._vectors.rows([paper.paper_id for paper in papers]).tolist()
        points = []
        for place, paper in enumerate(papers):
            vector: dict[str, Any] = {}
            if words := self._scoring.vector({TEXT: terms[place], TITLE: terms[len(papers) + place]}):
                vector[WORDS] = words
            if self._vectors is not None and rows is not None and rows[place] >= 0:
                vector[DENSE] = self._vectors.values[rows[place]].astype("float32").tolist()
            points.append(models.PointStruct(id=point_id(paper.paper_id), vector=vector, payload=paper_payload(paper)))
        return points

    def _citance_points(self, citances: Sequence[SearchableCitance]) -> "list[models.PointStruct]":
        from qdrant_client import models

        with java_failures("analysing words"):
            terms = analyzed([clean(one.text) for one in citances])
        points = []
        for one, found in zip(citances, terms, strict=True):
            words = self._scoring.vector({CITANCE: found})
            named = point_id(one.cited.paper_id, one.citing_id, one.position)
            vector: dict[str, Any] = {WORDS: words} if words else {}
            points.append(models.PointStruct(id=named, vector=vector, payload=citance_payload(one)))
        return points

    def _upsert(self, name: str, points: "list[models.PointStruct]") -> None:
        for part in _batches(points):  # a paper may have any number of citing sentences
            with failures(self._address):
                self._client.upsert(name, points=part)

    def _delete(self, name: str, ids: list[str]) -> None:
        from qdrant_client import models

        with failures(self._address):
            self._client.delete(name, points_selector=models.PointIdsList(points=list(ids)))

    def _delete_others(self, name: str, cited_ids: list[str], kept: list[Any]) -> None:
        """Removes the citing sentences of some papers, except some points."""
        from qdrant_client import models

        cited = models.FieldCondition(key=ID, match=models.MatchAny(any=cited_ids))
        others = models.Filter(must=[cited], must_not=[models.HasIdCondition(has_id=kept)] if kept else None)
        with failures(self._address):
            self._client.delete(name, points_selector=models.FilterSelector(filter=others))

    def _state(self, names: dict[str, str], metadata: dict[str, Any]) -> None:
        live = aliases(self._connection)
        with failures(self._address):
            for name in names.values():
                self._client.update_collection(live.get(name, name), metadata=metadata)

    def _check(self, names: dict[str, str]) -> None:
        """Raises BuildError unless the collections have as many points as the index has papers and citances."""
        for kind, expected in ((PAPERS, self._stated.papers), (CITANCES, self._stated.citances)):
            if kind in names:
                with failures(self._address):
                    count = self._client.count(names[kind], exact=True).count
                if count != expected:
                    raise BuildError(
                        f"{self._address} has {count:,} {kind}, and the index {expected:,}",
                        "Push everything again: citerec index push INDEX --anew",
                    )

    def _swap(self, names: dict[str, str], live: dict[str, str]) -> None:
        """Lets readers see the new collections, both in one step, and removes all earlier ones."""
        from qdrant_client import models

        steps: list[Any] = []
        for kind in (PAPERS, CITANCES):
            alias = alias_of(self._address, kind)
            if alias in live:
                steps.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
            if kind in names:
                made = models.CreateAlias(collection_name=names[kind], alias_name=alias)
                steps.append(models.CreateAliasOperation(create_alias=made))
        hexadecimal = "-".join(f"[0-9a-f]{{{digits}}}" for digits in _DIGITS)
        own = re.compile(rf"{re.escape(self._address.name)}(-{CITANCES})?-{hexadecimal}(-2)?")
        with failures(self._address):
            self._client.update_collection_aliases(change_aliases_operations=steps)
            for one in self._client.get_collections().collections:
                if own.fullmatch(one.name) and one.name not in names.values():
                    self._client.delete_collection(one.name)


def _quantization(kind: str) -> Any:
    from qdrant_client import models

    if kind == "int8":
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        return models.ScalarQuantization(scalar=scalar)
    if kind == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return None


def _paper_id(paper: SearchableText) -> str:
    return paper.paper_id


def _cited_id(citance: SearchableCitance) -> str:
    return citance.cited.paper_id


def _batches(items: Iterable[Item], key: Callable[[Item], str] | None = None) -> Iterator[list[Item]]:
    """Items in batches. With a key, items with equal keys, which follow each other, are never in two batches."""
    remaining = iter(items)
    ahead: list[Item] = []
    while batch := [*ahead, *itertools.islice(remaining, _BATCH - len(ahead))]:
        ahead = []
        if key is not None:
            for item in remaining:
                if key(item) != key(batch[-1]):
                    ahead = [item]
                    break
                batch.append(item)
        yield batch
