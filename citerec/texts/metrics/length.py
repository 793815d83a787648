"""Length of texts, and of what they were written from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from citerec.groundwork.progress import Progress
from citerec.texts.anchors import without_anchors
from citerec.texts.metrics.base import TEXT_METRICS, Column, Floats, MetricPart
from citerec.texts.sentences import sentences_by, sentences_of, words_of
from citerec.texts.tasks import Prediction


class Length:
    """Words and sentences of texts, and compression: words of the sources to one of the text (SciTLDR, table 1)."""

    name = "length"
    columns = tuple(Column(name, share=False, better=None) for name in ("words", "sentences", "compression"))

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a word is, and what splits sentences."""
        return {"words": "letters and digits; hyphens inside; no citations", "sentences": sentences_by()}

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Counts; NaN for the compression of a text without words, or of nothing."""
        rows = []
        for done, prediction in enumerate(texts, 1):
            words = len(words_of(without_anchors(prediction.text)))
            given = sum(len(words_of(source.text)) for source in prediction.task.sources)
            compression = given / words if words and given else np.nan
            rows.append([words, len(sentences_of(prediction.text)), compression])
            on_progress("length", done, len(texts))
        return np.array(rows, np.float64).reshape(-1, len(self.columns))


TEXT_METRICS.register(MetricPart("length", lambda _: Length(), by_default=True, order=50))
