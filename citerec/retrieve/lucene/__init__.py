"""Searching the Lucene indexes: BM25 over weighted fields, citing sentences, exact filters."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, IndexUnusableError, SearchError, SettingsError
from citerec.records import NO_FILTERS, Filters, Match
from citerec.retrieve.base import Retriever
from citerec.retrieve.candidates import Candidate, Candidates
from citerec.retrieve.hits import DEPTH, Hits, added_up, settled
from citerec.retrieve.lucene import fields
from citerec.retrieve.lucene.documents import citing_sentence, hits_of
from citerec.retrieve.lucene.jvm import java_class, java_failures, java_text
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
from citerec.retrieve.rows import PaperRows, rows_of_documents
from citerec.retrieve.topic_texts import no_word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.bm25s import Bm25sRetriever
    from citerec.retrieve.opened import OpenIndex

_PAGE = 500_000


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
    def open(cls, index: "OpenIndex", settings: LuceneSettings) -> "LuceneRetriever":
        """The retriever of the open index, which was opened with these settings."""
        if settings.engine != "lucene":
            from citerec.retrieve.bm25s import Bm25sRetriever

            if settings.engine == "bm25s":
                index.lucene._engine = Bm25sRetriever.for_lucene(index, settings)
            elif Bm25sRetriever.fits(index, settings):
                index.lucene._open_engine = functools.partial(Bm25sRetriever.for_lucene, index, settings)
        return index.lucene

    def __init__(self, path: Path, settings: LuceneSettings | None = None) -> None:
        self.settings = settings or LuceneSettings()
        self._engine: Bm25sRetriever | None = None
        self._open_engine: Callable[[], Bm25sRetriever] | None = None
        self.rows = PaperRows.open(path)
        has_citances = (path / "citances").is_dir()
        with java_failures(f"opening {path}", IndexUnusableError):
            self._papers = _Searcher(path, "papers", self.settings)
            self._citances = _Searcher(path, "citances", self.settings) if has_citances else None
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

    def prepare(self, topics: Sequence[Topic]) -> Sequence[None]:
        """Nothing; but several topics are worth the start of a faster engine, which takes longer than one search."""
        if len(topics) > 1 and self._engine is None and self._open_engine is not None:
            self._engine = self._open_engine()
        return [None] * len(topics)

    def search(
        self,
        topic: Topic,
        k: int,
        filters: Filters = NO_FILTERS,
        _prepared: None = None,
        *,
        sort: str = "relevance",
    ) -> Candidates:
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
        self.settings.check_length(topic, self.name)
        weigh_citances = self._citances is not None and self.settings.weights.citances > 0 and sort == "relevance"
        depth = max(DEPTH, k) if weigh_citances else k
        engine = self._engine if sort == "relevance" else None
        scored = None if engine is None else engine.search(topic, depth, filters)  # raises QueryError as below
        with java_failures("searching", SearchError):
            words = self._parsers.papers(topic) if engine is None else None
            cited_so = self._parsers.citances(topic) if weigh_citances else None
            if scored is None and words is None and cited_so is None:
                raise no_word(topic)
            words = words and filtered(words, filters, known_year=sort == "oldest")
            cited_so = cited_so and filtered(cited_so, filters, citances=True)
        papers = Hits(scored.rows, scored.scores) if scored is not None else self._papers.best(words, depth, sort)
        if self._citances is None or cited_so is None:
            return Candidates(self.rows, papers.rows, papers.scores, {"bm25": papers.scores})
        said = self._citances.best(cited_so, depth)
        weights, decay = self.settings.weights, self.settings.citance_decay
        return added_up(self.rows, papers, said, (weights.citances, decay), functools.partial(self._said, said))[:k]

    def _said(self, hits: Hits, at: int) -> tuple[str, int]:
        """The citing paper of a hit among citing sentences, and the sentence's position among those of that paper."""
        assert self._citances is not None
        assert hits.documents is not None
        with java_failures("reading citing sentences", SearchError):
            return citing_sentence(self._citances.reader, int(hits.documents[at]))

    def matches_nothing(self, filters: Filters) -> bool:
        """Whether no paper of the index passes the filters."""
        with java_failures("filtering", SearchError):
            everything = java_class("org.apache.lucene.search.MatchAllDocsQuery")()
            return self._papers.count(filtered(everything, filters)) == 0

    def matching_rows(self, filters: Filters) -> "NDArray[np.int64]":
        """The rows of all papers that pass some filters, in order."""
        with java_failures("filtering", SearchError):
            everything = java_class("org.apache.lucene.search.MatchAllDocsQuery")()
            return self._papers.all_rows(filtered(everything, filters))

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


class _Searcher:
    """One of the Lucene indexes of a folder, open for searching. All calls but `best` are made in `java_failures`."""

    def __init__(self, folder: Path, name: str, settings: LuceneSettings) -> None:
        self._rows = rows_of_documents(folder, name)
        self.reader = java_class("org.apache.lucene.index.DirectoryReader").open(fields.open_directory(folder / name))
        if self.reader.maxDoc() != len(self._rows):
            raise IndexUnusableError(
                f"{folder / name} has {self.reader.maxDoc():,} documents, and rows for {len(self._rows):,}",
                f"Build the index again from its sources: citerec index build … --out {folder.parent}",
            )
        self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(self.reader)
        similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")
        self._searcher.setSimilarity(similarity(settings.bm25.k1, settings.bm25.b))
        # Called once here, so that no two threads are the first to call it: see `_calling` in jvm.py.
        nothing = java_class("org.apache.lucene.search.MatchNoDocsQuery")()
        for arguments in ((nothing, 1), (nothing, 1, sort_by("newest"), True)):
            self._searcher.search.matchReport(*arguments)
            hits_of(self._searcher.search(*arguments).scoreDocs)

    def best(self, query: Any | None, k: int, sort: str = "relevance") -> Hits:
        """The first k hits; ties are ordered by paper id. None for a query without a word."""
        import numpy as np

        if query is None:
            return Hits(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
        if sort != "relevance":
            documents, scores = self._found(query, k, sort_by(sort), True)
            return Hits(self._rows[documents].astype(np.int64), scores, documents)

        def found(wanted: int) -> Hits:
            documents, scores = self._found(query, wanted)
            return Hits(self._rows[documents].astype(np.int64), scores, documents)

        return settled(found, k)

    def _found(self, *arguments: Any) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        with java_failures("searching", SearchError, alone=False):
            found = self._searcher.search(*arguments)
        with java_failures("searching", SearchError):
            return hits_of(found.scoreDocs)

    def all_rows(self, query: Any) -> "NDArray[np.int64]":
        """The papers' rows of all documents that match a query whose scores are all equal, in order."""
        import numpy as np

        parts: list[NDArray[np.int64]] = []
        hits = None
        while hits is None or len(hits) == _PAGE:
            hits = self._searcher.searchAfter(hits and hits[-1], query, _PAGE).scoreDocs
            parts.append(self._rows[hits_of(hits)[0]].astype(np.int64))
        return np.sort(np.concatenate(parts))

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
