"""Sentences that look like they need a citation."""

import re

from citerec.contexts.callouts import Callout, Spans, Style, find_callouts
from citerec.contexts.sections import is_abstract
from citerec.contexts.split import sentences_of, splitter
from citerec.discourse.worthiness import Placed, Sentence, is_sentence, shipped
from citerec.drafts.base import Paragraph, Place
from citerec.drafts.check import Material, Severity, Told, check
from citerec.records import MARKER

# How `Paragraph` shows citations and places.
_CITATION = re.compile(rf"\\cite\{{[^{{}}]*\}}|\[@[^\[\]]*\]|{re.escape(MARKER)}")
_ASIDE = re.compile(r"\W*(?:acknowl\w*|references|bibliography|funding|ethic\w*|author contributions)", re.IGNORECASE)
_WRITTEN = (Style.AUTHOR_YEAR_PARENTHESES, Style.AUTHOR_YEAR_TEXT, Style.NUMBERED_BRACKETS)
_REMEDY = "Cite what it rests on, if that is not your own work."
_BEGINNINGS = (12, 6, 3)  # words by which a sentence is found again in its file


@check(Severity.NOTE, "a sentence that looks like it needs a citation")
def citation_needed(material: Material) -> Told:
    """Goes by a small model (`citerec.discourse.worthiness`); not in the abstract, nor beside a citation or a place."""
    model = shipped()
    for paragraph in material.draft.paragraphs:
        headline = paragraph.section or ""
        if is_abstract(headline) or _ASIDE.match(headline):
            continue
        sentences = _sentences(paragraph.text)
        places = [at for at, one in enumerate(sentences) if not one.cites and is_sentence(one.text)]
        if not places:
            continue
        likely = model.probabilities([Placed(sentences, at, headline) for at in places])
        for at, probability in zip(places, likely, strict=True):
            if probability >= model.threshold:
                message = f"this sentence may need a citation: {_shortened(sentences[at].text)}"
                yield _place(material, paragraph, sentences[at].text), message, _REMEDY


def _sentences(text: str) -> list[Sentence]:
    """The sentences of a paragraph without its citations, those that are written by hand included: "(Lee, 2004)"."""
    commands = [Callout(*match.span(), Style.NUMBERED_BRACKETS, 1) for match in _CITATION.finditer(text)]
    taken = Spans((one.start, one.end) for one in commands)
    written = [one for one in find_callouts(text, believed=_WRITTEN) if not taken(one.start, one.end)]
    callouts = sorted([*commands, *written], key=lambda one: one.start)
    return [
        Sentence(
            " ".join(_CITATION.sub(" ", text[start:end]).split()), any(start <= one.start < end for one in callouts)
        )
        for start, end in sentences_of(text, callouts, splitter())
    ]


def _place(material: Material, paragraph: Paragraph, sentence: str) -> Place:
    """Where a sentence stands in its file; what commands change in it is not compared."""
    source = material.source(paragraph.path)
    begins, ends = source.line_span(paragraph.line)
    words = sentence.split()
    for many in (len(words), *_BEGINNINGS):
        pattern = r"\s+".join(map(re.escape, words[:many]))
        if found := re.compile(pattern).search(source.text, begins):
            return source.place(*found.span())
    return source.place(begins, ends)


def _shortened(sentence: str, most: int = 80) -> str:
    return sentence if len(sentence) <= most else f"{sentence[:most].rsplit(' ', 1)[0]} …"
