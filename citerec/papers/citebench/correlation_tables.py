"""How well metrics of texts agree with people's ratings: correlations over texts and over systems, and their tables."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError
from citerec.evaluation.predictions import citing_paper
from citerec.evaluation.rendering import Table, left, right, show, show_lines
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import DATASET, LEVEL, RESAMPLES, Floats, drawn_times
from citerec.files.text import counted
from citerec.papers.citebench.rating_tables import interval_cell
from citerec.papers.citebench.sheets import SCALES, read_sheets
from citerec.papers.common.reproduce.base import Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import metrics_here, published
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


def correlate(
    sheets: Sequence[Path], key_path: Path, results: Results, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Correlates the metrics of results with ratings of the same texts.

    A text counts once, by the mean of its ratings. Upper bounds are left out. Intervals are percentiles of the
    bootstrap; citing papers are drawn, as for means (`citerec.evaluation.statistics`).

    Args:
        sheets: Sheets that people filled in.
        key_path: Their key.
        results: Results of `evaluate_texts` for the texts of the sheets; systems have the same names there.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.

    Returns:
        As JSON. `texts`: how many were both rated and measured (`measured`), of how many rated (`of_rated`). `systems`:
        their names. `correlations`: for each metric (its column) and scale two, of `level` "texts", whose points are
        the texts of all systems, and "systems", whose points are the means of systems over the rated texts; each with
        `n` points, `values` and `ci` as `bootstrapped` gives them. `seed` and `resamples` of the bootstrap.

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
    times = _times(items["citing"].to_numpy()[[place for _, place, _ in rows]], seed, resamples)
    correlations = []
    for (column, measured), (scale, rating) in itertools.product(
        zip(results.columns, scores.T, strict=True), zip(SCALES, people.T, strict=True)
    ):
        known = ~(np.isnan(measured) | np.isnan(rating))
        pair = np.stack([measured[known], rating[known]])
        of_texts = [pair.repeat(sample, axis=1) for sample in times[:, known]]
        sums = [(sample * pair) @ of_system[known] for sample in times[:, known]]
        counts = times[:, known] @ of_system[known]  # a sample may have no text of a system
        of_systems = [one[:, n > 0] / n[n > 0] for one, n in zip(sums, counts, strict=True)]
        for level, samples in (("texts", of_texts), ("systems", of_systems)):
            about = {"level": level, "metric": column.name, "scale": scale}
            correlations.append({**about, **bootstrapped(samples)})
    return {
        "kind": "citerec-rating-correlations",
        "version": 1,
        "texts": {"measured": len(rows), "of_rated": len(rated)},
        "systems": systems,
        "correlations": correlations,
        "seed": seed,
        "resamples": resamples,
    }


def _times(citing: Any, seed: int, resamples: int = RESAMPLES) -> npt.NDArray[np.int64]:
    """How often texts count, by their citing papers: each once, then in bootstrap samples; (1 + samples) × texts."""
    _, clusters = np.unique(citing, return_inverse=True)
    return np.concatenate([np.ones((1, len(clusters))), drawn_times(clusters, seed, resamples)]).astype(np.int64)


def bootstrapped(samples: Sequence[Floats]) -> dict[str, Any]:
    """Correlations of some points, with the 95 % intervals of their bootstrap samples.

    Args:
        samples: The points, then each bootstrap sample of them: 2 × points.

    Returns:
        `n` points; by coefficient `values`, None for fewer than three points or where `coefficients` has none; `ci`.
    """
    n = samples[0].shape[1]
    table = np.array([coefficients(*sample) for sample in (samples if n >= _LEAST else ())]).reshape(-1, 3)
    if not len(table) or np.isnan(table[0]).any():
        return {"n": n, "values": dict.fromkeys(COEFFICIENTS), "ci": dict.fromkeys(COEFFICIENTS)}
    drawn = table[1:][~np.isnan(table[1:]).any(axis=1)]
    bounds = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0).T.tolist() if len(drawn) else [None] * 3
    values, ci = (dict(zip(COEFFICIENTS, each, strict=True)) for each in (table[0].tolist(), bounds))
    return {"n": n, "values": values, "ci": ci}


def coefficients(first: Floats, second: Floats) -> list[float]:
    """Pearson's r, Spearman's rho and Kendall's tau-b (by scipy) of some points; NaN if one of both is constant."""
    from scipy import stats

    pair = np.round([first, second], _DECIMALS)
    if min(map(len, map(np.unique, pair))) < 2:
        return [np.nan] * len(COEFFICIENTS)
    # Spearman's rho is Pearson's r of the ranks; scipy's functions for both are slow, since they test it, too.
    pearson, spearman = (np.corrcoef(values)[0, 1] for values in (pair, stats.rankdata(pair, axis=1)))
    return [float(pearson), float(spearman), float(stats.kendalltau(*pair).statistic)]


def correlations_table(correlated: Mapping[str, Any], level: str) -> Table:
    """The correlations over texts, or over systems."""
    table = Table([*left("scale", "metric"), *right("n", format=","), *right("Pearson", "Spearman", "Kendall")])
    for scale in SCALES:
        of_scale = [one for one in correlated["correlations"] if (one["level"], one["scale"]) == (level, scale)]
        for place, one in enumerate(of_scale):
            cells = [interval_cell(one["values"][name], one["ci"][name]) for name in COEFFICIENTS]
            table.rows.append(["" if place else scale, one["metric"], one["n"], *cells])
    return table


def show_correlations(console: "Console", correlated: Mapping[str, Any]) -> None:
    """Shows how metrics correlate with human ratings, over texts and over systems."""
    from rich.text import Text

    systems, texts = counted(len(correlated["systems"]), "system"), correlated["texts"]
    abouts = {
        "texts": f"{texts['measured']:,} of {texts['of_rated']:,} rated texts are in the results, by {systems}",
        "systems": f"means of {systems} over the rated texts",
    }
    for level, about in abouts.items():
        console.print(Text(f"Over {level}", "bold").append(f"  {about}", "not bold dim"), soft_wrap=True)
        show(console, correlations_table(correlated, level))
        console.print()
    resamples = f"{correlated['resamples']:,} bootstrap samples over citing papers"
    show_lines(console, [(f"[low high]: 95 % of {resamples}. Upper bounds are left out.", "faint")])


def run(recipe: Recipe, request: Request) -> Outcome:
    """Correlates metrics, a row each, with the ratings of predictions, a column each: Pearson's r over texts."""
    outcome, (data,) = Outcome(), recipe.data
    if not (paths := published(request.data, data, outcome.missing)):
        return outcome
    read = (one for path in paths for one in read_prediction_file(path))
    rated = [_in_blocks(one) for one in read if isinstance(one.task.extra.get(RATINGS), dict)]
    if len(rated) < _LEAST:
        raise InputError(f"{data.files[0]} has {counted(len(rated), 'prediction')} with {RATINGS}", "Give three.")
    names = metrics_here(recipe, outcome.missing)
    metrics, _ = open_metrics(**PRESETS[recipe.preset].arguments(names=names))
    scores = {
        (metric.name, column.name): values
        for metric in metrics
        for column, values in zip(metric.columns, metric.scores(rated, request.on_progress).T, strict=True)
    }
    times = _times([citing_paper(one.task) or one.task.task_id for one in rated], seed=0)
    for row, measure in itertools.product(recipe.rows, recipe.measures):
        if (measured := scores.get((row.metric, row.column))) is not None:
            people = [one.task.extra[RATINGS].get(measure.column, np.nan) for one in rated]
            pair = np.stack([measured, np.array(people, np.float64)])
            known = ~np.isnan(pair).any(axis=0)
            correlation = bootstrapped([pair[:, known].repeat(sample, axis=1) for sample in times[:, known]])
            if (value := correlation["values"]["pearson"]) is not None:
                ci = correlation["ci"]["pearson"]
                outcome.cells[row.title, "", measure.name] = Measured(value, correlation["n"], ci)
    outcome.settings = {metric.name: metric.settings for metric in metrics}
    outcome.measured_on[""] = counted(len(rated), "text")
    return outcome


def _in_blocks(prediction: Prediction) -> Prediction:
    """A prediction and its targets with a line for five sentences each, as blocks for BlockMatch."""
    targets = tuple(map(_lines, prediction.task.targets))
    return replace(prediction, task=replace(prediction.task, targets=targets), text=_lines(prediction.text))


def _lines(text: str) -> str:
    sentences = sentences_of(text)
    return "\n".join(" ".join(sentences[place : place + _BLOCK]) for place in range(0, len(sentences), _BLOCK))


CORRELATION = Runner("correlation", run)
