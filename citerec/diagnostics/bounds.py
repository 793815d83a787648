"""Bounds that depend on the corpus: which lengths are long, which fields are small, where citation counts are cut."""

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from citerec.corpus.store import PaperStore, Row
from citerec.diagnostics.strata import Frozen, Strata, strata

FieldShares = Literal["corpus", "published"]


class CensusRow(NamedTuple):
    """How many papers share a first field of study, a year and a citation count."""

    field: str | None
    year: int | None
    citation_count: int | None
    papers: int


def census_of(store: PaperStore) -> list[CensusRow]:
    """Counts of papers by first field, year and citation count, missing ones first: one pass over all papers."""
    counts = Counter[Row]()
    for fields, year, citation_count in store.select("papers", "fields_of_study", "year", "citation_count"):
        counts[next(iter(store.json(fields)), None), year, citation_count] += 1
    rows = [CensusRow._make((*key, papers)) for key, papers in counts.items()]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


class LengthBounds(Frozen):
    """Lengths in words: outliers are below `shortest` and above `longest`, medium sentences from `low` to `high`."""

    sentences: int
    outliers: int
    mean: float
    deviation: float
    shortest: float
    low: float
    high: float
    longest: float


class FieldBounds(Frozen):
    """Fields with their share of the papers whose field is known; large fields and low-resource fields."""

    decided_by: FieldShares
    shares: dict[str, float]
    fields: tuple[str, ...]
    low_resource: tuple[str, ...]


class CitationCountBounds(Frozen):
    """Where the groups of citation counts begin: nine numbers for ten groups.

    Attributes:
        cells: By field, then by group of years.
        pooled: By group of years, for fields too small to be cut on their own.
    """

    cells: dict[str, dict[str, tuple[int, ...]]]
    pooled: dict[str, tuple[int, ...]]

    def group_of(self, field: str | None, years: str | None, count: int | None) -> str | None:
        """The group of a paper, "0" for the least cited; None if something is unknown or the count is too low."""
        starts = self.cells.get(field or "", {}).get(years or "") or self.pooled.get(years or "")
        if not starts or count is None or count < strata().citation_count.least:
            return None
        return str(bisect_right(starts, count))


class Bounds(Frozen):
    """All bounds that were computed; None if the data do not allow it."""

    length: LengthBounds | None = None
    field: FieldBounds | None = None
    citation_count: CitationCountBounds | None = None


def compute_bounds(lengths: Iterable[int], census: Iterable[CensusRow], field_shares: FieldShares = "corpus") -> Bounds:
    """The bounds for some contexts over some papers.

    Args:
        lengths: Length in words of each sentence.
        census: How many papers there are of each field, year and citation count.
        field_shares: Whether the papers decide which fields are small, or the benchmark's own list.
    """
    rules, rows = strata(), list(census)
    return Bounds(
        length=_length_bounds(list(lengths), rules),
        field=_field_bounds(rows, field_shares, rules),
        citation_count=_citation_count_bounds(rows, rules),
    )


def _length_bounds(lengths: list[int], rules: Strata) -> LengthBounds | None:
    if len(set(lengths)) < 2:  # all alike: nothing is long or short
        return None
    mean, deviation = statistics.fmean(lengths), statistics.pstdev(lengths)
    shortest, longest = (mean + sign * rules.length.outlier_z * deviation for sign in (-1, 1))
    kept = [length for length in lengths if shortest <= length <= longest]
    mean, deviation = statistics.fmean(kept), statistics.pstdev(kept)
    low, high = (mean + sign * rules.length.deviations * deviation for sign in (-1, 1))
    found = {"mean": mean, "deviation": deviation, "shortest": shortest, "low": low, "high": high, "longest": longest}
    rounded = {name: round(value, 3) for name, value in found.items()}
    return LengthBounds(sentences=len(lengths), outliers=len(lengths) - len(kept), **rounded)


def _field_bounds(rows: list[CensusRow], decided_by: FieldShares, rules: Strata) -> FieldBounds | None:
    papers: Counter[str] = Counter()
    for row in rows:
        if row.field:
            papers[row.field] += row.papers
    if not papers:
        return None
    shares = {field: count / papers.total() for field, count in sorted(papers.items())}
    if decided_by == "published":
        large = [field for field in rules.fields.published if field in shares]
        small = [field for field in rules.fields.published_low_resource if field in shares]
    else:
        large = [field for field, share in shares.items() if share >= rules.fields.least_share]
        small = [field for field in shares if field not in large]
    return FieldBounds(
        decided_by=decided_by,
        shares={field: round(share, 6) for field, share in shares.items()},
        fields=tuple(large),
        low_resource=tuple(small),
    )


def _citation_count_bounds(rows: list[CensusRow], rules: Strata) -> CitationCountBounds | None:
    cells: dict[str, dict[str, Counter[int]]] = {}
    pooled: dict[str, Counter[int]] = {}
    for row in rows:
        years = rules.year.group_of(row.year)
        if years and row.citation_count is not None and row.citation_count >= rules.citation_count.least:
            pooled.setdefault(years, Counter())[row.citation_count] += row.papers
            if row.field:
                of_field = cells.setdefault(row.field, {}).setdefault(years, Counter())
                of_field[row.citation_count] += row.papers
    enough = rules.citation_count.fewest_papers
    found = {
        field: {years: _starts(counts, rules) for years, counts in sorted(by_years.items()) if counts.total() >= enough}
        for field, by_years in sorted(cells.items())
    }
    bounds = CitationCountBounds(
        cells={field: by_years for field, by_years in found.items() if by_years},
        pooled={years: _starts(counts, rules) for years, counts in sorted(pooled.items()) if counts.total() >= enough},
    )
    return bounds if bounds.cells or bounds.pooled else None


def _starts(counts: Mapping[int, int], rules: Strata) -> tuple[int, ...]:
    """The lowest count of each group but the first.

    Papers of one count stay together, in the group where the middle one of them would be: with many ties a group can
    be empty, and its start is then that of the next.
    """
    groups, total = rules.citation_count.groups, sum(counts.values())
    group_of: dict[int, int] = {}
    below = 0
    for count, papers in sorted(counts.items()):
        group_of[count] = min(groups - 1, int(groups * (below + papers / 2) / total))
        below += papers
    highest = max(counts) + 1
    return tuple(
        min((count for count, found in group_of.items() if found >= group), default=highest)
        for group in range(1, groups)
    )
