"""People's ratings of texts, summed up: means by system, how well raters agree, and the tables of these."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.diagnostics.review import cohens_kappa
from citerec.evaluation.rendering import Cell, Table, left, right, show, show_lines
from citerec.evaluation.results import plain
from citerec.evaluation.statistics import OVERALL, RESAMPLES, Floats, Interval, Mean, group_scores, grouping_of
from citerec.files.text import counted
from citerec.papers.citebench.sheets import COMPARING, SCALES, read_sheets
from citerec.papers.common.reproduce.base import Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import find, is_here, missing_data

if TYPE_CHECKING:
    from rich.console import Console

ALL_SETS, ALL_SYSTEMS = "all data sets", "all systems"


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
class RatedSystem:
    """A system: whether it saw the targets, and its means by group, "overall" and each of several data sets, and scale.

    A text that several people rated counts once, by the mean of its ratings.
    """

    upper_bound: bool
    means: Mapping[str, Mapping[str, Mean]]


@dataclass(frozen=True, slots=True)
class Rated:
    """A summary of ratings.

    Attributes:
        texts: How many texts have all their ratings from at least one rater (`rated`), of how many (`of_key`).
        raters: By rater, how many texts have all their ratings (`rated`), and how many the sheet has (`texts`).
        systems: The systems by name.
        agreement: Each pair of raters on each scale, if both rated some text.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.
    """

    texts: Mapping[str, int]
    raters: Mapping[str, Mapping[str, int]]
    systems: Mapping[str, RatedSystem]
    agreement: Sequence[Agreement]
    seed: int
    resamples: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return plain({"kind": "citerec-ratings", "version": 1, **asdict(self)})


def read_ratings(sheets: Sequence[Path], key_path: Path, *, seed: int = 0, resamples: int = RESAMPLES) -> Rated:
    """Reads sheets that people filled in, and sums them up by system; errors as for `read_sheets`."""
    ratings = read_sheets(sheets, key_path)
    items = list(ratings.key.items.values())
    can_be_rated = np.array([[item.compared or scale != COMPARING for scale in SCALES] for item in items])
    complete = (~np.isnan(ratings.values) | ~can_be_rated).all(axis=2)
    systems = {}
    for system in dict.fromkeys(item.system for item in items):
        places = [place for place, item in enumerate(items) if item.system == system]
        datasets = [items[place].dataset for place in places]
        tasks = [f"{items[place].dataset}\t{items[place].task_id}" for place in places]
        grouping = grouping_of(datasets, tasks)
        scores = group_scores(ratings.means[places], list(SCALES), grouping, seed, resamples)
        groups = [OVERALL, *(name for _, name in grouping.groups)]
        means = {name: of_group.means for name, of_group in zip(groups, scores, strict=True)}
        systems[system] = RatedSystem(system in ratings.key.upper_bounds, means)
    done = zip(ratings.sizes.items(), complete.sum(axis=1).tolist(), strict=True)
    return Rated(
        texts={"rated": int(complete.any(axis=0).sum()), "of_key": len(items)},
        raters={rater: {"rated": rated, "texts": size} for (rater, size), rated in done},
        systems=systems,
        agreement=list(agreement(list(ratings.sizes), ratings.values)),
        seed=seed,
        resamples=resamples,
    )


def agreement(raters: Sequence[str], values: Floats) -> Iterator[Agreement]:
    """How well each two raters agree, on texts that both rated: Cohen's kappa with quadratic weights.

    J. Cohen, Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit,
    Psychological Bulletin 70 (1968), 213-220; as scikit-learn computes it over the ratings from 1 to 5.

    Args:
        raters: Their names.
        values: Raters × texts × scales, from 1 to 5; NaN where a rater gave none.
    """
    for (one, first), (other, second) in itertools.combinations(zip(raters, values, strict=True), 2):
        for number, scale in enumerate(SCALES):
            pairs = np.stack([first[:, number], second[:, number]], axis=1)
            pairs = pairs[~np.isnan(pairs).any(axis=1)].astype(int)
            if len(pairs):
                kappa = cohens_kappa(pairs.tolist(), labels=range(1, 6), weights="quadratic")
                yield Agreement((one, other), scale, len(pairs), kappa)


def interval_cell(value: float | None, ci: Interval, more: str = "") -> Cell:
    """A value with its interval, as tables show them, and what follows."""
    shown, *bounds = ("–" if one is None else f"{round(one, 2) + 0.0:.2f}" for one in (value, *(ci or ())))
    return Cell(value, ((shown, ""), (f" [{' '.join(bounds)}]" * bool(bounds) + more, "faint")))


def ratings_table(rated: Rated) -> Table:
    """Means by system and data set, with a column for each scale."""
    groups = list(dict.fromkeys(name for system in rated.systems.values() for name in system.means))
    several = len(groups) > 1
    footnotes = [
        f"Means from 1 to 5; [low high]: 95 % of {rated.resamples:,} bootstrap samples over tasks. n: texts; one that "
        "several people rated counts once."
    ]
    if any(system.upper_bound for system in rated.systems.values()):
        footnotes.append("† saw what the authors wrote: an upper bound, not a system.")
    headings = [*left(*["data set"] * several, "system"), *right(*(f"{scale} (n)" for scale in SCALES))]
    table = Table(headings, footnotes=footnotes)
    for group in groups:
        for place, (name, system) in enumerate(rated.systems.items()):
            cells = [interval_cell(mean.value, mean.ci, f"  {mean.n:>3,}") for mean in system.means[group].values()]
            span = (f"{name} †", "oracle") if system.upper_bound else (name, "")
            table.rows.append([*["" if place else group] * several, Cell(name, (span,)), *cells])
    return table


def show_ratings(console: "Console", rated: Rated) -> None:
    """Shows human ratings: means by system, and agreement."""
    show(console, ratings_table(rated))
    lines = [f"{rated.texts['rated']:,} of {rated.texts['of_key']:,} texts of the key were rated"]
    lines += [f"{rater} rated {n['rated']:,} of {n['texts']:,} texts" for rater, n in rated.raters.items()]
    if not rated.agreement:
        lines.append("No text was rated by two raters: how well they agree is not known.")
    for one in rated.agreement:
        kappa = "not defined: both gave only one rating" if one.kappa is None else f"{round(one.kappa, 2) + 0.0:.2f}"
        raters = " and ".join(one.raters)
        lines.append(f"{raters}, {one.scale}: quadratic-weighted kappa {kappa} ({counted(one.n, 'text')})")
    show_lines(console, [("\nRaters", "strong"), *((line, "") for line in lines)])


class Ratings(Runner):
    """Reads the key and the sheets in the data folder. Rows are data set and system."""

    name = "ratings"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        (data,) = recipe.data
        if not is_here(request.data, data):
            return Outcome({}, [missing_data(request.data, data)])
        key, *sheets = find(request.data, data.files)
        rated = read_ratings(sheets, key)
        cells = {}
        for row, measure in itertools.product(recipe.rows, recipe.measures):
            group = OVERALL if row.section == ALL_SETS else row.section
            systems = [one for name, one in rated.systems.items() if row.name in (ALL_SYSTEMS, name)]
            means = [one.means[group][measure.column] for one in systems if group in one.means]
            means = [mean for mean in means if mean.n]
            if n := sum(mean.n for mean in means):
                value = sum((mean.value or 0) * mean.n for mean in means) / n
                cells[row.title, "", measure.name] = Measured(value, n, means[0].ci if len(means) == 1 else None)
        about = {"": f"{counted(rated.texts['rated'], 'text')} that {counted(len(rated.raters), 'person')} rated"}
        return Outcome(cells, [], about, {"scales": {name: list(words) for name, words in SCALES.items()}})


RATINGS = Ratings()
