"""Every command has help and an example; links and pages that are named are there."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from docs.reference import PAGES, cli_reference, commands
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_has_help_and_an_example(path: str, command: App) -> None:
    assert re.search(r"\n\n *Example: citerec", command.help)
    if command.default_command is not None:
        for argument in command.assemble_argument_collection(parse_docstring=True):
            assert argument.parameter.help or argument.name == "*", f"{path} {argument.name}"


def pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from sorted((ROOT / "benchmarks").glob("*.md"))


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        is_made = target.removeprefix("reference/") in PAGES  # when the site is built
        assert is_made or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_that_the_code_names_are_there() -> None:
    for path in [*(ROOT / "citerec").rglob("*.py"), *(ROOT / "indexes" / "recipes").glob("*.toml")]:
        for page in re.findall(r"docs/([\w-]+\.md)", path.read_text(encoding="utf-8")):
            assert (ROOT / "docs" / page).exists(), f"{path.relative_to(ROOT)} names docs/{page}"


def test_options_that_pages_name_are_there() -> None:
    options = set(re.findall(r"--[a-z][a-z0-9-]*", cli_reference()))
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / "citerec").rglob("*.md")]:
        named = set(re.findall(r"`(--[a-z][a-z0-9-]*)", page.read_text(encoding="utf-8")))
        assert named <= options, f"{page.name} names {named - options}"


def test_published_figures_stand_in_one_file() -> None:
    """README, benchmarks and datasheets have the figures of reproducibility.toml, and its page is up to date."""
    reproducibility = runpy.run_path(str(ROOT / "benchmarks" / "reproducibility.py"))
    assert (ROOT / "docs" / "reproducibility.md").read_text(encoding="utf-8") == reproducibility["page"]()
    figures = [value for one in reproducibility["RESULTS"].values() for value in one["figures"].values()]
    known = {f"{value:.3f}".lstrip("0") for value in figures} | {f"{100 * value:.1f}" for value in figures}
    readme = (ROOT / "README.md").read_text(encoding="utf-8").split("R@10 | MRR@10")[1].split("\n\n")[0]
    benchmarks = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split("## Quality on held-out")[0]
    encoder = (ROOT / "indexes" / "encoder" / "DATASHEET.md").read_text(encoding="utf-8").split("| data/acm:")[1]
    for text in (readme, benchmarks, encoder.split("\n\n")[0]):
        assert (found := set(re.findall(r"(?<!\d)\.\d{3}\b", text)))
        assert found <= known, found - known
