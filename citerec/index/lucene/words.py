"""The engine on Lucene: for many millions of papers, and for comparison with what others report."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError, SearchError
from citerec.files.progress import Progress
from citerec.index.arrays import mapped, rows_of
from citerec.index.base import CITANCES, PAPERS, Engine, Layout, WordSettings
from citerec.index.changes import changes_between, items_of
from citerec.index.columns import COLUMNS
from citerec.index.filters import phrase_of
from citerec.index.generations import link_folder
from citerec.index.hits import Hits, RankedWords
from citerec.index.lucene import documents as fields
from citerec.index.lucene.jvm import java_class, java_failures, java_text
from citerec.records import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.opened import OpenIndex

ROWS = "rows"
"""The folder with the papers' rows of documents, beside the two indexes."""

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
        if changes is not None:
            link_folder(before / cls.FOLDER, path)  # Lucene never changes a file that it has written
        (path / ROWS).mkdir(parents=True, exist_ok=True)
        for kind, expected in ((PAPERS, counts.papers), (CITANCES, counts.citances)):
            if not expected and not (path / kind).is_dir():
                continue
            changed = None if changes is None else changes[kind]
            items = items_of(store, kind, changed, expected, on_progress)
            with java_failures("writing the Lucene index"):
                fields.write_documents(path / kind, layout.fields[kind], items, changed or ())
                rows = rows_of(mapped(folder / COLUMNS / "ids.npy"), fields.ids_of(path / kind))
            if len(rows) != expected:
                raise IndexUnusableError(
                    f"Lucene has {len(rows):,} {kind} where the store has {expected:,}: the index was damaged",
                    "Build it again from its sources; the existing index was not changed.",
                )
            (path / ROWS / f"{kind}.npy").unlink(missing_ok=True)
            np.save(path / ROWS / f"{kind}.npy", rows.astype(np.int32))
        return ""

    @classmethod
    def open(cls, index: "OpenIndex", settings: WordSettings) -> "LuceneWords":
        return LuceneWords(index, settings)


class LuceneWords(RankedWords):
    """The words of an index, by Lucene."""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        super().__init__(index, settings)
        folder = index.folder / Lucene.FOLDER
        kinds = (PAPERS, CITANCES) if index.manifest.counts.citances else (PAPERS,)
        self._documents: dict[str, _Documents] = {}
        self._searchers: dict[str, Any] = {}
        with java_failures(f"opening {folder}", IndexUnusableError):
            for kind in kinds:
                if kind not in index.parts:
                    index.parts[kind] = _Documents(folder, kind)
                self._documents[kind] = index.parts[kind]
                searcher = java_class("org.apache.lucene.search.IndexSearcher")(self._documents[kind].reader)
                similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")
                searcher.setSimilarity(similarity(settings.bm25.k1, settings.bm25.b))
                self._searchers[kind] = searcher

    def _query(self, kind: str, topic: Topic, filters: Filters) -> Any | None:
        nothing = java_class("org.apache.lucene.search.MatchNoDocsQuery")
        with java_failures("searching", SearchError):
            texts = [(text, factor) for text, factor in self.settings.weighted(topic) if text and factor]
            parts = [_parser(self._fields[kind], factor).parse(java_text(text)) for text, factor in texts]
            parts = [part for part in parts if not isinstance(part, nothing)]
            return _filtered(_boolean(should=parts), filters, citances=kind == CITANCES) if parts else None

    def _best(self, kind: str, query: Any, k: int) -> Hits:
        """The first k hits. Java prints them: reading a thousand one by one takes longer than finding them."""
        import numpy as np

        with java_failures("searching", SearchError):
            hits = self._searchers[kind].search(query, k).scoreDocs
            pairs = _HIT.findall(str(java_class("java.util.Arrays").toString(hits)))
        documents = np.array([int(document) for document, _ in pairs], np.int64)
        rows = self._documents[kind].rows[documents].astype(np.int64)
        return Hits(rows, np.array([float(score) for _, score in pairs]), documents)

    def _key(self, document: Any) -> str:
        with java_failures("reading citing sentences", SearchError):
            return str(self._searchers[CITANCES].storedFields().document(int(document)).get(fields.KEY))

    def _terms_of(self, text: str) -> list[str]:
        with java_failures("explaining", SearchError):
            analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
            return [str(term) for term in analyze(fields.analyzer(), java_text(text))]

    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> "NDArray[np.float64]":
        import numpy as np

        searcher, scores = self._searchers[kind], np.zeros((len(keys), len(terms)))
        with java_failures("explaining", SearchError):
            queries = [_term_query(field, term) for term in terms]
            for at, key in enumerate(keys):
                named = _term_query(fields.ID if kind == PAPERS else fields.KEY, key)
                document = searcher.search(named, 1).scoreDocs[0].doc
                scores[at] = [float(searcher.explain(query, document).getValue().doubleValue()) for query in queries]
        return scores


class _Documents:
    """The documents of one of the indexes, which several searches share, and the papers' rows of them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.rows = mapped(folder / ROWS / f"{kind}.npy")
        self.reader = fields.open_reader(folder / kind)
        if self.reader.maxDoc() != len(self.rows):
            raise IndexUnusableError(f"{folder} is damaged: its rows are of other documents", "Build the index again.")

    def close(self) -> None:
        """Closes the files."""
        with java_failures("closing the index", SearchError):
            self.reader.close()


def _parser(weights: Mapping[str, float], factor: float) -> Any:
    """Makes queries from text, with a weight for each field, times a factor; queries without a word find nothing.

    SimpleQueryParser with its operators off does in one call what would take hundreds: each word in each field,
    weighted, as one flat disjunction that Lucene can cut short. No character has a special meaning.
    """
    by_field = {field: java_class("java.lang.Float")(factor * weight) for field, weight in weights.items()}
    parser = java_class("org.apache.lucene.queryparser.simple.SimpleQueryParser")
    return parser(fields.analyzer(), by_field, _WHITESPACE_OPERATOR)


def _filtered(words: Any, filters: Filters, *, citances: bool) -> Any:
    """A query whose hits are those of `words` that pass the filters; of citing sentences also the leak rules."""
    required = []
    if filters.year_from is not None or filters.year_to is not None:
        newest = _MOST if filters.year_to is None else filters.year_to
        required.append(_range(fields.YEAR, filters.year_from or 0, newest))
    if filters.fields:
        names = map(fields.field_term, filters.fields)
        required.append(_boolean(should=[_term_query(fields.FIELD, name) for name in names]))
    if filters.venues:
        required.append(_boolean(should=map(_phrase, filters.venues)))
    if filters.min_citations is not None:
        required.append(_range(fields.CITATIONS, filters.min_citations, _MOST))
    forbidden = [_term_query(fields.ID, one) for one in (*filters.exclude, *filters.citing_ids)]
    forbidden += [_term_query(fields.CITING, one) for one in filters.citing_ids]
    if filters.as_of_year is not None:
        forbidden.append(_range(fields.YEAR, filters.as_of_year + 1, _MOST))
        if citances:
            required.append(_range(fields.CITING_YEAR, 0, filters.as_of_year))
    return _boolean(must=[words], filter=required, must_not=forbidden)


def _boolean(**queries: Iterable[Any]) -> Any:
    """The query of some queries, by how they occur: `must`, `should`, `filter` or `must_not`."""
    occur = java_class("org.apache.lucene.search.BooleanClause$Occur")
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    for name, clauses in queries.items():
        for clause in clauses:
            builder.add(clause, getattr(occur, name.upper()))
    return builder.build()


def _range(field: str, low: int, high: int) -> Any:
    return java_class("org.apache.lucene.document.IntField").newRangeQuery(field, low, high)


def _term_query(field: str, value: str) -> Any:
    term = java_class("org.apache.lucene.index.Term")(field, value)
    return java_class("org.apache.lucene.search.TermQuery")(term)


def _phrase(venue: str) -> Any:
    """The query for a venue; FilterError if it has no word."""
    phrase_of(venue)
    return java_class("org.apache.lucene.util.QueryBuilder")(fields.analyzer()).createPhraseQuery(fields.VENUE, venue)
