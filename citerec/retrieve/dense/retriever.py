"""Dense retrieval: the papers whose vectors are nearest to that of the query, under exact filters."""

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError, SettingsError
from citerec.groundwork.progress import Progress
from citerec.models.base import BackendName
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import RETRIEVERS, Candidate, Retriever, check_asked
from citerec.retrieve.dense.kinds import REFINE, K, candidates, faiss_module, open_faiss, parameters, to_search
from citerec.retrieve.dense.manifest import DenseManifest, encode_command, has_vectors
from citerec.retrieve.dense.vectors import Matching, Passing, RowFilter, Vectors
from citerec.retrieve.manifest import Manifest, is_index
from citerec.settings import PartSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.models.encoder import Encoder
    from citerec.retrieve.dense.build import DenseOptions
    from citerec.retrieve.opened import OpenIndex

# Papers with equal texts have equal vectors: more are searched, so that ties at the end are settled by id.
_SLACK = 16
# A step through the graph costs about as much as scoring 60 adjacent rows: benchmarks/vectors.py.
_STEP = 60
# Lists: if fewer rows than this pass, and fewer than a hundredth, all of them are scored with their own vectors.
_FEW = 20_000
_WIDEST = 16


class SearchSettings(PartSettings):
    """How vectors are searched."""

    probe: int | None = Field(
        default=None,
        ge=1,
        description="nprobe of IVF-SQ and IVF-PQ, efSearch of HNSW; by default what the build found for recall 0.99",
    )


class DenseSettings(SearchSettings):
    """How the topic becomes a vector, and how the vectors are searched."""

    neighbours: bool = Field(default=True, description="whether the sentences before and after are used")
    citing: float = Field(
        default=1.0,
        ge=0,
        le=1000,
        description="weight of the citing paper's own vector, if it is known, against 1 for the sentences",
    )
    backend: BackendName | None = Field(
        default=None,
        description="backend for the query: torch, or ONNX Runtime with 8 bits; by default that of the papers",
    )


@RETRIEVERS.register
class DenseRetriever(Retriever):
    """Finds papers by their vectors. Safe to call from several threads; ties are ordered by paper id.

    A paper scores the cosine of its vector with the query's, computed from the vectors themselves for any kind of
    index: all kinds give equal scores, but may find different papers.

    Raises:
        IndexUnusableError: There are no vectors, or they are damaged, or were made for other papers.
    """

    name = "dense"
    label = "vectors"
    Settings: ClassVar[type[PartSettings]] = DenseSettings
    filters_itself = True
    encodes = "titles and abstracts"

    @classmethod
    def encode(cls, index: Path, options: "DenseOptions", on_progress: Progress) -> str:
        """Makes the vectors of all papers, and the FAISS index over them; errors as for `encode_index`."""
        from citerec.retrieve.index import encode_index

        encode_index(index, options, on_progress)
        return ""

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the vectors of an index: the folder of the retriever's name."""
        folder = index.path / cls.name
        if not folder.is_dir():
            raise SettingsError(f"{index.path} has no vectors to search", f"Make them: {encode_command(folder)}")
        return cls(folder, settings, index.lucene.matching_ids)

    @classmethod
    def learnt_at(cls, index: Path, _settings: Any) -> Learnt:
        """What the encoder of the vectors learnt from."""
        folder = index / cls.name
        return learnt_by_part(DenseManifest.read(folder).model) if has_vectors(folder) else NOTHING

    def __init__(self, path: Path, settings: Any, matching: Matching) -> None:
        chosen: Any = self.Settings() if settings is None else settings
        self.settings = chosen
        self.vectors = Vectors(path)
        index = path.parent
        if is_index(index) and Manifest.read(index).fingerprint != self.vectors.manifest.store:
            raise IndexUnusableError(f"the vectors of {index} were made for other papers", _remedy(path))
        self._kind = self.vectors.manifest.faiss.kind
        self._probe = self.settings.probe or self.vectors.manifest.faiss.probe
        self._index = _opened(path)
        if self._index.ntotal != len(self.vectors) or self._index.d != self.vectors.manifest.dimension:
            raise IndexUnusableError(f"{path / 'index.faiss'} is not over these vectors", _remedy(path))
        self._filter = RowFilter(self.vectors, matching)
        self._opened_encoder: Any = None
        self._opening = threading.Lock()

    def close(self) -> None:
        """Releases the model and the index."""
        self._opened_encoder = None
        self._index = None

    def prepare(self, topics: Sequence[Topic]) -> "NDArray[np.float32]":  # type: ignore[override]
        """The vectors of some topics, (topics, dimension), each of length one.

        The citing paper's own vector, or the encoding of its title if it has none, is added with its weight.

        Raises:
            ModelError: The model cannot be loaded.
            IndexUnusableError: It is not the model that made the vectors.
        """
        import numpy as np

        dense = self.settings
        texts = [topic.passage if dense.neighbours else topic.text for topic in topics]
        encoder: Encoder = self.encoder()
        if not dense.citing:
            return encoder.encode(texts)
        rows = self.vectors.rows([topic.citing_id or "" for topic in topics])
        titled = [at for at, topic in enumerate(topics) if rows[at] < 0 and topic.citing_title]
        encoded = encoder.encode([*texts, *(topics[at].citing_title for at in titled)])
        vectors, titles = encoded[: len(topics)], encoded[len(topics) :]
        citing = np.zeros_like(vectors)
        citing[rows >= 0] = self.vectors.values[rows[rows >= 0]]
        citing[titled] = titles
        return _normalised(vectors + np.float32(dense.citing) * citing)

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        prepared: "NDArray[np.float32] | None" = None,
    ) -> list[Candidate]:
        """The k nearest papers, nearest first; fewer only if fewer pass the filters.

        `prepared` is the topic's vector (dimension,); if it is None, the topic is encoded.

        Raises:
            QueryError: The topic is blank.
            FilterError: k is under 1.
        """
        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        passing = self.passing(filters)
        excluded = {paper_id for paper_id in (*filters.exclude, filters.citing_id) if paper_id is not None}
        wanted = min(k + len(excluded) + _SLACK, len(self.vectors) if passing is None else passing.count)
        rows = self._nearest(vector, wanted, passing)
        return self._candidates(vector, rows, excluded)[:k]

    def passing(self, filters: Filters) -> Passing | None:
        """The rows that pass all filters but `exclude` and `citing_id`; None if all rows do."""
        return self._filter.passing(filters)

    def scores(self, prepared: "NDArray[np.float32]", paper_ids: Sequence[str]) -> dict[str, dict[str, float]]:
        """The cosine of a vector (dimension,) with those papers that have a vector."""
        rows = self.vectors.rows(paper_ids)
        known = rows >= 0
        cosines = self.vectors.scores(prepared, rows[known])
        ids = (paper_id for paper_id, has in zip(paper_ids, known.tolist(), strict=True) if has)
        return {
            paper_id: {self.name: cosine}
            for paper_id, cosine in zip(ids, cosines.tolist(), strict=True)
            if cosine == cosine
        }

    def with_feedback(
        self, prepared: "NDArray[np.float32]", paper_ids: Sequence[str], weight: float
    ) -> "NDArray[np.float32]":
        """A vector (dimension,) moved towards the mean of some papers' vectors, of length one (Rocchio, 1971)."""
        rows = self.vectors.rows(paper_ids)
        rows = rows[rows >= 0]
        if not len(rows):
            return prepared
        mean = self.vectors.values[rows].astype("float32").mean(axis=0)
        nearer: NDArray[np.float32] = _normalised((prepared + weight * mean)[None])[0]
        return nearer

    def _candidates(
        self, vector: "NDArray[np.float32]", rows: "NDArray[np.int64]", excluded: set[str]
    ) -> list[Candidate]:
        """Papers by score, then by row, which is by id."""
        import numpy as np

        scores = self.vectors.scores(vector, rows)
        order = np.lexsort((rows, -scores))
        found = zip(self.vectors.paper_ids(rows[order]), scores[order].tolist(), strict=True)
        return [
            Candidate(paper_id, score, None, {self.name: score})
            for paper_id, score in found
            if paper_id not in excluded
        ]

    def _nearest(self, vector: "NDArray[np.float32]", k: int, passing: Passing | None) -> "NDArray[np.int64]":
        """The rows of the k nearest that pass."""
        import numpy as np

        if k <= 0:
            return np.empty(0, dtype=np.int64)
        if self._kind == "hnsw":
            return self._by_graph(vector, k, passing)
        if self._kind in REFINE:
            return self._by_lists(vector, k, passing)
        return _searched(self._index, vector, k, parameters("flat", 0, k, passing and passing.selector))

    def _by_graph(self, vector: "NDArray[np.float32]", k: int, passing: Passing | None) -> "NDArray[np.int64]":
        """Searches the graph, or all passing rows if they are so few that the graph would take longer."""
        faiss = faiss_module()
        count, selector = (len(self.vectors), None) if passing is None else (passing.count, passing.selector)
        if count**2 > _STEP * self._probe * max(k / K, 1) * len(self.vectors):
            probe = -(-self._probe * len(self.vectors) // count)
            rows = _searched(self._index, vector, k, parameters("hnsw", probe, k, selector))
            if len(rows) == k:
                return rows
        everything = faiss.downcast_index(self._index.storage)
        return _searched(everything, vector, k, parameters("flat", 0, k, selector))

    def _by_lists(self, vector: "NDArray[np.float32]", k: int, passing: Passing | None) -> "NDArray[np.int64]":
        """Candidates by their codes, then by their vectors; all passing rows if they are few."""
        import numpy as np

        count, selector = (len(self.vectors), None) if passing is None else (passing.count, passing.selector)
        wanted = min(count, candidates(self._kind, k))
        if passing is not None and count <= max(wanted, min(_FEW, len(self.vectors) // 100)):
            rows = passing.rows()
        else:
            asked = to_search(self._kind, vector)
            # By the root: benchmarks/vectors.py. If 30 % pass, 1.6 times as many lists keep the recall of 1,000 hits.
            probe = min(self._index.nlist, math.ceil(self._probe * min(_WIDEST, (len(self.vectors) / count) ** 0.5)))
            for lists in (probe, self._index.nlist):
                rows = _searched(self._index, asked, wanted, parameters(self._kind, lists, k, selector))
                if len(rows) >= k:
                    break
        scores = self.vectors.scores(vector, rows)
        return rows[np.lexsort((rows, -scores))[:k]]

    def encoder(self) -> Any:
        """The encoder of the topics, opened at the first call; errors as for `prepare`."""
        with self._opening:
            if self._opened_encoder is None:
                encoder = self.open_encoder(self.vectors.manifest)
                self._check_encoder(encoder)
                self._opened_encoder = encoder
            return self._opened_encoder

    def open_encoder(self, manifest: DenseManifest) -> Any:
        """Opens the encoder that some vectors are from; it has an `identity` and a `dimension`."""
        from citerec.models.encoder import Encoder

        backend = self.settings.backend or manifest.backend
        return Encoder.open(manifest.model, backend=backend, max_tokens=manifest.max_tokens)

    def _check_encoder(self, encoder: Any) -> None:
        """Raises IndexUnusableError unless it made the vectors."""
        manifest = self.vectors.manifest
        if encoder.dimension != manifest.dimension:
            raise IndexUnusableError(
                f"{manifest.model} makes vectors of dimension {encoder.dimension}, and those of the index have "
                f"{manifest.dimension}",
                f"Give the right one: {encode_command(self.vectors.path, '…')}",
            )
        if manifest.identity not in (None, encoder.identity):
            raise IndexUnusableError(
                f"{manifest.model} is no longer the model that made the vectors of the index",
                f"Make them again: {encode_command(self.vectors.path)}",
            )


def _opened(path: Path) -> Any:
    try:
        return open_faiss(path)
    except RuntimeError as error:
        raise IndexUnusableError(f"{path / 'index.faiss'} cannot be read", _remedy(path)) from error


def _remedy(path: Path) -> str:
    return f"Make the vectors again: {encode_command(path)}"


def _searched(index: Any, vector: "NDArray[np.float32]", k: int, parameters: Any) -> "NDArray[np.int64]":
    rows: NDArray[np.int64] = index.search(vector[None], k, params=parameters)[1][0]
    return rows[rows >= 0]


def _normalised(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return normalised
