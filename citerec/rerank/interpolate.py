"""How the scores of a model that reads candidates join those of the search."""

import numpy as np
import numpy.typing as npt

from citerec.index.candidates import Candidates
from citerec.records import Reason
from citerec.rerank.base import reranked
from citerec.retrieve.fusion import strongest

Scores = npt.NDArray[np.float32]


def interpolated(candidates: Candidates, scores: Scores, weight: float, name: str, *, explain: int = 0) -> Candidates:
    """Candidates by their scores and those of a model, both standardised over those that it read.

    `scores` are those of the first candidates, which were read; `weight` is their weight against 1 for the own scores;
    `name` is the model's name, for signals and reasons. Equal scores keep the order of the candidates (`reranked`).
    Candidates that were not read follow the others, in their order.
    """
    own, added = standardised(candidates.scores[: len(scores)], scores, weight)
    pairs = zip(own.tolist(), added.tolist(), strict=True) if explain else ()
    reasons = [strongest([Reason("ranking before", before), Reason(name, plus)]) for before, plus in pairs]
    return reranked(candidates, own + added, name.replace("-", "_"), scores, reasons)


def standardised(
    own: npt.ArrayLike, scores: npt.ArrayLike, weight: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """What some candidates' own scores and those of a model add to their new scores, (read,) each."""
    return _standardised(own), weight * _standardised(scores)


def _standardised(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Scores with mean 0 and deviation 1; all 0 if they are equal."""
    values = np.asarray(scores, np.float64)
    if not len(values):
        return values
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-12 else np.zeros_like(values)
