"""A table with published figures beside measured ones: for a terminal, as JSON, and as a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.evaluation.files import plain
from citerec.evaluation.page import write_tables_page
from citerec.evaluation.rendering import Cell, Table, left, right, to_csv
from citerec.files.writing import Kind
from citerec.papers.common.reproduce.base import MEAN, Figure, Measure, Measured, Outcome, Recipe, mean_of
from citerec.version import __version__

FIGURES, TABLE, PAGE, RESULTS = "reproduction.json", "table.csv", "report.html", "results"
REPRODUCTION = Kind("reproduced table", "citerec-reproduction", FIGURES, frozenset({FIGURES, TABLE, PAGE, RESULTS}))
VERSION = 1
CELLS = "Figures: published, measured, and measured less published."
_WIDTH = 7


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A recipe and what a run of it measured.

    Attributes:
        recipe: The recipe.
        outcome: What was measured.
    """

    recipe: Recipe
    outcome: Outcome

    @property
    def sample(self) -> str:
        """What was measured instead of the table's data; empty if it is the table's data."""
        return self.outcome.sampled

    @property
    def title(self) -> str:
        """The title; that of a sample says so."""
        about = f" (sample: {self.sample}, not the table's data)" if self.sample else ""
        return f"{self.recipe.name}: {self.recipe.title}{about}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The data sets, and their mean if there are several; the classes of a table by class."""
        groups = self.recipe.groups
        if self.recipe.by_class:
            return tuple(self.outcome.measured_on) or ("",)
        return (*groups, MEAN) if len(groups) > 1 else groups or ("",)

    @property
    def has_published(self) -> bool:
        """Whether any published figure is known."""
        return any(row.published for row in self.recipe.rows)

    def figures(self) -> Iterator[tuple[str, str, Measure, Figure | None, Measured | None]]:
        """Row, group, measure, the published figure, and the measured one."""
        published = {row.title: self.recipe.published(row) for row in self.recipe.rows}
        for name in (*published, *self.outcome.more_rows):
            for group in self.groups:
                for measure in self.recipe.measures:
                    stated = published.get(name, {}).get((group, measure.name))
                    yield name, group, measure, stated, self.outcome.cells.get((name, group, measure.name))

    def tables(self, *, page: bool = False) -> list[Table]:
        """A table for each data set.

        For a terminal, only those with a measured figure, if there are such, and three figures in a cell; for a page
        all data sets, measured ones first, and each figure in a column of its own.
        """
        if self.recipe.by_class:
            return [self._by_class()]
        known = {group for _, group, _, stated, found in self.figures() if stated is not None or found}
        shown = [group for group in self.groups if group in known and group not in self.hidden]
        return [self._table(group, apart=page) for group in [*shown, *(self.hidden if page else ())]]

    @property
    def hidden(self) -> list[str]:
        """The data sets with published figures that `tables` leaves out."""
        measured = {group for (_, group, _) in self.outcome.cells}
        return [group for group in self.groups if measured and group not in measured]

    def _cells(self, measure: Measure, stated: Figure | None, found: Measured | None, *, apart: bool) -> list[Cell]:
        three = cells(measure, stated, found, sampled=bool(self.sample))
        if not self.has_published:
            return [three[1]]
        return three if apart else [_joined(three)]

    def _table(self, group: str, *, apart: bool) -> Table:
        figures = [one for one in self.figures() if one[1] == group]
        used = dict.fromkeys(measure.name for _, _, measure, stated, found in figures if stated is not None or found)
        rows: dict[str, list[Any]] = {}
        for name, _, measure, stated, found in figures:
            if measure.name in used:
                rows.setdefault(name, []).extend(self._cells(measure, stated, found, apart=apart))
        about = self.outcome.measured_on.get(group, "")
        title = ", ".join(filter(None, (group, f"measured on {about}" if about else "")))
        names = {row.title: row for row in self.recipe.rows}
        sections = any(row.section for row in self.recipe.rows)
        more = ("measured", "difference") if apart and self.has_published else ()
        headings = [heading for name in used for heading in (f"{name} published" if more else name, *more)]
        table = Table([*left(*["", ""][: 1 + sections], wrap=False), *right(*headings)], title=title)
        before = None
        for name, of_row in rows.items():
            row = names.get(name)
            section = row.section if row else "measured here"
            head = [section if section != before else ""] if sections else []
            table.rows.append([*head, row.name if row else name, *of_row])
            before = section
        return table

    def _by_class(self) -> Table:
        """A row for each class, and for each system the columns of its measures."""
        rows = [*(row.title for row in self.recipe.rows), *self.outcome.more_rows]
        measured = [name for name in rows if any(key[0] == name for key in self.outcome.cells)]
        shown = measured or rows
        headings = [f"{name} {measure.name}" for name in shown for measure in self.recipe.measures]
        of_classes: dict[str, list[Any]] = {}
        for name, group, measure, stated, found in self.figures():
            if name in shown:
                of_classes.setdefault(group, []).extend(self._cells(measure, stated, found, apart=False))
        # `figures` goes through the systems one by one, so each class has its cells in the order of the headings.
        table = Table([*left("class", "n"), *right(*headings)])
        about = self.outcome.measured_on
        table.rows.extend([group, about.get(group, ""), *of_class] for group, of_class in of_classes.items())
        return table

    @property
    def remarks(self) -> list[str]:
        """Remarks to read before the tables."""
        sample = [self.recipe.sample.note] if self.sample and self.recipe.sample and self.recipe.sample.note else []
        return [*sample, *self.recipe.notes, *self.outcome.notes]

    def explanations(self) -> list[str]:
        """How to read the cells, and what the values depend on, a line each."""
        recipe = self.recipe
        lines = [CELLS] if self.has_published else []
        lines.append(f"From {recipe.paper}; {recipe.source}.")
        if recipe.preset:
            lines.append(f"Metrics: preset {recipe.preset}.")
        if recipe.settings:
            facts = " · ".join(f"{name}: {said(value)}" for name, value in recipe.settings.items())
            lines.append(f"As published: {facts}.")
        if recipe.seeds:
            lines.append(f"Runs by seed: {', '.join(map(str, recipe.seeds))}.")
        return lines

    def to_json(self) -> dict[str, Any]:
        """The content of reproduction.json. Figures are as the paper prints them."""
        recipe, outcome = self.recipe, self.outcome
        figures = [
            {
                "row": name,
                "group": group or None,
                "measure": measure.name,
                "published": mean_of(stated),
                "published_sd": stated[1] if isinstance(stated, tuple) else None,
                "measured": found,
                "difference": difference(stated, found),
            }
            for name, group, measure, stated, found in self.figures()
            if stated is not None or found is not None
        ]
        return plain(
            {
                "kind": REPRODUCTION.kind,
                "version": VERSION,
                "citerec": __version__,
                "name": recipe.name,
                "title": self.title,
                "paper": recipe.paper,
                "source": recipe.source,
                "sample": self.sample or None,
                "measured_on": outcome.measured_on,
                "preset": recipe.preset or None,
                "metrics": outcome.settings,
                "as_published": recipe.settings,
                "seeds": recipe.seeds,
                "figures": figures,
                "missing": outcome.missing,
                "notes": self.remarks,
            }
        )

    def write(self, out: Path) -> None:
        """Writes reproduction.json, table.csv, report.html, and the results behind them, each in its folder.

        Raises:
            InputError: Something else is there.
            BuildError: The disk is full, or may not be written to.
        """
        with REPRODUCTION.writing(out) as partial:
            (partial / FIGURES).write_bytes(orjson.dumps(self.to_json(), option=orjson.OPT_INDENT_2))
            (partial / TABLE).write_text(to_csv(self._flat()), encoding="utf-8", newline="")
            for name, results in self.outcome.results.items():
                results.write(partial / RESULTS / name)
            write_tables_page(
                partial / PAGE,
                self.title,
                self.tables(page=True),
                notes=self.remarks,
                lines=self.explanations(),
                missing=list(map(str, self.outcome.missing)),
                links=[(f"{RESULTS}/{name}/{PAGE}", f"The results behind it: {name}") for name in self.outcome.results],
            )

    def _flat(self) -> Table:
        headings = left("row", "data set", "measure", "published", "measured", "difference", "n", "low", "high")
        rows = []
        for name, group, measure, stated, found in self.figures():
            if stated is not None or found is not None:
                low, high = (found.ci if found else None) or (None, None)
                value, n = (found.value, found.n) if found else (None, None)
                line = [name, group, measure.name, mean_of(stated), value, difference(stated, found), n, low, high]
                rows.append(line)
        return Table(headings, rows)


def difference(stated: Figure | None, found: Measured | None) -> float | None:
    """Measured less published; None unless both are known."""
    mean = mean_of(stated)
    return None if mean is None or found is None else found.value - mean


def cells(measure: Measure, stated: Figure | None, found: Measured | None, *, sampled: bool) -> list[Cell]:
    """The published figure, the measured one with the deviation of several runs, and the difference."""
    mean, less = mean_of(stated), difference(stated, found)
    value, sd, ci = (found.value, found.sd, found.ci) if found else (None, None, None)
    around = "" if sd is None else f" ±{sd:.{measure.decimals}f}"
    outside = mean is not None and ci is not None and not ci[0] <= mean <= ci[1]
    return [
        Cell(mean, ((_number(mean, measure.decimals), "faint"),)),
        Cell(value, ((_number(value, measure.decimals) + around, ""),)),
        Cell(less, ((_number(less, measure.decimals, "+"), "warning" if outside and not sampled else "faint"),)),
    ]


def _joined(three: Sequence[Cell]) -> Cell:
    """Cells as one, of equal width."""
    spans = [(text.rjust(_WIDTH), style) for one in three for text, style in one.spans]
    return Cell(three[1].value, tuple(spans))


def _number(value: float | None, decimals: int, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign},.{decimals}f}"


def said(value: Any) -> str:
    """A setting as words."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {said(one)}" for name, one in value.items())
    return ", ".join(map(said, value)) if isinstance(value, list | tuple) else str(value)
