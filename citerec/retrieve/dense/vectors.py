"""Vectors of papers on disk: ids and rows, exact cosines, and the rows that pass filters."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.errors import IndexUnusableError
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.dense.files import mapped, rows_of
from citerec.retrieve.dense.kinds import faiss_module, half_precision, search_one
from citerec.retrieve.dense.manifest import DenseManifest, encode_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PART = 1 << 14

Matching = Callable[[Filters], "NDArray[np.int64]"]
"""The rows of the papers that pass the filters by field of study and venue."""

# A bitmap takes 25 MB for 200 million papers. Contexts of an evaluation differ only in their years.
_KEPT = 64
_KEPT_MATCHING = 8


class Vectors:
    """The memory-mapped arrays of a folder of vectors; rows are in order of paper id.

    Attributes:
        ids: Paper ids, bytes, (count,).
        values: The vectors, float16, (count, dimension), each of length one.
        digests: 8 bytes of the digest of each text, (count,).
        years: int32, (count,); -1 is unknown. The same for `citations`.

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
                f"Make the vectors again: {encode_command(path)}",
            )

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, paper_ids: Sequence[str]) -> "NDArray[np.int64]":
        """The rows of some papers; -1 for those without a vector."""
        return rows_of(self.ids, paper_ids)

    def paper_ids(self, rows: "slice | NDArray[np.int64]") -> list[str]:
        """The ids of some rows."""
        return [key.decode() for key in self.ids[rows].tolist()]

    def scores(self, vector: "NDArray[np.float32]", rows: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """Inner products of a vector (dimension,) with some rows, as float32; those that a search by FAISS gives."""
        import numpy as np

        scores = np.full(len(rows), np.nan, dtype=np.float32)
        for begin in range(0, len(rows), _PART):
            part = self.values.take(rows[begin : begin + _PART], axis=0)
            # Twice as fast as decoding the rows and a product, and each row is summed by itself.
            few = half_precision(part.shape[1])
            few.add_sa_codes(part.view(np.uint8))
            places, found = search_one(few, vector, len(part))
            scores[begin + places] = found
        return scores


@dataclass(frozen=True, slots=True)
class Passing:
    """Which rows pass: how many, a bit for each row (the first one lowest), and FAISS's view of the bits."""

    count: int
    bits: "NDArray[np.uint8]"
    selector: Any = field(repr=False)

    def rows(self) -> "NDArray[np.int64]":
        """The rows themselves, in order."""
        import numpy as np

        return np.flatnonzero(np.unpackbits(self.bits, bitorder="little")).astype(np.int64)


def passing_rows(
    filters: Filters,
    years: "NDArray[np.int32]",
    citations: "NDArray[np.int32]",
    matching: Callable[[tuple[str, ...], tuple[str, ...]], "NDArray[np.int64]"],
) -> "NDArray[np.bool_]":
    """Which rows pass all filters but `exclude` and `citing_ids`, (rows,).

    Args:
        filters: The filters.
        years: The year of each row's paper; -1 is unknown. The same for `citations`.
        citations: Its citation count.
        matching: The rows that pass the filters by field of study and venue; called only if there are any.
    """
    import numpy as np

    years = np.asarray(years)
    mask = np.ones(len(years), dtype=bool)
    if filters.as_of_year is not None:
        mask &= years <= filters.as_of_year  # an unknown year passes: it is not known to be newer
    if filters.year_from is not None or filters.year_to is not None:
        mask &= years >= (filters.year_from or 0)
    if filters.year_to is not None:
        mask &= years <= filters.year_to
    if filters.min_citations is not None:
        mask &= np.asarray(citations) >= max(0, filters.min_citations)
    if filters.fields or filters.venues:
        named = np.zeros_like(mask)
        named[matching(filters.fields, filters.venues)] = True
        mask &= named
    return mask


class RowFilter:
    """Finds the rows that pass some filters, and caches them. Safe to call from several threads."""

    def __init__(self, vectors: Vectors, matching: Matching) -> None:
        self._vectors = vectors
        self._matching = matching
        self._kept = functools.lru_cache(_KEPT)(self._passing)
        self._kept_matching = functools.lru_cache(_KEPT_MATCHING)(self._matching_rows)

    def passing(self, filters: Filters) -> Passing | None:
        """The rows that pass all filters but `exclude` and `citing_ids`, which match few; None if all rows pass."""
        rest = replace(filters, exclude=(), citing_ids=())
        return None if rest == NO_FILTERS else self._kept(rest)

    def _passing(self, filters: Filters) -> Passing | None:
        import numpy as np

        faiss = faiss_module()
        mask = passing_rows(filters, self._vectors.years, self._vectors.citations, self._kept_matching)
        count = int(np.count_nonzero(mask))
        if count == len(mask):
            return None
        bits = np.packbits(mask, bitorder="little")
        return Passing(count, bits, faiss.IDSelectorBitmap(bits))

    def _matching_rows(self, fields: tuple[str, ...], venues: tuple[str, ...]) -> "NDArray[np.int64]":
        rows = self._matching(Filters(fields=fields, venues=venues))
        return rows[rows >= 0]
