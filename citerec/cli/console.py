"""What the commands share: consoles, progress, options."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console


class PartsOption(click.Option):
    """An option whose help names the parts that there are. They are looked for only when the help is shown.

    Args:
        parts: Gives the texts that stand for `{names}` in the help.
    """

    def __init__(self, *declarations: Any, parts: Callable[[], Mapping[str, str]], **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self._parts = parts

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].format_map(self._parts()))


SYSTEM_HELP = (
    "{systems}; any of them with +RERANKER behind it; or a TOML file of settings.  "
    "[default: the best that the index supports]"
)


def system_parts() -> dict[str, str]:
    """The systems that there are, for `SYSTEM_HELP`."""
    from citerec.systems import system_names

    return {"systems": ", ".join(system_names())}


settings_options: list[Callable[[Any], Any]] = [
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one setting, for example lucene.bm25.k1=0.9; may be repeated. Keys: docs/settings.md.",
    ),
    click.option("--system", metavar="NAME|FILE", cls=PartsOption, parts=system_parts, help=SYSTEM_HELP),
]


class Share(click.FloatRange):
    """A share from 0 to 1; `nan` is none."""

    name = "share"

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share as a number."""
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail(f"{value!r} is no share from 0 to 1", param, ctx)
        return share


def with_options(options: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """A decorator that adds several options, in their order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def contexts(number: int) -> str:
    """A number of contexts, in words that agree with it."""
    return f"{number:,} context{'' if number == 1 else 's'}"


def output() -> "Console":
    """Where answers go. Without a terminal the lines are 100 wide."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def notes() -> "Console":
    """Where notes and progress go: standard error, so that answers can be piped on."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)
