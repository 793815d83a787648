"""Texts that are labels, such as disciplines: macro-F1, weighted F1 and accuracy (Mao et al. 2022, section 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from citerec.files.progress import Progress
from citerec.write.metrics.base import CorpusMetric, MetricPart
from citerec.write.tasks import Prediction


class Labels(CorpusMetric):
    """F1 of texts as labels, over all texts together."""

    name = "labels"
    settings: Mapping[str, Any] = {
        "package": "scikit-learn, f1_score",
        "over": "labels of targets and texts; zero where one is never right",
        "texts": "without case and white space at the ends; the first target",
    }

    def summary(self, texts: Sequence[Prediction], on_progress: Progress) -> Mapping[str, Any]:
        """`values`: macro_f1, weighted_f1 and accuracy, from 0 to 1; empty if no text has a target."""
        from sklearn.metrics import accuracy_score, f1_score

        on_progress(self.name, 0, 1)
        pairs = [(_label(one.task.targets[0]), _label(one.text)) for one in texts if one.task.targets]
        if not pairs:
            return {"values": {}}
        wanted, found = map(list, zip(*pairs, strict=True))
        f1 = {kind: float(f1_score(wanted, found, average=kind, zero_division=0)) for kind in ("macro", "weighted")}
        accuracy = float(accuracy_score(wanted, found))
        return {"values": {"macro_f1": f1["macro"], "weighted_f1": f1["weighted"], "accuracy": accuracy}}


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


LABELS = MetricPart("labels", lambda _: Labels())
