"""Hits of an engine as rows of papers: ties settled by paper id, citing sentences added up; for all engines."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from citerec.index.candidates import Candidates, CitanceKey, Citances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.rows import PaperRows

DEPTH = 1000
"""How deep both lists are read before the scores of a paper and its citances are added up; and how many of the best
citing sentences count in the signals for rankers.

Scores must not depend on k, so this is not a multiple of k.
"""

# Hits with equal scores: more are found, so that ties at the end are settled by id.
_SLACK = 16


class Hits(NamedTuple):
    """The rows of papers that were found, best first, with their scores and the engine's documents, (hits,) each."""

    rows: "NDArray[np.int64]"
    scores: "NDArray[np.float64]"
    documents: "NDArray[np.int64] | None" = None


def settled(found: Callable[[int], Hits], k: int) -> Hits:
    """The first k hits of an engine that orders ties as it likes; here they are ordered by paper id.

    Args:
        found: As many of the best hits as are asked for, in any order among equal scores.
        k: How many are wanted.
    """
    import numpy as np

    wanted = k + _SLACK
    while True:
        hits = found(wanted)
        if len(hits.scores) < wanted or hits.scores[-1] < hits.scores[k - 1]:
            break
        wanted *= 4
    order = np.lexsort((hits.rows, -hits.scores))[:k]
    return Hits(hits.rows[order], hits.scores[order], None if hits.documents is None else hits.documents[order])


def added_up(
    rows_of: "PaperRows",
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
    import numpy as np

    weight, decay = weights
    rows = np.unique(np.concatenate([papers.rows, citances.rows]))
    words = np.full(len(rows), np.nan)
    words[np.searchsorted(rows, papers.rows)] = papers.scores
    # The citing sentences of a paper together, best first.
    order = np.lexsort((np.arange(len(citances.rows)), citances.rows))
    owners, scored = np.searchsorted(rows, citances.rows[order]), citances.scores[order]
    counts = np.bincount(owners, minlength=len(rows))
    begins = np.cumsum(counts) - counts
    shares = weight * scored * decay ** (np.arange(len(scored)) - begins[owners])
    scores = np.nan_to_num(words) + np.bincount(owners, shares, len(rows))
    has, found = counts > 0, scored >= least
    numbers = np.bincount(owners[found], minlength=len(rows))
    padded = np.append(scored, [np.nan, np.nan])
    signals = {
        "citance": np.where(numbers > 0, padded[begins], np.nan),
        "citance_2": np.where(numbers > 1, padded[begins + 1], np.nan),
        "citances": np.where(numbers > 0, np.bincount(owners[found], scored[found], len(rows)), np.nan),
        "citances_found": np.where(numbers > 0, numbers.astype(np.float64), np.nan),
    }
    keys = np.full(len(rows), -1)
    keys[has] = order[begins[has]]

    def best(hit: int) -> CitanceKey:
        """The best citing sentence of a paper; of several with equal scores the first by citing paper and position."""
        alike = np.flatnonzero((citances.rows == citances.rows[hit]) & (citances.scores == citances.scores[hit]))
        citing_id, position = min((said(int(at)) for at in alike), key=lambda one: (one[0].encode(), one[1]))
        return CitanceKey(citing_id, position, weight * float(citances.scores[hit]))

    return Candidates(rows_of, rows, scores, {"bm25": words, **signals}, (Citances(keys, best),)).in_order()
