"""The vectors of the papers of an index on disk, and the exact search among them.

A row is that of the paper. Beside the vectors in half precision there are codes of a byte for each number, with a scale
for each row: these are compared, and the best rows are scored again with their own vectors. A paper without a vector
has zeros, and is never found.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from citerec.errors import IndexUnusableError
from citerec.index.arrays import ArrayWriter, mapped
from citerec.index.filters import PaperFilter
from citerec.index.vectors.faiss import FaissIndex
from citerec.index.vectors.manifest import DenseManifest, encode_command
from citerec.records import NO_FILTERS, Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

VALUES, CODES, SCALES = "vectors.npy", "codes.npy", "scales.npy"

_BLOCK = 2048
_AGAIN = 120  # candidates beyond those wanted that are scored again: codes may order near ones otherwise
_FEW = 50_000
"""Where so few rows pass, all are compared, whatever index there is."""

_DIGITS = 6  # a sum in float32 differs in the seventh digit by where a row lies: equal vectors must score the same
_ROUNDING = 1e-6
_BYTE = 127


def blank_vectors(folder: Path, rows: int, dimension: int) -> "NDArray[np.float16]":
    """The vectors of a folder as zeros, memory-mapped, to be written; `finish_vectors` does the rest.

    Their room on the disk is taken now: where it ends later, a process with a map would be killed.
    """
    import numpy as np

    with ArrayWriter(folder / VALUES, "<f2", (dimension,)) as writer:
        for begin in range(0, rows, _BLOCK):
            writer.append(np.zeros((min(_BLOCK, rows - begin), dimension), np.float16))
    return np.asarray(np.load(folder / VALUES, mmap_mode="r+"))


def finish_vectors(folder: Path) -> int:
    """Writes the codes and scales of a folder of vectors; returns how many of these are not zero."""
    import numpy as np

    values, count = mapped(folder / VALUES), 0
    with ArrayWriter(folder / CODES, "i1", values.shape[1:]) as codes, ArrayWriter(folder / SCALES, "<f4") as scales:
        for begin in range(0, len(values), _BLOCK):
            floats = values[begin : begin + _BLOCK].astype(np.float32)
            scale = np.abs(floats).max(axis=1, initial=0)[:, None] / _BYTE
            codes.append(np.rint(np.divide(floats, scale, out=np.zeros_like(floats), where=scale > 0)))
            scales.append(scale[:, 0])
            count += int(np.count_nonzero(scale))
    return count


class Vectors:
    """The memory-mapped vectors of a folder. Safe to use from several threads.

    Attributes:
        path: The folder.
        manifest: What made them.
        values: The vectors, float16, (papers, dimension), each of length one or zero.
        known: Which papers have a vector, (papers,).

    Raises:
        IndexUnusableError: The folder is half made, or its files do not fit together.
    """

    def __init__(self, path: Path, probe: int | None = None) -> None:
        self.path = path
        self.manifest = DenseManifest.read(path)
        again = f"Make the vectors again: {encode_command(path)}"
        self.values: NDArray[np.float16] = mapped(path / VALUES, again)
        self._codes: NDArray[np.int8] = mapped(path / CODES, again)
        self._scales: Floats = mapped(path / SCALES, again)
        self.known: NDArray[np.bool_] = self._scales > 0
        shape = (self.manifest.count + self.manifest.without_vector, self.manifest.dimension)
        if not self.values.shape == self._codes.shape == shape == (len(self._scales), shape[1]):
            raise IndexUnusableError(
                f"{path} is damaged: its files have other numbers of rows than its manifest, {shape[0]:,}",
                again,
            )
        is_exact = self.manifest.kind_of_search == "exact"
        self._index = None if is_exact else FaissIndex(path, self.manifest, len(self), probe)

    def __len__(self) -> int:
        return len(self.values)

    def search(
        self, vector: "Floats", k: int, filters: Filters, papers: PaperFilter
    ) -> "tuple[Rows, NDArray[np.float64]]":
        """As `nearest`, among the papers that pass filters."""
        return self.nearest(vector, k, None if filters == NO_FILTERS else papers.passing(filters))

    def close(self) -> None:
        """Nothing: the files are mapped."""

    def nearest(
        self, vector: "Floats", k: int, mask: "NDArray[np.bool_] | None" = None
    ) -> "tuple[Rows, NDArray[np.float64]]":
        """The rows and cosines of the k nearest of a vector (dimension,), nearest first; ties in order of row.

        Args:
            vector: The vector, of length one.
            k: How many, at most.
            mask: Which papers may be found, (papers,); all by default.
        """
        import numpy as np

        allowed = self.known if mask is None else self.known & mask
        passing, wanted = np.flatnonzero(allowed), k + _AGAIN
        rows: Rows = passing[:0]
        if self._index is not None and len(passing) > _FEW:
            rows = self._index.candidates(vector, wanted, allowed)
        if len(rows) < min(k, len(passing)):  # under a narrow filter FAISS may find fewer than there are
            rows = passing
            if len(passing) > wanted:
                # Rows that are gathered take twice as long as rows that follow each other.
                most = 2 * len(passing) > len(self)
                products = self.products(vector)[passing] if most else self.products(vector, passing)
                rows = passing[places_of_best(products, wanted)]
        scores = self.scores(vector, rows)
        best = np.lexsort((rows, -scores))[:k]
        return rows[best], scores[best]

    def scores(self, vector: "Floats", rows: "Rows") -> "NDArray[np.float64]":
        """The cosines of a vector (dimension,) with some rows, (rows,); NaN for papers without a vector."""
        import numpy as np

        products = _dot(self.values[rows], vector).astype(np.float64)
        return np.where(self.known[rows], products.round(_DIGITS), np.nan)

    def of(self, rows: "Rows") -> "tuple[NDArray[np.bool_], Floats]":
        """Which of some papers have a vector, (rows,), and the vectors of these, (known, dimension).

        The row of a paper that the index lacks is -1.
        """
        import numpy as np

        known = (rows >= 0) & self.known[rows] if len(self) else np.zeros(len(rows), bool)
        return known, self.values[rows[known]].astype(np.float32)

    def products(self, vector: "Floats", rows: "Rows | None" = None) -> "Floats":
        """About the cosines of a vector (dimension,) with some rows, by default all, (rows,): those of the codes."""
        import numpy as np

        count = len(self) if rows is None else len(rows)
        found = np.empty(count, np.float32)
        for begin in range(0, count, _BLOCK):
            part = slice(begin, begin + _BLOCK) if rows is None else rows[begin : begin + _BLOCK]
            found[begin : begin + _BLOCK] = _dot(self._codes[part], vector) * self._scales[part]
        return found


def _dot(vectors: "NDArray[np.float16 | np.int8]", vector: "Floats") -> "Floats":
    """The dot products of some vectors with one, (vectors,)."""
    import numpy as np

    # `@` would wake the threads of BLAS for each block: on a busy machine they take ten times as long.
    products: Floats = np.vecdot(vectors.astype(np.float32), vector)
    return products


def places_of_best(scores: "Floats", k: int) -> "Rows":
    """The places of the k best of some scores, and of all that equal the last of them, in order: ties are no chance."""
    import numpy as np

    bound = np.partition(scores, -k)[-k]
    return np.flatnonzero(scores >= bound - _ROUNDING)
