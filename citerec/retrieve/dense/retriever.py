"""Dense retrieval: the papers whose vectors are nearest to that of the query, under exact filters."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import check_asked
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.dense.kinds import (
    REFINE,
    K,
    candidates,
    faiss_module,
    open_faiss,
    parameters,
    search_one,
    to_search,
)
from citerec.retrieve.dense.manifest import DenseManifest, encode_command, has_vectors
from citerec.retrieve.dense.topics import TopicSettings, VectorRetriever
from citerec.retrieve.dense.vectors import Matching, Passing, RowFilter, Vectors
from citerec.retrieve.manifest import Manifest, is_index
from citerec.retrieve.rows import PaperRows
from citerec.settings import PartSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.candidates import Floats, Rows
    from citerec.retrieve.dense.build import DenseOptions
    from citerec.retrieve.opened import OpenIndex

    Found = tuple[NDArray[np.int64], NDArray[np.float32]]

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


class DenseSettings(SearchSettings, TopicSettings):
    """How the topic becomes a vector, and how the vectors are searched."""


class DenseRetriever(VectorRetriever):
    """Finds papers by their vectors. Safe to call from several threads; ties are ordered by paper id.

    A paper scores the cosine of its vector, in half precision, with the query's, for any kind of index: all kinds give
    equal scores, but may find different papers.

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
        """Makes the vectors of all papers, and the FAISS index over them; errors as for `encode_index`."""
        from citerec.retrieve.index import encode_index

        encode_index(index, options, on_progress, parallelism=parallelism)
        return ""

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the vectors of an index: the folder of the retriever's name."""
        folder = index.path / cls.name
        if not folder.is_dir():
            raise SettingsError(f"{index.path} has no vectors to search", f"Make them: {encode_command(folder)}")
        return cls(folder, settings, lambda filters: index.lucene.matching_rows(filters), index.rows)

    @classmethod
    def learnt_at(cls, index: Path, _settings: Any) -> Learnt:
        """What the encoder of the vectors learnt from."""
        folder = index / cls.name
        return learnt_by_part(DenseManifest.read(folder).model) if has_vectors(folder) else NOTHING

    def __init__(self, path: Path, settings: Any, matching: Matching, papers: PaperRows | None = None) -> None:
        import numpy as np

        self.vectors = Vectors(path)
        papers = PaperRows(self.vectors.ids, self.vectors.ids != b"") if papers is None else papers
        super().__init__(self.Settings() if settings is None else settings, self.vectors.manifest, papers, path)
        index = path.parent
        if is_index(index) and Manifest.read(index).fingerprint != self.vectors.manifest.store:
            raise IndexUnusableError(f"the vectors of {index} were made for other papers", DenseManifest.remedy(path))
        self._kind = self.vectors.manifest.faiss.kind
        self._probe = self.settings.probe or self.vectors.manifest.faiss.probe
        self._index = _opened(path)
        if self._index.ntotal != len(self.vectors) or self._index.d != self.vectors.manifest.dimension:
            raise IndexUnusableError(f"{path / 'index.faiss'} is not over these vectors", DenseManifest.remedy(path))
        # Papers without a text have no vector.
        self._paper_rows = (
            None if len(self.papers) == len(self.vectors) else np.searchsorted(self.papers.ids, self.vectors.ids)
        )
        self._filter = RowFilter(self.vectors, lambda filters: self.own_rows(matching(filters)))

    def close(self) -> None:
        """Releases the model and the index."""
        super().close()
        self._index = None

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        prepared: "NDArray[np.float32] | None" = None,
    ) -> Candidates:
        """The k nearest papers, nearest first; fewer only if fewer pass the filters.

        `prepared` is the topic's vector (dimension,); if it is None, the topic is encoded.

        Raises:
            QueryError: The topic is blank.
            FilterError: k is under 1.
        """
        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        passing = self.passing(filters)
        excluded = self.vectors.rows([*filters.exclude, *filters.citing_ids])
        wanted = min(k + len(excluded) + _SLACK, len(self.vectors) if passing is None else passing.count)
        return self._candidates(*self._nearest(vector, wanted, passing), excluded)[:k]

    def passing(self, filters: Filters) -> Passing | None:
        """The rows that pass all filters but `exclude` and `citing_ids`; None if all rows do."""
        return self._filter.passing(filters)

    def scored(self, prepared: "NDArray[np.float32]", rows: "Rows") -> "Floats":
        """The cosine of a vector (dimension,) with those of some papers, (rows,); NaN for papers without a vector."""
        import numpy as np

        own = self.own_rows(rows)
        cosines = np.full(len(rows), np.nan)
        cosines[own >= 0] = self.vectors.scores(prepared, own[own >= 0])
        return cosines

    def known_vectors(self, rows: "Rows") -> "tuple[NDArray[np.bool_], NDArray[np.float32]]":
        """As `VectorRetriever.known_vectors`."""
        own = self.own_rows(rows)
        return own >= 0, self.vectors.values[own[own >= 0]].astype("float32")

    def own_rows(self, rows: "Rows") -> "Rows":
        """The rows of papers among the vectors; -1 for those without a vector."""
        import numpy as np

        if self._paper_rows is None or not len(self._paper_rows):
            return rows if self._paper_rows is None else np.full_like(rows, -1)
        own = np.minimum(np.searchsorted(self._paper_rows, rows), len(self._paper_rows) - 1)
        return np.where(self._paper_rows[own] == rows, own, -1)

    def paper_rows(self, own: "Rows") -> "Rows":
        """The papers' rows of some rows of the vectors."""
        return own if self._paper_rows is None else self._paper_rows[own]

    def _candidates(self, own: "Rows", scores: "NDArray[np.float32]", excluded: "Rows") -> Candidates:
        """Papers by score, then by row, which is by id."""
        import numpy as np

        rows, values = self.paper_rows(own), scores.astype(np.float64)
        found = Candidates(self.papers, rows, values, {self.name: values}).in_order()
        left_out = np.isin(found.rows, self.paper_rows(excluded[excluded >= 0]))
        return found.taken(np.flatnonzero(~left_out)) if left_out.any() else found

    def _nearest(self, vector: "NDArray[np.float32]", k: int, passing: Passing | None) -> "Found":
        """The rows of the k nearest that pass, and their scores."""
        import numpy as np

        if k <= 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if self._kind == "hnsw":
            return self._by_graph(vector, k, passing)
        if self._kind in REFINE:
            return self._by_lists(vector, k, passing)
        return search_one(self._index, vector, k, parameters("flat", 0, k, passing and passing.selector))

    def _by_graph(self, vector: "NDArray[np.float32]", k: int, passing: Passing | None) -> "Found":
        """Searches the graph, or all passing rows if they are so few that the graph would take longer."""
        faiss = faiss_module()
        count, selector = (len(self.vectors), None) if passing is None else (passing.count, passing.selector)
        if count**2 > _STEP * self._probe * max(k / K, 1) * len(self.vectors):
            probe = -(-self._probe * len(self.vectors) // count)
            found = search_one(self._index, vector, k, parameters("hnsw", probe, k, selector))
            if len(found[0]) == k:
                return found
        everything = faiss.downcast_index(self._index.storage)
        return search_one(everything, vector, k, parameters("flat", 0, k, selector))

    def _by_lists(self, vector: "NDArray[np.float32]", k: int, passing: Passing | None) -> "Found":
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
                rows, _ = search_one(self._index, asked, wanted, parameters(self._kind, lists, k, selector))
                if len(rows) >= k:
                    break
        scores = self.vectors.scores(vector, rows)
        best = np.lexsort((rows, -scores))[:k]
        return rows[best], scores[best]


def _opened(path: Path) -> Any:
    try:
        return open_faiss(path)
    except RuntimeError as error:
        raise IndexUnusableError(f"{path / 'index.faiss'} cannot be read", DenseManifest.remedy(path)) from error
