"""The commands by name; those of other packages are entry points of `citerec.commands`."""

import difflib
from typing import Any

import click

from citerec.files.registry import Registry

COMMANDS: Registry[click.Command] = Registry(
    "command",
    {
        "check": "citerec.cli.check:check",
        "contexts": "citerec.cli.contexts:contexts",
        "corpus": "citerec.cli.corpus:corpus",
        "demo": "citerec.cli.demo:demo",
        "diagnostics": "citerec.cli.diagnostics:diagnostics",
        "eval": "citerec.cli.evaluate:evaluate",
        "eval-text": "citerec.cli.eval_text:eval_text",
        "fill": "citerec.cli.fill:fill",
        "write": "citerec.cli.write:write",
        "index": "citerec.cli.index:index",
        "lsp": "citerec.cli.serve:lsp",
        "mcp": "citerec.cli.serve:mcp",
        "recommend": "citerec.cli.recommend:recommend",
        "report": "citerec.cli.evaluate:report",
        "serve": "citerec.cli.serve:serve",
        "train": "citerec.cli.train:train",
    },
)
"""Every command; `train.ncn` is the command `ncn` of the group `train`."""


class Commands(click.Group):
    """A group of commands, of which only the one that is called is imported.

    Args:
        prefix: How the names of its commands begin in `COMMANDS`: nothing, or its own name and a dot.
        arguments: As for `click.Group`.
    """

    def __init__(self, *arguments: Any, prefix: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.prefix = prefix

    def list_commands(self, context: click.Context) -> list[str]:
        """Its own commands, and those of `COMMANDS`."""
        named = [name.removeprefix(self.prefix) for name in COMMANDS if name.startswith(self.prefix)]
        return [*super().list_commands(context), *(name for name in named if "." not in name)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of this name, or None."""
        if self.prefix + name in COMMANDS:
            return COMMANDS[self.prefix + name]
        return super().get_command(context, name)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, and its arguments. Click knows no names like a wrong one: none is imported."""
        names = self.list_commands(context)
        if args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names, n=1)
            raise click.UsageError(
                f"No such command {args[0]!r}.{f' Did you mean {near[0]}?' if near else ''}", context
            )
        return super().resolve_command(context, args)
