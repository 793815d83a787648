"""Reranking by a cross-encoder."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
import orjson
from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.index.candidates import Candidate, Candidates
from citerec.records import Paper
from citerec.rerank.base import MANIFEST, Reranker, trained_folder
from citerec.rerank.cross_encoder import CrossEncoder, Scores
from citerec.rerank.cross_encoder_text import pair_of
from citerec.rerank.interpolate import interpolated
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


class CrossEncoderReranker(Reranker):
    """Reranks the first candidates by a cross-encoder. Safe to call from several threads.

    Raises:
        ModelError: The cross-encoder cannot be opened.
    """

    name = "cross-encoder"
    Settings = CrossEncoderSettings
    is_trained = True

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
        candidates: Candidates,
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: int = 0,
    ) -> Candidates:
        """Candidates in their new order; new scores combine the cross-encoder's and the previous ones."""
        (scores,) = read(self.model, [topic], [candidates[: self.depth]], papers, [citances])
        return interpolated(candidates, scores, self.weight, self.name, explain=explain)


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
        pair_of(
            topic,
            papers.get(candidate.paper_id) or Paper(candidate.paper_id),
            written.get(candidate.paper_id),
            model.manifest.text,
            rank,
        )
        for topic, found, written in zip(topics, candidates, citances, strict=True)
        for rank, candidate in enumerate(found, 1)
    ]
    ends = list(itertools.accumulate(map(len, candidates)))
    return np.split(model.scores(pairs), ends[:-1])
