"""The record of a build: the funnel, the corpus, how full each cell is; and the files with these facts."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.usable import OUTCOMES
from citerec.diagnostics.bounds import Bounds, CensusRow
from citerec.diagnostics.build.choose import CellChoice, Filling
from citerec.diagnostics.build.documents import Collections
from citerec.diagnostics.build.draw import Cell, Draw
from citerec.diagnostics.build.figures import write_figures
from citerec.diagnostics.datasheet import CELLS, FIGURES, FUNNEL, QUARANTINE
from citerec.diagnostics.sets import RESERVES
from citerec.diagnostics.strata import strata
from citerec.records import Context

_COLUMNS = (
    *("field", "years", "citation_count", "family", "class"),
    *("wanted", "chosen", "fitting_papers", "drawn_papers", "papers", "why"),
)
POSITIONS = 20
"""Bins of places in a sentence, for the figure."""


@dataclass(slots=True)
class Record:
    """The record of a build.

    Attributes:
        funnel: How many were left after each step, by the keys of FUNNEL.
        outcomes: Outcomes of the citing sentences.
        positions: Usable sentences by the place of their marker ÷ their length, in twentieths from 1.
        tags: The same sentences by the Penn tag of the word before the marker, and after it.
        lengths: The same sentences by length in words.
    """

    census: list[CensusRow] = field(default_factory=list)
    bounds: Bounds | None = None
    funnel: dict[str, int] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    filling: list[Filling] = field(default_factory=list)
    positions: Counter[int] = field(default_factory=Counter)
    tags: dict[str, Counter[str]] = field(default_factory=lambda: {"before": Counter(), "after": Counter()})
    lengths: Counter[int] = field(default_factory=Counter)

    def take_census(self, census: list[CensusRow], bounds: Bounds) -> None:
        """Notes what the corpus holds."""
        rules = strata()
        self.census, self.bounds = census, bounds
        self.funnel["papers"] = sum(row.papers for row in census)
        self.funnel["in_strata"] = sum(
            row.papers
            for row in census
            if row.field and rules.year.group_of(row.year) and (row.citation_count or 0) >= rules.citation_count.least
        )

    def take_draw(self, draw: Draw) -> None:
        """Notes which papers could be drawn."""
        self.funnel |= {"cited": draw.cited, "eligible": draw.eligible}

    def take_tally(self, tally: Mapping[str, Any]) -> None:
        """Notes what extraction saw in a shard."""
        self.funnel["sentences"] = self.funnel.get("sentences", 0) + tally["sentences"]
        self.outcomes.update(tally[OUTCOMES])

    def take_store(self, kept: Collections, *, has_citations: bool, has_texts: bool) -> None:
        """Notes what the collections hold, and looks at every usable sentence."""
        self.funnel |= {"drawn": kept.count("cited_papers"), "usable": kept.count("contexts")}
        if has_citations:
            self.funnel["citing"] = kept.count("citing_papers")
        if has_texts:
            self.funnel["citing_texts"] = kept.count("texts")
        for document in kept.contexts():
            sentence = document["sentence"]
            self.lengths[sentence["length"]] += 1
            self.positions[-(-POSITIONS * sentence["position"] // sentence["length"])] += 1
            for side, tags in self.tags.items():
                if tag := sentence[f"tag_{side}"]:
                    tags[tag] += 1

    def take_choices(self, choices: Mapping[Cell, CellChoice]) -> None:
        """Notes how full each class of each cell is."""
        self.filling = [filling for choice in choices.values() for filling in choice.filling]
        self.funnel["chosen"] = sum(len(choice.chosen) for choice in choices.values())

    def steps(self) -> dict[str, int]:
        """The funnel in order; steps that were not taken are left out."""
        return {step: self.funnel[step] for step in FUNNEL if step in self.funnel}

    def cells(self) -> dict[str, int]:
        """How many classes of cells were to be filled, are full, hold fewer than were wanted, or nothing."""
        return {
            "wanted": len(self.filling),
            "full": sum(filling.chosen == filling.wanted for filling in self.filling),
            "partly": sum(0 < filling.chosen < filling.wanted for filling in self.filling),
            "empty": sum(not filling.chosen for filling in self.filling),
        }

    def write(
        self, folder: Path, reserves: Sequence[tuple[Mapping[str, Any], Context]], quarantine: Iterable[bytes]
    ) -> None:
        """Writes the files beside a set: the cells, the reserves, the quarantine if there is one, the figures."""
        self._write_cells(folder / CELLS)
        with (folder / RESERVES).open("wb") as file:
            for record, _ in reserves:
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        with (folder / QUARANTINE).open("wb") as file:
            file.writelines(line + b"\n" for line in quarantine)
        if not (folder / QUARANTINE).stat().st_size:
            (folder / QUARANTINE).unlink()
        (folder / FIGURES).mkdir()
        write_figures(folder / FIGURES, self)

    def _write_cells(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_COLUMNS)
            for filling in self.filling:
                counts = (filling.wanted, filling.chosen, filling.fitting, filling.drawn, filling.papers)
                writer.writerow([*filling.cell, filling.slot.family, filling.slot.label, *counts, why(filling)])


def why(filling: Filling) -> str:
    """Why a class of a cell has fewer contexts than were wanted; empty if it is full."""
    if filling.chosen >= filling.wanted:
        return ""
    if filling.fitting > filling.chosen:
        return "its papers stand for other classes"
    return "no further paper has such a sentence" if filling.drawn >= filling.papers else "not all papers were drawn"
