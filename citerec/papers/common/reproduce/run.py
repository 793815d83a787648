"""Runs recipes, and says what each needs."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from citerec.errors import InputError
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.files.writing import beside
from citerec.papers.common.reproduce.base import RUNNERS, Recipe, Request, grouped, read_recipe, recipe_names
from citerec.papers.common.reproduce.here import data_folder, is_here, model_of
from citerec.papers.common.reproduce.result import REPRODUCTION, Reproduction
from citerec.papers.common.reproduce.samples import sample_of


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
        name: The table: "citebench-3"; `recipe_names` lists them.
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
        request = Request(folder, sample, work, own, index, device, on_progress)
        outcome = RUNNERS[recipe.runner].run(recipe, request)
        missing = [replace(one, remedy=one.remedy.replace("DATA/", f"{folder or 'data'}/")) for one in outcome.missing]
        found = Reproduction(recipe, replace(outcome, missing=grouped(missing)))
        if out is not None:
            found.write(out)
    return found


def own_writers(recipe: Recipe, given: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Writers by row, from "ROW=NAME", the row with or without its section; an InputError if there is no such row."""
    found: dict[str, list[str]] = {}
    for text in given:
        wanted, sign, name = text.partition("=")
        fits = [row.title for row in recipe.rows if wanted.strip() in (row.title, row.name)]
        if not sign or len(fits) != 1:
            rows = ", ".join(row.title for row in recipe.rows)
            what = "names no row" if not fits else "names several rows"
            raise InputError(f"--writer {text!r} {what} of {recipe.name}", f"Give ROW=NAME with one of: {rows}.")
        found.setdefault(fits[0], []).append(name.strip())
    return found


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
class Need:
    """A table in the list: what it needs, and how much of that is on this machine."""

    recipe: Recipe
    data: Mapping[str, bool]
    rows: int | None

    def lines(self) -> list[tuple[str, str]]:
        """What it needs, what of that is here, and how long it takes."""
        recipe = self.recipe
        training = {one.name for one in recipe.data if one.training}
        models = models_of(recipe)
        trained = sum(bool(row.train) for row in recipe.rows)
        wanted = [
            f"data: {', '.join(name for name in self.data if name not in training)}",
            f"models: {', '.join(models)}" if models else "",
            f"to train: {counted(trained, 'model')}" if trained else "",
        ]
        found = [name for name, here in self.data.items() if here] or ["no data set"]
        rows = f"systems of {self.rows} of {counted(len(recipe.rows), 'row')}" if self.rows is not None else ""
        sample = "a sample" if recipe.sample else "no sample"
        return [
            ("needs", " · ".join(filter(None, wanted))),
            ("here", " · ".join(filter(None, (", ".join(found), rows, sample)))),
            ("time", recipe.time),
        ]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        recipe = self.recipe
        return {
            **{name: getattr(recipe, name) for name in ("name", "title", "paper", "source", "preset", "time")},
            "data": [
                {
                    **{name: getattr(one, name) for name in ("name", "files", "source", "get")},
                    "sha256": one.sha256 or "not known here",
                    "here": self.data[one.name],
                }
                for one in recipe.data
            ],
            "rows": len(recipe.rows),
            "rows_here": self.rows,
            "models": models_of(recipe),
            "seeds": recipe.seeds,
            "sample": recipe.sample is not None,
        }


def models_of(recipe: Recipe) -> list[str]:
    """The models that rows and metrics need, by their names on the hub."""
    named = [*(row.model for row in recipe.rows), *(model_of(metric, recipe) for metric in recipe.metrics)]
    return sorted(set(filter(None, named)))


def needs(data: Path | None = None) -> list[Need]:
    """All tables, with what is here; an InputError if there is no such data folder."""
    folder = data_folder(data)
    found = []
    for name in recipe_names():
        recipe = read_recipe(name)
        here = {one.name: is_here(folder, one) for one in recipe.data}
        found.append(Need(recipe, here, RUNNERS[recipe.runner].runnable(recipe)))
    return found
