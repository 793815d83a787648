"""Searching the Lucene indexes: BM25 over weighted fields, citing sentences, exact filters."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, IndexUnusableError, QueryError, SearchError, SettingsError
from citerec.records import NO_FILTERS, Filters, Match
from citerec.retrieve.base import RETRIEVERS, Candidate, CitanceKey, Retriever
from citerec.retrieve.lucene import fields
from citerec.retrieve.lucene.jvm import java_class, java_failures, java_text, java_threads
from citerec.retrieve.lucene.queries import (
    ENGINE_FIELDS,
    SORTS,
    LuceneSettings,
    Parsers,
    filtered,
    occur,
    query_terms,
    sort_by,
    term_query,
)

if TYPE_CHECKING:
    from citerec.retrieve.opened import OpenIndex

# How deep both lists are read before the scores of a paper and its citances are added up. Scores must not depend on
# k, so this is not a multiple of k.
_DEPTH = 1000
_PAGE = 500_000
# Java methods that turn a sort key into text: of a number, or of the bytes of an id.
_PLAIN = ("java.lang.Object", "toString")
_BYTES = ("org.apache.lucene.util.BytesRef", "utf8ToString")

Task = TypeVar("Task")
Found = TypeVar("Found")


class _CitanceHit(NamedTuple):
    score: float
    paper_id: str
    citing_id: str
    position: int


@RETRIEVERS.register
class LuceneRetriever(Retriever):
    """BM25 over title, abstract and citances. Safe to call from several threads.

    A paper scores the weighted sum of BM25 over its fields, and of its best citances, each further one decayed:
    `Σ_f w_f · BM25_f + w_citances · Σ_j decay^j · BM25(citance_j)` over the citances that pass the filters.

    Raises:
        IndexUnusableError: Lucene cannot open the index.
        SettingsError: No field of the index has a weight, or a field that it lacks has one.
    """

    name = "lucene"
    label = "words"
    Settings = LuceneSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", _settings: LuceneSettings) -> "LuceneRetriever":
        """The retriever of the open index, which was opened with these settings."""
        return index.lucene

    def __init__(self, path: Path, settings: LuceneSettings | None = None) -> None:
        self.settings = settings or LuceneSettings()
        with java_failures(f"opening {path}", IndexUnusableError):
            self._papers = _Searcher(path / "papers", self.settings)
            has_citances = (path / "citances").is_dir()
            self._citances = _Searcher(path / "citances", self.settings) if has_citances else None
            self._parsers = Parsers(self.settings)
            if not self._parsers.reach(citances=has_citances):
                raise SettingsError("every weight is 0", "Give one field a weight: --set lucene.weights.text=1")
            if (weight := self.settings.weights.abstract) and not self._papers.has_field(fields.ABSTRACT):
                raise SettingsError(
                    f"lucene.weights.abstract is {weight:g}, but {path.parent} has no field of abstracts",
                    "Set it to 0, or build the index again with --abstract-field.",
                )

    def close(self) -> None:
        """Closes the index's files."""
        with java_failures("closing the index", SearchError):
            self._papers.reader.close()
            if self._citances is not None:
                self._citances.reader.close()

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        _prepared: None = None,
        *,
        sort: str = "relevance",
    ) -> list[Candidate]:
        """The k best candidates, best first; fewer if fewer share a word with the query.

        Any `sort` (one of SORTS) except relevance orders every paper that shares a word with the query.

        Raises:
            QueryError: The query has no word to search for, or too many.
            FilterError: k is under 1, or the order is unknown.
        """
        if k < 1:
            raise FilterError(f"k is {k}", "Ask for at least one paper.")
        if sort not in SORTS:
            raise FilterError(f"no order is called {sort!r}", f"Orders are: {', '.join(SORTS)}.")
        self._check_length(topic)
        weigh_citances = self._citances is not None and self.settings.weights.citances > 0 and sort == "relevance"
        depth = max(_DEPTH, k) if weigh_citances else k
        with java_failures("searching", SearchError):
            words = self._parsers.papers(topic)
            cited_so = self._parsers.citances(topic) if weigh_citances else None
            if words is None and cited_so is None:
                raise QueryError(
                    f"no word to search for in {topic.text[:60]!r}",
                    "Write a sentence with content words: stop words and punctuation are not searched.",
                )
            papers: list[tuple[str, float]] = []
            if words is not None:
                papers = self._paper_hits(filtered(words, filters, known_year=sort == "oldest"), depth, sort)
            if cited_so is None:
                return [Candidate(paper_id, score, None, {"bm25": score}) for paper_id, score in papers]
            return self._added_up(papers, self._citance_hits(filtered(cited_so, filters, citances=True), depth), k)

    def _added_up(self, papers: list[tuple[str, float]], citances: list[_CitanceHit], k: int) -> list[Candidate]:
        weights, decay = self.settings.weights, self.settings.citance_decay
        words = dict(papers)
        scores = defaultdict(float, words)
        said: dict[str, list[float]] = defaultdict(list)
        best: dict[str, CitanceKey] = {}
        for hit in citances:
            share = weights.citances * hit.score * decay ** len(said[hit.paper_id])
            said[hit.paper_id].append(hit.score)
            scores[hit.paper_id] += share
            best.setdefault(hit.paper_id, CitanceKey(hit.citing_id, hit.position, share))
        ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0].encode()))
        return [
            Candidate(paper_id, score, best.get(paper_id), _signals(words.get(paper_id), said.get(paper_id, ())))
            for paper_id, score in ordered[:k]
        ]

    def _paper_hits(self, query: Any, depth: int, sort: str) -> list[tuple[str, float]]:
        hits = self._papers.search(query, depth, sort)
        place = 0 if sort == "relevance" else 1
        return list(zip(_column(hits, place + 1, _BYTES), map(float, _column(hits, place)), strict=True))

    def _citance_hits(self, query: Any, depth: int) -> list[_CitanceHit]:
        assert self._citances is not None
        hits = self._citances.search(query, depth, "citances")
        cited, citing = _column(hits, 1, _BYTES), _column(hits, 2, _BYTES)
        return list(map(_CitanceHit, map(float, _column(hits, 0)), cited, citing, map(int, _column(hits, 3))))

    def matches_nothing(self, filters: Filters) -> bool:
        """Whether no paper of the index passes the filters."""
        with java_failures("filtering", SearchError):
            everything = java_class("org.apache.lucene.search.MatchAllDocsQuery")()
            return self._papers.count(filtered(everything, filters)) == 0

    def matching_ids(self, filters: Filters) -> list[str]:
        """The ids of all papers that pass some filters, in order of id."""
        with java_failures("filtering", SearchError):
            everything = java_class("org.apache.lucene.search.MatchAllDocsQuery")()
            query = filtered(everything, filters)
            found: list[str] = []
            hits = None
            while hits is None or len(hits) == _PAGE:
                # All scores are equal, so the order of relevance is that of ids.
                hits = self._papers.search(query, _PAGE, "relevance", after=hits and hits[-1])
                found += _column(hits, 1, _BYTES)
        return found

    def explain(self, topic: Topic, candidate: Candidate) -> tuple[Match, ...]:
        """The words of the query that a candidate matches, best first.

        Without citances their scores add up to its score. Of its citances only the best one is explained; the
        scores of further ones are not part of any word.
        """
        weights = self.settings.weights
        with java_failures("explaining", SearchError):
            found: dict[str, float] = defaultdict(float)
            where: dict[str, list[str]] = defaultdict(list)
            words = query_terms(topic, self.settings)
            document = self._papers.document(((fields.ID, candidate.paper_id),))
            for term, (_, times) in words.items():
                for name, engine in ENGINE_FIELDS.items():
                    if weight := getattr(weights, name):
                        found[term] += times * weight * self._papers.term_score(document, engine, term)
                in_text, in_title = (
                    self._papers.frequency(document, name, term) for name in (fields.TEXT, fields.TITLE)
                )
                where[term] += ["title"] * (in_title > 0) + ["abstract"] * (in_text > in_title)
            if candidate.citance and self._citances is not None:
                place = ((fields.ID, candidate.paper_id), (fields.CITING, candidate.citance.citing_id))
                document = self._citances.document(place, candidate.citance.position)
                for term, (_, times) in words.items():
                    score = self._citances.term_score(document, fields.CITANCE, term)
                    if score > 0:
                        found[term] += times * score * weights.citances
                        where[term].append("citance")
        return _matches({term: shown for term, (shown, _) in words.items()}, found, where)

    def _check_length(self, topic: Topic) -> None:
        longest = self.settings.max_query_words
        if (words := len(topic.text.split())) > longest:
            raise QueryError(
                f"the sentence has {words:,} words, more than {longest:,}",
                "Give the sentence around <REF>, or allow more with --set lucene.max_query_words=…",
            )


def _signals(words: float | None, citances: Sequence[float]) -> dict[str, float]:
    signals = {} if words is None else {"bm25": words}
    if citances:
        signals |= {"citance": citances[0], "citances": sum(citances), "citances_found": len(citances)}
        if len(citances) > 1:
            signals["citance_2"] = citances[1]
    return signals


def answered_in_threads(answer: Callable[[Task], Found], tasks: Iterable[Task], threads: int) -> Iterator[Found]:
    """Yields answers in the order of the tasks, several at once."""
    with java_threads(threads) as pool:
        yield from pool.map(answer, tasks)


class _Searcher:
    """One Lucene index, open for searching."""

    def __init__(self, path: Path, settings: LuceneSettings) -> None:
        self.reader = java_class("org.apache.lucene.index.DirectoryReader").open(fields.open_directory(path))
        self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(self.reader)
        similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")
        self._searcher.setSimilarity(similarity(settings.bm25.k1, settings.bm25.b))

    def search(self, query: Any, k: int, sort: str, after: Any = None) -> Any:
        """The first k hits, or the k hits after another one, as a Java array."""
        return self._searcher.searchAfter(after, query, k, sort_by(sort)).scoreDocs

    def count(self, query: Any) -> int:
        """How many documents match a query."""
        return int(self._searcher.count(query))

    def document(self, terms: Iterable[tuple[str, str]], position: int | None = None) -> int:
        """Lucene's number of the document that has all these terms, and this position if one is given."""
        builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        for field, value in terms:
            builder.add(term_query(field, value), occur().FILTER)
        if position is not None:
            place = java_class("org.apache.lucene.document.NumericDocValuesField").newSlowExactQuery(
                fields.POSITION, position
            )
            builder.add(place, occur().FILTER)
        return int(self._searcher.search(builder.build(), 1).scoreDocs[0].doc)

    def has_field(self, name: str) -> bool:
        """Whether any document was written with this field."""
        infos = java_class("org.apache.lucene.index.FieldInfos").getMergedFieldInfos(self.reader)
        return infos.fieldInfo(name) is not None

    def frequency(self, document: int, field: str, term: str) -> int:
        """How often a field of a document has a term."""
        term_bytes = java_class("org.apache.lucene.util.BytesRef")(java_text(term))
        found = java_class("org.apache.lucene.index.MultiTerms").getTermPostingsEnum(self.reader, field, term_bytes)
        return int(found.freq()) if found is not None and found.advance(document) == document else 0

    def term_score(self, document: int, field: str, term: str) -> float:
        """The BM25 score of a document for a term; 0 if the document lacks it."""
        explanation = self._searcher.explain(term_query(field, term), document)
        return float(explanation.getValue().doubleValue()) if explanation.isMatch() else 0.0


def _column(hits: Any, place: int, method: tuple[str, str] = _PLAIN) -> list[str]:
    """One sort key of all hits: `hit.fields[place]`, turned into text in Java by a method of its class.

    Reading a thousand hits one by one takes longer than finding them, so all come as one text. No key has a space.
    """
    keys = java_class("java.util.Arrays").stream(hits).map(_key(place, *method))
    return str(keys.collect(java_class("java.util.stream.Collectors").joining(" "))).split()


@functools.cache
def _key(place: int, owner: str, method: str) -> Any:
    handles, types = java_class("java.lang.invoke.MethodHandles"), java_class("java.lang.invoke.MethodType")
    text, anything, values = map(java_class, ("java.lang.String", "java.lang.Object", "java.lang.Object[]"))
    lookup = handles.publicLookup()
    of_hit = lookup.findGetter(java_class("org.apache.lucene.search.FieldDoc"), "fields", values)
    at_place = handles.insertArguments(handles.arrayElementGetter(values), 1, java_class("java.lang.Integer")(place))
    to_text = lookup.findVirtual(java_class(owner), method, types.methodType(text))
    whole = handles.filterReturnValue(of_hit, at_place)
    whole = handles.filterReturnValue(whole, to_text.asType(types.methodType(text, anything)))
    proxies = java_class("java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(java_class("java.util.function.Function"), whole)


def _matches(shown: dict[str, str], found: dict[str, float], where: dict[str, list[str]]) -> tuple[Match, ...]:
    """One match per word as written: "state-of-the-art" is several terms."""
    scores: dict[str, float] = defaultdict(float)
    places: dict[str, dict[str, None]] = defaultdict(dict)
    for term, score in found.items():
        if score > 0:
            scores[shown[term]] += score
            places[shown[term]] |= dict.fromkeys(where[term])
    matches = [Match(word, tuple(places[word]), score) for word, score in scores.items()]
    return tuple(sorted(matches, key=lambda match: (-match.score, match.word)))
