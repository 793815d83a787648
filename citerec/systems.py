"""Systems: recipes that name parts (retrievers with their weights, rerankers) and hold their settings.

A system is named by a recipe (a TOML file, or one that is shipped) or by a retriever. Further parts follow after a `+`:
`hybrid+ltr` is the recipe `hybrid` followed by the reranker `ltr`.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from citerec.contexts.provenance import NOTHING, Provenance, read_provenance
from citerec.errors import IndexUnusableError, InputError, SettingsError
from citerec.files.text import names_in
from citerec.index.describe import vectors_beside
from citerec.index.manifest import DENSE, FILE_NAME, Manifest, find_index, generation_of, trained_of
from citerec.index.vectors import encode_command, has_vectors
from citerec.rerank.base import RERANKERS, Reranker, trained_at, trained_manifest
from citerec.retrieve.base import RETRIEVERS, OpenIndex, Retriever, lacks_model
from citerec.retrieve.fusion import Fusion
from citerec.settings import (
    RECIPES,
    PartSettings,
    Weight,
    assign,
    flat,
    live_folder,
    nearest,
    read_toml,
    setting_keys,
    shipped,
)

_SHIPPED = "ltr"  # a trained one comes with citerec, for indexes without their own
Part = type[Retriever] | type[Reranker]

_NO_INDEX = "Give an index: citerec index build SOURCE… --out indexes/NAME"


def _listed(names: Any) -> Any:
    return names_in(names) if isinstance(names, str) else names


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Names, which may be separated by commas."""


def _with_weights(names: Any) -> Any:
    """Retrievers and their weights: a list of names, or comma-separated names, have weights of 1."""
    names = _listed(names)
    is_list = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return dict.fromkeys(names, 1.0) if is_list else names


class Recipe(PartSettings):
    """The parts of a system, and their settings.

    `citerec.Recommender.open` takes a recipe in place of a name.

    Attributes:
        retrievers: Retrievers, each with its weight; the lists of several are fused.
        rerankers: Rerankers, in this order: names, or folders of trained rankers.
        default_for: Makes this the default system of indexes with `vectors`, with `citances`, with `words` only, or
            with the vectors of a retriever, such as `profile`.
        tuned_on: File of digests of the contexts on which this recipe was tuned, written by train fusion; a relative
            path starts at the folder of the recipe.
        parts: Settings of parts that differ from the default.
    """

    retrievers: Annotated[dict[str, Weight], BeforeValidator(_with_weights)] = Field(
        default={"words": 1.0}, min_length=1
    )
    rerankers: Names = ()
    fusion: Fusion = Fusion()
    default_for: str | None = None
    tuned_on: str | None = None
    parts: dict[str, PartSettings] = Field(default={})

    @classmethod
    def load(cls, system: str | Path | None = None, assignments: Sequence[str] = ()) -> Self:
        """The recipe of a system, changed by single assignments such as `words.bm25.k1=0.9`.

        Args:
            system: Name of a system, or a TOML file; None for the default settings.
            assignments: `KEY=VALUE`; citerec systems --settings lists the keys.

        Raises:
            SettingsError: There is no such system, the file cannot be read, a key is unknown, or a value is out of
                range.
        """
        values = {} if system is None else _values_of(str(system))
        if "retrievers" in values:
            values["retrievers"] = _with_weights(values["retrievers"])  # so that one weight can be assigned
        assign(values, assignments, all_settings)
        own = {name: values.pop(name) for name in list(values) if name in cls.model_fields and name != "parts"}
        parts = {}
        for section, table in values.items():
            part = _part_of_section(section)
            if part is None or not isinstance(table, Mapping):
                key = next((key for key, _ in flat({section: table})), section)
                raise SettingsError(f"{key!r} is not a setting", nearest(key, all_settings))
            parts[part.name] = part.Settings.checked(table, section, all_settings)
        recipe = cls.checked({**own, "parts": parts}, "", all_settings)
        if recipe.tuned_on and system is not None:
            recipe = recipe.model_copy(update={"tuned_on": str(Path(system).parent.absolute() / recipe.tuned_on)})
        recipe.whole()  # a part that does not exist is an error
        return recipe

    def settings_of(self, part: Part) -> Any:
        """The settings of a part: an instance of its `Settings`."""
        return self.parts.get(part.name) or part.Settings()

    @property
    def needs_index(self) -> bool:
        """Whether any of its retrievers searches an index; the others ask web services."""
        return not all(RETRIEVERS[name].service for name in self.retrievers)

    def changes(self) -> dict[str, Any]:
        """The content of this recipe's TOML file: all settings that differ from the defaults."""
        own = self.model_dump(mode="json", exclude={"parts", "default_for"}, exclude_defaults=True)
        tables = {name: part.model_dump(mode="json", exclude_defaults=True) for name, part in self.parts.items()}
        return own | {_section(name): table for name, table in tables.items() if table}

    def write(self, path: Path, comment: str) -> None:
        """Writes the recipe as a TOML file, for `--system FILE`.

        Raises:
            InputError: The file cannot be written.
        """
        lines = [f"# {comment}", *(f"{key} = {json.dumps(value)}" for key, value in flat(self.changes())), ""]
        try:
            path.write_text("\n".join(lines), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}", "Name another file.") from error

    def without_rerankers(self) -> Self:
        """The same recipe without rerankers."""
        return self.model_copy(update={"rerankers": ()})

    def whole(self) -> Self:
        """The same recipe with the settings of exactly the parts that it names, defaults included."""
        parts: list[Part] = [RETRIEVERS[name] for name in self.retrievers]
        parts += [reranker_of(name)[0] for name in self.rerankers]
        return self.model_copy(update={"parts": {part.name: self.settings_of(part) for part in parts}})

    def to_json(self) -> dict[str, Any]:
        """The parts that it names, and the settings that it holds."""
        own = self.model_dump(mode="json", include={"retrievers", "rerankers", "fusion"})
        return own | {_section(name): settings.model_dump() for name, settings in self.parts.items()}


Named = tuple[type[Reranker], Path | None]
"""A reranker, and the folder of a trained one that was named in its place."""


def reranker_of(name: str) -> Named:
    """The reranker of a name, or that of a trained ranker's folder and the folder; raises SettingsError if unknown."""
    if name not in RERANKERS and (part := trained_at(Path(name))):
        return part, Path(name)
    return RERANKERS[name], None


def open_index(path: Path, recipe: Recipe) -> OpenIndex:
    """The index in a directory for a system; for `live_folder()` what takes the place of one.

    Raises:
        IndexUnusableError: There is none, or it is half built, broken, or of another version.
        SettingsError: The system needs an index.
    """
    if path != live_folder():
        return OpenIndex.open(path, recipe.settings_of(RETRIEVERS["words"]))
    if recipe.needs_index:
        raise SettingsError(f"{', '.join(recipe.retrievers)} cannot search without an index", _NO_INDEX)
    from citerec.retrieve.live import LiveIndex  # it brings the clients of web services

    return LiveIndex()


def choose(index: Path | None, system: str | None, assignments: Sequence[str] = ()) -> tuple[Path | None, str, Recipe]:
    """The index, the system and its recipe that commands use, as their options give them.

    The index is the given one, or the only one below `indexes/`; None for a system that needs none, unless it is given.

    Raises:
        IndexUnusableError: An index is needed, and there is none, or several.
        SettingsError: There is no such system, or a setting is wrong.
    """
    if index is None and system is not None:
        recipe = Recipe.load(system, assignments)
        if not recipe.needs_index:
            return None, system, recipe
    index = find_index(index)
    name = system or default_system(index)
    return index, name, Recipe.load(name, assignments)


def provenance_of_system(
    index: Path, recipe: Recipe, retrievers: Iterable[type[Retriever]] = (), rerankers: Iterable[Named] = ()
) -> Provenance:
    """What the trained parts of a system learnt from, and what its recipe was tuned on.

    Args:
        index: The index that it searches.
        recipe: Its recipe.
        retrievers: Its retrievers; by default those that the recipe names.
        rerankers: Its rerankers, each with its folder; by default those that the recipe names.

    Raises:
        ModelError: A part's file of digests is broken.
        IndexUnusableError: The index has vectors that cannot be used.
    """
    provenance = read_provenance(Path(recipe.tuned_on), Path(recipe.tuned_on).name) if recipe.tuned_on else NOTHING
    for retriever in retrievers or [RETRIEVERS[name] for name in recipe.retrievers]:
        provenance |= retriever.provenance_at(index, recipe.settings_of(retriever))
    for reranker, folder in rerankers or map(reranker_of, recipe.rerankers):
        provenance |= reranker.provenance_at(index, folder, recipe.settings_of(reranker))
    return provenance


def all_settings() -> dict[str, tuple[Any, str]]:
    """Every key that `-c` takes, with its default and its meaning."""
    of_recipes_only = ("parts", "default_for", "tuned_on")
    keys = {key: value for key, value in setting_keys(Recipe).items() if key not in of_recipes_only}
    for registry in (RETRIEVERS, RERANKERS):
        for _, part in registry.items():
            keys |= setting_keys(part.Settings, f"{_section(part.name)}.")
    return keys


def system_names() -> list[str]:
    """The known systems: recipes, retrievers without a recipe, and the default hybrid followed by each reranker."""
    recipes = sorted({path.stem for path in _recipe_files()})
    alone = [name for name in RETRIEVERS if name not in recipes and name != "words"]
    hybrid = _recipe_for("vectors")
    return [*recipes, *alone, *(f"{hybrid}+{name}" for name in RERANKERS)]


def system_needs(index: Path | None) -> dict[str, dict[str, str]]:
    """Every system by name: what it is made of (`about`), and what an index `lacks` for it; empty for nothing."""
    return {name: _needs(Recipe.load(name), index) for name in system_names()}


def _needs(recipe: Recipe, index: Path | None) -> dict[str, str]:
    parts = [RETRIEVERS[name] for name in recipe.retrievers]
    lacks = [part.lacks(index, recipe.settings_of(part)) for part in parts]
    for reranker, folder in map(reranker_of, recipe.rerankers):
        name, settings = reranker.name, recipe.settings_of(reranker)
        if index and not folder and name != _SHIPPED and lacks_model(name, index, settings):
            lacks.append(f"its ranker {name}, which citerec train makes")
    ranked = f", reranked by {' and '.join(recipe.rerankers)}" if recipe.rerankers else ""
    return {"about": f"{' + '.join(recipe.retrievers)}{ranked}", "lacks": "; ".join(dict.fromkeys(filter(None, lacks)))}


def default_system(index: Path) -> str:
    """The name of the default system of an index: the best that the index supports.

    docs/results.md compares the systems.
    """
    retrieval = default_retrieval(index)
    if not has_vectors(generation_of(index) / DENSE):
        return retrieval
    base = _recipe_for("vectors")
    for name in RERANKERS:
        manifest = trained_manifest(trained_of(index, name))
        if manifest is not None and RERANKERS[name].is_default and manifest.get("weight") != 0:
            return f"{retrieval if manifest.get('system') == retrieval else base}+{name}"
    return f"{base}+{_SHIPPED}" if retrieval == base else retrieval


def default_retrieval(index: Path) -> str:
    """The name of the best system without rerankers that an index supports: it finds what a ranker learns to rank.

    Raises:
        IndexUnusableError: There is no index.
    """
    if index == live_folder():
        raise IndexUnusableError("there is neither an index nor a system that needs none", _NO_INDEX)
    whole, dense = Manifest.read(index), generation_of(index) / DENSE
    if not has_vectors(dense):
        if f"{DENSE}/{FILE_NAME}" in whole.checksums:  # a worse system would be used, and nobody would know
            raise IndexUnusableError(f"{index} has lost its vectors", f"Make them again: {encode_command(dense)}")
        return _recipe_for("citances" if whole.counts.citances else "words")
    for folder, manifest in vectors_beside(index):
        if (system := _recipe_for(folder.name)) and manifest["store"] == whole.fingerprint:
            return system
    return _recipe_for("vectors")


def _recipe_for(what: str) -> str:
    """The first recipe that says to be the default for indexes that have something; empty if there is none."""
    return next((path.stem for path in _recipe_files() if read_toml(path).get("default_for") == what), "")


def _recipe_files() -> list[Path]:
    """The recipes of the user, and then those that come with citerec."""
    return [path for folder in (RECIPES, shipped("recipes")) for path in sorted(folder.glob("*.toml"))]


def _values_of(system: str) -> dict[str, Any]:
    """The table of settings of a system."""
    if system.endswith(".toml") or Path(system).is_file():
        return read_toml(Path(system))
    if named := [path for path in _recipe_files() if path.stem == system]:
        return read_toml(named[0])
    if system in RETRIEVERS:
        return {"retrievers": {system: 1.0}}
    base, _, last = system.rpartition("+")
    if base and last in RETRIEVERS:
        values = _values_of(base)
        return {**values, "retrievers": {**_with_weights(values.get("retrievers", "words")), last: 1.0}}
    if base and (last in RERANKERS or trained_at(Path(last))):
        values = _values_of(base)
        return {**values, "rerankers": [*values.get("rerankers", ()), last]}
    near = difflib.get_close_matches(system, names := system_names(), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise SettingsError(f"there is no system {system!r}", f"{hint}Give a TOML file, or one of: {', '.join(names)}.")


def _section(name: str) -> str:
    """The table of a recipe that holds the settings of a part."""
    return name.replace("-", "_")


def _part_of_section(section: str) -> Part | None:
    named = ((registry, name) for registry in (RETRIEVERS, RERANKERS) for name in registry if _section(name) == section)
    return next((registry[name] for registry, name in named), None)
