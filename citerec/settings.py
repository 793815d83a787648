"""Typed settings. Unknown keys are rejected, with a hint to the nearest known one."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Self

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from citerec.errors import SettingsError


class PartSettings(BaseModel):
    """The settings of a part: fields with a default, and a meaning in the docstring. A part may have none."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, table: Any) -> Any:
        """Of settings within these, those that a table does not give are as in the default of their field."""
        values = dict(table) if isinstance(table, Mapping) else {}
        for name, info in cls.model_fields.items():
            if isinstance(info.default, BaseModel) and isinstance(value := values.get(name), Mapping):
                values[name] = {**dict(info.default), **value}
        return values or table

    @classmethod
    def checked(cls, table: Mapping[str, Any], prefix: str, all_keys: Callable[[], Iterable[str]]) -> Self:
        """The settings in a table.

        Args:
            table: Their values by name.
            prefix: Where the table is in a recipe, for the message of an error.
            all_keys: All keys there are, for the remedy.

        Raises:
            SettingsError: There is no such setting, or a value is wrong.
        """
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(str(part) for part in (prefix, *first["loc"]) if part != "")
            if first["type"] == "extra_forbidden":
                raise SettingsError(f"{key!r} is not a setting", nearest(key, all_keys)) from None
            fault = f"{key} = {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}"
            raise SettingsError(fault, "Give another value.") from None

    @classmethod
    def assigned(cls, assignments: Sequence[str], prefix: str) -> Self:
        """The settings, changed by assignments such as `queue=100`; `prefix` is where they are, for errors.

        Raises:
            SettingsError: A key is unknown, or a value is out of range.
        """
        values: dict[str, Any] = {}
        keys = partial(setting_keys, cls, f"{prefix}.")
        assign(values, assignments, keys)
        return cls.checked(values, prefix, keys)


Weight = Annotated[float, Field(ge=0, le=1000)]
"""A setting that says how much something counts."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""

Amount = Annotated[float, Field(ge=0)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file.

    Raises:
        SettingsError: It cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the recipe {path}: {error.strerror}", "Give a TOML file.") from error
    except (ValueError, RecursionError) as error:  # no TOML, no text, too long a number, or too deeply nested
        raise SettingsError(f"{path} is not TOML: {error}", "See citerec systems --settings.") from error


def assign(values: dict[str, Any], assignments: Sequence[str], all_keys: Callable[[], Iterable[str]]) -> None:
    """Puts assignments such as `words.bm25.k1=0.9` into a table of settings.

    Raises:
        SettingsError: One has no '=', or its key goes below a single value.
    """
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        if not separator:
            raise SettingsError(f"-c {assignment!r} has no '='", "Write -c KEY=VALUE, such as -c words.bm25.k1=0.9")
        table = values
        *parents, last = key.strip().split(".")
        for parent in parents:
            child = table.setdefault(parent, {})
            if not isinstance(child, Mapping):
                raise SettingsError(f"{parent!r} is a table of settings, not {child!r}", nearest(key, all_keys))
            table = child  # type: ignore[assignment]
        table[last] = value.strip()


def changes(config: Path | None, assignments: Iterable[str]) -> list[str]:
    """The settings of a TOML file, and then some assignments, as assignments: the last one of a key wins.

    Raises:
        SettingsError: The file cannot be read, or is not TOML.
    """
    pairs = flat(read_toml(config)) if config else ()
    texts = ((key, ",".join(map(str, value)) if isinstance(value, list) else value) for key, value in pairs)
    return [*(f"{key}={text}" for key, text in texts), *assignments]


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a table and of the tables in it: keys such as `words.bm25.k1`, and their values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def setting_keys(model: type[BaseModel], prefix: str = "") -> dict[str, tuple[Any, str]]:
    """Every key of some settings, with its default and its meaning."""
    keys, meanings = dict[str, tuple[Any, str]](), meanings_of(model)
    for name, info in model.model_fields.items():
        if isinstance(info.default, BaseModel):
            for key, (_, text) in setting_keys(type(info.default)).items():
                keys[f"{prefix}{name}.{key}"] = (attrgetter(key)(info.default), text)
        else:
            keys[prefix + name] = (info.default, meanings.get(name) or info.description or "")
    return keys


_ATTRIBUTE = re.compile(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", re.MULTILINE)


def meanings_of(kind: type) -> dict[str, str]:
    """What the docstrings of a class, and of those that it comes from, say of its attributes."""
    docs = (one.__doc__ or "" for one in reversed(kind.__mro__))
    return {name: " ".join(text.split()) for doc in docs for name, text in _ATTRIBUTE.findall(doc)}


def nearest(key: str, all_keys: Callable[[], Iterable[str]]) -> str:
    """The remedy for a key that does not exist."""
    keys = list(all_keys())
    near = [name for name in keys if name.endswith(f".{key}")] or difflib.get_close_matches(key, keys, 1, 0.4)
    return f"Did you mean {near[0]}?" if near else f"Settings are: {', '.join(keys)}."


INDEXES = Path("indexes")

DIAGNOSTICS = Path("diagnostics")
"""Searched for diagnostic sets before the shipped ones."""

RECIPES = INDEXES / "recipes"
"""Searched for recipes before the shipped ones."""


def live_folder() -> Path:
    """Where the answers of web services are kept: a folder in the user's cache."""
    return platformdirs.user_cache_path("citerec") / "live"


_OF_INDEXES = ("confidence", "encoder", "ranker", "recipes")


def shipped(*parts: str) -> Path:
    """A file or folder that comes with citerec: inside the wheel, or in its place in a checkout."""
    package = Path(__file__).parent
    inside = package.joinpath("shipped", *parts)
    folder = package.parent / "indexes" if parts[0] in _OF_INDEXES else package.parent
    return inside if inside.exists() else folder.joinpath(*parts)
