"""Self-reference: texts that speak of the paper they stand in, not of those they cite."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from citerec.groundwork.progress import Progress
from citerec.texts.metrics.base import TEXT_METRICS, Column, Floats, MetricPart
from citerec.texts.tasks import Prediction

KEYWORDS = ("our work", "in this paper", "we present", "we introduce")
"""What CiteBench looks for (Funkquist et al. 2023, section 5.4)."""

_KEYWORD = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE)


def refers_to_itself(text: str) -> bool:
    """Whether one of the keywords stands in a text, in capitals or small letters."""
    return _KEYWORD.search(text) is not None


class SelfReference:
    """The share of texts that refer to themselves. Targets do too: 5 % of CiteBench's (appendix A.6)."""

    name = "self-reference"
    columns = (Column("self_reference", better=None),)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The keywords."""
        return {"keywords": list(KEYWORDS)}

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """1 or 0."""
        on_progress("self-reference", len(texts), len(texts))
        return np.array([[refers_to_itself(prediction.text)] for prediction in texts], np.float64).reshape(-1, 1)


TEXT_METRICS.register(MetricPart("self-reference", lambda _: SelfReference(), by_default=True, order=80))
