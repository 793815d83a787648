"""Retrieval by words: BM25 over the fields of papers and over citing sentences, by the engine of the index."""

import functools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.topic import Topic, clean
from citerec.errors import FilterError, QueryError, SettingsError
from citerec.files.resume import hash_sample
from citerec.index.base import ABSTRACT, CITANCE, TEXT, TITLE, Query, SearchHits
from citerec.index.columns import Mask, PaperRows, Rows, owners_of, places_in
from citerec.index.words.analysis import hash_of
from citerec.records import MARKER, NO_FILTERS, Filters, Match, Paper
from citerec.retrieve.base import Candidate, Candidates, CitanceKey, Citances, Floats, OpenIndex, Retriever
from citerec.settings import PartSettings, Weight

_KEPT = 1 << 14
_MIX = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64: rows that differ by one get unlike numbers


SORTS = ("relevance", "newest", "oldest", "most-cited", "venue", "field")
"""Orders of hits; ties are ordered by relevance, then paper id."""


class Bm25Settings(PartSettings):
    """BM25's parameters. Defaults chosen on data/acm dev: docs/results.md.

    Attributes:
        k1: How slowly repeats of a word saturate.
        b: How much long texts are penalised.
    """

    k1: float = Field(default=1.2, ge=0, le=1000)
    b: float = Field(default=0.75, ge=0, le=1)


class Weights(PartSettings):
    """Weights of a word by its field; 0 leaves the field out.

    Defaults chosen on the dev contexts of data/acm and data/acl: docs/results.md.

    Attributes:
        text: Title and abstract as one field.
        title: The title alone.
        abstract: The abstract alone, in an index built with -c abstract_field=true.
        citances: Sentences of other papers that cite the paper.
    """

    text: Weight = 1.0
    title: Weight = 0.35
    abstract: Weight = 0.0
    citances: Weight = 1.8


class WordSettings(PartSettings):
    """BM25 over the fields of papers and over citing sentences, for the weighted texts of a topic.

    Attributes:
        citing_title: Weight of the citing paper's title, if it is known, against 1 for the sentence.
        neighbours: Weight of the sentences before and after, against 1 for the sentence.
        near: Weight of the words nearest to the marker, once more, in a sentence with several citations.
        near_alone: Weight of these words in a sentence with one citation.
        citing_abstract: Weight of the citing paper's abstract, if the index has it, against 1 for the sentence.
        max_query_words: Longest sentence accepted, in words.
        citance_decay: Weight of each further citing sentence of a paper, against its better one.
    """

    citing_title: Weight = 0.0
    neighbours: Weight = 0.25
    near: Weight = 1.0
    near_alone: Weight = 0.0
    citing_abstract: Weight = 0.0
    max_query_words: int = Field(default=1000, ge=1)
    bm25: Bm25Settings = Bm25Settings()
    weights: Weights = Weights()
    citance_decay: float = Field(default=0.3, ge=0, le=1)

    def weighted(self, topic: Topic) -> tuple[tuple[str, float], ...]:
        """Each text of a topic with its weight, in a fixed order; words that two texts have are counted twice."""
        abstract = topic.citing.abstract or "" if self.citing_abstract and topic.citing else ""
        near = self.near if cites_others(topic) else self.near_alone
        return (
            (topic.text, 1.0),
            (self._shortened(topic.neighbours), self.neighbours),
            (topic.citing_title, self.citing_title),
            (words_near(topic) if near else "", near),
            (self._shortened(clean(abstract)), self.citing_abstract),
        )

    def _shortened(self, text: str) -> str:
        return " ".join(text.split()[: self.max_query_words])


class WordsRetriever(Retriever):
    """BM25 over title, abstract and citing sentences. Safe to call from several threads; ties are ordered by paper id.

    A paper scores the weighted sum of BM25 over its fields, and of its best citing sentences, each further one decayed:
    `Σ_f w_f · BM25_f + w_citances · Σ_j decay^j · BM25(sentence_j)` over the sentences that pass the filters.

    Raises:
        SettingsError: No field of the index has a weight, or a field that it lacks has one.
    """

    name = "words"
    label = "words"
    Settings = WordSettings
    filters_itself = True

    @classmethod
    def open(cls, index: OpenIndex, settings: WordSettings) -> Self:
        """Opens the words of an index."""
        if not index.manifest.engine:
            raise SettingsError("this needs an index", "Build one: citerec index build SOURCE… --out indexes/NAME")
        return cls(index, settings)

    def __init__(self, index: OpenIndex, settings: WordSettings) -> None:
        self.index, self.settings, self._engine = index, settings, index.engine
        weights, manifest = settings.weights, index.manifest
        own = {TEXT: weights.text, TITLE: weights.title, ABSTRACT: weights.abstract}
        self._fields = {name: weight for name, weight in own.items() if weight}
        self._terms_of = functools.lru_cache(_KEPT)(self._engine.terms_of)  # of words, of which most come again
        self._citances = weights.citances if manifest.counts.citances else 0.0
        if not (self._fields or self._citances):
            raise SettingsError("every weight is 0", "Give one field a weight: -c words.weights.text=1")
        if weights.abstract and not manifest.abstract_field:
            raise SettingsError(
                f"words.weights.abstract is {weights.abstract:g}, but {index.path} has no field of abstracts",
                "Set it to 0, or build the index again with -c abstract_field=true.",
            )

    def _query(self, topic: Topic, citances: float) -> Query:
        bm25 = self.settings.bm25
        texts = self.settings.weighted(topic)
        return Query(texts, self._fields, citances, self.settings.citance_decay, (bm25.k1, bm25.b))

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None, *, sort: str = "relevance"
    ) -> Candidates:
        """The k best candidates, best first; fewer if fewer share a word with the topic and pass the filters.

        Any `sort` (one of `SORTS`) but relevance orders every paper that shares a word with it.

        Raises:
            QueryError: The topic has no word to search for, or too many.
            FilterError: k is under 1, or the order is unknown.
        """
        if k < 1:
            raise FilterError(f"k is {k}", "Ask for at least one paper.")
        if sort not in SORTS:
            raise FilterError(f"no order is called {sort!r}", f"Orders are: {', '.join(SORTS)}.")
        if (words := len(topic.text.split())) > self.settings.max_query_words:
            raise QueryError(
                f"the sentence has {words:,} words, more than {self.settings.max_query_words:,}",
                f"Give the sentence around <REF>, or allow more with -c {self.name}.max_query_words=…",
            )
        by_score, index = sort == "relevance", self.index
        citances = self._citances if by_score else 0.0
        hits = self._engine.search(self._query(topic, citances), k if by_score else len(index.rows), filters)
        if hits is None:
            raise QueryError(
                f"no word to search for in {topic.text[:60]!r}",
                "Write a sentence with content words: stop words and punctuation are not searched.",
            )
        if citances:
            return self._added_up(hits)[:k]
        papers = hits.papers
        if not by_score:
            order = np.lexsort((papers.rows, -papers.scores, _order_of(index.rows, sort, papers.rows)))
            papers = papers.taken(order[:k])
        return Candidates(index.rows, papers.rows, papers.scores, {"bm25": papers.scores})

    def _added_up(self, hits: SearchHits) -> Candidates:
        """All papers that were found, or of which a citing sentence was found, best first."""
        papers, citances, least = hits
        weight, decay = self._citances, self.settings.citance_decay
        rows = np.union1d(papers.rows, citances.rows)
        words = np.full(len(rows), np.nan)
        words[np.searchsorted(rows, papers.rows)] = papers.scores
        # The citing sentences of a paper together, best first.
        order = np.argsort(citances.rows, kind="stable")
        owners, scored = np.searchsorted(rows, citances.rows[order]), citances.scores[order]
        counts = np.bincount(owners, minlength=len(rows))
        begins = np.cumsum(counts) - counts
        shares = weight * scored * decay ** (np.arange(len(scored)) - begins[owners])
        scores = np.nan_to_num(words) + np.bincount(owners, shares, len(rows))
        has, counted = counts > 0, scored >= least
        numbers = np.bincount(owners[counted], minlength=len(rows)).astype(float)
        padded = np.append(scored, [np.nan, np.nan])
        values = {
            "citance": padded[begins],
            "citance_2": padded[begins + 1],
            "citances": np.bincount(owners[counted], scored[counted], len(rows)),
            "citances_found": numbers,
        }
        signals = {name: np.where(numbers > (name == "citance_2"), of, np.nan) for name, of in values.items()}
        keys = np.full(len(rows), -1)
        keys[has] = order[begins[has]]

        def best(hit: int) -> CitanceKey:
            """The best citing sentence of a paper; of several with equal scores the first by citing paper and place."""
            alike = np.flatnonzero((citances.rows == citances.rows[hit]) & (citances.scores == citances.scores[hit]))
            sentences = (self._engine.sentence(citances.documents[at]) for at in alike)
            citing_id, position = min(sentences, key=lambda one: (one[0].encode(), one[1]))
            return CitanceKey(citing_id, position, weight * float(citances.scores[hit]))

        return Candidates(self.index.rows, rows, scores, {"bm25": words, **signals}, (Citances(keys, best),)).in_order()

    def matched(self, topic: Topic, paper_ids: Sequence[str]) -> tuple[Mask, Floats, Floats]:
        """What some papers, at least one, have of the words of a topic's sentence.

        Returns:
            Which words are nearest to the marker, (words,); what each adds to BM25 of title and abstract,
            (papers, words), 0 where they lack it; the same, of the title of the first paper, (words,).
        """
        terms = list(dict.fromkeys(self._terms_in(topic.text)))
        near = np.isin(terms, self._terms_in(words_near(topic)))
        query, keys = self._query(topic, 0.0), [(paper_id,) for paper_id in paper_ids]
        in_text = self._engine.term_scores(query, TEXT, terms, keys)
        (in_title,) = self._engine.term_scores(query, TITLE, terms, keys[:1])
        return near, in_text, in_title

    def _terms_in(self, text: str) -> list[str]:
        return [term for word in text.split() for term in self._terms_of(word)]

    def explain(
        self, topic: Topic, candidates: Sequence[Candidate], papers: Mapping[str, Paper]
    ) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first.

        Without citing sentences their scores add up to its score. Of its sentences only the best one is explained.
        """
        engine, query = self._engine, self._query(topic, self._citances)
        written: dict[str, str] = {}  # the first word that has a term, as it is written
        times = defaultdict[str, float](float)
        for text, weight in query.texts:
            for word in text.split() if weight else ():
                for term in self._terms_of(word):
                    written.setdefault(term, word.strip(".,;:!?()[]\"'“”"))
                    times[term] += weight
        terms, factors = list(times), np.array(list(times.values()))
        paper_ids = [one.paper_id for one in candidates]
        scores, cited_so = np.zeros((2, len(candidates), len(terms)))
        for field, weight in self._fields.items():
            keys = [(paper_id,) for paper_id in paper_ids]
            scores += factors * weight * engine.term_scores(query, field, terms, keys)
        said = {at: one.citance for at, one in enumerate(candidates) if one.citance and self._citances}
        if said:
            named = [(paper_ids[at], citance.citing_id, str(citance.position)) for at, citance in said.items()]
            cited_so[list(said)] = engine.term_scores(query, CITANCE, terms, named)
            scores += factors * cited_so * self._citances
        matches = []
        for at, paper_id in enumerate(paper_ids):
            paper = papers[paper_id]
            places = {
                TITLE: {*engine.terms_of(paper.title)},
                ABSTRACT: {*engine.terms_of(paper.abstract or "")},
                CITANCE: {terms[place] for place in np.flatnonzero(cited_so[at] > 0)},
            }
            # "state-of-the-art" is one word, and several terms.
            words = defaultdict[str, float](float)
            fields: dict[str, dict[str, None]] = defaultdict(dict)
            for place in np.flatnonzero(scores[at] > 0):
                word = written[terms[place]]
                words[word] += float(scores[at, place])
                fields[word] |= dict.fromkeys(name for name, having in places.items() if terms[place] in having)
            of_paper = [Match(word, tuple(fields[word]), score) for word, score in words.items()]
            matches.append(tuple(sorted(of_paper, key=lambda match: (-match.score, match.word))))
        return matches


_LONGEST, _FEWEST = 12, 3
# Another citation of the sentence: "[3]", "[…]", "(Smith, 2010)", "Smith (2010)", and the space before a comma or full
# stop from where a citation was taken out.
_OTHER = r"\[\s?(?:\d{1,4}[^\[\]]{0,100}|…)\]|\([^()]{0,200}(?:1[89]|20)\d\d[a-z]?\)|(?<=\w)\s[,;.](?=\s|$)"
_CITATION = re.compile(_OTHER)
_ENDS = re.compile(rf"{_OTHER}|[,;:](?=\s)")  # or the end of a clause
_ITEM_ENDS = re.compile(r"\s*(?:[,;:.)\]]|(?:and|or)\s|$)")
_WORD = re.compile(r"\w")


def cites_others(topic: Topic) -> bool:
    """Whether the sentence seems to have other citations than the one at its marker."""
    return _CITATION.search(topic.context.text) is not None


def cites_before(topic: Topic) -> bool:
    """Whether the sentence seems to have another citation before its marker."""
    before, marker, _ = topic.context.text.partition(MARKER)
    return bool(marker) and _CITATION.search(before) is not None


def words_near(topic: Topic) -> str:
    """The words of the sentence that are most about its citation, at most 12; empty without a marker.

    They are the last ones before the marker, back to another citation or the beginning of the clause. If fewer than
    three stand there, as where a sentence begins with the marker, those that follow it in its clause are added. If
    there are none either, they are those of the clause before.
    """
    before, marker, after = topic.context.text.partition(MARKER)
    if not marker:
        return ""
    parts = [_words(part) for part in _ENDS.split(before)]
    near = parts[-1][-_LONGEST:]
    if not near or (len(near) < _FEWEST and not _ITEM_ENDS.match(after)):
        near += _words(_ENDS.split(after)[0])[: _LONGEST - len(near)]
    return " ".join(near or next((part[-_LONGEST:] for part in reversed(parts) if part), []))


def _words(text: str) -> list[str]:
    return [word for word in clean(text).split() if _WORD.search(word)]


def _order_of(papers: PaperRows, sort: str, rows: Rows) -> Floats:
    """What some rows are sorted by, least first, (rows,): `newest`, `oldest`, `most-cited`, `venue` or `field`.

    What is not known comes last: infinity.
    """
    columns = papers.columns
    if sort in ("newest", "oldest", "most-cited"):
        values = (columns.citation_counts if sort == "most-cited" else columns.years)[rows].astype(np.float64)
        return np.where(values < 0, np.inf, values if sort == "oldest" else -values)
    if sort == "venue":
        return _ranks(papers.names["venues"], columns.venues[rows, 1])
    begins, places = places_in(columns.field_begins, rows)
    ranks = np.full(len(rows), np.inf)
    np.minimum.at(ranks, owners_of(begins), _ranks(papers.names["fields"], columns.fields[places]))
    return ranks


def _ranks(names: Sequence[str], hashes: NDArray[np.uint64]) -> Floats:
    """The rank of each hash among those of names in small letters, in their order; infinity for others."""
    ranks = {hash_of(name): rank for rank, name in enumerate(dict.fromkeys(map(str.casefold, names)))}
    return np.array([ranks.get(one, np.inf) for one in hashes.tolist()], np.float64)


class WithheldCitances(WordsRetriever):
    """A retriever of words without the citing sentences of a share of the papers, other ones for each context.

    With it a ranker learns what to do with papers that nobody cited yet.

    Args:
        words: The retriever.
        share: The share of the papers.
        seed: Seed of the choice.
    """

    def __init__(self, words: WordsRetriever, share: float, seed: int) -> None:
        super().__init__(words.index, words.settings)
        self._share, self._seed = share, seed

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None, *, sort: str = "relevance"
    ) -> Candidates:
        """The candidates of the retriever, without what is withheld."""
        candidates = super().search(topic, k, filters, sort=sort)
        without = withheld(topic, candidates.rows, self._share, self._seed)
        signals = {
            name: np.where(without, np.nan, values) if name.startswith("citance") else values
            for name, values in candidates.signals.items()
        }
        scores = np.where(without, candidates.signal("bm25"), candidates.scores)
        citances = tuple(replace(one, keys=np.where(without, -1, one.keys)) for one in candidates.citances)
        rest = replace(candidates, scores=scores, signals=signals, citances=citances)
        return rest.taken(np.flatnonzero(~np.isnan(scores))).in_order()


def withheld(topic: Topic, rows: Rows, share: float, seed: int) -> Mask:
    """For which papers the citing sentences are withheld from a context, (rows,)."""
    number = np.uint64(hash_sample(seed, topic.context.context_id))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + number) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    return (mixed >> np.uint64(32)).astype(np.float64) < share * 2.0**32
