"""A full text as sections with their paragraphs, sentences at the leaves."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from citerec.contexts.callouts import Callout, Spans, find_callouts
from citerec.contexts.hierarchy import Section, with_number
from citerec.contexts.passages import folded, sentences_given, sentences_of
from citerec.contexts.s2orc import BibRef, FullText, Paragraph
from citerec.contexts.split import Span, splitter


class Document:
    """A full text, its headlines with their numbers, and the citations of its paragraphs.

    Args:
        text: The full text.
        split: The sentence splitter for sources without sentences.
    """

    def __init__(self, text: FullText, split: str = "pysbd") -> None:
        self.text, self._split = text, split
        self.paragraphs: list[Paragraph] = []
        for paragraph in text.paragraphs:
            if not self.paragraphs or paragraph.start >= self.paragraphs[-1].end:  # of two that overlap the first
                self.paragraphs.append(paragraph)
        self.words = [len(self.whole(place).split()) for place in range(len(self.paragraphs))]

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

    def citations(self, place: int) -> list[tuple[Callout, tuple[str, ...]]]:
        """The citations of a paragraph in order, each with the ids of its bib entries.

        A citation without a bib ref counts if it is written in the style of one that has one.
        """
        start, end = self.paragraphs[place].start, self.paragraphs[place].end
        refs = [ref for ref in self.text.bib_refs if start <= ref.start and ref.end <= end]
        hints = [(ref.start - start, ref.end - start) for ref in refs]
        hinted = Spans(hints)
        callouts = find_callouts(self.whole(place), hints)
        marked = {callout.start for callout in callouts if hinted(callout.start, callout.end)}
        styles = {callout.style for callout in callouts if callout.start in marked and callout.is_sound}
        return [
            (callout, _entry_ids(callout, refs, start))
            for callout in callouts
            if callout.start in marked or callout.style in styles
        ]

    def sentences(self, place: int) -> list[Span]:
        """The places of the sentences in a paragraph."""
        whole, callouts = self.whole(place), [callout for callout, _ in self.citations(place)]
        given = sentences_given(whole, callouts, self.text.sentences or (), self.paragraphs[place])
        return given or sentences_of(whole, callouts, splitter(self._split))

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


def _entry_ids(callout: Callout, refs: Sequence[BibRef], start: int) -> tuple[str, ...]:
    """The bib entries of the bib refs that a citation overlaps, in order."""
    here = (ref for ref in refs if ref.start - start < callout.end and callout.start < ref.end - start)
    return tuple(dict.fromkeys(ref.entry_id for ref in here if ref.entry_id))
