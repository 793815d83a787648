"""How well metrics of texts agree with people's ratings: correlations over texts and over systems, and their tables."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.predictions import citing_paper
from citerec.evaluation.rendering import Table, left, right, show, show_lines
from citerec.evaluation.results import Results, plain
from citerec.evaluation.statistics import DATASET, LEVEL, RESAMPLES, Floats, Interval, drawn_times
from citerec.files.text import counted
from citerec.papers.citebench.rating_tables import interval_cell
from citerec.papers.citebench.sheets import SCALES, read_sheets
from citerec.papers.common.reproduce.base import Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import checked, is_here, metrics_here, missing_data
from citerec.write.metrics.base import open_metrics
from citerec.write.presets import PRESETS
from citerec.write.sentences import sentences_of
from citerec.write.task_files import read_prediction_file
from citerec.write.tasks import Prediction

if TYPE_CHECKING:
    from rich.console import Console

COEFFICIENTS = ("pearson", "spearman", "kendall")
RATINGS = "ratings"
"""The field of a prediction that holds its ratings: {"coarse": 0.8, "fine": 0.65}."""

_LEAST = 3  # points: the correlation of two is always 1 or -1
_DECIMALS = 12  # what differs after them differs by rounding
_BLOCK = 5  # sentences: Docekal et al. 2024, section 4.1.1


@dataclass(frozen=True, slots=True)
class Correlation:
    """A metric and a scale on which people rated.

    Attributes:
        level: Whether its points are texts of all systems, or means of systems over the texts that were rated.
        metric: The column of the metric.
        scale: The scale.
        n: How many texts or systems.
        values: By coefficient: Pearson's r, Spearman's rho, Kendall's tau-b; None if one of both is constant, or for
            fewer than three points.
        ci: Their intervals of 95 %.
    """

    level: str
    metric: str
    scale: str
    n: int
    values: Mapping[str, float | None]
    ci: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Correlated:
    """Correlations of all metrics with all scales.

    Attributes:
        texts: How many texts were both rated and measured (`measured`), of how many rated (`of_rated`).
        systems: The systems, without upper bounds.
        correlations: Metric by metric and scale by scale, over texts and over systems.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.
    """

    texts: Mapping[str, int]
    systems: Sequence[str]
    correlations: Sequence[Correlation]
    seed: int
    resamples: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return plain({"kind": "citerec-rating-correlations", "version": 1, **asdict(self)})


def correlate(
    sheets: Sequence[Path], key_path: Path, results: Results, *, seed: int = 0, resamples: int = RESAMPLES
) -> Correlated:
    """Correlates the metrics of results with ratings of the same texts.

    A text counts once, by the mean of its ratings. Upper bounds are left out. Intervals are percentiles of the
    bootstrap; citing papers are drawn, as for means (`citerec.evaluation.statistics`).

    Args:
        sheets: Sheets that people filled in.
        key_path: Their key.
        results: Results of `evaluate_texts` for the texts of the sheets; systems have the same names there.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.

    Raises:
        InputError: A sheet or the key cannot be read, the results are of ranked lists, or have none of the texts.
    """
    if not results.of_texts:
        raise InputError("these results are of ranked lists", "Give those of eval-text.")
    items = results.items
    tasks = zip(results.classes[DATASET], items["context"], strict=True)
    places = {task: place for place, task in enumerate(tasks)}
    oracles = {name for name, system in results.systems.items() if system.is_oracle}
    ratings = read_sheets(sheets, key_path)
    rated = [
        (item.system, places.get((item.dataset, item.task_id)), means)
        for item, means in zip(ratings.key.items.values(), ratings.means, strict=True)
        if item.system not in oracles and not np.isnan(means).all()
    ]
    rows = [(system, place, means) for system, place, means in rated if system in results.scores and place is not None]
    if not rows:
        raise InputError(
            "the results have none of the texts that were rated",
            "Evaluate the files from which the sheets were made: citerec eval-text … --out FOLDER",
        )
    systems = list(dict.fromkeys(system for system, _, _ in rows))
    of_system = np.array([[float(system == one) for one in systems] for system, _, _ in rows])
    scores = np.array([results.scores[system][place] for system, place, _ in rows])
    people = np.array([means for _, _, means in rows])
    weights = _weights(items["citing"].to_numpy()[[place for _, place, _ in rows]], seed, resamples)
    correlations = []
    for (column, measured), (scale, rating) in itertools.product(
        zip(results.columns, scores.T, strict=True), zip(SCALES, people.T, strict=True)
    ):
        known = ~np.isnan(measured) & ~np.isnan(rating)
        of_texts = weights[:, known]
        counts = of_texts @ of_system[known]  # a sample may have no text of a system: it counts 0 times there
        sums = [(of_texts * one[known]) @ of_system[known] for one in (measured, rating)]
        first, second = (one / np.maximum(counts, 1) for one in sums)
        over_texts = bootstrapped(measured[None, known], rating[None, known], of_texts)
        over_systems = bootstrapped(first, second, (counts > 0).astype(np.float64))
        correlations.append(Correlation("texts", column.name, scale, *over_texts))
        correlations.append(Correlation("systems", column.name, scale, *over_systems))
    return Correlated({"measured": len(rows), "of_rated": len(rated)}, systems, correlations, seed, resamples)


def _weights(citing: Any, seed: int, resamples: int = RESAMPLES) -> Floats:
    """How often texts count, by their citing papers: each once, then in bootstrap samples; (1 + samples) × texts."""
    _, clusters = np.unique(citing, return_inverse=True)
    return np.concatenate([np.ones((1, len(clusters))), drawn_times(clusters, seed, resamples)])


def bootstrapped(
    first: Floats, second: Floats, weights: Floats
) -> tuple[int, dict[str, float | None], dict[str, Interval]]:
    """The number of points, coefficients by name, and their 95 % intervals; None where they are not defined.

    The first sample gives number and values, the others the intervals. Arguments are those of `coefficients`.
    """
    n = int(weights[0].sum())
    values: dict[str, float | None] = dict.fromkeys(COEFFICIENTS)
    ci: dict[str, Interval] = dict.fromkeys(COEFFICIENTS)
    for name, column in zip(COEFFICIENTS, coefficients(first, second, weights).T, strict=True):
        if n >= _LEAST and not np.isnan(column[0]):
            values[name] = float(column[0])
            defined = column[1:][~np.isnan(column[1:])]
            if len(defined):
                low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
                ci[name] = low, high
    return n, values, ci


def coefficients(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Pearson's r, Spearman's rho and Kendall's tau-b of points that count several times, or not at all.

    All three are sums over pairs of points (H. E. Daniels, Biometrika 33, 1944): r of their differences, rho of their
    differences in rank, tau of the signs of their differences. So many samples are computed at once; scipy's functions,
    which give the same values, take one sample at a time.

    Args:
        first: Samples × points, or 1 × points for all samples.
        second: In the same way.
        weights: Samples × points: how often each point counts.

    Returns:
        Samples × 3; NaN if one of both is constant.
    """

    def over_others(pairs: Floats) -> Floats:
        """The sum over all other points of what stands for each pair: samples × points."""
        summed: Floats = (pairs @ weights[:, :, None])[:, :, 0]
        return summed

    def total(of_points: Floats) -> Floats:
        """The sum over all points, as often as they count: one for each sample."""
        summed: Floats = (weights * of_points).sum(axis=1)
        return summed

    differences = [values[:, :, None] - values[:, None, :] for values in (first, second)]
    x, y = (np.round(one, _DECIMALS) for one in differences)
    x_sign, y_sign = map(np.sign, differences)
    sums = []
    # A point's differences from all others sum up to that from the mean; their signs, to its rank from the mean rank.
    for a, b in ((over_others(x), over_others(y)), (over_others(x_sign), over_others(y_sign))):
        sums.append([total(a * b), total(a * a), total(b * b)])
    sums.append([total(over_others(a * b)) for a, b in ((x_sign, y_sign), (x_sign, x_sign), (y_sign, y_sign))])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([xy / np.sqrt(xx * yy) for xy, xx, yy in sums], axis=1)


def correlations_table(correlated: Correlated, level: str) -> Table:
    """The correlations over texts, or over systems."""
    table = Table([*left("scale", "metric"), *right("n", format=","), *right("Pearson", "Spearman", "Kendall")])
    for scale in SCALES:
        of_scale = [one for one in correlated.correlations if (one.level, one.scale) == (level, scale)]
        for place, one in enumerate(of_scale):
            cells = [interval_cell(one.values[name], one.ci[name]) for name in COEFFICIENTS]
            table.rows.append(["" if place else scale, one.metric, one.n, *cells])
    return table


def show_correlations(console: "Console", correlated: Correlated) -> None:
    """Shows how metrics correlate with human ratings, over texts and over systems."""
    from rich.text import Text

    systems = counted(len(correlated.systems), "system")
    measured, rated = correlated.texts["measured"], correlated.texts["of_rated"]
    for level, about in (
        ("texts", f"{measured:,} of {rated:,} rated texts are in the results, by {systems}"),
        ("systems", f"means of {systems} over the rated texts"),
    ):
        console.print(Text(f"Over {level}", "bold").append(f"  {about}", "not bold dim"), soft_wrap=True)
        show(console, correlations_table(correlated, level))
        console.print()
    resamples = f"{correlated.resamples:,} bootstrap samples over citing papers"
    show_lines(console, [(f"[low high]: 95 % of {resamples}. Upper bounds are left out.", "faint")])


class CorrelationRunner(Runner):
    """Correlates metrics, a row each, with the ratings of predictions, a column each: Pearson's r over texts."""

    name = "correlation"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        (data,) = recipe.data
        if request.data is None or not is_here(request.data, data):
            return Outcome({}, [missing_data(request.data, data)])
        read = (one for path in checked(request.data, data) for one in read_prediction_file(path))
        rated = [_in_blocks(one) for one in read if isinstance(one.task.extra.get(RATINGS), dict)]
        if len(rated) < _LEAST:
            raise InputError(f"{data.files[0]} has {counted(len(rated), 'prediction')} with {RATINGS}", "Give three.")
        wanted, missing = metrics_here(recipe)
        metrics, _ = open_metrics(**PRESETS[recipe.preset].arguments(names=wanted))
        scores = {
            (metric.name, column.name): values
            for metric in metrics
            for column, values in zip(metric.columns, metric.scores(rated, request.on_progress).T, strict=True)
        }
        weights = _weights([citing_paper(one.task) or one.task.task_id for one in rated], seed=0)
        cells = {}
        for row, measure in itertools.product(recipe.rows, recipe.measures):
            if (measured := scores.get((row.metric, row.column))) is not None:
                people = np.array([one.task.extra[RATINGS].get(measure.column, np.nan) for one in rated], np.float64)
                known = ~(np.isnan(measured) | np.isnan(people))
                n, values, ci = bootstrapped(measured[None, known], people[None, known], weights[:, known])
                if (value := values["pearson"]) is not None:
                    cells[row.title, "", measure.name] = Measured(value, n, ci["pearson"])
        settings = {metric.name: metric.settings for metric in metrics}
        return Outcome(cells, missing, {"": counted(len(rated), "text")}, settings)


def _in_blocks(prediction: Prediction) -> Prediction:
    """A prediction and its targets with a line for five sentences each, as blocks for BlockMatch."""
    targets = tuple(map(_lines, prediction.task.targets))
    return replace(prediction, task=replace(prediction.task, targets=targets), text=_lines(prediction.text))


def _lines(text: str) -> str:
    sentences = sentences_of(text)
    return "\n".join(" ".join(sentences[place : place + _BLOCK]) for place in range(0, len(sentences), _BLOCK))


CORRELATION = CorrelationRunner()
