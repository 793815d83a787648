"""The texts of a topic that words are searched by, and how much each weighs: the same for all engines."""

from pydantic import Field

from citerec.contexts.topic import Topic
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
    max_query_words: int = Field(default=1000, ge=1, description="longest sentence accepted, in words")

    def weighted(self, topic: Topic) -> tuple[tuple[str, float], ...]:
        """Each text with its weight, always in the same order; words that two texts have are counted twice."""
        around = " ".join(topic.neighbours.split()[: self.max_query_words])
        return (topic.text, 1.0), (around, self.neighbours), (topic.citing_title, self.citing_title)
