"""Candidates ranked anew by a cross-encoder."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.records import Paper, Reason
from citerec.rerank.cross_encoder import CrossEncoder, Scores
from citerec.rerank.cross_encoder_text import pair_texts
from citerec.rerank.reranker import Asked, in_new_order
from citerec.retrieve.fusion import strongest
from citerec.retrieve.protocol import Candidate
from citerec.settings import CrossEncoder as CrossEncoderSettings


class CrossEncoderReranker:
    """Reads the first candidates anew. Safe to call from several threads.

    Args:
        path: A trained cross-encoder.
        settings: How it is used.

    Raises:
        ModelError: It cannot be opened.
    """

    def __init__(self, path: str | Path, settings: CrossEncoderSettings | None = None) -> None:
        settings = settings or CrossEncoderSettings()
        self.model = CrossEncoder.open(path, backend=settings.backend)
        self.weight = self.model.manifest.weight if settings.weight is None else settings.weight
        self.depth = settings.depth
        self.reads_citances = self.model.manifest.text.citances

    def rerank(
        self,
        asked: Asked,
        candidates: Sequence[Candidate],
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: bool = False,
    ) -> list[Candidate]:
        """Candidates in their new order, with new scores: what the cross-encoder and the ranking before gave each."""
        (scores,) = read(self.model, [asked], [candidates[: self.depth]], papers, [citances])
        return interpolated(candidates, scores, self.weight, explain=explain)


def read(
    model: CrossEncoder,
    asked: Sequence[Asked],
    candidates: Sequence[Sequence[Candidate]],
    papers: Mapping[str, Paper],
    citances: Sequence[Mapping[str, str]],
) -> list[Scores]:
    """The cross-encoder's scores of the candidates of several contexts: all in batches together.

    Args:
        model: What reads them.
        asked: The contexts.
        candidates: Of each context; all are read.
        papers: The records of all of them.
        citances: Citing sentences by paper id, for each context.

    Returns:
        An array of scores for each context, in the order of its candidates.
    """
    pairs = [
        pair_texts(
            one.query,
            one.citing,
            papers.get(candidate.paper_id) or Paper(candidate.paper_id),
            written.get(candidate.paper_id),
            model.manifest.text,
        )
        for one, found, written in zip(asked, candidates, citances, strict=True)
        for candidate in found
    ]
    ends = list(itertools.accumulate(map(len, candidates)))
    return np.split(model.scores(pairs), ends[:-1])


def interpolated(
    candidates: Sequence[Candidate], scores: Scores, weight: float, *, explain: bool = False
) -> list[Candidate]:
    """Candidates by their scores and the cross-encoder's, both standardised over those that it read.

    Args:
        candidates: Best first.
        scores: Of the first candidates, as many as were read.
        weight: Of these scores against 1 for the candidates' own.
        explain: Whether each is to say what both gave it.

    Returns:
        All candidates. Ties go by paper id; those that were not read stand behind the others, in their order.
    """
    read = candidates[: len(scores)]
    if not read:
        return list(candidates)
    own, added = _standardised([candidate.score for candidate in read]), weight * _standardised(scores)
    new = (
        replace(
            candidate,
            score=before + plus,
            signals={**candidate.signals, "cross_encoder": score},
            reasons=strongest([Reason("ranking before", before), Reason("cross-encoder", plus)]) if explain else (),
        )
        for candidate, before, plus, score in zip(read, own.tolist(), added.tolist(), scores.tolist(), strict=True)
    )
    return in_new_order(new, candidates[len(read) :])


def _standardised(scores: Sequence[float] | Scores) -> npt.NDArray[np.float64]:
    """Scores with mean 0 and deviation 1; all 0 where they are equal."""
    values = np.asarray(scores, np.float64)
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-12 else np.zeros_like(values)
