"""Reranking by a cross-encoder."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.records import Paper, Reason
from citerec.rerank.base import MANIFEST, RERANKERS, Reranker, in_new_order, trained_folder
from citerec.rerank.cross_encoder import KIND, CrossEncoder, Scores
from citerec.rerank.cross_encoder_text import pair_texts
from citerec.retrieve.base import Candidate
from citerec.retrieve.fusion import strongest
from citerec.settings import PartSettings


class CrossEncoderSettings(PartSettings):
    """How the cross-encoder is used."""

    depth: int = Field(default=50, ge=1, description="how many candidates are read; the rest follow in their order")
    model: str | None = Field(default=None, description="folder of the cross-encoder; by default the one of the index")
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="weight of its score, against 1 for the previous score, both scaled; by default tuned in training",
    )
    backend: Literal["torch", "onnx-int8"] = Field(
        default="torch", description="backend that runs it: torch, or ONNX Runtime with 8-bit weights"
    )


@RERANKERS.register
class CrossEncoderReranker(Reranker):
    """Reranks the first candidates by a cross-encoder. Safe to call from several threads.

    Raises:
        ModelError: The cross-encoder cannot be opened.
    """

    name = "cross-encoder"
    Settings = CrossEncoderSettings
    trained_kind = KIND

    @classmethod
    def open(cls, index: Path, folder: Path | None, settings: CrossEncoderSettings) -> Self:
        """Opens the cross-encoder in a folder, or the one of the index."""
        return cls(trained_folder(cls, index, folder or settings.model, "reranker"), settings)

    @classmethod
    def is_default_at(cls, folder: Path) -> bool:
        """Whether training found that it helps: with a weight of 0 it does not."""
        try:
            return bool(float(orjson.loads((folder / MANIFEST).read_bytes()).get("weight", 1)))
        except OSError:
            return False
        except (ValueError, TypeError, AttributeError):
            return True  # broken: opening it raises the error

    def __init__(self, path: str | Path, settings: CrossEncoderSettings | None = None) -> None:
        settings = settings or CrossEncoderSettings()
        self.folder = Path(path)
        self.model = CrossEncoder.open(path, backend=settings.backend)
        self.weight = self.model.manifest.weight if settings.weight is None else settings.weight
        self.depth = settings.depth
        self.reads_citances = self.model.manifest.text.citances

    def rerank(
        self,
        topic: Topic,
        candidates: Sequence[Candidate],
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: bool = False,
    ) -> list[Candidate]:
        """Candidates in their new order; new scores combine the cross-encoder's and the previous ones."""
        (scores,) = read(self.model, [topic], [candidates[: self.depth]], papers, [citances])
        return interpolated(candidates, scores, self.weight, explain=explain)


def read(
    model: CrossEncoder,
    topics: Sequence[Topic],
    candidates: Sequence[Sequence[Candidate]],
    papers: Mapping[str, Paper],
    citances: Sequence[Mapping[str, str]],
) -> list[Scores]:
    """The cross-encoder's scores of the candidates of several contexts, read in batches together: an array for each.

    `papers` holds the records of all candidates; `citances`, for each context, its citing sentences by paper id.
    """
    pairs = [
        pair_texts(
            topic,
            papers.get(candidate.paper_id) or Paper(candidate.paper_id),
            written.get(candidate.paper_id),
            model.manifest.text,
        )
        for topic, found, written in zip(topics, candidates, citances, strict=True)
        for candidate in found
    ]
    ends = list(itertools.accumulate(map(len, candidates)))
    return np.split(model.scores(pairs), ends[:-1])


def interpolated(
    candidates: Sequence[Candidate],
    scores: Scores,
    weight: float,
    name: str = "cross-encoder",
    *,
    explain: bool = False,
) -> list[Candidate]:
    """Candidates by their scores and those of a model, both standardised over those that it read.

    `scores` are those of the first candidates, which were read; `weight` is their weight against 1 for the own scores;
    `name` is that of the reranker in signals and reasons. Ties are ordered by paper id. Candidates that were not read
    follow the others, in their order.
    """
    read = candidates[: len(scores)]
    if not read:
        return list(candidates)
    own, added = _standardised([candidate.score for candidate in read]), weight * _standardised(scores)
    new = (
        replace(
            candidate,
            score=before + plus,
            signals={**candidate.signals, name.replace("-", "_"): score},
            reasons=strongest([Reason("ranking before", before), Reason(name, plus)]) if explain else (),
        )
        for candidate, before, plus, score in zip(read, own.tolist(), added.tolist(), scores.tolist(), strict=True)
    )
    return in_new_order(new, candidates[len(read) :])


def _standardised(scores: Sequence[float] | Scores) -> npt.NDArray[np.float64]:
    """Scores with mean 0 and deviation 1; all 0 if they are equal."""
    values = np.asarray(scores, np.float64)
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-12 else np.zeros_like(values)
