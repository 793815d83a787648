"""Runs recipes, shows published figures beside measured ones, and says what each table needs."""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import InputError
from citerec.evaluation.page import write_tables_page
from citerec.evaluation.rendering import Cell, Column, Table, left, right, to_csv
from citerec.evaluation.results import plain
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.files.writing import Kind, beside
from citerec.papers.common.reproduce.base import (
    MEAN,
    RUNNERS,
    Measured,
    Missing,
    Outcome,
    Recipe,
    Request,
    read_recipe,
    recipe_paths,
)
from citerec.papers.common.reproduce.here import data_folder, models_of, published, rows_here, sample_of
from citerec.version import __version__

FIGURES, TABLE, PAGE, RESULTS = "reproduction.json", "table.csv", "report.html", "results"
REPRODUCTION = Kind("reproduced table", "citerec-reproduction", FIGURES, frozenset({FIGURES, TABLE, PAGE, RESULTS}))
CELLS = "Figures: published, measured, and measured less published."
_WIDTH = 7
_FIGURE_SPACE = "\u2007"  # as wide as a digit, and kept in HTML


def reproduce(
    name: str,
    *,
    sample: bool = False,
    data: Path | None = None,
    writers: Sequence[str] = (),
    index: Path | None = None,
    out: Path | None = None,
    device: str | None = None,
    on_progress: Progress = no_progress,
) -> "Reproduction":
    """Measures the rows of a published table that can be measured here.

    Args:
        name: The table: "citebench-3"; `recipe_paths` lists them.
        sample: Whether to measure a small sample instead of the table's data.
        data: The data folder; by default that of CITEREC_DATA, ./data or ../shared/data.
        writers: Your own systems for rows: "ROW=NAME" or "ROW=FOLDER"; several for one row are runs of it.
        index: For ranked lists, the index; by default that of the demo set, which is built.
        out: A folder to write to. Texts that were written before a stop are kept beside it, and used again.
        device: The device of models; by default a GPU if there is one.
        on_progress: Called as the work goes on.

    Raises:
        InputError: There is no such table, row or sample, or nothing can be measured because a file is broken.
        BuildError: `out` cannot be written.
    """
    recipe = read_recipe(name)
    if sample:
        sample_of(recipe)
    own = own_writers(recipe, writers)
    folder = data_folder(data)
    if out is not None:
        REPRODUCTION.check_place(out)
    with _work(out) as work:
        outcome = RUNNERS[recipe.runner].run(recipe, Request(folder, sample, work, own, index, device, on_progress))
        reasons: dict[tuple[str, str], list[str]] = {}
        for one in outcome.missing:
            reasons.setdefault((one.why, one.remedy.replace("DATA/", f"{folder or 'data'}/")), []).append(one.what)
        outcome.missing = [Missing("; ".join(whats), *reason) for reason, whats in reasons.items()]
        reproduction = Reproduction(recipe, outcome)
        if out is not None:
            reproduction.write(out)
    return reproduction


def own_writers(recipe: Recipe, options: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Writers by row, from "ROW=NAME", the row with or without its section; an InputError if there is no such row."""
    writers: dict[str, list[str]] = {}
    for option in options:
        wanted, sign, name = option.partition("=")
        titles = [row.title for row in recipe.rows if wanted.strip() in (row.title, row.name)]
        if not sign or len(titles) != 1:
            rows = ", ".join(row.title for row in recipe.rows)
            what = "names several rows" if titles else "names no row"
            raise InputError(f"--writer {option!r} {what} of {recipe.name}", f"Give ROW=NAME with one of: {rows}.")
        writers.setdefault(titles[0], []).append(name.strip())
    return writers


@contextlib.contextmanager
def _work(out: Path | None) -> Iterator[Path]:
    """The folder of texts made on the way: beside `out`, removed when it is written; without `out`, a temporary one."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="citerec-") as temporary:
            yield Path(temporary)
        return
    folder = beside(out.resolve(), "work")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """A figure of a table, as in reproduction.json: published, measured, both, or neither.

    Attributes:
        row: The title of the row.
        group: The data set or the class; None if there is but one.
        measure: The name of the measure.
        published: The published figure, or its mean.
        published_sd: The standard deviation of it.
        measured: The measured value.
        difference: Measured less published.
    """

    row: str
    group: str | None
    measure: str
    published: float | None
    published_sd: float | None
    measured: Measured | None
    difference: float | None


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
    def title(self) -> str:
        """The title; that of a sample says so."""
        sample = self.outcome.sampled
        about = f" (sample: {sample}, not the table's data)" if sample else ""
        return f"{self.recipe.name}: {self.recipe.title}{about}"

    @property
    def has_published(self) -> bool:
        """Whether any published figure is known."""
        return any(row.published for row in self.recipe.rows)

    def entries(self, *, known: bool = False) -> list[Entry]:
        """All figures, row by row; those that are neither published nor measured are left out if `known`."""
        recipe, cells = self.recipe, self.outcome.cells
        groups = tuple(self.outcome.measured_on) if recipe.by_class else recipe.groups
        groups += (MEAN,) * (len(recipe.groups) > 1)
        figures = {row.title: recipe.published(row) for row in recipe.rows}
        rows = dict.fromkeys([*figures, *(row for row, _, _ in cells)])
        entries = []
        for row, group, measure in itertools.product(rows, groups or ("",), recipe.measures):
            mean, sd = figures.get(row, {}).get((group, measure.name), (None, None))
            measured = cells.get((row, group, measure.name))
            difference = None if mean is None or measured is None else measured.value - mean
            if not known or mean is not None or measured is not None:
                entries.append(Entry(row, group or None, measure.name, mean, sd, measured, difference))
        return entries

    @property
    def hidden(self) -> list[str]:
        """The data sets with published figures that `tables` leaves out, because others were measured."""
        measured = {entry.group for entry in self.entries() if entry.measured}
        groups = dict.fromkeys(entry.group for entry in self.entries(known=True) if entry.group)
        return [group for group in groups if measured and group not in measured]

    def tables(self, *, page: bool = False) -> list[Table]:
        """A table for each data set: those with a measured figure, if there are such; on a page the others follow.

        It has a row for each row of the paper, after its section, and for each that was measured besides. A table by
        class has a row for each class, and for each system the columns of its measures.
        """
        space = _FIGURE_SPACE if page else " "
        if self.recipe.by_class:
            measured = {entry.row for entry in self.entries() if entry.measured}
            entries = [entry for entry in self.entries() if entry.row in measured or not measured]
            sizes = {entry.group or "": self.outcome.measured_on.get(entry.group or "", "") for entry in entries}
            cells = [(entry.group or "", f"{entry.row} {entry.measure}", self._cell(entry, space)) for entry in entries]
            return [_pivot(cells, {group: [group, size] for group, size in sizes.items()}, left("class", "n"))]
        hidden, tables = self.hidden, []
        known = dict.fromkeys((entry.group, entry.measure) for entry in self.entries(known=True))
        groups = dict.fromkeys(group for group, _ in known if group not in hidden)
        for group in [*groups, *(hidden if page else ())]:
            entries = [entry for entry in self.entries() if entry.group == group and (group, entry.measure) in known]
            cells = [(entry.row, entry.measure, self._cell(entry, space)) for entry in entries]
            heads = self._heads(dict.fromkeys(entry.row for entry in entries))
            about = self.outcome.measured_on.get(group or "", "")
            title = ", ".join(filter(None, (group, about and f"measured on {about}")))
            tables.append(_pivot(cells, heads, left(*[""] * len(next(iter(heads.values()))), wrap=False), title))
        return tables

    def _heads(self, rows: Iterable[str]) -> dict[str, list[str]]:
        """The section of each row, where a new one begins, if there are any, and its name."""
        places = {row.title: (row.section, row.name) for row in self.recipe.rows}
        sectioned = any(section for section, _ in places.values())
        heads, before = {}, ""
        for row in rows:
            section, name = places.get(row, ("measured here", row))
            heads[row] = [section if section != before else "", name][not sectioned :]
            before = section
        return heads

    def _cell(self, entry: Entry, space: str) -> Cell:
        """The published figure, the measured one with the deviation of several runs, and the difference."""
        decimals = next(measure.decimals for measure in self.recipe.measures if measure.name == entry.measure)

        def number(value: float | None, sign: str = "") -> str:
            return "–" if value is None else f"{value:{sign},.{decimals}f}"

        value, sd, ci = (entry.measured.value, entry.measured.sd, entry.measured.ci) if entry.measured else (None,) * 3
        measured = number(value) + ("" if sd is None else f" ±{sd:.{decimals}f}")
        if not self.has_published:
            return Cell(value, ((measured, ""),))
        outside = entry.published is not None and ci is not None and not ci[0] <= entry.published <= ci[1]
        style = "warning" if outside and not self.outcome.sampled else "faint"
        parts = [(number(entry.published), "faint"), (measured, ""), (number(entry.difference, "+"), style)]
        return Cell(value, tuple((text.rjust(_WIDTH, space), style) for text, style in parts))

    @property
    def remarks(self) -> list[str]:
        """Remarks to read before the tables."""
        note = self.recipe.sample.note if self.outcome.sampled and self.recipe.sample else ""
        return [*filter(None, [note]), *self.recipe.notes, *self.outcome.notes]

    def explanations(self) -> list[str]:
        """How to read the cells, and what the values depend on, a line each."""
        recipe = self.recipe
        facts = " · ".join(f"{name}: {_said(value)}" for name, value in recipe.settings.items())
        lines = [
            CELLS if self.has_published else "",
            f"From {recipe.paper}; {recipe.source}.",
            f"Metrics: preset {recipe.preset}." if recipe.preset else "",
            f"As published: {facts}." if facts else "",
            f"Runs by seed: {_said(recipe.seeds)}." if recipe.seeds else "",
        ]
        return list(filter(None, lines))

    def to_json(self) -> dict[str, Any]:
        """The content of reproduction.json. Figures are as the paper prints them."""
        recipe, outcome = self.recipe, self.outcome
        return plain(
            {
                "kind": REPRODUCTION.kind,
                "version": 1,
                "citerec": __version__,
                "name": recipe.name,
                "title": self.title,
                "paper": recipe.paper,
                "source": recipe.source,
                "sample": outcome.sampled or None,
                "measured_on": outcome.measured_on,
                "preset": recipe.preset or None,
                "metrics": outcome.settings,
                "as_published": recipe.settings,
                "seeds": recipe.seeds,
                "figures": list(map(asdict, self.entries(known=True))),
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
        table = Table(left("row", "data set", "measure", "published", "measured", "difference", "n", "low", "high"))
        for entry in self.entries(known=True):
            one = entry.measured
            value, n, ci = (one.value, one.n, one.ci) if one else (None, None, None)
            figures = [entry.published, value, entry.difference, n, *(ci or (None, None))]
            table.rows.append([entry.row, entry.group, entry.measure, *figures])
        with REPRODUCTION.writing(out) as partial:
            (partial / FIGURES).write_bytes(orjson.dumps(self.to_json(), option=orjson.OPT_INDENT_2))
            (partial / TABLE).write_text(to_csv(table), encoding="utf-8", newline="")
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


def _pivot(
    cells: Sequence[tuple[str, str, Cell]], heads: Mapping[str, list[str]], columns: Sequence[Column], title: str = ""
) -> Table:
    """A table of cells by row and column, after the heads of the rows; each row has its cells in one order."""
    rows: dict[str, list[str | Cell]] = {row: [*head] for row, head in heads.items()}
    for row, _, cell in cells:
        rows[row].append(cell)
    return Table([*columns, *right(*dict.fromkeys(column for _, column, _ in cells))], list(rows.values()), title)


def _said(value: Any) -> str:
    """A setting as words."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(one)}" for name, one in value.items())
    return ", ".join(map(_said, value)) if isinstance(value, list | tuple) else str(value)


def needs(data: Path | None = None) -> list[dict[str, Any]]:
    """All tables: what each needs, and what of that is on this machine; an InputError if there is no such data folder.

    Returns:
        As JSON. `rows_here` says how many rows have their system here; None for tables without systems.
    """
    folder = data_folder(data)
    return [
        {
            **recipe.model_dump(include={"name", "title", "paper", "source", "preset", "time", "seeds"}),
            "data": [{**one.model_dump(), "here": bool(published(folder, one, []))} for one in recipe.data],
            "rows": len(recipe.rows),
            "rows_here": rows_here(recipe),
            "rows_to_train": sum(bool(row.train) for row in recipe.rows),
            "models": models_of(recipe),
            "sample": recipe.sample is not None,
        }
        for recipe in map(read_recipe, recipe_paths())
    ]


def needs_in_words(need: Mapping[str, Any]) -> list[tuple[str, str]]:
    """One of `needs` as lines with their labels: what the table needs, what of that is here, and the time it takes."""
    wanted = [
        f"data: {', '.join(one['name'] for one in need['data'] if not one['training'])}",
        f"models: {', '.join(need['models'])}" if need["models"] else "",
        f"to train: {counted(need['rows_to_train'], 'model')}" if need["rows_to_train"] else "",
    ]
    here = [
        ", ".join(one["name"] for one in need["data"] if one["here"]) or "no data set",
        f"systems of {need['rows_here']} of {counted(need['rows'], 'row')}" if need["rows_here"] is not None else "",
        "a sample" if need["sample"] else "no sample",
    ]
    lines = {"needs": wanted, "here": here, "time": [need["time"]]}
    return [(label, " · ".join(filter(None, parts))) for label, parts in lines.items()]
