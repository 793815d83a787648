"""The engine on Lucene: for many millions of papers, and for comparison with what others report.

It has two indexes: a document for each paper, and one for each citing sentence. The field names of papers are
Anserini's (`id`, `contents`), so that Anserini's and pyserini's searchers open the index too. A citing sentence has the
attributes of the paper that it cites, so that the same filters apply to both.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore, SearchableCitance
from citerec.errors import IndexUnusableError, SearchError
from citerec.files.progress import Progress
from citerec.index.arrays import mapped, rows_of
from citerec.index.base import (
    CITANCE,
    CITANCES,
    PAPERS,
    WORDS,
    Layout,
    Searchable,
    Words,
    WordSettings,
    changes_between,
    items_of,
    key_of,
    texts_of,
)
from citerec.index.candidates import Floats
from citerec.index.columns import COLUMNS, UNKNOWN
from citerec.index.filters import phrase_of
from citerec.index.generations import link_folder
from citerec.index.hits import Hits
from citerec.index.lucene.jvm import java_class, java_failures, java_text
from citerec.records import Filters

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex

ROWS = "rows"
"""The folder with the papers' rows of documents, beside the two indexes."""

ID, YEAR, FIELD, VENUE, CITATIONS = "id", "year", "field", "venue", "citations"
KEY, CITING, CITING_YEAR = "key", "citing", "citing_year"
_NUMBERS = (YEAR, CITATIONS, CITING_YEAR)  # UNKNOWN is one of them, and every range query begins at 0

_LONGEST_VENUE = 200  # Lucene refuses terms of more than 32,766 bytes
_RAM_MB = 96.0
_WHITESPACE_OPERATOR = 1 << 7
_MOST = 2**31 - 1
_HIT = re.compile(r"doc=(\d+) score=(\S+)")


class LuceneWords(Words):
    """Lucene in a Java machine of this process. Its indexes can be opened by pyserini and Anserini."""

    name = "lucene"

    @classmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        path = folder / WORDS
        changes = changes_between(before, folder, layout, cls.name)
        if changes is not None:
            link_folder(before / WORDS, path)  # Lucene never changes a file that it has written
        (path / ROWS).mkdir(parents=True, exist_ok=True)
        for kind, expected in ((PAPERS, counts.papers), (CITANCES, counts.citances)):
            if not expected and not (path / kind).is_dir():
                continue
            changed = None if changes is None else changes[kind]
            items = items_of(store, kind, changed, expected, on_progress)
            with java_failures("writing the Lucene index"):
                write_documents(path / kind, layout.fields[kind], items, changed or ())
                rows = rows_of(mapped(folder / COLUMNS / "ids.npy"), ids_of(path / kind))
            if len(rows) != expected:
                raise IndexUnusableError(
                    f"Lucene has {len(rows):,} {kind} where the store has {expected:,}: the index was damaged",
                    "Build it again from its sources; the existing index was not changed.",
                )
            (path / ROWS / f"{kind}.npy").unlink(missing_ok=True)
            np.save(path / ROWS / f"{kind}.npy", rows.astype(np.int32))
        return ""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        super().__init__(index, settings)
        folder = index.folder / WORDS
        kinds = (PAPERS, CITANCES) if index.manifest.counts.citances else (PAPERS,)
        self._documents: dict[str, _Documents] = {}
        self._searchers: dict[str, Any] = {}
        with java_failures(f"opening {folder}", IndexUnusableError):
            for kind in kinds:
                if kind not in index.parts:
                    index.parts[kind] = _Documents(folder, kind)
                self._documents[kind] = index.parts[kind]
                searcher = _class("search.IndexSearcher")(self._documents[kind].reader)
                similarity = _class("search.similarities.BM25Similarity")
                searcher.setSimilarity(similarity(settings.bm25.k1, settings.bm25.b))
                self._searchers[kind] = searcher

    def _finder(self, kind: str, topic: Topic, filters: Filters) -> Callable[[int], Hits] | None:
        nothing = _class("search.MatchNoDocsQuery")
        with java_failures("searching", SearchError):
            texts = [(text, factor) for text, factor in self.settings.weighted(topic) if text and factor]
            parts = [_parser(self._fields[kind], factor).parse(java_text(text)) for text, factor in texts]
            parts = [part for part in parts if not isinstance(part, nothing)]
            if not parts:
                return None
            query = _filtered(_boolean(should=parts), filters, citances=kind == CITANCES)
        return functools.partial(self._best, kind, query)

    def _best(self, kind: str, query: Any, k: int) -> Hits:
        """The first k hits. Java prints them: reading a thousand one by one takes longer than finding them."""
        with java_failures("searching", SearchError):
            hits = self._searchers[kind].search(query, k).scoreDocs
            pairs = _HIT.findall(str(java_class("java.util.Arrays").toString(hits)))
        documents = np.array([int(document) for document, _ in pairs], np.int64)
        rows = self._documents[kind].rows[documents].astype(np.int64)
        return Hits(rows, np.array([float(score) for _, score in pairs]), documents)

    def _key(self, document: Any) -> str:
        with java_failures("reading citing sentences", SearchError):
            return str(self._searchers[CITANCES].storedFields().document(int(document)).get(KEY))

    def _terms_of(self, text: str) -> list[str]:
        with java_failures("explaining", SearchError):
            analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
            return [str(term) for term in analyze(analyzer(), java_text(text))]

    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> Floats:
        searcher, scores = self._searchers[kind], np.zeros((len(keys), len(terms)))
        with java_failures("explaining", SearchError):
            queries = [_term_query(field, term) for term in terms]
            for at, key in enumerate(keys):
                named = _term_query(ID if kind == PAPERS else KEY, key)
                document = searcher.search(named, 1).scoreDocs[0].doc
                scores[at] = [float(searcher.explain(query, document).getValue().doubleValue()) for query in queries]
        return scores


class _Documents:
    """The documents of one of the indexes, which several searches share, and the papers' rows of them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.rows = mapped(folder / ROWS / f"{kind}.npy")
        self.reader = open_reader(folder / kind)
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
    parser = _class("queryparser.simple.SimpleQueryParser")
    return parser(analyzer(), by_field, _WHITESPACE_OPERATOR)


def _filtered(words: Any, filters: Filters, *, citances: bool) -> Any:
    """A query whose hits are those of `words` that pass the filters; of citing sentences also the leak rules."""
    required = []
    if filters.year_from is not None or filters.year_to is not None:
        newest = _MOST if filters.year_to is None else filters.year_to
        required.append(_range(YEAR, filters.year_from or 0, newest))
    if filters.fields:
        names = map(field_term, filters.fields)
        required.append(_boolean(should=[_term_query(FIELD, name) for name in names]))
    if filters.venues:
        required.append(_boolean(should=map(_phrase, filters.venues)))
    if filters.min_citations is not None:
        required.append(_range(CITATIONS, filters.min_citations, _MOST))
    forbidden = [_term_query(ID, one) for one in (*filters.exclude, *filters.citing_ids)]
    forbidden += [_term_query(CITING, one) for one in filters.citing_ids]
    if filters.as_of_year is not None:
        forbidden.append(_range(YEAR, filters.as_of_year + 1, _MOST))
        if citances:
            required.append(_range(CITING_YEAR, 0, filters.as_of_year))
    return _boolean(must=[words], filter=required, must_not=forbidden)


def _boolean(**queries: Iterable[Any]) -> Any:
    """The query of some queries, by how they occur: `must`, `should`, `filter` or `must_not`."""
    occur = _class("search.BooleanClause$Occur")
    builder = _class("search.BooleanQuery$Builder")()
    for name, clauses in queries.items():
        for clause in clauses:
            builder.add(clause, getattr(occur, name.upper()))
    return builder.build()


def _range(field: str, low: int, high: int) -> Any:
    return _class("document.IntField").newRangeQuery(field, low, high)


def _term_query(field: str, value: str) -> Any:
    term = _class("index.Term")(field, value)
    return _class("search.TermQuery")(term)


def _phrase(venue: str) -> Any:
    """The query for a venue; FilterError if it has no word."""
    phrase_of(venue)
    return _class("util.QueryBuilder")(analyzer()).createPhraseQuery(VENUE, venue)


@functools.cache
def analyzer() -> Any:
    """Anserini's default: lower case, without Lucene's English stop words, Porter stems."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newStemmingInstance("porter")


def open_directory(path: Path) -> Any:
    """A Lucene directory on disk."""
    # Java keeps the working directory in which it was started, even if this process changes its own.
    return _class("store.FSDirectory").open(path.absolute())


def open_reader(path: Path) -> Any:
    """A reader of one of the indexes."""
    return _class("index.DirectoryReader").open(open_directory(path))


def field_term(name: str) -> str:
    """A field of study as indexed."""
    return name.casefold()[:_LONGEST_VENUE]


class _Document:
    """A document that is filled again and again: making one for each paper takes four times as long."""

    def __init__(self, texts: Sequence[str]) -> None:
        no, yes = _class("document.Field$Store").NO, _class("document.Field$Store").YES
        self.java = _class("document.Document")()
        self._fields: dict[str, Any] = {
            ID: _class("document.StringField")(ID, "", yes),
            VENUE: _class("document.TextField")(VENUE, "", no),
            **{name: _class("document.Field")(name, "", _text_type()) for name in texts},
        }
        if CITANCE in texts:
            self._fields[KEY] = _class("document.StringField")(KEY, "", yes)
            self._fields[CITING] = _class("document.StringField")(CITING, "", no)
        for name in _NUMBERS if CITANCE in texts else _NUMBERS[:2]:
            self._fields[name] = _class("document.IntField")(name, UNKNOWN, no)
        # Anserini orders equal scores by it.
        self._id_value = _class("document.BinaryDocValuesField")(ID, _class("util.BytesRef")())
        for field in (*self._fields.values(), self._id_value):
            self.java.add(field)
        self._attributes: tuple[Any, ...] = ()

    def fill(self, item: Searchable) -> None:
        """Fills the document with a paper, or a citing sentence without its citation markers."""
        paper = item.cited if isinstance(item, SearchableCitance) else item
        values: dict[str, Any] = {ID: paper.paper_id, **texts_of(item)}
        if isinstance(item, SearchableCitance):
            values |= {KEY: key_of(item), CITING: item.citing_id, CITING_YEAR: item.citing_year}
        self._id_value.setBytesValue(paper.paper_id.encode())
        # Neighbours often share these, and a call into Java costs a microsecond or two.
        attributes = paper.year, paper.citation_count, paper.venue, paper.fields_of_study
        if attributes != self._attributes:
            self._attributes = attributes
            values |= {YEAR: paper.year, CITATIONS: paper.citation_count, VENUE: (paper.venue or "")[:_LONGEST_VENUE]}
            self.java.removeFields(FIELD)
            for name in paper.fields_of_study:
                self.java.add(_keyword(name))
        for name in values.keys() & self._fields.keys():
            if name in _NUMBERS:
                self._fields[name].setIntValue(UNKNOWN if values[name] is None else values[name])
            else:
                self._fields[name].setStringValue(java_text(values[name]))


def write_documents(path: Path, texts: Sequence[str], items: Iterable[Searchable], gone: Iterable[str] = ()) -> None:
    """Writes documents into an index of Lucene, which is made if it is not there.

    Args:
        path: The index.
        texts: The fields of words of the documents.
        items: The papers or the citing sentences that they are of.
        gone: Ids of the papers whose documents are removed first.
    """
    config = _class("index.IndexWriterConfig")(analyzer())
    config.setRAMBufferSizeMB(_RAM_MB)
    # All deleted documents are removed by a merge at the end: statistics are those of a fresh build.
    merges = _class("index.TieredMergePolicy")()
    merges.setForceMergeDeletesPctAllowed(0.0)
    config.setMergePolicy(merges)
    scheduler = _class("index.ConcurrentMergeScheduler")()
    scheduler.disableAutoIOThrottle()
    config.setMergeScheduler(scheduler)
    writer = _class("index.IndexWriter")(open_directory(path), config)
    try:
        term = _class("index.Term")
        for paper_id in gone:
            writer.deleteDocuments(term(ID, paper_id))
        document = _Document(texts)
        for item in items:
            document.fill(item)
            writer.addDocument(document.java)
        # `forceMergeDeletes` skips segments that a background merge is working on, and such a merge keeps documents
        # that were deleted while it ran.
        while writer.hasDeletions():
            scheduler.sync()
            writer.forceMergeDeletes()
        writer.commit()
    finally:
        writer.rollback()  # closes too; what was committed stays


def ids_of(path: Path) -> list[str]:
    """The paper ids of the documents of an index, in the order of its documents."""
    with contextlib.closing(open_reader(path)) as reader:
        stored = reader.storedFields()
        return [str(stored.document(number).get(ID)) for number in range(reader.maxDoc())]


def _class(name: str) -> Any:
    """A class of Lucene."""
    return java_class(f"org.apache.lucene.{name}")


@functools.cache
def _text_type() -> Any:
    """Indexed with frequencies and norms, as BM25 needs; without positions and the text itself."""
    made = _class("document.FieldType")()
    made.setIndexOptions(_class("index.IndexOptions").DOCS_AND_FREQS)
    made.setTokenized(True)
    made.freeze()
    return made


@functools.lru_cache(maxsize=4096)
def _keyword(name: str) -> Any:
    return _class("document.KeywordField")(FIELD, field_term(name), _class("document.Field$Store").NO)
