"""A writer that learnt which sentences, or parts of them, say best what a paper is about (`train writer`)."""

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from citerec.contexts.learnt import LEARNT, learnt_by_part
from citerec.errors import ModelError
from citerec.files import writing
from citerec.files.hashing import digest_of, file_digest
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.rerank.trees import Trees
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.attributed import attributed
from citerec.write.writers.base import Kind, WriterPart, check_names
from citerec.write.writers.extractive import ExtractiveWriter, source_sentences
from citerec.write.writers.tldr_features import Abstract, Texts, Vocabulary, feature_names, table

WORD_TREES = "words.txt"
FORM_TREES = "forms.txt"
VOCABULARY = "vocabulary.json"
DATASHEET = "datasheet.md"
SHIPPED = Path(__file__).parent / "tldr"
"""The model that comes with citerec."""
SENTENCES_DIRECTORY = writing.Kind(
    "trained writer of TLDRs",
    "citerec-sentences",
    MANIFEST,
    frozenset({WORD_TREES, FORM_TREES, VOCABULARY, DATASHEET, MANIFEST, LEARNT}),
)
_COMMAND = "citerec train writer --kind tldr …"
_REMEDY = f"Train it again: {_COMMAND}"


class SentencesManifest(ModelManifest):
    """`manifest.json` of a trained writer: what it learnt from and how, and its scores by cross-validation."""

    kind: Literal["citerec-sentences"] = "citerec-sentences"
    gain: dict[str, dict[str, float]]
    """Share of each feature in the gain of the trees, of words and of forms."""
    training: dict[str, Any]
    scores: dict[str, float]
    """ROUGE-1, stemmed, of tasks that the trees did not learn from (cross-validation); × 100."""


class SentenceModel:
    """Predicts how much each text that can be made of an abstract is like its TLDR: ROUGE-1 F1, up to a constant.

    Args:
        folder: The folder of the model.

    Raises:
        ModelError: There is none, it is damaged, or it was trained on other features.
    """

    def __init__(self, folder: Path) -> None:
        if read_model_manifest(folder, SentencesManifest, "a trained writer of TLDRs", _REMEDY) is None:
            raise ModelError(f"there is no trained writer of TLDRs in {folder}", _REMEDY)
        try:
            self._words, self._texts = (Trees.read(folder / name, _COMMAND) for name in (WORD_TREES, FORM_TREES))
            self._vocabulary = Vocabulary.read(folder / VOCABULARY)
            if [self._words.features, self._texts.features] != list(map(len, feature_names())):
                raise ValueError("it was trained on other features")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ModelError(f"the writer in {folder} cannot be read: {error}", _REMEDY) from error

    def best(self, sentences: Sequence[str], title: str, most: int = 2) -> list[str]:
        """The best text of `most` sentences at most; the first of equals."""
        abstract = Abstract(sentences, title, self._vocabulary)
        # The trees of words give the logarithm of the odds.
        odds = self._words.predict(table(abstract.word_features())).tolist() if abstract.words else []
        chances = {stem: 1 / (1 + math.exp(-one)) for stem, one in zip(abstract.words, odds, strict=True)}
        texts = Texts(abstract, chances)
        scores = self._texts.predict(table(texts.features(), np.float32))
        scored = [one for one in zip(scores.tolist(), texts.texts, strict=True) if len(one[1]) <= most]
        return max(scored, key=lambda one: one[0])[1]

    def pick(self, task: TextTask, most: int = 2) -> list[Sentence]:
        """The best text for each source, of `most` sentences at most."""
        return [
            Sentence(sentence, (number,))
            for number, source in enumerate(task.sources)
            if (sentences := tuple(filter(str.strip, source_sentences(source))))
            for sentence in self.best(sentences, source.title, most)
        ]


def open_trained(_name: str, kind: Kind, *, options: Mapping[str, Any] | None = None) -> ExtractiveWriter:
    """A writer of sentences that a `SentenceModel` chose from each source and shortened.

    A TLDR has one or two, as they are. Other kinds of text have one, attributed to its authors as `attributed` does.
    The model is that of a folder that `train writer` made, the option `model`; by default the one of citerec.

    Raises:
        InputError: There is another option.
        ModelError: There is no such model, or it is damaged.
    """
    options = options or {}
    check_names(options, ["model"], "trained")
    folder = Path(options.get("model") or SHIPPED).expanduser()
    model = SentenceModel(folder)
    digest = digest_of([file_digest(folder / name) for name in (WORD_TREES, FORM_TREES, VOCABULARY)])
    name = "shipped" if folder == SHIPPED else folder.name
    phrase, most = (None, 2) if kind == "tldr" else (attributed, 1)
    settings = {"kind": kind, "model": name, "digest": digest}
    writer = ExtractiveWriter("trained", functools.partial(model.pick, most=most), phrase=phrase, settings=settings)
    writer.learnt = learnt_by_part(folder)
    return writer


TRAINED = WriterPart("trained", open_trained, default_for=("tldr",))
