"""Training a cross-encoder after LCR (Gu et al. 2022): hard negatives come from the candidates that it will rerank."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from citerec.evaluation.metrics import measure, parse_metrics
from citerec.evaluation.rank import NOT_FOUND
from citerec.models.encoder import batches_by_length
from citerec.rerank.base import citance_texts, standardised
from citerec.rerank.cross_encoder import (
    DEFAULT_BASE,
    MODEL_DIRECTORY,
    CrossEncoder,
    Manifest,
    Pair,
    Scores,
    TextOptions,
    pair_of,
)
from citerec.retrieve.candidates import Candidate
from citerec.settings import Amount, Positive
from citerec.systems import Recipe
from citerec.train.base import How, Schedule, write_model
from citerec.train.groups import Choice, Group, GroupTraining, group_training

if TYPE_CHECKING:
    import torch

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0)
"""Weights of the reranker's score that are tried on dev."""

METRICS = ("mrr@10", "recall@10")
_CUTOFF = 10

# Tokens, padding included, whose activations are held at once.
_TOKENS_AT_ONCE = {"cpu": 16384, "cuda": 65536}


@dataclass(frozen=True, slots=True)
class RerankerOptions:
    """How to train a cross-encoder.

    Attributes:
        base: The encoder to start from.
        text: How its texts are made.
        loss: `softmax` over the cited paper and its negatives, or `triplet` on scores from 0 to 1.
        negatives: Negatives for each cited paper, drawn again in each epoch.
        candidates: How many first candidates the negatives are drawn from.
        depth: How many candidates it ranks on dev.
        batch: Cited papers per step.
        margin: Margin of the triplet loss; 0.1 in LCR.
    """

    base: str = DEFAULT_BASE
    text: TextOptions = field(default_factory=TextOptions)
    loss: Literal["softmax", "triplet"] = "softmax"
    negatives: Positive = 9
    candidates: Positive = 100
    depth: Positive = 50
    batch: Positive = 8
    margin: Amount = 0.1


def train_reranker(
    choice: Choice,
    index: Path,
    out: Path,
    options: RerankerOptions,
    schedule: Schedule,
    system: Recipe | None = None,
    **how: Unpack[How],
) -> Manifest:
    """Trains a cross-encoder, in place of an earlier one at `out`. An interrupted training is resumed.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        index: The index to search for candidates.
        out: The directory of the model.
        options: What to learn, and how.
        schedule: How long, and how fast.
        system: The system that finds candidates, without its rerankers; by default the best that the index supports.
        how: `device`, where it is trained, by default a GPU if there is one; `on_progress`, called as the work goes
            on; `note`, called with a line about each dev value.

    Raises:
        ModelError: There is no such base, or it cannot be trained.
        SourceError: A file of contexts cannot be read.
        InputError: A line is not a context, or no cited paper is in the index, or something else is at `out`.
        BuildError: The loss is no longer finite, or another process trains this model, or the disk is full.
    """
    model = CrossEncoder.begin(options.base, options.text, seed=schedule.seed, device=how.get("device"))
    begun = group_training(MODEL_DIRECTORY, choice, index, system, out, options, schedule, options.candidates, **how)
    with begun as groups:
        record = groups.fit(_RerankerLearner(model, groups, options))
        dev = dict(record.results)
        training = groups.facts(record, "base", "text")
        fields = {"weight": dev.pop("weight"), "training": training, "dev": dev}
        manifest = model.manifest.model_copy(update=fields)
        return write_model(
            MODEL_DIRECTORY, out, manifest, groups.learnt(options.base), lambda folder: model.save(folder, manifest)
        )


@dataclass
class _RerankerLearner:
    """A cross-encoder, and the groups from which it learns."""

    reader: CrossEncoder
    groups: GroupTraining
    options: RerankerOptions

    def __post_init__(self) -> None:
        self.model, self.batch, self.examples = self.reader.model, self.options.batch, self.groups.examples
        self._random = np.random.default_rng((self.groups.schedule.seed, 1))

    def losses(self, examples: Sequence[tuple[int, int]]) -> "Iterator[torch.Tensor]":
        import torch

        groups = [self.reader.tokenizer.encode(self._drawn(number, slot)) for number, slot in examples]
        tokens = [len(group) * max(len(pair.ids) for pair in group) for group in groups]
        for part in batches_by_length(tokens, _TOKENS_AT_ONCE.get(self.model.device.type, 16384), len(groups)):
            logits = self.reader.logits([pair for number in part for pair in groups[number]])
            of_groups = torch.split(logits, [len(groups[number]) for number in part])
            yield torch.stack([self._loss(one) for one in of_groups]).sum() / len(groups)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The best mrr@10 on dev over the weights of the cross-encoder's score, and results with the best weight."""
        measured = []
        for number, group in enumerate(self.groups.dev):
            self.groups.on_progress("measuring", number, len(self.groups.dev))
            measured.append((group, self.reader.scores(self._pairs(group, group.candidates[: self.options.depth]))))
        return tuned(measured)

    def _drawn(self, number: int, slot: int) -> list[Pair]:
        """A cited paper and its negatives with their context, the cited paper first."""
        group = self.groups.train[number]
        negatives = group.negatives()
        drawn = self._random.permutation(len(negatives))[: self.options.negatives]
        return self._pairs(group, [group.positive(group.gold[slot]), *(negatives[place] for place in drawn)])

    def _pairs(self, group: Group, candidates: Sequence[Candidate]) -> list[Pair]:
        """The context of a group with some candidates; the rank of a cited paper that was not found is the last."""
        (topic,) = self.groups.recommender.topics([group.context])
        store = self.groups.recommender.store
        paper_ids = [candidate.paper_id for candidate in candidates]
        papers, citances = store.papers(paper_ids), citance_texts(store, candidates)
        ranks = {candidate.paper_id: rank for rank, candidate in enumerate(group.candidates, 1)}
        last = len(group.candidates) + 1
        return [
            pair_of(topic, papers[paper_id], citances.get(paper_id), self.options.text, ranks.get(paper_id, last))
            for paper_id in paper_ids
        ]

    def _loss(self, logits: "torch.Tensor") -> "torch.Tensor":
        """The loss of one group, whose first pair is the cited paper."""
        import torch

        if self.options.loss == "softmax":
            return -torch.log_softmax(logits, 0)[0]
        scores = torch.sigmoid(logits)
        return torch.relu(self.options.margin - scores[0] + scores[1:]).mean()


def tuned(measured: Sequence[tuple[Group, Scores]]) -> tuple[float, dict[str, float]]:
    """The best mrr@10 on dev over the weights of a reranker's score, and results with the best weight.

    Args:
        measured: Dev groups, each with the scores of its first candidates.

    Returns:
        The best value with any weight but 0: a model that does not help yet may still be improving, and with weight 0
        this would not show. Then the best weight as `weight`, the metrics with it, and those `before`, without the
        reranker.
    """
    values = {weight: metrics_at(measured, weight) for weight in WEIGHTS}
    weight = max(WEIGHTS, key=lambda weight: (values[weight]["mrr@10"], -weight))
    before = {f"{metric} before": value for metric, value in values[0.0].items()}
    best = max(values[weight]["mrr@10"] for weight in WEIGHTS[1:])
    return best, {"weight": weight, **values[weight], **before}


def metrics_at(measured: Sequence[tuple[Group, Scores]], weight: float) -> dict[str, float]:
    """The metrics on dev with some weight of the reranker's score."""
    rankings = []
    for group, scores in measured:
        ids = [candidate.paper_id for candidate in group.candidates]
        own = np.array([candidate.score for candidate in group.candidates[: len(scores)]])
        new = zip((standardised(own) + weight * standardised(scores)).tolist(), ids, strict=False)
        read = [paper_id for _, paper_id in sorted(new, key=lambda one: (-one[0], one[1].encode()))]
        rankings.append([*read, *ids[len(read) :]])
    return metrics_of([group for group, _ in measured], rankings, METRICS)


def metrics_of(groups: Sequence[Group], rankings: Sequence[Sequence[str]], metrics: Sequence[str]) -> dict[str, float]:
    """Metrics with a cutoff of at most 10 for rankings of papers, a ranking for each group."""
    gold = np.full((len(groups), max(len(group.gold) for group in groups)), -1, np.int32)
    for row, (group, ranking) in enumerate(zip(groups, rankings, strict=True)):
        ranks = {paper_id: rank for rank, paper_id in enumerate(ranking, 1)}
        gold[row, : len(group.gold)] = [ranks.get(paper_id, NOT_FOUND) for paper_id in group.gold]
    means = measure(parse_metrics(metrics, _CUTOFF), gold, _CUTOFF).mean(axis=0)
    return {metric: round(float(mean), 4) for metric, mean in zip(metrics, means, strict=True)}
