"""A writer that learnt which sentences, or parts of them, say best what a paper is about (`citerec train tldr`)."""

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
from citerec.write.writers.tldr_forms import FORM_FEATURES, AbstractForms
from citerec.write.writers.tldr_words import WORD_FEATURES, AbstractWords, Vocabulary

KIND = "citerec-sentences"
WORD_TREES = "words.txt"
FORM_TREES = "forms.txt"
VOCABULARY = "vocabulary.json"
DATASHEET = "datasheet.md"
SHIPPED = Path(__file__).parent / "tldr"
"""The model that comes with citerec."""
SENTENCES_DIRECTORY = writing.Kind(
    "trained writer of TLDRs",
    KIND,
    MANIFEST,
    frozenset({WORD_TREES, FORM_TREES, VOCABULARY, DATASHEET, MANIFEST, LEARNT}),
)
_COMMAND = "citerec train tldr …"
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
        vocabulary: The counts of words.
        word_trees: Trees for the chance of each word.
        form_trees: Trees for the texts, which are forms of sentences and pairs of these.
    """

    def __init__(self, vocabulary: Vocabulary, word_trees: Trees, form_trees: Trees) -> None:
        self.vocabulary = vocabulary
        self._words, self._forms = word_trees, form_trees
        if (word_trees.features, form_trees.features) != (len(WORD_FEATURES), len(FORM_FEATURES)):
            raise ValueError("it was trained on other features")

    @classmethod
    def open(cls, folder: Path) -> "SentenceModel":
        """Opens the model in a folder.

        Raises:
            ModelError: There is none, it is damaged, or it was trained on other features.
        """
        if read_model_manifest(folder, SentencesManifest, "a trained writer of TLDRs", _REMEDY) is None:
            raise ModelError(f"there is no trained writer of TLDRs in {folder}", _REMEDY)
        try:
            words, forms = (Trees.read(folder / name, _COMMAND) for name in (WORD_TREES, FORM_TREES))
            return cls(Vocabulary.read(folder / VOCABULARY), words, forms)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ModelError(f"the writer in {folder} cannot be read: {error}", _REMEDY) from error

    def scores(self, sentences: Sequence[str], title: str) -> list[tuple[list[str], float]]:
        """The texts that can be made of an abstract, each in sentences, with its prediction."""
        words = AbstractWords(sentences, title, self.vocabulary)
        # The trees of words give the logarithm of the odds.
        odds = self._words.predict(np.asarray(words.features())).tolist() if words.words else []
        chances = [1 / (1 + math.exp(-one)) for one in odds]
        abstract = AbstractForms(words, dict(zip(words.words, map(float, chances), strict=True)))
        predicted = self._forms.predict(np.asarray(abstract.features()))
        return [(abstract.written(text), float(score)) for text, score in zip(abstract.texts, predicted, strict=True)]

    def best(self, sentences: Sequence[str], title: str, most: int = 2) -> list[str]:
        """The best text of `most` sentences at most; the first of equals."""
        scored = [one for one in self.scores(sentences, title) if len(one[0]) <= most]
        return max(scored, key=lambda one: one[1])[0]

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
    The model is that of a folder that `citerec train tldr` made, the option `model`; by default the one of citerec.

    Raises:
        InputError: There is another option.
        ModelError: There is no such model, or it is damaged.
    """
    options = options or {}
    check_names(options, ["model"], "trained")
    folder = Path(options.get("model") or SHIPPED).expanduser()
    model = SentenceModel.open(folder)
    digest = digest_of([file_digest(folder / name) for name in (WORD_TREES, FORM_TREES, VOCABULARY)])
    name = "shipped" if folder == SHIPPED else folder.name
    phrase, most = (None, 2) if kind == "tldr" else (attributed, 1)
    settings = {"kind": kind, "model": name, "digest": digest}
    writer = ExtractiveWriter("trained", functools.partial(model.pick, most=most), phrase=phrase, settings=settings)
    writer.learnt = learnt_by_part(folder)
    return writer


TRAINED = WriterPart("trained", open_trained, default_for=("tldr",))
