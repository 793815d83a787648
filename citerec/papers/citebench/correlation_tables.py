"""Tables of how metrics of texts agree with people's ratings: Pearson's r over texts."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.predictions import citing_paper
from citerec.evaluation.statistics import LEVEL, Floats, drawn_times
from citerec.files.text import counted
from citerec.papers.citebench.correlation import coefficients
from citerec.papers.common.reproduce.base import Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import checked, is_here, metrics_here, missing_data
from citerec.write.metrics.base import open_metrics
from citerec.write.presets import PRESETS
from citerec.write.sentences import sentences_of
from citerec.write.task_files import read_prediction_file
from citerec.write.tasks import Prediction

RATINGS = "ratings"
"""The field of a prediction that holds its ratings: {"coarse": 0.8, "fine": 0.65}."""
_LEAST = 3
_BLOCK = 5  # sentences: section 4.1.1 of the paper


class Correlation(Runner):
    """Correlates metrics, a row each, with the ratings of predictions, a column each."""

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
        opened, _ = open_metrics(**PRESETS[recipe.preset].arguments(names=wanted))
        found = {metric.name: metric.scores(rated, request.on_progress) for metric in opened}
        names = {metric.name: [column.name for column in metric.columns] for metric in opened}
        _, clusters = np.unique([citing_paper(one.task) or one.task.task_id for one in rated], return_inverse=True)
        times = np.concatenate([np.ones((1, len(rated))), drawn_times(clusters, seed=0)])
        cells = {}
        for row, measure in itertools.product(recipe.rows, recipe.measures):
            if row.metric in found:
                scores = found[row.metric][:, names[row.metric].index(row.column)]
                people = np.array([one.task.extra[RATINGS].get(measure.column, np.nan) for one in rated], np.float64)
                if (one := _pearson(scores, people, times)) is not None:
                    cells[row.title, "", measure.name] = one
        settings = {metric.name: metric.settings for metric in opened}
        return Outcome(cells, missing, {"": counted(len(rated), "text")}, settings)


def _pearson(scores: Floats, people: Floats, times: Floats) -> Measured | None:
    """Pearson's r with its bootstrap interval; None if it is not defined."""
    known = ~(np.isnan(scores) | np.isnan(people))
    if known.sum() < _LEAST:
        return None
    value, *drawn = coefficients(scores[None, known], people[None, known], times[:, known])[:, 0].tolist()
    defined = [one for one in drawn if not np.isnan(one)]
    tail = (1 - LEVEL) / 2
    ci = tuple(np.quantile(defined, [tail, 1 - tail]).tolist()) if defined else None
    return None if np.isnan(value) else Measured(value, int(known.sum()), ci)


def _in_blocks(prediction: Prediction) -> Prediction:
    """A prediction and its targets with a line for five sentences each, as blocks for BlockMatch."""
    task = replace(prediction.task, targets=tuple(map(_lines, prediction.task.targets)))
    return replace(prediction, task=task, text=_lines(prediction.text))


def _lines(text: str) -> str:
    sentences: Sequence[str] = sentences_of(text)
    return "\n".join(" ".join(sentences[place : place + _BLOCK]) for place in range(0, len(sentences), _BLOCK))


CORRELATION = Correlation()
