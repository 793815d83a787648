"""Metrics that describe texts and need no target: length, novelty, grounding, self-reference.

Grounding proves nothing: a word that no source has may be right, and a found one wrong. Low values show which texts to
check.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from citerec.files.text import STOP_WORDS
from citerec.write.anchors import cited_in, without_anchors
from citerec.write.metrics.base import CitedWorks, Column, Floats, MetricOptions, MetricPart, RowMetric, over_references
from citerec.write.metrics.rouge import Score
from citerec.write.tasks import (
    Prediction,
    Source,
    content_terms,
    said_by,
    sentences_by,
    sentences_of,
    terms_of,
    words_of,
)

NGRAMS = (1, 2, 3, 4)
KEYWORDS = ("our work", "in this paper", "we present", "we introduce")
"""The phrases that CiteBench looks for (Funkquist et al. 2023, section 5.4)."""

_KEYWORD = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE)
# Not inside a name: the 2 of "GPT-2" is part of a word, and counts with it.
_NUMBER = re.compile(r"(?<![^\W\d_])(?<![^\W\d_]-)(?<![\d.,])\d+(?:[.,]\d+)*")
_COMMA = re.compile(r",(?=\d{3}(?!\d))")


class Length(RowMetric):
    """Words and sentences of texts, and compression: words of the sources ÷ words of the text (SciTLDR, table 1)."""

    name = "length"
    columns = tuple(Column(name, share=False, better=None) for name in ("words", "sentences", "compression"))

    def __init__(self) -> None:
        self.settings = {"words": "letters and digits; hyphens inside; no citations", "sentences": sentences_by()}

    def row(self, prediction: Prediction) -> list[float]:
        """Counts; the compression is NaN if the text or the sources have no words."""
        words = len(words_of(without_anchors(prediction.text)))
        in_sources = sum(len(words_of(source.text)) for source in prediction.task.sources)
        return [words, len(sentences_of(prediction.text)), in_sources / words if words and in_sources else math.nan]


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


def novelty(text: str, sources: Sequence[str]) -> list[float]:
    """For each n of `NGRAMS` the share of the n-grams of a text, each as often as it occurs, that are in no source.

    Citations do not count; NaN if the text is shorter than n words.
    """
    terms, of_sources = terms_of(without_anchors(text)), list(map(terms_of, sources))
    shares = []
    for n in NGRAMS:
        in_sources = {gram for one in of_sources for gram in _ngrams(one, n)}
        shares.append(_share([gram not in in_sources for gram in _ngrams(terms, n)]))
    return shares


class Grounding(RowMetric):
    """The share of content words, and of numbers, that are in the text, title or authors of a source."""

    name = "grounding"
    columns = tuple(Column(name, better=None) for name in ("grounding_words", "grounding_numbers"))
    settings: Mapping[str, Any] = {"stop_words": f"citerec's {len(STOP_WORDS)} function words"}

    def row(self, prediction: Prediction) -> list[float]:
        """Shares from 0 to 1, each word and number as often as it occurs; NaN if there are none."""
        text = without_anchors(prediction.text)
        sources = "\n".join(map(said_by, prediction.task.sources))
        terms, values = set(terms_of(sources)), set(numbers(sources))
        return [
            _share([term in terms for term in content_terms(text)]),
            _share([number in values for number in numbers(text)]),
        ]


def numbers(text: str) -> list[Decimal | str]:
    """The numbers of a text by their value: 1,000 is 1000, and 0.50 is 0.5; as printed if they have none: 1.2.3."""
    return [
        Decimal(plain).normalize() if re.fullmatch(r"[0-9]+(\.[0-9]+)?", plain := _COMMA.sub("", printed)) else printed
        for printed in _NUMBER.findall(text)
    ]


class SelfReference(RowMetric):
    """The share of texts that refer to themselves. Targets do too: 5 % of CiteBench's (appendix A.6)."""

    name = "self-reference"
    columns = (Column("self_reference", better=None),)
    settings: Mapping[str, Any] = {"keywords": list(KEYWORDS)}

    def row(self, prediction: Prediction) -> list[float]:
        """1 or 0."""
        return [float(refers_to_itself(prediction.text))]


def refers_to_itself(text: str) -> bool:
    """Whether one of the keywords is in a text, in upper or lower case."""
    return _KEYWORD.search(text) is not None


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else math.nan


def _ngrams(terms: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(terms[start:] for start in range(n)), strict=False))


LENGTH = MetricPart("length", lambda _: Length())
NOVELTY = MetricPart("novelty", lambda _: Novelty())
GROUNDING = MetricPart("grounding", lambda _: Grounding())
SELF_REFERENCE = MetricPart("self-reference", lambda _: SelfReference())


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
