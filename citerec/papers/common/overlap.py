"""Texts that are nearly the same: pairs with a high cosine of their TF-IDF vectors, found without comparing all."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS = 1024  # rows of a block
_PAIRS_AT_ONCE = 50_000

Pairs = npt.NDArray[np.int64]
"""Pairs × 2: a row of the first texts and one of the second."""


def overlap(pairs: Pairs, rows: Pairs, whole: int) -> dict[str, float]:
    """How many `pairs` of texts are nearly the same, and the `share` of the texts that are in one of them.

    Args:
        pairs: The pairs.
        rows: The rows of the texts that count.
        whole: The number of all texts.
    """
    return {"pairs": len(pairs), "share": len(np.unique(rows)) / whole if whole else 0.0}


def tfidf(texts: Iterable[str]) -> "csr_array":
    """TF-IDF vectors of some texts, of length 1; no rows at all if no text has a word.

    As scikit-learn's `TfidfVectorizer` makes them by default: words of two letters and more, in small letters.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return csr_array(TfidfVectorizer(dtype=np.float32).fit_transform(texts))
    except ValueError:  # an empty vocabulary
        return csr_array((0, 1), dtype=np.float32)


def near_pairs(
    first: "csr_array",
    second: "csr_array | None",
    cosine: float,
    on_progress: Callable[[int, int], None] = lambda _done, _whole: None,
) -> Pairs:
    """The pairs of rows whose cosine is higher than a threshold, in order; exact.

    A text is compared only with texts that share one of its rare words: as many of these, rarest first, as are needed
    until the rest of its vector is shorter than the threshold, for then a text without any of them cannot be so near
    (Bayardo, Ma & Srikant, WWW 2007, section 4.2, with the length in place of the greatest weights).

    Args:
        first: Vectors of length 1, or 0; by row.
        second: Others over the same words; None to compare the first with each other, each pair once.
        cosine: The threshold, between 0 and 1.
        on_progress: Called with the rows done and their number.
    """
    rare, others = _rare_part(first, cosine), first if second is None else second
    words = others.T.tocsr()
    blocks = [np.empty((0, 2), np.int64)]
    for begin in range(0, first.shape[0], _ROWS):
        shared = (rare[begin : begin + _ROWS] @ words).tocoo()
        candidates = np.stack([shared.row.astype(np.int64) + begin, shared.col.astype(np.int64)], axis=1)
        if second is None:
            candidates = candidates[candidates[:, 0] < candidates[:, 1]]
        for at in range(0, len(candidates), _PAIRS_AT_ONCE):
            pairs = candidates[at : at + _PAIRS_AT_ONCE]
            cosines = first[pairs[:, 0]].multiply(others[pairs[:, 1]]).sum(axis=1)
            blocks.append(pairs[np.asarray(cosines).ravel() > cosine])
        on_progress(min(begin + _ROWS, first.shape[0]), first.shape[0])
    joined = np.concatenate(blocks)
    return joined[np.lexsort((joined[:, 1], joined[:, 0]))]


def _rare_part(vectors: "csr_array", cosine: float) -> "csr_array":
    """Of each row its rarest words, until the rest is shorter than the cosine."""
    from scipy.sparse import csr_array

    frequency = np.bincount(vectors.indices, minlength=vectors.shape[1])
    row_of = np.repeat(np.arange(vectors.shape[0]), np.diff(vectors.indptr))
    order = np.lexsort((vectors.indices, frequency[vectors.indices], row_of))
    sums = np.concatenate([[0.0], np.cumsum(vectors.data[order].astype(np.float64) ** 2)])
    # What is left of its row from each word on; a little more, so that rounding loses no pair.
    left = sums[vectors.indptr[1:]][row_of] - sums[:-1]
    kept = order[left >= cosine**2 - 1e-6]
    return csr_array((vectors.data[kept], (row_of[kept], vectors.indices[kept])), shape=vectors.shape)
