"""Named parts: one registry for each kind of part (docs/architecture.md, "Named parts")."""

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from citerec.errors import InputError

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """The parts of one kind, by name.

    A part is a class or an object with a `name`. It is a module of the package given here, at any depth, and registers
    itself:

        @RETRIEVERS.register
        class Bm25: ...

    Other distributions name their parts as entry points of the group `citerec.<kind>s`. Modules and entry points are
    loaded when the registry is first used, so modules of parts import heavy packages inside functions.

    Args:
        kind: The kind of part in errors: "retriever".
        package: The package whose modules are the built-in parts.
        error: The error that an unknown name raises.
        order: The key by which parts are listed; their names by default.
        besides: Text about what else may be named, after the parts' names in errors: ", or a file".
    """

    def __init__(
        self,
        kind: str,
        package: str,
        *,
        error: type[InputError] = InputError,
        order: Callable[[Part], Any] | None = None,
        besides: str = "",
    ) -> None:
        self.kind = kind
        self._package, self._error, self._order, self._besides = package, error, order, besides
        self._parts: dict[str, Part] = {}
        self._broken: dict[str, str] = {}
        self._loading = self._loaded = False
        self._lock = threading.RLock()

    @property
    def group(self) -> str:
        """The group of entry points."""
        return f"citerec.{self.plural.replace(' ', '_')}"

    @property
    def plural(self) -> str:
        """The plural of the kind."""
        if self.kind == "corpus":
            return "corpora"
        return f"{self.kind[:-1]}ies" if self.kind.endswith("y") else f"{self.kind}s"

    def register(self, part: Part) -> Part:
        """Adds a part under its `name`, as a decorator; ValueError if another part has this name."""
        name = str(part.name)  # type: ignore[attr-defined]
        if self._parts.setdefault(name, part) is not part:
            raise ValueError(f"there are two {self.plural} named {name!r}")
        return part

    def __getitem__(self, name: str) -> Part:
        """The part of this name; InputError, or the given error, if there is none."""
        parts = self._load()
        if name in parts:
            return parts[name]
        if name in self._broken:
            raise self._error(
                f"the {self.kind} {name!r} cannot be loaded: {self._broken[name]}", "Repair or remove its package."
            )
        near = difflib.get_close_matches(name, parts, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise self._error(f"there is no {self.kind} {name!r}", f"{hint}Choose: {', '.join(self)}{self._besides}.")

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __iter__(self) -> Iterator[str]:
        """The names, in order."""
        parts = self._load()
        order = self._order
        return iter(sorted(parts, key=(lambda name: (order(parts[name]), name)) if order else None))

    def __len__(self) -> int:
        return len(self._load())

    def items(self) -> Iterator[tuple[str, Part]]:
        """Names and parts, in order."""
        return ((name, self._parts[name]) for name in self)

    def _load(self) -> dict[str, Part]:
        if not self._loaded:
            with self._lock:
                if not self._loading:  # a part that uses the registry while it is imported must not come here again
                    self._loading = True
                    self._import_parts()
                    self._loaded = True
        return self._parts

    def _import_parts(self) -> None:
        package = importlib.import_module(self._package)
        for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
            importlib.import_module(module.name)
        for entry in entry_points(group=self.group):
            try:
                self.register(entry.load())
            except Exception as error:  # a broken package of others must not end every command
                self._broken[entry.name] = f"{type(error).__name__}: {error}"
