"""Reranking by how likely a causal language model finds the reference to each candidate."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from pydantic import Field

from citerec.contexts.learnt import Learnt
from citerec.contexts.topic import Topic
from citerec.index.candidates import Candidates
from citerec.papers.diagnostic.galactica.prompt import (
    PromptSettings,
    check_named,
    learnt_by_model,
    open_model,
    prompt_of,
    reference_to,
)
from citerec.records import Paper, Reason
from citerec.rerank.base import Reranker, interpolated, reranked

if TYPE_CHECKING:
    from citerec.models.text_models import TextModel

_ROOM = 64  # tokens of a reference that are read; longer ones are cut


class TitleLikelihoodSettings(PromptSettings):
    """The model, how it is asked, and how its answer counts."""

    depth: int = Field(default=50, ge=1, description="how many candidates are ranked; the rest follow in their order")
    measure: Literal["mean", "sum"] = Field(
        default="mean", description="log-probability of a reference: the mean over its tokens, or their sum"
    )
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="weight of the likelihood, against 1 for the previous score, scaled; by default it ranks alone",
    )


class TitleLikelihoodReranker(Reranker):
    """Ranks the first candidates by the log-probability of their references. Safe to call from several threads.

    The prompt is that of the retriever `galactica`: the context up to the marker. NCN ranks by the likelihood of titles
    too (Ebesu and Fang, 2017), with a decoder of its own.

    Raises:
        ModelError: The model cannot be opened; this is raised by the first search.
    """

    name = "title-likelihood"
    Settings = TitleLikelihoodSettings

    @classmethod
    def open(cls, index: Path, _folder: Path | None, settings: TitleLikelihoodSettings) -> Self:
        """Opens the reranker; the model is opened when it is first needed."""
        return cls(check_named(index, settings, cls.name), settings)

    @classmethod
    def learnt_at(cls, index: Path, _folder: Path | None, settings: TitleLikelihoodSettings) -> Learnt:
        """What the model learnt from, if citerec knows it."""
        return learnt_by_model(index, settings)

    def __init__(self, model: str, settings: TitleLikelihoodSettings | None = None) -> None:
        self.settings = settings or TitleLikelihoodSettings()
        self.depth = self.settings.depth
        self._name = model
        self._opened: TextModel | None = None
        self._opening = threading.Lock()

    def rerank(
        self,
        topic: Topic,
        candidates: Candidates,
        papers: Mapping[str, Paper],
        _citances: Mapping[str, str],
        *,
        explain: int = 0,
    ) -> Candidates:
        """Candidates by the likelihood of their references, or with the previous scores; those without a title last."""
        head = candidates[: self.depth].paper_ids()
        scores = self._scores(topic, [papers.get(paper_id) or Paper(paper_id) for paper_id in head])
        if (weight := self.settings.weight) is not None:
            return interpolated(candidates, scores, weight, self.name, explain=explain)
        reasons = [(Reason(self.name, score),) for score in scores.tolist()] if explain else ()
        return reranked(candidates, scores, "title_likelihood", reasons=reasons)

    def _scores(self, topic: Topic, papers: Sequence[Paper]) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
        """The log-probabilities of the references, (papers,); that of a paper without a title is the lowest."""
        from citerec.papers.diagnostic.galactica.model import likelihoods

        settings, model = self.settings, self._model()
        references = [reference_to(model, paper, settings)[:_ROOM] for paper in papers]
        found = likelihoods(model, prompt_of(model, topic, settings, _ROOM), references)
        values = [one.mean if settings.measure == "mean" else one.total for one in found]
        least = min((value for value, ids in zip(values, references, strict=True) if ids), default=0.0)
        return np.array([value if ids else least for value, ids in zip(values, references, strict=True)], np.float32)

    def _model(self) -> "TextModel":
        with self._opening:
            if self._opened is None:
                self._opened = open_model(self._name, _ROOM)
            return self._opened
