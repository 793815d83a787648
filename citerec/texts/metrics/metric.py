"""What every metric of texts takes and gives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.texts.tasks import Written

Floats = npt.NDArray[np.float64]
Progress = Callable[[str, int, int], None]
"""Told of what is done, how much of it, of how much."""


class TextMetric(Protocol):
    """Scores texts one by one; means over them are what is reported.

    Attributes:
        columns: Names of the values of a text, as tables show them: ("rouge1", "rouge2", "rougeL").
        settings: All that the values depend on: they stand beside every score.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values of a text."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the values depend on, as JSON takes it."""

    def scores(self, texts: Sequence[Written], progress: Progress) -> Floats:
        """Scores, texts × columns; NaN where one is not defined, such as without a target.

        Raises:
            ModelError: The model that the metric needs cannot be opened.
        """
