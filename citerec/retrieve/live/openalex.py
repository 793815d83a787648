"""OpenAlex's search for works."""

import itertools
import os
from collections.abc import Iterable

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.corpus.openalex import parse_paper
from citerec.records import Filters
from citerec.retrieve.live.base import ADDRESS, PAGE, LiveRetriever, LiveSettings, Page, Years, readable
from citerec.retrieve.live.service import Name
from citerec.retrieve.live.words import telling_words

EMAIL = "CITEREC_EMAIL"
"""Name of the environment variable with an address for OpenAlex, which answers those faster whom it can write to."""

_FIELDS = (  # those that `parse_paper` reads
    "id,ids,title,publication_year,updated_date,primary_location,locations,authorships,cited_by_count,primary_topic,topics,"
    "abstract_inverted_index,type,is_paratext,is_retracted"
)


class OpenAlexSettings(LiveSettings):
    """How OpenAlex is asked."""

    url: str = Field(default="https://api.openalex.org", pattern=ADDRESS, description="address of the service")
    words: int = Field(default=20, ge=1, le=100, description="words of the query; a paper needs only one of them")
    email: str = Field(default="", description=f"your address for OpenAlex; by default the one in {EMAIL}")


class OpenAlexRetriever(LiveRetriever):
    """Finds what OpenAlex lists for any of the words, in its order. Safe to call from several threads."""

    name = "openalex-api"
    label = "OpenAlex"
    service = "OpenAlex"
    Settings = OpenAlexSettings
    called = Name(name, service, "OPENALEX_API_KEY", "https://openalex.org/settings/api", "results")

    def queries(self, topic: Topic) -> Iterable[str]:
        """The telling words of the sentence. A word such as NOT would be an operator: they are in small letters."""
        words = [word.lower() for word in telling_words(topic)[: self.settings.words]]
        return [" OR ".join(words)] if words else []

    def page(self, query: str, filters: Filters, offset: int) -> Page:
        """A part of the papers that it lists for a query."""
        parameters = {"search": query, "per-page": str(PAGE), "page": str(offset // PAGE + 1), "select": _FIELDS}
        first, last = Years.of(filters)
        conditions = [f"from_publication_date:{first:04}-01-01"] if first is not None else []
        conditions += [f"to_publication_date:{last:04}-12-31"] if last is not None else []
        conditions += [f"cited_by_count:>{filters.min_citations - 1}"] if filters.min_citations else []
        if conditions:
            parameters["filter"] = ",".join(conditions)
        if email := self.settings.email or os.environ.get(EMAIL, "").strip():
            parameters["mailto"] = email
        if key := self.key():
            parameters["api_key"] = key
        answer = self._service.get("works", parameters, {})
        papers = itertools.chain.from_iterable(readable(answer.papers, parse_paper))
        return Page(list(papers), len(answer.papers) == PAGE)
