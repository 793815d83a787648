"""Which paper of an index a record from elsewhere is: searches by title."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from citerec.contexts.topic import Topic
from citerec.corpus.matching import LEAST_ALIKE, alike, similarity
from citerec.corpus.store import PaperStore
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
        elif entry.title and (paper_id := nearest(entry.title, partial(alike, entry), search, index.store)):
            ids[key] = paper_id
    return ids


def nearest(text: str, rate: Callable[[Paper], float], search: Search, store: PaperStore) -> str | None:
    """The id of the paper that is rated highest among those that a search finds for a text; None if all are 0."""
    ids = search(text)
    papers = store.papers(ids, texts=False)
    scored = [(rate(papers[paper_id]), paper_id) for paper_id in ids if paper_id in papers]
    score, paper_id = max(scored, key=lambda each: each[0], default=(0.0, ""))  # the first of several
    return paper_id if score else None
