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
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from citerec.errors import IndexUnusableError
from citerec.files.resume import read_json
from citerec.files.writing import write_json
from citerec.index.arrays import ArrayWriter, mapped
from citerec.index.columns import hash_of
from citerec.index.words.analysis import Analysis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

SCORES, ROWS, BEGINS = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"
VOCABULARY, PARAMETERS, TERMS, LENGTHS = "vocab.index.json", "params.index.json", "terms.npy", "lengths.npy"

_MERGED = 1 << 22  # postings that are merged at once
_MOST_TIMES = 2**16 - 1
_BLOCK = 64


class Bm25(NamedTuple):
    """The parameters of BM25. The defaults are those of the scores in files."""

    k1: float = 1.2
    b: float = 0.75

    def norms(self, lengths: "NDArray[np.int32]", mean: float) -> "Floats":
        """What times of a term are weighed against in texts of some lengths: `k1 · (1 − b + b · length / mean)`."""
        import numpy as np

        return (self.k1 * (1 - self.b + self.b * lengths / (mean or 1.0))).astype(np.float32)


def inverse_frequency(count: "NDArray[Any] | int", having: int) -> "Floats":
    """How much a term of `count` of `having` texts tells, as in Lucene: `ln(1 + (N − df + 0.5) / (df + 0.5))`."""
    import numpy as np

    return np.log1p((having - count + 0.5) / (count + 0.5)).astype(np.float32)


def statistics_of(lengths: "NDArray[np.int32]") -> tuple[int, float]:
    """How many texts have a term at all, at least 1; and how many terms these have on average."""
    import numpy as np

    having = max(1, int(np.count_nonzero(lengths)))
    return having, float(lengths.sum(dtype=np.int64)) / having


BUILT = Bm25()


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
        self._begins: NDArray[np.int64] = mapped(folder / BEGINS)
        self._rows: NDArray[np.int32] = mapped(folder / ROWS)
        self._scores: Floats = mapped(folder / SCORES)
        stated = read_json(folder / PARAMETERS) or {}
        self.count = int(stated.get("num_docs", -1))
        lengths = len(self._terms) + 1, len(self._rows), int(self._begins[-1]) if len(self._begins) else -1
        if lengths != (len(self._begins), len(self._scores), len(self._rows)) or self.count < 0:
            raise IndexUnusableError(f"{folder} is damaged: its files do not fit together", "Build the index again.")
        self._lengths: NDArray[np.int32] = mapped(folder / LENGTHS)
        self._norms: tuple[Floats, Floats] | None = None

    def with_parameters(self, bm25: Bm25) -> "Postings":
        """The same files, with scores for some parameters."""
        if bm25 == BUILT:
            return self
        other, (_, mean) = copy.copy(self), self._statistics
        other._norms = BUILT.norms(self._lengths, mean), bm25.norms(self._lengths, mean)
        return other

    def close(self) -> None:
        """Nothing: the files are mapped."""

    @functools.cached_property
    def _statistics(self) -> tuple[int, float]:
        return statistics_of(self._lengths)

    def places(self, terms: Sequence[str]) -> "Rows":
        """The places of some terms in the vocabulary, (terms,); -1 for those that it lacks."""
        import numpy as np

        wanted = np.array([*map(hash_of, terms)], np.uint64)
        if not len(self._terms):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self._terms, wanted), len(self._terms) - 1)
        return np.where(self._terms[places] == wanted, places, -1)

    def add(self, scores: "Floats", terms: Mapping[str, float], weight: float = 1.0) -> None:
        """Adds to the scores of all texts, (texts,), those of some terms, each with its weight."""
        import numpy as np

        for place, of_term in zip(self.places(list(terms)).tolist(), terms.values(), strict=True):
            if place >= 0:
                rows, of_rows = self._column(place)
                np.add.at(scores, rows, of_rows * np.float32(weight * of_term))

    def scores_of(self, rows: "Rows", terms: Sequence[str]) -> "Floats":
        """The scores of some terms in some texts, (rows, terms); 0 where a text lacks the term."""
        import numpy as np

        found = np.zeros((len(rows), len(terms)), np.float32)
        for at, place in enumerate(self.places(terms).tolist()):
            if place >= 0:
                found[:, at] = _at_rows(rows, *self._column(place))
        return found

    def _built(self, place: int) -> "tuple[NDArray[np.int32], Floats]":
        """The rows of the texts with a term, and their scores in the files."""
        part = slice(int(self._begins[place]), int(self._begins[place + 1]))
        return self._rows[part], self._scores[part]

    def _column(self, place: int) -> "tuple[NDArray[np.int32], Floats]":
        """The rows of the texts with a term, and their scores."""
        import numpy as np

        rows, scores = self._built(place)
        if self._norms is None:
            return rows, scores
        weight = inverse_frequency(len(rows), self._statistics[0])
        built, wanted = (norms[rows] for norms in self._norms)
        times = _times(scores, weight, built)
        found: Floats = (weight * times / (times + wanted)).astype(np.float32)
        return rows, found


def _at_rows(rows: "Rows", of_term: "NDArray[np.int32]", scores: "Floats") -> "Floats":
    """The scores of a term in some texts, (rows,), of those of all texts that have it; 0 for the others."""
    import numpy as np

    # Of one type: else all rows of the term would be made of the other.
    where = np.minimum(np.searchsorted(of_term, rows.astype(of_term.dtype)), len(of_term) - 1)
    return np.where(of_term[where] == rows, scores[where], np.float32(0))


def _times(scores: "Floats", weight: "Floats", norms: "Floats") -> "Floats":
    """How often texts have a term with these scores and this weight."""
    import numpy as np

    times: Floats = np.rint(scores * norms / (weight - scores))
    return times


def best_rows(scores: "Floats", k: int) -> "Rows":
    """The rows of the k best scores above 0, best first; of equal scores the first row comes first.

    The maxima of blocks tell a bound, so that only few rows are sorted: at least k blocks reach the k-th best maximum.
    """
    import numpy as np

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
        self._terms = (self._work / "terms.txt").open("w", encoding="utf-8", newline="\n")
        self._parts: list[_Part] = []
        self._lengths: list[NDArray[np.int32]] = []
        self._count = 0

    def append(self, *texts: Analysis) -> None:
        """Adds texts. Of several analyses, each has a piece of every text; all have the same vocabulary."""
        import numpy as np

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
        import numpy as np

        self._postings.close()
        self._terms.close()
        lengths = np.concatenate([np.zeros(0, np.int32), *self._lengths])
        terms = functools.reduce(np.union1d, (part.numbers for part in self._parts), np.zeros(0, np.uint64))
        counts = np.zeros(len(terms), np.int64)
        for part in self._parts:
            counts[np.searchsorted(terms, part.numbers)] += np.diff(part.begins)
        begins = np.concatenate([[0], np.cumsum(counts)])
        having, mean = statistics_of(lengths)
        weights, norms = inverse_frequency(counts, having), BUILT.norms(lengths, mean)
        np.save(self._folder / LENGTHS, lengths)
        np.save(self._folder / TERMS, terms)
        np.save(self._folder / BEGINS, begins)
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
        stated |= {"k1": BUILT.k1, "b": BUILT.b, "delta": 0.5, "num_docs": self._count}
        write_json(self._folder / PARAMETERS, stated)
        shutil.rmtree(self._work)

    def _write_vocabulary(self, terms: "NDArray[np.uint64]") -> None:
        """Writes the place of each term, which bm25s looks up, in order of place."""
        import numpy as np

        spelled = [""] * len(terms)
        with (self._work / "terms.txt").open(encoding="utf-8", newline="\n") as lines:
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

    numbers: "NDArray[np.uint64]"
    begins: "Rows"

    def between(self, first: "np.uint64", last: "np.uint64") -> "_Part":
        """The terms with numbers from one to another, both included."""
        begin, end = self.numbers.searchsorted(first), self.numbers.searchsorted(last, "right")
        return _Part(self.numbers[begin:end], self.begins[begin : end + 1])


def _ranges(begins: "Rows") -> Iterator[tuple[int, int]]:
    """Ranges of terms with at most so many postings as are merged at once; a more frequent term is one by itself."""
    import numpy as np

    first, last = 0, len(begins) - 1
    while first < last:
        end = int(np.searchsorted(begins, begins[first] + _MERGED, "right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end
