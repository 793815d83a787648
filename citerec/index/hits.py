"""Hits of an engine as rows of papers: ties settled by paper id, citing sentences added up; for all engines."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.contexts.topic import Topic, clean
from citerec.corpus.store import SearchableCitance
from citerec.index.base import (
    ABSTRACT,
    CITANCE,
    CITANCES,
    PAPERS,
    TEXT,
    TITLE,
    Words,
    WordSettings,
    check_weights,
    matches,
)
from citerec.index.candidates import Candidate, Candidates, CitanceKey, Citances
from citerec.index.vectors.encode import paper_text
from citerec.index.words.analysis import terms_of
from citerec.index.words.texts import no_word, shown
from citerec.records import Filters, Match, Paper

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.opened import OpenIndex
    from citerec.index.rows import PaperRows

Searchable = Paper | SearchableCitance
"""What a document is made of."""


def key_of(item: Searchable) -> str:
    """What names a document: the id of a paper, or what `sentence_key` makes of a citing sentence."""
    if isinstance(item, SearchableCitance):
        return sentence_key(item.cited.paper_id, item.citing_id, item.position)
    return item.paper_id


def sentence_key(cited_id: str, citing_id: str, position: int) -> str:
    """What names the document of a citing sentence. Ids have no white space."""
    return f"{cited_id} {citing_id} {position}"


def texts_of(item: Searchable) -> dict[str, str]:
    """The texts of a paper, or of a citing sentence without its citation markers, by field."""
    if isinstance(item, SearchableCitance):
        return {CITANCE: clean(item.text)}
    return {TEXT: paper_text(item), TITLE: item.title, ABSTRACT: item.abstract or ""}


DEPTH = 1000
"""How deep both lists are read before the scores of a paper and its citances are added up; and how many of the best
citing sentences count in the signals for rankers.

Scores must not depend on k, so this is not a multiple of k.
"""

# Hits with equal scores: more are found, so that ties at the end are settled by id.
_SLACK = 16


class Hits(NamedTuple):
    """The rows of papers that were found, best first, with their scores and the engine's documents, (hits,) each."""

    rows: "NDArray[np.int64]"
    scores: "NDArray[np.float64]"
    documents: "NDArray[Any] | None" = None

    def taken(self, places: "NDArray[np.int64]") -> "Hits":
        """The hits at some places, in this order."""
        documents = None if self.documents is None else self.documents[places]
        return Hits(self.rows[places], self.scores[places], documents)


def settled(found: Callable[[int], Hits], k: int) -> Hits:
    """The first k hits of an engine that orders ties as it likes; here they are ordered by paper id.

    Hits of papers that the index lacks, of row -1, are left out: while an engine is updated it may have some.

    Args:
        found: As many of the best hits as are asked for, in any order among equal scores.
        k: How many are wanted.
    """
    import numpy as np

    wanted = k + _SLACK
    while True:
        hits = found(wanted)
        if len(hits.scores) < wanted or hits.scores[-1] < hits.scores[k - 1]:
            break
        wanted *= 4
    first = hits.taken(np.lexsort((hits.rows, -hits.scores))[:k])
    return first.taken(np.flatnonzero(first.rows >= 0))


def added_up(
    rows_of: "PaperRows",
    papers: Hits,
    citances: Hits,
    weights: tuple[float, float],
    said: Callable[[int], tuple[str, int]],
    least: float = 0.0,
) -> Candidates:
    """All papers that were found, or of which a citing sentence was found, best first.

    Args:
        rows_of: The ids of the papers.
        papers: What was found by the papers' own words.
        citances: What was found by citing sentences: the rows of the papers that they cite.
        weights: The weight of citing sentences, and the decay: the weight of each further one against its better one.
        said: The citing paper of a hit among the citances, and the sentence's position among those of that paper.
        least: The score from which a citing sentence counts in the signals for rankers.
    """
    import numpy as np

    weight, decay = weights
    rows = np.unique(np.concatenate([papers.rows, citances.rows]))
    words = np.full(len(rows), np.nan)
    words[np.searchsorted(rows, papers.rows)] = papers.scores
    # The citing sentences of a paper together, best first.
    order = np.lexsort((np.arange(len(citances.rows)), citances.rows))
    owners, scored = np.searchsorted(rows, citances.rows[order]), citances.scores[order]
    counts = np.bincount(owners, minlength=len(rows))
    begins = np.cumsum(counts) - counts
    shares = weight * scored * decay ** (np.arange(len(scored)) - begins[owners])
    scores = np.nan_to_num(words) + np.bincount(owners, shares, len(rows))
    has, found = counts > 0, scored >= least
    numbers = np.bincount(owners[found], minlength=len(rows))
    padded = np.append(scored, [np.nan, np.nan])
    signals = {
        "citance": np.where(numbers > 0, padded[begins], np.nan),
        "citance_2": np.where(numbers > 1, padded[begins + 1], np.nan),
        "citances": np.where(numbers > 0, np.bincount(owners[found], scored[found], len(rows)), np.nan),
        "citances_found": np.where(numbers > 0, numbers.astype(np.float64), np.nan),
    }
    keys = np.full(len(rows), -1)
    keys[has] = order[begins[has]]

    def best(hit: int) -> CitanceKey:
        """The best citing sentence of a paper; of several with equal scores the first by citing paper and position."""
        alike = np.flatnonzero((citances.rows == citances.rows[hit]) & (citances.scores == citances.scores[hit]))
        citing_id, position = min((said(int(at)) for at in alike), key=lambda one: (one[0].encode(), one[1]))
        return CitanceKey(citing_id, position, weight * float(citances.scores[hit]))

    return Candidates(rows_of, rows, scores, {"bm25": words, **signals}, (Citances(keys, best),)).in_order()


class ExplainedWords(Words):
    """The words of an index in an engine that scores single terms."""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        self.settings = settings
        self._rows, self._filter, self._store = index.rows, index.filter, index.store
        has_citances = index.manifest.counts.citances > 0
        check_weights(settings, citances=has_citances, abstract=index.manifest.abstract_field, index=index.path)
        weights = settings.weights
        own = {TEXT: weights.text, TITLE: weights.title, ABSTRACT: weights.abstract}
        self._fields = {PAPERS: {name: weight for name, weight in own.items() if weight}, CITANCES: {CITANCE: 1.0}}
        self._adds_citances = has_citances and weights.citances > 0

    def _terms_of(self, text: str) -> Sequence[str]:
        """The terms of a text, as the engine analyses it; by default as `terms_of` does."""
        return [term for term in terms_of(text) if term is not None]

    @abstractmethod
    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> "NDArray[np.float64]":
        """The BM25 scores of some terms in a field of some documents, (documents, terms); 0 where it lacks them."""

    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """As `Words.explain`."""
        import numpy as np

        written, times = self._query_terms(topic)
        terms, factors = list(times), np.array(list(times.values()))
        paper_ids = [one.paper_id for one in candidates]
        scores, cited_so = np.zeros((2, len(candidates), len(terms)))
        for field, weight in self._fields[PAPERS].items():
            scores += factors * weight * self._term_scores(PAPERS, field, terms, paper_ids)
        keys = {at: sentence_key(one.paper_id, *one.citance[:2]) for at, one in enumerate(candidates) if one.citance}
        if keys and self._adds_citances:
            cited_so[list(keys)] = self._term_scores(CITANCES, CITANCE, terms, list(keys.values()))
            scores += factors * cited_so * self.settings.weights.citances
        records, found = self._store.papers(paper_ids), []
        for at, paper_id in enumerate(paper_ids):
            paper = records[paper_id]
            places = {
                TITLE: {*self._terms_of(paper.title)},
                ABSTRACT: {*self._terms_of(paper.abstract or "")},
                CITANCE: {term for term, score in zip(terms, cited_so[at], strict=True) if score > 0},
            }
            matching = {terms[place]: float(scores[at, place]) for place in np.flatnonzero(scores[at] > 0)}
            fields = {term: [name for name, having in places.items() if term in having] for term in matching}
            found.append(matches(written, matching, fields))
        return found

    def _query_terms(self, topic: Topic) -> tuple[dict[str, str], dict[str, float]]:
        """For each term of a topic the first word that has it, as it is written, and how often it counts."""
        written: dict[str, str] = {}
        times: dict[str, float] = {}
        for text, weight in self.settings.weighted(topic):
            for word in text.split() if weight else ():
                for term in self._terms_of(word):
                    written.setdefault(term, shown(word))
                    times[term] = times.get(term, 0.0) + weight
        return written, times


class RankedWords(ExplainedWords):
    """The words of an index in an engine that also finds the best documents of a query."""

    @abstractmethod
    def _query(self, kind: str, topic: Topic, filters: Filters) -> Any | None:
        """The query for a topic to `PAPERS` or `CITANCES`, with filters; None if no field with a weight has a word."""

    @abstractmethod
    def _best(self, kind: str, query: Any, k: int) -> Hits:
        """The first k hits of such a query, with their documents; ties in any order."""

    @abstractmethod
    def _key(self, document: Any) -> str:
        """The key of a document of `CITANCES`."""

    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        """As `Words.search`."""
        adds_citances = self._adds_citances and sort == "relevance"
        depth = len(self._rows) if sort != "relevance" else max(DEPTH, k) if adds_citances else k
        own_words = self._query(PAPERS, topic, filters)
        cited_so = self._query(CITANCES, topic, filters) if adds_citances else None
        if own_words is None and cited_so is None:
            raise no_word(topic)
        papers = self._first(PAPERS, own_words, depth)
        if sort != "relevance":
            papers = papers.taken(self._filter.in_order(sort, papers.rows, papers.scores)[:k])
        if not adds_citances:
            return Candidates(self._rows, papers.rows, papers.scores, {"bm25": papers.scores})
        citances = self._first(CITANCES, cited_so, depth)
        weights = self.settings.weights.citances, self.settings.citance_decay
        return added_up(self._rows, papers, citances, weights, functools.partial(self._said, citances))[:k]

    def _first(self, kind: str, query: Any | None, k: int) -> Hits:
        import numpy as np

        if query is None:
            return Hits(np.empty(0, np.int64), np.empty(0))
        return settled(functools.partial(self._best, kind, query), k)

    def _said(self, citances: Hits, hit: int) -> tuple[str, int]:
        assert citances.documents is not None
        _, citing_id, position = self._key(citances.documents[hit]).split(" ")
        return citing_id, int(position)
