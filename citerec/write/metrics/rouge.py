"""ROUGE (Lin 2004) as the package rouge-score computes it."""

import functools
import importlib.metadata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from citerec.files.parallel import available_processors, in_parts, outcomes_of
from citerec.files.progress import Progress
from citerec.write.anchors import with_bare_spans
from citerec.write.metrics.base import Column, Floats, MetricOptions, MetricPart, PairMetric, References
from citerec.write.tasks import sentences_by, sentences_of

KINDS = ("rouge1", "rouge2", "rougeL")

# A process takes a second or more to start, so it needs enough work. Parts are small, so that all end together.
_WORTH_A_PROCESS, _PART = 500, 50

_Pair = tuple[str, str]
"""A prediction, and a reference."""


class Score(NamedTuple):
    """Precision, recall and F1 of a prediction against a reference, each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def rouge(prediction: str, reference: str, *, stemming: bool = False, kinds: Sequence[str] = KINDS) -> dict[str, Score]:
    """The scores of a text against another by kind, exactly as in rouge-score.

    Kinds are `rouge1` to `rouge9`, `rougeL`, and `rougeLsum`, for which each line of a text is a sentence.
    """
    scores = _scorer(tuple(kinds), stemming).score(reference, prediction)
    return {kind: Score(*map(float, score)) for kind, score in scores.items()}


class Rouge(PairMetric):
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of texts against their targets; ROUGE-1 leads `over_references`."""

    name = "rouge"

    def __init__(self, options: MetricOptions) -> None:
        by_sentence = options.rouge_l == "summary"
        kinds = ("rouge1", "rouge2", "rougeLsum") if by_sentence else KINDS
        self.columns = tuple(map(Column, kinds))
        self.references: References = options.references
        self.settings: Mapping[str, Any] = {
            "package": f"rouge-score {importlib.metadata.version('rouge-score')}",
            "stemming": options.stemming,
            "rouge_l": options.rouge_l,
            **({"sentences": sentences_by()} if by_sentence else {}),
            "references": options.references,
            "measure": "f1",
        }
        self._f1s = functools.partial(_f1s, kinds, options.stemming)
        self._workers = options.workers

    def pairs(self, pairs: Sequence[_Pair], on_progress: Progress) -> Floats:
        """F1 of each pair of prediction and reference, pairs × columns, in as many processes as are worth it."""
        processes = max(1, min(self._workers or available_processors(), len(pairs) // _WORTH_A_PROCESS))
        values = np.empty((len(pairs), len(self.columns)))
        on_progress("ROUGE", 0, len(pairs))
        for done, (number, part) in enumerate(outcomes_of(self._f1s, list(in_parts(pairs, _PART)), processes), 1):
            values[number * _PART : (number + 1) * _PART] = part
            on_progress("ROUGE", min(done * _PART, len(pairs)), len(pairs))
        return values


class RougePairs(Rouge):
    """One kind of ROUGE for pairs of texts, as BlockMatch compares them."""

    def __init__(self, kind: str, options: MetricOptions) -> None:
        super().__init__(options)
        self.name, self.columns = kind, (Column(kind),)
        self.settings = {name: self.settings[name] for name in ("package", "stemming", "measure")}
        self._f1s = functools.partial(_f1s, (kind,), options.stemming)


class GreedyRouge:
    """ROUGE-n of a text that grows sentence by sentence, for a greedy choice of sentences.

    Its F1 is exactly that of `rouge(" ".join(chosen), reference)`, but it counts only added n-grams.

    Args:
        reference: The text to compare with.
        sentences: The sentences to choose from.
        n: Length of the n-grams.
        stemming: Whether words are stemmed.
    """

    def __init__(self, reference: str, sentences: Sequence[str], *, n: int = 2, stemming: bool = False) -> None:
        from rouge_score.tokenizers import DefaultTokenizer

        tokenize = DefaultTokenizer(stemming).tokenize
        self._n = n
        self._tokens = [tokenize(sentence) for sentence in sentences]
        self._missing = _counts_of_ngrams(tokenize(reference), n)  # n-grams of the reference that the text lacks, with counts
        self._reference = self._missing.total()
        self._chosen: list[str] = []

    def f1_with(self, number: int) -> float:
        """F1 if the sentence of this number is added."""
        from rouge_score.scoring import fmeasure

        shared = self._reference - self._missing.total() + self._added(number).total()
        length = len(self._chosen) + len(self._tokens[number])
        return float(fmeasure(shared / max(length - self._n + 1, 1), shared / max(self._reference, 1)))

    def add(self, number: int) -> None:
        """Adds the sentence of this number."""
        self._missing -= self._added(number)
        self._chosen += self._tokens[number]

    def _added(self, number: int) -> "Counter[tuple[str, ...]]":
        """The missing n-grams that a sentence would add, and how many of each."""
        seam = self._chosen[max(0, len(self._chosen) - self._n + 1) :]
        return _counts_of_ngrams([*seam, *self._tokens[number]], self._n) & self._missing


def _counts_of_ngrams(tokens: Sequence[str], n: int) -> "Counter[tuple[str, ...]]":
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


@functools.cache
def _scorer(kinds: tuple[str, ...], stemming: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(kinds), use_stemmer=stemming)


def _f1s(kinds: tuple[str, ...], stemming: bool, pairs: Sequence[_Pair]) -> Floats:
    """F1 of predictions against references, pairs × kinds."""
    rows = []
    for pair in pairs:
        prediction, reference = map(_lines if "rougeLsum" in kinds else with_bare_spans, pair)
        scores = rouge(prediction, reference, stemming=stemming, kinds=kinds)
        rows.append([scores[kind].f1 for kind in kinds])
    return np.array(rows, np.float64)


@functools.lru_cache(maxsize=8)  # the pairs of one text follow each other
def _lines(text: str) -> str:
    return "\n".join(sentences_of(with_bare_spans(text)))


ROUGE = MetricPart("rouge", Rouge)
