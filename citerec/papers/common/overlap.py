"""Texts that are nearly the same: pairs with a high cosine of their TF-IDF vectors, found without comparing all."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS = 1024  # rows of a block
_PAIRS_AT_ONCE = 50_000

Pairs = npt.NDArray[np.int64]
"""Pairs × 2: a row of the first texts and one of the second."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many pairs of texts are nearly the same, and the share of the texts that are in one of them."""

    pairs: int
    share: float

    @classmethod
    def of(cls, pairs: Pairs, rows: Pairs, whole: int) -> Self:
        """From pairs, the rows of the texts that count, and the number of all texts."""
        return cls(len(pairs), len(np.unique(rows)) / whole if whole else 0.0)


def tfidf(texts: Sequence[Iterator[str]]) -> "list[csr_array]":
    """TF-IDF vectors of some sets of texts, of length 1, with weights from all of them together.

    As scikit-learn's `TfidfVectorizer` makes them by default: words of two letters and more, in small letters.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    sizes: list[int] = []

    def of_all() -> Iterator[str]:
        for one in texts:
            size = 0
            for size, text in enumerate(one, 1):  # noqa: B007  the last number is the size
                yield text
            sizes.append(size)

    try:
        whole = csr_array(TfidfVectorizer(dtype=np.float32).fit_transform(of_all()))
    except ValueError:  # no text has a word
        whole = csr_array((sum(sizes), 1), dtype=np.float32)
    ends = np.cumsum([0, *sizes])
    return [whole[begin:end] for begin, end in itertools.pairwise(ends)]


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
    rare = _rare_part(first, cosine)
    others = (first if second is None else second).T.tocsr()
    rows = first if second is None else second
    found = [np.empty((0, 2), np.int64)]
    for begin in range(0, first.shape[0], _ROWS):
        shared = (rare[begin : begin + _ROWS] @ others).tocoo()
        left, right = shared.row.astype(np.int64) + begin, shared.col.astype(np.int64)
        if second is None:
            left, right = left[left < right], right[left < right]
        for at in range(0, len(left), _PAIRS_AT_ONCE):
            pairs = np.stack([left[at : at + _PAIRS_AT_ONCE], right[at : at + _PAIRS_AT_ONCE]], axis=1)
            cosines = first[pairs[:, 0]].multiply(rows[pairs[:, 1]]).sum(axis=1)
            found.append(pairs[np.asarray(cosines).ravel() > cosine])
        on_progress(min(begin + _ROWS, first.shape[0]), first.shape[0])
    joined = np.concatenate(found)
    return joined[np.lexsort((joined[:, 1], joined[:, 0]))]


def _rare_part(vectors: "csr_array", cosine: float) -> Any:
    """Of each row its rarest words, until the rest is shorter than the cosine."""
    from scipy.sparse import csr_array

    frequency = np.bincount(vectors.indices, minlength=vectors.shape[1])
    row_of = np.repeat(np.arange(vectors.shape[0]), np.diff(vectors.indptr))
    order = np.lexsort((vectors.indices, frequency[vectors.indices], row_of))
    squares = vectors.data[order].astype(np.float64) ** 2
    before = np.cumsum(squares) - squares
    # What is left from each word on, in its row; a little more, so that rounding loses no pair.
    ends = np.concatenate([np.cumsum(squares), [0.0]])[vectors.indptr[1:] - 1] if len(squares) else before
    left = (ends[row_of] if len(squares) else before) - before
    kept = order[left >= cosine**2 - 1e-6]
    return csr_array((vectors.data[kept], (row_of[kept], vectors.indices[kept])), shape=vectors.shape)
