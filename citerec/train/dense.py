"""Training an encoder: multiple negatives ranking (Henderson et al. 2017) with mined hard negatives."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import LEARNT
from citerec.contexts.topic import topic_of
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.writing import Kind
from citerec.index.vectors.build import paper_text
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, open_sentence_transformer
from citerec.systems import Recipe
from citerec.train.base import Schedule, TrainingRecord
from citerec.train.groups import Choice, GroupTraining, group_training
from citerec.train.reranker import metrics_of
from citerec.version import __version__

KIND = "citerec-encoder"
# Other files of sentence-transformers, and a folder for each module.
_FILES = {"config_sentence_transformers.json", "modules.json", "sentence_bert_config.json"}
_MODULES = {"1_Pooling", "2_Dense", "2_Normalize", "3_Normalize"}
ENCODER_DIRECTORY = Kind(
    name="trained encoder", kind=KIND, manifest=MANIFEST, names=MODEL_FILES | {MANIFEST} | _FILES | _MODULES
)

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
    max_tokens: int | None = None
    negatives: int = 1
    candidates: int = 100
    batch: int = 32


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
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> EncoderManifest:
    """Trains an encoder (a folder of sentence-transformers), in place of an earlier one at `out`.

    If no step improves the base on dev, the result is the base: it is always measured first. Arguments and errors are
    those of `citerec.train_reranker`.
    """
    import citerec.train.trainer  # noqa: F401  the first that the light package lacks: it is in the extra `train`

    ENCODER_DIRECTORY.check_place(out)
    schedule = replace(schedule, first=True)
    model = open_sentence_transformer(options.base, device)
    if options.max_tokens:
        model.max_seq_length = options.max_tokens
    k = options.candidates
    with group_training(choice, index, system, out, options, schedule, k, device, on_progress) as groups:
        record = _Learner(model, groups, options).learn(note)
        manifest = EncoderManifest(
            citerec=__version__,
            base=options.base,
            training=groups.facts(record, "base"),
            dev={METRIC: record.best, f"{METRIC} before": record.values[0]},
        )
        with ENCODER_DIRECTORY.writing(out) as partial:
            groups.learnt(options.base).write(partial / LEARNT)
            model.save_pretrained(str(partial), create_model_card=False)
            manifest.write(partial)
    return manifest


@dataclass
class _Learner:
    """An encoder, and the groups from which it learns."""

    model: Any
    groups: GroupTraining
    options: EncoderOptions

    def __post_init__(self) -> None:
        self.batch = self.options.batch
        self._rows_at_once = _ROWS_AT_ONCE.get(self.model.device.type, 16)
        self._random = np.random.default_rng((self.groups.schedule.seed, 1))
        self._examples = self.groups.examples
        self._gold = [group.gold for group in self.groups.train]

    def learn(self, note: Note) -> TrainingRecord:
        """Trains by the trainer of sentence-transformers."""
        from datasets import Dataset
        from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
        from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
        from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
        from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

        from citerec.train.trainer import LearnerTrainer

        draw = self._texts

        class Collator(SentenceTransformerDataCollator):
            def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
                return super().__call__(draw([row["example"] for row in features]))

        class EncoderTrainer(LearnerTrainer, SentenceTransformerTrainer):
            def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
                """Writes no model card."""

        # The papers that the context of each example cites; rows have one length, so some papers stand there twice.
        most = max(map(len, self._gold))
        gold = (self._gold[number] for number, _ in self._examples)
        cited = Dataset.from_list([{str(at): papers[at % len(papers)] for at in range(most)} for papers in gold])
        arguments = functools.partial(
            SentenceTransformerTrainingArguments,
            bf16=self.model.device.type == "cuda",
            # No two contexts of a batch cite the same paper: it would be its own negative.
            batch_sampler=lambda _, **options: NoDuplicatesBatchSampler(cited, **options),
        )
        return EncoderTrainer(
            self,
            self.groups.schedule,
            self.groups.folder,
            self.groups.on_progress,
            note,
            arguments=arguments,
            train_dataset=Dataset.from_dict({"example": range(len(self._examples))}),
            data_collator=Collator(self.model.preprocess),
            # With cached gradients memory does not grow with the batch (Gao et al. 2021).
            loss=CachedMultipleNegativesRankingLoss(self.model, mini_batch_size=self._rows_at_once),
        ).fit()

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Recall on dev, in a pool of the cited papers and the first candidates of each context."""
        groups = list(self.groups.dev)
        pool = sorted(
            {paper_id for group in groups for paper_id in group.gold}
            | {candidate.paper_id for group in groups for candidate in group.candidates[:_POOL_DEPTH]}
        )
        papers = self.groups.recommender.store.papers(pool)
        contexts = self._encoded([topic_of(group.context).passage for group in groups])
        similarities = contexts @ self._encoded([paper_text(papers[paper_id]) for paper_id in pool]).T
        years = np.array([papers[paper_id].year or 0 for paper_id in pool])
        places = {paper_id: place for place, paper_id in enumerate(pool)}
        rankings = []
        for row, group in enumerate(groups):
            # The leak rules of the search.
            if group.context.citing_year:
                similarities[row, years > group.context.citing_year] = -np.inf
            if group.context.citing_id in places:
                similarities[row, places[group.context.citing_id]] = -np.inf
            rankings.append([pool[place] for place in np.argsort(-similarities[row], kind="stable")])
        return metrics_of(groups, rankings, [METRIC])[METRIC], {}

    def _texts(self, examples: Sequence[int]) -> list[dict[str, str]]:
        """The texts of the examples of a batch: the context, the paper that it cites, and hard negatives."""
        chosen = [self._examples[example] for example in examples]
        cited = {paper_id for number, _ in chosen for paper_id in self._gold[number]}
        rows: list[tuple[str, list[str]]] = []
        for number, slot in chosen:
            group = self.groups.train[number]
            negatives = group.negatives(cited) or group.negatives()
            # If there are too few, some are used twice.
            drawn = np.resize(self._random.permutation(len(negatives)), self.options.negatives)
            paper_ids = [group.gold[slot], *(negatives[place].paper_id for place in drawn)]
            rows.append((topic_of(group.context).passage, paper_ids))
        papers = self.groups.recommender.store.papers({paper_id for _, paper_ids in rows for paper_id in paper_ids})
        return [
            {"context": context, **{f"paper {at}": paper_text(papers[one]) for at, one in enumerate(paper_ids)}}
            for context, paper_ids in rows
        ]

    def _encoded(self, texts: list[str]) -> npt.NDArray[np.float32]:
        vectors: npt.NDArray[np.float32] = self.model.encode(
            texts, batch_size=self._rows_at_once, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors
