"""Whether stated probabilities are right: calibration error, Brier score, and the bins of a reliability diagram."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import digests_of
from citerec.records import EVENTS, FIRST, Confidence, Context

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers whose stated probability lies in a tenth of the range that begins at `low`.

    Attributes:
        low: From 0 to 0.9.
        n: How many answers, at least one.
        stated: Their mean probability.
        right: The share of them that is right.
    """

    low: float
    n: int
    stated: float
    right: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """How well stated probabilities fit what was right.

    Attributes:
        n: Number of answers.
        stated: Mean probability.
        right: Share of answers that are right.
        ece: Expected calibration error (Naeini et al., AAAI 2015), ten bins of equal width:
            `Σ_bin n_bin / n · |right_bin − stated_bin|`.
        brier: Mean squared difference between probability and outcome (Brier, 1950).
        bins: Those of the ten that have answers.
    """

    n: int
    stated: float
    right: float
    ece: float
    brier: float
    bins: tuple[Bin, ...]


def reliability(stated: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> Reliability:
    """The reliability of at least one probability, (answers,), given which answers are right, (answers,)."""
    of_bin = np.minimum((stated * BINS).astype(int), BINS - 1)
    sizes = np.bincount(of_bin, minlength=BINS)
    sums = [np.bincount(of_bin, values, BINS) for values in (stated, right)]
    return Reliability(
        n=len(stated),
        stated=float(stated.mean()),
        right=float(right.mean()),
        ece=float(np.abs(sums[0] - sums[1]).sum() / len(stated)),
        brier=float(np.square(stated - right).mean()),
        bins=tuple(
            Bin(number / BINS, int(n), float(sums[0][number] / n), float(sums[1][number] / n))
            for number, n in enumerate(sizes)
            if n
        ),
    )


def outcomes_stated(ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Which of `EVENTS` came true, (contexts, events), by the ranks of the cited papers, (contexts, papers)."""
    within = [((ranks >= 1) & (ranks <= last)).any(axis=1) for last in (1, FIRST)]
    return np.stack(within, axis=1)


def reliabilities(
    stated: Sequence[Confidence | None], ranks: npt.NDArray[np.int32], counted: npt.NDArray[np.bool_], k: int
) -> dict[str, Reliability]:
    """The reliability of a system by event; no event that k hits cannot show, and none if nothing was stated.

    Args:
        stated: The confidence in each answer.
        ranks: The ranks of the cited papers, (contexts, papers).
        counted: Which contexts count, (contexts,).
        k: How many hits were looked at.
    """
    rows = [row for row, one in enumerate(stated) if one is not None and counted[row]]
    if not rows:
        return {}
    probabilities = np.array([astuple(one) for row in rows if (one := stated[row]) is not None])
    right = outcomes_stated(ranks[rows])
    return {
        event: reliability(probabilities[:, column], right[:, column])
        for column, event in enumerate(EVENTS)
        if event == "first" or k >= FIRST
    }


def fitted_on(contexts: Sequence[Context], digests: frozenset[str]) -> npt.NDArray[np.bool_]:
    """Which contexts a calibration was fitted on, by sentence or citing paper, (contexts,)."""
    return np.array([not digests.isdisjoint(digests_of(context)) for context in contexts], bool)
