"""The engine on Lucene: for many millions of papers, and for comparison with what others report."""

import contextlib
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import FilterError, IndexUnusableError, SearchError
from citerec.files.progress import Progress
from citerec.index.arrays import mapped, rows_of
from citerec.index.base import Engine, Layout, Words, WordSettings, check_weights, matches
from citerec.index.candidates import Candidate, Candidates
from citerec.index.changes import changes_between
from citerec.index.columns import COLUMNS
from citerec.index.generations import link_folder
from citerec.index.hits import DEPTH, Hits, added_up, settled
from citerec.index.lucene import documents as fields
from citerec.index.lucene.jvm import java_class, java_failures, java_text
from citerec.index.manifest import Manifest
from citerec.index.words.texts import no_word, shown
from citerec.records import Filters, Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.opened import OpenIndex

PAPERS, CITANCES, ROWS = "papers", "citances", "rows"
"""The two indexes, and the folder with the papers' rows of their documents."""

_FIELDS = {"text": fields.TEXT, "title": fields.TITLE, "abstract": fields.ABSTRACT}
_WHITESPACE_OPERATOR = 1 << 7
_MOST = 2**31 - 1
_HIT = re.compile(r"doc=(\d+) score=(\S+)")


class Lucene(Engine):
    """Lucene in a Java machine of this process. Its indexes can be opened by pyserini and Anserini."""

    name = "lucene"
    FOLDER = "lucene"

    @classmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        import numpy as np

        path = folder / cls.FOLDER
        changes = changes_between(before, folder, layout, cls.name)
        if changes is None:
            texts, citances = store.all_papers(), store.searchable_citances()
            path.mkdir()
        else:
            link_folder(before / cls.FOLDER, path)  # Lucene never changes a file that it has written
            texts, citances = store.all_papers(only=changes.texts), store.searchable_citances(only=changes.cited)
        gone_texts, gone_cited = (changes.texts, changes.cited) if changes else ((), ())
        with java_failures("writing the Lucene index"):
            papers = _counted(texts, lambda done: on_progress("indexing papers", done, counts.papers))
            fields.write_documents(
                path / PAPERS, fields.PaperDocument, papers, gone_texts, abstract_field=layout.abstract_field
            )
            if counts.citances or (path / CITANCES).is_dir():
                said = _counted(citances, lambda done: on_progress("indexing citing sentences", done, counts.citances))
                fields.write_documents(path / CITANCES, fields.CitanceDocument, said, gone_cited)
            ids = mapped(folder / COLUMNS / "ids.npy")
            (path / ROWS).mkdir(exist_ok=True)
            for name, expected in ((PAPERS, counts.papers), (CITANCES, counts.citances)):
                found = rows_of(ids, fields.ids_of(path / name)) if (path / name).is_dir() else np.zeros(0, np.int64)
                if len(found) != expected:
                    raise IndexUnusableError(
                        f"Lucene has {len(found):,} {name} where the store has {expected:,}: the index was damaged",
                        "Build it again from its sources; the existing index was not changed.",
                    )
                (path / ROWS / f"{name}.npy").unlink(missing_ok=True)
                np.save(path / ROWS / f"{name}.npy", found.astype(np.int32))
        return ""

    @classmethod
    def open(cls, index: "OpenIndex", settings: WordSettings) -> "LuceneWords":
        return LuceneWords(index, settings)

    @classmethod
    def faults(cls, folder: Path, _manifest: Manifest) -> list[str]:
        """Lucene's own check of its files."""
        found = []
        for path in (folder / cls.FOLDER / name for name in (PAPERS, CITANCES)):
            if not path.is_dir():
                continue
            try:
                found += _damage_of(path)
            except IndexUnusableError as error:
                found.append(error.message)
        return found


def _damage_of(path: Path) -> list[str]:
    """What is damaged in one of the indexes."""
    with java_failures(f"checking {path}", IndexUnusableError):
        # No lock: it would be a file, in a folder that may be only read.
        lock = java_class("org.apache.lucene.store.NoLockFactory").INSTANCE
        directory = fields.open_directory(path)
        checker = java_class("org.apache.lucene.index.CheckIndex")
        with contextlib.closing(checker(directory, lock.obtainLock(directory, "write.lock"))) as check:
            status = check.checkIndex()
        return [] if status.clean else [f"{path}: Lucene finds {status.numBadSegments} damaged segment(s)"]


def _counted(items: Iterable[Any], advance: Callable[[int], None]) -> Iterator[Any]:
    for done, item in enumerate(items, 1):
        yield item
        if done % 2000 == 0:
            advance(done)


class LuceneWords(Words):
    """The words of an index, by Lucene."""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        self.settings = settings
        self._rows, self._filter = index.rows, index.filter
        folder = index.folder / Lucene.FOLDER
        has_citances = index.manifest.counts.citances > 0
        check_weights(settings, citances=has_citances, abstract=index.manifest.abstract_field, index=index.path)
        with java_failures(f"opening {folder}", IndexUnusableError):
            self._papers = _Searcher(index, PAPERS, settings)
            self._citances = _Searcher(index, CITANCES, settings) if has_citances else None
            weights = {engine: getattr(settings.weights, name) for name, engine in _FIELDS.items()}
            factors = [weight for _, weight in settings.weighted(Topic(""))]
            self._of_papers = [_parser(weights, factor) for factor in factors]
            self._of_citances = [_parser({fields.CITANCE: settings.weights.citances > 0}, factor) for factor in factors]

    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        adds_citances = self._citances is not None and self.settings.weights.citances > 0 and sort == "relevance"
        depth = len(self._rows) if sort != "relevance" else max(DEPTH, k) if adds_citances else k
        with java_failures("searching", SearchError):
            words = _parsed(self.settings, topic, self._of_papers)
            cited_so = _parsed(self.settings, topic, self._of_citances) if adds_citances else None
            if words is None and cited_so is None:
                raise no_word(topic)
            words = words and filtered(words, filters)
            cited_so = cited_so and filtered(cited_so, filters, citances=True)
        papers = self._papers.best(words, depth)
        if sort != "relevance":
            order = self._filter.in_order(sort, papers.rows, papers.scores)[:k]
            papers = Hits(papers.rows[order], papers.scores[order])
        if self._citances is None or cited_so is None:
            return Candidates(self._rows, papers.rows, papers.scores, {"bm25": papers.scores})
        said = self._citances.best(cited_so, depth)
        weights = self.settings.weights.citances, self.settings.citance_decay
        return added_up(self._rows, papers, said, weights, functools.partial(self._said, said))[:k]

    def _said(self, hits: Hits, at: int) -> tuple[str, int]:
        """The citing paper of a hit among citing sentences, and the sentence's position among those of that paper."""
        assert self._citances is not None
        assert hits.documents is not None
        with java_failures("reading citing sentences", SearchError):
            return self._citances.citing_sentence(int(hits.documents[at]))

    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        with java_failures("explaining", SearchError):
            words = self._query_terms(topic)
            return [self._explained(words, candidate) for candidate in candidates]

    def _explained(self, words: dict[str, tuple[str, float]], candidate: Candidate) -> tuple[Match, ...]:
        weights = self.settings.weights
        scores: dict[str, float] = defaultdict(float)
        places: dict[str, list[str]] = defaultdict(list)
        document = self._papers.document(((fields.ID, candidate.paper_id),))
        for term, (_, times) in words.items():
            for name, field in _FIELDS.items():
                if weight := getattr(weights, name):
                    scores[term] += times * weight * self._papers.term_score(document, field, term)
            in_text, in_title = (self._papers.frequency(document, name, term) for name in (fields.TEXT, fields.TITLE))
            places[term] += ["title"] * (in_title > 0) + ["abstract"] * (in_text > in_title)
        if candidate.citance and self._citances is not None:
            place = ((fields.ID, candidate.paper_id), (fields.CITING, candidate.citance.citing_id))
            document = self._citances.document(place, candidate.citance.position)
            for term, (_, times) in words.items():
                if (score := self._citances.term_score(document, fields.CITANCE, term)) > 0:
                    scores[term] += times * score * weights.citances
                    places[term].append("citance")
        return matches({term: word for term, (word, _) in words.items()}, scores, places)

    def _query_terms(self, topic: Topic) -> dict[str, tuple[str, float]]:
        """Term → (word as written, how often it counts)."""
        analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
        terms: dict[str, tuple[str, float]] = {}
        for text, weight in self.settings.weighted(topic):
            for word in text.split() if weight else ():
                for term in map(str, analyze(fields.analyzer(), java_text(word))):
                    written, times = terms.get(term, (shown(word), 0.0))
                    terms[term] = (written, times + weight)
        return terms


class _Reader:
    """A reader of one of the indexes, which several searches share."""

    def __init__(self, path: Path) -> None:
        self.java = fields.open_reader(path)

    def close(self) -> None:
        """Closes its files."""
        with java_failures("closing the index", SearchError):
            self.java.close()


class _Searcher:
    """One of the indexes, open for searching. All calls but `best` are made in `java_failures`."""

    def __init__(self, index: "OpenIndex", name: str, settings: WordSettings) -> None:
        folder = index.folder / Lucene.FOLDER
        self._rows = mapped(folder / ROWS / f"{name}.npy")
        if name not in index.parts:
            index.parts[name] = _Reader(folder / name)
        self.reader = index.parts[name].java
        if self.reader.maxDoc() != len(self._rows):
            raise IndexUnusableError(f"{folder} is damaged: its rows are of other documents", "Build the index again.")
        self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(self.reader)
        similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")
        self._searcher.setSimilarity(similarity(settings.bm25.k1, settings.bm25.b))
        # Called once here, so that no two threads are the first to call it: see `_calling` in jvm.py.
        nothing = java_class("org.apache.lucene.search.MatchNoDocsQuery")()
        self._searcher.search.matchReport(nothing, 1)
        self._searcher.search(nothing, 1)

    def best(self, query: Any | None, k: int) -> Hits:
        """The first k hits; ties are ordered by paper id. None for a query without a word."""
        import numpy as np

        if query is None:
            return Hits(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))

        def found(wanted: int) -> Hits:
            documents, scores = self._found(query, wanted)
            return Hits(self._rows[documents].astype(np.int64), scores, documents)

        return settled(found, k)

    def _found(self, query: Any, k: int) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """Documents and scores. Java prints the hits: reading a thousand one by one takes longer than finding them."""
        import numpy as np

        with java_failures("searching", SearchError, alone=False):
            hits = self._searcher.search(query, k).scoreDocs
        with java_failures("searching", SearchError):
            pairs = _HIT.findall(str(java_class("java.util.Arrays").toString(hits)))
        return np.array([int(one) for one, _ in pairs], np.int64), np.array([float(one) for _, one in pairs])

    def citing_sentence(self, document: int) -> tuple[str, int]:
        """The citing paper of a document of citing sentences, and the position of the sentence."""
        leaves = self.reader.leaves()
        leaf = leaves.get(java_class("org.apache.lucene.index.ReaderUtil").subIndex(document, leaves))
        citing, position = (
            leaf.reader().getBinaryDocValues(fields.CITING),
            leaf.reader().getNumericDocValues(fields.POSITION),
        )
        citing.advanceExact(document - leaf.docBase)
        position.advanceExact(document - leaf.docBase)
        return str(citing.binaryValue().utf8ToString()), int(position.longValue())

    def document(self, terms: Iterable[tuple[str, str]], position: int | None = None) -> int:
        """Lucene's number of the document that has all these terms, and this position if one is given."""
        builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        for field, value in terms:
            builder.add(_term_query(field, value), _occur().FILTER)
        if position is not None:
            exact = java_class("org.apache.lucene.document.NumericDocValuesField").newSlowExactQuery
            builder.add(exact(fields.POSITION, position), _occur().FILTER)
        return int(self._searcher.search(builder.build(), 1).scoreDocs[0].doc)

    def frequency(self, document: int, field: str, term: str) -> int:
        """How often a field of a document has a term."""
        term_bytes = java_class("org.apache.lucene.util.BytesRef")(java_text(term))
        found = java_class("org.apache.lucene.index.MultiTerms").getTermPostingsEnum(self.reader, field, term_bytes)
        return int(found.freq()) if found is not None and found.advance(document) == document else 0

    def term_score(self, document: int, field: str, term: str) -> float:
        """The BM25 score of a document for a term; 0 if the document lacks it."""
        explanation = self._searcher.explain(_term_query(field, term), document)
        return float(explanation.getValue().doubleValue()) if explanation.isMatch() else 0.0


def _parser(weights: dict[str, float], factor: float) -> Any | None:
    """Makes queries from text, with a weight for each field; None if there is none.

    SimpleQueryParser with its operators off does in one call what would take hundreds: each word in each field,
    weighted, as one flat disjunction that Lucene can cut short. No character has a special meaning.
    """
    by_field = java_class("java.util.LinkedHashMap")()
    for name, weight in weights.items():
        if factor * weight > 0:
            by_field.put(name, java_class("java.lang.Float")(factor * weight))
    if by_field.isEmpty():
        return None
    parser = java_class("org.apache.lucene.queryparser.simple.SimpleQueryParser")
    return parser(fields.analyzer(), by_field, _WHITESPACE_OPERATOR)


def _parsed(settings: WordSettings, topic: Topic, parsers: Sequence[Any | None]) -> Any | None:
    """The query of a topic; None if it has no word."""
    nothing = java_class("org.apache.lucene.search.MatchNoDocsQuery")
    parts = [
        parser.parse(java_text(text))
        for parser, (text, _) in zip(parsers, settings.weighted(topic), strict=True)
        if parser is not None and text
    ]
    parts = [part for part in parts if not isinstance(part, nothing)]
    return _either(*parts) if len(parts) > 1 else parts[0] if parts else None


def filtered(words: Any, filters: Filters, *, citances: bool = False) -> Any:
    """A query whose hits are those of `words` that pass the filters; of citing sentences also the leak rules."""
    clauses = [*_clauses(filters)]
    if citances:
        clauses += [(_term_query(fields.CITING, one), _occur().MUST_NOT) for one in filters.citing_ids]
        if filters.as_of_year is not None:
            clauses.append((_range(fields.CITING_YEAR, 0, filters.as_of_year), _occur().FILTER))
    if not clauses:
        return words
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    builder.add(words, _occur().MUST)
    for query, occurs in clauses:
        builder.add(query, occurs)
    return builder.build()


def _clauses(filters: Filters) -> Iterator[tuple[Any, Any]]:
    required, forbidden = _occur().FILTER, _occur().MUST_NOT
    if filters.year_from is not None or filters.year_to is not None:
        newest = _MOST if filters.year_to is None else filters.year_to
        yield _range(fields.YEAR, filters.year_from or 0, newest), required
    if filters.fields:
        yield _either(*[_term_query(fields.FIELD, fields.field_term(name)) for name in filters.fields]), required
    if filters.venues:
        yield _either(*[_phrase(venue) for venue in filters.venues]), required
    if filters.min_citations is not None:
        yield _range(fields.CITATIONS, filters.min_citations, _MOST), required
    for paper_id in (*filters.exclude, *filters.citing_ids):
        yield _term_query(fields.ID, paper_id), forbidden
    if filters.as_of_year is not None:
        yield _range(fields.YEAR, filters.as_of_year + 1, _MOST), forbidden


@functools.cache
def _occur() -> Any:
    """How a clause takes part in a boolean query: MUST, SHOULD, FILTER, MUST_NOT."""
    return java_class("org.apache.lucene.search.BooleanClause$Occur")


def _either(*queries: Any) -> Any:
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    for query in queries:
        builder.add(query, _occur().SHOULD)
    return builder.build()


def _range(field: str, low: int, high: int) -> Any:
    return java_class("org.apache.lucene.document.IntField").newRangeQuery(field, low, high)


def _term_query(field: str, value: str) -> Any:
    term = java_class("org.apache.lucene.index.Term")(field, value)
    return java_class("org.apache.lucene.search.TermQuery")(term)


def _phrase(venue: str) -> Any:
    phrase = java_class("org.apache.lucene.util.QueryBuilder")(fields.analyzer()).createPhraseQuery(fields.VENUE, venue)
    if phrase is None:
        raise FilterError(f"the venue {venue!r} has no word", "Give words of its name, for example SIGIR.")
    return phrase
