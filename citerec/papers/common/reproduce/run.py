"""Runs recipes, shows published figures beside measured ones, and says what each table needs."""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import InputError
from citerec.evaluation.page import write_tables_page
from citerec.evaluation.rendering import Cell, Table, left, right, to_csv
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
from citerec.papers.common.reproduce.here import data_folder, is_here, models_of, sample_of
from citerec.version import __version__

FIGURES, TABLE, PAGE, RESULTS = "reproduction.json", "table.csv", "report.html", "results"
REPRODUCTION = Kind("reproduced table", "citerec-reproduction", FIGURES, frozenset({FIGURES, TABLE, PAGE, RESULTS}))
VERSION = 1
CELLS = "Figures: published, measured, and measured less published."
_WIDTH = 7


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
        missing = [Missing("; ".join(whats), *reason) for reason, whats in reasons.items()]
        reproduction = Reproduction(recipe, replace(outcome, missing=missing))
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
        group: The data set or the class; empty if there is but one.
        measure: The name of the measure.
        published: The published figure, or its mean.
        published_sd: The standard deviation of it.
        measured: The measured value.
        difference: Measured less published.
    """

    row: str
    group: str
    measure: str
    published: float | None
    published_sd: float | None
    measured: Measured | None
    difference: float | None

    @property
    def is_known(self) -> bool:
        """Whether it is published or measured."""
        return self.published is not None or self.measured is not None

    def cells(self, decimals: int, *, sampled: bool) -> list[Cell]:
        """The published figure, the measured one with the deviation of several runs, and the difference."""
        value, sd, ci = (self.measured.value, self.measured.sd, self.measured.ci) if self.measured else (None,) * 3
        around = "" if sd is None else f" ±{sd:.{decimals}f}"
        outside = self.published is not None and ci is not None and not ci[0] <= self.published <= ci[1]
        style = "warning" if outside and not sampled else "faint"
        return [
            Cell(self.published, ((_number(self.published, decimals), "faint"),)),
            Cell(value, ((_number(value, decimals) + around, ""),)),
            Cell(self.difference, ((_number(self.difference, decimals, "+"), style),)),
        ]


def _number(value: float | None, decimals: int, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign},.{decimals}f}"


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
    def groups(self) -> tuple[str, ...]:
        """The data sets, and their mean if there are several; the classes of a table by class."""
        groups = self.recipe.groups
        if self.recipe.by_class:
            groups = tuple(self.outcome.measured_on)
        elif len(groups) > 1:
            groups = (*groups, MEAN)
        return groups or ("",)

    @property
    def has_published(self) -> bool:
        """Whether any published figure is known."""
        return any(row.published for row in self.recipe.rows)

    def entries(self) -> Iterator[Entry]:
        """All figures, row by row, also those that are neither published nor measured."""
        published = {row.title: self.recipe.published(row) for row in self.recipe.rows}
        for row in dict.fromkeys([*published, *(row for row, _, _ in self.outcome.cells)]):
            for group, measure in itertools.product(self.groups, self.recipe.measures):
                figure = published.get(row, {}).get((group, measure.name))
                mean, sd = figure if isinstance(figure, tuple) else (figure, None)
                measured = self.outcome.cells.get((row, group, measure.name))
                difference = None if mean is None or measured is None else measured.value - mean
                yield Entry(row, group, measure.name, mean, sd, measured, difference)

    @property
    def hidden(self) -> list[str]:
        """The data sets with published figures that `tables` leaves out."""
        measured = {group for (_, group, _) in self.outcome.cells}
        return [group for group in self.groups if measured and group not in measured]

    def tables(self, *, page: bool = False) -> list[Table]:
        """A table for each data set.

        For a terminal, only those with a measured figure, if there are such, and three figures in a cell; for a page
        all data sets, measured ones first, and each figure in a column of its own.
        """
        if self.recipe.by_class:
            return [self._by_class()]
        known = {entry.group for entry in self.entries() if entry.is_known}
        shown = [group for group in self.groups if group in known and group not in self.hidden]
        return [self._table(group, apart=page) for group in [*shown, *(self.hidden if page else ())]]

    def _table(self, group: str, *, apart: bool) -> Table:
        """A row for each row of the paper, after its section, and for each that was measured besides."""
        entries = [entry for entry in self.entries() if entry.group == group]
        measures = dict.fromkeys(entry.measure for entry in entries if entry.is_known)
        more = ("measured", "difference") if apart and self.has_published else ()
        headings = [heading for name in measures for heading in (f"{name} published" if more else name, *more)]
        places = {row.title: [row.section, row.name] for row in self.recipe.rows}
        sections = any(section for section, _ in places.values())
        about = self.outcome.measured_on.get(group, "")
        table = Table(
            [*left(*["", ""][: 1 + sections], wrap=False), *right(*headings)],
            title=", ".join(filter(None, (group, f"measured on {about}" if about else ""))),
        )
        before = None
        shown = [entry for entry in entries if entry.measure in measures]
        for row, cells in self._rows(shown, "row", apart=apart).items():
            section, name = places.get(row, ["measured here", row])
            head = [section if section != before else ""] if sections else []
            table.rows.append([*head, name, *cells])
            before = section
        return table

    def _by_class(self) -> Table:
        """A row for each class, and for each system the columns of its measures."""
        entries = list(self.entries())
        systems = dict.fromkeys(entry.row for entry in entries if entry.measured) or dict.fromkeys(
            entry.row for entry in entries
        )
        headings = [f"{system} {measure.name}" for system in systems for measure in self.recipe.measures]
        # The entries go through the systems one by one, so each class has its cells in the order of the headings.
        rows = self._rows([entry for entry in entries if entry.row in systems], "group", apart=False)
        sizes = self.outcome.measured_on
        return Table(
            [*left("class", "n"), *right(*headings)],
            [[group, sizes.get(group, ""), *cells] for group, cells in rows.items()],
        )

    def _rows(self, entries: Iterable[Entry], by: str, *, apart: bool) -> dict[str, list[Cell]]:
        """The cells of some entries by their `row` or `group`; the three of an entry in one, if they are not apart."""
        rows: dict[str, list[Cell]] = {}
        decimals = {measure.name: measure.decimals for measure in self.recipe.measures}
        for entry in entries:
            cells = entry.cells(decimals[entry.measure], sampled=bool(self.outcome.sampled))
            if not self.has_published:
                cells = cells[1:2]
            elif not apart:
                spans = [(text.rjust(_WIDTH), style) for cell in cells for text, style in cell.spans]
                cells = [Cell(cells[1].value, tuple(spans))]
            rows.setdefault(getattr(entry, by), []).extend(cells)
        return rows

    @property
    def remarks(self) -> list[str]:
        """Remarks to read before the tables."""
        note = self.recipe.sample.note if self.outcome.sampled and self.recipe.sample else ""
        return [*filter(None, [note]), *self.recipe.notes, *self.outcome.notes]

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
        figures = [{**asdict(entry), "group": entry.group or None} for entry in self.entries() if entry.is_known]
        return plain(
            {
                "kind": REPRODUCTION.kind,
                "version": VERSION,
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
        table = Table(left("row", "data set", "measure", "published", "measured", "difference", "n", "low", "high"))
        for entry in filter(lambda entry: entry.is_known, self.entries()):
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


def said(value: Any) -> str:
    """A setting as words."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {said(one)}" for name, one in value.items())
    return ", ".join(map(said, value)) if isinstance(value, list | tuple) else str(value)


def needs(data: Path | None = None) -> list[dict[str, Any]]:
    """All tables: what each needs, and what of that is on this machine; an InputError if there is no such data folder.

    Returns:
        As JSON. `rows_here` says how many rows have their system here; None for tables without systems.
    """
    folder = data_folder(data)
    return [
        {
            **recipe.model_dump(include={"name", "title", "paper", "source", "preset", "time"}),
            "data": [
                {
                    **one.model_dump(include={"name", "files", "source", "get"}),
                    "sha256": one.sha256 or "not known here",
                    "here": is_here(folder, one),
                }
                for one in recipe.data
            ],
            "rows": len(recipe.rows),
            "rows_here": RUNNERS[recipe.runner].runnable(recipe),
            "models": models_of(recipe),
            "seeds": recipe.seeds,
            "sample": recipe.sample is not None,
        }
        for recipe in map(read_recipe, recipe_paths())
    ]


def needs_in_words(need: Mapping[str, Any]) -> list[tuple[str, str]]:
    """One of `needs` as lines with their labels: what the table needs, what of that is here, and the time it takes."""
    recipe = read_recipe(need["name"])
    trained = sum(bool(row.train) for row in recipe.rows)
    wanted = [
        f"data: {', '.join(one.name for one in recipe.data if not one.training)}",
        f"models: {', '.join(need['models'])}" if need["models"] else "",
        f"to train: {counted(trained, 'model')}" if trained else "",
    ]
    rows = need["rows_here"]
    here = [
        ", ".join(one["name"] for one in need["data"] if one["here"]) or "no data set",
        f"systems of {rows} of {counted(need['rows'], 'row')}" if rows is not None else "",
        "a sample" if need["sample"] else "no sample",
    ]
    return [
        ("needs", " · ".join(filter(None, wanted))),
        ("here", " · ".join(filter(None, here))),
        ("time", need["time"]),
    ]
