"""Systems that write, measured on the same tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.statistics import RESAMPLES, Floats
from citerec.evaluation.texts.means import Groups, Mean, comparisons, groups_of, means
from citerec.evaluation.texts.predictions import Predictions, citing_paper
from citerec.evaluation.texts.results import SystemTexts, TextResults
from citerec.groundwork.progress import Progress, no_progress
from citerec.texts.anchors import cited_in
from citerec.texts.metrics.base import Column, CorpusMetric, TextMetric, default_metrics
from citerec.texts.metrics.citations import Citations
from citerec.texts.tasks import Written

_TARGET = "target"


def evaluate_texts(
    predictions: Predictions,
    text_metrics: Sequence[TextMetric],
    corpus_metrics: Sequence[CorpusMetric] = (),
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    on_progress: Progress = no_progress,
) -> TextResults:
    """Measures what systems wrote, over all texts and data set by data set.

    Means come with percentile bootstrap intervals, pairs of systems with paired randomisation tests; both draw citing
    papers where these are known, else tasks. Upper bounds take no part in tests.

    Args:
        predictions: What they wrote.
        text_metrics: Score texts one by one.
        corpus_metrics: Look at all texts of a system on a data set together.
        seed: Of intervals and tests.
        resamples: Of the bootstrap.
        on_progress: Called as the work goes on.

    Raises:
        InputError: There is no metric, or too few samples.
        ModelError: The model that a metric needs cannot be opened.
    """
    if not text_metrics and not corpus_metrics:
        raise InputError("there is no metric", f"Name some: --metrics {','.join(default_metrics())}")
    if resamples < 100 or seed < 0:
        raise InputError(f"{resamples} samples from seed {seed}", "Draw at least 100, from a seed of at least 0.")
    columns = tuple(replace(one, metric=metric.name) for metric in text_metrics for one in metric.columns)
    groups = _groups(predictions)
    scores = {
        name: _scores(text_metrics, texts, columns, f"{name}: ", on_progress)
        for name, texts in predictions.systems.items()
    }
    settings = {metric.name: metric.settings for metric in text_metrics}
    settings |= {metric.name: metric.settings for metric in corpus_metrics}
    systems = {
        name: SystemTexts(
            upper_bound=name in predictions.upper_bounds,
            missing=predictions.missing[name],
            blank=sum(not text.text.strip() for text in texts),
            means=means(scores[name], groups, seed, resamples),
            summaries={metric.name: _summaries(metric, texts, groups, on_progress) for metric in corpus_metrics},
        )
        for name, texts in predictions.systems.items()
    }
    tested = {name: scores[name] for name in scores if name not in predictions.upper_bounds}
    results = TextResults(
        predictions=predictions,
        groups=groups,
        columns=columns,
        settings=settings,
        systems=systems,
        targets=_targets(predictions, text_metrics, columns, groups, seed, resamples, on_progress),
        comparisons=comparisons(tested, [column.name for column in columns], groups, seed, on_progress),
        seed=seed,
        resamples=resamples,
        citing_known=sum(citing_paper(task) is not None for task in predictions.tasks),
        scores=scores,
    )
    return replace(results, notes=tuple(_notes(results)))


def _groups(predictions: Predictions) -> Groups:
    # A number that no name can be, where the citing paper is not known: the task stands for itself.
    citing = [citing_paper(task) or f"\0{number}" for number, task in enumerate(predictions.tasks)]
    return groups_of([task.dataset for task in predictions.tasks], citing)


def _scores(
    metrics: Sequence[TextMetric], texts: Sequence[Written], columns: Sequence[Column], of: str, on_progress: Progress
) -> Floats:
    """Texts × columns, all metrics side by side; NaN for columns of metrics that are not asked."""
    scores = np.full((len(texts), len(columns)), np.nan)
    for metric in metrics:
        mine = [number for number, column in enumerate(columns) if column.metric == metric.name]
        scores[:, mine] = metric.scores(texts, lambda doing, done, whole: on_progress(of + doing, done, whole))
    return scores


def _summaries(
    metric: CorpusMetric, texts: Sequence[Written], groups: Groups, on_progress: Progress
) -> dict[str, Mapping[str, Any]]:
    return {
        name: metric.summary([text for text, inside in zip(texts, members, strict=True) if inside], on_progress)
        for name, members in zip(groups.names, groups.members.T.tolist(), strict=True)
    }


def _targets(
    predictions: Predictions,
    metrics: Sequence[TextMetric],
    columns: Sequence[Column],
    groups: Groups,
    seed: int,
    resamples: int,
    on_progress: Progress,
) -> dict[str, list[Mean]] | None:
    """What describes texts, of the first targets: what a system's figures are to be held against."""
    describing = [metric for metric in metrics if not any(column.judges for column in metric.columns)]
    known = np.array([bool(task.targets) for task in predictions.tasks])
    if not describing or not known.any():
        return None
    texts = [Written(task, task.targets[0] if task.targets else "", _TARGET) for task in predictions.tasks]
    scores = _scores(describing, texts, columns, f"{_TARGET}: ", on_progress)
    scores[~known] = np.nan
    return means(scores, groups, seed, resamples)


def _notes(results: TextResults) -> list[str]:
    predictions, notes = results.predictions, []
    if predictions.left_out:
        lacking = ", ".join(f"{name}: {number:,}" for name, number in predictions.missing.items() if number)
        notes.append(
            f"{_tasks(predictions.left_out)} of {predictions.asked:,} left out: not every system answered ({lacking})."
        )
    without = sum(not task.targets for task in predictions.tasks)
    if without:
        notes.append(f"{_tasks(without)} without a target: what compares with one is not defined there.")
    for name, system in results.systems.items():
        if system.blank:
            notes.append(f"{name} wrote nothing for {_tasks(system.blank)}.")
    if Citations.name in results.metrics:
        silent = {name: _silent(results, name) for name in results.systems}
        if any(silent.values()):
            of_systems = ", ".join(f"{name}: {number:,}" for name, number in silent.items())
            notes.append(f"citations: texts that cite nothing, as their target does, count as 1 ({of_systems}).")
    return notes


def _silent(results: TextResults, system: str) -> int:
    """How many texts have the best citation score for citing nothing."""
    f1 = next(number for number, column in enumerate(results.columns) if column.name == Citations.columns[0].name)
    best = zip(results.predictions.systems[system], results.scores[system][:, f1] == 1, strict=True)
    found = [cited_in(written.text, written.task.sources) for written, is_best in best if is_best]
    return sum(not cited.sources and not cited.outside for cited in found)


def _tasks(number: int) -> str:
    return f"{number:,} task{'' if number == 1 else 's'}"
