"""Tokens as vectors: TF-IDF over a learnt vocabulary, block by block."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from citerec.discourse.features import Tokens

WEIGHTS = {"words": 1.0, "characters": 1.0, "surroundings": 0.5, "cues": 0.5, "place": 1.0}
"""Length of each block's part of a vector (ours: by cross-validation on the train files, docs/results.md)."""

_RARE = 2  # tokens in fewer sentences are left out


class Vectors:
    """Makes sparse vectors of tokens: 1 + ln(count), times ln((1 + n) / (1 + sentences with it)) + 1, to unit length.

    As in scikit-learn's TfidfVectorizer with `sublinear_tf`; each block separately, then times its weight. `vocabulary`
    has the tokens of each block in the order of the columns, `idf` the factor of each, blocks one after the other.
    """

    def __init__(self, vocabulary: Mapping[str, Sequence[str]], idf: npt.NDArray[np.float32]) -> None:
        self.vocabulary = vocabulary
        self.idf = idf
        self._columns = {block: {token: at for at, token in enumerate(vocabulary[block])} for block in vocabulary}

    @classmethod
    def learn(cls, sentences: Iterable[Tokens], blocks: Sequence[str]) -> "tuple[Self, Rows]":
        """Learns the vocabulary of some sentences, in these blocks; also gives their vectors, as `matrix` does."""
        columns: dict[str, dict[str, int]] = {block: {} for block in blocks}
        counts = _counts(sentences, columns, grow=True)
        vocabulary, idf = {}, []
        for block, rows in counts.items():
            tokens = list(columns[block])
            having = np.bincount(rows.columns, minlength=len(tokens))
            order = sorted(np.flatnonzero(having >= _RARE).tolist(), key=tokens.__getitem__)
            vocabulary[block] = [tokens[at] for at in order]
            idf.append(np.log(len(rows.begins) / (1 + having[order])) + 1)
            places = np.full(len(tokens), -1)
            places[order] = np.arange(len(order))
            counts[block] = rows.chosen(places, len(order))
        vectors = cls(vocabulary, np.concatenate(idf).astype(np.float32))
        return vectors, vectors._weighed(counts)

    def matrix(self, sentences: Iterable[Tokens]) -> "Rows":
        """The vectors of some sentences, sentences × tokens of all blocks."""
        return self._weighed(_counts(sentences, self._columns, grow=False))

    def _weighed(self, counts: Mapping[str, "Rows"]) -> "Rows":
        values, columns, owners, begin = [], [], [], 0
        for block, rows in counts.items():
            weights = (1 + np.log(rows.values)) * self.idf[begin : begin + rows.width][rows.columns]
            lengths = np.sqrt(np.bincount(rows.owners, weights**2, len(rows.begins) - 1))
            values.append(weights * (WEIGHTS[block] / lengths[rows.owners]))
            columns.append(rows.columns + begin)
            owners.append(rows.owners)
            begin += rows.width
        joined = np.concatenate(owners)
        order = np.argsort(joined, kind="stable")
        count = len(next(iter(counts.values())).begins) - 1
        begins = np.concatenate([[0], np.cumsum(np.bincount(joined, minlength=count))])
        return Rows(np.concatenate(values)[order], np.concatenate(columns)[order], begins, begin)


class Rows(NamedTuple):
    """Sparse rows.

    Attributes:
        values: The numbers of all rows, one after the other, that are not zero.
        columns: Their columns.
        begins: Where the numbers of each row begin, and the end.
        width: How many columns there are.
    """

    values: npt.NDArray[np.float64]
    columns: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    width: int

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """The row of each number."""
        return np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))

    def chosen(self, places: npt.NDArray[np.int64], width: int) -> "Rows":
        """The same rows with other columns: those at `places`, by the old ones; -1 leaves a column out."""
        columns = places[self.columns]
        kept = columns >= 0
        sums = np.concatenate([[0], np.cumsum(kept)])
        return Rows(self.values[kept], columns[kept], sums[self.begins], width)

    def __matmul__(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The products with weights, (columns,) or (columns, n): (rows,) or (rows, n)."""
        owners, count = self.owners, len(self.begins) - 1
        products = [np.bincount(owners, self.values * one[self.columns], count) for one in np.atleast_2d(weights.T)]
        return np.asarray(np.stack(products, axis=1) if weights.ndim > 1 else products[0], np.float64)

    def csr(self) -> Any:
        """As a CSR matrix of scipy."""
        from scipy import sparse

        return sparse.csr_matrix((self.values, self.columns, self.begins), shape=(len(self.begins) - 1, self.width))


def _counts(sentences: Iterable[Tokens], columns: Mapping[str, dict[str, int]], *, grow: bool) -> dict[str, Rows]:
    """How often each sentence has each token, for each block. New tokens get a column, or are left out."""
    places: dict[str, list[int]] = {block: [] for block in columns}
    values: dict[str, list[int]] = {block: [] for block in columns}
    begins = {block: [0] for block in columns}
    # One sentence at a time: as texts, the tokens of a training set would take a gigabyte.
    for tokens in sentences:
        for block, known in columns.items():
            for token, count in Counter(tokens[block]).items():
                place = known.setdefault(token, len(known)) if grow else known.get(token)
                if place is not None:
                    places[block].append(place)
                    values[block].append(count)
            begins[block].append(len(places[block]))
    return {
        block: Rows(
            np.array(values[block], np.float64), np.array(places[block], np.int64), np.array(begins[block]), len(known)
        )
        for block, known in columns.items()
    }
