"""How well sentences were labelled: precision, recall and F1 of each label, and the mean F1."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelScores:
    """Precision, recall and F1 of a label, 0 if not defined, and the number `n` of sentences that have it."""

    precision: float
    recall: float
    f1: float
    n: int


@dataclass(frozen=True, slots=True)
class TagScores:
    """Scores of predicted labels.

    Attributes:
        macro_f1: Mean F1 of the labels that any sentence has or was given; each label counts the same.
        accuracy: Share of the sentences whose label is right.
        labels: The scores of each such label, in alphabetical order.
    """

    macro_f1: float
    accuracy: float
    labels: dict[str, LabelScores]

    def as_json(self) -> dict[str, Any]:
        """As in a manifest; shares with four digits."""
        return {
            "macro_f1": round(self.macro_f1, 4),
            "accuracy": round(self.accuracy, 4),
            "labels": {
                label: {name: round(value, 4) for name, value in asdict(scores).items()}
                for label, scores in self.labels.items()
            },
        }


def score_labels(gold: Sequence[str], given: Sequence[str]) -> TagScores:
    """Scores given labels against gold labels, as scikit-learn's macro `f1_score` with `zero_division=0`."""
    have, got = Counter(gold), Counter(given)
    right = Counter(label for label, found in zip(gold, given, strict=True) if label == found)
    labels = {
        label: LabelScores(
            precision=right[label] / got[label] if got[label] else 0.0,
            recall=right[label] / have[label] if have[label] else 0.0,
            f1=2 * right[label] / (have[label] + got[label]),
            n=have[label],
        )
        for label in sorted(have | got)
    }
    return TagScores(
        macro_f1=sum(scores.f1 for scores in labels.values()) / len(labels),
        accuracy=right.total() / len(gold),
        labels=labels,
    )
