"""Summaries of people's ratings of texts: means by system, and how well raters agree."""

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.diagnostics.review import cohens_kappa
from citerec.errors import InputError
from citerec.evaluation.compare import group_scores
from citerec.evaluation.figures import ALL, DATASET, SystemResult
from citerec.evaluation.files import plain
from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.evaluation.statistics import RESAMPLES
from citerec.evaluation.texts import group_system, grouping_of
from citerec.papers.citebench.sheets import ITEM, KEY_ENDING, SCALES, Item, Key, read_key
from citerec.write.metrics.base import Column

KIND = "citerec-ratings"
VERSION = 1

_HIGHEST = 5
_ALLOWED = "Write 1, 2, 3, 4 or 5, or leave the cell empty."

Ratings = Mapping[str, Mapping[str, int]]
"""By item and scale."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two raters on one scale, and how many texts both rated.

    Kappa is Cohen's, with quadratic weights; None if both gave the same rating to all texts.
    """

    raters: tuple[str, str]
    scale: str
    n: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Rated:
    """A summary of ratings.

    Attributes:
        rated: How many of the key's `texts` have all their ratings from at least one rater.
        raters: By rater, how many texts have all their ratings, and how many the sheet has.
        systems: By name, means by scale over all texts, and by data set if there are several. A text that several
            people rated counts once, by the mean of its ratings.
        agreements: Each pair of raters on each scale, if both rated some text.
    """

    rated: int
    texts: int
    raters: Mapping[str, tuple[int, int]]
    systems: Mapping[str, SystemResult]
    agreements: tuple[Agreement, ...]
    seed: int
    resamples: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        systems = {name: {"upper_bound": one.is_oracle, "means": one.means()} for name, one in self.systems.items()}
        value = {
            "kind": KIND,
            "version": VERSION,
            "texts": {"rated": self.rated, "of_key": self.texts},
            "raters": {name: {"rated": rated, "texts": whole} for name, (rated, whole) in self.raters.items()},
            "systems": systems,
            "agreement": self.agreements,
            "seed": self.seed,
            "resamples": self.resamples,
        }
        return plain(value)


def read_ratings(sheets: Sequence[Path], key_path: Path, *, seed: int = 0, resamples: int = RESAMPLES) -> Rated:
    """Reads sheets that people filled in, and sums them up by system.

    A rater's name is the last part of the name of the sheet: sheet-anna.csv is anna's.

    Raises:
        InputError: A sheet cannot be read, or has a text twice, a text that is not in the key, an invalid rating, or
            no rating at all.
    """
    key = read_key(key_path)
    by_rater = _by_rater(sheets, key_path, key)
    done = {
        rater: {item for item, given in ratings.items() if given.keys() >= set(key.items[item].scales)}
        for rater, ratings in by_rater.items()
    }
    return Rated(
        rated=len(set().union(*done.values())),
        texts=len(key.items),
        raters={rater: (len(done[rater]), len(ratings)) for rater, ratings in by_rater.items()},
        systems=_systems(by_rater, key, seed, resamples),
        agreements=agreement(by_rater),
        seed=seed,
        resamples=resamples,
    )


def mean_ratings(sheets: Sequence[Path], key_path: Path) -> list[tuple[Item, dict[str, float]]]:
    """Each text that somebody rated, with the mean of its ratings on each scale; NaN where there is none.

    Raises:
        InputError: As for `read_ratings`.
    """
    key = read_key(key_path)
    by_rater = _by_rater(sheets, key_path, key)
    return [
        (item, {scale: _mean_rating(by_rater, name, scale) for scale in SCALES})
        for name, item in key.items.items()
        if any(ratings.get(name) for ratings in by_rater.values())
    ]


def _by_rater(sheets: Sequence[Path], key_path: Path, key: Key) -> dict[str, dict[str, dict[str, int]]]:
    """The ratings of each rater, by item and scale."""
    by_rater: dict[str, dict[str, dict[str, int]]] = {}
    for path in sheets:
        rater = path.stem.removeprefix(f"{key_path.name.removesuffix(KEY_ENDING)}-")
        if rater in by_rater:
            raise InputError(f"there are two sheets of {rater}: {path} is the second", "Give each rater's sheet once.")
        ratings = by_rater[rater] = read_sheet(path, key)
        if not any(ratings.values()):
            raise InputError(f"{path} has no rating in it", f"Fill in the columns {' and '.join(SCALES)}.")
    return by_rater


def read_sheet(path: Path, key: Key) -> dict[str, dict[str, int]]:
    """The ratings of one sheet, by item and scale; empty cells are left out.

    Spreadsheets save with commas or, in some countries, semicolons or tabs: the first row shows which.

    Raises:
        InputError: As for `read_ratings`; the message names row and column, and what is allowed.
    """
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Check path and permissions.") from error
    header = text.partition("\n")[0]
    rows: list[list[str]] = []
    try:
        # Strict: otherwise an open quote would take all rows after it into its cell.
        rows.extend(csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), strict=True))
    except csv.Error as error:
        raise InputError(
            f"{path}, row {len(rows) + 1}: {error}", "A quote in the row is not closed, or is alone: correct the row."
        ) from error
    columns = {name.strip().lower(): place for place, name in enumerate(rows[0])} if rows else {}
    if lacking := [name for name in (ITEM, *SCALES) if name not in columns]:
        raise InputError(
            f"{path} has no column {lacking[0]}", "Save the sheet as CSV, with its first row as it was written."
        )
    ratings: dict[str, dict[str, int]] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        cells = {name: row[place].strip() if place < len(row) else "" for name, place in columns.items()}
        item = cells[ITEM]
        if item not in key.items or item in ratings:
            fault = "appears twice" if item in ratings else "is not in the key"
            raise InputError(f"{path}, row {number}, column {ITEM}: {item!r} {fault}", "Give the sheet with its key.")
        ratings[item] = {
            scale: _rating(cells[scale], f"{path}, row {number}, column {scale}") for scale in SCALES if cells[scale]
        }
    return ratings


def agreement(by_rater: Mapping[str, Ratings]) -> tuple[Agreement, ...]:
    """How well each two raters agree, on texts that both rated: Cohen's kappa with quadratic weights.

    J. Cohen, Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit,
    Psychological Bulletin 70 (1968), 213-220; as scikit-learn computes it over the ratings from 1 to 5.
    """
    found = []
    for one, other in itertools.combinations(by_rater, 2):
        for scale in SCALES:
            pairs = [
                (given[scale], by_rater[other][item][scale])
                for item, given in by_rater[one].items()
                if scale in given and scale in by_rater[other].get(item, {})
            ]
            if pairs:
                kappa = cohens_kappa(pairs, labels=range(1, _HIGHEST + 1), weights="quadratic")
                found.append(Agreement((one, other), scale, len(pairs), kappa))
    return tuple(found)


def _rating(cell: str, place: str) -> int:
    # Some spreadsheets save whole numbers as "4.0" or "4,0".
    whole = cell.replace(",", ".").removesuffix(".0").lstrip("0")
    if whole not in map(str, range(1, _HIGHEST + 1)):
        raise InputError(f"{place}: {cell!r:.60} is no rating", _ALLOWED)
    return int(whole)


def _systems(by_rater: Mapping[str, Ratings], key: Key, seed: int, resamples: int) -> dict[str, SystemResult]:
    found = {}
    for system in dict.fromkeys(item.system for item in key.items.values()):
        mine = {name: item for name, item in key.items.items() if item.system == system}
        grouping = grouping_of(
            [item.dataset for item in mine.values()], [f"{item.dataset}\t{item.task_id}" for item in mine.values()]
        )
        scores = np.array([[_mean_rating(by_rater, name, scale) for scale in SCALES] for name in mine])
        means = group_scores(scores, list(SCALES), grouping, seed, resamples)
        found[system] = group_system(means, grouping, is_oracle=system in key.upper_bounds)
    return found


def ratings_table(rated: Rated) -> Table:
    """Means by system and data set, with a column for each scale."""
    classes = dict.fromkeys((DATASET, name) for one in rated.systems.values() for name in one.families.get(DATASET, ()))
    columns = [Column(scale, share=False, metric=scale) for scale in SCALES]
    table = Table([*left(*["data set"] * bool(classes), "system"), *right(*(f"{scale} (n)" for scale in SCALES))])
    for group in (ALL, *classes):
        for place, (name, system) in enumerate(rated.systems.items()):
            cells: list[Any] = []
            for column in columns:
                mean = system.scores(group).means[column.name]
                bounds = f" [{column.text(mean.ci[0])} {column.text(mean.ci[1])}]" if mean.ci else ""
                spans = (column.text(mean.value), ""), (f"{bounds}  {mean.n:>3,}", "faint")
                cells.append(Cell(mean.value, spans))
            shown = (f"{name} †", "oracle") if system.is_oracle else (name, "")
            table.rows.append([*([group[1] if place == 0 else ""] if classes else []), Cell(name, (shown,)), *cells])
    return table


def _mean_rating(by_rater: Mapping[str, Ratings], item: str, scale: str) -> float:
    """NaN where nobody gave a rating."""
    given = [ratings[item][scale] for ratings in by_rater.values() if scale in ratings.get(item, {})]
    return sum(given) / len(given) if given else np.nan
