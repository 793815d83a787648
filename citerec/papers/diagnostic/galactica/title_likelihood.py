"""Reranking by how likely a causal language model finds the reference to each candidate."""

import copy
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.learnt import Learnt
from citerec.contexts.topic import Topic
from citerec.models.batches import batches_by_length
from citerec.papers.common.written import open_writer
from citerec.papers.diagnostic.galactica.retriever import GalacticaRetriever, PromptSettings, prompt_of, reference_to
from citerec.records import Paper, Reason
from citerec.rerank.base import Reranker, interpolated, reranked
from citerec.retrieve.candidates import Candidates
from citerec.settings import Weight

if TYPE_CHECKING:
    from citerec.models.text_models import TextModel

_ROOM = 64  # tokens of a reference that are read; longer ones are cut
# References in work at once, and numbers of the largest array, tokens × vocabulary: 256 MB.
_ROWS, _NUMBERS = 256, 1 << 26


class TitleLikelihoodSettings(PromptSettings):
    """The model, how it is asked, and how its answer counts."""

    depth: int = Field(default=50, ge=1, description="how many candidates are ranked; the rest follow in their order")
    measure: Literal["mean", "sum"] = Field(
        default="mean", description="log-probability of a reference: the mean over its tokens, or their sum"
    )
    weight: Weight | None = Field(
        default=None,
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
        return cls(GalacticaRetriever.model_name(index, settings, cls.name), settings)

    @classmethod
    def learnt_at(cls, index: Path, _folder: Path | None, settings: TitleLikelihoodSettings) -> Learnt:
        """What the model learnt from, if citerec knows it."""
        return GalacticaRetriever.learnt_at(index, settings)

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
        with self._opening:
            model = self._opened = self._opened or open_writer(self._name, "causal model", _ROOM)
        head = [papers.get(paper_id) or Paper(paper_id) for paper_id in candidates[: self.depth].paper_ids()]
        references = [reference_to(model, paper, self.settings)[:_ROOM] for paper in head]
        lengths = np.array([len(ids) for ids in references])
        scores = likelihoods(model, prompt_of(model, topic, self.settings, _ROOM), references)
        if self.settings.measure == "mean":
            scores /= np.maximum(lengths, 1)
        scores[lengths == 0] = scores[lengths > 0].min(initial=0.0)
        scores = scores.astype(np.float32)
        if (weight := self.settings.weight) is not None:
            return interpolated(candidates, scores, weight, self.name, explain=explain)
        reasons = [(Reason(self.name, score),) for score in scores.tolist()] if explain else ()
        return reranked(candidates, scores, "title_likelihood", reasons=reasons)


def likelihoods(
    model: "TextModel", prompt: Sequence[int], continuations: Sequence[Sequence[int]]
) -> NDArray[np.float64]:
    """The log-probability of each continuation of a prompt, (continuations,); that of an empty one is 0.

    The prompt is read once. The sum over the tokens is meant, in natural logarithms.
    """
    import torch

    totals = np.zeros(len(continuations))
    asked = [number for number, ids in enumerate(continuations) if ids]
    *before, last = prompt
    with model.turn, torch.inference_mode(), model.autocast():
        read = model.model(input_ids=model.padded([before], 0), use_cache=True).past_key_values if before else None
        tokens = max(1, _NUMBERS // len(model.tokenizer))
        for batch in batches_by_length([len(continuations[number]) for number in asked], tokens, _ROWS):
            ids = [continuations[asked[place]] for place in batch]
            past = copy.deepcopy(read)
            if past is not None:
                past.batch_repeat_interleave(len(ids))
            real = model.padded([[1] * len(row) for row in ids], 0)
            mask = torch.cat([real.new_ones(len(ids), len(before)), real], 1)
            inputs = model.padded([[last, *row[:-1]] for row in ids], model.pad)
            logits = model.model(input_ids=inputs, attention_mask=mask, past_key_values=past).logits
            wanted = model.padded(ids, model.pad)[..., None]
            scores = logits.float().log_softmax(-1).gather(2, wanted)[..., 0]
            sums = scores.masked_fill(real == 0, 0.0).double().sum(1)
            totals[[asked[place] for place in batch]] = sums.cpu().numpy()
    return totals
