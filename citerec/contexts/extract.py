"""From full texts to contexts: each usable citing sentence, with `<REF>` where it cites (Maharjan 3.2.2)."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from citerec.contexts.callout import Callout, Style
from citerec.contexts.callouts import find_callouts
from citerec.contexts.s2orc import BibRef, FullText, Paragraph
from citerec.contexts.split import Span, Splitter, splitter
from citerec.contexts.vocabulary import vocabulary
from citerec.records import MARKER, Context

# A made-up word stands for a citation while sentences are split: "et al." inside one must not end a sentence.
_WORD, _LETTER = "X", "x"
_GLUED_BEFORE = re.compile(r"[\w)\]}”’\"'.,;:!?]$")
_GLUED_AFTER = re.compile(r"[^\W_]")
_ENDS = (".", "?", "!")
_FOOTNOTE_DIGITS = frozenset("0123456789⁰¹²³⁴⁵⁶⁷⁸⁹")
_FEWEST_WORDS = 3  # besides the citation
_ABBREVIATED = re.compile(r"\b(?:et\s+)?al\.(?=\s)|\b(?:cf|cp|resp|approx|viz|vs|e\.g|i\.e)\.(?=\s)")
# A word of three letters or more and a full stop, with a capital after it.
_INNER_END = re.compile(r"(?<![^\W_])([^\W\d_]{3,40})[.?!][\"”’)]{0,2}(?:\s+|(?=[A-Z][a-z]))(?=[A-Z])")
_DEBRIS = re.compile(
    r"\(\s?\)|\|[^\s|]{0,20}\||\|\s\|"  # empty brackets, bars: a formula
    r"|\b(?:Table|Figure|Fig\.)\s\d{1,3}\s?:"  # a caption
    r"|\b[a-z]{2,30}\d{1,2}\s[A-Z][a-z]"  # a footnote spliced into a word
    r"|\b((?!Xxx)[A-Z]\w{2,30}\s\w{1,30})\s\1\b"  # a heading that the text takes up
)
_QUOTES = str.maketrans(dict.fromkeys('"“”‘', " "))
_ENTRY_ID = re.compile(r"(\D*)(\d+)")


class Fate(StrEnum):
    """What becomes of a sentence that cites; the first that applies."""

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


@dataclass(slots=True)
class Tally:
    """What extraction has seen.

    Attributes:
        texts: Full texts.
        paragraphs: Paragraphs that cite a wanted paper.
        sentences: Sentences that hold a citation, in those paragraphs.
        fates: What became of them.
        contexts: Contexts made.
    """

    texts: int = 0
    paragraphs: int = 0
    sentences: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    contexts: int = 0

    def as_counts(self) -> dict[str, Any]:
        """What was seen, as JSON has it."""
        return {
            "texts": self.texts,
            "paragraphs": self.paragraphs,
            "sentences": self.sentences,
            "fates": dict(self.fates),
            "contexts": self.contexts,
        }


@dataclass(frozen=True, slots=True)
class Rules:
    """Which sentences make contexts.

    Attributes:
        single: Whether a sentence must hold exactly one citation, to one paper: the benchmark's rule. Else each
            citation makes a context, with all matched papers that share its marker.
        split: What splits sentences where the source does not tell them.
    """

    single: bool = True
    split: str = "pysbd"


def extract_contexts(
    text: FullText,
    rules: Rules | None = None,
    *,
    is_wanted: Callable[[str], bool] = lambda _: True,
    tally: Tally | None = None,
) -> Iterator[Context]:
    """The contexts of a full text, in order.

    A sentence is usable if it ends in a full stop, question or exclamation mark, does not begin as a footnote does, and
    its citation is in a regular style and leads to a matched paper (Maharjan 3.2.2, steps 2 to 4).

    Args:
        text: The full text.
        rules: Which sentences to take.
        is_wanted: Whether contexts that cite a paper are asked for: paragraphs without such are passed over.
        tally: Told what was seen.
    """
    rules, tally = rules or Rules(), tally if tally is not None else Tally()
    tally.texts += 1
    document = _Document(text)
    seen: set[int] = set()
    for paragraph in text.paragraphs:
        refs = document.refs_in(paragraph)
        if not any(map(is_wanted, document.papers_of(refs))):
            continue
        tally.paragraphs += 1
        for context in _contexts_of(paragraph, document, refs, rules, tally):
            # Paragraphs may overlap: a citation is one context all the same.
            if context.start not in seen and any(map(is_wanted, context.cited_ids)):
                seen.add(context.start or 0)
                tally.contexts += 1
                yield context


def fate_of_text(context: Context, *, single: bool = True) -> Fate:
    """What the sentence of a context is worth that comes from elsewhere, by the same rules."""
    callouts = find_callouts(context.text)
    text = context.text
    at = text.index(MARKER)
    marker = Callout(at, at + len(MARKER), Style.NUMBERED_BRACKETS, 1)
    if not text.endswith(_ENDS):
        return Fate.NO_END
    if text[0] in _FOOTNOTE_DIGITS:
        return Fate.FOOTNOTE
    if _is_fragment(text, (0, len(text)), [marker]):
        return Fate.FRAGMENT
    if fault := _fault_of(_without(text, (0, len(text)), callouts)):
        return fault
    if single and not all(callout.is_sound for callout in callouts):
        return Fate.MANGLED
    if single and callouts:
        return Fate.SEVERAL_CITATIONS
    return Fate.GROUP if single and len(context.cited_ids) > 1 else Fate.USABLE


class _Document:
    """A full text with what all its paragraphs share."""

    def __init__(self, text: FullText) -> None:
        self.text = text
        self._starts = [ref.start for ref in text.bib_refs]
        self._number_ids: Callable[[int], str | None] | None = None
        self.believed = _believed(text)

    def refs_in(self, paragraph: Paragraph) -> Sequence[BibRef]:
        """The bib refs within a paragraph."""
        first = bisect_left(self._starts, paragraph.start)
        last = bisect_left(self._starts, paragraph.end)
        return [ref for ref in self.text.bib_refs[first:last] if ref.end <= paragraph.end]

    def papers_of(self, refs: Sequence[BibRef]) -> set[str]:
        """The papers to which bib refs lead; those of a range between two of them too."""
        found = {entry.paper_id for ref in refs if (entry := self.text.bib_entries.get(ref.entry_id or ""))}
        if any(character in self.text.text[ref.start : ref.end + 2] for ref in refs for character in "–—‐-−"):
            found |= {entry.paper_id for entry in self.text.bib_entries.values()}
        return {paper_id for paper_id in found if paper_id}

    def entry_ids(self, callout: Callout, refs: Sequence[BibRef]) -> tuple[str, ...]:
        """The bib entries of a callout: those of its bib refs, and those that its range leaves between them."""
        given = [ref.entry_id for ref in refs if ref.entry_id in self.text.bib_entries and ref.entry_id]
        if not given or callout.works <= len(set(given)) or not callout.numbers:
            return tuple(dict.fromkeys(given))
        numbered = [self._id_of(number) for number in callout.numbers]
        return tuple(dict.fromkeys([*given, *(entry_id for entry_id in numbered if entry_id)]))

    def _id_of(self, number: int) -> str | None:
        if self._number_ids is None:
            self._number_ids = self._learnt()
        return self._number_ids(number)

    def _learnt(self) -> Callable[[int], str | None]:
        """How numbers lead to entries, where all bib refs with one number agree on it: ids count from 0 or from 1."""
        shifts: set[tuple[str, int]] = set()
        for ref in self.text.bib_refs:
            digits = re.findall(r"\d+", self.text.text[ref.start : ref.end]) if ref.end - ref.start < 9 else []
            if len(digits) == 1 and (match := _ENTRY_ID.fullmatch(ref.entry_id or "")):
                shifts.add((match[1], int(match[2]) - int(digits[0])))
        if len(shifts) != 1:
            return lambda _: None
        prefix, shift = shifts.pop()
        return lambda number: wanted if (wanted := f"{prefix}{number + shift}") in self.text.bib_entries else None


def _believed(text: FullText) -> frozenset[Style]:
    """The styles that this paper may use: a number in parentheses, or a raised one, only where a bib ref is one."""
    surfaces = [text.text[max(0, ref.start - 1) : ref.end].strip() for ref in text.bib_refs]
    in_parentheses = any(re.match(r".?\(\s?\d{1,3}\s?[,;)–-]?", surface) for surface in surfaces)
    raised = any(re.fullmatch(r"[^\s\[(]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹][\d⁰¹²³⁴⁵⁶⁷⁸⁹,–-]*", surface) for surface in surfaces)
    unused = {Style.NUMBERED_PARENTHESES: in_parentheses, Style.SUPERSCRIPT: raised}
    return frozenset(style for style in Style if unused.get(style, True))


def _contexts_of(
    paragraph: Paragraph, document: _Document, refs: Sequence[BibRef], rules: Rules, tally: Tally
) -> Iterator[Context]:
    whole = document.text.text[paragraph.start : paragraph.end]
    hints = [(ref.start - paragraph.start, ref.end - paragraph.start) for ref in refs]
    callouts = find_callouts(whole, hints, document.believed)
    sentences = _sentences(whole, callouts, document.text.sentences, paragraph, rules)
    for at, sentence in enumerate(sentences):
        here = [callout for callout in callouts if callout.start < sentence[1] and sentence[0] < callout.end]
        tally.sentences += bool(here)
        for fate, callout, cited in _judged(whole, sentence, here, document, refs, paragraph, rules):
            tally.fates[fate.value] += 1
            if fate is Fate.USABLE and callout:
                yield Context(
                    text=_with_marker(whole, sentence, callout),
                    before=_folded(whole, sentences[at - 1]) if at else "",
                    after=_folded(whole, sentences[at + 1]) if at + 1 < len(sentences) else "",
                    context_id=f"{document.text.paper_id}-{paragraph.start + callout.start}",
                    citing_id=document.text.paper_id,
                    cited_ids=cited,
                    section=paragraph.section,
                    source="s2orc",
                    marker=whole[callout.start : callout.end],
                    style=callout.style,
                    start=paragraph.start + callout.start,
                    end=paragraph.start + callout.end,
                )


def _judged(
    whole: str,
    sentence: Span,
    here: Sequence[Callout],
    document: _Document,
    refs: Sequence[BibRef],
    paragraph: Paragraph,
    rules: Rules,
) -> Iterator[tuple[Fate, Callout | None, tuple[str, ...]]]:
    """What becomes of a sentence that cites, or of each citation in it where several may stand there."""
    if not here:
        return
    start, end = sentence
    if here[-1].end == end and _follows_stop(whole, here[-1]):
        end = here[-1].start
    if not whole[start:end].endswith(_ENDS):
        yield Fate.NO_END, None, ()
    elif whole[start] in _FOOTNOTE_DIGITS:
        yield Fate.FOOTNOTE, None, ()
    elif _is_fragment(whole, sentence, here):
        yield Fate.FRAGMENT, None, ()
    elif fault := _fault_of(_without(whole, sentence, here)):
        yield fault, None, ()
    elif rules.single and not all(_is_whole(callout, sentence) for callout in here):
        yield Fate.MANGLED, None, ()
    elif rules.single and len(here) > 1:
        yield Fate.SEVERAL_CITATIONS, None, ()
    else:
        for callout in here:
            yield _judged_callout(callout, sentence, document, refs, paragraph, rules)


def _judged_callout(
    callout: Callout,
    sentence: Span,
    document: _Document,
    refs: Sequence[BibRef],
    paragraph: Paragraph,
    rules: Rules,
) -> tuple[Fate, Callout, tuple[str, ...]]:
    if not _is_whole(callout, sentence):
        return Fate.MANGLED, callout, ()
    start, end = paragraph.start + callout.start, paragraph.start + callout.end
    entry_ids = document.entry_ids(callout, [ref for ref in refs if ref.start < end and start < ref.end])
    if rules.single and (callout.works > 1 or len(entry_ids) > 1):
        return Fate.GROUP, callout, ()
    if not entry_ids:
        return Fate.UNRESOLVED, callout, ()
    papers = (document.text.bib_entries[entry_id].paper_id for entry_id in entry_ids)
    cited = tuple(dict.fromkeys(paper_id for paper_id in papers if paper_id and paper_id != document.text.paper_id))
    return (Fate.USABLE if cited else Fate.UNMATCHED), callout, cited


def _is_fragment(whole: str, sentence: Span, here: Sequence[Callout]) -> bool:
    """Whether a splitter's mistake left part of a sentence (ours: the benchmark checks by hand)."""
    start, end = sentence
    if whole[start].islower() and start != here[0].start:  # a citation may begin small: "van der Berg (2001)"
        return True
    cited = sum(len(whole[callout.start : callout.end].split()) for callout in here)
    return len(whole[start:end].split()) - cited < _FEWEST_WORDS


def _without(whole: str, sentence: Span, here: Sequence[Callout]) -> str:
    """A sentence whose citations a made-up word stands for."""
    parts, at = [], sentence[0]
    for callout in here:
        is_last = callout.end == sentence[1] and _follows_stop(whole, callout)
        parts += [whole[at : callout.start], "" if is_last else _WORD + 2 * _LETTER]
        at = callout.end
    return "".join([*parts, whole[at : sentence[1]]])


def _fault_of(text: str) -> Fate | None:
    """What spoils a sentence that the benchmark would find by hand (ours)."""
    ends = (match[1].lower() for match in _INNER_END.finditer(text))
    if any(word not in vocabulary("abbreviations") for word in ends):
        return Fate.RUN_ON
    return Fate.DEBRIS if _DEBRIS.search(text) else None


def _is_whole(callout: Callout, sentence: Span) -> bool:
    return callout.is_sound and sentence[0] <= callout.start and callout.end <= sentence[1]


def _follows_stop(whole: str, callout: Callout) -> bool:
    """Whether a citation stands right after a full stop, as superscripts do, and belongs to the sentence before it."""
    return callout.start > 0 and whole[callout.start - 1] in _ENDS


def _sentences(
    whole: str, callouts: Sequence[Callout], given: Sequence[Span] | None, paragraph: Paragraph, rules: Rules
) -> list[Span]:
    """The sentences of a paragraph: those that the source gives, or else those of the splitter."""
    if given is None:
        spans = _split(whole, callouts, splitter(rules.split))
    else:
        first = bisect_left(given, (paragraph.start, 0))
        last = bisect_left(given, (paragraph.end, 0))
        spans = [
            _trimmed(whole, start - paragraph.start, end - paragraph.start)
            for start, end in given[first:last]
            if end <= paragraph.end
        ]
    return _with_trailing(whole, spans, callouts)


def _split(whole: str, callouts: Sequence[Callout], split: Splitter) -> list[Span]:
    """Sentences of a text whose citations are blotted out, each as long as it was."""
    parts: list[str] = []
    at = 0
    for callout in callouts:
        is_raised = callout.style is Style.SUPERSCRIPT or _follows_stop(whole, callout)
        width = callout.end - callout.start
        parts += [whole[at : callout.start], " " * width if is_raised else _WORD + _LETTER * (width - 1)]
        at = callout.end
    blotted = _ABBREVIATED.sub(lambda match: match.group()[:-1] + _LETTER, "".join([*parts, whole[at:]]))
    # A splitter holds together what stands between quotation marks; extraction makes such of apostrophes.
    return split(blotted.translate(_QUOTES))


def _with_trailing(whole: str, spans: Sequence[Span], callouts: Sequence[Callout]) -> list[Span]:
    """Sentences with the blotted citations at their end: `… was shown.12 Next …`."""
    trailing = {
        callout.start: callout.end
        for callout in callouts
        if _follows_stop(whole, callout) or callout.style is Style.SUPERSCRIPT
    }
    sentences: list[Span] = []
    for start, end in spans:
        done = sentences[-1][1] if sentences else 0
        start, end = _trimmed(whole, max(start, done), trailing.get(end, end))
        if start < end:
            sentences.append((start, end))
    return sentences


def _trimmed(whole: str, start: int, end: int) -> Span:
    start, end = max(start, 0), min(end, len(whole))
    while start < end and whole[start].isspace():
        start += 1
    while start < end and whole[end - 1].isspace():
        end -= 1
    return start, end


def _with_marker(whole: str, sentence: Span, callout: Callout) -> str:
    """The sentence with `<REF>` for a citation, parted by spaces from words; before the full stop that it followed."""
    before, after = whole[sentence[0] : callout.start], whole[callout.end : sentence[1]]
    if not after and before.endswith(_ENDS):
        before, after = before[:-1], before[-1]
    before += " " if _GLUED_BEFORE.search(before) else ""
    after = " " + after if _GLUED_AFTER.match(after) else after
    return " ".join(f"{before}{MARKER}{after}".split())


def _folded(whole: str, span: Span) -> str:
    text = " ".join(whole[slice(*span)].split())
    return text if any(map(str.isalpha, text)) else ""
