"""Recipes of published tables.

A recipe is a TOML file in the folder `recipes` of its paper: the published figures, the data, how each row is made, and
what is needed. It holds no measured figure.
"""

import difflib
import functools
import math
import statistics
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from citerec.errors import InputError
from citerec.settings import read_toml

PAPERS = Path(__file__).parents[2]
"""The folder of all papers; each has its tables in `recipes`."""
DATA_SETS = Path(__file__).parents[1] / "data.toml"
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


@functools.cache
def read_recipe(name: str) -> Recipe:
    """The recipe of a table; an InputError if there is none of this name."""
    paths = recipe_paths()
    if name not in paths:
        near = difflib.get_close_matches(name, paths, n=1, cutoff=0.4)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise InputError(f"there is no table {name!r}", f"{hint}See them all: citerec reproduce list")
    values, data_sets = read_toml(paths[name]), read_toml(DATA_SETS)
    return Recipe.model_validate({"name": name, **values, "data": [data_sets[one] for one in values["data"]]})
