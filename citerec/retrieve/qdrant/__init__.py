"""Qdrant as the engine of words: BM25 as sparse vectors, whose scores are those of Lucene (docs/qdrant.md)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, SettingsError
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever
from citerec.retrieve.bm25s.analysis import term_weights
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.hits import DEPTH, Hits, added_up, settled
from citerec.retrieve.qdrant.address import failures
from citerec.retrieve.qdrant.manifest import CITANCES, PAPERS, alias_of, opened
from citerec.retrieve.qdrant.points import (
    CITANCE,
    CITING,
    ID,
    POSITION,
    TEXT,
    TITLE,
    WORDS,
    filter_of,
    query_vector,
)
from citerec.retrieve.topic_texts import TopicTexts, no_word
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from qdrant_client import models

    from citerec.retrieve.opened import OpenIndex

URL: Any = Field(
    default=None,
    description="address of the collections, such as http://HOST:6333/NAME; by default where the index was pushed last",
)


class QdrantWeights(PartSettings):
    """Weights of a word by its field; 0 leaves the field out."""

    text: float = Field(default=1.0, ge=0, le=1000, description="title and abstract as one field")
    title: float = Field(default=0.35, ge=0, le=1000, description="the title alone")
    citances: float = Field(default=0.0, ge=0, le=1000, description="sentences of other papers that cite the paper")


class QdrantBm25Settings(TopicTexts):
    """BM25 over papers. With a weight of citances it is what `lucene` is. k1 and b are part of what was pushed."""

    url: str | None = URL
    weights: QdrantWeights = QdrantWeights()
    citance_decay: float = Field(
        default=0.3, ge=0, le=1, description="weight of each further citance of a paper, against its better one"
    )


class QdrantBm25Retriever(Retriever):
    """BM25 over title and abstract in Qdrant, as `lucene` scores it. Safe to call from several threads.

    Raises:
        IndexUnusableError: The index was not pushed, or its papers changed since.
        ServiceError: The server does not answer; raised by searches too.
    """

    name = "qdrant-bm25"
    label = "words"
    Settings: ClassVar[type[PartSettings]] = QdrantBm25Settings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the collections of an index."""
        return cls(index, settings)

    def __init__(self, index: "OpenIndex", settings: Any = None) -> None:
        chosen: Any = self.Settings() if settings is None else settings
        self.settings = chosen
        self._papers = index.rows
        weights = chosen.weights
        self._connection, stated = opened(index.path, index.manifest.fingerprint, chosen.url)
        self._weighs_citances = bool(weights.citances and stated.citances)
        if not (weights.text or weights.title or self._weighs_citances):
            self._connection.close()
            why = "has no citing sentences" if weights.citances else "is searched with every weight 0"
            raise SettingsError(f"{index.path} {why}", f"Give words a weight: --set {self._section}.weights.text=1")

    @property
    def _section(self) -> str:
        return self.name.replace("-", "_")

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def prepare(self, topics: Sequence[Topic]) -> list[dict[str, float]]:
        """The terms of some topics, with their weights."""
        return [term_weights(self.settings, topic) for topic in topics]

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Mapping[str, float] | None = None
    ) -> Candidates:
        """The k best candidates, best first; fewer only if fewer share a word with the topic and pass the filters.

        Raises:
            QueryError: The topic has no word to search for, or too many.
            FilterError: k is under 1.
            ServiceError: The server does not answer.
        """
        if k < 1:
            raise FilterError(f"k is {k}", "Ask for at least one paper.")
        self.settings.check_length(topic, self._section)
        terms = term_weights(self.settings, topic) if prepared is None else prepared
        if not terms:
            raise no_word(topic)
        weights = self.settings.weights
        depth = max(DEPTH, k) if self._weighs_citances else k
        own = query_vector(terms, {TEXT: weights.text, TITLE: weights.title})
        papers, _ = self._best(PAPERS, own, depth, filters)
        if not self._weighs_citances:
            return Candidates(self._papers, papers.rows, papers.scores, {"bm25": papers.scores})
        citances, payloads = self._best(CITANCES, query_vector(terms, {CITANCE: 1.0}), depth, filters)
        said = [(str(one[CITING]), int(one[POSITION])) for one in payloads]
        by_weight = (weights.citances, self.settings.citance_decay)
        return added_up(self._papers, papers, citances, by_weight, said.__getitem__)[:k]

    def _best(
        self, kind: str, vector: "models.SparseVector | None", k: int, filters: Filters
    ) -> tuple[Hits, list[Mapping[str, Any]]]:
        """The first k hits in a collection, ties by paper id, and what is known of each."""
        import numpy as np

        if vector is None:
            return Hits(np.empty(0, np.int64), np.empty(0)), []
        address, client = self._connection.address, self._connection.client
        passing = filter_of(filters, citances=kind == CITANCES)
        fields = [ID, CITING, POSITION] if kind == CITANCES else [ID]
        payloads: list[Mapping[str, Any]] = []

        def found(wanted: int) -> Hits:
            with failures(address):
                points = client.query_points(
                    alias_of(address, kind),
                    query=vector,
                    using=WORDS,
                    limit=wanted,
                    query_filter=passing,
                    with_payload=fields,
                ).points
            payloads[:] = [point.payload or {} for point in points]
            scores = np.array([point.score for point in points], np.float64)
            rows = self._papers.rows([str(one[ID]) for one in payloads])
            return Hits(rows, scores, np.arange(len(rows)))

        hits = settled(found, k)
        assert hits.documents is not None
        known = np.flatnonzero(hits.rows >= 0)  # while an update is pushed, some papers may be new
        hits = Hits(hits.rows[known], hits.scores[known], hits.documents[known])
        assert hits.documents is not None
        return hits, [payloads[at] for at in hits.documents.tolist()]


class OnlyCitances(QdrantWeights):
    """Weights of a word by its field: citing sentences alone."""

    text: float = Field(default=0.0, ge=0, le=1000, description="title and abstract as one field")
    title: float = Field(default=0.0, ge=0, le=1000, description="the title alone")
    citances: float = Field(default=1.8, ge=0, le=1000, description="sentences of other papers that cite the paper")


class QdrantCitancesSettings(QdrantBm25Settings):
    """BM25 over citing sentences."""

    weights: OnlyCitances = OnlyCitances()


class QdrantCitancesRetriever(QdrantBm25Retriever):
    """BM25 over citing sentences in Qdrant: a paper is found by what others wrote when they cited it."""

    name = "qdrant-citances"
    label = "citing sentences"
    Settings = QdrantCitancesSettings
