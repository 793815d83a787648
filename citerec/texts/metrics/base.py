"""What every metric of texts takes and gives."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError
from citerec.groundwork.progress import Progress
from citerec.texts.tasks import Written

Floats = npt.NDArray[np.float64]
References = Literal["best", "best-each", "mean", "first"]
"""What counts where a task has several targets: `over_references`."""


class TextMetric(Protocol):
    """Scores texts one by one; means over them are what is reported.

    Attributes:
        name: What it is asked for by, and what its settings stand under: "rouge", "blockmatch-rouge2".
        columns: Names of the values of a text, as tables show them: ("rouge1", "rouge2", "rougeL").
        settings: All that the values depend on: they stand beside every score.
    """

    @property
    def name(self) -> str:
        """What it is asked for by."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values of a text."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the values depend on, as JSON takes it."""

    def scores(self, texts: Sequence[Written], on_progress: Progress) -> Floats:
        """Scores, texts × columns; NaN where one is not defined, such as without a target.

        Raises:
            ModelError: The model that the metric needs cannot be opened.
        """


class CorpusMetric(Protocol):
    """Scores all texts of a system on a data set together: there is no value of one text.

    Attributes:
        name: What it is asked for by, and what its settings stand under: "intent".
        settings: All that the values depend on: they stand beside every score.
    """

    @property
    def name(self) -> str:
        """What it is asked for by."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the values depend on, as JSON takes it."""

    def summary(self, texts: Sequence[Written], on_progress: Progress) -> Mapping[str, Any]:
        """What is found, as JSON takes it: no NaN, no infinite number.

        Raises:
            ModelError: The model that the metric needs cannot be opened.
        """


def over_references(values: Floats, references: References, lead: int = 0) -> Floats:
    """The values of a text, one for each column, out of its values against each target.

    `best` is the way of SciTLDR's authors (`evaluate.py` of their repository): all values come from one target, that
    with the highest leading value, ROUGE-1 F1 for ROUGE. `best-each`, rouge-score's own way, takes each column's
    highest value, whichever target gave it; it is never lower.

    Args:
        values: Targets × columns.
        references: Which way.
        lead: The leading column.

    Returns:
        Columns; all NaN where there is no target.

    Raises:
        InputError: There is no such way.
    """
    if not len(values):
        return np.full(values.shape[1], np.nan)
    if references == "best":
        row = values[int(np.argmax(values[:, lead]))]
    elif references == "best-each":
        row = values.max(axis=0)
    elif references == "mean":
        row = values.mean(axis=0)
    elif references == "first":
        row = values[0]
    else:
        known = ", ".join(get_args(References))
        raise InputError(f"there is no way over references {references!r}", f"Choose: {known}.")
    return np.asarray(row, np.float64)
