"""A full text read once: its paragraphs with their citations, sentences and sections."""

import functools
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from typing import Any

from citerec.contexts.callouts import Callout, Spans, Style, find_callouts
from citerec.contexts.s2orc import BibRef, FullText, Paragraph
from citerec.contexts.sections import Section, with_number
from citerec.contexts.split import Span, folded, sentences_of, splitter, trimmed, with_trailing

_ENTRY_ID = re.compile(r"(\D*)(\d+)")
_DASHES = frozenset("–—‐-−")
# What the bib refs of a paper look like, with the character before each.
_IN_PARENTHESES = re.compile(r".?\(\s?\d{1,3}\s?[,;)–-]?")
_NAMED = re.compile(r"[^\W\d_]{2}|(?:1[6-9]|20)\d\d")
_RAISED = re.compile(r"[^\s\[(]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹][\d⁰¹²³⁴⁵⁶⁷⁸⁹,–-]*")


class Document:
    """A full text, its headlines with their numbers, and the citations of its paragraphs.

    Paragraphs are named by their place in `paragraphs`; of two that overlap, the first counts.

    Args:
        text: The full text.
        split: The sentence splitter for sources without sentences.
    """

    def __init__(self, text: FullText, split: str = "pysbd") -> None:
        self.text, self._split = text, split
        self.paragraphs: list[Paragraph] = []
        for paragraph in text.paragraphs:
            if not self.paragraphs or paragraph.start >= self.paragraphs[-1].end:
                self.paragraphs.append(paragraph)
        self._starts = [ref.start for ref in text.bib_refs]
        self._callouts: dict[int, list[Callout]] = {}

    @functools.cached_property
    def words(self) -> list[int]:
        """How many words each paragraph has."""
        return [len(self.whole(place).split()) for place in range(len(self.paragraphs))]

    def sections(self) -> list[Section]:
        """Its sections one after another; text before the first headline is in none."""
        headlines = self.text.headlines
        starts = [headline.start for headline in headlines]
        sections = [with_number(self.text.text[one.start : one.end], one.number) for one in headlines]
        for place, paragraph in enumerate(self.paragraphs):
            if at := bisect_right(starts, paragraph.start):
                sections[at - 1].paragraphs.append(place)
        return sections

    def whole(self, place: int) -> str:
        """The text of a paragraph."""
        paragraph = self.paragraphs[place]
        return self.text.text[paragraph.start : paragraph.end]

    def refs(self, place: int) -> Sequence[BibRef]:
        """The bib refs within a paragraph, in order."""
        paragraph = self.paragraphs[place]
        first, last = (bisect_left(self._starts, end) for end in (paragraph.start, paragraph.end))
        return [ref for ref in self.text.bib_refs[first:last] if ref.end <= paragraph.end]

    def _hints(self, place: int) -> list[Span]:
        """The places of the bib refs in a paragraph."""
        start = self.paragraphs[place].start
        return [(ref.start - start, ref.end - start) for ref in self.refs(place)]

    def callouts(self, place: int) -> list[Callout]:
        """The callouts of a paragraph in order, mangled ones too."""
        if place not in self._callouts:
            self._callouts[place] = find_callouts(self.whole(place), self._hints(place), self._believed)
        return self._callouts[place]

    def citations(self, place: int) -> list[tuple[Callout, tuple[str, ...]]]:
        """The citations of a paragraph in order, each with the ids of its bib entries.

        What has no bib ref counts if it is sound, and written in a style that the paper uses.
        """
        hinted = Spans(self._hints(place))
        return [
            (callout, self.entry_ids(place, callout))
            for callout in self.callouts(place)
            if callout.is_sound or hinted(callout.start, callout.end)
        ]

    def sentences(self, place: int) -> list[Span]:
        """The places of the sentences in a paragraph: those of the source, or else by the splitter."""
        given = self._given_sentences(place)
        return given or sentences_of(self.whole(place), self.callouts(place), splitter(self._split))

    def _given_sentences(self, place: int) -> list[Span]:
        """The sentences of the source; none if they overlap, or leave out a citation."""
        whole, paragraph, given = self.whole(place), self.paragraphs[place], self.text.sentences or ()
        first, last = (bisect_left(given, (end, 0)) for end in (paragraph.start, paragraph.end))
        inside = [span for span in given[first:last] if span[1] <= paragraph.end]
        spans = [trimmed(whole, start - paragraph.start, end - paragraph.start) for start, end in inside]
        if any(start < before for (_, before), (start, _) in itertools.pairwise(spans)):
            return []
        sentences = with_trailing(whole, spans, self.callouts(place))
        covered = Spans(sentences)
        return sentences if all(covered(callout.start, callout.end) for callout in self.callouts(place)) else []

    def entry_ids(self, place: int, callout: Callout) -> tuple[str, ...]:
        """The bib entries of a callout: those of the bib refs that it overlaps, and those within its range."""
        start, end = (self.paragraphs[place].start + at for at in (callout.start, callout.end))
        near = (ref.entry_id or "" for ref in self.refs(place) if start < ref.end and ref.start < end)
        ids = [entry_id for entry_id in near if entry_id in self.text.bib_entries]
        if self._shift and 0 < len(set(ids)) < callout.works:
            prefix, shift = self._shift
            ids = [*(f"{prefix}{number + shift}" for number in callout.numbers), *ids]
        return tuple(dict.fromkeys(entry_id for entry_id in ids if entry_id in self.text.bib_entries))

    def papers_cited(self, place: int) -> Set[str]:
        """The papers to which the bib refs of a paragraph lead, including those of a range between two of them."""
        refs = self.refs(place)
        if any(not _DASHES.isdisjoint(self.text.text[ref.start : ref.end + 2]) for ref in refs):
            return self._papers
        return set(self.text.papers_of(refs))

    def cited_before(self, place: int) -> tuple[str, ...]:
        """The papers cited before a character of the text, once for each bib ref that leads to one; never itself."""
        refs = (ref for ref in self.text.bib_refs[: bisect_left(self._starts, place)] if ref.end <= place)
        return tuple(paper_id for paper_id in self.text.papers_of(refs) if paper_id != self.text.paper_id)

    def as_json(self, sections: Sequence[Section]) -> list[dict[str, Any]]:
        """Sections as JSON: headline, number, paragraphs as lists of sentences, the sections in it."""
        return [
            {
                "headline": section.headline,
                "number": section.number,
                "paragraphs": [
                    [sentence for span in self.sentences(place) if (sentence := folded(self.whole(place), span))]
                    for place in section.paragraphs
                    if self.words[place]
                ],
                "sections": self.as_json(section.sections),
            }
            for section in sections
        ]

    @functools.cached_property
    def _papers(self) -> Set[str]:
        return {entry.paper_id for entry in self.text.bib_entries.values() if entry.paper_id}

    @functools.cached_property
    def _shift(self) -> tuple[str, int] | None:
        """What makes an entry's id of its number: the letters before it, and how much is added to it.

        None unless all bib refs with one number agree: ids count from 0 or from 1.
        """
        shifts: set[tuple[str, int]] = set()
        for ref in self.text.bib_refs:
            digits = re.findall(r"\d+", self.text.text[ref.start : ref.end]) if ref.end - ref.start < 9 else []
            if len(digits) == 1 and (match := _ENTRY_ID.fullmatch(ref.entry_id or "")):
                shifts.add((match[1], int(match[2]) - int(digits[0])))
        return shifts.pop() if len(shifts) == 1 else None

    @functools.cached_property
    def _believed(self) -> frozenset[Style]:
        """The styles of its bib refs, which the paper may use. `(3)` may be an equation, `(Paris, 1998)` a fair."""
        surfaces = [self.text.text[max(0, ref.start - 1) : ref.end].strip() for ref in self.text.bib_refs]
        years = not surfaces or any(map(_NAMED.search, surfaces))
        used = {
            Style.AUTHOR_YEAR_PARENTHESES: years,
            Style.AUTHOR_YEAR_TEXT: years,
            Style.NUMBERED_PARENTHESES: any(map(_IN_PARENTHESES.match, surfaces)),
            Style.SUPERSCRIPT: any(map(_RAISED.fullmatch, surfaces)),
        }
        return frozenset(style for style in Style if used.get(style, True))
