"""Filters over rows of vectors: which rows pass, as a bitmap that FAISS reads."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citerec.records import Filters
from citerec.retrieve.dense.engine import faiss_module
from citerec.retrieve.dense.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matching = Callable[[Filters], Sequence[str]]
"""The ids of the papers that pass the filters by field of study and venue."""

# A bitmap takes 25 MB at 200 million papers. Contexts of an evaluation differ in their years only.
_KEPT = 64
_KEPT_MATCHING = 8


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


class RowFilter:
    """Answers which rows pass some filters, and keeps the answers. Safe to call from several threads."""

    def __init__(self, vectors: Vectors, matching: Matching) -> None:
        self._vectors = vectors
        self._matching = matching
        self._kept = functools.lru_cache(_KEPT)(self._passing)
        self._kept_matching = functools.lru_cache(_KEPT_MATCHING)(self._matching_rows)

    def passing(self, filters: Filters) -> Passing | None:
        """The rows that pass all filters but `exclude` and `citing_id`, which are few; None where all do."""
        if filters.as_of_year is None and filters == Filters(exclude=filters.exclude, citing_id=filters.citing_id):
            return None
        return self._kept(
            Filters(
                year_from=filters.year_from,
                year_to=filters.year_to,
                fields=filters.fields,
                venues=filters.venues,
                min_citations=filters.min_citations,
                as_of_year=filters.as_of_year,
            )
        )

    def _passing(self, filters: Filters) -> Passing | None:
        import numpy as np

        faiss = faiss_module()
        vectors = self._vectors
        years = np.asarray(vectors.years)
        mask = np.ones(len(vectors), dtype=bool)
        if filters.as_of_year is not None:
            mask &= years <= filters.as_of_year  # an unknown year passes: it is not known to be newer
        if filters.year_from is not None or filters.year_to is not None:
            mask &= years >= (filters.year_from or 0)
        if filters.year_to is not None:
            mask &= years <= filters.year_to
        if filters.min_citations is not None:
            mask &= np.asarray(vectors.citations) >= max(0, filters.min_citations)
        if filters.fields or filters.venues:
            matching = np.zeros_like(mask)
            matching[self._kept_matching(filters.fields, filters.venues)] = True
            mask &= matching
        count = int(np.count_nonzero(mask))
        if count == len(mask):
            return None
        bits = np.packbits(mask, bitorder="little")
        return Passing(count, bits, faiss.IDSelectorBitmap(bits))

    def _matching_rows(self, fields: tuple[str, ...], venues: tuple[str, ...]) -> "NDArray[np.int64]":
        rows = self._vectors.rows(self._matching(Filters(fields=fields, venues=venues)))
        return rows[rows >= 0]
