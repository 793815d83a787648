"""Runs recipes, shows published figures beside measured ones, and says what each table needs."""

import contextlib
import itertools
import pkgutil
import shutil
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from citerec.errors import InputError
from citerec.evaluation.page import write_tables_page
from citerec.evaluation.rendering import Cell, Table, left, marked, right, to_csv
from citerec.evaluation.results import plain
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.files.writing import Kind, beside
from citerec.papers.common.reproduce import here
from citerec.papers.common.reproduce.here import Missing
from citerec.papers.common.reproduce.recipes import MEAN, Recipe, Sample, read_recipe, recipe_paths
from citerec.version import __version__
from citerec.write.tasks import TextTask

if TYPE_CHECKING:
    from citerec.evaluation.results import Results

FIGURES, TABLE, PAGE, RESULTS = "reproduction.json", "table.csv", "report.html", "results"
REPRODUCTION = Kind("reproduced table", "citerec-reproduction", FIGURES, frozenset({FIGURES, TABLE, PAGE, RESULTS}))
_WIDTH = 7
_FIGURE_SPACE = "\u2007"  # as wide as a digit, and kept in HTML


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value in the unit of the paper, of n items, with its 95 % interval; of several runs the mean."""

    value: float
    n: int
    ci: Sequence[float] | None = None
    sd: float | None = None
    runs: int = 1

    @classmethod
    def of_runs(cls, runs: Sequence["Measured"]) -> "Measured":
        """One run as it is; several as their mean with the standard deviation of the sample."""
        if len(runs) == 1:
            return runs[0]
        values = [run.value for run in runs]
        return cls(statistics.fmean(values), runs[0].n, sd=statistics.stdev(values), runs=len(runs))


@dataclass(slots=True)
class Reproduction:
    """A recipe, how to run it, and what was measured.

    The recipe's `runner` is called with it. It measures what can be measured, and adds the rest to `missing`; it raises
    an InputError if nothing can be measured, and a SourceError if a file cannot be read.

    Attributes:
        recipe: The recipe.
        data: The data folder; None if there is none.
        work: A folder for texts and indexes that are made on the way; what is there already is used again.
        sample: The sample that is measured instead of the table's data; None to measure these.
        writers: By row, your own writers or checkpoints: several are runs of one system.
        index: The index that ranked lists come from.
        device: The device of models.
        on_progress: Called as the work goes on.
        cells: Measured values by row, group and measure; a row that the recipe does not have is shown below its own.
        missing: What could not be measured.
        measured_on: What was measured, by group: "219 tasks".
        settings: The settings of the metrics.
        sampled: What was measured instead of the table's data, if so: "50 tasks of CiteBench".
        results: The results behind the values, by name; each is written as a folder of its own.
        notes: Remarks.
    """

    recipe: Recipe
    data: Path | None
    work: Path
    sample: Sample | None = None
    writers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    index: Path | None = None
    device: str | None = None
    on_progress: Progress = no_progress
    cells: dict[tuple[str, str, str], Measured] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    measured_on: dict[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    sampled: str = ""
    results: "Mapping[str, Results]" = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def sample_tasks(self) -> list[TextTask]:
        """The tasks of the sample, which are then what was measured."""
        assert self.sample
        what, tasks = here.sample_tasks(self.recipe, self.sample, self.data, self.work, self.on_progress)
        self.sampled = f"{len(tasks):,} {what}"
        return tasks

    @property
    def title(self) -> str:
        """The title; that of a sample says so."""
        about = f" (sample: {self.sampled}, not the table's data)" if self.sampled else ""
        return f"{self.recipe.name}: {self.recipe.title}{about}"

    @property
    def has_published(self) -> bool:
        """Whether any published figure is known."""
        return any(row.published for row in self.recipe.rows)

    def figures(self, *, known: bool = False) -> list[dict[str, Any]]:
        """All figures, row by row; those that are neither published nor measured are left out if `known`.

        Returns:
            Of each its `row`, its `group` (a data set or a class; None if there is but one) and its `measure`;
            `published` and the standard deviation `published_sd`; `measured`; and the `difference`, measured less
            published. What is not known is None.
        """
        recipe = self.recipe
        groups = [*(self.measured_on if recipe.by_class else recipe.groups), *[MEAN] * (len(recipe.groups) > 1)]
        published = {row.title: recipe.published(row) for row in recipe.rows}
        rows = dict.fromkeys([*published, *(row for row, _, _ in self.cells)])
        figures = []
        for row, group, measure in itertools.product(rows, groups or [""], recipe.measures):
            mean, sd = published.get(row, {}).get((group, measure.name), (None, None))
            measured = self.cells.get((row, group, measure.name))
            if not known or mean is not None or measured is not None:
                difference = None if mean is None or measured is None else measured.value - mean
                place = {"row": row, "group": group or None, "measure": measure.name}
                values = {"published": mean, "published_sd": sd, "measured": measured, "difference": difference}
                figures.append({**place, **values})
        return figures

    @property
    def hidden(self) -> list[str]:
        """The data sets with published figures that `tables` leaves out, because others were measured."""
        measured = {one["group"] for one in self.figures() if one["measured"]}
        groups = dict.fromkeys(one["group"] for one in self.figures(known=True) if one["group"])
        return [group for group in groups if measured and group not in measured]

    def tables(self, *, page: bool = False) -> list[Table]:
        """A table for each data set: those with a measured figure, if there are such; on a page the others follow.

        It has a row for each row of the paper, after its section, and for each that was measured besides. A table by
        class has a row for each class, and for each system the columns of its measures.
        """
        figures, space = self.figures(), _FIGURE_SPACE if page else " "
        if self.recipe.by_class:
            measured = {one["row"] for one in figures if one["measured"]}
            shown = [one for one in figures if one["row"] in measured or not measured]
            cells = [(one["group"] or "", f"{one['row']} {one['measure']}", self._cell(one, space)) for one in shown]
            heads = {group: [group, self.measured_on.get(group, "")] for group, _, _ in cells}
            return [_pivot(cells, heads, ["class", "n"])]
        tables, hidden = [], self.hidden
        known = dict.fromkeys((one["group"], one["measure"]) for one in self.figures(known=True))
        groups = dict.fromkeys(group for group, _ in known if group not in hidden)
        for group in [*groups, *(hidden if page else ())]:
            shown = [one for one in figures if one["group"] == group and (group, one["measure"]) in known]
            cells = [(one["row"], one["measure"], self._cell(one, space)) for one in shown]
            heads = self._heads(dict.fromkeys(one["row"] for one in shown))
            about = self.measured_on.get(group or "", "")
            title = ", ".join(filter(None, (group, about and f"measured on {about}")))
            tables.append(_pivot(cells, heads, [""] * len(next(iter(heads.values()))), title, wrap=False))
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

    def _cell(self, figure: Mapping[str, Any], space: str) -> Cell:
        """The published figure, the measured one with the deviation of several runs, and the difference."""
        decimals = next(one.decimals for one in self.recipe.measures if one.name == figure["measure"])

        def number(value: float | None, sign: str = "") -> str:
            return "–" if value is None else f"{value:{sign},.{decimals}f}"

        one, mean = figure["measured"], figure["published"]
        value, sd, ci = (one.value, one.sd, one.ci) if one else (None, None, None)
        measured = number(value) + ("" if sd is None else f" ±{sd:.{decimals}f}")
        if not self.has_published:
            return Cell(value, ((measured, ""),))
        outside = mean is not None and ci is not None and not ci[0] <= mean <= ci[1]
        style = "warning" if outside and not self.sampled else "faint"
        parts = [(number(mean), "faint"), (measured, ""), (number(figure["difference"], "+"), style)]
        return Cell(value, tuple((text.rjust(_WIDTH, space), style) for text, style in parts))

    @property
    def remarks(self) -> list[str]:
        """Remarks to read before the tables."""
        note = [self.sample.note] if self.sampled and self.sample and self.sample.note else []
        return [*note, *self.recipe.notes, *self.notes]

    def explanations(self) -> list[str]:
        """How to read the cells, and what the values depend on, a line each."""
        recipe = self.recipe
        facts = " · ".join(f"{name}: {_in_words(value)}" for name, value in recipe.settings.items())
        lines = [
            "Figures: published, measured, and measured less published." if self.has_published else "",
            f"From {recipe.paper}; {recipe.source}.",
            f"Metrics: preset {recipe.preset}." if recipe.preset else "",
            f"As published: {facts}." if facts else "",
            f"Runs by seed: {_in_words(recipe.seeds)}." if recipe.seeds else "",
        ]
        return list(filter(None, lines))

    def to_json(self) -> dict[str, Any]:
        """The content of reproduction.json. Figures are as the paper prints them."""
        values = {
            "kind": REPRODUCTION.kind,
            "version": 1,
            "citerec": __version__,
            **self.recipe.model_dump(include={"name", "paper", "source", "preset", "seeds"}),
            "title": self.title,
            "sample": self.sampled or None,
            "measured_on": self.measured_on,
            "preset": self.recipe.preset or None,
            "metrics": self.settings,
            "as_published": self.recipe.settings,
            "figures": self.figures(known=True),
            "missing": self.missing,
            "notes": self.remarks,
        }
        return plain(values)

    def write(self, out: Path) -> None:
        """Writes reproduction.json, table.csv, report.html, and the results behind them, each in its folder.

        Raises:
            InputError: Something else is there.
            BuildError: The disk is full, or may not be written to.
        """
        table = Table(left("row", "data set", "measure", "published", "measured", "difference", "n", "low", "high"))
        for figure in self.figures(known=True):
            row, group, measure, published, _, one, difference = figure.values()
            value, n, ci = (one.value, one.n, one.ci) if one else (None, None, None)
            table.rows.append([row, group, measure, published, value, difference, n, *(ci or (None, None))])
        with REPRODUCTION.writing(out) as partial:
            (partial / FIGURES).write_bytes(orjson.dumps(self.to_json(), option=orjson.OPT_INDENT_2))
            (partial / TABLE).write_text(to_csv(table), encoding="utf-8", newline="")
            for name, results in self.results.items():
                results.write(partial / RESULTS / name)
            write_tables_page(
                partial / PAGE,
                self.title,
                self.tables(page=True),
                notes=self.remarks,
                lines=self.explanations(),
                missing=list(map(str, self.missing)),
                links=[(f"{RESULTS}/{name}/{PAGE}", f"The results behind it: {name}") for name in self.results],
            )


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
) -> Reproduction:
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
    if sample and recipe.sample is None:
        fault = f"{recipe.name} has no sample: {recipe.no_sample}"
        raise InputError(fault, "Without --sample, it says what is needed.")
    own, folder = own_writers(recipe, writers), here.data_folder(data)
    if out is not None:
        REPRODUCTION.check_place(out)
    with _work(out) as work:
        taken = recipe.sample if sample else None
        table = Reproduction(recipe, folder, work, taken, own, index, device, on_progress)
        pkgutil.resolve_name(recipe.runner)(table)
        reasons: dict[tuple[str, str], list[str]] = {}
        for one in table.missing:
            reasons.setdefault((one.why, one.remedy.replace("DATA/", f"{folder or 'data'}/")), []).append(one.what)
        table.missing = [Missing("; ".join(whats), *reason) for reason, whats in reasons.items()]
        if out is not None:
            table.write(out)
    return table


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


def _pivot(
    cells: Sequence[tuple[str, str, Cell]],
    heads: Mapping[str, list[str]],
    columns: Sequence[str],
    title: str = "",
    **options: Any,
) -> Table:
    """A table of cells by row and column, after the heads of the rows; each row has its cells in one order."""
    rows: dict[str, list[str | Cell]] = {row: [*head] for row, head in heads.items()}
    for row, _, cell in cells:
        rows[row].append(cell)
    measures = dict.fromkeys(column for _, column, _ in cells)
    return Table([*left(*columns, **options), *right(*measures)], list(rows.values()), title)


def _in_words(value: Any) -> str:
    """A setting as words."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(one)}" for name, one in value.items())
    return ", ".join(map(_in_words, value)) if isinstance(value, list | tuple) else str(value)


def needs(data: Path | None = None) -> list[dict[str, Any]]:
    """All tables: what each needs, and what of that is on this machine; an InputError if there is no such data folder.

    Returns:
        As JSON. `rows_here` says how many rows have their system here; None for tables without systems.
    """
    folder = here.data_folder(data)
    return [
        {
            **recipe.model_dump(include={"name", "title", "paper", "source", "preset", "time", "seeds"}),
            "data": [{**one.model_dump(), "here": bool(here.published(folder, one, []))} for one in recipe.data],
            "rows": len(recipe.rows),
            "rows_here": here.rows_here(recipe),
            "rows_to_train": sum(bool(row.train) for row in recipe.rows),
            "models": sorted(
                {*(row.model for row in recipe.rows if row.model), *here.models_of_metrics(recipe).values()}
            ),
            "sample": recipe.sample is not None,
        }
        for recipe in map(read_recipe, recipe_paths())
    ]


def needs_table(tables: Iterable[Mapping[str, Any]]) -> Table:
    """The content of `needs` for people: what each table needs, what of that is here, and the time it takes."""
    hint = "Run one: citerec reproduce NAME, or with --sample. It says what is missing, and how to get it."
    table = Table([*left("", wrap=False), *left("")], footnotes=[hint], headed=False)
    for need in tables:
        wanted = [
            f"data: {', '.join(one['name'] for one in need['data'] if not one['training'])}",
            f"models: {', '.join(need['models'])}" if need["models"] else "",
            f"to train: {counted(need['rows_to_train'], 'model')}" if need["rows_to_train"] else "",
        ]
        present = [
            ", ".join(one["name"] for one in need["data"] if one["here"]) or "no data set",
            f"systems of {need['rows_here']} of {counted(need['rows'], 'row')}"
            if need["rows_here"] is not None
            else "",
            "a sample" if need["sample"] else "no sample",
        ]
        table.rows.append([marked(need["name"], "strong"), need["title"]])
        for label, parts in (("needs", wanted), ("here", present), ("time", [need["time"]])):
            table.rows.append([f"  {label}", marked(" · ".join(filter(None, parts)), "faint")])
    return table
