"""The fields of the two Lucene indexes, and documents whose Java objects are reused.

`papers` holds a document per paper. Its field names are Anserini's (`id`, `contents`), so that Anserini's and
pyserini's searchers can open it too. `citances` holds a document per citing sentence, with the attributes of the cited
paper, so that the same filters apply to both.

Refilling the same Java objects is four times as fast as creating them for each document.
"""

import functools
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.topic import clean
from citerec.corpus.store import SearchableCitance, SearchableText
from citerec.retrieve.lucene.jvm import java_class, java_text

ID = "id"
TEXT, TITLE, ABSTRACT, CITANCE = "contents", "title", "abstract", "citance"
YEAR, FIELD, VENUE, VENUE_SORT, CITATIONS = "year", "field", "venue", "venue_sort", "citations"
CITING, CITING_YEAR, POSITION = "citing", "citing_year", "position"
UNKNOWN = -1
"""Stands for an unknown year or count; every range query begins at 0."""

ANALYZER = "porter"
_NO_VENUE = b"\xff"  # never occurs in UTF-8: papers without a venue come last in the order of venues
_LONGEST_VENUE = 200  # Lucene refuses terms of more than 32,766 bytes


@functools.cache
def analyzer() -> Any:
    """Anserini's default: lower case, without Lucene's English stop words, Porter stems."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newStemmingInstance(ANALYZER)


def open_directory(path: Path) -> Any:
    """A Lucene directory on disk."""
    # Java keeps the working directory in which it was started, even if this process changes its own.
    where = java_class("java.nio.file.Paths").get(str(path.absolute()))
    return java_class("org.apache.lucene.store.FSDirectory").open(where)


def _document(name: str) -> Any:
    return java_class(f"org.apache.lucene.document.{name}")


@functools.cache
def _text_type() -> Any:
    """Indexed with frequencies and norms, as BM25 needs; without positions and the text itself."""
    made = _document("FieldType")()
    options = java_class("org.apache.lucene.index.IndexOptions")
    made.setIndexOptions(options.DOCS_AND_FREQS)
    made.setTokenized(True)
    made.freeze()
    return made


def _text_field(name: str) -> Any:
    return _document("Field")(name, "", _text_type())


class _Filterable:
    """A document with the attributes that filters and sort orders use."""

    def __init__(self) -> None:
        no, yes = _document("Field$Store").NO, _document("Field$Store").YES
        nothing = java_class("org.apache.lucene.util.BytesRef")()
        self.document = _document("Document")()
        self._id = _document("StringField")(ID, "", yes)
        self._id_value = _document("BinaryDocValuesField")(ID, nothing)
        self._year = _document("IntField")(YEAR, UNKNOWN, no)
        self._citations = _document("IntField")(CITATIONS, UNKNOWN, no)
        self._venue = _document("TextField")(VENUE, "", no)
        self._venue_sort = _document("SortedDocValuesField")(VENUE_SORT, nothing)
        self._venue_sort.setBytesValue(_NO_VENUE)
        self._year_now: int | None = None
        self._citations_now: int | None = None
        self._venue_now: str | None = None
        self._fields = "[]"
        for field in (self._id, self._id_value, self._year, self._citations, self._venue, self._venue_sort):
            self.document.add(field)

    def _fill(self, paper: SearchableText) -> None:
        self._id.setStringValue(paper.paper_id)
        self._id_value.setBytesValue(paper.paper_id.encode())
        # Neighbours often share these, and a call into Java costs a microsecond or two.
        if paper.year != self._year_now:
            self._year_now = paper.year
            self._year.setIntValue(UNKNOWN if paper.year is None else paper.year)
        if paper.citation_count != self._citations_now:
            self._citations_now = paper.citation_count
            self._citations.setIntValue(UNKNOWN if paper.citation_count is None else paper.citation_count)
        if paper.venue != self._venue_now:
            self._venue_now = paper.venue
            venue = (paper.venue or "")[:_LONGEST_VENUE]
            self._venue.setStringValue(java_text(venue))
            self._venue_sort.setBytesValue(venue.casefold().encode() or _NO_VENUE)
        if paper.fields_of_study != self._fields:
            self._fields = paper.fields_of_study
            self.document.removeFields(FIELD)
            for name in orjson.loads(paper.fields_of_study):
                self.document.add(_keyword(name))


@functools.lru_cache(maxsize=4096)
def _keyword(name: str) -> Any:
    return _document("KeywordField")(FIELD, field_term(name), _document("Field$Store").NO)


def field_term(name: str) -> str:
    """A field of study as indexed."""
    return name.casefold()[:_LONGEST_VENUE]


class PaperDocument(_Filterable):
    """A paper. Its abstract is a field of its own only if that is asked for: it takes a third of Lucene's time."""

    def __init__(self, *, abstract_field: bool = False) -> None:
        super().__init__()
        self._text, self._title = map(_text_field, (TEXT, TITLE))
        self._abstract = _text_field(ABSTRACT) if abstract_field else None
        for field in filter(None, (self._text, self._title, self._abstract)):
            self.document.add(field)

    def fill(self, paper: SearchableText) -> None:
        """Fills the document with a paper."""
        self._fill(paper)
        self._title.setStringValue(java_text(paper.title))
        if self._abstract is not None:
            self._abstract.setStringValue(java_text(paper.abstract))
        self._text.setStringValue(java_text(f"{paper.title}. {paper.abstract}" if paper.abstract else paper.title))


class CitanceDocument(_Filterable):
    """A citing sentence of a paper."""

    def __init__(self) -> None:
        super().__init__()
        no = _document("Field$Store").NO
        self._citance = _text_field(CITANCE)
        self._citing = _document("StringField")(CITING, "", no)
        self._citing_value = _document("BinaryDocValuesField")(CITING, java_class("org.apache.lucene.util.BytesRef")())
        self._citing_year = _document("IntField")(CITING_YEAR, UNKNOWN, no)
        self._position = _document("NumericDocValuesField")(POSITION, 0)
        for field in (self._citance, self._citing, self._citing_value, self._citing_year, self._position):
            self.document.add(field)

    def fill(self, citance: SearchableCitance) -> None:
        """Fills the document with a citing sentence, without its citation markers."""
        self._fill(citance.cited)
        self._citance.setStringValue(java_text(clean(citance.text)))
        self._citing.setStringValue(citance.citing_id)
        self._citing_value.setBytesValue(citance.citing_id.encode())
        self._citing_year.setIntValue(UNKNOWN if citance.citing_year is None else citance.citing_year)
        self._position.setLongValue(citance.position)
