"""Sheets on which people rate texts without knowing who wrote them.

As in CiteBench (Funkquist et al., EMNLP 2023, section 5.3 and appendix A.5): readability, and consistency with what the
authors wrote, from 1 to 5; the texts of all systems mixed; some texts rated by several people, to see how well they
agree.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from citerec.errors import BuildError, InputError, first_fault
from citerec.evaluation.predictions import Predictions
from citerec.evaluation.rendering import Table, left, to_csv
from citerec.write.tasks import Prediction, TextTask

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

ITEM, NOTE = "item", "note"
KEY_ENDING = ".key.json"

_COMPARING = "consistency"
_NOT_KNOWN = f"(not known: leave {_COMPARING} empty)"
_SHOWN = (ITEM, "sources", "written by the authors", "text to rate")


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
    compared: bool = True

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales on which it can be rated."""
        return tuple(scale for scale in SCALES if self.compared or scale != _COMPARING)


class Key(BaseModel):
    """The key of some sheets, as its file holds it: the seed, systems that saw the targets, items by their names."""

    model_config = ConfigDict(strict=True)

    kind: Literal["citerec-rating-key"]
    version: Literal[1]
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
        raise InputError(
            f"{tasks} tasks for {raters} raters, {shared} of them shared", "Draw one at least, for one rater at least."
        )
    stem = out.with_suffix("")
    sheets = [out] if raters == 1 else [Path(f"{stem}-{number}.csv") for number in range(1, raters + 1)]
    files = [*sheets, Path(f"{stem}.instructions.txt"), Path(f"{stem}{KEY_ENDING}")]
    if standing := next((file for file in files if file.exists()), None):
        raise InputError(f"{standing} exists, perhaps with ratings in it", "Give another --out, or remove it first.")
    random = np.random.default_rng(seed)
    drawn = list(_drawn(predictions, tasks, raters, shared, random))
    with_texts = {item.rater for item, _ in drawn}
    if idle := [number for number in range(1, raters + 1) if with_texts.isdisjoint((None, number))]:
        raise InputError(
            f"rater {idle[0]} of {raters} would get no text: there are too few tasks",
            "Use fewer --raters, more --shared, or more --texts.",
        )
    # Numbered at random, so that neither a text's number nor its place in a sheet reveals its system.
    names = [f"T{number + 1:0{len(str(len(drawn)))}}" for number in random.permutation(len(drawn))]
    key = Key(
        kind="citerec-rating-key",
        version=1,
        seed=seed,
        upper_bounds=tuple(sorted(predictions.oracles)),
        items=dict(zip(names, (item for item, _ in drawn), strict=True)),
    )
    texts = dict(zip(names, (text for _, text in drawn), strict=True))
    # The key first: a sheet without a key could be filled in, and never be read.
    content = {
        files[-1]: key.model_dump_json(indent=2).encode(),
        files[-2]: _instructions().encode(),
    }
    for number, sheet in enumerate(sheets, 1):
        mine = [name for name, item in key.items.items() if item.rater in (None, number)]
        order = random.permutation(len(mine))
        content[sheet] = _sheet({mine[place]: texts[mine[place]] for place in order}).encode("utf-8-sig")
    begun: list[Path] = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for path, data in content.items():
            with path.open("xb") as file:  # never in place of a sheet that somebody has filled in
                begun.append(path)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        for path in begun:
            path.unlink()
        raise BuildError(
            f"cannot write {error.filename or out}: {error.strerror or error}", "Make room, or give another --out."
        ) from error
    return files


def read_key(path: Path) -> Key:
    """Reads back who wrote what.

    Raises:
        InputError: There is no key, or it is broken, or of another version.
    """
    remedy = f"Give the file whose name ends in {KEY_ENDING}, as `citerec rate sheet` wrote it."
    try:
        return Key.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", remedy) from error
    except ValidationError as error:
        raise InputError(f"{path} is no key of sheets ({first_fault(error)})", remedy) from None


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
    table = Table(left(*_SHOWN, *SCALES, NOTE))
    for name, text in texts.items():
        wanted = "\n\n".join(text.task.targets) if text.task.targets else _NOT_KNOWN
        table.rows.append([name, _sources(text.task), wanted, text.text, *("" for _ in SCALES), ""])
    return to_csv(table, spreadsheet=True)


def _sources(task: TextTask) -> str:
    return "\n\n".join(
        f"[{number}] {source.title + '. ' if source.title else ''}{source.text}"
        for number, source in enumerate(task.sources)
    )


def _instructions() -> str:
    scales = "\n\n".join(
        f"{scale}\n" + "\n".join(f"  {rating}  {meaning}" for rating, meaning in enumerate(meanings, 1))
        for scale, meanings in SCALES.items()
    )
    return f"""How to rate

Open your sheet in any spreadsheet program. Each row has a text to rate, what the authors of the paper wrote in its
place, and the abstracts that the text was written from; [0], [1], … are those abstracts.

Write a whole number from 1 to 5 into the columns {" and ".join(SCALES)}, and any remarks into the
column {NOTE}. Leave empty what you cannot rate, such as {_COMPARING} where it is not known what the authors wrote.
Change nothing else; the order of the rows does not matter.

{scales}

Judge each row by itself. Several rows may be for the same task: they were written by different systems, whose
names are hidden. Do not talk about rows with other raters before all are done. Save the sheet as CSV, under your name
(sheet-anna.csv).
"""
