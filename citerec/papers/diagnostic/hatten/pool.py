"""The papers among which HAtten is trained and measured, with the vectors that it gives them now."""

import heapq
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from citerec.contexts.leaks import LeakRules
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.files.hashing import hash_sample
from citerec.files.progress import Progress
from citerec.papers.diagnostic.hatten.encoder import Hatten

_CHUNK = 2048
_NO_LIMIT = 9999
# In each row this many papers are drawn for one easy negative: few of them are forbidden.
_TRIES = 16

Rows = npt.NDArray[np.int32]


class Pool:
    """Papers and their vectors.

    Attributes:
        ids: Their ids, in order.
        rows: The row of each id.
    """

    def __init__(self, store: PaperStore, ids: Collection[str]) -> None:
        self._store = store
        self.ids = sorted(ids)
        self.rows = {paper_id: row for row, paper_id in enumerate(self.ids)}
        years = store.years(self.ids)
        # What has no known year is not known to be newer.
        self._years = np.array([years.get(paper_id) or 0 for paper_id in self.ids], np.int32)
        self._vectors: npt.NDArray[np.float32] | None = None

    @classmethod
    def of(cls, store: PaperStore, needed: Collection[str], most: int, seed: int) -> "Pool":
        """Papers of a store that have a text: all, or a sample of `most` by the seed; and those that are needed."""
        with_text = (paper.paper_id for paper in store.all_papers() if paper.title or paper.abstract)
        drawn = heapq.nsmallest(most, with_text, key=lambda paper_id: hash_sample(seed, "pool", paper_id))
        return cls(store, {*needed, *drawn})

    def encode(self, model: Hatten, on_progress: Progress) -> None:
        """Makes the vectors of all papers with a model."""
        vectors = np.empty((len(self.ids), model.dimension), np.float32)
        for begin in range(0, len(self.ids), _CHUNK):
            on_progress("encoding papers", begin, len(self.ids))
            part = self.ids[begin : begin + _CHUNK]
            papers = self._store.papers(part)
            vectors[begin : begin + len(part)] = model.encode_papers([papers[paper_id] for paper_id in part])
        self._vectors = vectors

    def scores(
        self, vectors: npt.NDArray[np.float32], topics: Sequence[Topic], but: Sequence[Collection[str]] = ()
    ) -> npt.NDArray[np.float32]:
        """Cosines of some topics with all papers, (topics, papers); -inf for what the leak rules forbid, and for `but`.

        Args:
            vectors: The topics' vectors, (topics, dimension).
            topics: The topics.
            but: More papers that are forbidden, for each topic.
        """
        assert self._vectors is not None
        scores = vectors @ self._vectors.T
        scores[~self.allowed(topics, but)] = -np.inf
        return scores

    def allowed(self, topics: Sequence[Topic], but: Sequence[Collection[str]] = ()) -> npt.NDArray[np.bool_]:
        """Whether the leak rules allow each paper for each topic, and it is not in its `but`, (topics, papers)."""
        rules = [LeakRules().restrict(topic) for topic in topics]
        latest = [_NO_LIMIT if rule.as_of_year is None else rule.as_of_year for rule in rules]
        allowed = self._years <= np.array(latest, np.int32)[:, None]
        for number, rule in enumerate(rules):
            for paper_id in (*rule.citing_ids, *(but[number] if but else ())):
                if paper_id in self.rows:
                    allowed[number, self.rows[paper_id]] = False
        return allowed

    def nearest(self, scores: npt.NDArray[np.float32], k: int) -> Rows:
        """The rows of the k best of some scores, best first, (topics, k); -1 where fewer are allowed."""
        k = min(k, scores.shape[1])
        best = np.sort(np.argpartition(scores, -k, axis=1)[:, -k:], axis=1)
        order = np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable"), 1)
        rows = np.where(np.isfinite(np.take_along_axis(scores, order, 1)), order, -1)
        return rows.astype(np.int32)

    def drawn(self, allowed: npt.NDArray[np.bool_], count: int, random: np.random.Generator) -> Rows:
        """Rows drawn at random from those that are allowed, (topics, count); -1 where none was found."""
        tries = random.integers(0, len(self.ids), (len(allowed), count, _TRIES))
        good = allowed[np.arange(len(allowed))[:, None, None], tries]
        first = np.take_along_axis(tries, good.argmax(2)[:, :, None], 2)[:, :, 0]
        return np.where(good.any(2), first, -1).astype(np.int32)
