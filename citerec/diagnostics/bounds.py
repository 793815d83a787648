"""The rules of the strata (diagnostics/strata.toml), and the bounds that follow from them and from a corpus."""

import functools
import math
import tomllib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from citerec.corpus.store import PaperStore
from citerec.records import Paper
from citerec.settings import shipped

FieldShares = Literal["corpus", "published"]

Census: TypeAlias = Mapping[tuple[str | None, int | None, int | None], int]
"""How many papers share a first field of study, a year and a citation count."""


# Rules


@functools.cache
def strata() -> Mapping[str, Any]:
    """The rules that come with citerec. A set that was labelled by another version of them must be labelled again."""
    return tomllib.loads(shipped("diagnostics", "strata.toml").read_text(encoding="utf-8"))


@functools.cache
def _groups(family: str) -> tuple[tuple[str, float, float], ...]:
    """The groups of numbers of a family: name, first and last number. The last one may have no end."""
    groups = []
    for first, *rest in strata()[family]["groups"]:
        last = rest[0] if rest else math.inf
        groups.append((str(first) if last == first else f"{first}–{last}" if rest else f"{first}+", first, last))
    return tuple(groups)


def names_of_groups(family: str) -> tuple[str, ...]:
    """The names of the groups of a family, in order, such as "1996–2000"."""
    return tuple(name for name, _, _ in _groups(family))


def group_of(family: str, number: int | None) -> str | None:
    """The name of the group that a number falls in, such as a year; None if there is none."""
    return next((name for name, first, last in _groups(family) if number is not None and first <= number <= last), None)


# Bounds


class Frozen(BaseModel):
    """An immutable model without extra fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


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

    def group_of_paper(self, paper: Paper) -> str | None:
        """The group of a paper, "0" for the least cited; None if something is unknown or the count is too low."""
        field, years = next(iter(paper.fields_of_study), ""), group_of("year", paper.year) or ""
        starts, count = self.cells.get(field, {}).get(years) or self.pooled.get(years), paper.citation_count
        if not starts or count is None or count < strata()["citation_count"]["least"]:
            return None
        return str(bisect_right(starts, count))


class Bounds(Frozen):
    """All bounds that were computed; None if the data do not allow it."""

    length: LengthBounds | None = None
    field: FieldBounds | None = None
    citation_count: CitationCountBounds | None = None


def citation_count_groups(bounds: Bounds) -> tuple[str, ...]:
    """The names of the groups of citation counts, if there are any."""
    return tuple(map(str, range(strata()["citation_count"]["groups"]))) if bounds.citation_count else ()


def census_of(store: PaperStore) -> Census:
    """Counts of papers by first field, year and citation count: one pass over all papers."""
    rows = store.select("papers", "fields_of_study", "year", "citation_count")
    return Counter((next(iter(store.json(fields)), None), year, count) for fields, year, count in rows)


def compute_bounds(lengths: Iterable[int], census: Census, field_shares: FieldShares = "corpus") -> Bounds:
    """The bounds for some contexts over some papers.

    Args:
        lengths: Length in words of each sentence.
        census: How many papers there are of each field, year and citation count.
        field_shares: Whether the papers decide which fields are small, or the benchmark's own list.
    """
    return Bounds(
        length=_length_bounds(lengths),
        field=_field_bounds(census, field_shares),
        citation_count=_citation_count_bounds(census),
    )


def _length_bounds(lengths: Iterable[int]) -> LengthBounds | None:
    import numpy as np

    words = np.fromiter(lengths, np.int64)
    if len(np.unique(words)) < 2:  # all alike: nothing is long or short
        return None
    rules = strata()["length"]
    shortest, longest = (words.mean() + sign * rules["outlier_z"] * words.std() for sign in (-1, 1))
    kept = words[(words >= shortest) & (words <= longest)]
    mean, deviation = kept.mean(), kept.std()
    low, high = (mean + sign * rules["deviations"] * deviation for sign in (-1, 1))
    found = {"mean": mean, "deviation": deviation, "shortest": shortest, "low": low, "high": high, "longest": longest}
    rounded = {name: round(float(value), 3) for name, value in found.items()}
    return LengthBounds(sentences=len(words), outliers=len(words) - len(kept), **rounded)


def _field_bounds(census: Census, decided_by: FieldShares) -> FieldBounds | None:
    rules, papers = strata()["field"], Counter[str]()
    for (field, _, _), count in census.items():
        papers.update({field: count} if field else {})
    if not papers:
        return None
    shares = {field: count / papers.total() for field, count in sorted(papers.items())}
    large = [field for field, share in shares.items() if share >= rules["least_share"]]
    small = [field for field in shares if field not in large]
    if decided_by == "published":
        large, small = (
            [one for one in rules[name] if one in shares] for name in ("published", "published_low_resource")
        )
    return FieldBounds(
        decided_by=decided_by,
        shares={field: round(share, 6) for field, share in shares.items()},
        fields=tuple(large),
        low_resource=tuple(small),
    )


def _citation_count_bounds(census: Census) -> CitationCountBounds | None:
    counts: defaultdict[tuple[str | None, str], Counter[int]] = defaultdict(Counter)  # a field of None is all of them
    for (field, year, count), papers in census.items():
        years = group_of("year", year)
        if years and count is not None and count >= strata()["citation_count"]["least"]:
            for one in {field, None}:
                counts[one, years][count] += papers
    cells: dict[str | None, dict[str, tuple[int, ...]]] = {}
    for (field, years), of_cell in sorted(counts.items(), key=lambda cell: (cell[0][0] or "", cell[0][1])):
        if of_cell.total() >= strata()["citation_count"]["fewest_papers"]:
            cells.setdefault(field, {})[years] = _starts(of_cell)
    pooled = cells.pop(None, {})
    return CitationCountBounds(cells={f: cell for f, cell in cells.items() if f}, pooled=pooled) if pooled else None


def _starts(counts: Mapping[int, int]) -> tuple[int, ...]:
    """The lowest count of each group but the first.

    Papers of one count stay together, in the group where the middle one of them would be: with many ties a group can
    be empty, and its start is then that of the next.
    """
    groups, total = strata()["citation_count"]["groups"], sum(counts.values())
    below, starts = 0, [max(counts) + 1] * groups
    for count, papers in sorted(counts.items(), reverse=True):
        below += papers
        # Papers below this count, and half of those that have it: the group where the middle one stands.
        group = min(groups - 1, int(groups * (total - below + papers / 2) / total))
        starts[: group + 1] = [count] * (group + 1)
    return tuple(starts[1:])
