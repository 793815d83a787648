"""Training a static encoder: the vectors of its tokens are regressed on vectors of papers that an index has.

Model2Vec (Tulkens and van Dongen 2024) takes the vectors of tokens from a model that reads each alone, and Tokenlearn
then trains them on the model's vectors of texts. Here the texts and vectors are those of the index, and the start too.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.learnt import LEARNT, learnt_by_part
from citerec.errors import InputError
from citerec.files.parts import in_parts
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.writing import Kind
from citerec.index.generations import generation_of
from citerec.index.manifest import DENSE, open_store
from citerec.index.vectors.build import paper_text
from citerec.index.vectors.vectors import Vectors
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import MANIFEST, load_tokenizer, torch_device
from citerec.models.static import WEIGHTS, StaticManifest, without_special_tokens
from citerec.train.base import Schedule, checkpoint_directory
from citerec.version import __version__

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

STATIC_DIRECTORY = Kind(
    name="static encoder",
    kind="citerec-static-encoder",
    manifest=MANIFEST,
    names=frozenset({MANIFEST, LEARNT, WEIGHTS, "tokenizer.json", "modules.json", "config_sentence_transformers.json"}),
)
_PART = 4096
_DEV = 2000  # papers held out, at most a tenth
# A citing sentence and the sentences around it have some 12 to 60 tokens.
_SHORT, _LONG = 12, 60
_TEMPERATURE = 0.05

METRIC = "found"
"""Share of papers held out that are nearest to their own vector."""


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """How to train a static encoder.

    Attributes:
        base: The model whose tokenizer it gets, as for `find_model`.
        max_tokens: How many tokens of a paper it learns from.
        cut: Share of the papers of a step of which only a passage is read: it learns to place it where the whole
            paper is, and so what queries need.
        contrast: Weight of the loss that tells a paper from the others of its step.
        batch: Papers of a step.
        limit: Papers to learn from, at most.
    """

    base: str = DEFAULT_ENCODER
    max_tokens: int = 192
    cut: float = 0.5
    contrast: float = 0.3
    batch: int = 1024
    limit: int = 500_000


def train_static(
    index: Path,
    out: Path,
    options: StaticOptions,
    schedule: Schedule,
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> StaticManifest:
    """Trains a static encoder on the vectors of an index (`dense`), in place of an earlier one at `out`.

    A training that was stopped is resumed.

    Raises:
        InputError: Something else is at `out`, or the index has too few vectors.
        ModelError: The tokenizer cannot be loaded.
        BuildError: Another process trains it, or the disk is full.
    """
    from tokenizers import Tokenizer

    from citerec.train.trainer import LossTrainer  # the first that the light package lacks: it is in the extra `train`

    STATIC_DIRECTORY.check_place(out)
    device = torch_device(device)
    vectors = Vectors(generation_of(index) / DENSE)
    schedule = replace(schedule, decay=0.0)
    of = vectors.manifest
    settings = asdict(options) | asdict(schedule)
    plan = {"checksums": of.checksums, **settings, "device": device.partition(":")[0]}
    with checkpoint_directory(out, plan) as folder:
        base = load_tokenizer(options.base).backend_tokenizer
        tokenizer = Tokenizer.from_str(without_special_tokens(base.to_str()))
        tokenizer.no_truncation()
        rows, texts = _read(index, vectors, tokenizer, options, schedule.seed, on_progress)
        learner = _Learner(tokenizer, vectors.values, rows, texts, options, schedule.seed)
        learner.model.to(device)
        record = LossTrainer(learner, schedule, folder, on_progress, note).fit()
        manifest = StaticManifest(
            citerec=__version__,
            teacher={"model": of.model, "identity": of.identity},
            training={"papers": len(rows), "tokens": sum(map(len, texts)), **settings, **record.facts()},
            dev={METRIC: record.best, **record.results},
        )
        from sentence_transformers import SentenceTransformer

        with STATIC_DIRECTORY.writing(out) as partial:
            learnt_by_part(of.model).write(partial / LEARNT)
            encoder = SentenceTransformer(modules=[learner.model], device="cpu")
            encoder.save_pretrained(str(partial), create_model_card=False)
            manifest.write(partial)
    return manifest


def _read(
    index: Path, vectors: Vectors, tokenizer: "Tokenizer", options: StaticOptions, seed: int, on_progress: Progress
) -> "tuple[NDArray[np.int64], list[NDArray[np.int32]]]":
    """The rows of the papers to learn from, and the tokens of each."""
    with_vector = np.flatnonzero(vectors.known)
    count = min(len(with_vector), options.limit)
    chosen = np.zeros(len(vectors), dtype=bool)
    chosen[np.random.default_rng(seed).permutation(with_vector)[:count]] = True
    rows: list[int] = []
    texts: list[NDArray[np.int32]] = []
    with contextlib.closing(open_store(index)) as store:
        for part in in_parts(enumerate(store.all_papers()), _PART):
            kept = [(row, paper_text(paper)) for row, paper in part if chosen[row]]
            encodings = tokenizer.encode_batch_fast([text for _, text in kept])
            for (row, _), encoding in zip(kept, encodings, strict=True):
                if encoding.ids:
                    rows.append(row)
                    texts.append(np.array(encoding.ids[: options.max_tokens], np.int32))
            on_progress("reading", len(rows), count)
    if len(rows) < 2:
        raise InputError(f"{index} has vectors of {len(rows)} papers: too few to learn from", "Give a larger index.")
    return np.array(rows), texts


@dataclass
class _Learner:
    """The vectors of tokens, and the papers from which they are learnt: the last ones are held out."""

    tokenizer: "Tokenizer"
    values: NDArray[Any]
    rows: NDArray[np.int64]
    texts: list[NDArray[np.int32]]
    options: StaticOptions
    seed: int

    def __post_init__(self) -> None:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        self.batch = self.options.batch
        self._random = np.random.default_rng((self.seed, 1))
        order = np.random.default_rng((self.seed, 2)).permutation(len(self.rows))
        dev = max(1, min(_DEV, len(self.rows) // 10))
        self._dev, self.examples = order[:dev].tolist(), order[dev:].tolist()
        weights = self._begin(self.tokenizer.get_vocab_size())
        self.model = StaticEmbedding(self.tokenizer, embedding_weights=weights)

    def _begin(self, count: int) -> "NDArray[np.float32]":
        """Vectors of tokens to begin with: by how much the papers with a token differ from all.

        They are shorter if the token is frequent: times a/(a + p), where p is its share of all tokens and a is 0.001
        (Arora et al. 2017).
        """
        sums = np.zeros((count, self.values.shape[1]), np.float32)
        seen = np.zeros(count, np.int64)
        for numbers in (self.examples[begin : begin + _PART] for begin in range(0, len(self.examples), _PART)):
            values = self._targets(numbers)
            for number, value in zip(numbers, values, strict=True):
                unique = np.unique(self.texts[number])
                sums[unique] += value
                seen[unique] += 1
        mean = self._targets(self.examples[:_PART]).mean(axis=0)
        tokens = np.concatenate(self.texts)
        share = np.bincount(tokens, minlength=count) / len(tokens)
        # With three papers more, at the mean, a token that occurs once says little. The mean itself is added to all.
        own = (sums - seen[:, None] * mean) / (seen[:, None] + 3)
        weights: NDArray[np.float32] = ((own + 0.1 * mean) * (1e-3 / (1e-3 + share))[:, None]).astype(np.float32)
        return weights

    def losses(self, examples: Sequence[int]) -> "Iterator[torch.Tensor]":
        """One minus the cosine with the vector of the paper, and the contrast with the vectors of the others."""
        import torch

        vectors, targets = self._vectors(examples, self._random)
        logits = vectors @ targets.T / _TEMPERATURE
        contrast = torch.nn.functional.cross_entropy(logits, torch.arange(len(examples), device=logits.device))
        yield 1 - (vectors * targets).sum(dim=1).mean() + self.options.contrast * contrast

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The share of dev papers, some cut as in training, that are nearest to their own vectors; their cosine."""
        import torch

        with torch.inference_mode():
            vectors, targets = self._vectors(self._dev, np.random.default_rng((self.seed, 3)))
            own = (vectors * targets).sum(dim=1)
            nearest = (own >= (vectors @ targets.T).max(dim=1).values - 1e-6).float().mean()
        return round(float(nearest), 4), {"cosine": round(float(own.mean()), 4)}

    def _vectors(self, numbers: Sequence[int], random: np.random.Generator) -> "tuple[Any, Any]":
        """The vectors that the encoder makes of some papers, and those that it should make, of length one."""
        import torch

        texts = [self._text(number, random) for number in numbers]
        offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])[:-1]])
        device = self.model.embedding.weight.device
        features = {
            "input_ids": torch.from_numpy(np.concatenate(texts).astype(np.int64)).to(device),
            "offsets": torch.from_numpy(offsets).to(device),
        }
        vectors = torch.nn.functional.normalize(self.model(features)["sentence_embedding"], dim=1)
        return vectors, torch.from_numpy(self._targets(numbers)).to(device)

    def _text(self, number: int, random: np.random.Generator) -> "NDArray[np.int32]":
        """The tokens of a paper, or of a passage of it."""
        tokens = self.texts[number]
        length = int(random.integers(_SHORT, _LONG + 1))
        if random.random() >= self.options.cut or len(tokens) <= length:
            return tokens
        begin = int(random.integers(0, len(tokens) - length + 1))
        return tokens[begin : begin + length]

    def _targets(self, numbers: Sequence[int]) -> "NDArray[np.float32]":
        return self.values[self.rows[numbers]].astype(np.float32)
