"""Cross-encoders read a context and a candidate together, and score how well the candidate fits the citation.

The rank prior of DAVINCI is an option: what a cross-encoder reads is gated, number by number, by the candidate's rank
before. A vector is made of 0.95 to the power of the rank. A gate decides for each number of the representation how much
of it comes from what was read, and how much from that vector. The formula of the gate is ours, after the description of
the system (docs/retrieval.md).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Encoding

from citerec.contexts.topic import Topic, clean
from citerec.errors import ModelError
from citerec.files.writing import Kind
from citerec.models import loading
from citerec.models.encoder import batches_by_length, padded, paper_text
from citerec.models.find import find_model, model_failures, model_identity
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, load_pretrained, torch_device
from citerec.records import MARKER, Paper
from citerec.rerank.base import Records, Reranker, Texts, WeightedSettings, interpolated, trained_folder
from citerec.retrieve.base import Candidates

MINOR_SHARE = 0.35
"""Share of the tokens for the citing paper (LCR, Gu et al. 2022, section 4.2), and for a citance on its own side."""


class Pair(NamedTuple):
    """A context and a candidate, as texts.

    Attributes:
        citing: Title and abstract of the citing paper; empty if it is unknown.
        passage: The sentence, and those around it.
        paper: Title and abstract of the candidate.
        citance: A sentence that cites the candidate; empty if there is none.
        rank: The rank of the candidate before, from 1: only models with a rank prior read it.
    """

    citing: str
    passage: str
    paper: str
    citance: str
    rank: int = 1


class TextOptions(BaseModel):
    """What the texts are made of. A model's manifest keeps these options: it is used as it was trained.

    Attributes:
        max_tokens: The largest number of tokens of a pair.
        citing: Whether the citing paper is read.
        citances: Whether a sentence of another paper that cites the candidate is read.
        marker: Whether the place of the citation is read, as a token of its own.
        rank_prior: Whether the candidate's rank before is read too, as in DAVINCI.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tokens: int = Field(default=512, ge=16, le=8192)
    citing: bool = True
    citances: bool = True
    marker: bool = False
    rank_prior: bool = False


def pair_of(topic: Topic, paper: Paper, citance: str | None, options: TextOptions, rank: int = 1) -> Pair:
    """The texts of a context and a candidate, with a sentence in which another paper cited the candidate.

    The search must have found that sentence under the leak rules.
    """
    citing = paper_text(topic.citing) if topic.citing and options.citing else ""
    passage = _marked_passage(topic) if options.marker else topic.passage
    said = clean(citance) if citance and options.citances else ""
    return Pair(citing, passage, paper_text(paper), said, rank)


def _marked_passage(topic: Topic) -> str:
    """The passage as `Topic.passage`, with the marker where it was."""
    text = f" {MARKER} ".join(clean(part) for part in topic.context.text.split(MARKER))
    return f"{text} {topic.neighbours}".strip()


class Encoded(NamedTuple):
    """A pair as tokens: their ids, the side to which each belongs, and the rank of the candidate before, from 1."""

    ids: list[int]
    sides: list[int]
    rank: int


class PairTokenizer:
    """Turns pairs into tokens: [CLS] citing paper, passage [SEP] candidate, citance [SEP], or in the model's own form.

    Each side gets at least half of the tokens, and may use what the other leaves. Within a side, the minor part (citing
    paper or citance) is cut first.

    Attributes:
        inputs: The names of the model's inputs.

    Raises:
        ModelError: The tokenizer is not one of the `tokenizers` library, or has no padding.
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        if not getattr(tokenizer, "is_fast", False) or tokenizer.pad_token_id is None:
            fault = f"the tokenizer of {tokenizer.name_or_path} cannot be used: it is slow, or has no padding"
            raise ModelError(fault, f"Use a base model with a tokenizer.json, such as {DEFAULT_BASE}.")
        self.tokenizer = tokenizer
        self._room = max_tokens - tokenizer.num_special_tokens_to_add(pair=True)
        # A saved tokenizer may have truncation and padding of its own.
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        inputs = ("input_ids", "attention_mask", "token_type_ids")
        self.inputs = [name for name in inputs if name in tokenizer.model_input_names]

    def encode(self, pairs: Sequence[Pair]) -> list[Encoded]:
        """The tokens of some pairs."""
        texts = [text for pair in pairs for text in (pair.citing, pair.passage, pair.paper, pair.citance)]
        parts = iter(self._backend.encode_batch_fast(texts, add_special_tokens=False))
        framed = (self._framed(*four) for four in zip(parts, parts, parts, parts, strict=True))
        return [Encoded(both.ids, both.type_ids, pair.rank) for both, pair in zip(framed, pairs, strict=True)]

    def _framed(self, citing: Encoding, passage: Encoding, paper: Encoding, citance: Encoding) -> Encoding:
        """The parts, truncated, with the special tokens of the model around each side."""
        citing.truncate(int(MINOR_SHARE * self._room))
        whole_a, whole_b = len(citing) + len(passage), len(paper) + len(citance)
        _truncate(citing, passage, max(self._room - self._room // 2, self._room - whole_b))
        _truncate(citance, paper, max(self._room // 2, self._room - whole_a))
        sides = Encoding.merge([citing, passage]), Encoding.merge([paper, citance])
        framed: Encoding = self._backend.post_process(*sides)
        return framed

    def padded(self, batch: Sequence[Encoded]) -> Mapping[str, npt.NDArray[np.int64]]:
        """The inputs of a model: arrays of (pairs, tokens of the longest), by name."""
        ids, mask = padded([pair.ids for pair in batch])
        arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": padded([pair.sides for pair in batch])[0]}
        return {name: arrays[name] for name in self.inputs}


def _truncate(minor: Encoding, major: Encoding, room: int) -> None:
    """Truncates both parts of a side to its room: the minor one to its share, or to what the major one leaves."""
    minor.truncate(max(int(MINOR_SHARE * room), room - len(major)))
    major.truncate(room - len(minor))


DEFAULT_BASE = "allenai/scibert_scivocab_uncased"

MODEL_DIRECTORY = Kind("cross-encoder", "citerec-cross-encoder", MANIFEST, MODEL_FILES | {MANIFEST})

_CLASS = "AutoModelForSequenceClassification"
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65536}
_PAIRS_AT_ONCE = 1024
_PRIOR_RATE = 0.95

Scores = npt.NDArray[np.float32]


class CrossEncoderSettings(WeightedSettings):
    """How the cross-encoder is used.

    Attributes:
        depth: How many candidates are read; the rest follow in their order.
        backend: Backend that runs it: torch, or ONNX Runtime with 8-bit weights.
    """

    depth: int = Field(default=50, ge=1)
    backend: Literal["torch", "onnx-int8"] = "torch"


class Manifest(ModelManifest):
    """`manifest.json` of a trained cross-encoder; `text` says what it reads.

    `weight` is the weight of its score, against 1 for the previous score; both are standardised.
    """

    kind: Literal["citerec-cross-encoder"] = "citerec-cross-encoder"
    base: str = ""
    text: TextOptions = TextOptions()
    weight: float = 1.0


class CrossEncoder:
    """A model with one output for a pair of texts. Use `open` to open a trained one, or `begin` to train one.

    Raises:
        ModelError: It cannot read so many tokens as the manifest says.
    """

    def __init__(self, model: Any, tokenizer: Any, manifest: Manifest) -> None:
        tokens, longest = manifest.text.max_tokens, loading.longest_input(model, tokenizer)
        if tokens > longest:
            fault = f"{tokenizer.name_or_path} reads {longest} tokens at most, not {tokens}"
            raise ModelError(fault, f"Give -c max_tokens={longest}")
        self.model = model
        self.tokenizer = PairTokenizer(tokenizer, tokens)
        self.manifest = manifest
        self._quantised: Any = None

    @classmethod
    def open(
        cls, path_or_name: str | Path, *, backend: Literal["torch", "onnx-int8"] = "torch", device: str | None = None
    ) -> Self:
        """Opens a trained cross-encoder: one from `citerec train reranker`, or one of transformers with one label.

        Args:
            path_or_name: A folder, or a name on the model hub.
            backend: `torch`, or `onnx-int8` for 8-bit weights on a CPU.
            device: Where torch runs it; by default a GPU if there is one.

        Raises:
            ModelError: There is none; it is broken, of another version or not a trained cross-encoder; or packages for
                8 bits are missing.
        """

        def class_of(config: Any) -> str:
            trained = any("SequenceClassification" in name for name in config.architectures or ())
            if not trained or config.num_labels != 1:
                remedy = f"Train one from it: citerec train reranker --base {path_or_name} …"
                raise ModelError(f"{path_or_name} is not a trained cross-encoder", remedy)
            return _CLASS

        source = find_model(str(path_or_name))
        again = "Train it again: citerec train reranker …"
        # A model made elsewhere has no manifest.
        manifest = loading.read_model_manifest(Path(source), Manifest, "a cross-encoder", again) or Manifest()
        model, tokenizer = load_pretrained(str(path_or_name), class_of)
        if manifest.text.rank_prior:
            if backend != "torch":
                fault = f"{path_or_name} reads the rank before, which it cannot with 8 bits"
                raise ModelError(fault, "Use -c cross_encoder.backend=torch")
            with model_failures(str(path_or_name)):
                from safetensors.torch import load_model

                _add_rank_prior(model, seed=0)
                load_model(model, Path(source) / "model.safetensors")
        if backend == "torch":
            return cls(model.to(torch_device(device)).eval(), tokenizer, manifest)
        from citerec.models.onnx import OnnxModel, export_torch, exported

        opened = cls(model, tokenizer, manifest)
        inputs = opened.tokenizer.inputs

        def write(path: Path) -> dict[str, bytes]:
            export_torch(model, lambda model, arrays: model(**arrays).logits, path, inputs, "logits")
            return {}

        file = exported(write, model_identity(source), inputs=inputs, output="logits", bits=8)
        opened._quantised = OnnxModel(file)
        return opened

    @classmethod
    def begin(cls, base: str, options: TextOptions, *, seed: int, device: str | None = None) -> Self:
        """A cross-encoder to train: an encoder with a new head, initialised with the seed.

        Args:
            base: Any encoder: a folder, a wheel or a name on the model hub.
            options: How its texts are made.
            seed: Seed of the new head.
            device: Where it is trained; by default a GPU if there is one.

        Raises:
            ModelError: There is none, it cannot be loaded, or it cannot read so many tokens.
        """
        model, tokenizer = load_pretrained(base, lambda _config: _CLASS, seed=seed, num_labels=1)
        if options.marker:
            tokenizer.add_tokens([MARKER], special_tokens=True)
            if len(tokenizer) > model.get_input_embeddings().num_embeddings:
                model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        if options.rank_prior:
            _add_rank_prior(model, seed=seed)
        return cls(model.to(torch_device(device)), tokenizer, Manifest(base=base, text=options))

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """How well each candidate fits its context: one score per pair, (pairs,); higher is better, not bounded."""
        encoded = self.tokenizer.encode(pairs)
        if model := self._quantised:
            # Each pair alone, several at once: no score depends on the other pairs of a batch.
            from citerec.models.onnx import concurrent_calls

            with ThreadPoolExecutor(concurrent_calls()) as threads:
                outputs = threads.map(lambda pair: model.run(self.tokenizer.padded([pair]))[0, 0], encoded)
                return np.fromiter(outputs, np.float32, len(encoded))
        import torch

        scores = np.empty(len(encoded), np.float32)
        lengths, most = [len(pair.ids) for pair in encoded], _TOKENS_AT_ONCE.get(self.model.device.type, 16384)
        with torch.inference_mode():
            for rows in batches_by_length(lengths, most, _PAIRS_AT_ONCE):
                scores[rows] = self.logits([encoded[row] for row in rows]).cpu().numpy()
        return scores

    def logits(self, batch: Sequence[Encoded]) -> Any:
        """The model's output for some pairs, one number each; while it learns on a GPU, in bfloat16 inside."""
        import torch

        device = self.model.device
        arrays = {name: torch.from_numpy(array).to(device) for name, array in self.tokenizer.padded(batch).items()}
        ranks, is_gated = torch.tensor([pair.rank for pair in batch], device=device), self.manifest.text.rank_prior
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and torch.is_grad_enabled()):
            logits = _gated_logits(self.model, arrays, ranks) if is_gated else self.model(**arrays).logits[:, 0]
        return logits.float()

    def save(self, folder: Path, manifest: Manifest) -> None:
        """Writes transformers' files and the manifest into a folder."""
        loading.save_pretrained(self.model, self.tokenizer.tokenizer, folder)
        manifest.write(folder)


def _add_rank_prior(model: Any, *, seed: int) -> None:
    """Adds a new gate to a model of transformers, as its part `rank_prior`; it is saved with the model."""
    import torch

    width = model.config.hidden_size
    torch.manual_seed(seed)
    parts = {"prior": torch.nn.Linear(1, width), "gate": torch.nn.Linear(2 * width, width)}
    model.rank_prior = torch.nn.ModuleDict({**parts, "score": torch.nn.Linear(width, 1)})


def _gated_logits(model: Any, arrays: dict[str, Any], ranks: Any) -> Any:
    """The scores of some pairs, (pairs,): `score(g · h + (1 − g) · p)`.

    h is the vector of the first token, p = tanh(W · 0.95^rank), and g = sigmoid(W [h; p]).

    Args:
        model: A model with a gate.
        arrays: Its inputs, (pairs, tokens) each.
        ranks: The ranks of the candidates before, from 1, (pairs,).
    """
    import torch

    read = model.base_model(**arrays).last_hidden_state[:, 0]
    parts = model.rank_prior
    prior = torch.tanh(parts["prior"]((_PRIOR_RATE ** ranks.to(read.dtype))[:, None]))
    share = torch.sigmoid(parts["gate"](torch.cat([read, prior], 1)))
    return parts["score"](share * read + (1 - share) * prior)[:, 0]


class CrossEncoderReranker(Reranker):
    """Reranks the first candidates by a cross-encoder. Safe to call from several threads.

    Raises:
        ModelError: The cross-encoder cannot be opened.
    """

    name = "cross-encoder"
    Settings = CrossEncoderSettings
    is_default = True

    @classmethod
    def open(cls, index: Path, folder: Path | None, settings: CrossEncoderSettings) -> Self:
        """Opens the cross-encoder in a folder, or the one of the index."""
        return cls(trained_folder(cls, index, folder or settings.model, "reranker"), settings)

    def __init__(self, path: Path, settings: CrossEncoderSettings) -> None:
        self.folder = path
        self.model = CrossEncoder.open(path, backend=settings.backend)
        self.weight = self.model.manifest.weight if settings.weight is None else settings.weight
        self.depth = settings.depth
        self.reads_citances = self.model.manifest.text.citances

    def rerank(
        self, topic: Topic, candidates: Candidates, papers: Records, citances: Texts, *, explain: int = 0
    ) -> Candidates:
        """Candidates in their new order; new scores combine the cross-encoder's and the previous ones."""
        options = self.model.manifest.text
        pairs = [
            pair_of(topic, papers.get(paper_id) or Paper(paper_id), citances.get(paper_id), options, rank)
            for rank, paper_id in enumerate(candidates[: self.depth].paper_ids(), 1)
        ]
        return interpolated(candidates, self.model.scores(pairs), self.weight, self.name, explain=explain)
