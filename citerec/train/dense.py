"""Training an encoder: multiple negatives ranking (Henderson et al. 2017) with mined hard negatives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from citerec.contexts.topic import topic_of
from citerec.files.writing import Kind
from citerec.index.vectors.build import paper_text
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, open_sentence_transformer
from citerec.settings import Positive
from citerec.systems import Recipe
from citerec.train.base import How, Schedule, write_model
from citerec.train.groups import Choice, GroupTraining, group_training
from citerec.train.reranker import metrics_of

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
