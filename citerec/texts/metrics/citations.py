"""Citations: whether a text cites the papers that the author cited (Docekal et al. 2024, section 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from citerec.groundwork.progress import Progress
from citerec.texts.anchors import cited_in
from citerec.texts.metrics.base import TEXT_METRICS, Column, Floats, MetricPart, References, over_references
from citerec.texts.metrics.rouge import Score
from citerec.texts.tasks import Prediction, Source


def citation_score(text: str, target: str, sources: Sequence[Source]) -> Score:
    """Precision, recall and F1 over the sets of cited papers.

    Both sets empty: 1; one of them: 0. A citation in the text to what is no source is wrong. One in the target is left
    out, as are those whose paper nobody knows, in either: no writer could make it.

    Args:
        text: What was written.
        target: What the author wrote.
        sources: What it could be written from.
    """
    wanted, found = cited_in(target, sources).sources, cited_in(text, sources)
    count = len(found.sources) + len(found.outside)
    if not wanted or not count:
        both = float(not wanted and not count)
        return Score(both, both, both)
    right = len(wanted & found.sources)
    return Score(right / count, right / len(wanted), 2 * right / (count + len(wanted)))


class Citations:
    """F1, precision and recall of the papers that texts cite.

    Args:
        references: What counts where there are several targets, led by F1.
    """

    name = "citations"
    columns = tuple(map(Column, ("citation_f1", "citation_precision", "citation_recall")))

    def __init__(self, *, references: References = "best") -> None:
        self._references: References = references

    @property
    def settings(self) -> Mapping[str, Any]:
        """References."""
        return {"references": self._references}

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores from 0 to 1; NaN without a target."""
        rows = []
        for done, prediction in enumerate(texts, 1):
            task = prediction.task
            each = [citation_score(prediction.text, target, task.sources) for target in task.targets]
            values = np.array([(score.f1, score.precision, score.recall) for score in each], np.float64)
            rows.append(over_references(values.reshape(-1, len(self.columns)), self._references))
            on_progress("citations", done, len(texts))
        return np.array(rows, np.float64).reshape(-1, len(self.columns))


TEXT_METRICS.register(
    MetricPart("citations", lambda options: Citations(references=options.references), by_default=True, order=40)
)
