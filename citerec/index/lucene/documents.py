"""Writing the two indexes of Lucene: a document for each paper, and one for each citing sentence.

The field names of papers are Anserini's (`id`, `contents`), so that Anserini's and pyserini's searchers open the index
too. A citing sentence has the attributes of the paper that it cites, so that the same filters apply to both.

Python fills one batch of documents while Java analyses another. Refilling the same Java objects is four times as fast
as creating them for each document.
"""

import functools
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from citerec.contexts.topic import clean
from citerec.corpus.store import SearchableCitance
from citerec.index.lucene.jvm import java_class, java_text
from citerec.index.vectors.encode import paper_text
from citerec.records import Paper

ID = "id"
TEXT, TITLE, ABSTRACT, CITANCE = "contents", "title", "abstract", "citance"
YEAR, FIELD, VENUE, CITATIONS = "year", "field", "venue", "citations"
CITING, CITING_YEAR, POSITION = "citing", "citing_year", "position"
UNKNOWN = -1
"""Stands for an unknown year or count; every range query begins at 0."""

_LONGEST_VENUE = 200  # Lucene refuses terms of more than 32,766 bytes
_BATCH, _BATCHES, _THREADS = 128, 4, 2
_RAM_MB = 96.0


@functools.cache
def analyzer() -> Any:
    """Anserini's default: lower case, without Lucene's English stop words, Porter stems."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newStemmingInstance("porter")


def open_directory(path: Path) -> Any:
    """A Lucene directory on disk."""
    # Java keeps the working directory in which it was started, even if this process changes its own.
    where = java_class("java.nio.file.Paths").get(str(path.absolute()))
    return java_class("org.apache.lucene.store.FSDirectory").open(where)


def open_reader(path: Path) -> Any:
    """A reader of one of the indexes."""
    return java_class("org.apache.lucene.index.DirectoryReader").open(open_directory(path))


def field_term(name: str) -> str:
    """A field of study as indexed."""
    return name.casefold()[:_LONGEST_VENUE]


class PaperDocument:
    """A document for a paper, which is filled again and again."""

    def __init__(self, *, abstract_field: bool = False) -> None:
        no, yes = _java("Field$Store").NO, _java("Field$Store").YES
        nothing = java_class("org.apache.lucene.util.BytesRef")()
        self.document = _java("Document")()
        self._id = self._added(_java("StringField")(ID, "", yes))
        self._id_value = self._added(_java("BinaryDocValuesField")(ID, nothing))
        self._year = self._added(_java("IntField")(YEAR, UNKNOWN, no))
        self._citations = self._added(_java("IntField")(CITATIONS, UNKNOWN, no))
        self._venue = self._added(_java("TextField")(VENUE, "", no))
        self._texts = {name: self._added(_text_field(name)) for name in self.texts(abstract_field)}
        self._now: tuple[Any, ...] = ()

    def texts(self, abstract_field: bool) -> Sequence[str]:
        """The names of its fields of text."""
        return (TEXT, TITLE, ABSTRACT) if abstract_field else (TEXT, TITLE)

    def fill(self, paper: Paper) -> None:
        """Fills the document with a paper."""
        self.fill_attributes(paper)
        for name, text in ((TEXT, paper_text(paper)), (TITLE, paper.title), (ABSTRACT, paper.abstract or "")):
            if name in self._texts:
                self._texts[name].setStringValue(java_text(text))

    def fill_attributes(self, paper: Paper) -> None:
        """Fills what filters read."""
        self._id.setStringValue(paper.paper_id)
        self._id_value.setBytesValue(paper.paper_id.encode())
        # Neighbours often share these, and a call into Java costs a microsecond or two.
        attributes = paper.year, paper.citation_count, paper.venue, paper.fields_of_study
        if attributes != self._now:
            self._now = attributes
            self._year.setIntValue(UNKNOWN if paper.year is None else paper.year)
            self._citations.setIntValue(UNKNOWN if paper.citation_count is None else paper.citation_count)
            self._venue.setStringValue(java_text((paper.venue or "")[:_LONGEST_VENUE]))
            self.document.removeFields(FIELD)
            for name in paper.fields_of_study:
                self.document.add(_keyword(name))

    def _added(self, field: Any) -> Any:
        self.document.add(field)
        return field


class CitanceDocument(PaperDocument):
    """A document for a citing sentence of a paper."""

    def __init__(self) -> None:
        super().__init__()
        no = _java("Field$Store").NO
        self._citing = self._added(_java("StringField")(CITING, "", no))
        value = _java("BinaryDocValuesField")(CITING, java_class("org.apache.lucene.util.BytesRef")())
        self._citing_value = self._added(value)
        self._citing_year = self._added(_java("IntField")(CITING_YEAR, UNKNOWN, no))
        self._position = self._added(_java("NumericDocValuesField")(POSITION, 0))

    def texts(self, _abstract_field: bool) -> Sequence[str]:
        """The names of its fields of text."""
        return (CITANCE,)

    def fill(self, citance: Any) -> None:
        """Fills the document with a citing sentence, without its citation markers."""
        self.fill_attributes(citance.cited)
        self._texts[CITANCE].setStringValue(java_text(clean(citance.text)))
        self._citing.setStringValue(citance.citing_id)
        self._citing_value.setBytesValue(citance.citing_id.encode())
        self._citing_year.setIntValue(UNKNOWN if citance.citing_year is None else citance.citing_year)
        self._position.setLongValue(citance.position)


def write_documents(
    path: Path,
    kind: "type[PaperDocument]",
    items: Iterable[Paper | SearchableCitance],
    gone: Iterable[str] = (),
    **options: bool,
) -> None:
    """Writes documents into an index of Lucene, which is made if it is not there.

    Args:
        path: The index.
        kind: The kind of the documents.
        items: What they are of.
        gone: Ids of the papers whose documents are removed first.
        options: Those of the documents.
    """
    config = java_class("org.apache.lucene.index.IndexWriterConfig")(analyzer())
    config.setRAMBufferSizeMB(_RAM_MB)
    # All deleted documents are removed by a merge at the end: statistics are those of a fresh build.
    merges = java_class("org.apache.lucene.index.TieredMergePolicy")()
    merges.setForceMergeDeletesPctAllowed(0.0)
    config.setMergePolicy(merges)
    scheduler = java_class("org.apache.lucene.index.ConcurrentMergeScheduler")()
    scheduler.disableAutoIOThrottle()
    config.setMergeScheduler(scheduler)
    writer = java_class("org.apache.lucene.index.IndexWriter")(open_directory(path), config)
    try:
        term = java_class("org.apache.lucene.index.Term")
        for paper_id in gone:
            writer.deleteDocuments(term(ID, paper_id))
        # Called once here, so that no two threads are the first to call it: see `_calling` in jvm.py.
        writer.addDocuments(java_class("java.util.ArrayList")())
        with ThreadPoolExecutor(_THREADS, "java") as pool:
            _fill(writer, pool, kind, items, options)
        # `forceMergeDeletes` skips segments that a background merge is working on, and such a merge keeps documents
        # that were deleted while it ran.
        while writer.hasDeletions():
            scheduler.sync()
            writer.forceMergeDeletes()
        writer.commit()
    finally:
        writer.rollback()  # closes too; what was committed stays


def _fill(
    writer: Any,
    pool: ThreadPoolExecutor,
    kind: "type[PaperDocument]",
    items: Iterable[Any],
    options: dict[str, bool],
) -> None:
    batches = [[kind(**options) for _ in range(_BATCH)] for _ in range(_BATCHES)]
    listed = [java_class("java.util.ArrayList")([one.document for one in batch]) for batch in batches]
    sent: list[Future[Any] | None] = [None] * _BATCHES
    current = filled = 0
    for item in items:
        batches[current][filled].fill(item)
        filled += 1
        if filled == _BATCH:
            sent[current] = pool.submit(writer.addDocuments, listed[current])
            current, filled = (current + 1) % _BATCHES, 0
            if (before := sent[current]) is not None:
                before.result()  # a batch is filled again only when Java has finished with it
    for one in sent:
        if one is not None:
            one.result()
    if filled:
        writer.addDocuments(listed[current].subList(0, filled))


def ids_of(path: Path) -> list[str]:
    """The paper ids of the documents of an index, in the order of its documents."""
    reader = open_reader(path)
    found = []
    try:
        for leaf in reader.leaves():
            values = leaf.reader().getBinaryDocValues(ID)
            for document in range(int(leaf.reader().maxDoc())):
                values.advanceExact(document)
                found.append(str(values.binaryValue().utf8ToString()))
    finally:
        reader.close()
    return found


def _java(name: str) -> Any:
    return java_class(f"org.apache.lucene.document.{name}")


@functools.cache
def _text_type() -> Any:
    """Indexed with frequencies and norms, as BM25 needs; without positions and the text itself."""
    made = _java("FieldType")()
    made.setIndexOptions(java_class("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
    made.setTokenized(True)
    made.freeze()
    return made


def _text_field(name: str) -> Any:
    return _java("Field")(name, "", _text_type())


@functools.lru_cache(maxsize=4096)
def _keyword(name: str) -> Any:
    return _java("KeywordField")(FIELD, field_term(name), _java("Field$Store").NO)
