"""Dense retrieval: the papers whose vectors are nearest to that of the topic, under exact filters."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError, ModelError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.index.base import ENGINES
from citerec.index.generations import generation_of
from citerec.index.vectors.vectors import DenseManifest, encode_command, has_vectors
from citerec.models.encoder import BackendName, Encoder
from citerec.models.find import find_model
from citerec.models.loading import read_model_manifest
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever, check_asked
from citerec.retrieve.candidates import Candidates, Floats, Rows
from citerec.settings import PartSettings, Weight

if TYPE_CHECKING:
    from citerec.index.vectors.build import DenseOptions
    from citerec.retrieve.opened import OpenIndex

Vector = NDArray[np.float32]

_NEAREST_CITED = 3


class SearchSettings(PartSettings):
    """How vectors are searched."""

    probe: int | None = Field(
        default=None,
        ge=1,
        description="nprobe of IVF-SQ and IVF-PQ, efSearch of HNSW: how far a FAISS index is searched; by default far "
        "enough to find about 99 % of the exact hundred nearest",
    )


class DenseSettings(SearchSettings):
    """How the topic becomes a vector, and how the vectors are searched."""

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


class DenseRetriever(Retriever):
    """Finds papers by their vectors. Safe to call from several threads; ties are ordered by paper id.

    A paper scores the cosine of its vector, in half precision, with the query's, whatever searches: all kinds of search
    give equal scores, but may find different papers.

    Attributes:
        settings: Those of the retriever.
        manifest: What made the vectors of the papers.
        papers: The ids of the index's papers.
        folder: The folder of the vectors, for errors.

    Raises:
        IndexUnusableError: There are no vectors, or they are damaged, or were made for other papers.
    """

    name = "dense"
    label = "vectors"
    Settings: ClassVar[type[PartSettings]] = DenseSettings
    filters_itself = True

    @classmethod
    def encode(
        cls, index: Path, options: "DenseOptions", on_progress: Progress, parallelism: Parallelism = HERE
    ) -> str:
        """Makes the vectors of all papers, and what searches them; errors as for `encode_index`."""
        from citerec.index.build import encode_index

        encode_index(index, options, on_progress, parallelism=parallelism)
        return ""

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the vectors of an index: the folder of the retriever's name."""
        folder = index.folder / cls.name
        if not folder.is_dir():
            raise SettingsError(f"{index.path} has no vectors to search", f"Make them: {encode_command(folder)}")
        return cls(folder, settings, index)

    @classmethod
    def learnt_at(cls, index: Path, _settings: Any) -> Learnt:
        """What the encoder of the vectors learnt from."""
        folder = generation_of(index) / cls.name
        return learnt_by_part(DenseManifest.read(folder).model) if has_vectors(folder) else NOTHING

    def __init__(self, folder: Path, settings: Any, index: "OpenIndex") -> None:
        chosen: Any = self.Settings() if settings is None else settings
        self.settings, self.folder, self.papers, self._filter = chosen, folder, index.rows, index.filter
        engine = ENGINES[index.manifest.engine]
        self.vectors = engine.vectors(folder, index.manifest, index.rows, chosen.probe)
        self.manifest = self.vectors.manifest
        self._encoder: Any = None
        self._opening = threading.Lock()
        if index.manifest.fingerprint != self.manifest.store:
            raise IndexUnusableError(
                f"the vectors of {index.path} were made for other papers", f"Make them: {encode_command(folder)}"
            )

    def close(self) -> None:
        """Releases the model."""
        self._encoder = None

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Vector | None = None) -> Candidates:
        """The k nearest papers, nearest first; fewer only if fewer pass the filters.

        `prepared` is the topic's vector (dimension,); if it is None, the topic is encoded.

        Raises:
            QueryError: The topic is blank.
            FilterError: k is under 1.
        """
        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        rows, scores = self.vectors.search(vector, k, filters, self._filter)
        return Candidates(self.papers, rows, scores, {self.name: scores})

    def scored(self, prepared: Vector, rows: Rows) -> Floats:
        """The cosine of a vector (dimension,) with those of some papers, (rows,); NaN for papers without a vector."""
        return self.vectors.scores(prepared, rows)

    def prepare(self, topics: Sequence[Topic]) -> Vector:  # type: ignore[override]
        """The vectors of some topics, (topics, dimension), each of length one.

        The citing paper's own vector, or the encoding of its title if it has none, is added with its weight, and so
        is what the draft cites already.

        Raises:
            ModelError: The model cannot be loaded.
            IndexUnusableError: It is not the model that made the vectors.
        """
        dense, encoder = self.settings, self.encoder()
        texts = [topic.passage if dense.neighbours else topic.text for topic in topics]
        if not dense.citing:
            return self._with_cited(encoder.encode(texts), topics)
        known, own = self.vectors.of(self.papers.rows([topic.citing_id or "" for topic in topics]))
        titled = [at for at, topic in enumerate(topics) if not known[at] and topic.citing_title]
        encoded = encoder.encode([*texts, *(topics[at].citing_title for at in titled)])
        vectors, titles = encoded[: len(topics)], encoded[len(topics) :]
        citing = np.zeros_like(vectors)
        citing[known] = own
        citing[titled] = titles
        return self._with_cited(_normalised(vectors + np.float32(dense.citing) * citing), topics)

    def _with_cited(self, vectors: Vector, topics: Sequence[Topic]) -> Vector:
        """The vectors of topics, moved towards the papers that their drafts cite and that are nearest to them."""
        drafted = [at for at, topic in enumerate(topics) if topic.cited_before] if self.settings.cited else []
        for at in drafted:
            _, cited = self.vectors.of(np.unique(self.papers.rows(topics[at].cited_before or ())))
            if len(cited):
                nearest = (-(cited @ vectors[at])).argsort(kind="stable")[:_NEAREST_CITED]
                mean = _normalised(cited[nearest].mean(axis=0, keepdims=True))
                vectors[at] = _normalised(vectors[at : at + 1] + self.settings.cited * mean)[0]
        return vectors

    def with_feedback(self, prepared: Vector, rows: Rows, weight: float) -> Vector:
        """A vector (dimension,) moved towards the mean of some papers' vectors, of length one (Rocchio, 1971)."""
        _, own = self.vectors.of(rows)
        if not len(own):
            return prepared
        nearer: Vector = _normalised((prepared + weight * own.mean(axis=0))[None])[0]
        return nearer

    def encoder(self) -> Any:
        """The encoder of the topics, opened at the first call.

        Raises:
            ModelError: It cannot be loaded.
            IndexUnusableError: It did not make the vectors.
        """
        with self._opening:
            if self._encoder is None:
                manifest, encoder = self.manifest, self.open_encoder(self.manifest)
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
                self._encoder = encoder
            return self._encoder

    def open_encoder(self, manifest: DenseManifest) -> Any:
        """Opens the encoder that some vectors are from; it has an `identity` and a `dimension`."""
        model, length = manifest.model, manifest.max_tokens
        if self.settings.queries:
            return _static_encoder(self.settings.queries, manifest)
        if self.settings.backend:
            return Encoder.open(model, backend=self.settings.backend, max_tokens=length)
        return Encoder.open_for_queries(model, manifest.backend, manifest.count, max_tokens=length)


def _normalised(vectors: Vector) -> Vector:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Vector = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return normalised


def _static_encoder(name: str, vectors: DenseManifest) -> Encoder:
    """A static encoder of queries; ModelError if it cannot be loaded, or learnt other vectors than these."""
    from citerec.models.encoder import StaticEncoder, StaticManifest

    manifest = read_model_manifest(Path(find_model(name)), StaticManifest, "a static encoder", "Train it again.")
    if manifest is None or manifest.teacher != {"model": vectors.model, "identity": vectors.identity}:
        raise ModelError(
            f"{name!r} is no static encoder that learnt the vectors of {vectors.model}",
            "Make one: citerec train static",
        )
    encoder = StaticEncoder(name)
    encoder.identity = vectors.identity or encoder.identity
    return encoder
