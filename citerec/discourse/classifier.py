"""A tagger that is a sequence classifier of transformers: SciBERT or another encoder with a head for the labels."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from citerec.discourse.base import Probabilities, Tagger, TaggerManifest
from citerec.discourse.paragraphs import scheme_of
from citerec.errors import ModelError
from citerec.models.batches import batches_by_length
from citerec.models.loading import load_pretrained, longest_input, save_pretrained, torch_device

MAX_TOKENS = 256
_CLASS = "AutoModelForSequenceClassification"
# Tokens, padding included, that are held at once, with their activations in training.
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 32768}
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
    def open(cls, place: str, manifest: TaggerManifest | None, *, device: str | None = None) -> Self:
        """Opens a trained classifier.

        Args:
            place: A folder, or a name on the model hub.
            manifest: Its manifest; None if it was made elsewhere: then the labels are those of its configuration.
            device: The device; by default a GPU if there is one.

        Raises:
            ModelError: There is none, it is damaged, or it is no trained classifier.
        """

        def class_of(config: Any) -> str:
            if not any("SequenceClassification" in name for name in config.architectures or ()):
                remedy = f"Train one from it: citerec train tagger … --model {place}"
                raise ModelError(f"{place} is no trained tagger", remedy)
            if manifest and manifest.labels != _labels(config):
                fault = f"the tagger {place} is damaged: model and manifest name other labels"
                raise ModelError(fault, "Train it again: citerec train tagger …")
            return _CLASS

        model, tokenizer = load_pretrained(place, class_of)
        labels = _labels(model.config)
        manifest = manifest or TaggerManifest(model="classifier", scheme=scheme_of(labels), labels=labels)
        return cls(model.to(torch_device(device)).eval(), tokenizer, manifest, Path(place).name)

    @classmethod
    def begin(cls, manifest: TaggerManifest, *, seed: int, device: str | None = None) -> Self:
        """A classifier to be trained: the base of the manifest with a new head for its labels, drawn by the seed.

        Raises:
            ModelError: There is no such base, it cannot be loaded, or it does not read so many tokens.
        """
        names = dict(enumerate(manifest.labels))
        numbers = {"label2id": {label: number for number, label in names.items()}}
        model, tokenizer = load_pretrained(manifest.base, lambda _: _CLASS, seed=seed, id2label=names, **numbers)
        if (manifest.max_tokens or MAX_TOKENS) > (longest := longest_input(model, tokenizer)):
            raise ModelError(f"{manifest.base} reads {longest} tokens at most", f"Give -c max_tokens={longest}")
        return cls(model.to(torch_device(device)), tokenizer, manifest, Path(manifest.base).name)

    def encode(self, paragraph: Sequence[str]) -> Iterator[Encoded]:
        """Yields the input for each sentence, with the sentences before and after it as the second text of a pair."""
        length = self.manifest.max_tokens or MAX_TOKENS
        for at, sentence in enumerate(paragraph):
            beside = " ".join([*paragraph[max(0, at - 1) : at], *paragraph[at + 1 : at + 2]])
            yield self._tokenizer(sentence, beside or None, truncation=True, max_length=length)

    def logits(self, sentences: Sequence[Encoded]) -> Iterator[tuple[list[int], Any]]:
        """Yields the model's outputs in batches of similar length: the places of sentences, and sentences × labels.

        On a GPU it computes with bfloat16.
        """
        import torch

        device = self.model.device
        lengths = [len(sentence["input_ids"]) for sentence in sentences]
        for rows in batches_by_length(lengths, _TOKENS_AT_ONCE.get(device.type, 4096), _ROWS_AT_ONCE):
            padded = self._tokenizer.pad([sentences[row] for row in rows], return_tensors="pt").to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = self.model(**padded).logits
            yield rows, logits.float()

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        """How likely each label is for each sentence; see `Tagger`."""
        import torch

        sentences = [sentence for paragraph in paragraphs for sentence in self.encode(paragraph)]
        probabilities = np.empty((len(sentences), len(self.labels)))
        with torch.inference_mode():
            for rows, logits in self.logits(sentences):
                probabilities[rows] = torch.softmax(logits.double(), dim=1).cpu().numpy()
        return np.split(probabilities, np.cumsum([len(paragraph) for paragraph in paragraphs], dtype=int))[:-1]

    def save(self, folder: Path) -> None:
        """Writes transformers' files and the manifest into a folder."""
        save_pretrained(self.model, self._tokenizer, folder)
        self.manifest.write(folder)


def _labels(config: Any) -> tuple[str, ...]:
    return tuple(config.id2label[number] for number in range(config.num_labels))
