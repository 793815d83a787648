"""Sheets on which people rate texts without knowing who wrote them: written, and read back.

As in CiteBench (Funkquist et al., EMNLP 2023, section 5.3 and appendix A.5): readability, and consistency with what the
authors wrote, from 1 to 5; the texts of all systems mixed; some texts rated by several people, to see how well they
agree.
"""

import contextlib
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from citerec.errors import InputError, first_fault
from citerec.evaluation.predictions import Predictions
from citerec.evaluation.rendering import Table, left, to_csv
from citerec.evaluation.statistics import Floats
from citerec.files.writing import write_failures
from citerec.write.tasks import Prediction

SCALES: Mapping[str, tuple[str, ...]] = {
    "readability": (
        "cannot be read: no grammar holds it together",
        "can be read with effort: hardly any grammar holds it together",
        "can be read, with major faults of grammar or flow",
        "reads well, with one or two minor faults",
        "reads perfectly",
    ),
    "consistency": (
        "has nothing to do with what the authors wrote",
        "the same topic, but all main points about the cited papers, and the facts that go with them, are missing",
        "the same topic, but some main facts about the cited papers are missing or wrong",
        "all main points about the cited papers are there; some facts are missing",
        "says what the authors said, in the same detail",
    ),
}
"""What each rating means, from 1 to 5, after CiteBench's appendix A.5."""

COMPARING = "consistency"
"""The scale on which only texts can be rated whose task has a target."""

_ITEM, _NOTE = "item", "note"
_KEY_ENDING = ".key.json"
_MEANINGS = "\n\n".join(
    "\n".join([scale, *(f"  {rating}  {meaning}" for rating, meaning in enumerate(meanings, 1))])
    for scale, meanings in SCALES.items()
)
_INSTRUCTIONS = f"""How to rate

Open your sheet in any spreadsheet program. Each row has a text to rate, what the authors of the paper wrote in its
place, and the abstracts that the text was written from; [0], [1], … are those abstracts.

Write a whole number from 1 to 5 into the columns {" and ".join(SCALES)}, and any remarks into the
column {_NOTE}. Leave empty what you cannot rate, such as {COMPARING} where it is not known what the authors wrote.
Change nothing else; the order of the rows does not matter.

{_MEANINGS}

Judge each row by itself. Several rows may be for the same task: they were written by different systems, whose
names are hidden. Do not talk about rows with other raters before all are done. Save the sheet as CSV, under your name
(sheet-anna.csv).
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A text to rate, and the facts that raters must not know.

    Attributes:
        system: Who wrote it.
        dataset: The data set of its task.
        task_id: Its task.
        rater: Number of the rater that gets it, from 1; None if all do.
        compared: Whether its task has a target: only then can consistency be rated.
    """

    system: str
    dataset: str
    task_id: str
    rater: int | None
    compared: bool


class Key(BaseModel):
    """The key of some sheets, as its file holds it: the seed, systems that saw the targets, items by their names."""

    model_config = ConfigDict(strict=True)

    kind: Literal["citerec-rating-key"] = "citerec-rating-key"
    version: Literal[1] = 1
    seed: NonNegativeInt
    upper_bounds: tuple[str, ...]
    items: Mapping[str, Item]


def write_sheets(
    predictions: Predictions, out: Path, *, tasks: int = 25, raters: int = 3, shared: int = 10, seed: int = 0
) -> list[Path]:
    """Writes a sheet for each rater, instructions, and the key, which raters must not see.

    All systems' texts for a task go to the same rater, so that a strict one is strict with all systems; in the sheet
    they are mixed with those for other tasks.

    Args:
        predictions: The predictions of systems.
        out: Name of the sheet, such as sheet.csv: several raters get sheet-1.csv, sheet-2.csv, …
        tasks: How many tasks of each data set are drawn, at most.
        raters: How many people rate.
        shared: How many of those tasks go to every rater, at most.
        seed: Seed of the random choices.

    Returns:
        The sheets, then the instructions, then the key.

    Raises:
        InputError: A number is out of its range, a rater would get no text, or a file exists already.
        BuildError: The disk is full, or may not be written to.
    """
    if out.suffix != ".csv":
        raise InputError(f"{out} is not a valid name of a sheet", "Give one such as sheet.csv.")
    if min(tasks, raters) < 1 or shared < 0:
        wanted = f"{tasks} tasks for {raters} raters, {shared} of them shared"
        raise InputError(wanted, "Draw one at least, for one rater at least.")
    stem = out.with_suffix("")
    sheets = [out] if raters == 1 else [Path(f"{stem}-{number}.csv") for number in range(1, raters + 1)]
    files = [*sheets, Path(f"{stem}.instructions.txt"), Path(f"{stem}{_KEY_ENDING}")]
    if existing := next((file for file in files if file.exists()), None):
        raise InputError(f"{existing} exists, perhaps with ratings in it", "Give another --out, or remove it first.")
    random = np.random.default_rng(seed)
    drawn = list(_drawn(predictions, tasks, raters, shared, random))
    # Numbered at random, so that neither a text's number nor its place in a sheet reveals its system.
    names = [f"T{number + 1:0{len(str(len(drawn)))}}" for number in random.permutation(len(drawn))]
    texts = dict(zip(names, drawn, strict=True))
    items = {name: item for name, (item, _) in texts.items()}
    key = Key(seed=seed, upper_bounds=tuple(sorted(predictions.oracles)), items=items)
    # The key first: a sheet without a key could be filled in, and never be read.
    content = {files[-1]: key.model_dump_json(indent=2), files[-2]: _INSTRUCTIONS}
    for number, sheet in enumerate(sheets, 1):
        of_rater = [name for name, item in items.items() if item.rater in (None, number)]
        if not of_rater:
            fault = f"rater {number} of {raters} would get no text: there are too few tasks"
            raise InputError(fault, "Use fewer --raters, more --shared, or more --texts.")
        order = [of_rater[place] for place in random.permutation(len(of_rater))]
        content[sheet] = "\ufeff" + _sheet({name: texts[name][1] for name in order})
    with contextlib.ExitStack() as undo:
        for path, text in content.items():
            with write_failures(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:  # never in place of a sheet that somebody has filled in
                    undo.callback(path.unlink)
                    file.write(text.encode())
        undo.pop_all()
    return files


def _drawn(
    predictions: Predictions, tasks: int, raters: int, shared: int, random: np.random.Generator
) -> Iterator[tuple[Item, Prediction]]:
    """Draws tasks, and gives the texts of all systems for them with their raters."""
    by_dataset: dict[str, list[int]] = {}
    for place, task in enumerate(predictions.tasks):
        by_dataset.setdefault(task.dataset, []).append(place)
    dealt = 0
    for dataset, places in by_dataset.items():
        for number, chosen in enumerate(random.permutation(len(places))[:tasks].tolist()):
            rater = None if number < shared or raters == 1 else dealt % raters + 1
            dealt += rater is not None
            for system, texts in predictions.systems.items():
                text = texts[places[chosen]]
                yield Item(system, dataset, text.task.task_id, rater, bool(text.task.targets)), text


def _sheet(texts: Mapping[str, Prediction]) -> str:
    """A sheet as CSV: what raters see of each text, and empty cells for their ratings."""
    table = Table(left(_ITEM, "sources", "written by the authors", "text to rate", *SCALES, _NOTE))
    for name, text in texts.items():
        papers = (". ".join(filter(None, [source.title, source.text])) for source in text.task.sources)
        sources = "\n\n".join(f"[{number}] {paper}" for number, paper in enumerate(papers))
        target = "\n\n".join(text.task.targets) or f"(not known: leave {COMPARING} empty)"
        table.rows.append([name, sources, target, text.text, *("" for _ in SCALES), ""])
    return to_csv(table, spreadsheet=True)


@dataclass(frozen=True, slots=True)
class Ratings:
    """What raters wrote into their sheets.

    Attributes:
        key: The key of the sheets.
        sizes: By rater, how many texts the sheet has.
        values: Raters × texts of the key × scales, from 1 to 5; NaN where a rater gave none.
    """

    key: Key
    sizes: Mapping[str, int]
    values: Floats

    @property
    def means(self) -> Floats:
        """The mean rating of each text: texts × scales; NaN where nobody gave one."""
        counts = (~np.isnan(self.values)).sum(axis=0)
        means: Floats = np.nansum(self.values, axis=0) / np.where(counts > 0, counts, np.nan)
        return means


def read_sheets(sheets: Sequence[Path], key_path: Path) -> Ratings:
    """Reads sheets that people filled in.

    A rater's name is the last part of the name of the sheet: sheet-anna.csv is anna's.

    Raises:
        InputError: The key or a sheet cannot be read, or a sheet has a text twice, a text that is not in the key, an
            invalid rating, or no rating at all. The message names row and column, and what is allowed.
    """
    try:
        key = Key.model_validate_json(_text(key_path))
    except ValidationError as error:
        remedy = f"Give the file whose name ends in {_KEY_ENDING}, as `citerec rate sheet` wrote it."
        raise InputError(f"{key_path} is no key of sheets ({first_fault(error)})", remedy) from None
    by_rater: dict[str, dict[str, list[float]]] = {}
    for path in sheets:
        rater = path.stem.removeprefix(f"{key_path.name.removesuffix(_KEY_ENDING)}-")
        if rater in by_rater:
            raise InputError(f"there are two sheets of {rater}: {path} is the second", "Give each rater's sheet once.")
        by_rater[rater] = _ratings(path, key)
        if np.isnan(list(by_rater[rater].values())).all():
            raise InputError(f"{path} has no rating in it", f"Fill in the columns {' and '.join(SCALES)}.")
    blank = [np.nan] * len(SCALES)
    values = [[ratings.get(item, blank) for item in key.items] for ratings in by_rater.values()]
    return Ratings(key, {rater: len(ratings) for rater, ratings in by_rater.items()}, np.array(values))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Check path and permissions.") from error


def _ratings(path: Path, key: Key) -> dict[str, list[float]]:
    """The ratings of one sheet by item, scale by scale; NaN for empty cells.

    Spreadsheets save with commas or, in some countries, semicolons or tabs: the first row shows which.
    """
    text = _text(path)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    # Strict: otherwise an open quote would take all rows after it into its cell.
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    ratings: dict[str, list[float]] = {}
    number = 1
    try:
        columns = [name.strip().lower() for name in next(rows, [])]
        if lacking := [name for name in (_ITEM, *SCALES) if name not in columns]:
            raise InputError(
                f"{path} has no column {lacking[0]}", "Save the sheet as CSV, with its first row as it was."
            )
        for number, row in enumerate(rows, 2):
            cells = dict.fromkeys(columns, "") | dict(zip(columns, map(str.strip, row), strict=False))
            if not any(cells.values()):
                continue
            place, item = f"{path}, row {number}, column", cells[_ITEM]
            if item not in key.items or item in ratings:
                fault = "appears twice" if item in ratings else "is not in the key"
                raise InputError(f"{place} {_ITEM}: {item!r} {fault}", "Give the sheet with its key.")
            ratings[item] = [_rating(cells[scale], f"{place} {scale}") for scale in SCALES]
    except csv.Error as error:
        remedy = "A quote in the row is not closed, or is alone: correct the row."
        raise InputError(f"{path}, row {number + 1}: {error}", remedy) from error
    return ratings


def _rating(cell: str, place: str) -> float:
    """The rating in a cell; NaN if it is empty."""
    # Some spreadsheets save whole numbers as "4.0" or "4,0".
    whole = cell.replace(",", ".").removesuffix(".0").lstrip("0")
    if cell and whole not in ("1", "2", "3", "4", "5"):
        raise InputError(f"{place}: {cell!r:.60} is no rating", "Write 1, 2, 3, 4 or 5, or leave the cell empty.")
    return float(whole) if cell else np.nan
