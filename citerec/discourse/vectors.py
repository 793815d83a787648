"""Tokens as vectors: TF-IDF over a learnt vocabulary, block by block."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

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
    def learn(cls, sentences: Iterable[Tokens], blocks: Sequence[str]) -> tuple[Self, Any]:
        """Learns the vocabulary of some sentences, in these blocks; also gives their vectors, as `matrix` does."""
        columns: dict[str, dict[str, int]] = {block: {} for block in blocks}
        counts = _counts(sentences, columns, grow=True)
        vocabulary, idf, kept = {}, [], {}
        for block, matrix in counts.items():
            tokens = list(columns[block])
            having = np.bincount(matrix.indices, minlength=len(tokens))
            order = sorted(np.flatnonzero(having >= _RARE).tolist(), key=tokens.__getitem__)
            vocabulary[block] = [tokens[at] for at in order]
            idf.append(np.log((1 + matrix.shape[0]) / (1 + having[order])) + 1)
            kept[block] = matrix[:, order]
        vectors = cls(vocabulary, np.concatenate(idf).astype(np.float32))
        return vectors, vectors._weighed(kept)

    def matrix(self, sentences: Iterable[Tokens]) -> Any:
        """The vectors of some sentences: a scipy CSR matrix, sentences × tokens of all blocks."""
        return self._weighed(_counts(sentences, self._columns, grow=False))

    def _weighed(self, counts: Mapping[str, Any]) -> Any:
        from scipy import sparse

        parts, begin = [], 0
        for block, matrix in counts.items():
            end = begin + matrix.shape[1]
            matrix.data = (1 + np.log(matrix.data)) * self.idf[begin:end][matrix.indices]
            rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
            lengths = np.sqrt(np.bincount(rows, matrix.data**2, matrix.shape[0]))
            matrix.data *= WEIGHTS[block] / lengths[rows]
            parts.append(matrix)
            begin = end
        return sparse.hstack(parts, format="csr")


def _counts(sentences: Iterable[Tokens], columns: Mapping[str, dict[str, int]], *, grow: bool) -> dict[str, Any]:
    """How often each sentence has each token: a CSR matrix for each block. New tokens get a column, or are left out."""
    from scipy import sparse

    places: dict[str, list[int]] = {block: [] for block in columns}
    values: dict[str, list[int]] = {block: [] for block in columns}
    ends = {block: [0] for block in columns}
    # One sentence at a time: as texts, the tokens of a training set would take a gigabyte.
    for tokens in sentences:
        for block, known in columns.items():
            for token, count in Counter(tokens[block]).items():
                place = known.setdefault(token, len(known)) if grow else known.get(token)
                if place is not None:
                    places[block].append(place)
                    values[block].append(count)
            ends[block].append(len(places[block]))
    return {
        block: sparse.csr_matrix(
            (np.array(values[block], np.float64), np.array(places[block], np.int32), np.array(ends[block], np.int64)),
            shape=(len(ends[block]) - 1, len(known)),
        )
        for block, known in columns.items()
    }
