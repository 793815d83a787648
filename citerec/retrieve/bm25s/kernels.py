"""The two loops of a search, compiled by numba when first called. They release Python's lock."""

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """A loop of this module, compiled; on disk, where numba finds a place for it."""
    import numba

    try:
        found: Callable[..., Any] = numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        found = numba.njit(nogil=True)(loop)
    return found


def add_scores(scores: Any, terms: Any, weights: Any, begins: Any, rows: Any, values: Any) -> None:
    """Adds the weighted scores of some terms to those of the papers.

    Args:
        scores: float32, (papers,); added to.
        terms: Numbers of terms, (terms,).
        weights: Their weights, float32, (terms,).
        begins: Where the scores of each term begin, (all terms + 1,).
        rows: The papers of the scores, (postings,).
        values: The scores, float32, (postings,).
    """
    for at in range(len(terms)):
        weight, term = weights[at], terms[at]
        for place in range(begins[term], begins[term + 1]):
            scores[rows[place]] += weight * values[place]


def best_rows(scores: Any, bits: Any, best: Any, rows: Any) -> int:
    """Finds the papers with the best scores above 0, and of those with equal scores the first ones.

    `best` and `rows` become a heap with the worst on top: the least score, and of equal ones the last row.

    Args:
        scores: float32, (papers,).
        bits: A bit for each paper, the first one lowest: whether it may be found; empty if all may.
        best: Receives the scores, in no particular order, (k,).
        rows: Receives the rows, (k,).

    Returns:
        How many were found, at most k.
    """
    found, k = 0, len(best)
    for row in range(len(scores)):
        score = scores[row]
        if score <= 0 or (found == k and score <= best[0]):
            continue
        if len(bits) and not (bits[row >> 3] >> (row & 7)) & 1:
            continue
        if found < k:  # it rises from the end: as the last row it is worse than all of equal score
            at = found
            found += 1
            while at > 0 and score <= best[(at - 1) >> 1]:
                best[at], rows[at] = best[(at - 1) >> 1], rows[(at - 1) >> 1]
                at = (at - 1) >> 1
        else:  # it replaces the worst, and sinks below those that are worse
            at = 0
            while 2 * at + 1 < k:
                child = 2 * at + 1
                if child + 1 < k and (
                    best[child + 1] < best[child] or (best[child + 1] == best[child] and rows[child + 1] > rows[child])
                ):
                    child += 1
                if best[child] >= score:
                    break
                best[at], rows[at] = best[child], rows[child]
                at = child
        best[at], rows[at] = score, row
    return found
