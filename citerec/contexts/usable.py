"""Which sentences are usable: the benchmark's rules (Maharjan 3.2.2, 3 and 4), and ours for its manual checks."""

import re
from collections.abc import Sequence
from enum import StrEnum

from citerec.contexts.author_year import vocabulary
from citerec.contexts.callouts import Callout, Style, find_callouts
from citerec.contexts.passages import ENDS, follows_stop
from citerec.contexts.split import Span
from citerec.files.text import replaced
from citerec.records import MARKER, Context

OUTCOMES = "fates"
"""The key of counts of outcomes in files, which keeps an older word."""

_FOOTNOTE_DIGITS = frozenset("0123456789⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 3000  # characters: longer ones are tables or lists of references
_FEWEST_WORDS = 3  # besides the citation
_CITED = "Xxx"  # replaces a citation while the rest is checked
# A word of three letters or more and a full stop, with a capital after it.
_INNER_END = re.compile(r"(?<![^\W_])([^\W\d_]{3,40})[.?!][\"”’)]{0,2}(?:\s+|(?=[A-Z][a-z]))(?=[A-Z])")
_DEBRIS = re.compile(
    r"\(\s?\)|\|[^\s|]{0,20}\||\|\s\|"  # empty brackets, bars: a formula
    r"|\b(?:Table|Figure|Fig\.)\s\d{1,3}\s?:"  # a caption
    r"|\b[a-z]{2,30}\d{1,2}\s[A-Z][a-z]"  # a footnote spliced into a word
    rf"|\b((?!{_CITED})[A-Z]\w{{2,30}}\s\w{{1,30}})\s\1\b"  # a heading that the text repeats
)


class Outcome(StrEnum):
    """The outcome of a citing sentence: the first that applies."""

    USABLE = "usable"
    NO_END = "it does not end in . ? or !"
    FOOTNOTE = "it begins with a digit, as a footnote does"
    FRAGMENT = "it begins with a small letter, or has hardly a word: part of a sentence"
    RUN_ON = "several sentences run together in it"
    DEBRIS = "debris of a formula, a table or a footnote stands in it"
    MANGLED = "a citation in it is mangled"
    SEVERAL_CITATIONS = "it holds several citations"
    GROUP = "its citation is of several papers"
    UNRESOLVED = "its citation leads to no bib entry"
    UNMATCHED = "its bib entry is matched to no paper"


def outcome_of_sentence(whole: str, sentence: Span, here: Sequence[Callout], *, single: bool) -> Outcome | None:
    """Why a sentence of a paragraph is not usable, regardless of the papers it cites; None if nothing is wrong with it.

    Args:
        whole: The paragraph.
        sentence: The sentence in it.
        here: Its citations, one or more.
        single: Whether it must hold exactly one.
    """
    start, end = sentence
    if end - start > _LONGEST:
        return Outcome.DEBRIS
    if here[-1].end == end and follows_stop(whole, here[-1]):
        end = here[-1].start
    if not whole[start:end].endswith(ENDS):
        return Outcome.NO_END
    if whole[start] in _FOOTNOTE_DIGITS:
        return Outcome.FOOTNOTE
    if _is_fragment(whole, sentence, here):
        return Outcome.FRAGMENT
    if fault := _fault_of(_without(whole, sentence, here)):
        return fault
    if single and not all(is_whole(callout, sentence) for callout in here):
        return Outcome.MANGLED
    return Outcome.SEVERAL_CITATIONS if single and len(here) > 1 else None


def outcome_of_context(context: Context, *, single: bool = True) -> Outcome:
    """The outcome of the sentence of a given context, by the same rules; `<REF>` is one of its citations."""
    start = context.text.index(MARKER)
    marker = Callout(start, start + len(MARKER), Style.NUMBERED_BRACKETS, 1)
    others = [callout for callout in find_callouts(context.text) if not _overlap(callout, marker)]
    here = sorted([*others, marker], key=lambda callout: callout.start)
    outcome = outcome_of_sentence(context.text, (0, len(context.text)), here, single=single)
    return outcome or (Outcome.GROUP if single and len(context.cited_ids) > 1 else Outcome.USABLE)


def is_whole(callout: Callout, sentence: Span) -> bool:
    """Whether a citation is sound and within a sentence."""
    return callout.is_sound and sentence[0] <= callout.start and callout.end <= sentence[1]


def _overlap(one: Callout, other: Callout) -> bool:
    return one.start < other.end and other.start < one.end


def _is_fragment(whole: str, sentence: Span, here: Sequence[Callout]) -> bool:
    """Whether a splitter's mistake left part of a sentence (ours: the benchmark checks by hand)."""
    start, end = sentence
    if whole[start].islower() and start != here[0].start:  # a citation may begin small: "van der Berg (2001)"
        return True
    cited = sum(len(whole[callout.start : callout.end].split()) for callout in here)
    return len(whole[start:end].split()) - cited < _FEWEST_WORDS


def _without(whole: str, sentence: Span, here: Sequence[Callout]) -> str:
    """A sentence with a made-up word for each citation."""
    start, end = sentence
    words = ("" if callout.end == end and follows_stop(whole, callout) else _CITED for callout in here)
    spans = ((callout.start, callout.end, word) for callout, word in zip(here, words, strict=True))
    return replaced(whole, spans, start, end)


def _fault_of(text: str) -> Outcome | None:
    """A fault of a sentence that the benchmark would find by hand (ours), or None."""
    ends = (match[1].lower() for match in _INNER_END.finditer(text))
    if any(word not in vocabulary("abbreviations") for word in ends):
        return Outcome.RUN_ON
    return Outcome.DEBRIS if _DEBRIS.search(text) else None
