"""What the commands share: consoles, progress, options."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

INDEXES = Path("indexes")

settings_options: list[Callable[[Any], Any]] = [
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one setting, for example bm25.k1=0.9; may be repeated. Keys: docs/settings.md.",
    ),
    click.option(
        "--recipe",
        metavar="NAME|FILE",
        help="Take settings from a recipe: a TOML file, or one that is shipped.",
    ),
]


def with_options(options: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """A decorator that adds several options, in their order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output() -> "Console":
    """Where answers go. Without a terminal the lines are 100 wide."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def notes() -> "Console":
    """Where notes and progress go: standard error, so that answers can be piped on."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def shipped(*parts: str) -> Path:
    """A file or folder that comes with citerec: inside the wheel, or in its place in a checkout."""
    package = Path(__file__).parent.parent
    inside = package.joinpath("shipped", *parts)
    if inside.exists():
        return inside
    root = package.parent
    return root.joinpath("indexes", *parts) if parts[0] == "recipes" else root.joinpath(*parts)


def find_index(given: Path | None) -> Path:
    """The index to ask: the one given, or the only one below `indexes/`.

    Raises:
        IndexUnusableError: None is given, and there is none or several to choose from.
    """
    from citerec.errors import IndexUnusableError

    if given is not None:
        return given
    found = sorted(path.parent for path in INDEXES.glob("[!.]*/manifest.json"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise IndexUnusableError(
            "there is no index yet", "Run `citerec demo`, or: citerec index build SOURCE… --out indexes/NAME"
        )
    raise IndexUnusableError("there are several indexes", f"Choose one with --index: {', '.join(map(str, found))}")


def find_recipe(name: str | None) -> Path | None:
    """The file of a recipe, by path or by the name of a shipped one.

    Raises:
        SettingsError: There is none.
    """
    from citerec.errors import SettingsError

    if name is None:
        return None
    for path in (Path(name), INDEXES / "recipes" / f"{name}.toml", shipped("recipes", f"{name}.toml")):
        if path.is_file():
            return path
    known = sorted(path.stem for path in shipped("recipes").glob("*.toml"))
    raise SettingsError(f"there is no recipe {name!r}", f"Give a TOML file, or one of: {', '.join(known)}.")
