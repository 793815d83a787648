"""The datasheet of a set: what it is, how it was made, what it cannot show."""

import csv
import functools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

from citerec.diagnostics.label import FEW
from citerec.diagnostics.strata import strata

CELLS, QUARANTINE, FIGURES = "cells.csv", "quarantine.jsonl", "figures"
"""The files that may be beside a datasheet."""

FUNNEL = {
    "papers": "papers of the corpus",
    "in_strata": "with a field, a year and a citation count of the strata",
    "texts": "full texts at hand",
    "cited": "papers that these texts cite",
    "eligible": "of them in the corpus and the strata, with title, authors and venue",
    "drawn": "papers drawn",
    "citing": "citing papers found",
    "citing_texts": "texts of them found",
    "sentences": "sentences that cite, in their paragraphs (counted each round)",
    "usable": "usable sentences that cite a drawn paper",
    "chosen": "contexts chosen",
}
"""The steps of a build, in order, in words."""

_FIGURES = {
    "funnel": "How many were left after each step",
    "cells": "How full the cells of each class are",
    "fields": "Papers of the corpus by field",
    "years": "Papers of the corpus by year",
    "citation-counts": "Mean citation count by field",
    "lengths": "Length of the usable sentences",
    "positions": "Place of the citation in them",
    "parts-of-speech": "Parts of speech around it",
}


def write_datasheet(
    path: Path, manifest: Mapping[str, Any], titles: Mapping[str, str], *, has_reviews: bool = False
) -> None:
    """Writes the datasheet from a set's manifest and the titles of its families; other files must be there."""
    folder, rules = path.parent, strata()
    cells, reasons = _cells(folder / CELLS)
    figures = {f"{FIGURES}/{name}.svg": what for name, what in _FIGURES.items()}
    funnel = manifest["sampling"]["funnel"] if manifest["sampling"] else {}
    text = _template().render(
        set=manifest,
        titles=titles,
        few=FEW,
        steps=[(FUNNEL.get(step, step), count) for step, count in funnel.items()],
        cells=cells,
        reasons=reasons,
        least_citations=rules.citation_count.least,
        first_year=rules.year.groups[0][0],
        last_year=rules.year.groups[-1][1],
        figures={name: what for name, what in figures.items() if (folder / name).is_file()},
        has_reviews=has_reviews,
        has_quarantine=(folder / QUARANTINE).is_file(),
    )
    path.write_text(text, encoding="utf-8")


def _cells(path: Path) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """For each family how many classes of cells there are and how full they are; and why some are not full."""
    families: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                wanted, chosen = int(row["wanted"]), int(row["chosen"])
                state = "full" if chosen >= wanted else "partly" if chosen else "empty"
                families.setdefault(row["family"], Counter()).update(
                    {"all": 1, state: 1, "wanted": wanted, "chosen": chosen}
                )
                reasons.update(filter(None, row["why"].split("; ")))
    return families, reasons


@functools.cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("citerec.diagnostics")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("datasheet.md.j2")
