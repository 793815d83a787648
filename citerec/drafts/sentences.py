"""The sentences of a draft, without their citations; and where they stand in its files."""

import re

from citerec.contexts.markers import CitationMarker, Spans, Style, find_markers
from citerec.contexts.split import sentences_of, splitter
from citerec.discourse.worthiness import Sentence
from citerec.drafts.base import Paragraph, Place, Source
from citerec.files.text import names_in
from citerec.records import MARKER

# How `Paragraph` shows citations and places.
_CITATION = re.compile(rf"\\cite\{{[^{{}}]*\}}|\[@[^\[\]]*\]|{re.escape(MARKER)}")
_SIGN = "\N{OBJECT REPLACEMENT CHARACTER}"
_KEY = re.compile(r"@([\w:.#$%&+?<>~/-]*\w)")
_WRITTEN = (Style.AUTHOR_YEAR_PARENTHESES, Style.AUTHOR_YEAR_TEXT, Style.NUMBERED_BRACKETS)
_BEGINNINGS = (12, 6, 3)  # words by which a sentence is found again in its file


def draft_sentences(text: str) -> list[Sentence]:
    """The sentences of a paragraph without its citations, those that are written by hand included: "(Lee, 2004)"."""
    commands = [CitationMarker(*match.span(), Style.NUMBERED_BRACKETS, 1) for match in _CITATION.finditer(text)]
    taken = Spans((one.start, one.end) for one in commands)
    written = [one for one in find_markers(text, believed=_WRITTEN) if not taken(one.start, one.end)]
    markers = sorted([*commands, *written], key=lambda one: one.start)
    return [
        Sentence(
            " ".join(_CITATION.sub(" ", text[start:end]).split()),
            any(start <= one.start < end for one in markers),
            tuple(key for match in _CITATION.finditer(text, start, end) for key in _keys(match[0])),
            " ".join(_CITATION.sub(" ", _CITATION.sub(_SIGN, text[start:end], count=1)).replace(_SIGN, MARKER).split()),
        )
        for start, end in sentences_of(text, markers, splitter())
    ]


def _keys(citation: str) -> list[str]:
    """The keys of a citation in the running text."""
    return names_in(citation[6:-1]) if citation.startswith("\\cite") else _KEY.findall(citation)


def sentence_place(source: Source, paragraph: Paragraph, sentence: str) -> Place:
    """Where a sentence stands in its file; what commands change in it is not compared.

    If only its beginning is found, the place ends there; if nothing is, it is the first line of the paragraph.
    """
    begins, ends = source.line_span(paragraph.line)
    words = sentence.split()
    for many in (len(words), *_BEGINNINGS):
        pattern = r"\s+".join(map(re.escape, words[:many]))
        if match := re.compile(pattern).search(source.text, begins):
            return source.place(*match.span())
    return source.place(begins, ends)
