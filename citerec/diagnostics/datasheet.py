"""The datasheet of a set: what it is, how it was made, what it cannot show."""

import csv
import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.diagnostics.bounds import strata
from citerec.diagnostics.families import title_of
from citerec.diagnostics.label import FEW
from citerec.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Template

CELLS, REJECTED_LINES, FIGURES = "cells.csv", "quarantine.jsonl", "figures"
"""The files that may be beside a datasheet."""

CELL = ("field", "years", "citation_count", "family", "class")
"""The columns of cells.csv that tell one class of a cell from another."""

COLUMNS = (*CELL, "wanted", "chosen", "fitting_papers", "drawn_papers", "papers", "why")
"""All of its columns."""

FUNNEL = {
    "papers": "papers of the corpus",
    "in_strata": "with a field, a year and a citation count of the strata",
    "texts": "full texts at hand",
    "cited": "papers that these texts cite",
    "eligible": "of them in the corpus and the strata, with title, authors and venue",
    "drawn": "papers drawn",
    "citing": "citing papers found",
    "citing_texts": "texts of them found",
    "sentences": "sentences that cite, in their paragraphs",
    "usable": "usable sentences that cite a drawn paper",
    "chosen": "contexts chosen",
}
"""The steps of a build, in order, in words."""


def write_datasheet(path: Path, manifest: Mapping[str, Any], *, has_reviews: bool = False) -> None:
    """Writes the datasheet from a set's manifest; the other files must be there."""
    folder = path.parent
    families, reasons = _summary(read_cells(folder / CELLS))
    text = _template().render(
        set=manifest,
        cells=families,
        reasons=reasons,
        figures=sorted(figure.relative_to(folder).as_posix() for figure in folder.glob(f"{FIGURES}/*.svg")),
        has_reviews=has_reviews,
        has_rejected=(folder / REJECTED_LINES).is_file(),
    )
    path.write_text(text, encoding="utf-8")


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of cells.csv; none if a set has no cells.

    Raises:
        InputError: The file is broken.
    """
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").split("\n"))) if path.exists() else []
        _ = [({name: row[name] for name in CELL}, row["why"].split("; "), state_of(row)) for row in rows]
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error) as error:
        raise InputError(f"{path} is broken ({error})", "Fetch it again, or remove it from the set.") from error
    return rows


def write_cells(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes cells.csv, of which there is at least one row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def state_of(row: Mapping[str, Any]) -> str:
    """How full a class of a cell is."""
    wanted, chosen = int(row["wanted"]), int(row["chosen"])
    return "full" if chosen >= wanted else "partly" if chosen else "empty"


def states_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many classes of cells are wanted, and how many of them are full, partly full and empty."""
    states = Counter(map(state_of, rows))
    return {"wanted": len(rows), **{state: states[state] for state in ("full", "partly", "empty")}}


def _summary(rows: Iterable[Mapping[str, str]]) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """For each family how many classes of cells there are and how full they are; and why some are not full."""
    families, reasons = defaultdict[str, Counter[str]](Counter), Counter[str]()
    for row in rows:
        numbers = {name: int(row[name]) for name in ("wanted", "chosen")}
        families[row["family"]].update({"all": 1, state_of(row): 1, **numbers})
        reasons.update(filter(None, row["why"].split("; ")))
    return families, reasons


@functools.cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("citerec.diagnostics")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update(title_of=title_of, funnel=FUNNEL, few=FEW, rules=strata())
    return environment.get_template("datasheet.md.j2")
