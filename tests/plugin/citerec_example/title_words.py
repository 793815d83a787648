"""A retriever of another package: papers by the share of their title's words that the sentence has."""

from typing import Any, Self

from pydantic import Field

from citerec import Candidate, Filters, Retriever, Topic
from citerec.settings import PartSettings


class TitleWordsSettings(PartSettings):
    """How titles are compared."""

    least: float = Field(default=0.2, gt=0, le=1, description="share of a title's words that the sentence must have")


class TitleWords(Retriever):
    """Finds papers by the words of their titles. It leaves the filters and the leak rules to the pipeline."""

    name = "title-words"
    label = "words of the title"
    Settings = TitleWordsSettings

    def __init__(self, titles: dict[str, frozenset[str]], least: float) -> None:
        self._titles = titles
        self._least = least

    @classmethod
    def open(cls, index: Any, settings: TitleWordsSettings) -> Self:
        """Reads the titles of an index."""
        texts = index.store.all_papers()
        return cls({text.paper_id: frozenset(text.title.casefold().split()) for text in texts}, settings.least)

    def search(self, topic: Topic, k: int, filters: Filters | None = None, prepared: object = None) -> list[Candidate]:
        """All papers whose title shares enough words with the sentence; k is left to the pipeline too."""
        words = set(topic.text.casefold().split())
        found = []
        for paper_id, title in self._titles.items():
            share = len(words & title) / len(title) if title else 0.0
            if share >= self._least:
                found.append(Candidate(paper_id, share, signals={"title-words": share}))
        return found
