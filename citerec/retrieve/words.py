"""Retrieval by words: BM25 over the fields of papers and over citing sentences, by the engine of the index."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, SettingsError
from citerec.index.base import Words, WordSettings
from citerec.index.candidates import Candidate, Candidates
from citerec.index.filters import SORTS
from citerec.records import NO_FILTERS, Filters, Match
from citerec.retrieve.base import Retriever

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex


class WordsRetriever(Retriever):
    """BM25 over title, abstract and citing sentences. Safe to call from several threads.

    Raises:
        SettingsError: No field of the index has a weight, or a field that it lacks has one.
    """

    name = "words"
    label = "words"
    Settings = WordSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: WordSettings) -> Self:
        """Opens the words of an index, which was opened with these settings."""
        if index.words is None:
            raise SettingsError("this needs an index", "Build one: citerec index build SOURCE… --out indexes/NAME")
        return cls(index.words, settings)

    def __init__(self, words: Words, settings: WordSettings) -> None:
        self.words, self.settings = words, settings

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None, *, sort: str = "relevance"
    ) -> Candidates:
        """The k best candidates, best first; fewer if fewer share a word with the topic and pass the filters.

        Any `sort` (one of `citerec.index.filters.SORTS`) but relevance orders every paper that shares a word with it.

        Raises:
            QueryError: The topic has no word to search for, or too many.
            FilterError: k is under 1, or the order is unknown.
        """
        if k < 1:
            raise FilterError(f"k is {k}", "Ask for at least one paper.")
        if sort not in SORTS:
            raise FilterError(f"no order is called {sort!r}", f"Orders are: {', '.join(SORTS)}.")
        self.settings.check_length(topic, self.name)
        return self.words.search(topic, k, filters, sort)

    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first: see `Words.explain`."""
        return self.words.explain(topic, candidates)
