"""Written references matched to papers of an index: by title, then by surname, then by the nearest title."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from citerec.contexts.topic import Topic
from citerec.corpus.matching import plain_title
from citerec.corpus.store import PaperStore
from citerec.errors import QueryError
from citerec.index.base import Words
from citerec.papers.diagnostic.galactica.prompt import surname
from citerec.records import NO_FILTERS, Paper

_HITS = 20  # titles that share most with a reference, among which its own is looked for


class Matched(NamedTuple):
    """A paper that a reference may mean, and the distance of the two titles, 0 if they are the same."""

    paper_id: str
    distance: float


def match(reference: str, by_title: Words, store: PaperStore, most_distant: float = 0.0) -> list[Matched]:
    """The papers that a reference means, in order of id; several if they share a title, none if no title fits.

    A reference is `Title, Surname`, or a title alone. First come the papers of just this title, of several those whose
    first author has this surname, if any has; else the papers of the nearest title, chosen likewise.

    Args:
        reference: As a model wrote it.
        by_title: Searches titles alone. The 20 that share most with the reference are compared with it.
        store: The records of the papers.
        most_distant: The distance of a title that is still taken for the written one: `distance`.
    """
    try:
        found = by_title.search(Topic(reference), _HITS, NO_FILTERS)
    except QueryError:  # it has no word, or too many
        return []
    papers = sorted(store.papers(one.paper_id for one in found).values(), key=lambda paper: paper.paper_id.encode())
    titles = [plain_title(paper.title) for paper in papers]
    title, _, author = reference.rpartition(",")
    readings = [(words, name) for text, name in ((title, author), (reference, "")) if (words := plain_title(text))]
    scored: list[tuple[float, str, list[Paper]]] = [(1.0, "", [])]
    for words, name in readings:
        far = [Levenshtein.normalized_distance(words, other) for other in titles]
        least = min(far, default=1.0)
        scored.append((least, name, [paper for paper, one in zip(papers, far, strict=True) if one == least]))
    least, name, nearest = min(scored, key=lambda each: each[0])
    return [Matched(paper.paper_id, least) for paper in _of_author(nearest, name)] if least <= most_distant else []


def _of_author(papers: Sequence[Paper], author: str) -> Sequence[Paper]:
    """The papers whose first author has a surname; all if none has, or there is no name."""
    wanted = plain_title(author).split()[-1:]
    return [paper for paper in papers if wanted and plain_title(surname(paper)).split()[-1:] == wanted] or papers
