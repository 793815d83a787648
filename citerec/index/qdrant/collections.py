"""Writing the points of an index into collections of Qdrant: all of them, or those that changed."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.contexts.topic import clean
from citerec.corpus.store import PaperStore, SearchableCitance
from citerec.errors import BuildError, IndexUnusableError, InputError
from citerec.files.hashing import digest_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.base import Layout
from citerec.index.changes import Changes
from citerec.index.qdrant.address import Connection, failures
from citerec.index.qdrant.points import (
    ABSTRACT,
    CITANCE,
    DENSE,
    ID,
    TEXT,
    TITLE,
    WORDS,
    citance_payload,
    indexed_fields,
    paper_payload,
    point_id,
    text_vector,
)
from citerec.index.vectors.encode import paper_text
from citerec.index.vectors.vectors import Vectors
from citerec.index.words.analysis import analysis_of
from citerec.records import Paper

if TYPE_CHECKING:
    from qdrant_client import models

PAPERS, CITANCES = "papers", "citances"

_BATCH, _ANALYSED = 200, 20_000
_DIGITS = 12, 6  # of the fingerprint and of the digest of the rest, in the names of collections


class Stated(BaseModel):
    """The metadata of both collections.

    Attributes:
        fingerprint: That of the index whose papers they hold.
        updating: Fingerprint of the index that is being written; empty if none is.
        papers: How many papers there are. `citances` is the same for citing sentences.
        means: How many terms each field has on average when the collections were made: part of their vectors.
        quantization: How the server keeps vectors in memory.
        vectors: What made the vectors of the papers, and their dimension; empty if there are none.
    """

    model_config = ConfigDict(frozen=True)
    KIND: ClassVar[str] = "citerec-qdrant"
    VERSION: ClassVar[int] = 2

    kind: str = KIND
    version: int = VERSION
    fingerprint: str
    updating: str = ""
    papers: int
    citances: int
    means: dict[str, float]
    quantization: str
    vectors: str


def alias_of(connection: Connection, kind: str) -> str:
    """The name under which papers or citing sentences are read."""
    name = connection.address.name
    return name if kind == PAPERS else f"{name}-{CITANCES}"


def stated_at(connection: Connection) -> Stated | None:
    """What the collections of an address state; None if there are none.

    Raises:
        IndexUnusableError: There is a collection that citerec did not make, or one of another version.
        ServiceError: The server cannot be asked.
    """
    collection = _aliases(connection).get(alias_of(connection, PAPERS))
    if collection is None:
        return None
    with failures(connection.address):
        found = connection.client.get_collection(collection).config.metadata or {}
    try:
        if (found.get("kind"), found.get("version")) == (Stated.KIND, Stated.VERSION):
            return Stated.model_validate(found)
    except ValidationError:
        pass
    raise IndexUnusableError(
        f"{connection.address} was not made by this version of citerec",
        "Give another name, or remove its collections first.",
    )


def mean_lengths(store: PaperStore, fields: Sequence[str]) -> dict[str, float]:
    """How many terms some fields have in the texts of a store, on average of those that have one."""
    means = {}
    for field in fields:
        if field == CITANCE:
            texts: Iterable[str] = (clean(one.text) for one in store.searchable_citances())
        else:
            texts = (texts_of(paper)[field] for paper in store.all_papers())
        words = having = 0
        for part in in_parts(texts, _ANALYSED):
            lengths = analysis_of(part).lengths
            words, having = words + int(lengths.sum()), having + int((lengths > 0).sum())
        means[field] = words / max(1, having)
    return means


def texts_of(paper: Paper) -> dict[str, str]:
    """The texts of a paper, by field."""
    return {TEXT: paper_text(paper), TITLE: paper.title, ABSTRACT: paper.abstract or ""}


class Collections:
    """Writes the points of a store into the collections of an address.

    Args:
        connection: Where to.
        store: The papers.
        stated: What the collections will state.
        layout: How new ones lie in a cluster.
        vectors: The papers' vectors, in order of paper; None if there are none.
        on_progress: Called as the work goes on.
    """

    def __init__(
        self,
        connection: Connection,
        store: PaperStore,
        stated: Stated,
        layout: Layout,
        vectors: Vectors | None,
        on_progress: Progress,
    ) -> None:
        self._connection, self._client, self._address = connection, connection.client, connection.address
        self._store, self._stated, self._layout, self._vectors = store, stated, layout, vectors
        self._on_progress = on_progress
        self._fields = [field for field in stated.means if field != CITANCE]
        self._kinds = (PAPERS, CITANCES) if stated.citances else (PAPERS,)

    def write_all(self) -> None:
        """Writes everything into new collections, which then take the place of the old ones in one step.

        Raises:
            InputError: A collection that is no alias has one of the names.
            BuildError: The collections do not hold what was written.
        """
        live = _aliases(self._connection)
        with failures(self._address):
            there = {one.name for one in self._client.get_collections().collections}
        for kind in self._kinds:
            if (name := alias_of(self._connection, kind)) in there:
                raise InputError(
                    f"{self._address.place} has a collection {name}, which is not citerec's", "Name another."
                )
        names = {kind: self._name(kind, live) for kind in self._kinds}
        for kind, name in names.items():
            self._create(kind, name, exists=name in there)
        self._fill(names[PAPERS], self._paper_points, enumerate(self._store.all_papers()), self._stated.papers)
        if CITANCES in names:
            said = self._store.searchable_citances()
            self._fill(names[CITANCES], self._citance_points, said, self._stated.citances)
        self._check(names)
        self._swap(names, live)

    def write_changes(self, changes: Changes, row_of: Callable[[str], int]) -> None:
        """Writes the papers that changed into the collections that are there.

        Each paper is the old one or the new one at any moment; readers of both indexes are served meanwhile.

        Args:
            changes: What changed.
            row_of: The row of a paper.

        Raises:
            BuildError: The collections do not hold what they should.
        """
        names = {kind: alias_of(self._connection, kind) for kind in self._kinds}
        self._state(names, {"updating": self._stated.fingerprint})
        there = self._store.years(changes.texts)
        for gone in in_parts((one for one in changes.texts if one not in there), _BATCH):
            self._delete(names[PAPERS], [point_id(one) for one in gone])
        papers = self._store.all_papers(only=changes.texts)
        self._fill(names[PAPERS], self._paper_points, ((row_of(one.paper_id), one) for one in papers), len(there))
        for ids in in_parts(changes.cited if CITANCES in names else (), _BATCH):
            points = self._citance_points(list(self._store.searchable_citances(only=ids)))
            self._upsert(names[CITANCES], points)
            self._delete_others(names[CITANCES], ids, [point.id for point in points])
        self._check(names)
        self._state(names, self._stated.model_dump(mode="json"))

    def _name(self, kind: str, live: dict[str, str]) -> str:
        """The name of a new collection: with the fingerprint, and unlike that of the one that is read now."""
        rest = digest_of(self._stated.model_dump(mode="json", exclude={"fingerprint"}))
        alias = alias_of(self._connection, kind)
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
            if not self._address.folder:
                for field, schema in indexed_fields(citances=kind == CITANCES):
                    self._client.create_payload_index(name, field_name=field, field_schema=schema)

    def _fill(self, name: str, points_of: Callable[[Any], Any], items: Iterable[Any], whole: int) -> None:
        done = 0
        for batch in in_parts(items, _BATCH):
            self._upsert(name, points_of(batch))
            done += len(batch)
            self._on_progress("writing to Qdrant", done, whole)

    def _paper_points(self, papers: Sequence[tuple[int, Paper]]) -> "list[models.PointStruct]":
        from qdrant_client import models

        points = []
        for row, paper in papers:
            texts = texts_of(paper)
            words = text_vector({field: texts[field] for field in self._fields}, self._stated.means)
            vector: dict[str, Any] = {WORDS: words} if words else {}
            if self._vectors is not None and self._vectors.known[row]:
                vector[DENSE] = self._vectors.values[row].astype("float32").tolist()
            points.append(models.PointStruct(id=point_id(paper.paper_id), vector=vector, payload=paper_payload(paper)))
        return points

    def _citance_points(self, citances: Sequence[SearchableCitance]) -> "list[models.PointStruct]":
        from qdrant_client import models

        points = []
        for one in citances:
            words = text_vector({CITANCE: clean(one.text)}, self._stated.means)
            named = point_id(one.cited.paper_id, one.citing_id, one.position)
            vector: dict[str, Any] = {WORDS: words} if words else {}
            points.append(models.PointStruct(id=named, vector=vector, payload=citance_payload(one)))
        return points

    def _upsert(self, name: str, points: "list[models.PointStruct]") -> None:
        for part in in_parts(points, _BATCH):  # a paper may have any number of citing sentences
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
        live = _aliases(self._connection)
        with failures(self._address):
            for name in names.values():
                self._client.update_collection(live.get(name, name), metadata=metadata)

    def _check(self, names: dict[str, str]) -> None:
        """Raises BuildError unless the collections have as many points as the index has papers and citing sentences."""
        for kind, expected in ((PAPERS, self._stated.papers), (CITANCES, self._stated.citances)):
            if kind in names:
                with failures(self._address):
                    count = self._client.count(names[kind], exact=True).count
                if count != expected:
                    raise BuildError(
                        f"{self._address} has {count:,} {kind}, and the index {expected:,}",
                        "Build the index again: everything is written anew.",
                    )

    def _swap(self, names: dict[str, str], live: dict[str, str]) -> None:
        """Lets readers see the new collections, both in one step, and removes all earlier ones."""
        from qdrant_client import models

        steps: list[Any] = []
        for kind in (PAPERS, CITANCES):
            alias = alias_of(self._connection, kind)
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


def _aliases(connection: Connection) -> dict[str, str]:
    """The collections of all aliases, by alias."""
    with failures(connection.address):
        return {one.alias_name: one.collection_name for one in connection.client.get_aliases().aliases}


def _quantization(kind: str) -> Any:
    from qdrant_client import models

    if kind == "int8":
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        return models.ScalarQuantization(scalar=scalar)
    if kind == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return None
