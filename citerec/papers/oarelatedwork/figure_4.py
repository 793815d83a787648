"""Figure 4: how metrics correlate with people's ratings of the same texts."""

import itertools
from dataclasses import replace

import numpy as np

from citerec.evaluation.statistics import times_of
from citerec.evaluation.texts import citing_paper
from citerec.files.text import counted
from citerec.papers.common.reproduce import Measured, Reproduction, metrics_here, published
from citerec.papers.common.statistics import bootstrapped
from citerec.write.drafting import PRESETS
from citerec.write.metrics import open_metrics
from citerec.write.task_files import read_prediction_file
from citerec.write.tasks import Prediction, sentences_of

RATINGS = "ratings"
"""The field of a prediction that holds its ratings: {"coarse": 0.8, "fine": 0.65}."""
_BLOCK = 5  # sentences: Docekal et al. 2024, section 4.1.1


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
            has_both = ~np.isnan(pair).any(axis=0)
            one = bootstrapped([pair[:, has_both].repeat(sample, axis=1) for sample in times[:, has_both]])
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
