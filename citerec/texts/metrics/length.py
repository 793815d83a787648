"""Length of texts, and compression of their sources."""

import math

from citerec.texts.anchors import without_anchors
from citerec.texts.metrics.base import Column, MetricPart, RowMetric
from citerec.texts.sentences import sentences_by, sentences_of, words_of
from citerec.texts.tasks import Prediction


class Length(RowMetric):
    """Words and sentences of texts, and compression: words of the sources ÷ words of the text (SciTLDR, table 1)."""

    name = "length"
    columns = tuple(Column(name, share=False, better=None) for name in ("words", "sentences", "compression"))

    def __init__(self) -> None:
        self.settings = {"words": "letters and digits; hyphens inside; no citations", "sentences": sentences_by()}

    def row(self, prediction: Prediction) -> list[float]:
        """Counts; the compression is NaN if the text or the sources have no words."""
        words = len(words_of(without_anchors(prediction.text)))
        given = sum(len(words_of(source.text)) for source in prediction.task.sources)
        return [words, len(sentences_of(prediction.text)), given / words if words and given else math.nan]


LENGTH = MetricPart("length", lambda _: Length())
