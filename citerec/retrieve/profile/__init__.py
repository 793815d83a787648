"""Profiles: papers are found by their vectors, drawn to what cites them and to what was said of them.

After Profiler (arXiv 2603.17361), under the leak rules: what is newer than the citing paper is in no profile.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from citerec.contexts.learnt import Learnt
from citerec.contexts.topic import Topic
from citerec.errors import SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever, check_asked
from citerec.retrieve.candidates import Candidates, CitanceKey, Citances
from citerec.retrieve.dense.retriever import DenseRetriever, DenseSettings
from citerec.retrieve.profile.scores import Profiles, Weights
from citerec.retrieve.profile.vectors import NAME, CitingVectors, checked, encode_citing_sentences
from citerec.settings import PartSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.candidates import Rows
    from citerec.retrieve.opened import OpenIndex

# Papers with equal profiles: more are found, so that ties at the end are settled by id.
_SLACK = 16


class ProfileSettings(PartSettings):
    """The vectors of papers and of topics. The defaults were found on data/acl dev."""

    sentence: float = Field(
        default=4.0, ge=0, le=1000, description="weight of what a citing paper says, against 1 for the paper's own"
    )
    citing_paper: float = Field(default=2.0, ge=0, le=1000, description="weight of the citing paper's own vector")
    citing: float = Field(
        default=0.5,
        ge=0,
        le=1000,
        description="in the topic: weight of the paper that is written, against 1 for the sentence",
    )
    neighbours: bool = Field(default=True, description="whether the sentences before and after are used")
    depth: int | None = Field(
        default=None,
        ge=1,
        description="score only this many papers found by vectors and as many found by words; by default all, which "
        "reads every vector for each topic",
    )


class ProfileRetriever(Retriever):
    """Finds papers by their profiles. Safe to call from several threads; ties are ordered by paper id.

    The profile of a paper is its vector plus the mean, over the papers that cite it, of `sentence` times the vector of
    what they say and `citing_paper` times their own vector. Only those up to the year of the citing paper count, and
    the citing paper itself does not. A paper scores the cosine of its profile with the topic's vector.
    """

    name = NAME
    label = "profiles"
    Settings = ProfileSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: ProfileSettings) -> Self:
        """Opens the vectors of papers and of citing sentences of an index."""
        if not (index.path / NAME).is_dir():
            raise SettingsError(
                f"{index.path} has no vectors of citing sentences",
                f"Make them: citerec index encode {index.path} --retriever {NAME}",
            )
        return cls(index, settings)

    @classmethod
    def encode(cls, index: Path, _options: Any, on_progress: Progress, parallelism: Parallelism = HERE) -> str:
        """Makes the vectors of citing sentences with the encoder of the papers."""
        made = encode_citing_sentences(index, on_progress, parallelism)
        return f"{made.count:,} pairs of a cited and a citing paper have a vector ({made.model})."

    @classmethod
    def learnt_at(cls, index: Path, _settings: ProfileSettings) -> Learnt:
        """What the encoder learnt from."""
        return DenseRetriever.learnt_at(index, DenseSettings())

    def __init__(self, index: "OpenIndex", settings: ProfileSettings | None = None) -> None:
        self.settings = settings or ProfileSettings()
        dense = DenseSettings(neighbours=self.settings.neighbours, citing=self.settings.citing, cited=0)
        self._dense = DenseRetriever.open(index, dense)
        self._words = index.lucene
        vectors = self._dense.vectors
        self._said = CitingVectors(index.path / NAME)
        checked(self._said, vectors)
        self._profiles = Profiles(vectors, self._said, Weights(self.settings.sentence, self.settings.citing_paper))

    def close(self) -> None:
        """Releases the model and the files."""
        self._dense.close()

    def prepare(self, topics: Sequence[Topic]) -> "NDArray[np.float32]":  # type: ignore[override]
        """The vectors of some topics, (topics, dimension); errors as for `DenseRetriever.prepare`."""
        return self._dense.prepare(topics)

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        prepared: "NDArray[np.float32] | None" = None,
    ) -> Candidates:
        """The k papers with the nearest profiles; arguments and errors as for `DenseRetriever.search`."""
        import numpy as np

        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        excluded = [*filters.exclude, *filters.citing_ids]
        if self.settings.depth is None:
            passing = self._dense.passing(filters)
            scored = self._profiles.nearest(vector, k + len(excluded) + _SLACK, filters, passing)
        else:
            scored = self._profiles.of_rows(vector, self._found(topic, vector, filters), filters)
        kept = np.flatnonzero(~np.isin(scored.rows, self._dense.vectors.rows(excluded)))
        rows, scores = self._dense.paper_rows(scored.rows[kept]), scored.scores[kept]
        supported = np.where(scored.shares[kept] > 0, kept, -1)
        said = Citances(
            supported, lambda at: CitanceKey(self._said.citing_id(int(scored.said[at])), 0, float(scored.shares[at]))
        )
        return Candidates(self._dense.papers, rows, scores, {NAME: scores}, (said,)).in_order()[:k]

    def with_feedback(self, prepared: "NDArray[np.float32]", rows: "Rows", weight: float) -> "NDArray[np.float32]":
        """As `DenseRetriever.with_feedback`."""
        return self._dense.with_feedback(prepared, rows, weight)

    def _found(self, topic: Topic, vector: "NDArray[np.float32]", filters: Filters) -> "NDArray[np.int64]":
        """The rows of papers that vectors or words find, under the same filters."""
        import numpy as np

        depth = self.settings.depth or 1
        found = self._dense.search(topic, depth, filters, vector), self._words.search(topic, depth, filters)
        rows = self._dense.own_rows(np.concatenate([one.rows for one in found]))
        return np.unique(rows[rows >= 0])
