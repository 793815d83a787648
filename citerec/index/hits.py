"""Hits of an engine as rows of papers: ties settled by paper id, citing sentences added up; for all engines."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from citerec.index.arrays import Rows
from citerec.index.candidates import Candidates, CitanceKey, Citances, Floats
from citerec.index.columns import PaperRows

DEPTH = 1000
"""How deep both lists are read before the scores of a paper and its citances are added up; and how many of the best
citing sentences count in the signals for rankers.

Scores must not depend on k, so this is not a multiple of k.
"""

# Hits with equal scores: more are found, so that ties at the end are settled by id.
_SLACK = 16


class Hits(NamedTuple):
    """The rows of papers that were found, best first, with their scores and the engine's documents, (hits,) each."""

    rows: Rows
    scores: Floats
    documents: NDArray[Any]

    def taken(self, places: Rows) -> "Hits":
        """The hits at some places, in this order."""
        return Hits(self.rows[places], self.scores[places], self.documents[places])


def settled(find: Callable[[int], Hits] | None, k: int) -> Hits:
    """The first k hits of an engine that orders ties as it likes; here they are ordered by paper id.

    Hits of papers that the index lacks, of row -1, are left out: while an engine is updated it may have some.

    Args:
        find: As many of the best hits as are asked for, in any order among equal scores; None finds nothing.
        k: How many are wanted.
    """
    if find is None:
        return Hits(np.empty(0, np.int64), np.empty(0), np.empty(0))
    wanted = k + _SLACK
    while len((hits := find(wanted)).scores) == wanted and hits.scores[-1] == hits.scores[k - 1]:
        wanted *= 4
    first = hits.taken(np.lexsort((hits.rows, -hits.scores))[:k])
    return first.taken(np.flatnonzero(first.rows >= 0))


def added_up(
    rows_of: PaperRows,
    papers: Hits,
    citances: Hits,
    weights: tuple[float, float],
    said: Callable[[int], tuple[str, int]],
    least: float = 0.0,
) -> Candidates:
    """All papers that were found, or of which a citing sentence was found, best first.

    Args:
        rows_of: The ids of the papers.
        papers: What was found by the papers' own words.
        citances: What was found by citing sentences: the rows of the papers that they cite.
        weights: The weight of citing sentences, and the decay: the weight of each further one against its better one.
        said: The citing paper of a hit among the citances, and the sentence's position among those of that paper.
        least: The score from which a citing sentence counts in the signals for rankers.
    """
    weight, decay = weights
    rows = np.union1d(papers.rows, citances.rows)
    words = np.full(len(rows), np.nan)
    words[np.searchsorted(rows, papers.rows)] = papers.scores
    # The citing sentences of a paper together, best first.
    order = np.argsort(citances.rows, kind="stable")
    owners, scored = np.searchsorted(rows, citances.rows[order]), citances.scores[order]
    counts = np.bincount(owners, minlength=len(rows))
    begins = np.cumsum(counts) - counts
    shares = weight * scored * decay ** (np.arange(len(scored)) - begins[owners])
    scores = np.nan_to_num(words) + np.bincount(owners, shares, len(rows))
    has, found = counts > 0, scored >= least
    numbers = np.bincount(owners[found], minlength=len(rows)).astype(float)
    padded = np.append(scored, [np.nan, np.nan])
    values = {
        "citance": padded[begins],
        "citance_2": padded[begins + 1],
        "citances": np.bincount(owners[found], scored[found], len(rows)),
        "citances_found": numbers,
    }
    signals = {name: np.where(numbers > (name == "citance_2"), of, np.nan) for name, of in values.items()}
    keys = np.full(len(rows), -1)
    keys[has] = order[begins[has]]

    def best(hit: int) -> CitanceKey:
        """The best citing sentence of a paper; of several with equal scores the first by citing paper and position."""
        alike = np.flatnonzero((citances.rows == citances.rows[hit]) & (citances.scores == citances.scores[hit]))
        citing_id, position = min((said(int(at)) for at in alike), key=lambda one: (one[0].encode(), one[1]))
        return CitanceKey(citing_id, position, weight * float(citances.scores[hit]))

    return Candidates(rows_of, rows, scores, {"bm25": words, **signals}, (Citances(keys, best),)).in_order()
