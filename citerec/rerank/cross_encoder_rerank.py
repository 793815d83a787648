"""Candidates ranked anew by a cross-encoder."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.contexts.query import Query
from citerec.records import Paper
from citerec.rerank.cross_encoder import CrossEncoder
from citerec.rerank.cross_encoder_text import pair_texts
from citerec.rerank.reranker import Asked
from citerec.retrieve.protocol import Candidate
from citerec.settings import CrossEncoder as CrossEncoderSettings


@dataclass(frozen=True, slots=True)
class Ranked:
    """What is ranked anew for one context.

    Attributes:
        query: The context.
        citing: The citing paper, where it is known.
        candidates: Best first, found under the leak rules.
    """

    query: Query
    citing: Paper | None
    candidates: Sequence[Candidate]


class CrossEncoderReranker:
    """Reads the first candidates anew. Safe to call from several threads.

    Args:
        path: A trained cross-encoder.
        settings: How it is used.

    Raises:
        ModelError: It cannot be opened.
    """

    def __init__(self, path: str | Path, settings: CrossEncoderSettings | None = None) -> None:
        self.settings = settings or CrossEncoderSettings()
        self.model = CrossEncoder.open(path, backend=self.settings.backend)
        weight = self.settings.weight
        self.weight = self.model.manifest.weight if weight is None else weight
        self.depth = self.settings.depth
        self.reads_citances = True

    def rerank(
        self,
        asked: Asked,
        candidates: Sequence[Candidate],
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
    ) -> list[Candidate]:
        """Candidates in their new order, with new scores; those beyond `depth` stay behind, in theirs.

        Args:
            asked: The context, its query, and the citing paper where it is known.
            candidates: Best first.
            papers: The records of the first `depth` candidates.
            citances: Their citing sentences that the search found under the leak rules, where it found some.
        """
        return self.rerank_many([Ranked(asked.query, asked.citing, candidates)], papers, [citances])[0]

    def rerank_many(
        self, asked: Sequence[Ranked], papers: Mapping[str, Paper], citances: Sequence[Mapping[str, str]]
    ) -> list[list[Candidate]]:
        """The same for several contexts at once, which is quicker; citances by context."""
        heads = [replace(one, candidates=one.candidates[: self.settings.depth]) for one in asked]
        return [
            interpolated(one.candidates, scores, self.weight)
            for one, scores in zip(asked, read(self.model, heads, papers, citances), strict=True)
        ]


def read(
    model: CrossEncoder,
    asked: Sequence[Ranked],
    papers: Mapping[str, Paper],
    citances: Sequence[Mapping[str, str]],
) -> list[npt.NDArray[np.float32]]:
    """The cross-encoder's scores of all candidates, context by context."""
    pairs = [
        pair_texts(
            one.query,
            one.citing,
            papers.get(candidate.paper_id) or Paper(candidate.paper_id),
            written.get(candidate.paper_id),
            model.manifest.text,
        )
        for one, written in zip(asked, citances, strict=True)
        for candidate in one.candidates
    ]
    ends = list(itertools.accumulate(len(one.candidates) for one in asked))
    return np.split(model.scores(pairs), ends[:-1]) if asked else []


def interpolated(candidates: Sequence[Candidate], scores: npt.NDArray[np.float32], weight: float) -> list[Candidate]:
    """Candidates by their scores and the cross-encoder's, both standardised over those that it read.

    Args:
        candidates: Best first.
        scores: Of the first candidates, as many as were read.
        weight: Of these scores against 1 for the candidates' own.

    Returns:
        All candidates. Ties go by paper id; those that were not read stand behind the others, in their order.
    """
    read = candidates[: len(scores)]
    if not read:
        return list(candidates)
    sums = _standardised([candidate.score for candidate in read]) + weight * _standardised(scores)
    new = [replace(candidate, score=float(total)) for candidate, total in zip(read, sums, strict=True)]
    new.sort(key=lambda candidate: (-candidate.score, candidate.paper_id.encode()))
    lowest = new[-1].score
    # Their own scores are of another scale: only their order is kept.
    rest = [replace(candidate, score=lowest - place) for place, candidate in enumerate(candidates[len(read) :], 1)]
    return new + rest


def _standardised(scores: Sequence[float] | npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Scores with mean 0 and deviation 1; all 0 where they are equal."""
    values = np.asarray(scores, np.float64)
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-12 else np.zeros_like(values)
