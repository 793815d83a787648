"""The texts of a topic that words are searched by, and how much each weighs: the same for all engines."""

from pydantic import Field

from citerec.contexts.near import cites_others, words_near
from citerec.contexts.topic import Topic, clean
from citerec.errors import QueryError
from citerec.settings import PartSettings


class TopicTexts(PartSettings):
    """The weights of the texts of a topic, against 1 for the sentence."""

    citing_title: float = Field(
        default=0.0,
        ge=0,
        le=1000,
        description="weight of the citing paper's title, if it is known, against 1 for the sentence",
    )
    neighbours: float = Field(
        default=0.25, ge=0, le=1000, description="weight of the sentences before and after, against 1 for the sentence"
    )
    near: float = Field(
        default=0.5,
        ge=0,
        le=1000,
        description="weight of the words nearest to the marker, once more, in a sentence with several citations",
    )
    near_alone: float = Field(
        default=0.0, ge=0, le=1000, description="weight of these words in a sentence with one citation"
    )
    citing_abstract: float = Field(
        default=0.0,
        ge=0,
        le=1000,
        description="weight of the citing paper's abstract, if the index has it, against 1 for the sentence",
    )
    max_query_words: int = Field(default=1000, ge=1, description="longest sentence accepted, in words")

    def weighted(self, topic: Topic) -> tuple[tuple[str, float], ...]:
        """Each text with its weight, always in the same order; words that two texts have are counted twice."""
        abstract = topic.citing.abstract or "" if self.citing_abstract and topic.citing else ""
        among_others, alone = "", ""
        if self.near or self.near_alone:
            among_others, alone = (words_near(topic), "") if cites_others(topic) else ("", words_near(topic))
        return (
            (topic.text, 1.0),
            (self._shortened(topic.neighbours), self.neighbours),
            (topic.citing_title, self.citing_title),
            (among_others, self.near),
            (alone, self.near_alone),
            (self._shortened(clean(abstract)), self.citing_abstract),
        )

    def check_length(self, topic: Topic, part: str) -> None:
        """Raises QueryError if the sentence is longer than the part with these settings accepts."""
        if (words := len(topic.text.split())) > self.max_query_words:
            raise QueryError(
                f"the sentence has {words:,} words, more than {self.max_query_words:,}",
                f"Give the sentence around <REF>, or allow more with -c {part}.max_query_words=…",
            )

    def _shortened(self, text: str) -> str:
        return " ".join(text.split()[: self.max_query_words])


def shown(word: str) -> str:
    """A word of a text as it is shown: without the punctuation around it."""
    return word.strip(".,;:!?()[]\"'“”")


def no_word(topic: Topic) -> QueryError:
    """The error for a topic without a word to search for."""
    return QueryError(
        f"no word to search for in {topic.text[:60]!r}",
        "Write a sentence with content words: stop words and punctuation are not searched.",
    )
