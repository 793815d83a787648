"""The rules that define strata: diagnostics/strata.toml."""

import bisect
import functools
import itertools
import tomllib

from pydantic import BaseModel, ConfigDict, Field

from citerec.files.places import shipped


class Frozen(BaseModel):
    """An immutable model without extra fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class LengthRules(Frozen):
    """How sentences are grouped by their length in words."""

    outlier_z: float
    deviations: float


class LocationRules(Frozen):
    """Where the first and the middle part of a sentence end, as shares of its length."""

    first_until: float
    middle_until: float


class FieldRules(Frozen):
    """Which fields of study are small."""

    least_share: float
    published: tuple[str, ...]
    published_low_resource: tuple[str, ...]


class YearRules(Frozen):
    """Groups of years: first and last of each."""

    groups: tuple[tuple[int, int], ...]

    def group_of(self, year: int | None) -> str | None:
        """The name of the group that a year falls in: "1996–2000"."""
        return next((f"{first}–{last}" for first, last in self.groups if year and first <= year <= last), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups, in order."""
        return tuple(f"{first}–{last}" for first, last in self.groups)


class CitationCountRules(Frozen):
    """How papers are grouped by how often they are cited."""

    least: int
    groups: int
    fewest_papers: int


class ColdStartRules(Frozen):
    """How papers are grouped by how many sentences cite them: the first number of each group."""

    groups: tuple[int, ...]

    def group_of(self, sentences: int) -> str:
        """The name of the group of a number of sentences: "1–4"."""
        return self.names[bisect.bisect_right(self.groups, sentences) - 1]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups, in order."""
        ranges = itertools.pairwise(self.groups)
        closed = (f"{first}–{after - 1}" if after - first > 1 else str(first) for first, after in ranges)
        return (*closed, f"{self.groups[-1]}+")


class Strata(Frozen):
    """All the rules; a set that was labelled by another version of them must be labelled again."""

    version: int
    length: LengthRules
    location: LocationRules
    fields: FieldRules = Field(alias="field")
    year: YearRules
    citation_count: CitationCountRules
    intent: dict[str, tuple[str, ...]]
    part_of_speech: dict[str, tuple[str, ...]]
    cold_start: ColdStartRules


@functools.cache
def strata() -> Strata:
    """The rules that come with citerec."""
    return Strata.model_validate(tomllib.loads(shipped("diagnostics", "strata.toml").read_text(encoding="utf-8")))
