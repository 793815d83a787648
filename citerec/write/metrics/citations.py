"""Citations: whether a text cites the papers that the author cited (Docekal et al. 2024, section 4.2)."""

from collections.abc import Sequence

import numpy as np

from citerec.write.anchors import cited_in
from citerec.write.metrics.base import CitedWorks, Column, Floats, MetricOptions, MetricPart, RowMetric, over_references
from citerec.write.metrics.rouge import Score
from citerec.write.tasks import Prediction, Source


def citation_score(text: str, target: str, sources: Sequence[Source], works: CitedWorks = "sources") -> Score:
    """Precision, recall and F1 over the sets of cited papers.

    All are 1 if both sets are empty, and 0 if one is.

    Args:
        text: The text.
        target: What the author wrote.
        sources: What the text was written from.
        works: What counts. With `sources`, a citation of no source is wrong in the text, and ignored in the target,
            because no writer could make it; works that only a title names are ignored in both. With `named`, as in
            OARelatedWork, all cited works count on both sides, by identifier or else by title.
    """
    by_title = works == "named"
    in_text, of_target = cited_in(text, sources), cited_in(target, sources)
    ours, theirs = in_text.works(by_title=by_title), of_target.works(by_title=True) if by_title else of_target.sources
    if not ours and not theirs:
        return Score(1.0, 1.0, 1.0)
    right, both = len(ours & theirs), len(ours) + len(theirs)
    return Score(right / max(len(ours), 1), right / max(len(theirs), 1), 2 * right / both)


class Citations(RowMetric):
    """F1, precision and recall of the papers that texts cite; F1 leads `over_references`."""

    name = "citations"
    columns = tuple(map(Column, ("citation_f1", "citation_precision", "citation_recall")))

    def __init__(self, options: MetricOptions) -> None:
        self._options = options
        self.settings = {"works": options.cited_works, "references": options.references}

    def row(self, prediction: Prediction) -> Floats:
        """Scores from 0 to 1; NaN without a target."""
        task = prediction.task
        works = self._options.cited_works
        scores = (citation_score(prediction.text, target, task.sources, works) for target in task.targets)
        values = np.array([(score.f1, score.precision, score.recall) for score in scores], np.float64)
        return over_references(values.reshape(-1, len(self.columns)), self._options.references)


CITATIONS = MetricPart("citations", Citations)
