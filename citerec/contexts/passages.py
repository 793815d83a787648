"""Sentences of a paragraph, and a sentence with `<REF>` in it."""

import itertools
import re
from bisect import bisect_left
from collections.abc import Sequence

from citerec.contexts.callouts import Callout, Spans, Style
from citerec.contexts.s2orc import Paragraph
from citerec.contexts.split import Span, Splitter, trimmed
from citerec.files.text import replaced
from citerec.records import MARKER

ENDS = (".", "?", "!")
"""The ends of usable sentences."""

# A made-up word replaces a citation while sentences are split: "et al." inside one must not end a sentence.
_WORD, _LETTER = "X", "x"
_GLUED_BEFORE = re.compile(r"[\w)\]}”’\"'.,;:!?]$")
_GLUED_AFTER = re.compile(r"[^\W_]")
_ABBREVIATED = re.compile(r"\b(?:et\s+)?al\.(?=\s)|\b(?:cf|cp|resp|approx|viz|vs|e\.g|i\.e)\.(?=\s)")
_QUOTES = str.maketrans(dict.fromkeys('"“”‘', " "))


def sentences_of(whole: str, callouts: Sequence[Callout], split: Splitter) -> list[Span]:
    """The sentences of a paragraph by a splitter; its citations are given in order."""
    return _with_trailing(whole, _split(whole, callouts, split), callouts)


def sentences_given(whole: str, callouts: Sequence[Callout], given: Sequence[Span], paragraph: Paragraph) -> list[Span]:
    """The sentences of a paragraph, as the source gives them for the whole text.

    Empty if they overlap, or leave out a citation of the paragraph: the paragraph must then be split.
    """
    first, last = (bisect_left(given, (place, 0)) for place in (paragraph.start, paragraph.end))
    spans = [
        trimmed(whole, start - paragraph.start, end - paragraph.start)
        for start, end in given[first:last]
        if end <= paragraph.end
    ]
    if any(start < before for (_, before), (start, _) in itertools.pairwise(spans)):
        return []
    sentences = _with_trailing(whole, spans, callouts)
    covered = Spans(sentences)
    return sentences if all(covered(callout.start, callout.end) for callout in callouts) else []


def follows_stop(whole: str, callout: Callout) -> bool:
    """Whether a citation is right after a full stop, as superscripts may be, and belongs to the sentence before it."""
    return callout.start > 0 and whole[callout.start - 1] in ENDS


def with_marker(whole: str, sentence: Span, callout: Callout) -> str:
    """The sentence with `<REF>` for a citation, with spaces between it and words, and before the full stop."""
    before, after = whole[sentence[0] : callout.start], whole[callout.end : sentence[1]]
    if not after and before.endswith(ENDS):
        before, after = before[:-1], before[-1]
    before += " " if _GLUED_BEFORE.search(before) else ""
    after = " " + after if _GLUED_AFTER.match(after) else after
    return " ".join(f"{before}{MARKER}{after}".split())


def folded(whole: str, span: Span) -> str:
    """A sentence on one line; empty if it holds no letter."""
    text = " ".join(whole[slice(*span)].split())
    return text if any(map(str.isalpha, text)) else ""


def _split(whole: str, callouts: Sequence[Callout], split: Splitter) -> list[Span]:
    """Sentences of a text whose citations are masked; lengths stay the same."""
    spans = []
    for callout in callouts:
        is_raised = callout.style is Style.SUPERSCRIPT or follows_stop(whole, callout)
        width = callout.end - callout.start
        spans.append((callout.start, callout.end, " " * width if is_raised else _WORD + _LETTER * (width - 1)))
    blotted = _ABBREVIATED.sub(lambda match: match.group()[:-1] + _LETTER, replaced(whole, spans))
    # A splitter does not split between quotation marks, which PDF extraction makes of apostrophes.
    return split(blotted.translate(_QUOTES))


def _with_trailing(whole: str, spans: Sequence[Span], callouts: Sequence[Callout]) -> list[Span]:
    """Sentences with the masked citations at their end: `… was shown.12 Next …`."""
    trailing = {
        callout.start: callout.end
        for callout in callouts
        if follows_stop(whole, callout) or callout.style is Style.SUPERSCRIPT
    }
    sentences: list[Span] = []
    for start, end in spans:
        done = sentences[-1][1] if sentences else 0
        start, end = trimmed(whole, max(start, done), trailing.get(end, end))
        if start < end:
            sentences.append((start, end))
    return sentences
