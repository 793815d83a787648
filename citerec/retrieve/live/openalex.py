"""OpenAlex's search for works."""

from collections.abc import Iterable

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.retrieve.live.base import ADDRESS, LiveRetriever, LiveSettings
from citerec.retrieve.live.words import telling_words
from citerec.sources.look_up import EMAIL, OpenAlex


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
