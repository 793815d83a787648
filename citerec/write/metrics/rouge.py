"""ROUGE (Lin 2004) as the package rouge-score computes it."""

import functools
import importlib.metadata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from citerec.files.parallel import available_processors, outcomes_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.write.anchors import with_bare_spans
from citerec.write.metrics.base import (
    Column,
    Floats,
    MetricOptions,
    MetricPart,
    References,
    RougeL,
    TextMetric,
    over_references,
)
from citerec.write.sentences import sentences_by, sentences_of
from citerec.write.tasks import Prediction

KINDS = ("rouge1", "rouge2", "rougeL")

# A process takes a second or more to start, so it needs enough work. Parts are small, so that all end together.
_WORTH_A_PROCESS, _PART = 500, 50

_Texts = tuple[str, tuple[str, ...]]
"""A prediction, and its targets."""


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
    return {kind: Score(float(score[0]), float(score[1]), float(score[2])) for kind, score in scores.items()}


class Rouge(TextMetric):
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of texts against their targets.

    Args:
        stemming: Whether words are stemmed (Porter), which CiteBench does not do: it changes ROUGE-1 and L by some
            three points.
        rouge_l: `sentence` takes a text as one sequence of words; `summary` compares sentence by sentence
            (`sentences_of`), and unites the matches (column `rougeLsum`).
        references: As for `over_references`, led by ROUGE-1.
        workers: Processes; None for as many as there are processors.
    """

    name = "rouge"

    def __init__(
        self,
        *,
        stemming: bool = False,
        rouge_l: RougeL = "sentence",
        references: References = "best",
        workers: int | None = None,
    ) -> None:
        kinds = KINDS if rouge_l == "sentence" else ("rouge1", "rouge2", "rougeLsum")
        self.columns = tuple(map(Column, kinds))
        self.settings = {
            "package": _package(),
            "stemming": stemming,
            "rouge_l": rouge_l,
            **({"sentences": sentences_by()} if rouge_l == "summary" else {}),
            "references": references,
            "measure": "f1",
        }
        self._rows = functools.partial(_rows, kinds, stemming, references)
        self._workers = workers

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores from 0 to 1, texts × columns; NaN without a target."""
        bare = [
            (with_bare_spans(prediction.text), tuple(map(with_bare_spans, prediction.task.targets)))
            for prediction in texts
        ]
        return _all_rows(self._rows, bare, self._workers, on_progress).reshape(len(bare), len(self.columns))


class RougePairs:
    """F1 of one kind of ROUGE for pairs of texts, as BlockMatch compares them; arguments as for `Rouge`."""

    def __init__(self, kind: str, *, stemming: bool = False, workers: int | None = None) -> None:
        self.name = kind
        self.settings: Mapping[str, Any] = {"package": _package(), "stemming": stemming, "measure": "f1"}
        self._rows = functools.partial(_rows, (kind,), stemming, "first")
        self._workers = workers

    def pairs(self, pairs: Sequence[tuple[str, str]], on_progress: Progress) -> Floats:
        """F1 of each pair of prediction and reference."""
        single = [(prediction, (reference,)) for prediction, reference in pairs]
        return _all_rows(self._rows, single, self._workers, on_progress).ravel()


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
        self._missing = _ngrams(tokenize(reference), n)  # n-grams of the reference that are not found yet, with counts
        self._reference = self._missing.total()
        self._inner = [
            Counter({gram: count for gram, count in _ngrams(tokens, n).items() if gram in self._missing})
            for tokens in self._tokens
        ]
        self._shared, self._length, self._tail = 0, 0, list[str]()

    def f1_with(self, number: int) -> float:
        """F1 if the sentence of this number is added."""
        from rouge_score.scoring import fmeasure

        shared = self._shared + self._added(number).total()
        length = self._length + len(self._tokens[number])
        return float(fmeasure(shared / max(length - self._n + 1, 1), shared / max(self._reference, 1)))

    def add(self, number: int) -> None:
        """Adds the sentence of this number."""
        added = self._added(number)
        self._missing -= added
        self._shared += added.total()
        self._length += len(self._tokens[number])
        tail = [*self._tail, *self._tokens[number]]
        self._tail = tail[max(0, len(tail) - self._n + 1) :]

    def _added(self, number: int) -> "Counter[tuple[str, ...]]":
        """The missing n-grams that a sentence would add, and how many of each."""
        seam = _ngrams([*self._tail, *self._tokens[number][: self._n - 1]], self._n)
        grams = self._inner[number] + seam if seam else self._inner[number]
        return Counter({gram: min(count, self._missing[gram]) for gram, count in grams.items()})


def _package() -> str:
    return f"rouge-score {importlib.metadata.version('rouge-score')}"


def _ngrams(tokens: Sequence[str], n: int) -> "Counter[tuple[str, ...]]":
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


@functools.cache
def _scorer(kinds: tuple[str, ...], stemming: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(kinds), use_stemmer=stemming)


def _all_rows(
    rows_of: Callable[[Sequence[_Texts]], Floats],
    texts: Sequence[_Texts],
    workers: int | None,
    on_progress: Progress,
) -> Floats:
    """The rows of all texts, computed in as many processes as are worth it; None for as many as processors."""
    processes = max(1, min(workers or available_processors(), len(texts) // _WORTH_A_PROCESS))
    parts = list(in_parts(texts, _PART))
    rows: dict[int, Floats] = {}
    on_progress("ROUGE", 0, len(texts))
    for number, part in outcomes_of(rows_of, parts, processes):
        rows[number] = part
        on_progress("ROUGE", sum(map(len, rows.values())), len(texts))
    return np.concatenate([rows[number] for number in range(len(parts))]) if parts else np.empty(0)


def _rows(kinds: tuple[str, ...], stemming: bool, references: References, texts: Sequence[_Texts]) -> Floats:
    """F1 of predictions against their targets, texts × kinds."""
    rows = []
    for prediction, targets in texts:
        both = [prediction, *targets]
        if "rougeLsum" in kinds:
            both = ["\n".join(sentences_of(text)) for text in both]
        scores = [rouge(both[0], target, stemming=stemming, kinds=kinds) for target in both[1:]]
        values = [[score[kind].f1 for kind in kinds] for score in scores]
        rows.append(over_references(np.array(values, np.float64).reshape(-1, len(kinds)), references))
    return np.array(rows)


def _open(options: MetricOptions) -> Rouge:
    return Rouge(
        stemming=options.stemming, rouge_l=options.rouge_l, references=options.references, workers=options.workers
    )


ROUGE = MetricPart("rouge", _open)
