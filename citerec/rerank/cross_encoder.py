"""Cross-encoders read a context and a candidate together, and score how well the candidate fits the citation."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from citerec.errors import ModelError
from citerec.files.writing import Kind
from citerec.models.batches import batches_by_length
from citerec.models.find import find_model, model_failures, model_identity
from citerec.models.loading import (
    MANIFEST,
    MODEL_FILES,
    ModelManifest,
    load_pretrained,
    longest_input,
    read_model_manifest,
    save_pretrained,
    torch_device,
)
from citerec.records import MARKER
from citerec.rerank.cross_encoder_text import Encoded, Pair, PairTokenizer, TextOptions
from citerec.rerank.rank_prior import add_rank_prior, gated_logits, read_rank_prior

if TYPE_CHECKING:
    import torch

    from citerec.models.onnx import OnnxModel

KIND = "citerec-cross-encoder"
DEFAULT_BASE = "allenai/scibert_scivocab_uncased"

MODEL_DIRECTORY = Kind(name="cross-encoder", kind=KIND, manifest=MANIFEST, names=MODEL_FILES | {MANIFEST, "onnx"})

_CLASS = "AutoModelForSequenceClassification"
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65536}
_PAIRS_AT_ONCE = 1024

Scores = npt.NDArray[np.float32]


class Manifest(ModelManifest):
    """`manifest.json` of a trained cross-encoder; `text` says what it reads.

    `weight` is the weight of its score, against 1 for the previous score; both are standardised.
    """

    kind: Literal["citerec-cross-encoder"] = "citerec-cross-encoder"
    base: str = ""
    text: TextOptions = TextOptions()
    weight: float = 1.0
    training: Mapping[str, Any] = {}
    dev: Mapping[str, float] = {}


class CrossEncoder:
    """A model with one output for a pair of texts. Use `open` to open a trained one, or `begin` to train one."""

    def __init__(
        self, model: Any, tokenizer: PairTokenizer, manifest: Manifest, quantised: "OnnxModel | None" = None
    ) -> None:
        self.model = model
        self._quantised = quantised
        self.tokenizer = tokenizer
        self.manifest = manifest

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
                raise ModelError(
                    f"{path_or_name} is not a trained cross-encoder",
                    f"Train one from it: citerec train reranker --base {path_or_name} …",
                )
            return _CLASS

        found = find_model(str(path_or_name))
        again = "Train it again: citerec train reranker …"
        # A model made elsewhere has no manifest.
        manifest = read_model_manifest(Path(found), Manifest, "a cross-encoder", again) or Manifest()
        model, loaded = load_pretrained(str(path_or_name), class_of)
        if manifest.text.rank_prior:
            with model_failures(str(path_or_name)):
                read_rank_prior(model, Path(found))
            if backend != "torch":
                raise ModelError(
                    f"{path_or_name} reads the rank before, which it cannot with 8 bits",
                    "Use --set cross_encoder.backend=torch",
                )
        tokenizer = _tokenizer(found, model, loaded, manifest.text)
        if backend == "torch":
            return cls(model.to(torch_device(device)).eval(), tokenizer, manifest)
        from citerec.models.onnx import OnnxModel, exported

        file = exported(
            lambda: (model, {}),
            lambda model, arrays: model(**arrays).logits,
            model_identity(found),
            inputs=tokenizer.inputs,
            output="logits",
            bits=8,
        )
        return cls(model, tokenizer, manifest, OnnxModel(file))

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
        model, loaded = load_pretrained(base, lambda _config: _CLASS, seed=seed, num_labels=1)
        if options.marker:
            loaded.add_tokens([MARKER], special_tokens=True)
            if len(loaded) > model.get_input_embeddings().num_embeddings:
                model.resize_token_embeddings(len(loaded), mean_resizing=False)
        if options.rank_prior:
            add_rank_prior(model, seed=seed)
        tokenizer = _tokenizer(base, model, loaded, options)
        return cls(model.to(torch_device(device)), tokenizer, Manifest(base=base, text=options))

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """How well each candidate fits its context: one score per pair, (pairs,); higher is better, not bounded."""
        encoded = self.tokenizer.encode(pairs)
        return self._scores_in_8_bits(self._quantised, encoded) if self._quantised else self._scores(encoded)

    def _scores(self, encoded: Sequence[Encoded]) -> Scores:
        import torch

        scores = np.empty(len(encoded), np.float32)
        lengths = [len(pair.ids) for pair in encoded]
        with torch.inference_mode():
            for rows in batches_by_length(lengths, _TOKENS_AT_ONCE.get(self.model.device.type, 16384), _PAIRS_AT_ONCE):
                scores[rows] = self.logits([encoded[row] for row in rows]).cpu().numpy()
        return scores

    def _scores_in_8_bits(self, model: "OnnxModel", encoded: Sequence[Encoded]) -> Scores:
        """Scores each pair alone, several at once: no score depends on the other pairs of a batch."""
        from citerec.models.onnx import concurrent_calls

        with ThreadPoolExecutor(concurrent_calls()) as threads:
            outputs = threads.map(lambda pair: model.run(self.tokenizer.padded([pair]))[0, 0], encoded)
            return np.fromiter(outputs, np.float32, len(encoded))

    def logits(self, batch: Sequence[Encoded]) -> "torch.Tensor":
        """The model's output for some pairs, one number each; bfloat16 inside on a GPU."""
        import torch

        device = self.model.device
        arrays = {name: torch.from_numpy(array).to(device) for name, array in self.tokenizer.padded(batch).items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            if self.manifest.text.rank_prior:
                logits = gated_logits(self.model, arrays, torch.tensor([one.rank for one in batch], device=device))
            else:
                logits = self.model(**arrays).logits[:, 0]
        return logits.float()

    def save(self, folder: Path, manifest: Manifest) -> None:
        """Writes transformers' files and the manifest into a folder."""
        save_pretrained(self.model, self.tokenizer.tokenizer, folder)
        manifest.write(folder)


def _tokenizer(name: str, model: Any, tokenizer: Any, options: TextOptions) -> PairTokenizer:
    longest = longest_input(model, tokenizer)
    if options.max_tokens > longest:
        raise ModelError(
            f"{name} reads {longest} tokens at most, not {options.max_tokens}", f"Give --max-tokens {longest}"
        )
    return PairTokenizer(tokenizer, options.max_tokens)
