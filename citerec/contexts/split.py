"""Splitting a text into sentences: by rule (pysbd), or by spaCy. What cites does not end a sentence."""

import functools
import importlib.metadata
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from citerec.contexts.markers import CitationMarker, Style
from citerec.errors import InputError
from citerec.files.text import replaced
from citerec.records import MARKER

ENDS = (".", "?", "!")
"""The ends of usable sentences."""

PYSBD, SPACY = "pysbd", "spacy"

Span = tuple[int, int]
Splitter = Callable[[str], list[Span]]
"""Returns start and end of each sentence of a text, in order, without white space around them."""

# pysbd takes quadratic time or worse: it gets pieces of some 2,000 characters, cut where a sentence certainly ends.
_SURE_END = r"(?<=[^\W\d_]{4}[.?!]\s)(?=[A-Z])"
_PIECE = re.compile(rf"(?s:.{{1,2000}}(?:\Z|{_SURE_END})|.{{1,8000}}?(?:\Z|{_SURE_END})|.{{8000}})")

# A made-up word replaces a citation while sentences are split: "et al." inside one must not end a sentence.
_WORD, _LETTER = "X", "x"
_GLUED_BEFORE = re.compile(r"[\w)\]}”’\"'.,;:!?]$")
_GLUED_AFTER = re.compile(r"[^\W_]")
_ABBREVIATED = re.compile(r"\b(?:et\s+)?al\.(?=\s)|\b(?:cf|cp|resp|approx|viz|vs|e\.g|i\.e)\.(?=\s)")
_QUOTES = str.maketrans(dict.fromkeys('"“”‘', " "))


@functools.cache
def splitter(name: str = PYSBD) -> Splitter:
    """A splitter by name: `pysbd`; `spacy` for spaCy's rule-based sentencizer; or the name or folder of a spaCy model.

    Raises:
        InputError: There is no such model, or it does not split.
    """
    return _by_rule if name == PYSBD else functools.partial(_by_spacy, _pipeline(name))


def splitter_identity(name: str) -> list[str]:
    """Name and version of a splitter, which decide its sentences."""
    if name in (PYSBD, SPACY):
        return [name, importlib.metadata.version(name)]
    return pipeline_identity(_pipeline(name))


def pipeline_identity(pipeline: Any) -> list[str]:
    """Language, name and version of a spaCy pipeline."""
    return [str(pipeline.meta.get(key)) for key in ("lang", "name", "version")]


def _by_rule(text: str) -> list[Span]:
    """Start and end of each sentence of a text by pysbd."""
    spans: list[Span] = []
    for start, end in map(re.Match.span, _PIECE.finditer(text)):
        done = start
        # Not `segment`: to find the sentences in the text, it compiles an expression for each of them.
        for sentence in _segmenter().processor(text[start:end]).process():
            # pysbd may change a sentence: only sentences found in the text count.
            stripped = sentence.strip()
            first = text.find(stripped, done, end) if stripped else -1
            if first >= 0:
                done = first + len(stripped)
                spans.append((first, done))
    return spans


@functools.cache
def _segmenter() -> Any:
    """The splitter of pysbd for English.

    pysbd makes some 700 expressions of its abbreviations anew for each text. `re` keeps 512, and would compile most of
    them again and again; here each is compiled once.
    """
    from pysbd import Segmenter, abbreviation_replacer

    compiled = functools.lru_cache(4096)(re.compile)  # a text decides with which letters an abbreviation is written
    expressions = {
        "sub": lambda pattern, new, text, flags=0: compiled(pattern, flags).sub(new, text),
        "findall": lambda pattern, text, flags=0: compiled(pattern, flags).findall(text),
    }
    abbreviation_replacer.re = SimpleNamespace(**{**vars(re), **expressions})
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
    others = f"Name another, or {PYSBD}, or {SPACY}."
    pipeline = spacy_model(name, others, "ner", "lemmatizer", "attribute_ruler", "tagger")
    if "parser" not in pipeline.pipe_names:
        if "senter" not in [*pipeline.disabled, *pipeline.pipe_names]:
            raise InputError(f"the spaCy model {name} does not split sentences", others)
        pipeline.enable_pipe("senter")
    return pipeline


def spacy_model(name: str, remedy: str, *excluded: str) -> Any:
    """A spaCy model by name or folder, without some of its parts.

    Raises:
        InputError: There is no such model, or it cannot be loaded.
    """
    import spacy

    try:
        return spacy.load(name, exclude=excluded)
    except (OSError, ValueError, ImportError) as error:
        reason = re.sub(r"^\[E\d+\] ", "", str(error)).partition(". ")[0].partition("\n")[0]
        raise InputError(f"the spaCy model {name} cannot be loaded ({reason})", remedy) from error


# Sentences that cite


def sentences_of(whole: str, markers: Sequence[CitationMarker], split: Splitter) -> list[Span]:
    """The sentences of a paragraph by a splitter; its citations, given in order, are masked for it."""
    masks = []
    for marker in markers:
        width = marker.end - marker.start
        word = " " * width if _is_raised(whole, marker) else _WORD + _LETTER * (width - 1)
        masks.append((marker.start, marker.end, word))
    blotted = _ABBREVIATED.sub(lambda match: match.group()[:-1] + _LETTER, replaced(whole, masks))
    # A splitter does not split between quotation marks, which PDF extraction makes of apostrophes.
    return with_trailing(whole, split(blotted.translate(_QUOTES)), markers)


def with_trailing(whole: str, spans: Sequence[Span], markers: Sequence[CitationMarker]) -> list[Span]:
    """Sentences with the raised citations at their end: `… was shown.12 Next …`."""
    trailing = {marker.start: marker.end for marker in markers if _is_raised(whole, marker)}
    sentences: list[Span] = []
    for start, end in spans:
        done = sentences[-1][1] if sentences else 0
        start, end = trimmed(whole, max(start, done), trailing.get(end, end))
        if start < end:
            sentences.append((start, end))
    return sentences


def _is_raised(whole: str, marker: CitationMarker) -> bool:
    return marker.style is Style.SUPERSCRIPT or follows_stop(whole, marker)


def follows_stop(whole: str, marker: CitationMarker) -> bool:
    """Whether a citation is right after a full stop, as superscripts may be, and belongs to the sentence before it."""
    return marker.start > 0 and whole[marker.start - 1] in ENDS


def with_marker(whole: str, sentence: Span, marker: CitationMarker) -> str:
    """The sentence with `<REF>` for a citation, with spaces between it and words, and before the full stop."""
    before, after = whole[sentence[0] : marker.start], whole[marker.end : sentence[1]]
    if not after and before.endswith(ENDS):
        before, after = before[:-1], before[-1]
    before += " " if _GLUED_BEFORE.search(before) else ""
    after = " " + after if _GLUED_AFTER.match(after) else after
    return " ".join(f"{before}{MARKER}{after}".split())


def folded(whole: str, span: Span) -> str:
    """A sentence on one line; empty if it holds no letter."""
    text = " ".join(whole[slice(*span)].split())
    return text if any(map(str.isalpha, text)) else ""
