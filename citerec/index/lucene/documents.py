"""Writing the two indexes of Lucene: a document for each paper, and one for each citing sentence.

The field names of papers are Anserini's (`id`, `contents`), so that Anserini's and pyserini's searchers open the index
too. A citing sentence has the attributes of the paper that it cites, so that the same filters apply to both.
"""

import contextlib
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from citerec.corpus.store import SearchableCitance
from citerec.index.base import CITANCE
from citerec.index.hits import Searchable, key_of, texts_of
from citerec.index.lucene.jvm import java_class, java_text

ID, YEAR, FIELD, VENUE, CITATIONS = "id", "year", "field", "venue", "citations"
KEY, CITING, CITING_YEAR = "key", "citing", "citing_year"
UNKNOWN = -1
"""Stands for an unknown year or count; every range query begins at 0."""

_LONGEST_VENUE = 200  # Lucene refuses terms of more than 32,766 bytes
_RAM_MB = 96.0


@functools.cache
def analyzer() -> Any:
    """Anserini's default: lower case, without Lucene's English stop words, Porter stems."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newStemmingInstance("porter")


def open_directory(path: Path) -> Any:
    """A Lucene directory on disk."""
    # Java keeps the working directory in which it was started, even if this process changes its own.
    return java_class("org.apache.lucene.store.FSDirectory").open(path.absolute())


def open_reader(path: Path) -> Any:
    """A reader of one of the indexes."""
    return java_class("org.apache.lucene.index.DirectoryReader").open(open_directory(path))


def field_term(name: str) -> str:
    """A field of study as indexed."""
    return name.casefold()[:_LONGEST_VENUE]


class _Document:
    """A document that is filled again and again: making one for each paper takes four times as long."""

    def __init__(self, texts: Sequence[str]) -> None:
        no, yes = _java("Field$Store").NO, _java("Field$Store").YES
        self.java = _java("Document")()
        self._fields: dict[str, Any] = {
            ID: _java("StringField")(ID, "", yes),
            YEAR: _java("IntField")(YEAR, UNKNOWN, no),
            CITATIONS: _java("IntField")(CITATIONS, UNKNOWN, no),
            VENUE: _java("TextField")(VENUE, "", no),
            **{name: _java("Field")(name, "", _text_type()) for name in texts},
        }
        if CITANCE in texts:
            self._fields[KEY] = _java("StringField")(KEY, "", yes)
            self._fields[CITING] = _java("StringField")(CITING, "", no)
            self._fields[CITING_YEAR] = _java("IntField")(CITING_YEAR, UNKNOWN, no)
        # Anserini orders equal scores by it.
        self._id_value = _java("BinaryDocValuesField")(ID, java_class("org.apache.lucene.util.BytesRef")())
        for field in (*self._fields.values(), self._id_value):
            self.java.add(field)
        self._attributes: tuple[Any, ...] = ()

    def fill(self, item: Searchable) -> None:
        """Fills the document with a paper, or a citing sentence without its citation markers."""
        texts = texts_of(item)
        for name in texts.keys() & self._fields.keys():
            self._fields[name].setStringValue(java_text(texts[name]))
        paper = item.cited if isinstance(item, SearchableCitance) else item
        if isinstance(item, SearchableCitance):
            self._fields[KEY].setStringValue(key_of(item))
            self._fields[CITING].setStringValue(item.citing_id)
            self._fields[CITING_YEAR].setIntValue(_known(item.citing_year))
        self._fields[ID].setStringValue(paper.paper_id)
        self._id_value.setBytesValue(paper.paper_id.encode())
        # Neighbours often share these, and a call into Java costs a microsecond or two.
        attributes = paper.year, paper.citation_count, paper.venue, paper.fields_of_study
        if attributes != self._attributes:
            self._attributes = attributes
            self._fields[YEAR].setIntValue(_known(paper.year))
            self._fields[CITATIONS].setIntValue(_known(paper.citation_count))
            self._fields[VENUE].setStringValue(java_text((paper.venue or "")[:_LONGEST_VENUE]))
            self.java.removeFields(FIELD)
            for name in paper.fields_of_study:
                self.java.add(_keyword(name))


def write_documents(path: Path, texts: Sequence[str], items: Iterable[Searchable], gone: Iterable[str] = ()) -> None:
    """Writes documents into an index of Lucene, which is made if it is not there.

    Args:
        path: The index.
        texts: The fields of words of the documents.
        items: The papers or the citing sentences that they are of.
        gone: Ids of the papers whose documents are removed first.
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


@functools.lru_cache(maxsize=4096)
def _keyword(name: str) -> Any:
    return _java("KeywordField")(FIELD, field_term(name), _java("Field$Store").NO)


def _known(number: int | None) -> int:
    return UNKNOWN if number is None else number
