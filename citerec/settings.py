"""Typed settings. Unknown keys are refused, with the nearest right one."""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citerec.errors import SettingsError
from citerec.groundwork.places import RECIPES, shipped


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Bm25(_Settings):
    """BM25 as Lucene computes it. Defaults chosen on data/acm dev: docs/results.md."""

    k1: float = Field(default=1.2, ge=0, le=1000, description="how slowly repeats of a word saturate")
    b: float = Field(default=0.75, ge=0, le=1, description="how much long texts are held back")


class Weights(_Settings):
    """What a word is worth by the field in which it stands; 0 leaves the field out.

    Defaults chosen on the dev contexts of data/acm and data/acl: docs/results.md.
    """

    text: float = Field(default=1.0, ge=0, le=1000, description="title and abstract as one field")
    title: float = Field(default=0.35, ge=0, le=1000, description="the title alone")
    abstract: float = Field(default=0.0, ge=0, le=1000, description="the abstract alone")
    citances: float = Field(default=1.8, ge=0, le=1000, description="what others wrote when they cited the paper")


class Dense(_Settings):
    """How the query becomes a vector, and how the vectors are searched."""

    neighbours: bool = Field(default=True, description="whether the sentences before and after take part")
    citing: float = Field(
        default=1.0,
        ge=0,
        le=1000,
        description="weight of the citing paper's own vector, where it is known, against 1 for the sentences",
    )
    backend: Literal["torch", "onnx-int8"] | None = Field(
        default=None,
        description="what encodes the query: torch, or ONNX Runtime with 8 bits; what encoded the papers by default",
    )
    probe: int | None = Field(
        default=None,
        ge=1,
        description="efSearch of HNSW, nprobe of IVF-PQ; what the build found to keep 0.97 of the recall by default",
    )


class Fusion(_Settings):
    """How the lists of several retrievers become one. Defaults chosen on dev contexts: docs/results.md."""

    method: Literal["weighted", "rrf"] = Field(
        default="weighted",
        description="weighted: scores of each list scaled to 0–1, then summed; rrf: reciprocal ranks",
    )
    k: float = Field(default=20, gt=0, description="rrf: a hit scores weight / (k + rank)")
    lucene: float = Field(default=1.0, ge=0, le=1000, description="weight of Lucene's list")
    dense: float = Field(default=1.0, ge=0, le=1000, description="weight of the dense list")
    depth: int = Field(default=1000, ge=1, description="how many hits of each list are fused")
    feedback: int = Field(
        default=0, ge=0, le=1000, description="how many of the first fused papers the vectors are searched with again"
    )
    feedback_weight: float = Field(
        default=0.3, ge=0, le=1000, description="weight of the mean of their vectors, against 1 for the query's own"
    )


class Ltr(_Settings):
    """How the learnt ranker is used."""

    depth: int = Field(default=200, ge=1, description="how many candidates are ranked anew; the rest stay behind them")
    model: str | None = Field(default=None, description="folder of the learnt ranker; that of the index by default")


class CrossEncoder(_Settings):
    """How the cross-encoder is used."""

    depth: int = Field(default=50, ge=1, description="how many candidates are read; the rest stay behind them")
    model: str | None = Field(default=None, description="folder of the cross-encoder; that of the index by default")
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="weight of its score against 1 for the score before, both scaled; tuned in training by default",
    )
    backend: Literal["torch", "onnx-int8"] = Field(
        default="torch", description="what runs it: torch, or ONNX Runtime with 8-bit weights"
    )


class RetrievalSettings(_Settings):
    """How candidates are found, scored and ranked."""

    retrievers: tuple[Literal["lucene", "dense"], ...] = Field(
        default=("lucene",), min_length=1, description="which lists are searched; several are fused"
    )
    rerankers: tuple[Literal["ltr", "cross-encoder"], ...] = Field(
        default=(), description="what ranks the candidates anew, in this order"
    )
    bm25: Bm25 = Bm25()
    weights: Weights = Weights()
    dense: Dense = Dense()
    fusion: Fusion = Fusion()
    ltr: Ltr = Ltr()
    cross_encoder: CrossEncoder = CrossEncoder()
    citing_title: float = Field(
        default=0.0,
        ge=0,
        description="weight of the citing paper's title, where it is known, against 1 for the sentence",
    )
    neighbours: float = Field(
        default=0.25, ge=0, description="weight of the sentences before and after, against 1 for the sentence"
    )
    citance_decay: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="weight of each further citance of a paper, against its better one",
    )
    tuned_on: str | None = Field(
        default=None,
        description="file of digests of the contexts on which these settings were tuned, from train fusion; a relative "
        "name is looked for beside the recipe",
    )
    max_query_words: int = Field(default=1000, ge=1, description="longest sentence taken, in words")

    @classmethod
    def load(cls, recipe: Path | None = None, assignments: Sequence[str] = ()) -> Self:
        """Settings from a TOML recipe, then single assignments such as `bm25.k1=0.9`.

        Raises:
            SettingsError: The recipe cannot be read, a key is unknown, or a value is out of range.
        """
        values: dict[str, Any] = {}
        if recipe is not None:
            try:
                values = tomllib.loads(recipe.read_text(encoding="utf-8"))
            except OSError as error:
                raise SettingsError(
                    f"cannot read the recipe {recipe}: {error.strerror}", "Give a TOML file."
                ) from error
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise SettingsError(f"{recipe} is not TOML: {error}", "See docs/settings.md.") from error
        for assignment in assignments:
            key, separator, value = assignment.partition("=")
            if not separator:
                raise SettingsError(f"--set {assignment!r} has no '='", "Write --set bm25.k1=0.9")
            _assign(values, key.strip(), value.strip())
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            raise _as_settings_error(error) from None
        if recipe is None or settings.tuned_on is None:
            return settings
        return settings.model_copy(update={"tuned_on": str(recipe.parent.absolute() / settings.tuned_on)})


def find_recipe(name: str | None) -> Path | None:
    """The file of a recipe, by path or by the name of a shipped one.

    Raises:
        SettingsError: There is none.
    """
    if name is None:
        return None
    for path in (Path(name), RECIPES / f"{name}.toml", shipped("recipes", f"{name}.toml")):
        if path.is_file():
            return path
    known = sorted(path.stem for path in shipped("recipes").glob("*.toml"))
    raise SettingsError(f"there is no recipe {name!r}", f"Give a TOML file, or one of: {', '.join(known)}.")


def setting_keys(model: type[BaseModel] = RetrievalSettings, prefix: str = "") -> dict[str, tuple[Any, str]]:
    """Every key that `--set` takes, with its default and what it means."""
    keys: dict[str, tuple[Any, str]] = {}
    for name, info in model.model_fields.items():
        if isinstance(info.default, BaseModel):
            keys |= setting_keys(type(info.default), f"{prefix}{name}.")
        else:
            keys[prefix + name] = (info.default, info.description or "")
    return keys


def _assign(values: dict[str, Any], key: str, value: str) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        child = values.setdefault(parent, {})
        if not isinstance(child, Mapping):
            raise SettingsError(f"{parent!r} is a table of settings, not {child!r}", _nearest(key))
        values = child  # type: ignore[assignment]
    values[last] = value


def _nearest(key: str) -> str:
    known = list(setting_keys())
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
    return f"Did you mean {near[0]}?" if near else f"Settings are: {', '.join(known)}."


def _as_settings_error(error: ValidationError) -> SettingsError:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return SettingsError(f"{key!r} is no setting", _nearest(key))
    message = first["msg"][0].lower() + first["msg"][1:]
    return SettingsError(f"{key} = {first['input']!r}: {message}", "See docs/settings.md for the range.")
