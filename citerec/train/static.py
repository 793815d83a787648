"""Training a static encoder: the vectors of its tokens are regressed on vectors of papers that an index has.

Model2Vec (Tulkens and van Dongen 2024) takes the vectors of tokens from a model that reads each alone, and Tokenlearn
then trains them on the model's vectors of texts. Here the texts and vectors are those of the index, and the start too.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.provenance import LEARNT, learnt_by_part
from citerec.errors import InputError
from citerec.files.parallel import in_parts
from citerec.files.writing import Kind
from citerec.index.manifest import DENSE, generation_of, open_store
from citerec.index.vectors import Vectors
from citerec.models.encoder import WEIGHTS, StaticManifest, paper_text, without_special_tokens
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import MANIFEST, load_tokenizer, torch_device
from citerec.settings import Amount, Positive, Share
from citerec.train.base import How, Schedule, Training, training, write_model

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
    max_tokens: Positive = 192
    cut: Share = 0.5
    contrast: Amount = 0.3
    batch: Positive = 1024
    limit: Positive = 500_000


def train_static(
    index: Path, out: Path, options: StaticOptions, schedule: Schedule, **how: Unpack[How]
) -> StaticManifest:
    """Trains a static encoder on the vectors of an index (`dense`), in place of an earlier one at `out`.

    A training that was stopped is resumed. `how` is as for `citerec.train_reranker`.

    Raises:
        InputError: Something else is at `out`, or the index has too few vectors.
        ModelError: The tokenizer cannot be loaded.
        BuildError: Another process trains it, or the disk is full.
    """
    vectors = Vectors(generation_of(index) / DENSE)
    of = vectors.manifest
    schedule = replace(schedule, decay=0.0)
    with training(STATIC_DIRECTORY, out, options, schedule, {"checksums": of.checksums}, **how) as own:
        from sentence_transformers import SentenceTransformer

        learner = _Learner(index, vectors, own)
        learner.model.to(torch_device(how.get("device")))
        record = own.fit(learner)
        papers = {"papers": len(learner.rows), "tokens": sum(map(len, learner.texts))}
        manifest = StaticManifest(
            teacher={"model": of.model, "identity": of.identity},
            training=papers | own.facts(record),
            dev={METRIC: record.best, **record.results},
        )
        encoder = SentenceTransformer(modules=[learner.model], device="cpu")
        return write_model(
            STATIC_DIRECTORY,
            out,
            manifest,
            learnt_by_part(of.model),
            lambda folder: encoder.save_pretrained(str(folder), create_model_card=False),
        )


class _Learner:
    """The vectors of tokens, and the papers from which they are learnt.

    Attributes:
        rows: The rows of the papers.
        texts: The tokens of each.
    """

    def __init__(self, index: Path, vectors: Vectors, own: Training) -> None:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
        from tokenizers import Tokenizer

        self.options, self._values, self._seed = own.options, vectors.values, own.schedule.seed
        self.batch = self.options.batch
        self._random = np.random.default_rng((self._seed, 1))
        base = load_tokenizer(self.options.base).backend_tokenizer
        tokenizer = Tokenizer.from_str(without_special_tokens(base.to_str()))
        tokenizer.no_truncation()
        known = np.random.default_rng(self._seed).permutation(np.flatnonzero(vectors.known))
        self.rows = np.sort(known[: self.options.limit])
        if len(self.rows) < 2:
            raise InputError(
                f"{index} has vectors of {len(self.rows)} papers: too few to learn from", "Give a larger index."
            )
        self.texts = list(self._read(index, tokenizer, own))
        order = np.random.default_rng((self._seed, 2)).permutation(len(self.rows))
        dev = max(1, min(_DEV, len(self.rows) // 10))
        self._dev, self.examples = order[:dev].tolist(), order[dev:].tolist()
        self.model = StaticEmbedding(tokenizer, embedding_weights=self._begin(tokenizer.get_vocab_size()))

    def _read(self, index: Path, tokenizer: "Tokenizer", own: Training) -> "Iterator[NDArray[np.int32]]":
        """The tokens of the papers to learn from."""
        chosen = set(self.rows.tolist())
        with contextlib.closing(open_store(index)) as store:
            texts = (paper_text(paper) for row, paper in enumerate(store.all_papers()) if row in chosen)
            for number, part in enumerate(in_parts(texts, _PART)):
                own.on_progress("reading", number * _PART, len(chosen))
                for encoding in tokenizer.encode_batch_fast(part):
                    yield np.array(encoding.ids[: self.options.max_tokens], np.int32)

    def _begin(self, count: int) -> "NDArray[np.float32]":
        """Vectors of tokens to begin with: by how much the papers with a token differ from all.

        They are shorter if the token is frequent: times a/(a + p), where p is its share of all tokens and a is 0.001
        (Arora et al. 2017).
        """
        sums = np.zeros((count, self._values.shape[1]), np.float32)
        seen = np.zeros(count, np.int64)
        for number in self.examples:
            unique = np.unique(self.texts[number])
            sums[unique] += self._targets(number)
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
            vectors, targets = self._vectors(self._dev, np.random.default_rng((self._seed, 3)))
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

    def _targets(self, numbers: int | Sequence[int]) -> "NDArray[np.float32]":
        vectors: NDArray[np.float32] = self._values[self.rows[numbers]].astype(np.float32)
        return vectors
