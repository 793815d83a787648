"""Semantic Scholar's search for papers: the Graph API."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.corpus.s2ag import parse_paper
from citerec.corpus.values import read_text
from citerec.records import Filters, Paper
from citerec.retrieve.live.base import ADDRESS, PAGE, LiveRetriever, LiveSettings, Page, Years, readable
from citerec.retrieve.live.service import Name
from citerec.retrieve.live.words import queries_of

_FIELDS = "corpusId,externalIds,title,abstract,tldr,venue,journal,year,authors,citationCount,s2FieldsOfStudy"
_MOST = 1000  # papers that it lists for a query
_FEWEST_WORDS = 1


class S2Settings(LiveSettings):
    """How Semantic Scholar is asked."""

    url: str = Field(
        default="https://api.semanticscholar.org/graph/v1", pattern=ADDRESS, description="address of the service"
    )
    words: int = Field(
        default=6, ge=1, le=50, description="words of the first query; if too little is found, fewer are tried"
    )


class S2Retriever(LiveRetriever):
    """Finds what Semantic Scholar lists, in its order. Safe to call from several threads.

    It lists papers that have all words, so fewer words are tried until enough is found.
    """

    name = "s2-api"
    label = "Semantic Scholar"
    service = "Semantic Scholar"
    Settings = S2Settings
    called = Name(name, service, "S2_API_KEY", "https://www.semanticscholar.org/product/api", "data")

    def queries(self, topic: Topic) -> Iterable[str]:
        """The telling words of the sentence, then fewer of them."""
        return queries_of(topic, self.settings.words, _FEWEST_WORDS)

    def page(self, query: str, filters: Filters, offset: int) -> Page:
        """A part of the papers that it lists for a query."""
        parameters = {"query": query, "offset": str(offset), "limit": str(PAGE), "fields": _FIELDS}
        years = Years.of(filters)
        if years != (None, None):
            first, last = ("" if year is None else str(year) for year in years)
            parameters["year"] = first if first == last else f"{first}-{last}"
        if filters.min_citations:
            parameters["minCitationCount"] = str(filters.min_citations)
        key = self.key()
        answer = self._service.get("paper/search", parameters, {"x-api-key": key} if key else {})
        papers = list(readable(answer.papers, paper_of))
        return Page(papers, answer.has_next and offset + PAGE < _MOST)


def paper_of(record: Mapping[str, Any]) -> Paper:
    """The paper of a record of the Graph API, whose keys are those of the data sets but for their case.

    Raises:
        RecordError: It has no id, or a field of a type that cannot be read.
    """
    paper = parse_paper({key.lower(): value for key, value in record.items()})
    tldr = record.get("tldr")
    text = read_text(tldr, "text") if isinstance(tldr, Mapping) else None
    return replace(paper, abstract=read_text(record, "abstract"), tldr=text)
