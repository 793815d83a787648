"""The vectors of topics: made by the encoder of the papers, whatever engine searches for them."""

import threading
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError, ModelError
from citerec.index.candidates import Rows
from citerec.index.columns import PaperRows
from citerec.index.vectors.vectors import DenseManifest, encode_command
from citerec.models.encoder import BackendName, Encoder
from citerec.models.find import find_model
from citerec.models.loading import read_model_manifest
from citerec.retrieve.base import Retriever
from citerec.settings import PartSettings, Weight

_NEAREST_CITED = 3


class TopicSettings(PartSettings):
    """How the topic becomes a vector."""

    neighbours: bool = Field(default=True, description="whether the sentences before and after are used")
    citing: Weight = Field(
        default=1.0,
        description="weight of the citing paper's own vector, if it is known, against 1 for the sentences",
    )
    cited: Weight = Field(
        default=0.5,
        description="weight of what the draft cites already, against 1 for the sentences: the mean of the three of "
        "these papers that are nearest to them",
    )
    backend: BackendName | None = Field(
        default=None,
        description="backend for the query; by default that of the papers, or a quicker one with the same vectors",
    )
    queries: str | None = Field(
        default=None,
        description="folder of a static encoder that learnt these vectors (citerec train static), which then encodes "
        "the query in place of their model",
    )


class VectorRetriever(Retriever):
    """What retrievers by vectors have in common: a topic becomes a vector, and may be drawn to papers.

    Attributes:
        settings: Those of the retriever.
        manifest: What made the vectors of the papers.
        papers: The ids of the index's papers.
        folder: The folder of the vectors, for errors.
    """

    def __init__(self, settings: Any, manifest: DenseManifest, papers: PaperRows, folder: Path) -> None:
        self.settings = settings
        self.manifest = manifest
        self.papers = papers
        self.folder = folder
        self._opened_encoder: Any = None
        self._opening = threading.Lock()

    def close(self) -> None:
        """Releases the model."""
        self._opened_encoder = None

    @abstractmethod
    def known_vectors(self, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Which of some papers have a vector, (rows,), and the vectors of these, (known, dimension).

        The row of a paper that the index lacks is -1.
        """

    def prepare(self, topics: Sequence[Topic]) -> NDArray[np.float32]:  # type: ignore[override]
        """The vectors of some topics, (topics, dimension), each of length one.

        The citing paper's own vector, or the encoding of its title if it has none, is added with its weight, and so
        is what the draft cites already.

        Raises:
            ModelError: The model cannot be loaded.
            IndexUnusableError: It is not the model that made the vectors.
        """
        dense = self.settings
        texts = [topic.passage if dense.neighbours else topic.text for topic in topics]
        encoder: Encoder = self.encoder()
        if not dense.citing:
            return self._with_cited(encoder.encode(texts), topics)
        known, own = self.known_vectors(self.papers.rows([topic.citing_id or "" for topic in topics]))
        titled = [at for at, topic in enumerate(topics) if not known[at] and topic.citing_title]
        encoded = encoder.encode([*texts, *(topics[at].citing_title for at in titled)])
        vectors, titles = encoded[: len(topics)], encoded[len(topics) :]
        citing = np.zeros_like(vectors)
        citing[known] = own
        citing[titled] = titles
        return self._with_cited(_normalised(vectors + np.float32(dense.citing) * citing), topics)

    def _with_cited(self, vectors: NDArray[np.float32], topics: Sequence[Topic]) -> NDArray[np.float32]:
        """The vectors of topics, moved towards the papers that their drafts cite and that are nearest to them."""
        drafted = [at for at, topic in enumerate(topics) if topic.cited_before] if self.settings.cited else []
        for at in drafted:
            _, cited = self.known_vectors(np.unique(self.papers.rows(topics[at].cited_before or ())))
            if len(cited):
                nearest = (-(cited @ vectors[at])).argsort(kind="stable")[:_NEAREST_CITED]
                mean = _normalised(cited[nearest].mean(axis=0, keepdims=True))
                vectors[at] = _normalised(vectors[at : at + 1] + self.settings.cited * mean)[0]
        return vectors

    def with_feedback(self, prepared: NDArray[np.float32], rows: Rows, weight: float) -> NDArray[np.float32]:
        """A vector (dimension,) moved towards the mean of some papers' vectors, of length one (Rocchio, 1971)."""
        _, own = self.known_vectors(rows)
        if not len(own):
            return prepared
        nearer: NDArray[np.float32] = _normalised((prepared + weight * own.mean(axis=0))[None])[0]
        return nearer

    def encoder(self) -> Any:
        """The encoder of the topics, opened at the first call; errors as for `prepare`."""
        with self._opening:
            if self._opened_encoder is None:
                encoder = self.open_encoder(self.manifest)
                self._check_encoder(encoder)
                self._opened_encoder = encoder
            return self._opened_encoder

    def open_encoder(self, manifest: DenseManifest) -> Any:
        """Opens the encoder that some vectors are from; it has an `identity` and a `dimension`."""
        model, length = manifest.model, manifest.max_tokens
        if self.settings.queries:
            return _static_encoder(self.settings.queries, manifest)
        if self.settings.backend:
            return Encoder.open(model, backend=self.settings.backend, max_tokens=length)
        return Encoder.open_for_queries(model, manifest.backend, manifest.count, max_tokens=length)

    def _check_encoder(self, encoder: Any) -> None:
        """Raises IndexUnusableError unless it made the vectors."""
        manifest = self.manifest
        if encoder.dimension != manifest.dimension:
            raise IndexUnusableError(
                f"{manifest.model} makes vectors of dimension {encoder.dimension}, and those of the index have "
                f"{manifest.dimension}",
                f"Give the right one: {encode_command(self.folder, '…')}",
            )
        if manifest.identity not in (None, encoder.identity):
            raise IndexUnusableError(
                f"{manifest.model} is no longer the model that made the vectors of the index",
                f"Make them again: {encode_command(self.folder)}",
            )


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return normalised


def _static_encoder(name: str, vectors: DenseManifest) -> Encoder:
    """A static encoder of queries; ModelError if it cannot be loaded, or learnt other vectors than these."""
    from citerec.models.static import StaticEncoder, StaticManifest

    manifest = read_model_manifest(Path(find_model(name)), StaticManifest, "a static encoder", "Train it again.")
    if manifest is None or manifest.teacher != {"model": vectors.model, "identity": vectors.identity}:
        raise ModelError(
            f"{name!r} is no static encoder that learnt the vectors of {vectors.model}",
            "Make one: citerec train static",
        )
    encoder = StaticEncoder(name)
    encoder.identity = vectors.identity or encoder.identity
    return encoder
