"""The interface of taggers of sentences, and their manifest."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from citerec.files.writing import Kind
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest

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
    dev: Mapping[str, Any] = {}
