"""Systems that write, measured on the same tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.compare import Grouping, compare, group_scores
from citerec.evaluation.figures import ALL, DATASET, UNNAMED, Scores, SystemResult, members_of
from citerec.evaluation.files import dataset_family
from citerec.evaluation.items import Items
from citerec.evaluation.predictions import Predictions, citing_paper
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import RESAMPLES, Floats
from citerec.evaluation.tables import said
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.write.anchors import cited_in
from citerec.write.metrics.base import DEFAULT_METRICS, Column, CorpusMetric, TextMetric
from citerec.write.metrics.citations import Citations
from citerec.write.tasks import Prediction

_TARGET = "target"


def evaluate_texts(
    predictions: Predictions,
    text_metrics: Sequence[TextMetric],
    corpus_metrics: Sequence[CorpusMetric] = (),
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    preset: Mapping[str, Any] | None = None,
    on_progress: Progress = no_progress,
) -> Results:
    """Measures predictions of systems, over all texts and by data set.

    Means have percentile bootstrap intervals, and pairs of systems paired randomisation tests; both resample citing
    papers if these are known, else tasks. Upper bounds are not tested.

    Args:
        predictions: The predictions of all systems.
        text_metrics: Metrics that score texts one by one.
        corpus_metrics: Metrics that look at all texts of a system on a data set together.
        seed: Seed of intervals and tests.
        resamples: Number of bootstrap samples.
        preset: The preset that the metrics were opened with, as `Preset.used` says it.
        on_progress: Called as the work goes on.

    Raises:
        InputError: There is no metric, or too few samples.
        ModelError: The model that a metric needs cannot be opened.
    """
    if not text_metrics and not corpus_metrics:
        raise InputError("there is no metric", f"Name some: --metrics {','.join(DEFAULT_METRICS)}")
    if resamples < 100 or seed < 0:
        raise InputError(f"{resamples} samples from seed {seed}", "Draw at least 100, from a seed of at least 0.")
    tasks = predictions.tasks
    columns = tuple(replace(one, metric=metric.name) for metric in text_metrics for one in metric.columns)
    names = [column.name for column in columns]
    labels = [{DATASET: task.dataset} for task in tasks]
    # If the citing paper is not known, the task counts as a paper of its own. No name starts with \0.
    citing = [citing_paper(task) or f"\0{number}" for number, task in enumerate(tasks)]
    grouping = grouping_of([task.dataset for task in tasks], citing)
    scores = {
        name: _scores(text_metrics, texts, columns, f"{name}: ", on_progress)
        for name, texts in predictions.systems.items()
    }
    means = partial(group_scores, columns=names, grouping=grouping, seed=seed, resamples=resamples)
    systems = {
        name: group_system(
            means(scores[name]),
            grouping,
            settings=predictions.settings(name),
            is_oracle=name in predictions.oracles,
            missing=predictions.missing[name],
            empty=sum(not text.text.strip() for text in texts),
            summaries={metric.name: _summaries(metric, texts, grouping, on_progress) for metric in corpus_metrics},
            files=predictions.files.get(name, ()),
        )
        for name, texts in predictions.systems.items()
    }
    of_targets = _target_scores(predictions, text_metrics, columns, on_progress)
    tested = {name: scores[name] for name in scores if name not in predictions.oracles}
    sizes = grouping.members.sum(axis=0).tolist()
    results = Results(
        columns=columns,
        families=dataset_family([label for _, label in grouping.groups]),
        systems=systems,
        seed=seed,
        resamples=resamples,
        set={
            "asked": predictions.asked,
            "compared": len(tasks),
            "left_out": predictions.left_out,
            "citing_paper_known": sum(citing_paper(task) is not None for task in tasks),
            "references": asdict(predictions.references) if predictions.references else None,
            "groups": dict(zip((label for _, label in (ALL, *grouping.groups)), sizes, strict=True)),
        },
        settings={
            **{metric.name: metric.settings for metric in text_metrics},
            **{metric.name: metric.settings for metric in corpus_metrics},
        },
        preset=preset,
        targets=None if of_targets is None else group_system(means(of_targets), grouping),
        comparisons=compare(tested, names, grouping, seed, together="pairs", on_progress=on_progress),
        items=Items([task.task_id for task in tasks], labels, grouping.clusters, scores, names),
        predictions=predictions,
    )
    return replace(results, notes=tuple(_notes(results, predictions)))


def group_system(means: Sequence[Scores], grouping: Grouping, **fields: Any) -> SystemResult:
    """A system that writes, by its means over all texts and over each group."""
    classes = {label: found for (_, label), found in zip(grouping.groups, means[1:], strict=True)}
    return SystemResult("texts", means[0], {DATASET: classes} if classes else {}, **fields)


def grouping_of(datasets: Sequence[str], citing: Sequence[str]) -> Grouping:
    """Groups of texts, by the data set (empty if it has no name) and the citing paper of each."""
    names = list(dict.fromkeys(name or UNNAMED for name in datasets))
    groups = [(DATASET, name) for name in names] if len(names) > 1 else []
    _, clusters = np.unique(np.array(citing, dtype=object), return_inverse=True)
    return Grouping(groups, members_of([{DATASET: name} for name in datasets], groups), clusters.astype(np.int32))


def _scores(
    metrics: Sequence[TextMetric],
    texts: Sequence[Prediction],
    columns: Sequence[Column],
    of: str,
    on_progress: Progress,
) -> Floats:
    """Texts × columns; NaN in the columns of other metrics."""
    scores = np.full((len(texts), len(columns)), np.nan)
    for metric in metrics:
        mine = [number for number, column in enumerate(columns) if column.metric == metric.name]
        scores[:, mine] = metric.scores(texts, lambda doing, done, whole: on_progress(of + doing, done, whole))
    return scores


def _summaries(
    metric: CorpusMetric, texts: Sequence[Prediction], grouping: Grouping, on_progress: Progress
) -> dict[str, Mapping[str, Any]]:
    return {
        name: metric.summary([text for text, inside in zip(texts, members, strict=True) if inside], on_progress)
        for (_, name), members in zip((ALL, *grouping.groups), grouping.members.T.tolist(), strict=True)
    }


def _target_scores(
    predictions: Predictions, metrics: Sequence[TextMetric], columns: Sequence[Column], on_progress: Progress
) -> Floats | None:
    """Scores of the first targets, in the columns that only describe a text."""
    describing = [metric for metric in metrics if not any(column.judges for column in metric.columns)]
    known = np.array([bool(task.targets) for task in predictions.tasks])
    if not describing or not known.any():
        return None
    texts = [Prediction(task, task.targets[0] if task.targets else "", _TARGET) for task in predictions.tasks]
    scores = _scores(describing, texts, columns, f"{_TARGET}: ", on_progress)
    scores[~known] = np.nan
    return scores


def _notes(results: Results, predictions: Predictions) -> list[str]:
    notes = []
    if results.preset and (differs := results.preset["differs"]):
        given = results.preset["settings"]
        words = "; ".join(f"{name} {said(given[name])} (there {said(value)})" for name, value in differs.items())
        notes.append(f"Other than in the preset {results.preset['name']}: {words}.")
    if predictions.left_out:
        left_out = f"{counted(predictions.left_out, 'task')} of {predictions.asked:,} left out"
        reasons = {"not every system answered": predictions.missing, "some served in training": predictions.training}
        why = [f"{reason} ({found})" for reason, numbers in reasons.items() if (found := _by_system(numbers))]
        notes.append(f"{left_out}: {'; '.join(why)}.")
    elif found := _by_system(predictions.training):
        notes.append(f"Tasks that served in training are measured too ({found}): little is known about new tasks.")
    if without := sum(not task.targets for task in predictions.tasks):
        notes.append(f"{counted(without, 'task')} without a target: metrics that compare with it are undefined.")
    empty = {name: system.empty for name, system in results.systems.items() if system.empty}
    notes += [f"{name} wrote nothing for {counted(number, 'task')}." for name, number in empty.items()]
    if Citations.name in results.metrics:
        silent = {name: _silent(results, predictions, name) for name in results.systems}
        if any(silent.values()):
            of_systems = ", ".join(f"{name}: {number:,}" for name, number in silent.items())
            notes.append(f"citations: texts that cite nothing, as their target does, count as 1 ({of_systems}).")
    return notes


def _by_system(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {number:,}" for name, number in numbers.items() if number)


def _silent(results: Results, predictions: Predictions, system: str) -> int:
    """How many texts have the best citation score for citing nothing."""
    f1 = next(number for number, column in enumerate(results.columns) if column.name == Citations.columns[0].name)
    best = zip(predictions.systems[system], results.items.scores[system][:, f1] == 1, strict=True)
    found = [cited_in(prediction.text, prediction.task.sources) for prediction, is_best in best if is_best]
    by_title = results.settings[Citations.name]["works"] == "named"
    return sum(not cited.works(by_title=by_title) for cited in found)
