"""Grounding: how many words and numbers of a text are found in its sources.

A word that no source has may be right, and a found one wrong: low values show which texts to check, and prove nothing.
"""

import hashlib
import re
from collections.abc import Sequence, Set
from decimal import Decimal

from citerec.texts.anchors import without_anchors
from citerec.texts.metrics.base import Column, MetricPart, RowMetric
from citerec.texts.sentences import STOP_WORDS, content_terms, said_by, terms_of
from citerec.texts.tasks import Prediction

# Not inside a name: the 2 of "GPT-2" is part of a word, and counts with it.
_NUMBER = re.compile(r"(?<![^\W\d_])(?<![^\W\d_]-)(?<![\d.,])\d+(?:[.,]\d+)*")


def numbers(text: str) -> list[Decimal | str]:
    """The numbers of a text by their value: 1,000 is 1000, and 0.50 is 0.5."""
    return [_value(found) for found in _NUMBER.findall(text)]


class Grounding(RowMetric):
    """The share of content words, and of numbers, that are in the text, title or authors of a source."""

    name = "grounding"
    columns = tuple(Column(name, better=None) for name in ("grounding_words", "grounding_numbers"))

    def __init__(self) -> None:
        digest = hashlib.sha256("\n".join(sorted(STOP_WORDS)).encode()).hexdigest()
        self.settings = {"stop_words": f"citerec's {len(STOP_WORDS)} function words, sha256 {digest[:12]}"}

    def row(self, prediction: Prediction) -> list[float]:
        """Shares from 0 to 1, each word and number as often as it occurs; NaN if there are none."""
        text = without_anchors(prediction.text)
        given = [said_by(source) for source in prediction.task.sources]
        known_words = {term for source in given for term in terms_of(source)}
        known_numbers = {number for source in given for number in numbers(source)}
        return [_share(content_terms(text), known_words), _share(numbers(text), known_numbers)]


def _share(found: Sequence[object], known: Set[object]) -> float:
    return sum(one in known for one in found) / len(found) if found else float("nan")


def _value(printed: str) -> Decimal | str:
    """The value of a number; itself if its points and commas make no number, as in 1.2.3."""
    plain = re.sub(r",(?=\d{3}(?!\d))", "", printed)
    return Decimal(plain).normalize() if re.fullmatch(r"[0-9]+(\.[0-9]+)?", plain) else printed


GROUNDING = MetricPart("grounding", lambda _: Grounding())
