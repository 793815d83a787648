"""BM25 of one field: the score of each term in each text, computed once, and added up when something is searched.

After BM25S (Lù, arXiv 2407.03618), in files that its package opens too: a sparse matrix by columns, `data` (scores),
`indices` (rows of texts, ascending within a term) and `indptr` (where each term begins). Beside them are the numbers of
the terms, sorted, so that the vocabulary need not be read.
"""

import copy
import functools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from citerec.errors import IndexUnusableError
from citerec.files.resume import read_json
from citerec.files.writing import write_json
from citerec.index.arrays import ArrayWriter, Rows, begins_of, mapped
from citerec.index.columns import hash_of
from citerec.index.words.analysis import Analysis

Floats = NDArray[np.float32]

SCORES, ROWS, BEGINS = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"
VOCABULARY, PARAMETERS, TERMS, LENGTHS = "vocab.index.json", "params.index.json", "terms.npy", "lengths.npy"

_MERGED = 1 << 22  # postings that are merged at once
_MOST_TIMES = 2**16 - 1
_BLOCK = 64


K1, B = 1.2, 0.75
"""The parameters of BM25 of the scores in files."""


def norms_of(lengths: NDArray[np.int32], k1: float = K1, b: float = B) -> Floats:
    """What times of a term are weighed against in texts of some lengths: `k1 · (1 − b + b · length / mean)`.

    The mean is that of the texts that have a term at all.
    """
    mean = float(lengths.sum(dtype=np.int64)) / _having(lengths)
    return (k1 * (1 - b + b * lengths / (mean or 1.0))).astype(np.float32)


def _having(lengths: NDArray[np.int32]) -> int:
    """How many texts have a term at all, at least 1."""
    return max(1, int(np.count_nonzero(lengths)))


def inverse_frequency(count: NDArray[Any] | int, having: int) -> Floats:
    """How much a term of `count` of `having` texts tells, as in Lucene: `ln(1 + (N − df + 0.5) / (df + 0.5))`."""
    return np.log1p((having - count + 0.5) / (count + 0.5)).astype(np.float32)


class Postings:
    """The scores of the terms of a field, memory-mapped. Safe to use from several threads.

    Scores for other parameters are made from those in the files when they are asked for, which takes longer.

    Args:
        folder: The folder of the files.

    Attributes:
        count: How many texts there are.
    """

    def __init__(self, folder: Path) -> None:
        self._terms: NDArray[np.uint64] = mapped(folder / TERMS)
        self._begins: Rows = mapped(folder / BEGINS)
        self._rows: NDArray[np.int32] = mapped(folder / ROWS)
        self._scores: Floats = mapped(folder / SCORES)
        self._lengths: NDArray[np.int32] = mapped(folder / LENGTHS)
        self.count = len(self._lengths)
        stated, sizes = read_json(folder / PARAMETERS) or {}, {len(self._rows), len(self._scores), *self._begins[-1:]}
        if len(self._begins) != len(self._terms) + 1 or len(sizes) > 1 or stated.get("num_docs") != self.count:
            raise IndexUnusableError(f"{folder} is damaged: its files do not fit together", "Build the index again.")
        self._norms: tuple[Floats, Floats] | None = None

    def with_parameters(self, k1: float, b: float) -> "Postings":
        """The same files, with scores for some parameters."""
        if (k1, b) == (K1, B):
            return self
        other = copy.copy(self)
        other._norms = norms_of(self._lengths), norms_of(self._lengths, k1, b)
        return other

    @functools.cached_property
    def _having(self) -> int:
        return _having(self._lengths)

    def _columns(self, terms: Sequence[str]) -> Iterator[tuple[int, NDArray[np.int32], Floats]]:
        """Of those terms that the vocabulary has: the place among them all, the rows of their texts, the scores."""
        numbers = np.array([*map(hash_of, terms)], np.uint64)
        places = np.minimum(np.searchsorted(self._terms, numbers), len(self._terms) - 1)
        known = self._terms[places] == numbers if len(self._terms) else np.zeros(len(numbers), bool)
        for at in np.flatnonzero(known).tolist():
            begin, end = self._begins[places[at] : places[at] + 2].tolist()
            rows, scores = self._rows[begin:end], self._scores[begin:end]
            if self._norms is not None:
                built, wanted = (norms[rows] for norms in self._norms)
                weight = inverse_frequency(len(rows), self._having)
                times = np.rint(scores * built / (weight - scores))
                scores = (weight * times / (times + wanted)).astype(np.float32)
            yield at, rows, scores

    def add(self, scores: Floats, terms: Mapping[str, float], weight: float = 1.0) -> None:
        """Adds to the scores of all texts, (texts,), those of some terms, each with its weight."""
        weights = [*terms.values()]
        for at, rows, of_rows in self._columns([*terms]):
            np.add.at(scores, rows, of_rows * np.float32(weight * weights[at]))

    def scores_of(self, rows: Rows, terms: Sequence[str]) -> Floats:
        """The scores of some terms in some texts, (rows, terms); 0 where a text lacks the term."""
        found = np.zeros((len(rows), len(terms)), np.float32)
        for at, having, scores in self._columns(terms):
            # Of one type: else all rows of the term would be made of the other.
            where = np.minimum(np.searchsorted(having, rows.astype(having.dtype)), len(having) - 1)
            found[:, at] = np.where(having[where] == rows, scores[where], np.float32(0))
        return found


def best_rows(scores: Floats, k: int) -> Rows:
    """The rows of the k best scores above 0, best first; of equal scores the first row comes first.

    The maxima of blocks tell a bound, so that only few rows are sorted: at least k blocks reach the k-th best maximum.
    """
    bound = np.float32(0)
    blocks = len(scores) // _BLOCK
    if k < blocks:
        maxima = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
        bound = np.partition(maxima, blocks - k)[blocks - k]
    rows = np.flatnonzero(scores >= bound if bound > 0 else scores > 0)
    return rows[np.lexsort((rows, -scores[rows]))][:k]


class PostingsWriter:
    """Writes the postings of a field, of texts that are given in parts. Memory grows with a part and the vocabulary.

    Args:
        folder: Where to; it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._work = folder, folder / ".parts"
        self._work.mkdir(parents=True)
        self._postings = ArrayWriter(self._work / "postings.npy", [("row", "<i4"), ("times", "<u2")])
        self._terms = (self._work / "terms.txt").open("w+", encoding="utf-8", newline="\n")
        self._parts: list[_Part] = []
        self._lengths = [np.zeros(0, np.int32)]
        self._count = 0

    def append(self, *texts: Analysis) -> None:
        """Adds texts. Of several analyses, each has a piece of every text; all have the same vocabulary."""
        owners = [np.repeat(np.arange(len(one.lengths)), one.lengths) for one in texts]
        keys = [one.places.astype(np.int64) << 32 | owner for one, owner in zip(texts, owners, strict=True)]
        keys_of, times = np.unique(np.concatenate(keys), return_counts=True)
        places, firsts = np.unique(keys_of >> 32, return_index=True)
        begins = self._postings.rows + np.append(firsts, len(keys_of))
        self._parts.append(_Part(texts[0].numbers[places], begins))
        postings = np.empty(len(keys_of), self._postings.dtype)
        postings["row"] = (keys_of & 0xFFFFFFFF) + self._count
        postings["times"] = np.minimum(times, _MOST_TIMES)
        self._postings.append(postings)
        self._terms.writelines(f"{texts[0].terms[place]}\n" for place in places.tolist())
        self._lengths.append(np.sum([one.lengths for one in texts], axis=0, dtype=np.int32))
        self._count += len(texts[0].lengths)

    def finish(self) -> None:
        """Merges the parts, a range of terms at a time, and writes what `Postings` and bm25s read."""
        self._postings.close()
        lengths = np.concatenate(self._lengths)
        terms = functools.reduce(np.union1d, (part.numbers for part in self._parts), np.zeros(0, np.uint64))
        counts = np.zeros(len(terms), np.int64)
        for part in self._parts:
            counts[np.searchsorted(terms, part.numbers)] += np.diff(part.begins)
        begins = begins_of(counts)
        np.save(self._folder / LENGTHS, lengths)
        np.save(self._folder / TERMS, terms)
        np.save(self._folder / BEGINS, begins)
        weights, norms = inverse_frequency(counts, _having(lengths)), norms_of(lengths)
        postings = mapped(self._work / "postings.npy")
        with ArrayWriter(self._folder / SCORES, "<f4") as scores, ArrayWriter(self._folder / ROWS, "<i4") as rows:
            for first, last in _ranges(begins):
                parts = [part.between(terms[first], terms[last - 1]) for part in self._parts]
                of_parts = [np.searchsorted(terms, one.numbers).repeat(np.diff(one.begins)) for one in parts]
                places = np.concatenate(of_parts)
                found = np.concatenate([postings[one.begins[0] : one.begins[-1]] for one in parts])
                order = np.argsort(places, kind="stable")  # parts are in order of row
                places, found = places[order], found[order]
                tf = found["times"].astype(np.float32)
                scores.append(weights[places] * tf / (tf + norms[found["row"]]))
                rows.append(found["row"])
        self._write_vocabulary(terms)
        stated: dict[str, Any] = {"method": "lucene", "idf_method": "lucene", "dtype": "float32", "int_dtype": "int32"}
        stated |= {"k1": K1, "b": B, "delta": 0.5, "num_docs": self._count}
        write_json(self._folder / PARAMETERS, stated)
        shutil.rmtree(self._work)

    def _write_vocabulary(self, terms: NDArray[np.uint64]) -> None:
        """Writes the place of each term, which bm25s looks up, in order of place."""
        spelled = [""] * len(terms)
        with self._terms as lines:
            lines.seek(0)
            for part in self._parts:
                for place, line in zip(np.searchsorted(terms, part.numbers).tolist(), lines, strict=False):
                    spelled[place] = line.rstrip("\n")
        with (self._folder / VOCABULARY).open("wb") as file:
            file.write(b"{")
            for place, term in enumerate(spelled):
                file.write(b"%s%s:%d" % (b"," if place else b"", orjson.dumps(term), place))
            file.write(b"}")


class _Part(NamedTuple):
    """The numbers of the terms of some texts, in order; where the postings of each begin, and those of the last end."""

    numbers: NDArray[np.uint64]
    begins: Rows

    def between(self, first: np.uint64, last: np.uint64) -> "_Part":
        """The terms with numbers from one to another, both included."""
        begin, end = self.numbers.searchsorted(first), self.numbers.searchsorted(last, "right")
        return _Part(self.numbers[begin:end], self.begins[begin : end + 1])


def _ranges(begins: Rows) -> Iterator[tuple[int, int]]:
    """Ranges of terms with at most so many postings as are merged at once; a more frequent term is one by itself."""
    first, last = 0, len(begins) - 1
    while first < last:
        end = int(np.searchsorted(begins, begins[first] + _MERGED, "right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end
