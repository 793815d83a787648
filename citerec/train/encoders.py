"""Training an encoder (multiple negatives ranking, Henderson et al. 2017) or a cross-encoder (LCR, Gu et al. 2022).

Hard negatives are mined: they come from the candidates of the index on which the model will work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from citerec.contexts.topic import topic_of
from citerec.evaluation.metrics import NOT_FOUND, measure, parse_metrics
from citerec.files.writing import Kind
from citerec.models.encoder import batches_by_length, paper_text
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, open_sentence_transformer
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
from citerec.retrieve.base import Candidate
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


if TYPE_CHECKING:
    import torch

# Other files of sentence-transformers, and a folder for each module.
_FILES = {"config_sentence_transformers.json", "modules.json", "sentence_bert_config.json"}
_MODULES = {"1_Pooling", "2_Dense", "2_Normalize", "3_Normalize"}
ENCODER_DIRECTORY = Kind("trained encoder", "citerec-encoder", MANIFEST, MODEL_FILES | {MANIFEST} | _FILES | _MODULES)

METRIC = "recall@10"
_POOL_DEPTH = 10
_ROWS_AT_ONCE = {"cpu": 16, "cuda": 64}


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How to train an encoder.

    Attributes:
        base: The model to start from, as for `citerec.models.find.find_model`.
        max_tokens: How many tokens of a text it reads; by default as set by its authors.
        negatives: Hard negatives for each cited paper, drawn again in each epoch.
        candidates: How many first candidates the negatives are drawn from.
        batch: Cited papers per step: each is a negative for the others' contexts.
    """

    base: str = DEFAULT_ENCODER
    max_tokens: Positive | None = None
    negatives: Positive = 1
    candidates: Positive = 100
    batch: Positive = 32


class EncoderManifest(ModelManifest):
    """`manifest.json` of a trained encoder: its base, its training, and dev values, including the base's."""

    kind: Literal["citerec-encoder"] = "citerec-encoder"
    base: str


def train_encoder(
    choice: Choice,
    index: Path,
    out: Path,
    options: EncoderOptions,
    schedule: Schedule,
    system: Recipe | None = None,
    **how: Unpack[How],
) -> EncoderManifest:
    """Trains an encoder (a folder of sentence-transformers), in place of an earlier one at `out`.

    If no step improves the base on dev, the result is the base: it is always measured first. Arguments and errors are
    those of `citerec.train_reranker`.
    """
    schedule = replace(schedule, first=True)
    model = open_sentence_transformer(options.base, how.get("device"))
    if options.max_tokens:
        model.max_seq_length = options.max_tokens
    begun = group_training(ENCODER_DIRECTORY, choice, index, system, out, options, schedule, options.candidates, **how)
    with begun as groups:
        record = groups.fit(_DenseLearner(model, groups, options))
        dev = {METRIC: record.best, f"{METRIC} before": record.values[0]}
        manifest = EncoderManifest(base=options.base, training=groups.facts(record, "base"), dev=dev)
        return write_model(
            ENCODER_DIRECTORY,
            out,
            manifest,
            groups.learnt(options.base),
            lambda folder: model.save_pretrained(str(folder), create_model_card=False),
        )


@dataclass
class _DenseLearner:
    """An encoder, and the groups from which it learns.

    Attributes:
        examples: Batches: no two contexts of one cite the same paper, which would be its own negative.
    """

    model: Any
    groups: GroupTraining
    options: EncoderOptions

    batch = 1

    def __post_init__(self) -> None:
        from datasets import Dataset
        from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
        from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

        self._rows_at_once = _ROWS_AT_ONCE.get(self.model.device.type, 16)
        # With cached gradients memory does not grow with the batch (Gao et al. 2021).
        self._loss = CachedMultipleNegativesRankingLoss(self.model, mini_batch_size=self._rows_at_once)
        seed = self.groups.schedule.seed
        self._random = np.random.default_rng((seed, 1))
        examples = self.groups.examples
        gold = [self.groups.train[number].gold for number, _ in examples]
        # Rows have one length, so some papers stand there twice.
        cited = Dataset.from_list([{str(at): one[at % len(one)] for at in range(max(map(len, gold)))} for one in gold])
        batches = NoDuplicatesBatchSampler(cited, batch_size=self.options.batch, drop_last=False, seed=seed)
        self.examples = [[examples[row] for row in batch] for batch in batches]

    def losses(self, examples: Sequence[list[tuple[int, int]]]) -> "Iterator[torch.Tensor]":
        """The loss of a batch, by sentence-transformers: it reads columns of texts."""
        import torch

        (batch,) = examples
        device = self.model.device
        columns = [self.model.preprocess(list(column)) for column in zip(*self._texts(batch), strict=True)]
        inputs = [{name: one.to(device) if torch.is_tensor(one) else one for name, one in of.items()} for of in columns]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            yield self._loss(inputs, None)

    def _texts(self, batch: Sequence[tuple[int, int]]) -> Iterator[list[str]]:
        """The texts of each example of a batch: the context, the paper that it cites, and hard negatives."""
        groups = [(self.groups.train[number], slot) for number, slot in batch]
        cited = {paper_id for group, _ in groups for paper_id in group.gold}
        for group, slot in groups:
            negatives = group.negatives(cited) or group.negatives()
            # If there are too few, some are used twice.
            drawn = np.resize(self._random.permutation(len(negatives)), self.options.negatives)
            paper_ids = [group.gold[slot], *(negatives[place].paper_id for place in drawn)]
            papers = self.groups.recommender.store.papers(paper_ids)
            yield [topic_of(group.context).passage, *(paper_text(papers[paper_id]) for paper_id in paper_ids)]

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Recall on dev, in a pool of the cited papers and the first candidates of each context."""
        groups = list(self.groups.dev)
        first = (candidate.paper_id for group in groups for candidate in group.candidates[:_POOL_DEPTH])
        pool = sorted({*first, *(paper_id for group in groups for paper_id in group.gold)})
        papers = self.groups.recommender.store.papers(pool)
        contexts, vectors = (
            self.model.encode(texts, batch_size=self._rows_at_once, normalize_embeddings=True, show_progress_bar=False)
            for texts in (
                [topic_of(group.context).passage for group in groups],
                [paper_text(papers[paper_id]) for paper_id in pool],
            )
        )
        similarities = contexts @ vectors.T
        # The leak rules of the search.
        newest = np.array([group.context.citing_year or np.inf for group in groups])[:, None]
        citing = np.array([group.context.citing_id or "" for group in groups])[:, None]
        years = np.array([papers[paper_id].year or 0 for paper_id in pool])
        similarities[(years > newest) | (citing == np.array(pool))] = -np.inf
        order = np.argsort(-similarities, axis=1, kind="stable")
        rankings = [[pool[place] for place in places] for places in order.tolist()]
        return metrics_of(groups, rankings, [METRIC])[METRIC], {}
