"""Self-reference: texts about the paper that contains them, not about those that they cite."""

import re
from collections.abc import Mapping
from typing import Any

from citerec.texts.metrics.base import Column, MetricPart, RowMetric
from citerec.texts.tasks import Prediction

KEYWORDS = ("our work", "in this paper", "we present", "we introduce")
"""The phrases that CiteBench looks for (Funkquist et al. 2023, section 5.4)."""

_KEYWORD = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE)


def refers_to_itself(text: str) -> bool:
    """Whether one of the keywords is in a text, in upper or lower case."""
    return _KEYWORD.search(text) is not None


class SelfReference(RowMetric):
    """The share of texts that refer to themselves. Targets do too: 5 % of CiteBench's (appendix A.6)."""

    name = "self-reference"
    columns = (Column("self_reference", better=None),)
    settings: Mapping[str, Any] = {"keywords": list(KEYWORDS)}

    def row(self, prediction: Prediction) -> list[float]:
        """1 or 0."""
        return [float(refers_to_itself(prediction.text))]


SELF_REFERENCE = MetricPart("self-reference", lambda _: SelfReference())
