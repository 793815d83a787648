"""Splitting a text into sentences: by rule (pysbd), or by spaCy."""

import functools
import importlib.metadata
import re
from collections.abc import Callable
from typing import Any

from citerec.errors import InputError

PYSBD, SPACY = "pysbd", "spacy"

Span = tuple[int, int]
Splitter = Callable[[str], list[Span]]
"""Returns start and end of each sentence of a text, in order, without white space around them."""

# pysbd takes quadratic time or worse: it gets pieces, cut where a sentence certainly ends.
_PIECE, _LONGEST = 2000, 8000
_SURE_END = re.compile(r"[^\W\d_]{4}[.?!]\s(?=[A-Z])")


@functools.cache
def splitter(name: str = PYSBD) -> Splitter:
    """A splitter by name: `pysbd`; `spacy` for spaCy's rule-based sentencizer; or the name or folder of a spaCy model.

    Raises:
        InputError: There is no such model, or it does not split.
    """
    if name == PYSBD:
        return _by_rule
    return functools.partial(_by_spacy, _pipeline(name))


def splitter_identity(name: str) -> list[str]:
    """Name and version of a splitter, which decide its sentences."""
    if name == PYSBD:
        return [name, importlib.metadata.version("pysbd")]
    if name == SPACY:
        return [name, importlib.metadata.version("spacy")]
    return pipeline_identity(_pipeline(name))


def pipeline_identity(pipeline: Any) -> list[str]:
    """Language, name and version of a spaCy pipeline."""
    return [str(pipeline.meta.get(key)) for key in ("lang", "name", "version")]


def _by_rule(text: str) -> list[Span]:
    spans: list[Span] = []
    for start, end in _pieces(text):
        spans.extend((start + first, start + last) for first, last in spans_by_rule(text[start:end]))
    return spans


def spans_by_rule(text: str) -> list[Span]:
    """Start and end of each sentence of a text by pysbd, which takes quadratic time or worse."""
    spans: list[Span] = []
    done = 0
    # Not `segment`: to find the sentences in the text, it compiles an expression for each of them.
    for sentence in _segmenter().processor(text).process():
        # pysbd may change a sentence: only sentences found in the text count.
        stripped = sentence.strip()
        start = text.find(stripped, done) if stripped else -1
        if start >= 0:
            spans.append((start, start + len(stripped)))
            done = spans[-1][1]
    return spans


def _pieces(text: str) -> list[Span]:
    """A text in pieces that are short enough to split in reasonable time."""
    pieces: list[Span] = []
    start = 0
    while len(text) - start > _PIECE:
        ends = [match.end() for match in _SURE_END.finditer(text, start, min(start + _LONGEST, len(text)))]
        near = [end for end in ends if end <= start + _PIECE]
        if not ends and len(text) - start <= _LONGEST:
            break
        cut = near[-1] if near else ends[0] if ends else start + _LONGEST
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, len(text))]


class _Expressions:
    """The module `re` for pysbd's abbreviations: it compiles each expression once.

    pysbd makes some 700 expressions of its abbreviations anew for each text. `re` keeps 512, and would compile most of
    them again and again.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(re, name)

    def sub(self, pattern: str, replacement: Any, text: str, flags: int = 0) -> str:
        """As `re.sub`."""
        return _compiled(pattern, flags).sub(replacement, text)

    def findall(self, pattern: str, text: str, flags: int = 0) -> list[Any]:
        """As `re.findall`."""
        return _compiled(pattern, flags).findall(text)


@functools.lru_cache(maxsize=4096)  # a text decides with which letters an abbreviation is written
def _compiled(pattern: str, flags: int) -> "re.Pattern[str]":
    return re.compile(pattern, flags)


@functools.cache
def _segmenter() -> Any:
    """The splitter of pysbd for English."""
    from pysbd import Segmenter, abbreviation_replacer

    abbreviation_replacer.re = _Expressions()
    return Segmenter(language="en", clean=False)


def _by_spacy(pipeline: Any, text: str) -> list[Span]:
    spans = [trimmed(text, sentence.start_char, sentence.end_char) for sentence in pipeline(text).sents]
    return [(start, end) for start, end in spans if start < end]


def trimmed(text: str, start: int, end: int) -> Span:
    """A span without the white space at its ends, as far as it is in the text."""
    start = max(start, 0)
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())


@functools.cache
def _pipeline(name: str) -> Any:
    import spacy

    if name == SPACY:
        pipeline = spacy.blank("en")
        pipeline.add_pipe("sentencizer")
        return pipeline
    try:
        pipeline = spacy.load(name, exclude=["ner", "lemmatizer", "attribute_ruler", "tagger"])
    except (OSError, ValueError, ImportError) as error:
        raise InputError(
            f"there is no spaCy model {name!r}", f"Name one that is installed, or {PYSBD}, or {SPACY}."
        ) from error
    if "parser" in pipeline.pipe_names:
        return pipeline
    if "senter" in pipeline.disabled:
        pipeline.enable_pipe("senter")
    if "senter" not in pipeline.pipe_names:
        raise InputError(f"the spaCy model {name!r} does not split sentences", f"Name another, or {PYSBD}, or {SPACY}.")
    return pipeline
