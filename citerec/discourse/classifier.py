"""A tagger that is a sequence classifier of transformers: SciBERT or another encoder with a head for the labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from citerec.contexts.read import placed_lines
from citerec.corpus.reading import BadRecord, RecordError, parsed, read_list, read_text
from citerec.errors import InputError, ModelError
from citerec.files.text import printable
from citerec.files.writing import Kind
from citerec.models.encoder import batches_by_length
from citerec.models.loading import (
    MANIFEST,
    MODEL_FILES,
    ModelManifest,
    load_pretrained,
    longest_input,
    save_pretrained,
    torch_device,
)

VOCABULARY = "vocabulary.json"
WEIGHTS = "weights.safetensors"
TAGGER_DIRECTORY = Kind("tagger", "citerec-tagger", MANIFEST, MODEL_FILES | {MANIFEST, VOCABULARY, WEIGHTS})

Probabilities = npt.NDArray[np.float64]
"""For one paragraph, sentences × labels; each row adds up to 1."""


class Tagger(Protocol):
    """Gives each sentence of a paragraph one label of a scheme.

    Attributes:
        name: Its name in results: that of its folder or model.
        scheme: "scicite", "acl-arc", "corwa", or another; empty if it was made elsewhere with other labels.
        labels: All labels that it can give, in the order of the columns of `probabilities`.
    """

    name: str
    scheme: str
    labels: tuple[str, ...]

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        """How likely each label is for each sentence.

        Args:
            paragraphs: Texts, each as its sentences in order. A sentence by itself is a paragraph of one.

        Returns:
            For each paragraph an array of sentences × labels; rows add up to 1.
        """

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """The most likely label of each sentence, paragraph by paragraph; ties go to the first in `labels`."""
        return [tuple(self.labels[number] for number in rows.argmax(axis=1)) for rows in self.probabilities(paragraphs)]


class TaggerManifest(ModelManifest):
    """`manifest.json` of a tagger.

    Attributes:
        model: `linear`, or `classifier` for a sequence classifier of transformers.
        base: The encoder with which the training of a classifier began.
        scheme: The scheme of its labels.
        labels: All of them, in order.
        max_tokens: How many tokens a classifier reads.
        training: How it was trained: files, seed and so on.
        dev: Its scores on dev; empty if nothing was held out.
    """

    kind: Literal["citerec-tagger"] = "citerec-tagger"
    model: Literal["linear", "classifier"]
    base: str = ""
    scheme: str
    labels: tuple[str, ...]
    max_tokens: int | None = None
    training: Mapping[str, Any] = {}
    dev: Mapping[str, Any] = {}


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

        While it learns on a GPU, it computes with bfloat16.
        """
        import torch

        device = self.model.device
        lengths = [len(sentence["input_ids"]) for sentence in sentences]
        for rows in batches_by_length(lengths, _TOKENS_AT_ONCE.get(device.type, 4096), _ROWS_AT_ONCE):
            padded = self._tokenizer.pad([sentences[row] for row in rows], return_tensors="pt").to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and torch.is_grad_enabled()):
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


SCHEMES = {
    "scicite": frozenset({"background", "method", "result"}),
    "acl-arc": frozenset({"Background", "CompareOrContrast", "Extends", "Future", "Motivation", "Uses"}),
    "corwa": frozenset({"Multi_summ", "Narrative_cite", "Other", "Reflection", "Single_summ", "Transition"}),
}
"""Labels of the known schemes: citation intents (Cohan et al. 2019; Jurgens et al. 2018), sentences of related work
(Li et al. 2022)."""

_BEGIN = "[BOS]"
_REMEDY = 'A line is {"text": "…", "label": "…"}, or {"paragraph": "[BOS] …", "discourse_tags": ["…"]}: docs/train.md.'


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Consecutive sentences, each with its label. A single sentence is a paragraph of one.

    Attributes:
        sentences: The sentences in order; white space folded.
        labels: One label for each sentence.
    """

    sentences: tuple[str, ...]
    labels: tuple[str, ...]


def read_paragraphs(path: Path) -> Iterator[Paragraph]:
    """Yields the paragraphs of a file of SciCite, ACL-ARC or CORWA, plain or gzip; CORWA's spans are not read.

    Raises:
        SourceError: The file cannot be read, or is empty.
        InputError: A line is of neither shape; the message names it.
    """
    for place, _, raw in placed_lines(path, "one labelled sentence or paragraph"):
        paragraph = parsed(raw, parse_paragraph)
        if isinstance(paragraph, BadRecord):
            raise InputError(f"{place}: {paragraph.reason}", _REMEDY)
        yield paragraph


def parse_paragraph(record: dict[str, Any]) -> Paragraph:
    """A paragraph from its JSON object.

    Raises:
        RecordError: It is of neither shape, a sentence is blank, or there are not as many labels as sentences.
    """
    if "paragraph" in record:  # as in CORWA: one sentence after each mark
        before, *sentences = map(str.strip, (read_text(record, "paragraph") or "").split(_BEGIN))
        labels = read_list(record, "discourse_tags")
        if before or not sentences:
            raise RecordError(f"the paragraph does not begin with {_BEGIN}")
        if len(labels) != len(sentences):
            raise RecordError(f"{len(sentences)} sentences, and {len(labels)} discourse_tags")
    elif "text" in record:
        sentences, labels = [read_text(record, "text") or ""], [record.get("label")]
    else:
        raise RecordError("there is neither text nor paragraph")
    if not all(sentences):
        raise RecordError("a sentence is blank")
    if not all(isinstance(label, str) and label.strip() for label in labels):
        raise RecordError("a label is missing or is no text")
    return Paragraph(tuple(sentences), tuple(printable(label).strip() for label in labels))


def scheme_of(labels: Iterable[str]) -> str:
    """The name of the scheme that has all these labels; empty if no known scheme has them."""
    names = frozenset(labels)
    return next((scheme for scheme, known_labels in SCHEMES.items() if names <= known_labels), "")
