"""Novelty: how much of a text is in none of its sources (See et al. 2017, section 6.2)."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from citerec.groundwork.progress import Progress
from citerec.texts.anchors import without_anchors
from citerec.texts.metrics.base import TEXT_METRICS, Column, Floats, MetricPart
from citerec.texts.sentences import terms_of
from citerec.texts.tasks import Prediction

NGRAMS = (1, 2, 3, 4)

_Gram = tuple[str, ...]


def novelty(text: str, sources: Sequence[str]) -> list[float]:
    """For each n of `NGRAMS` the share of the n-grams of a text, each as often as it comes, that stand in no source.

    Args:
        text: The text; its citations do not count.
        sources: Texts that it could be written from.

    Returns:
        In the order of `NGRAMS`; NaN where the text is shorter than n words.
    """
    terms, known = terms_of(without_anchors(text)), [terms_of(source) for source in sources]
    return [_new_share(_ngrams(terms, n), {gram for one in known for gram in _ngrams(one, n)}) for n in NGRAMS]


class Novelty:
    """Novelty of texts against the texts and titles of their sources."""

    name = "novelty"
    columns = tuple(Column(f"novelty{n}", better=None) for n in NGRAMS)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The n-grams, and of what."""
        return {"ngrams": list(NGRAMS), "of": "words in small letters, parted at hyphens; no citations"}

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Shares from 0 to 1; NaN where a text is shorter than n words."""
        rows = []
        for done, prediction in enumerate(texts, 1):
            sources = [text for source in prediction.task.sources for text in (source.title, source.text)]
            rows.append(novelty(prediction.text, sources))
            on_progress("novelty", done, len(texts))
        return np.array(rows, np.float64).reshape(-1, len(self.columns))


def _new_share(grams: Sequence[_Gram], known: Set[_Gram]) -> float:
    return sum(gram not in known for gram in grams) / len(grams) if grams else float("nan")


def _ngrams(terms: Sequence[str], n: int) -> list[_Gram]:
    return list(zip(*(terms[start:] for start in range(n)), strict=False))


TEXT_METRICS.register(MetricPart("novelty", lambda _: Novelty(), by_default=True, order=60))
