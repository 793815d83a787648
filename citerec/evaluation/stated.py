"""What results.json must hold, of either kind: types for checking it before it is used."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from citerec.evaluation.cost import Cost
from citerec.evaluation.figures import Comparison, FamilyInfo, Interval, Mean, Robustness
from citerec.evaluation.predictions import ReadFile
from citerec.evaluation.reliability import Reliability

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
    training_overlap: _Overlap = _Overlap(contexts=0, left_out=False)  # not in older results


class _Index(_Part):
    path: str
    papers: NonNegativeInt


class _Rules(_Part):
    exclude_citing: bool
    as_of_year: bool
    missing: str


class _Scores(_Part):
    model_config = ConfigDict(extra="allow")

    n: NonNegativeInt
    ci: Mapping[str, Interval]
    few: bool
    __pydantic_extra__: dict[str, float | None]


class _Removed(_Part):
    citing_paper: NonNegativeInt
    newer: NonNegativeInt


class _Ranker(_Part):
    kind: str
    overall: _Scores
    families: Mapping[str, Mapping[str, _Scores]]
    robustness: list[Robustness]
    outcomes: Mapping[str, NonNegativeInt] = {}
    fates: Mapping[str, NonNegativeInt] = {}
    ranks: list[NonNegativeInt]
    without_hit: NonNegativeInt
    removed: _Removed
    settings: Mapping[str, Any] | str | None
    cost: Cost | None
    reliability: Mapping[str, Reliability] = {}  # not in older results


class _Results(_Part):
    seed: NonNegativeInt
    resamples: NonNegativeInt
    comparisons: list[Comparison]
    notes: list[str]


class RankedResults(_Results):
    """results.json of ranked lists."""

    set: _Set
    index: _Index
    rules: _Rules
    metrics: Annotated[list[str], _Some]
    k: PositiveInt
    families: Mapping[str, FamilyInfo]
    systems: Annotated[Mapping[str, _Ranker], _Some]


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
    better: str = "higher"
    decimals: Annotated[int, Field(ge=0, le=20)] = 2


class _Writer(_Part):
    files: list[ReadFile]
    settings: Mapping[str, Any] | str | None
    upper_bound: bool
    missing: NonNegativeInt
    blank: NonNegativeInt
    means: Mapping[str, Mapping[str, Mean]]
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]]


class _Preset(_Part):
    name: str
    source: str
    settings: Mapping[str, Any]
    differs: Mapping[str, Any]


class TextResults(_Results):
    """results.json of texts."""

    tasks: _Tasks
    preset: _Preset | None = None  # not in older results
    columns: Annotated[list[_Column], _Some]
    settings: Mapping[str, Mapping[str, Any]]
    systems: Annotated[Mapping[str, _Writer], _Some]
    targets: Mapping[str, Mapping[str, Mean]] | None
