"""A tagger that is a sequence classifier of transformers: SciBERT or another encoder with a head for the labels."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from citerec.discourse.base import Probabilities, Tagger, TaggerManifest
from citerec.discourse.paragraphs import scheme_of
from citerec.errors import ModelError
from citerec.models.batches import batches_by_length
from citerec.models.find import find_model
from citerec.models.loading import load_pretrained, longest_input, save_pretrained, torch_device

if TYPE_CHECKING:
    import torch

DEFAULT_BASE = "allenai/scibert_scivocab_uncased"
MAX_TOKENS = 256
_CLASS = "AutoModelForSequenceClassification"
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65536}
_ROWS_AT_ONCE = 256

Encoded = Mapping[str, list[int]]
"""The input of a model for one sentence, by name."""


class ClassifierTagger(Tagger):
    """Reads each sentence together with its neighbours. To get one, use `open`, or `begin` to train it.

    The model is a sequence classifier of transformers, its labels in the order of the manifest.
    """

    def __init__(self, model: Any, tokenizer: Any, manifest: TaggerManifest, name: str) -> None:
        self.model = model
        self.manifest = manifest
        self.name, self.scheme, self.labels = name, manifest.scheme, manifest.labels
        self._tokenizer = tokenizer

    @classmethod
    def open(cls, found: str, manifest: TaggerManifest | None, *, device: str | None = None) -> Self:
        """Opens a trained classifier.

        Args:
            found: A folder, or a name on the model hub.
            manifest: Its manifest; None if it was made elsewhere: then the labels are those of its configuration.
            device: The device; by default a GPU if there is one.

        Raises:
            ModelError: There is none, it is damaged, or it is no trained classifier.
        """

        def class_of(config: Any) -> str:
            if not any("SequenceClassification" in name for name in config.architectures or ()):
                raise ModelError(
                    f"{found} is no trained tagger", f"Train one from it: citerec train tagger … --model {found}"
                )
            if manifest and manifest.labels != _labels(config):
                raise ModelError(
                    f"the tagger {found} is damaged: model and manifest name other labels",
                    "Train it again: citerec train tagger …",
                )
            return _CLASS

        model, tokenizer = load_pretrained(found, class_of)
        labels = _labels(model.config)
        manifest = manifest or TaggerManifest(model="classifier", scheme=scheme_of(labels), labels=labels)
        return cls(model.to(torch_device(device)).eval(), tokenizer, manifest, Path(found).name)

    @classmethod
    def begin(cls, manifest: TaggerManifest, *, seed: int, device: str | None = None) -> Self:
        """A classifier to be trained: the base of the manifest with a new head for its labels, drawn by the seed.

        Raises:
            ModelError: There is no such base, it cannot be loaded, or it does not read so many tokens.
        """
        model, tokenizer = load_pretrained(
            manifest.base,
            lambda _config: _CLASS,
            seed=seed,
            id2label=dict(enumerate(manifest.labels)),
            label2id={label: number for number, label in enumerate(manifest.labels)},
        )
        longest = longest_input(model, tokenizer)
        if (manifest.max_tokens or MAX_TOKENS) > longest:
            raise ModelError(f"{manifest.base} reads {longest} tokens at most", f"Give --max-tokens {longest}")
        return cls(model.to(torch_device(device)), tokenizer, manifest, Path(find_model(manifest.base)).name)

    def encode(self, paragraph: Sequence[str]) -> list[Encoded]:
        """The input for each sentence, with the sentences before and after it as the second text of a pair."""
        return [
            self._tokenizer(
                sentence, beside or None, truncation=True, max_length=self.manifest.max_tokens or MAX_TOKENS
            )
            for sentence, beside in _with_neighbours(paragraph)
        ]

    def logits(self, batch: Sequence[Encoded]) -> "torch.Tensor":
        """The model's outputs, sentences × labels; bfloat16 inside on a GPU."""
        import torch

        device = self.model.device
        padded = self._tokenizer.pad(list(batch), return_tensors="pt").to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits: torch.Tensor = self.model(**padded).logits
        return logits.float()

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        """How likely each label is for each sentence; see `Tagger`."""
        encoded = [sentence for paragraph in paragraphs for sentence in self.encode(paragraph)]
        ends = np.cumsum([len(paragraph) for paragraph in paragraphs], dtype=int)
        return np.split(self._probabilities(encoded), ends)[:-1]

    def _probabilities(self, encoded: Sequence[Encoded]) -> Probabilities:
        import torch

        found = np.empty((len(encoded), len(self.labels)))
        lengths = [len(sentence["input_ids"]) for sentence in encoded]
        room = _TOKENS_AT_ONCE.get(self.model.device.type, 4096)
        with torch.inference_mode():
            for rows in batches_by_length(lengths, room, _ROWS_AT_ONCE):
                logits = self.logits([encoded[row] for row in rows])
                found[rows] = torch.softmax(logits.double(), dim=1).cpu().numpy()
        return found

    def save(self, folder: Path) -> None:
        """Writes transformers' files and the manifest into a folder."""
        save_pretrained(self.model, self._tokenizer, folder)
        self.manifest.write(folder)


def _with_neighbours(paragraph: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, sentence in enumerate(paragraph):
        yield sentence, " ".join([*paragraph[max(0, at - 1) : at], *paragraph[at + 1 : at + 2]])


def _labels(config: Any) -> tuple[str, ...]:
    return tuple(config.id2label[number] for number in range(config.num_labels))
