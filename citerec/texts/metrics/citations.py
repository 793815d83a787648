"""Citations: whether a text cites the papers that the author cited (Docekal et al. 2024, section 4.2)."""

from collections.abc import Sequence

import numpy as np

from citerec.texts.anchors import cited_in
from citerec.texts.metrics.base import TEXT_METRICS, Column, Floats, MetricPart, References, RowMetric, over_references
from citerec.texts.metrics.rouge import Score
from citerec.texts.tasks import Prediction, Source


def citation_score(text: str, target: str, sources: Sequence[Source]) -> Score:
    """Precision, recall and F1 over the sets of cited papers.

    All are 1 if both sets are empty, and 0 if one is. A citation of no source is wrong in the text, and ignored in the
    target, because no writer could make it. Citations of unknown papers are ignored in both.
    """
    wanted, found = cited_in(target, sources).sources, cited_in(text, sources)
    count = len(found.sources) + len(found.outside)
    if not wanted or not count:
        both = float(not wanted and not count)
        return Score(both, both, both)
    right = len(wanted & found.sources)
    return Score(right / count, right / len(wanted), 2 * right / (count + len(wanted)))


class Citations(RowMetric):
    """F1, precision and recall of the papers that texts cite; F1 leads `over_references`."""

    name = "citations"
    columns = tuple(map(Column, ("citation_f1", "citation_precision", "citation_recall")))

    def __init__(self, *, references: References = "best") -> None:
        self._references: References = references
        self.settings = {"references": references}

    def row(self, prediction: Prediction) -> Floats:
        """Scores from 0 to 1; NaN without a target."""
        each = [citation_score(prediction.text, target, prediction.task.sources) for target in prediction.task.targets]
        values = np.array([(score.f1, score.precision, score.recall) for score in each], np.float64)
        return over_references(values.reshape(-1, len(self.columns)), self._references)


TEXT_METRICS.register(
    MetricPart("citations", lambda options: Citations(references=options.references), by_default=True, order=40)
)
