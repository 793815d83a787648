"""The engine on Qdrant: words and vectors on a server; records and columns stay in the index (docs/scale.md)."""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress
from citerec.files.resume import read_json
from citerec.index.base import CITANCES, PAPERS, Engine, Layout, WordSettings
from citerec.index.changes import changes_between
from citerec.index.hits import Hits, RankedWords, settled
from citerec.index.manifest import DENSE as VECTORS
from citerec.index.manifest import FILE_NAME
from citerec.index.qdrant.address import Address, failures
from citerec.index.qdrant.collections import Collections, Metadata, mean_lengths, metadata_at
from citerec.index.qdrant.points import DENSE, ID, KEY, WORDS, filter_of, point_id, words_vector
from citerec.index.vectors.manifest import DenseManifest, has_vectors
from citerec.index.vectors.vectors import Vectors
from citerec.index.words.analysis import term_weights
from citerec.records import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.opened import OpenIndex
    from citerec.index.rows import PaperRows

_MOST_DRIFT = 0.05
"""How far the mean length of a field may move before users are told that a new build would score better."""

_OVERSAMPLING = 2.0
"""Of quantised vectors so many times as many are found, and scored again by the vectors themselves."""


class Qdrant(Engine):
    """Words and vectors in collections of a server of Qdrant."""

    name = "qdrant"
    FOLDER = "qdrant"

    @classmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        fields = [*layout.fields[PAPERS], *(layout.fields[CITANCES] if counts.citances else ())]
        on_progress("measuring texts", 0, 1)
        metadata = Metadata(store.fingerprint(), mean_lengths(store, fields), _made_by(folder, layout))
        address = Address.parse(layout.url or "")
        live, changes = metadata_at(address), changes_between(before, folder, layout, cls.name)
        means, of_before = metadata.means, (read_json(before / FILE_NAME) or {}).get("fingerprint")
        if (
            live is None
            or changes is None
            or (live.fingerprint, live.vectors, live.means.keys()) != (of_before, metadata.vectors, means.keys())
        ):
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
    def open(cls, index: "OpenIndex", settings: WordSettings) -> "QdrantWords":
        return QdrantWords(index, settings)

    @classmethod
    def vectors(cls, index: "OpenIndex", name: str, probe: int | None) -> Vectors:
        """Those of the papers are searched on the server."""
        folder = index.folder / name
        return QdrantVectors(index, folder, probe) if name == VECTORS else Vectors(folder, probe)


def _made_by(folder: Path, layout: Layout) -> str:
    """What made the vectors of a generation, and how they are kept; empty if there are none."""
    if not has_vectors(folder / VECTORS):
        return ""
    made = DenseManifest.read(folder / VECTORS)
    return f"{made.model} {made.identity} {made.max_tokens} {made.backend} {made.dimension} {layout.quantization}"


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


class QdrantWords(RankedWords):
    """The words of an index, in Qdrant."""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        super().__init__(index, settings)
        self._address = _address_of(index)

    def _query(self, kind: str, topic: Topic, filters: Filters) -> Any | None:
        fields, weights = self._fields[kind], term_weights(self.settings, topic)
        pairs = itertools.product(fields, weights)
        vector = words_vector({(field, term): fields[field] * weights[term] for field, term in pairs})
        if vector is None:
            return None
        return {"query": vector, "using": WORDS, "query_filter": filter_of(filters, citances=kind == CITANCES)}

    def _best(self, kind: str, query: Any, k: int) -> Hits:
        return _nearest(self._address, kind, self._rows, query, k)

    def _key(self, document: Any) -> str:
        return str(document[KEY])

    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> "NDArray[np.float64]":
        import numpy as np
        from qdrant_client import models

        points = [point_id(key) for key in keys]
        only = models.Filter(must=[models.HasIdCondition(has_id=list(points))])
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

    def search(
        self, vector: "NDArray[np.float32]", k: int, filters: Filters, _filter: Any
    ) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """As `Vectors.search`, on the server."""
        import numpy as np
        from qdrant_client import models

        query = {"query": vector.tolist(), "using": DENSE, "query_filter": filter_of(filters)}
        if not self._address.is_local:
            quantized = models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
            query["search_params"] = models.SearchParams(hnsw_ef=self._ef, quantization=quantized)
        rows = settled(functools.partial(_nearest, self._address, PAPERS, self._papers, query), k).rows
        scores = self.scores(vector, rows)  # those of the server differ in the last digits
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]


def _nearest(address: Address, kind: str, papers: "PaperRows", query: dict[str, Any], k: int) -> Hits:
    """The first k points of a query, with their payloads; -1 is the row of papers that the index lacks."""
    import numpy as np

    with failures(address):
        points = address.client.query_points(address.alias(kind), limit=k, with_payload=[ID, KEY], **query).points
    payloads = [point.payload or {} for point in points]
    rows = papers.rows([str(payload[ID]) for payload in payloads])
    scores = np.array([point.score for point in points], np.float64)
    return Hits(rows, scores, np.fromiter(payloads, object, len(payloads)))
