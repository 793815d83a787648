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
from citerec.evaluation.rendering import Cell, Table, left, right, to_csv
from citerec.evaluation.results import plain
from citerec.files.progress import Progress, no_progress
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

    def figures(self) -> list[dict[str, Any]]:
        """All figures that are published or measured, row by row.

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
            if mean is not None or measured is not None:
                difference = None if mean is None or measured is None else measured.value - mean
                place = {"row": row, "group": group or None, "measure": measure.name}
                values = {"published": mean, "published_sd": sd, "measured": measured, "difference": difference}
                figures.append({**place, **values})
        return figures

    def tables(self) -> list[Table]:
        """A table for each data set with a measured figure, or for all if there is none; rows as in the paper.

        A table by class is one for each system, with a row for each class.
        """
        one_of, row_of = ("row", "group") if self.recipe.by_class else ("group", "row")
        figures = self.figures()
        measured = {figure[one_of] for figure in figures if figure["measured"]}
        tables = []
        for name in dict.fromkeys(figure[one_of] for figure in figures):
            if measured and name not in measured:
                continue
            shown = [figure for figure in figures if figure[one_of] == name]
            measures = list(dict.fromkeys(figure["measure"] for figure in shown))
            rows: dict[str, dict[str, Cell]] = {}
            for figure in shown:
                about = self.measured_on.get(figure["group"], "") if self.recipe.by_class else ""
                row = ", ".join(filter(None, (figure[row_of], about)))
                rows.setdefault(row, {})[figure["measure"]] = self._cell(figure)
            title = ", ".join(filter(None, (name, self.measured_on.get(name or "", ""))))
            table = Table([*left("", wrap=False), *right(*measures)], title=title)
            table.rows.extend([row, *(cells.get(measure, "") for measure in measures)] for row, cells in rows.items())
            tables.append(table)
        return tables

    def _cell(self, figure: Mapping[str, Any]) -> Cell:
        """The published figure, the measured one with the deviation of several runs, and the difference."""
        decimals = next(one.decimals for one in self.recipe.measures if one.name == figure["measure"])
        one = figure["measured"]
        texts = [
            "–" if value is None else f"{value:{sign},.{decimals}f}"
            for value, sign in ((figure["published"], ""), (one and one.value, ""), (figure["difference"], "+"))
        ]
        if one and one.sd is not None:
            texts[1] += f" ±{one.sd:.{decimals}f}"
        styles = ("faint", "", "faint")
        return Cell(
            one and one.value, tuple((text.rjust(_WIDTH), style) for text, style in zip(texts, styles, strict=True))
        )

    @property
    def remarks(self) -> list[str]:
        """Remarks to read before the tables."""
        note = [self.sample.note] if self.sampled and self.sample and self.sample.note else []
        return [*note, *self.recipe.notes, *self.notes]

    def explanations(self) -> list[str]:
        """How to read the cells, and what the values depend on, a line each."""
        recipe = self.recipe
        facts = " · ".join(f"{name}: {value}" for name, value in recipe.settings.items())
        lines = [
            "Figures: published, measured, and measured less published.",
            f"From {recipe.paper}; {recipe.source}.",
            f"Metrics: preset {recipe.preset}." if recipe.preset else "",
            f"As published: {facts}." if facts else "",
            f"Runs by seed: {', '.join(map(str, recipe.seeds))}." if recipe.seeds else "",
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
            "figures": self.figures(),
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
        for figure in self.figures():
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
                self.tables(),
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
    table = Table(left("table", "what", "data here", "rows", "sample", "time"), footnotes=[hint])
    for need in tables:
        data = [one["here"] for one in need["data"] if not one["training"]]
        rows = str(need["rows"]) if need["rows_here"] is None else f"{need['rows_here']} of {need['rows']} here"
        sample = "yes" if need["sample"] else "no"
        table.rows.append([need["name"], need["title"], f"{sum(data)} of {len(data)}", rows, sample, need["time"]])
    return table
