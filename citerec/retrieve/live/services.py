"""The services that are asked: Semantic Scholar's search for papers (the Graph API), and OpenAlex's for works."""

from collections.abc import Iterable

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.retrieve.live.base import ADDRESS, LiveRetriever, LiveSettings
from citerec.retrieve.live.words import queries_of, telling_words
from citerec.sources.look_up import EMAIL, OpenAlex, SemanticScholar

_FEWEST_WORDS = 1


class S2Settings(LiveSettings):
    """How Semantic Scholar is asked."""

    url: str = Field(default=SemanticScholar.url, pattern=ADDRESS, description="address of the service")
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
    looks_up = SemanticScholar

    def queries(self, topic: Topic) -> Iterable[str]:
        """The telling words of the sentence, then fewer of them."""
        return queries_of(topic, self.settings.words, _FEWEST_WORDS)


class OpenAlexSettings(LiveSettings):
    """How OpenAlex is asked."""

    url: str = Field(default=OpenAlex.url, pattern=ADDRESS, description="address of the service")
    words: int = Field(default=20, ge=1, le=100, description="words of the query; a paper needs only one of them")
    email: str = Field(default="", description=f"your address for OpenAlex; by default the one in {EMAIL}")


class OpenAlexRetriever(LiveRetriever):
    """Finds what OpenAlex lists for any of the words, in its order. Safe to call from several threads."""

    name = "openalex-api"
    label = "OpenAlex"
    service = "OpenAlex"
    Settings = OpenAlexSettings
    looks_up = OpenAlex

    def queries(self, topic: Topic) -> Iterable[str]:
        """The telling words of the sentence. A word such as NOT would be an operator: they are in small letters."""
        words = [word.lower() for word in telling_words(topic)[: self.settings.words]]
        return [" OR ".join(words)] if words else []
