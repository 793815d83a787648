"""Tables of ratings: CiteBench's table 8, and figure 4 of OARelatedWork, metrics against ratings."""

import itertools
from dataclasses import replace

import numpy as np

from citerec.evaluation.predictions import citing_paper
from citerec.evaluation.statistics import OVERALL
from citerec.files.text import counted
from citerec.papers.citebench.ratings import SCALES, bootstrapped, read_ratings, times_of
from citerec.papers.common.reproduce.here import metrics_here, published
from citerec.papers.common.reproduce.run import Measured, Reproduction
from citerec.write.citation import PRESETS
from citerec.write.metrics.base import open_metrics
from citerec.write.task_files import read_prediction_file
from citerec.write.tasks import Prediction, sentences_of

ALL_SETS, ALL_SYSTEMS = "all data sets", "all systems"
RATINGS = "ratings"
"""The field of a prediction that holds its ratings: {"coarse": 0.8, "fine": 0.65}."""
_BLOCK = 5  # sentences: Docekal et al. 2024, section 4.1.1


def show_means(table: Reproduction) -> None:
    """Reads the key and the sheets in the data folder. Rows are data set and system."""
    if not (paths := published(table.data, table.recipe.data[0], table.missing)):
        return
    key, *sheets = paths
    rated = read_ratings(sheets, key)
    for row, measure in itertools.product(table.recipe.rows, table.recipe.measures):
        group = OVERALL if row.section == ALL_SETS else row.section
        systems = [one["means"] for name, one in rated["systems"].items() if row.name in (ALL_SYSTEMS, name)]
        means = [of_groups[group][measure.column] for of_groups in systems if group in of_groups]
        if n := sum(mean["n"] for mean in means):
            value = sum(mean["value"] * mean["n"] for mean in means if mean["n"]) / n
            table.cells[row.title, "", measure.name] = Measured(value, n, means[0]["ci"] if len(means) == 1 else None)
    table.settings = {"scales": SCALES}
    people = counted(len(rated["raters"]), "person")
    table.measured_on[""] = f"{counted(rated['texts']['rated'], 'text')} that {people} rated"


def correlate_metrics(table: Reproduction) -> None:
    """Correlates metrics, a row each, with the ratings of predictions, a column each: Pearson's r over texts."""
    recipe, (data,) = table.recipe, table.recipe.data
    paths = published(table.data, data, table.missing)
    read = (one for path in paths for one in read_prediction_file(path))
    if not (rated := [_in_blocks(one) for one in read if isinstance(one.task.extra.get(RATINGS), dict)]):
        return
    metrics, _ = open_metrics(**PRESETS[recipe.preset].arguments(names=metrics_here(recipe, table.missing)))
    scores = {
        (metric.name, column.name): values
        for metric in metrics
        for column, values in zip(metric.columns, metric.scores(rated, table.on_progress).T, strict=True)
    }
    times = times_of([citing_paper(one.task) or one.task.task_id for one in rated])
    for row, measure in itertools.product(recipe.rows, recipe.measures):
        if (measured := scores.get((row.metric, row.column))) is not None:
            people = [one.task.extra[RATINGS].get(measure.column, np.nan) for one in rated]
            pair = np.stack([measured, np.array(people, np.float64)])
            known = ~np.isnan(pair).any(axis=0)
            one = bootstrapped([pair[:, known].repeat(sample, axis=1) for sample in times[:, known]])
            if (value := one["values"]["pearson"]) is not None:
                table.cells[row.title, "", measure.name] = Measured(value, one["n"], one["ci"]["pearson"])
    table.settings = {metric.name: metric.settings for metric in metrics}
    table.measured_on[""] = counted(len(rated), "text")


def _in_blocks(prediction: Prediction) -> Prediction:
    """A prediction and its targets with a line for five sentences each, as blocks for BlockMatch."""
    targets = tuple(map(_lines, prediction.task.targets))
    return replace(prediction, task=replace(prediction.task, targets=targets), text=_lines(prediction.text))


def _lines(text: str) -> str:
    sentences = sentences_of(text)
    return "\n".join(" ".join(sentences[place : place + _BLOCK]) for place in range(0, len(sentences), _BLOCK))
