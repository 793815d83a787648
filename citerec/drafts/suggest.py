"""Sentences of a draft that may want a citation, and for which an index has a likely paper: need and fit.

Need is how likely a sentence of a published paper would cite (`citerec.discourse.worthiness`). Fit is how likely one of
the first ten papers is right (docs/retrieval.md#confidence).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from citerec.contexts.sections import is_abstract
from citerec.contexts.topic import mentions
from citerec.discourse.worthiness import Placed, Sentence, is_sentence, shipped
from citerec.drafts.base import Draft, Paragraph, Place, Source
from citerec.drafts.files import Files
from citerec.drafts.filling import draft_sentences, sentence_end, sentence_place
from citerec.drafts.read import draft_kind, place_marker
from citerec.errors import QueryError
from citerec.recommend import Recommender
from citerec.records import MARKER, NO_FILTERS, Answer, Filters

MOST = 10
"""Suggestions for a draft, unless others are asked for."""
_SEARCHED = 40  # sentences with the greatest need that are searched for
_LIKELY = ("sure", "likely")
_LEAST = 0.1  # of need, where a system cannot say how likely its papers are; 7 % of the sentences of papers cite
_ASIDE = re.compile(r"\W*(?:acknowl\w*|references|bibliography|funding|ethic\w*|author contributions)", re.IGNORECASE)
_NOTED = re.compile(r"[.!?](?=\\footnote|\[\^|\[fn:)")  # a sentence that a note follows
_STOP = re.compile(r"[.!?]?[\"'’”»)\]]*\Z")


class Suggestion(NamedTuple):
    """A sentence that may want a citation.

    Attributes:
        sentence: The sentence.
        place: Where it stands.
        end: Where its citation goes, in characters of its file.
        marker: What marks a place there, with the space before it.
        answer: The best paper for it.
        score: How likely it is to cite one of the first papers, from 0 to 1: need times fit.
    """

    sentence: str
    place: Place
    end: int
    marker: str
    answer: Answer
    score: float


def suggestions(
    draft: Draft,
    recommender: Recommender,
    files: Files,
    cited: Mapping[str, str] | None = None,
    *,
    most: int = MOST,
    filters: Filters = NO_FILTERS,
    citing_id: str | None = None,
    citing_title: str | None = None,
) -> list[Suggestion]:
    """Sentences that may want a citation, most likely first, each with the best paper.

    Left out are sentences with a citation or a place, those of the abstract and the acknowledgements, and those for
    which a calibrated system has no *likely* paper. No more than 40 sentences of a draft are searched for.

    Args:
        draft: The draft, from `read_draft`.
        recommender: What finds papers.
        files: The texts of the files.
        cited: Ids of papers of the index that the draft cites, by key.
        most: How many sentences.
        filters: Which papers may be found.
        citing_id: The paper that is written, if the index has it.
        citing_title: Its title, by default the draft's.
    """
    found = list[Suggestion]()
    needs = sorted(_needs(draft), key=lambda one: -one[0])[:_SEARCHED]
    sources = {path: Source(path, files.text(path)) for path in {one.path for _, one, _ in needs}}
    for need, paragraph, sentence in needs:
        marked = replace(draft, text=_with_place(draft, paragraph, sentence), places=())
        try:
            (context,) = marked.contexts(recommender.store, cited, citing_id=citing_id, citing_title=citing_title)
            # Not by its neighbours: what they cite would fit it too.
            context = replace(context, section=paragraph.section, before="", after="")
            answer = recommender.search(context, 1, filters, explain=True, fold=True)
        except QueryError:  # no word to search for
            continue
        sure, verdict = answer.confidence, answer.hits[0].verdict if answer.hits else None
        if not answer.hits or (verdict not in _LIKELY if sure else need < _LEAST):
            continue
        source = sources[paragraph.path]
        place = sentence_place(source, paragraph, sentence)
        whole = " ".join(source.text[place.start : place.end].split()) == sentence
        end, marker = place_after(draft, paragraph.path, source.text, place.start, place.end if whole else None)
        score = need * (sure.among_ten if sure else 1.0)
        found.append(Suggestion(sentence, place, end, marker, answer, score))
    return sorted(found, key=lambda one: -one.score)[:most]


def _needs(draft: Draft) -> Iterator[tuple[float, Paragraph, str]]:
    """How likely each sentence without a citation cites, its paragraph, and the sentence."""
    model = shipped()
    for paragraph in draft.paragraphs:
        headline = paragraph.section or ""
        if is_abstract(headline) or _ASIDE.match(headline):
            continue
        sentences: list[Sentence] = draft_sentences(paragraph.text)
        places = [at for at, one in enumerate(sentences) if not one.cites and is_sentence(one.text)]
        needs = model.probabilities([Placed(sentences, at, headline) for at in places]) if places else ()
        for at, need in zip(places, needs, strict=True):
            if sentences[at].text in paragraph.text:
                yield float(need), paragraph, sentences[at].text


def _with_place(draft: Draft, paragraph: Paragraph, sentence: str) -> str:
    """The paragraph with a place at the end of a sentence, and before it what the draft cites before it."""
    before = draft.text.partition(paragraph.text)[0]
    cites = "".join(f"\\cite{{{one.key}}}" for one in mentions(before) if not one.in_brackets)
    begin, _, rest = paragraph.text.partition(sentence)
    stop = _STOP.search(sentence)
    at = stop.start() if stop else len(sentence)
    text = f"{begin.replace(MARKER, '')}{sentence[:at]} {MARKER}{sentence[at:]}{rest.replace(MARKER, '')}"
    return f"{cites}\n\n{text}" if cites else text


def place_after(draft: Draft, path: Path, text: str, at: int, end: int | None = None) -> tuple[int, str]:
    """Where a place for the sentence at an offset of a file goes: before its full stop; and what marks it there.

    The mark is as the draft writes its citations, with the space before it. `end` is where the sentence ends, if that
    is known.
    """
    if end is None:
        end = sentence_end(path, text, at)
        noted = _NOTED.search(text, at, end)
        end = noted.end() if noted else end
    stop = _STOP.search(text, at, end)
    mark = draft.form(["?"]) if draft_kind(path) == "LaTeX" else place_marker(path)
    return end - (len(stop[0]) if stop else 0), f" {mark}"
