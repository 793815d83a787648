"""Qdrant as the engine of vectors."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.errors import SettingsError
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import check_asked
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.dense.topics import TopicSettings, VectorRetriever
from citerec.retrieve.hits import Hits, settled
from citerec.retrieve.qdrant import URL
from citerec.retrieve.qdrant.address import failures
from citerec.retrieve.qdrant.manifest import PAPERS, alias_of, opened
from citerec.retrieve.qdrant.points import DENSE, ID, filter_of, point_id
from citerec.retrieve.staging import DENSE as FOLDER
from citerec.settings import PartSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.candidates import Floats, Rows
    from citerec.retrieve.opened import OpenIndex

_IDS = 1000  # asked for at once


class QdrantDenseSettings(TopicSettings):
    """How the topic becomes a vector, and how Qdrant searches."""

    url: str | None = URL
    ef: int | None = Field(
        default=None, ge=1, description="hnsw_ef: how many papers the graph compares; by default the server decides"
    )
    exact: bool = Field(default=False, description="whether all vectors are compared, without the graph")
    oversampling: float = Field(
        default=2.0,
        ge=1,
        le=100,
        description="of quantised vectors so many times as many are found, and scored again by the vectors themselves",
    )


class QdrantDenseRetriever(VectorRetriever):
    """Finds papers by their vectors in Qdrant, as `dense` does with FAISS. Safe to call from several threads.

    Topics are encoded here; all vectors of papers stay on the server.

    Raises:
        IndexUnusableError: The index was not pushed, or its papers changed since.
        ServiceError: The server does not answer; raised by searches too.
    """

    name = "qdrant-dense"
    label = "vectors"
    Settings: ClassVar[type[PartSettings]] = QdrantDenseSettings
    filters_itself = True
    signal = "dense"

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the collection of an index's papers."""
        return cls(index, settings)

    def __init__(self, index: "OpenIndex", settings: Any = None) -> None:
        settings = settings or self.Settings()
        self._connection, stated = opened(index.path, index.manifest.fingerprint, settings.url)
        if stated.dense is None:
            self._connection.close()
            raise SettingsError(
                f"{self._connection.address} has no vectors to search",
                f"Make them, and push them: citerec index encode {index.path}, then citerec index push {index.path}",
            )
        super().__init__(settings, stated.dense, index.rows, index.path / FOLDER)

    def close(self) -> None:
        """Releases the model, and closes the connection."""
        super().close()
        self._connection.close()

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        prepared: "NDArray[np.float32] | None" = None,
    ) -> Candidates:
        """The k nearest papers, nearest first; arguments and errors as for `DenseRetriever.search`."""
        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        passing = filter_of(filters)
        hits = settled(lambda wanted: self._hits(vector, wanted, passing), k)
        return Candidates(self.papers, hits.rows, hits.scores, {self.signal: hits.scores})

    def scored(self, prepared: "NDArray[np.float32]", rows: "Rows") -> "Floats":
        """The cosine of a vector (dimension,) with those of some papers, (rows,); NaN for papers without a vector."""
        import numpy as np
        from qdrant_client import models

        cosines = np.full(len(rows), np.nan)
        ids = [point_id(paper_id) for paper_id in self.papers.paper_ids(rows)]
        for begin in range(0, len(ids), _IDS):
            part = ids[begin : begin + _IDS]
            only = models.Filter(must=[models.HasIdCondition(has_id=list(part))])
            hits = self._hits(prepared, len(part), only, exact=True)
            order = np.argsort(rows)
            cosines[order[np.searchsorted(rows, hits.rows, sorter=order)]] = hits.scores
        return cosines

    def known_vectors(self, rows: "Rows") -> "tuple[NDArray[np.bool_], NDArray[np.float32]]":
        """As `VectorRetriever.known_vectors`."""
        import numpy as np

        found: dict[str, list[float]] = {}
        ids = [point_id(paper_id) for paper_id in self.papers.paper_ids(rows[rows >= 0])]
        wanted = sorted(set(ids))
        for begin in range(0, len(wanted), _IDS):
            with failures(self._connection.address):
                records = self._connection.client.retrieve(
                    alias_of(self._connection.address, PAPERS),
                    ids=wanted[begin : begin + _IDS],
                    with_vectors=[DENSE],
                    with_payload=False,
                )
            of_records: list[tuple[str, Any]] = [(str(one.id), one.vector) for one in records]
            found |= {key: vectors[DENSE] for key, vectors in of_records if vectors and DENSE in vectors}
        known = np.zeros(len(rows), bool)
        known[rows >= 0] = [one in found for one in ids]
        vectors = np.array([found[one] for one in ids if one in found], np.float32)
        return known, vectors.reshape(-1, self.manifest.dimension)

    def _hits(self, vector: "NDArray[np.float32]", wanted: int, passing: Any, *, exact: bool = False) -> Hits:
        """The nearest papers that pass."""
        import numpy as np
        from qdrant_client import models

        settings, params = self.settings, None
        if not self._connection.address.is_plain:
            quantized = models.QuantizationSearchParams(rescore=True, oversampling=settings.oversampling)
            params = models.SearchParams(hnsw_ef=settings.ef, exact=exact or settings.exact, quantization=quantized)
        with failures(self._connection.address):
            points = self._connection.client.query_points(
                alias_of(self._connection.address, PAPERS),
                query=vector.tolist(),
                using=DENSE,
                limit=wanted,
                query_filter=passing,
                with_payload=[ID],
                search_params=params,
            ).points
        rows = self.papers.rows([str((point.payload or {})[ID]) for point in points])
        scores = np.array([point.score for point in points], np.float64)
        return Hits(rows[rows >= 0], scores[rows >= 0])
