"""Scores of profiles, under the leak rules."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.records import Filters
from citerec.retrieve.dense.kinds import decoded
from citerec.retrieve.dense.listing import text_digest
from citerec.retrieve.dense.vectors import Passing, Vectors
from citerec.retrieve.profile.vectors import CitingVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PART = 1 << 14
_YEARS = 64
_SMALL = 1 << 30  # bytes
# float32 sums differ in the seventh digit by where a row lies: equal profiles must have equal scores.
_DIGITS = 6
_NO_LIMIT = 1 << 15  # later than every year, known or not


class Weights(NamedTuple):
    """Weights of what a citing paper says and of the citing paper's own vector, against 1 for the cited paper's own."""

    sentence: float
    citing_paper: float


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of some papers.

    Attributes:
        rows: The papers' rows, (papers,).
        scores: Cosines of their profiles with the topic's vector, (papers,).
        said: For each the row of the citing sentences that add most to its score, (papers,); -1 if there are none.
        shares: How much they add, (papers,).
    """

    rows: "NDArray[np.int64]"
    scores: "NDArray[np.float64]"
    said: "NDArray[np.int64]"
    shares: "NDArray[np.float64]"


class Profiles:
    """Profiles of papers, as they were in any year. Safe to call from several threads.

    The profile of paper p in year Y is `own(p) + mean of (sentence · said(c, p) + citing_paper · own(c))` over the
    papers c that cite p up to Y, divided by its length.

    Args:
        papers: The vectors of papers.
        said: The vectors of citing sentences.
        weights: The weights.
    """

    def __init__(self, papers: Vectors, said: CitingVectors, weights: Weights) -> None:
        import numpy as np

        self._papers, self._said, self._weights = papers, said, weights
        self._all_papers, self._all_said = _in_memory(papers.values), _in_memory(said.values)
        # In memory: 20 bytes for each pair.
        self._years, self._citing = np.array(said.years), np.array(said.citing)
        self._citing_ids = np.array(said.citing_digests)
        cited = np.asarray(said.cited)
        # The rows of a cited paper are consecutive, in order of year.
        begins = np.flatnonzero(np.diff(cited, prepend=-2) != 0)
        known = cited[begins] >= 0
        self._begins, self._ends = begins[known], np.append(begins[1:], len(cited))[known]
        self._cited = cited[self._begins]
        self._counts = functools.lru_cache(_YEARS)(self._counts_until)

    def nearest(self, vector: "NDArray[np.float32]", k: int, filters: Filters, passing: Passing | None) -> Scored:
        """The k papers that score most of those that pass, in no particular order. Every profile is scored.

        Args:
            vector: The topic's vector, (dimension,), of length one.
            k: How many papers, at most.
            filters: What must not be known: `as_of_year` and `citing_ids`.
            passing: The rows that may be found; None for all.
        """
        import numpy as np

        scores = _products(self._all_papers, vector)
        said = self._weights.sentence * _products(self._all_said, vector)
        sums = np.concatenate([[0.0], np.cumsum(said + self._weights.citing_paper * self._own(scores))])
        counts = self._counts(filters.as_of_year)
        has = counts > 0
        begins, counts = self._begins[has], counts[has]
        totals = (sums[begins + counts] - sums[begins]) / counts
        cited = self._cited[has]
        scores[cited] = (scores[cited] + totals) / self._lengths[begins + counts - 1]
        if filters.citing_ids:
            mine = np.flatnonzero(_among(self._citing_ids, filters.citing_ids))
            affected = np.unique(np.asarray(self._said.cited)[mine])
            affected = affected[affected >= 0]
            scores[affected] = self.of_rows(vector, affected, filters).scores
        if passing is not None:
            allowed = np.unpackbits(passing.bits, count=len(scores), bitorder="little").astype(bool)
            scores[~allowed] = -np.inf
            k = min(k, passing.count)
        k = min(k, len(scores))
        rows = np.argpartition(-scores, k - 1)[:k] if k else np.empty(0, np.int64)
        rounded: NDArray[np.float64] = scores[rows].astype(np.float64).round(_DIGITS)
        return self._with_reasons(rows.astype(np.int64), rounded, said, filters)

    def of_rows(self, vector: "NDArray[np.float32]", rows: "NDArray[np.int64]", filters: Filters) -> Scored:
        """The scores of some papers, each from its own profile; arguments as for `nearest`."""
        import numpy as np

        scores, best, shares = np.empty(len(rows)), np.full(len(rows), -1, np.int64), np.zeros(len(rows))
        for at, row in enumerate(rows.tolist()):
            own = decoded(self._papers.values[row : row + 1])[0].astype(np.float64)
            pairs = self._pairs(row, filters)
            total, products = np.zeros_like(own), []
            for begin in range(0, len(pairs), _PART):
                part = pairs[begin : begin + _PART]
                said = decoded(self._said.values[part])
                products.append(said @ vector)
                citing = self._citing[part]
                total += self._weights.sentence * said.sum(axis=0, dtype=np.float64)
                papers = decoded(self._papers.values[citing[citing >= 0]])
                total += self._weights.citing_paper * papers.sum(axis=0, dtype=np.float64)
            profile = own + total / max(1, len(pairs))
            length = float(np.linalg.norm(profile)) or 1.0
            scores[at] = profile @ vector.astype(np.float64) / length
            if len(pairs):
                said_most = np.concatenate(products)
                best[at] = pairs[said_most.argmax()]
                shares[at] = self._weights.sentence * said_most.max() / len(pairs) / length
        return Scored(rows, np.round(scores, _DIGITS), best, shares)

    def _pairs(self, row: int, filters: Filters) -> "NDArray[np.int64]":
        """The rows of the citing sentences that take part in the profile of a paper."""
        import numpy as np

        group = int(np.searchsorted(self._cited, row))
        if group == len(self._cited) or self._cited[group] != row:
            return np.empty(0, np.int64)
        pairs = np.arange(self._begins[group], self._ends[group])
        return pairs[self._allowed(pairs, filters)]

    def _allowed(self, pairs: "NDArray[np.int64]", filters: Filters) -> "NDArray[np.bool_]":
        limit = _NO_LIMIT if filters.as_of_year is None else filters.as_of_year
        allowed: NDArray[np.bool_] = self._years[pairs] <= limit
        if filters.citing_ids:
            allowed &= ~_among(self._citing_ids[pairs], filters.citing_ids)
        return allowed

    def _counts_until(self, year: int | None) -> "NDArray[np.int64]":
        """How many papers cite each cited paper up to a year, (cited papers,)."""
        import numpy as np

        known = self._years <= (_NO_LIMIT if year is None else year)
        sums = np.concatenate([[0], np.cumsum(known)])
        counts: NDArray[np.int64] = sums[self._ends] - sums[self._begins]
        return counts

    @functools.cached_property
    def _lengths(self) -> "NDArray[np.float32]":
        """For each pair the length of the cited paper's profile of the pairs up to this one, (pairs,)."""
        import numpy as np

        lengths = np.ones(len(self._years), np.float32)
        for begin, end, row in zip(self._begins.tolist(), self._ends.tolist(), self._cited.tolist(), strict=True):
            own = decoded(self._papers.values[row : row + 1])[0].astype(np.float64)
            total = np.zeros_like(own)
            for first in range(begin, end, _PART):
                last = min(first + _PART, end)
                parts = self._weights.sentence * decoded(self._said.values[first:last]).astype(np.float64)
                citing = self._citing[first:last]
                known = citing >= 0
                parts[known] += self._weights.citing_paper * decoded(self._papers.values[citing[known]])
                sums = total + np.cumsum(parts, axis=0)
                numbers = np.arange(first - begin + 1, last - begin + 1)
                lengths[first:last] = np.linalg.norm(own + sums / numbers[:, None], axis=1)
                total = sums[-1]
        return np.maximum(lengths, np.float32(1e-9))

    def _own(self, scores: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """The scores of the citing papers' own vectors, (pairs,); 0 for those without one."""
        import numpy as np

        return np.where(self._citing >= 0, scores[self._citing], np.float32(0))

    def _with_reasons(
        self,
        rows: "NDArray[np.int64]",
        scores: "NDArray[np.float64]",
        said: "NDArray[np.float32]",
        filters: Filters,
    ) -> Scored:
        """The citing sentences that add most to each score; `said` has the weighted products of all of them."""
        import numpy as np

        best, shares = np.full(len(rows), -1, np.int64), np.zeros(len(rows))
        groups = np.minimum(np.searchsorted(self._cited, rows), max(0, len(self._cited) - 1))
        cited = np.flatnonzero(self._cited[groups] == rows) if len(self._cited) else rows[:0]
        if not len(cited):
            return Scored(rows, scores, best, shares)
        begins, counts = self._begins[groups[cited]], (self._ends - self._begins)[groups[cited]]
        starts = np.cumsum(counts) - counts
        pairs = np.repeat(begins - starts, counts) + np.arange(counts.sum())
        allowed = self._allowed(pairs, filters)
        products = np.where(allowed, said[pairs], -np.inf)
        most, numbers = np.maximum.reduceat(products, starts), np.add.reduceat(allowed, starts, dtype=np.int64)
        owners = np.repeat(np.arange(len(cited)), counts)
        places = np.flatnonzero(allowed & (products == most[owners]))
        known, first = np.unique(owners[places], return_index=True)
        best[cited[known]] = pairs[places[first]]
        shares[cited[known]] = most[known] / numbers[known]
        return Scored(rows, scores, best, shares)


def _in_memory(values: "NDArray[np.float16]") -> "NDArray[Any]":
    """The vectors as float32 if they are small, which saves decoding them for each topic; else as they are."""
    return decoded(values) if len(values) and 4 * values.size <= _SMALL else values


def _products(values: "NDArray[Any]", vector: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Inner products of all rows with a vector; they are read part by part."""
    import numpy as np

    products = np.empty(len(values), np.float32)
    for begin in range(0, len(values), _PART):
        part = values[begin : begin + _PART]
        products[begin : begin + _PART] = (part if part.dtype == np.float32 else decoded(part)) @ vector
    return products


def _among(digests: "NDArray[np.uint64]", names: Sequence[str]) -> "NDArray[np.bool_]":
    """Which digests are those of some names, (digests,)."""
    import numpy as np

    return np.isin(digests, np.array([*map(text_digest, names)], np.uint64))
