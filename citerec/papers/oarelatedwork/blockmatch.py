"""BlockMatch: long texts compared block by block (Docekal et al. 2024, section 4.1)."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from citerec.files.progress import Progress
from citerec.write.anchors import with_bare_spans
from citerec.write.metrics.base import Column, Floats, MetricOptions, MetricPart, References, TextMetric, of_texts
from citerec.write.metrics.rouge import KINDS, RougePairs, Score
from citerec.write.tasks import Prediction


class PairScore(Protocol):
    """Compares pairs of texts. Its name is part of the metric's: "rouge2", "bertscore"."""

    name: str
    settings: Mapping[str, Any]

    def pairs(self, pairs: Sequence[tuple[str, str]], on_progress: Progress) -> Floats:
        """The score of each pair of prediction and reference, pairs × 1."""


def blocks_of(text: str) -> list[str]:
    """The blocks of a text: its lines that are not blank. Each paragraph and each headline is a line."""
    return [block for line in with_bare_spans(text).splitlines() if (block := line.strip())]


def match(scores: Floats) -> Score:
    """The best assignment of blocks, by the Hungarian algorithm, of scores (reference blocks × predicted blocks).

    Let t be the highest sum of scores of pairs that use no block twice. The result is t ÷ predicted blocks,
    t ÷ reference blocks, and their harmonic mean; all 0 if either has no block.
    """
    from scipy.optimize import linear_sum_assignment

    references, predictions = scores.shape
    if not references or not predictions:
        return Score(0.0, 0.0, 0.0)
    total = float(scores[linear_sum_assignment(scores, maximize=True)].sum())
    # The harmonic mean of t/p and t/r, without dividing by a sum that may be 0.
    return Score(total / predictions, total / references, 2 * total / (references + predictions))


class BlockMatch(TextMetric):
    """F1, precision and recall of matched blocks, by a score of two blocks; F1 leads `over_references`."""

    def __init__(self, score: PairScore, *, references: References = "best") -> None:
        self._score = score
        self._references: References = references
        self.name = f"blockmatch-{score.name}"
        self.columns = tuple(Column(f"blockmatch_{score.name}{end}") for end in ("", "_precision", "_recall"))
        compares = {"name": score.name, **score.settings}
        self.settings = {"blocks": "lines", "references": references, "score": compares}

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """F1, precision, recall, with the same highest value as the score itself; NaN without a target."""
        blocks = [
            (blocks_of(target), blocks_of(prediction.text))
            for prediction in texts
            for target in prediction.task.targets
        ]
        pairs = [(block, reference) for wanted, predicted in blocks for reference in wanted for block in predicted]
        ends = np.cumsum([len(wanted) * len(predicted) for wanted, predicted in blocks], dtype=int)
        parts = np.split(self._score.pairs(pairs, on_progress), ends)[:-1]
        scores = [match(part.reshape(*map(len, both))) for part, both in zip(parts, blocks, strict=True)]
        rows = [(score.f1, score.precision, score.recall) for score in scores]
        targets = [len(one.task.targets) for one in texts]
        return of_texts(np.array(rows, np.float64).reshape(-1, len(self.columns)), targets, self._references)


def _open(kind: str, options: MetricOptions) -> BlockMatch:
    if kind == "bertscore":
        return BlockMatch(options.metric(kind), references=options.references)
    return BlockMatch(RougePairs(kind, options), references=options.references)


BLOCKMATCH_ROUGE1, BLOCKMATCH_ROUGE2, BLOCKMATCH_ROUGEL, BLOCKMATCH_BERTSCORE = (
    MetricPart(f"blockmatch-{kind}", functools.partial(_open, kind)) for kind in (*KINDS, "bertscore")
)
