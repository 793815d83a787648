"""Properties of a sentence that strata depend on: its words, the place of the marker, the parts of speech around it."""

import functools
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.contexts.split import pipeline_identity, spacy_model
from citerec.errors import InputError
from citerec.records import MARKER, Context

DEFAULT_MODEL = "en_core_web_sm"
HOW_TO_GET = f"`python -m spacy download {DEFAULT_MODEL}`, or name one: --spacy-model NAME|FOLDER"
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Sentence:
    """A citing sentence, in numbers.

    Attributes:
        length: Number of words, with the marker as one and without punctuation.
        position: Number of the marker among them, from 1.
        tag_before: Penn tag of the nearest word before the marker; None without a tagger, or if there is no word.
        tag_after: Penn tag of the nearest word after it.
    """

    length: int
    position: int
    tag_before: str | None = None
    tag_after: str | None = None

    @property
    def marker_ends_it(self) -> bool:
        """Whether no word follows the marker."""
        return self.position == self.length


NOT_READ = Sentence(0, 0)
"""A sentence whose words nobody has counted."""


def read_sentences(contexts: Iterable[Context], model: str | None = None) -> Iterator[Sentence]:
    """Tokenises the sentence of each context, and tags it if a model is given.

    Args:
        contexts: Contexts, read as they are needed.
        model: Name or folder of a spaCy model with a tagger of Penn tags; None to count words only.

    Raises:
        InputError: There is no such model, or it does not tag.
    """
    pipeline = tagger(model)
    for doc, marker in pipeline.pipe(_documents(pipeline, contexts), as_tuples=True, batch_size=_BATCH):
        before, after = (list(filter(_is_word, side)) for side in (doc[:marker], doc[marker + 1 :]))
        yield Sentence(
            length=len(before) + 1 + len(after),
            position=len(before) + 1,
            tag_before=(before[-1].tag_ or None) if before else None,
            tag_after=(after[0].tag_ or None) if after else None,
        )


@functools.cache
def tagger(model: str | None) -> Any:
    """A spaCy model, by name or folder, with only what tagging needs; without one, spaCy's English tokenizer.

    Raises:
        InputError: There is no such model, or it does not tag.
    """
    if model is None:
        import spacy

        return spacy.blank("en")
    pipeline = spacy_model(
        model, f"Get one with {HOW_TO_GET}", "parser", "ner", "lemmatizer", "senter", "attribute_ruler"
    )
    if "tagger" not in pipeline.pipe_names:
        raise InputError(f"the spaCy model {model} does not tag parts of speech", f"Get one with {HOW_TO_GET}")
    return pipeline


def is_installed(model: str) -> bool:
    """Whether a spaCy model is installed, as a package or a folder; spaCy itself is not imported."""
    return Path(model).is_dir() or (model.isidentifier() and importlib.util.find_spec(model) is not None)


def model_identity(model: str | None) -> list[str]:
    """Name and version of a spaCy model, on which its tags depend; empty for none."""
    return [] if model is None else pipeline_identity(tagger(model))


def _documents(pipeline: Any, contexts: Iterable[Context]) -> Iterator[tuple[Any, int]]:
    from spacy.tokens import Doc

    for context in contexts:
        # The marker is one token, even without white space around it.
        parts = [[token.text for token in pipeline.tokenizer(part)] for part in context.text.split(MARKER)]
        yield Doc(pipeline.vocab, words=[*parts[0], MARKER, *parts[-1]]), len(parts[0])


def _is_word(token: Any) -> bool:
    # Not `isalnum`: the ¹ of a footnote is no word.
    return any(character.isalpha() or character.isdecimal() for character in token.text)
