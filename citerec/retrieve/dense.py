"""Dense retrieval: the papers whose vectors are nearest to that of the query, under exact filters."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.index.base import ENGINES
from citerec.index.candidates import Candidates, Floats, Rows
from citerec.index.generations import generation_of
from citerec.index.vectors.vectors import DenseManifest, encode_command, has_vectors
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import check_asked
from citerec.retrieve.topics import TopicSettings, VectorRetriever
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex
    from citerec.index.vectors.build import DenseOptions


class SearchSettings(PartSettings):
    """How vectors are searched."""

    probe: int | None = Field(
        default=None,
        ge=1,
        description="nprobe of IVF-SQ and IVF-PQ, efSearch of HNSW: how far a FAISS index is searched; by default far "
        "enough to find about 99 % of the exact hundred nearest",
    )


class DenseSettings(SearchSettings, TopicSettings):
    """How the topic becomes a vector, and how the vectors are searched."""


class DenseRetriever(VectorRetriever):
    """Finds papers by their vectors. Safe to call from several threads; ties are ordered by paper id.

    A paper scores the cosine of its vector, in half precision, with the query's, whatever searches: all kinds of search
    give equal scores, but may find different papers.

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

    def __init__(self, path: Path, settings: Any, index: "OpenIndex") -> None:
        chosen: Any = self.Settings() if settings is None else settings
        self.vectors = ENGINES[index.manifest.engine].vectors(index, path.name, chosen.probe)
        super().__init__(chosen, self.vectors.manifest, index.rows, path)
        self._filter = index.filter
        if index.manifest.fingerprint != self.vectors.manifest.store:
            raise IndexUnusableError(
                f"the vectors of {index.path} were made for other papers", f"Make them: {encode_command(path)}"
            )

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: NDArray[np.float32] | None = None
    ) -> Candidates:
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

    def scored(self, prepared: NDArray[np.float32], rows: Rows) -> Floats:
        """The cosine of a vector (dimension,) with those of some papers, (rows,); NaN for papers without a vector."""
        return self.vectors.scores(prepared, rows)

    def known_vectors(self, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """As `VectorRetriever.known_vectors`."""
        return self.vectors.of(rows)
