"""Retrieval by an encoder-decoder that writes author and year of the cited paper (CiteBART, EMNLP 2025).

It reads a passage with a mask in place of the citation, and title and abstract of the citing paper.
"""

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from citerec.contexts.topic import Topic, clean
from citerec.corpus.matching import plain_title
from citerec.errors import QueryError
from citerec.papers.common.written import WritingRetriever
from citerec.records import MARKER, Filters, Paper
from citerec.retrieve.words import WordSettings, WordsRetriever
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.models.text_models import TextModel

NAME = "citebart"
MAX_INPUT_TOKENS = 350  # CiteBART
_ALIKE = 1000  # how many hits of a search by words order the papers of one author and year


class CiteBartSettings(PartSettings):
    """The model, and how citations are written."""

    model: str | None = Field(
        default=None, description=f"encoder-decoder: a folder or a name; by default the folder `{NAME}` of the index"
    )
    beams: int = Field(default=20, ge=2, le=1000, description="how many citations are written; 20 in the paper")
    max_new_tokens: int = Field(default=24, ge=2, description="longest citation, in tokens")
    max_input_tokens: int = Field(
        default=MAX_INPUT_TOKENS, ge=8, description="how many tokens are read at most; 350 in the paper"
    )
    constrained: bool = Field(default=False, description="whether only citations of papers of the index can be written")


class CiteBartRetriever(WritingRetriever):
    """An encoder-decoder writes author and year in place of the citation, and the papers of that name are found.

    Papers of one author and year are ordered by words, as `words` finds them.
    """

    name = NAME
    label = "author and year"
    Settings = CiteBartSettings
    kind = "encoder-decoder"
    writes = "citations"
    remedy = "Train one: citerec train citebart --contexts FILE --index {index}"

    def read(self, model: "TextModel", topic: Topic, _room: int) -> list[int]:
        """As `input_of`."""
        return input_of(model, topic, self.settings.max_input_tokens)

    def citation(self, model: "TextModel", paper: Paper) -> Sequence[int]:
        """As `citation_of`."""
        text = citation_of(paper)
        return model.encode_text(text, self.settings.max_new_tokens).ids if text else ()

    def named(self, text: str) -> Sequence[str]:
        """The papers whose citation is the same but for accents, case and punctuation."""
        return self._papers_of.get(plain_title(text), ())

    def chosen(self, topic: Topic, named: Sequence[list[str]], filters: Filters) -> Sequence[list[str]]:
        """All papers of each citation, by their places in a search by words."""
        if all(len(papers) < 2 for papers in named):
            return named
        words = WordsRetriever.open(self.index, WordSettings())
        try:
            hits = words.search(topic, min(_ALIKE, self.index.manifest.counts.papers), filters)
            places = {paper_id: place for place, paper_id in enumerate(hits.paper_ids())}
        except QueryError:  # no word to search for
            places = {}
        return [sorted(papers, key=lambda one: (places.get(one, _ALIKE), one.encode())) for papers in named]

    @functools.cached_property
    def _papers_of(self) -> Mapping[str, Sequence[str]]:
        """The papers of each citation of the index; some 150 bytes a paper."""
        papers_of = defaultdict(list)
        for paper in self.index.store.all_papers():
            papers_of[plain_title(citation_of(paper))].append(paper.paper_id)
        papers_of.pop("", None)
        return papers_of


def citation_of(paper: Paper) -> str:
    """`Surname, year`, `Surname and Surname, year` or `Surname et al., year`; empty if author or year is unknown."""
    names = [name.split()[-1] for name in paper.authors if name.strip()]
    if not names or paper.year is None:
        return ""
    who = {1: names[0], 2: " and ".join(names)}.get(len(names), f"{names[0]} et al.")
    return f"{who}, {paper.year}"


def input_of(model: "TextModel", topic: Topic, max_tokens: int) -> list[int]:
    """The passage with the mask in place of the marker, then title and abstract of the citing paper, if known.

    What is too long is cut at its end.
    """
    context = topic.context
    around = (context.before, context.after) if topic.neighbours else ("", "")
    sentence = f" {model.mask} ".join(clean(part) for part in context.text.split(MARKER))
    if MARKER not in context.text:
        sentence = f"{sentence} {model.mask}"
    citing = topic.citing
    texts = [clean(around[0]), sentence, clean(around[1]), topic.citing_title, (citing and citing.abstract) or ""]
    return list(model.encode_text(" ".join(" ".join(texts).split()), max_tokens).ids)
