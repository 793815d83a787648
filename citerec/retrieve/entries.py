"""Which paper of an index a record from elsewhere is: searches by title."""

from collections.abc import Callable, Mapping, Sequence

from citerec.contexts.topic import Topic
from citerec.corpus.matching import LEAST_ALIKE, most_alike, similarity
from citerec.errors import QueryError
from citerec.records import NO_FILTERS, Paper
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.words import Weights, WordSettings, WordsRetriever

CANDIDATES = 20
"""Papers of the index that are compared with an entry: the best by BM25 of their titles."""

Search = Callable[[str], Sequence[str]]
"""Ids of the papers whose titles share most with a text, best first."""


def title_words(index: OpenIndex) -> WordsRetriever:
    """What searches the titles of an index alone."""
    return WordsRetriever(index, WordSettings(weights=Weights(text=0, title=1, abstract=0, citances=0)))


def title_search(index: OpenIndex) -> Search:
    """A search for titles in an index."""
    words = title_words(index)

    def search(text: str) -> list[str]:
        try:
            return list(words.search(Topic(text), CANDIDATES, NO_FILTERS).paper_ids())
        except QueryError:
            return []  # no word in it

    return search


def papers_of_index(entries: Mapping[str, Paper], index: OpenIndex) -> dict[str, str]:
    """Ids in an index of records from elsewhere, by their keys there; those that the index lacks are left out.

    An entry is the paper whose id is its key, or which has its DOI, or its title, a shared author and nearly its
    year (`citerec.corpus.matching`). An entry without a title is an id.
    """
    own = index.store.papers(entries)
    ids: dict[str, str] = {}
    search = title_search(index)
    for key, entry in entries.items():
        same_id = own.get(key)
        if same_id and (not entry.title or similarity(entry.title, same_id.title) >= LEAST_ALIKE):
            ids[key] = key
        elif entry.title:
            ranked = search(entry.title)
            papers = index.store.papers(ranked, texts=False)
            if best := most_alike(entry, (papers[paper_id] for paper_id in ranked if paper_id in papers)):
                ids[key] = best.paper_id
    return ids
