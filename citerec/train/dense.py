"""Training an encoder: multiple negatives ranking (Henderson et al. 2017) with mined hard negatives."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import LEARNT
from citerec.contexts.topic import topic_of
from citerec.corpus.store import PaperStore
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.writing import Kind
from citerec.index.vectors.encode import paper_text
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, open_sentence_transformer
from citerec.recommend import Recommender
from citerec.systems import Recipe
from citerec.train.checkpoint import checkpoint_directory
from citerec.train.groups import Choice, Groups, facts_of, learnt_by, mine_groups, plan_of, without_rerankers
from citerec.train.loop import Schedule, learn
from citerec.train.weights import metrics_of
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
    training: dict[str, Any]
    dev: dict[str, float]


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
    ENCODER_DIRECTORY.check_place(out)
    schedule = replace(schedule, first=True)
    with Recommender.open(index, without_rerankers(index, system)) as recommender:
        model = open_sentence_transformer(options.base, device)
        if options.max_tokens:
            model.max_seq_length = options.max_tokens
        with checkpoint_directory(
            out, plan_of(choice, recommender, asdict(options), schedule, model.device.type)
        ) as folder:
            train, dev = mine_groups(choice, recommender, options.candidates, folder, on_progress)
            learner = _Learner(model, train, dev, recommender.store, options, schedule.seed)
            state = learn(learner, schedule, folder, on_progress, note)
            learnt = {name: value for name, value in asdict(options).items() if name != "base"}
            manifest = EncoderManifest(
                citerec=__version__,
                base=options.base,
                training=facts_of(choice, recommender, (train, dev), learnt | asdict(schedule), state),
                dev={METRIC: state.best or 0.0, f"{METRIC} before": state.values["0"]},
            )
            with ENCODER_DIRECTORY.writing(out) as partial:
                learnt_by(train, dev, recommender, options.base).write(partial / LEARNT)
                model.save_pretrained(str(partial), create_model_card=False)
                manifest.write(partial)
    return manifest


@dataclass
class _Learner:
    """An encoder, and the groups from which it learns."""

    model: Any
    train: Groups
    dev: Groups
    store: PaperStore
    options: EncoderOptions
    seed: int

    def __post_init__(self) -> None:
        from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

        self._gold = [group.gold for group in self.train]
        self._examples = [(number, slot) for number, gold in enumerate(self._gold) for slot in range(len(gold))]
        # With cached gradients memory does not grow with the batch (Gao et al. 2021).
        rows = _ROWS_AT_ONCE.get(self.model.device.type, 16)
        self._loss = CachedMultipleNegativesRankingLoss(self.model, mini_batch_size=rows)

    def batches(self, epoch: int) -> list[list[int]]:
        """Batches in which no two contexts cite the same paper: it would be its own negative."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self._examples))
        whole: list[list[int]] = []
        begun: list[tuple[list[int], set[str]]] = []
        for example in order.tolist():
            gold = self._gold[self._examples[example][0]]
            place = next((place for place, (_, cited) in enumerate(begun) if cited.isdisjoint(gold)), len(begun))
            if place == len(begun):
                begun.append(([], set()))
            batch, cited = begun[place]
            batch.append(example)
            cited.update(gold)
            if len(batch) == self.options.batch:
                whole.append(begun.pop(place)[0])
        return whole + [batch for batch, _ in begun]

    def backward(self, batch: Sequence[int], step: int) -> float:
        import torch

        device = self.model.device
        columns = self._columns(batch, np.random.default_rng((self.seed, 1, step)))
        # Gradients are cached: backward encodes the texts again, under the same conditions.
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            features = [
                {name: value.to(device) for name, value in self.model.preprocess(texts).items() if hasattr(value, "to")}
                for texts in columns
            ]
            loss = self._loss(features, None)
            loss.backward()
        return float(loss.item())

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Recall on dev, in a pool of the cited papers and the first candidates of each context."""
        groups = list(self.dev)
        pool = sorted(
            {paper_id for group in groups for paper_id in group.gold}
            | {candidate.paper_id for group in groups for candidate in group.candidates[:_POOL_DEPTH]}
        )
        papers = self.store.papers(pool)
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

    def _columns(self, batch: Sequence[int], random: np.random.Generator) -> list[list[str]]:
        """Texts: the contexts, the papers that they cite, and columns of hard negatives."""
        examples = [self._examples[example] for example in batch]
        cited = {paper_id for number, _ in examples for paper_id in self._gold[number]}
        contexts, chosen = [], []
        for number, slot in examples:
            group = self.train[number]
            negatives = group.negatives(cited) or group.negatives()
            drawn = random.permutation(len(negatives))
            # If there are too few, some are used twice.
            drawn = np.resize(drawn, self.options.negatives)
            contexts.append(topic_of(group.context).passage)
            chosen.append([group.gold[slot], *(negatives[place].paper_id for place in drawn)])
        papers = self.store.papers({paper_id for row in chosen for paper_id in row})
        return [
            contexts,
            *([paper_text(papers[paper_id]) for paper_id in column] for column in zip(*chosen, strict=True)),
        ]

    def _encoded(self, texts: list[str]) -> npt.NDArray[np.float32]:
        vectors: npt.NDArray[np.float32] = self.model.encode(
            texts,
            batch_size=_ROWS_AT_ONCE.get(self.model.device.type, 16),
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return vectors
