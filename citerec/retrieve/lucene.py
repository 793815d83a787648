"""Searching the Lucene indexes: BM25 over weighted fields, citing sentences, exact filters."""

import functools
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, IndexUnusableError, QueryError, SearchError, SettingsError
from citerec.records import NO_FILTERS, Filters, Match
from citerec.retrieve import lucene_fields as fields
from citerec.retrieve.base import RETRIEVERS, Candidate, CitanceKey, Retriever
from citerec.retrieve.jvm import (
    cast,
    class_object,
    detach,
    java_class,
    java_failures,
    java_list,
    java_lock,
    method_handle,
    start,
)
from citerec.retrieve.lucene_ids import matching_ids
from citerec.retrieve.lucene_queries import (
    ENGINE_FIELDS,
    SORTS,
    Parsers,
    filtered,
    occur,
    query_terms,
    sort_by,
    term_query,
)
from citerec.retrieve.lucene_settings import LuceneSettings

if TYPE_CHECKING:
    from citerec.retrieve.opened import OpenIndex

_INDEX_SEARCHER = "org.apache.lucene.search.IndexSearcher"
# How deep both lists are read before the scores of a paper and its citances are added up. What a paper scores must
# not depend on how many are asked for, so that this is no multiple of k.
_DEPTH = 1000
# FieldDoc.toString(), by the sort keys: …, score, [id in hexadecimal] — and citing id and position for citances.
_PAPER_HIT = re.compile(r"doc=\d+ [^=]*=[^=]*=-?\d+ fields=\[(?:[^=]*, )?([-+.E\d]+), \[([ 0-9a-f]*)\]\]")
_CITANCE_HIT = re.compile(
    r"doc=\d+ [^=]*=[^=]*=-?\d+ fields=\[([-+.E\d]+), \[([ 0-9a-f]*)\], \[([ 0-9a-f]*)\], (\d+)\]"
)


Task = TypeVar("Task")
Found = TypeVar("Found")


class _PaperHit(NamedTuple):
    score: float
    paper_id: str


class _CitanceHit(NamedTuple):
    score: float
    paper_id: str
    citing_id: str
    position: int


@RETRIEVERS.register
class LuceneRetriever(Retriever):
    """BM25 over title, abstract and citances. Safe to call from several threads.

    A paper scores the weighted sum of BM25 over its fields, and of its best citances, each further one decayed:
    `Σ_f w_f · BM25_f + w_citances · Σ_j decay^j · BM25(citance_j)` over the citances that the filters leave.

    Args:
        path: Folder with the Lucene indexes `papers` and, where there are citances, `citances`.
        settings: Weights and BM25's parameters.

    Raises:
        IndexUnusableError: Lucene cannot open what lies there.
        SettingsError: No field that the index has is given a weight.
    """

    name = "lucene"
    label = "words"
    Settings = LuceneSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", _settings: LuceneSettings) -> "LuceneRetriever":
        """The words of an open index, which were opened with these settings."""
        return index.lucene

    def __init__(self, path: Path, settings: LuceneSettings | None = None) -> None:
        self.settings = settings or LuceneSettings()
        start()
        with java_lock, java_failures(f"opening {path}", IndexUnusableError):
            self._papers = _Searcher(path / "papers", self.settings)
            has_citances = (path / "citances").is_dir()
            self._citances = _Searcher(path / "citances", self.settings) if has_citances else None
            self._parsers = Parsers(self.settings)
            if not self._parsers.reach(citances=has_citances):
                raise SettingsError("every weight is 0", "Give one field a weight: --set weights.text=1")

    def close(self) -> None:
        """Lets go of the index's files."""
        with java_lock:
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
        """The k best candidates, best first; fewer where fewer share a word with the query.

        Args:
            topic: What to search for.
            k: How many candidates, from 1.
            filters: Which papers may be found; exact.
            sort: One of SORTS. Any other than relevance orders every paper that shares a word with the query.

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
            with java_lock:
                words = self._parsers.papers(topic)
                cited_so = self._parsers.citances(topic) if weigh_citances else None
                if words is None and cited_so is None:
                    raise QueryError(
                        f"no word to search for in {topic.text[:60]!r}",
                        "Write a sentence with words of its own: stop words and signs are not searched.",
                    )
                allowed = words and filtered(words, filters, known_year=sort == "oldest")
                citances_allowed = cited_so and filtered(cited_so, filters, citances=True)
            papers = self._paper_hits(allowed, depth, sort)
            if citances_allowed is None:
                return [Candidate(hit.paper_id, hit.score, None, {"bm25": hit.score}) for hit in papers]
            return self._added_up(papers, self._citance_hits(citances_allowed, depth), k)

    def _added_up(self, papers: list[_PaperHit], citances: list[_CitanceHit], k: int) -> list[Candidate]:
        weights, decay = self.settings.weights, self.settings.citance_decay
        words = {hit.paper_id: hit.score for hit in papers}
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

    def _paper_hits(self, query: Any | None, depth: int, sort: str) -> list[_PaperHit]:
        printed = self._papers.search(query, depth, sort) if query else ""
        return [_PaperHit(float(score), _text(paper_id)) for score, paper_id in _PAPER_HIT.findall(printed)]

    def _citance_hits(self, query: Any, depth: int) -> list[_CitanceHit]:
        assert self._citances is not None
        printed = self._citances.search(query, depth, "citances")
        return [
            _CitanceHit(float(score), _text(cited), _text(citing), int(position))
            for score, cited, citing, position in _CITANCE_HIT.findall(printed)
        ]

    def matches_nothing(self, filters: Filters) -> bool:
        """Whether no paper of the index passes the filters."""
        with java_lock, java_failures("filtering", SearchError):
            everything = java_class("org.apache.lucene.search.MatchAllDocsQuery")()
            return self._papers.count(filtered(everything, filters)) == 0

    def matching_ids(self, filters: Filters) -> list[str]:
        """The ids of all papers that pass some filters, in order of id."""
        return matching_ids(self._papers, filters)

    def explain(self, topic: Topic, candidate: Candidate) -> tuple[Match, ...]:
        """The words of the query that speak for a candidate, best first.

        Without citances their scores add up to its score. Of citances only the one that speaks most is looked into;
        what further ones add stands under no word.
        """
        weights = self.settings.weights
        with java_lock, java_failures("explaining", SearchError):
            found: dict[str, float] = defaultdict(float)
            where: dict[str, list[str]] = defaultdict(list)
            words = query_terms(topic, self.settings)
            document = self._papers.document(((fields.ID, candidate.paper_id),))
            for term, (_, times) in words.items():
                for name in ("title", "abstract", "text"):
                    score = self._papers.term_score(document, ENGINE_FIELDS[name], term)
                    if score > 0:
                        found[term] += times * score * getattr(weights, name)
                        if name != "text":
                            where[term].append(name)
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
                "Give the sentence around <REF>, or allow more with --set max_query_words=…",
            )


def _signals(words: float | None, citances: Sequence[float]) -> dict[str, float]:
    signals = {} if words is None else {"bm25": words}
    if citances:
        signals |= {"citance": citances[0], "citances": sum(citances), "citances_found": len(citances)}
        if len(citances) > 1:
            signals["citance_2"] = citances[1]
    return signals


def answered_in_threads(answer: Callable[[Task], Found], tasks: Iterable[Task], threads: int) -> Iterator[Found]:
    """Answers in order, several at once, in threads that let go of Java at their end."""
    with ThreadPoolExecutor(threads, thread_name_prefix="search") as pool:
        try:
            yield from pool.map(answer, tasks)
        finally:
            _detach_all(pool, threads)


class _Searcher:
    """One Lucene index, open for searching."""

    def __init__(self, path: Path, settings: LuceneSettings) -> None:
        directory = fields.open_directory(path)
        self.reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
        as_reader = cast("org.apache.lucene.index.IndexReader", self.reader)
        self._searcher = java_class(_INDEX_SEARCHER)(as_reader)
        similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")
        self._searcher.setSimilarity(similarity(settings.bm25.k1, settings.bm25.b))
        self._search = _search_and_print()

    def search(self, query: Any, k: int, sort: str) -> str:
        """The k first hits as Java prints them. The lock must not be held: this is what runs beside others."""
        with java_lock:
            arguments = java_list([self._searcher, query, k, sort_by(sort)])
            packed = cast("java.util.List", arguments)
            invoke = self._search.invokeWithArguments
        return str(invoke(packed))

    def count(self, query: Any) -> int:
        """How many documents a query has."""
        return int(self._searcher.count(query))

    def document(self, terms: Iterable[tuple[str, str]], position: int | None = None) -> int:
        """Lucene's number of the document that has all these terms, and this position if one is given."""
        builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        for field, value in terms:
            term = term_query(field, value)
            builder.add(term, occur().FILTER)
        if position is not None:
            place = java_class("org.apache.lucene.document.NumericDocValuesField").newSlowExactQuery(
                fields.POSITION, position
            )
            builder.add(place, occur().FILTER)
        query = builder.build()
        return int(self._searcher.search(query, 1).scoreDocs[0].doc)

    def term_score(self, document: int, field: str, term: str) -> float:
        """What BM25 gives a document for a term; 0 where it has not got it."""
        query = cast("org.apache.lucene.search.Query", term_query(field, term))
        explanation = self._searcher.explain(query, document)
        return float(explanation.getValue().doubleValue()) if explanation.isMatch() else 0.0


@functools.cache
def _search_and_print() -> Any:
    """`IndexSearcher.search(Query, int, Sort)`, then `Arrays.toString` of its hits, as one Java function.

    Reading a hundred hits one by one through pyjnius takes longer than the search; one string takes 0.1 ms.
    There is one such function in the process, and nothing else calls `invokeWithArguments` (jvm.py says why).
    """
    handles = java_class("java.lang.invoke.MethodHandles")
    types = java_class("java.lang.invoke.MethodType")
    by_name = java_class("java.lang.Class").forName
    top_docs = class_object("org.apache.lucene.search.TopDocs")
    top_field_docs = class_object("org.apache.lucene.search.TopFieldDocs")
    string, hits = class_object("java.lang.String"), by_name("[Lorg.apache.lucene.search.ScoreDoc;")
    search = method_handle(
        _INDEX_SEARCHER,
        "search",
        top_field_docs,
        class_object("org.apache.lucene.search.Query"),
        class_object("int"),
        class_object("org.apache.lucene.search.Sort"),
    )
    lookup = handles.publicLookup()
    score_docs = lookup.findGetter(top_docs, "scoreDocs", hits)
    objects_to_string = types.methodType(string, by_name("[Ljava.lang.Object;"))
    to_string = lookup.findStatic(class_object("java.util.Arrays"), "toString", objects_to_string)
    hits_to_string = to_string.asType(types.methodType(string, hits))
    printed = handles.filterReturnValue(score_docs, hits_to_string)
    printed = printed.asType(types.methodType(string, top_field_docs))
    return handles.filterReturnValue(search, printed)


def _matches(shown: dict[str, str], found: dict[str, float], where: dict[str, list[str]]) -> tuple[Match, ...]:
    """One match a word as written: "state-of-the-art" is several terms."""
    scores: dict[str, float] = defaultdict(float)
    places: dict[str, dict[str, None]] = defaultdict(dict)
    for term, score in found.items():
        if score > 0:
            scores[shown[term]] += score
            places[shown[term]] |= dict.fromkeys(where[term])
    matches = [Match(word, tuple(places[word]), score) for word, score in scores.items()]
    return tuple(sorted(matches, key=lambda match: (-match.score, match.word)))


def _text(hexadecimal: str) -> str:
    # Java prints a byte under 0x10 as one digit.
    return bytes(int(byte, 16) for byte in hexadecimal.split()).decode()


def _detach_all(pool: ThreadPoolExecutor, threads: int) -> None:
    """Lets every thread of a pool tell Java that it ends; a barrier keeps one from doing it twice."""
    barrier = threading.Barrier(threads)

    def leave() -> None:
        barrier.wait()
        detach()

    for future in [pool.submit(leave) for _ in range(threads)]:
        future.result()
