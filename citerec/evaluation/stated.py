"""What results.json must hold, of either kind, with its scores in the shape of `citerec.evaluation.figures`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from citerec.evaluation.figures import Comparison, FamilyInfo, SystemResult

_Some = Field(min_length=1)


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Overlap(_Part):
    contexts: NonNegativeInt
    left_out: bool


class _Set(_Part):
    name: str
    source: str
    counted: NonNegativeInt
    contexts: NonNegativeInt
    outside: NonNegativeInt
    alike: bool
    citing_papers_known: bool
    without_citing_paper: NonNegativeInt
    without_citing_year: NonNegativeInt
    training_overlap: _Overlap


class _Index(_Part):
    path: str
    papers: NonNegativeInt


class _Rules(_Part):
    exclude_citing: bool
    as_of_year: bool
    missing: str


class _Results(_Part):
    seed: NonNegativeInt
    resamples: NonNegativeInt
    systems: Annotated[Mapping[str, SystemResult], _Some]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


class RankedResults(_Results):
    """results.json of ranked lists."""

    set: _Set
    index: _Index
    rules: _Rules
    metrics: Annotated[tuple[str, ...], _Some]
    k: PositiveInt
    families: Mapping[str, FamilyInfo]


class _Tasks(_Part):
    asked: NonNegativeInt
    compared: NonNegativeInt
    left_out: NonNegativeInt
    citing_paper_known: NonNegativeInt
    groups: Mapping[str, NonNegativeInt]


class _Column(_Part):
    name: str
    metric: str
    share: bool
    judges: bool
    better: Literal["higher", "lower"] = "higher"
    decimals: Annotated[int, Field(ge=0, le=20)] = 2


class _Preset(_Part):
    name: str
    source: str
    settings: Mapping[str, Any]
    differs: Mapping[str, Any]


class TextResults(_Results):
    """results.json of texts."""

    tasks: _Tasks
    preset: _Preset | None
    columns: Annotated[list[_Column], _Some]
    settings: Mapping[str, Mapping[str, Any]]
    targets: SystemResult | None
