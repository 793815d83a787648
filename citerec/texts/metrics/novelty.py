"""Novelty: how much of a text is in none of its sources (See et al. 2017, section 6.2)."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from citerec.texts.anchors import without_anchors
from citerec.texts.metrics.base import Column, MetricPart, RowMetric
from citerec.texts.sentences import terms_of
from citerec.texts.tasks import Prediction

NGRAMS = (1, 2, 3, 4)

_Gram = tuple[str, ...]


def novelty(text: str, sources: Sequence[str]) -> list[float]:
    """For each n of `NGRAMS` the share of the n-grams of a text, each as often as it occurs, that are in no source.

    Citations do not count; NaN if the text is shorter than n words.
    """
    terms, known = terms_of(without_anchors(text)), [terms_of(source) for source in sources]
    return [_new_share(_ngrams(terms, n), {gram for one in known for gram in _ngrams(one, n)}) for n in NGRAMS]


class Novelty(RowMetric):
    """Novelty of texts against the texts and titles of their sources."""

    name = "novelty"
    columns = tuple(Column(f"novelty{n}", better=None) for n in NGRAMS)
    settings: Mapping[str, Any] = {
        "ngrams": list(NGRAMS),
        "of": "words in small letters, parted at hyphens; no citations",
    }

    def row(self, prediction: Prediction) -> list[float]:
        """Shares from 0 to 1; see `novelty`."""
        return novelty(prediction.text, [text for one in prediction.task.sources for text in (one.title, one.text)])


def _new_share(grams: Sequence[_Gram], known: Set[_Gram]) -> float:
    return sum(gram not in known for gram in grams) / len(grams) if grams else float("nan")


def _ngrams(terms: Sequence[str], n: int) -> list[_Gram]:
    return list(zip(*(terms[start:] for start in range(n)), strict=False))


NOVELTY = MetricPart("novelty", lambda _: Novelty())
