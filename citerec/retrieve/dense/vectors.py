"""Vectors of papers on disk: from id to row and back, exact cosines, nothing of it held in memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.errors import IndexUnusableError
from citerec.retrieve.dense.files import mapped, rows_of
from citerec.retrieve.dense.kinds import decoded
from citerec.retrieve.dense.manifest import DenseManifest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PART = 1 << 14


class Vectors:
    """The mapped arrays of a folder of vectors; rows are in order of paper id.

    Attributes:
        path: The folder.
        manifest: What it says of itself.
        ids: Paper ids, bytes, (count,).
        values: The vectors, float16, (count, dimension), each of length one.
        digests: 8 bytes of the digest of each text, (count,).
        years: int32, (count,); -1 is unknown.
        citations: int32, (count,); -1 is unknown.

    Raises:
        IndexUnusableError: The folder is half made, or its files do not fit together.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = DenseManifest.read(path)
        self.ids: NDArray[np.bytes_] = mapped(path / "ids.npy")
        self.values: NDArray[np.float16] = mapped(path / "vectors.npy")
        self.digests: NDArray[np.uint64] = mapped(path / "digests.npy")
        self.years: NDArray[np.int32] = mapped(path / "years.npy")
        self.citations: NDArray[np.int32] = mapped(path / "citations.npy")
        expected = (self.manifest.count, self.manifest.dimension)
        columns = (self.ids, self.digests, self.years, self.citations)
        if self.values.shape != expected or any(column.shape != expected[:1] for column in columns):
            raise IndexUnusableError(
                f"{path} is damaged: its files have other numbers of rows than its manifest, {expected[0]:,}",
                f"Make the vectors anew: citerec index encode {path.parent}",
            )

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, paper_ids: Sequence[str]) -> "NDArray[np.int64]":
        """The rows of some papers; -1 where one has no vector."""
        return rows_of(self.ids, paper_ids)

    def paper_ids(self, rows: "NDArray[np.int64]") -> list[str]:
        """The ids of some rows."""
        return [key.decode() for key in self.ids[rows].tolist()]

    def scores(self, vector: "NDArray[np.float32]", rows: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """Inner products of a vector (dimension,) with some rows, as float32.

        Summed up as float64: the score of a row does not depend on the other rows.
        """
        import numpy as np

        scores = np.empty(len(rows), dtype=np.float32)
        exact = vector.astype(np.float64)
        for begin in range(0, len(rows), _PART):
            part = rows[begin : begin + _PART]
            scores[begin : begin + _PART] = decoded(self.values[part]).astype(np.float64) @ exact
        return scores
