"""A paper that one knows, found by words of its title, its authors, its DOI or its id."""

import contextlib
from collections.abc import Iterable

from citerec.contexts.topic import Topic
from citerec.corpus.matching import arxiv_in, doi_in, normalised, passes
from citerec.corpus.store import PaperStore
from citerec.errors import QueryError
from citerec.records import Filters, Paper
from citerec.retrieve.opened import OpenIndex, title_words
from citerec.serve.errors import NotFoundError
from citerec.serve.untrusted import shown

_CANDIDATES = 200
_NAMED_IDS, _LONGEST_ID = 5, 60  # in an error
_MOST_NAMED = 1000
_LEAST_NAME = 2  # letters
_MOST_WORDS = 20  # that are looked for among the names of authors


def known_papers(store: PaperStore, paper_ids: Iterable[str]) -> list[Paper]:
    """Papers by id, in order, each once; NotFoundError if the index lacks one."""
    wanted = list(dict.fromkeys(paper_ids))
    found = store.papers(wanted)
    if lacking := [paper_id for paper_id in wanted if paper_id not in found]:
        named = ", ".join(shown(repr(paper_id), _LONGEST_ID) for paper_id in lacking[:_NAMED_IDS])
        more = f" and {len(lacking) - _NAMED_IDS} more" if len(lacking) > _NAMED_IDS else ""
        raise NotFoundError(f"the index has no paper {named}{more}", "Give ids as answers show them.")
    return [found[paper_id] for paper_id in wanted]


def find_papers(index: OpenIndex, query: str, limit: int, filters: Filters) -> list[Paper]:
    """The papers of an index that a query names, best first.

    An id, a DOI or an arXiv id names one paper. Otherwise those come first that have most of the words in their
    title, their authors' names, year and venue; then those whose title has least besides; then the most cited.

    Args:
        index: The open index.
        query: An id, a DOI, an arXiv id, or words of title and authors.
        limit: How many papers at most.
        filters: Years and venues; other filters are not applied to papers that only their authors name.
    """
    store = index.store
    if named := _by_identifier(query.strip(), store):
        return named[:limit]
    found: list[str] = []
    with contextlib.suppress(QueryError):  # no word, or too many
        found = title_words(index).search(Topic(query), _CANDIDATES, filters).paper_ids()
    surnames = [word.strip(".,;:") for word in query.split()[:_MOST_WORDS]]
    called = store.ids_called([name for name in surnames if len(name) >= _LEAST_NAME], _MOST_NAMED)
    # Only titles need a word in common, so that of authors' papers the filters are checked here.
    titled = store.papers(found, texts=False)
    others = store.papers(set(called) - titled.keys(), texts=False)
    papers = [*titled.values(), *(paper for paper in others.values() if passes(paper, filters))]
    wanted = normalised(query)
    scored = sorted((_rank(paper, wanted), paper.paper_id, paper) for paper in papers if wanted & _words(paper))
    return [paper for _, _, paper in scored[:limit]]


def _by_identifier(query: str, store: PaperStore) -> list[Paper]:
    if not query or len(query.split()) > 2:  # "doi: 10.1/x"
        return []
    if own := store.papers([query]):
        return list(own.values())
    identifier = arxiv_in(query) or doi_in(query)
    if not any(letter.isdigit() for letter in identifier):
        return []
    found = store.papers(store.ids_called([identifier], _CANDIDATES))
    return [paper for paper in found.values() if _has(paper, identifier)]


def _has(paper: Paper, identifier: str) -> bool:
    return identifier.casefold() in (value.casefold() for value in paper.external_ids.values())


def _words(paper: Paper) -> frozenset[str]:
    return normalised(" ".join([paper.title, *paper.authors, str(paper.year or ""), paper.venue or ""]))


def _rank(paper: Paper, wanted: frozenset[str]) -> tuple[int, int, int]:
    """Less is better."""
    beside = len(normalised(paper.title) - wanted)
    return -len(wanted & _words(paper)), beside, -(paper.citation_count or 0)
