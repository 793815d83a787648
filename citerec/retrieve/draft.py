"""What the draft cites already: nearly half of all citations repeat one that the same text made before."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from citerec.contexts.topic import Topic
from citerec.index.manifest import DENSE
from citerec.index.vectors import Vectors, has_vectors
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Candidates, Floats, OpenIndex, Retriever, Rows, check_asked
from citerec.settings import PartSettings

_LEAST = 1e-6


class DraftRetriever(Retriever):
    """Finds what the draft cites before the place. Safe to call from several threads.

    All these papers score the same: which of them fits the sentence is for the other lists to say. A draft that cites
    nothing, or of which nothing is known, has no candidates.
    """

    name = "draft"
    label = "cited in the draft"

    def __init__(self, index: OpenIndex, settings: PartSettings) -> None:
        super().__init__(index, settings)
        self._rows = index.rows
        self._vectors = Vectors(index.folder / DENSE) if has_vectors(index.folder / DENSE) else None

    def search(self, topic: Topic, k: int, _filters: Filters = NO_FILTERS, _prepared: None = None) -> Candidates:
        """All papers that the draft cites, however small k is: the filters are applied afterwards."""
        check_asked(topic, k)
        # All score the same, so their order is that of the rows.
        rows = np.array(sorted(self._mentions(topic)[0]), np.int64)
        ones = np.ones(len(rows))
        return Candidates(self._rows, rows, ones, {self.name: ones})

    def signals(self, topic: Topic, rows: Rows, filters: Filters) -> Mapping[str, Floats]:
        """What candidates have to do with what the draft cites; none if it cites nothing that the index has.

        - `draft_times`: how often the draft cites the candidate; `draft_ago`: how many citations ago it last did.
        - `draft_mean`, `draft_nearest`: the cosine of its vector with the mean vector of what the draft cites, and with
          the nearest of them; the candidate itself is left out of them.
        - `draft_cocited`: how many papers cite both it and something that the draft cites; `draft_coupled`: how
          many of the papers that the draft cites it cites too. Only what may be known under the filters counts.
        """
        times, ago = self._mentions(topic)
        if not times:
            return {}
        cited = np.array(list(times), np.int64)
        signals = {
            "draft_times": np.array([times[row] for row in rows.tolist()], float),
            "draft_ago": np.array([ago.get(row, np.nan) for row in rows.tolist()], float),
        }
        if self._vectors is not None:
            signals["draft_mean"], signals["draft_nearest"] = _cosines(self._vectors, rows, cited)
        if self._rows.citing is not None:
            places, pairs = self._rows.citing.pairs_of(cited, filters)
            citing = self._rows.citing.rows[pairs]
            coupled = np.unique(np.stack([citing, places]), axis=1)[0]
            signals["draft_coupled"] = np.searchsorted(coupled, rows, "right") - np.searchsorted(coupled, rows) + 0.0
            owners, pairs = self._rows.citing.pairs_of(rows, filters)
            shared = np.isin(self._rows.citing.rows[pairs], citing[citing >= 0])
            signals["draft_cocited"] = np.bincount(owners[shared], minlength=len(rows)).astype(float)
        return signals

    def _mentions(self, topic: Topic) -> tuple[Counter[int], dict[int, int]]:
        """By row, how often the draft cites a paper, and how many citations ago it last did; the latest first."""
        rows = [row for row in self._rows.rows(topic.cited_before or ()).tolist() if row >= 0]
        ago: dict[int, int] = {}
        for distance, row in enumerate(reversed(rows), 1):
            ago.setdefault(row, distance)
        return Counter(reversed(rows)), ago


def _cosines(vectors: Vectors, rows: Rows, cited: Rows) -> "tuple[Floats, Floats]":
    """The cosines of some papers with the mean of what is cited, and with the nearest of it, (rows,) each."""
    is_cited, theirs = vectors.of(cited)
    has_vector, own = vectors.of(rows)
    means, cosines = theirs.sum(axis=0)[None].repeat(len(own), axis=0), own @ theirs.T
    at, place = np.nonzero(rows[has_vector, None] == cited[is_cited])
    means[at] -= theirs[place]
    cosines[at, place] = np.nan
    lengths = np.linalg.norm(means, axis=1)
    to_mean, to_nearest = np.full((2, len(rows)), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):  # nothing is left beside the candidate itself
        to_mean[has_vector] = np.where(lengths > _LEAST, (means * own).sum(axis=1) / lengths, np.nan)
    to_nearest[has_vector] = np.fmax.reduce(cosines, axis=1, initial=np.nan)
    return to_mean, to_nearest
