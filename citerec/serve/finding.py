"""A paper that one knows, found by words of its title, its authors, its DOI or its id."""

from citerec.contexts.topic import Topic
from citerec.corpus.filters import passes
from citerec.corpus.matching import normalised
from citerec.corpus.references import arxiv_in, doi_in
from citerec.errors import QueryError
from citerec.index.opened import OpenIndex
from citerec.index.titles import title_words
from citerec.records import Filters, Paper

_CANDIDATES = 200
_MOST_NAMED = 1000
_LEAST_NAME = 2  # letters
_MOST_WORDS = 20  # that are looked for among the names of authors


class PaperFinder:
    """Finds papers of one index. Safe to call from several threads.

    Args:
        index: The open index.
    """

    def __init__(self, index: OpenIndex) -> None:
        self._titles, self._store = title_words(index), index.store

    def find(self, query: str, limit: int, filters: Filters) -> list[Paper]:
        """The papers that a query names, best first.

        An id, a DOI or an arXiv id names one paper. Otherwise those come first that have most of the words in their
        title, their authors' names, year and venue; then those whose title has least besides; then the most cited.

        Args:
            query: An id, a DOI, an arXiv id, or words of title and authors.
            limit: How many papers at most.
            filters: Years and venues; other filters are not applied to papers that only their authors name.
        """
        if named := self._by_identifier(query.strip()):
            return named[:limit]
        words = query.split()
        try:
            found = self._titles.search(Topic(query), _CANDIDATES, filters).paper_ids()
        except QueryError:  # it has no word, or more than a title
            found = []
        surnames = [word.strip(".,;:") for word in words[:_MOST_WORDS]]
        called = self._store.ids_called([name for name in surnames if len(name) >= _LEAST_NAME], _MOST_NAMED)
        # Only titles need a word in common, so that of authors' papers the filters are checked here.
        titled = self._store.papers(found, texts=False)
        others = self._store.papers(set(called) - titled.keys(), texts=False)
        papers = [*titled.values(), *(paper for paper in others.values() if passes(paper, filters))]
        wanted = normalised(query)
        scored = sorted((_rank(paper, wanted), paper.paper_id, paper) for paper in papers if wanted & _words(paper))
        return [paper for _, _, paper in scored[:limit]]

    def _by_identifier(self, query: str) -> list[Paper]:
        if not query or len(query.split()) > 2:  # "doi: 10.1/x"
            return []
        if own := self._store.papers([query]):
            return list(own.values())
        identifier = arxiv_in(query) or doi_in(query)
        if not any(letter.isdigit() for letter in identifier):
            return []
        found = self._store.papers(self._store.ids_called([identifier], _CANDIDATES))
        return [paper for paper in found.values() if _has(paper, identifier)]


def _has(paper: Paper, identifier: str) -> bool:
    return identifier.casefold() in (value.casefold() for value in paper.external_ids.values())


def _words(paper: Paper) -> frozenset[str]:
    return normalised(" ".join([paper.title, *paper.authors, str(paper.year or ""), paper.venue or ""]))


def _rank(paper: Paper, wanted: frozenset[str]) -> tuple[int, int, int]:
    """Less is better."""
    beside = len(normalised(paper.title) - wanted)
    return -len(wanted & _words(paper)), beside, -(paper.citation_count or 0)
