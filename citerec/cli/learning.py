"""What the commands that train share: where examples come from, hyper-parameters, and what is said at the end."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.console import note, say
from citerec.cli.options import Count, Device, IndexPath, at_least, index_of
from citerec.errors import SettingsError, first_fault
from citerec.files.progress import progress_bar

if TYPE_CHECKING:
    from citerec.train.groups import Choice

_OWN_OPTIONS = ("base", "dev", "first", "model", "path", "words", "writes")
"""Fields that are no hyper-parameters: they have options of their own, or their command sets them."""

_SHARES = ("averaging", "cut", "decay", "dev_share", "dropout", "learning_rate")

Manifest = TypeVar("Manifest")
Kind = TypeVar("Kind")

Out = Annotated[Path, Parameter(help="The model to make, or to replace: a folder.")]
OutOfIndex = Annotated[
    Path | None,
    Parameter(name="--out", help="The model to make, or to replace: a folder.  [default: into the index itself]"),
]
Base = Annotated[str | None, Parameter(metavar="NAME|FOLDER", help="The model to start from.")]
Finder = Annotated[
    str | None,
    Parameter(
        name="--system",
        metavar="NAME|FILE",
        help="The system that finds candidates: a recipe or a built-in one.  [default: as recommend]",
    ),
]
Dev = Annotated[
    Path | None,
    Parameter(
        name="--dev",
        help="Examples to measure on while training. The model does not learn from their papers. Results on them are "
        "biased afterwards.  [default: a share of the papers is held out]",
    ),
]
Limit = Annotated[
    int | None,
    Parameter(name="--limit", validator=at_least(1), help="Examples to learn from, at most; sampled by the seed."),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class FromContexts:
    """Contexts to learn from, and the index that has the papers they cite.

    Attributes:
        contexts: Contexts with cited papers, JSON Lines.
    """

    contexts: Path
    dev: Dev = None
    limit: Limit = None
    index: IndexPath = None

    @property
    def place(self) -> Path:
        """The index."""
        return index_of(self.index)

    def choice(self, settings: "Settings") -> "Choice":
        """What to learn from and to measure on."""
        from citerec.train.groups import Choice

        return settings.of(Choice, path=self.contexts, dev=self.dev, limit=self.limit)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Hyper:
    """Hyper-parameters: the common ones are options, all are settings.

    Attributes:
        epochs: How often all examples are seen.
        batch: Examples per step.
        learning_rate: Peak learning rate.
        seed: Seed of all random choices.
        config: A TOML file of hyper-parameters.
        assignments: Change one hyper-parameter, such as patience=5; may be repeated. It wins over --config.
        print_config: Print all hyper-parameters with their meanings, as such a file, and stop.
    """

    epochs: Count | None = None
    batch: Count | None = None
    learning_rate: Annotated[float | None, Parameter(validator=at_least(0, 1))] = None
    seed: Annotated[int | None, Parameter(validator=at_least(0))] = None
    device: Device = None
    config: Annotated[Path | None, Parameter(metavar="FILE")] = None
    assignments: Annotated[tuple[str, ...], Parameter(name="-c", metavar="KEY=VALUE")] = ()
    print_config: bool = False

    def settings(self, *kinds: type, **defaults: Any) -> "Settings":
        """The hyper-parameters of some kinds of options.

        Args:
            kinds: Dataclasses and settings; their fields are the hyper-parameters.
            defaults: Defaults of this command, in place of those of the fields.

        Raises:
            SettingsError: There is no such hyper-parameter.
        """
        return Settings(self, kinds, defaults)


class Settings:
    """The values of hyper-parameters, of which options are made."""

    def __init__(self, hyper: Hyper, kinds: Iterable[type], defaults: Mapping[str, Any]) -> None:
        from citerec.settings import assign, nearest, read_toml

        known = {name: field for kind in kinds for name, *field in _fields_of(kind)}
        self._fields = {name: field for name, field in known.items() if name not in _OWN_OPTIONS}
        values: dict[str, Any] = read_toml(hyper.config) if hyper.config else {}
        assign(values, hyper.assignments, lambda: self._fields)
        if unknown := sorted(values.keys() - self._fields.keys()):
            raise SettingsError(f"{unknown[0]!r} is no hyper-parameter here", nearest(unknown[0], lambda: self._fields))
        named = {name: getattr(hyper, name) for name in ("epochs", "batch", "learning_rate", "seed")}
        self._values = {**defaults, **values, **{name: value for name, value in named.items() if value is not None}}
        self.device = hyper.device
        if hyper.print_config:
            self._print()
            raise SystemExit(0)

    def of(self, kind: type[Kind], **more: Any) -> Kind:
        """Options of a kind.

        Args:
            kind: The dataclass, or the settings.
            more: Fields that have options of their own; None if the option is not given.

        Raises:
            SettingsError: A value is of a wrong type or out of its range.
        """
        from pydantic import TypeAdapter, ValidationError

        own = {name: self._values[name] for name, *_ in _fields_of(kind) if name in self._values}
        named = {name: value for name, value in more.items() if value is not None}
        try:
            options = TypeAdapter(kind).validate_python({**own, **named})
        except ValidationError as error:
            raise SettingsError(f"a hyper-parameter is wrong: {first_fault(error)}", "Give another value.") from None
        for name, default, _ in _fields_of(kind):
            value, least = getattr(options, name), int(isinstance(default, int) and default > 0)
            if isinstance(value, int | float) and not isinstance(value, bool):
                if not value >= least:
                    raise SettingsError(f"{name} = {value:g} is too small", f"Give {least} or more.")
                if name in _SHARES and value > 1:
                    raise SettingsError(f"{name} = {value:g} is too large", "Give 1 or less.")
        return options

    def _print(self) -> None:
        import tomli_w

        for name, (default, meaning) in self._fields.items():
            value = self._values.get(name, default)
            line = f"# {name} =" if value is None else tomli_w.dumps({name: value}).rstrip()
            say(f"# {' '.join(meaning.split())}\n{line}\n")


def _fields_of(kind: type) -> "Iterable[tuple[str, Any, str]]":
    """The hyper-parameters of a kind of options: names, defaults and meanings; no options within options."""
    if not is_dataclass(kind):
        for name, info in kind.model_fields.items():  # type: ignore[attr-defined]
            yield name, info.default, info.description or ""
        return
    from docstring_parser import parse

    meanings = {one.arg_name: one.description or "" for one in parse(kind.__doc__ or "").params}
    for field in fields(kind):
        if field.default_factory is MISSING:
            default = None if field.default is MISSING else field.default
            yield field.name, default, meanings.get(field.name, "")


def trained(train: Callable[..., Manifest], *arguments: Any, device: str | None) -> Manifest:
    """Calls a function that trains and returns its result; progress and notes go to standard error."""
    with progress_bar() as on_progress:
        return train(*arguments, device=device, on_progress=on_progress, note=note)


def seeds_of(given: str | None) -> tuple[int, ...]:
    """The seeds of `--seeds`; none if it is not given."""
    parts = [part.strip() for part in (given or "").split(",") if part.strip()]
    if not all(part.isascii() and part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise UsageError(f"--seeds {given!r} is no list of different seeds such as 22,42,55")
    return tuple(map(int, parts))


def recipe_of(system: str | None) -> Any:
    """The recipe of a system, if one is named."""
    from citerec.systems import Recipe

    return Recipe.load(system) if system else None


def tell_dev(out: Path, manifest: Any, value: str, dev: str) -> None:
    """Prints how well a model does on dev, after and before training."""
    say(f"{out} trained: {value} {manifest.dev[value]:.3f} on {dev}, {manifest.dev[f'{value} before']:.3f} before.")
    if not manifest.training["best_step"]:
        note("Training did not help: the base model is kept. More examples or more epochs may help.")


def tell_weighted(out: Path, manifest: Any) -> None:
    """Prints how well a reranker does on dev, after and before training, and the weight of its score."""
    before, after = manifest.dev["mrr@10 before"], manifest.dev["mrr@10"]
    say(
        f"{out} trained: mrr@10 {after:.3f} on {manifest.training['dev_groups']:,} dev contexts, {before:.3f} "
        f"without it; weight {manifest.weight:g}."
    )
    if not manifest.weight:
        note("It did not help: its weight is 0. More contexts or epochs, or other options, may help.")
