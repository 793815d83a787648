"""People's ratings of texts, summed up: means by system, how well raters agree, and the tables of these."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.diagnostics.review import cohens_kappa
from citerec.evaluation.rendering import Cell, Table, left, marked, right, show, show_lines
from citerec.evaluation.results import plain
from citerec.evaluation.statistics import OVERALL, RESAMPLES, Floats, group_scores, grouping_of
from citerec.files.text import counted
from citerec.papers.citebench.sheets import COMPARING, SCALES, read_sheets
from citerec.papers.common.reproduce.base import Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import published

if TYPE_CHECKING:
    from rich.console import Console

ALL_SETS, ALL_SYSTEMS = "all data sets", "all systems"


def read_ratings(
    sheets: Sequence[Path], key_path: Path, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Reads sheets that people filled in, and sums them up by system; errors as for `read_sheets`.

    A text that several people rated counts once, by the mean of its ratings.

    Returns:
        As JSON. `texts`: how many have all their ratings from at least one rater (`rated`), of how many (`of_key`).
        `raters`: the same by rater, of how many `texts` of the sheet. `systems`: by name whether it saw the targets
        (`upper_bound`), and its `means` by group, "overall" and each of several data sets, and scale: `n`, `value`, and
        the 95 % interval `ci`. `agreement`: as `agreement` gives it. `seed` and `resamples` of the bootstrap.
    """
    ratings = read_sheets(sheets, key_path)
    items, means = list(ratings.key.items.values()), ratings.means
    can_be_rated = np.array([[item.compared or scale != COMPARING for scale in SCALES] for item in items])
    complete = (~np.isnan(ratings.values) | ~can_be_rated).all(axis=2)
    systems = {}
    for system in dict.fromkeys(item.system for item in items):
        places = [place for place, item in enumerate(items) if item.system == system]
        tasks = [(items[place].dataset, items[place].task_id) for place in places]
        grouping = grouping_of([dataset for dataset, _ in tasks], ["\t".join(task) for task in tasks])
        scores = group_scores(means[places], list(SCALES), grouping, seed, resamples)
        names = [OVERALL, *(name for _, name in grouping.groups)]
        of_groups = {name: of_group.means for name, of_group in zip(names, scores, strict=True)}
        systems[system] = {"upper_bound": system in ratings.key.upper_bounds, "means": of_groups}
    rated = zip(ratings.sizes.items(), complete.sum(axis=1).tolist(), strict=True)
    summary = {
        "kind": "citerec-ratings",
        "version": 1,
        "texts": {"rated": int(complete.any(axis=0).sum()), "of_key": len(items)},
        "raters": {rater: {"rated": count, "texts": size} for (rater, size), count in rated},
        "systems": systems,
        "agreement": list(agreement(list(ratings.sizes), ratings.values)),
        "seed": seed,
        "resamples": resamples,
    }
    return plain(summary)


def agreement(raters: Sequence[str], values: Floats) -> Iterator[dict[str, Any]]:
    """How well each two raters agree, on texts that both rated: Cohen's kappa with quadratic weights.

    J. Cohen, Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit,
    Psychological Bulletin 70 (1968), 213-220; as scikit-learn computes it over the ratings from 1 to 5.

    Args:
        raters: Their names.
        values: Raters × texts × scales, from 1 to 5; NaN where a rater gave none.

    Returns:
        For each pair and scale: `raters`, `scale`, `n` texts, and `kappa`, None if both gave all texts one rating.
    """
    for pair, (number, scale) in itertools.product(itertools.combinations(range(len(raters)), 2), enumerate(SCALES)):
        both = values[list(pair), :, number].T
        both = both[~np.isnan(both).any(axis=1)].astype(int)
        if len(both):
            kappa = cohens_kappa(both.tolist(), labels=range(1, 6), weights="quadratic")
            yield {"raters": [raters[rater] for rater in pair], "scale": scale, "n": len(both), "kappa": kappa}


def interval_cell(value: float | None, ci: Sequence[float] | None, more: str = "") -> Cell:
    """A value with its interval, as tables show them, and what follows."""
    shown, *bounds = ("–" if one is None else f"{round(one, 2) + 0.0:.2f}" for one in (value, *(ci or ())))
    return Cell(value, ((shown, ""), (f" [{' '.join(bounds)}]" * bool(bounds) + more, "faint")))


def ratings_table(rated: Mapping[str, Any]) -> Table:
    """Means by system and data set, with a column for each scale."""
    systems: dict[str, Any] = rated["systems"]
    groups = list(dict.fromkeys(name for system in systems.values() for name in system["means"]))
    several = len(groups) > 1
    footnotes = [
        f"Means from 1 to 5; [low high]: 95 % of {rated['resamples']:,} bootstrap samples over tasks. n: texts; one "
        "that several people rated counts once."
    ]
    if any(system["upper_bound"] for system in systems.values()):
        footnotes.append("† saw what the authors wrote: an upper bound, not a system.")
    headings = [*left(*["data set"] * several, "system"), *right(*(f"{scale} (n)" for scale in SCALES))]
    table = Table(headings, footnotes=footnotes)
    for group, (place, (name, system)) in itertools.product(groups, enumerate(systems.items())):
        means = system["means"][group].values()
        cells = [interval_cell(mean["value"], mean["ci"], f"  {mean['n']:>3,}") for mean in means]
        named = marked(f"{name} †", "oracle") if system["upper_bound"] else name
        table.rows.append([*["" if place else group] * several, named, *cells])
    return table


def show_ratings(console: "Console", rated: Mapping[str, Any]) -> None:
    """Shows human ratings: means by system, and agreement."""
    show(console, ratings_table(rated))
    lines = [f"{rated['texts']['rated']:,} of {rated['texts']['of_key']:,} texts of the key were rated"]
    lines += [f"{rater} rated {n['rated']:,} of {n['texts']:,} texts" for rater, n in rated["raters"].items()]
    if not rated["agreement"]:
        lines.append("No text was rated by two raters: how well they agree is not known.")
    for one in rated["agreement"]:
        kappa = "not defined: both gave only one rating"
        if one["kappa"] is not None:
            kappa = f"{round(one['kappa'], 2) + 0.0:.2f}"
        of = f"{' and '.join(one['raters'])}, {one['scale']}"
        lines.append(f"{of}: quadratic-weighted kappa {kappa} ({counted(one['n'], 'text')})")
    show_lines(console, [("\nRaters", "strong"), *((line, "") for line in lines)])


def run(recipe: Recipe, request: Request) -> Outcome:
    """Reads the key and the sheets in the data folder. Rows are data set and system."""
    outcome = Outcome()
    if not (paths := published(request.data, recipe.data[0], outcome.missing)):
        return outcome
    key, *sheets = paths
    rated = read_ratings(sheets, key)
    for row, measure in itertools.product(recipe.rows, recipe.measures):
        group = OVERALL if row.section == ALL_SETS else row.section
        systems = [one["means"] for name, one in rated["systems"].items() if row.name in (ALL_SYSTEMS, name)]
        means = [of_groups[group][measure.column] for of_groups in systems if group in of_groups]
        means = [mean for mean in means if mean["n"]]
        if n := sum(mean["n"] for mean in means):
            value = sum(mean["value"] * mean["n"] for mean in means) / n
            ci = means[0]["ci"] if len(means) == 1 else None
            outcome.cells[row.title, "", measure.name] = Measured(value, n, ci)
    outcome.settings = {"scales": SCALES}
    people = counted(len(rated["raters"]), "person")
    outcome.measured_on[""] = f"{counted(rated['texts']['rated'], 'text')} that {people} rated"
    return outcome


RATINGS = Runner("ratings", run)
