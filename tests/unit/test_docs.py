"""The documents tell the truth of the code: generated pages are fresh, every command has help and an example."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from citerec.cli.reference import cli_reference, commands, settings_reference
from tests.conftest import ROOT


@pytest.mark.parametrize(("page", "made"), [("cli.md", cli_reference), ("settings.md", settings_reference)])
def test_generated_pages_are_fresh(page: str, made: object) -> None:
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == made(), "stale: run `make docs`"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_has_help_and_an_example(path: str, command: click.Command) -> None:
    assert command.help
    assert command.epilog
    assert command.epilog.startswith("Example: citerec")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name}"


def test_help_names_every_built_in_system() -> None:
    told = next(command for path, command in commands() if path == "citerec eval")
    option = next(parameter for parameter in told.params if parameter.name == "systems")
    assert isinstance(option, click.Option)
    for recipe in (ROOT / "indexes" / "recipes").glob("*.toml"):
        assert recipe.stem in (option.get_help_record(click.Context(told)) or ("", ""))[1]


def pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from sorted((ROOT / "benchmarks").glob("*.md"))


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_dependency_earns_its_line() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[<>=\[]", requirement)[0] for requirement in wanted} - {"citerec"}
    told = set(
        re.findall(r"^\| `([\w-]+)`", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert told == names


def test_modules_stay_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "citerec").rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 420
    }
    assert long == {}
