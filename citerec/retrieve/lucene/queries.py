"""The settings of the retriever `lucene`, and Lucene queries made of text, filters and orders."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.errors import FilterError
from citerec.records import Filters
from citerec.retrieve.lucene import fields
from citerec.retrieve.lucene.jvm import java_class, java_text
from citerec.retrieve.topic_texts import TopicTexts
from citerec.settings import PartSettings

ENGINE_FIELDS = {"text": fields.TEXT, "title": fields.TITLE, "abstract": fields.ABSTRACT}
"""Lucene's field for each field that a weight can be given to."""

SORTS = ("relevance", "newest", "oldest", "most-cited", "venue", "field")
"""Orders of Lucene's hits; ties are ordered by relevance, then paper id."""

_WHITESPACE_OPERATOR = 1 << 7
_MOST = 2**31 - 1


class Bm25(PartSettings):
    """BM25 as Lucene computes it. Defaults chosen on data/acm dev: docs/results.md."""

    k1: float = Field(default=1.2, ge=0, le=1000, description="how slowly repeats of a word saturate")
    b: float = Field(default=0.75, ge=0, le=1, description="how much long texts are penalised")


class Weights(PartSettings):
    """Weights of a word by its field; 0 leaves the field out.

    Defaults chosen on the dev contexts of data/acm and data/acl: docs/results.md.
    """

    text: float = Field(default=1.0, ge=0, le=1000, description="title and abstract as one field")
    title: float = Field(default=0.35, ge=0, le=1000, description="the title alone")
    abstract: float = Field(
        default=0.0, ge=0, le=1000, description="the abstract alone, in an index built with --abstract-field"
    )
    citances: float = Field(default=1.8, ge=0, le=1000, description="sentences of other papers that cite the paper")


class LuceneSettings(TopicTexts):
    """BM25 over the fields of papers and over citing sentences."""

    bm25: Bm25 = Bm25()
    weights: Weights = Weights()
    citance_decay: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="weight of each further citance of a paper, against its better one",
    )
    engine: Literal["auto", "lucene", "bm25s"] = Field(
        default="auto",
        description="what scores titles and abstracts: `bm25s`, from scores computed before, is several times as fast; "
        "auto takes it for several topics at once where the index has scores of these settings",
    )


class Parsers:
    """Make Lucene queries from text. No character has a special meaning.

    SimpleQueryParser with its operators off does in one call what would take hundreds: each word in each field,
    weighted, as one flat disjunction that Lucene can cut short.
    """

    def __init__(self, settings: LuceneSettings) -> None:
        weights = settings.weights
        paper = {engine: getattr(weights, name) for name, engine in ENGINE_FIELDS.items()}
        self._settings = settings
        factors = [weight for _, weight in settings.weighted(Topic(""))]
        self._papers = [_parser(paper, factor) for factor in factors]
        citance = {fields.CITANCE: 1.0 if weights.citances else 0.0}  # the weight itself is applied to the scores
        self._citances = [_parser(citance, factor) for factor in factors]

    def papers(self, topic: Topic) -> Any | None:
        """The query over papers; None if it has no word."""
        return self._parse(topic, self._papers)

    def citances(self, topic: Topic) -> Any | None:
        """The query over citances; None if it has no word."""
        return self._parse(topic, self._citances)

    def reach(self, *, citances: bool) -> bool:
        """Whether any field has a weight, including citing sentences if the index has any."""
        return bool(self._papers[0] or (citances and self._citances[0]))

    def _parse(self, topic: Topic, parsers: Sequence[Any | None]) -> Any | None:
        texts = [text for text, _ in self._settings.weighted(topic)]
        parts = [
            parsed for parser, text in zip(parsers, texts, strict=True) if text and (parsed := _parsed(parser, text))
        ]
        return _either(*parts) if len(parts) > 1 else parts[0] if parts else None


def _parsed(parser: Any | None, text: str) -> Any | None:
    if parser is None:
        return None
    query = parser.parse(java_text(text))
    return None if isinstance(query, java_class("org.apache.lucene.search.MatchNoDocsQuery")) else query


def _parser(weights: dict[str, float], factor: float) -> Any | None:
    by_field = java_class("java.util.LinkedHashMap")()
    number = java_class("java.lang.Float")
    for name, weight in weights.items():
        if factor * weight > 0:
            by_field.put(name, number(factor * weight))
    if by_field.isEmpty():
        return None
    parser = java_class("org.apache.lucene.queryparser.simple.SimpleQueryParser")
    return parser(fields.analyzer(), by_field, _WHITESPACE_OPERATOR)


def _either(*queries: Any) -> Any:
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    for query in queries:
        builder.add(query, occur().SHOULD)
    return builder.build()


@functools.cache
def occur() -> Any:
    """How a clause takes part in a boolean query: MUST, SHOULD, FILTER, MUST_NOT."""
    return java_class("org.apache.lucene.search.BooleanClause$Occur")


def filtered(words: Any, filters: Filters, *, citances: bool = False, known_year: bool = False) -> Any:
    """A query whose hits are those of `words` that pass the filters."""
    required = list(_required(filters))
    if known_year:
        required.append(_range(fields.YEAR, 0, _MOST))
    forbidden = list(_forbidden(filters, citances=citances))
    if citances and filters.as_of_year is not None:
        required.append(_range(fields.CITING_YEAR, 0, filters.as_of_year))
    if not required and not forbidden:
        return words
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    builder.add(words, occur().MUST)
    for query in required:
        builder.add(query, occur().FILTER)
    for query in forbidden:
        builder.add(query, occur().MUST_NOT)
    return builder.build()


def _required(filters: Filters) -> Iterator[Any]:
    if filters.year_from is not None or filters.year_to is not None:
        newest = _MOST if filters.year_to is None else filters.year_to
        yield _range(fields.YEAR, filters.year_from or 0, newest)
    if filters.fields:
        yield _either(*[term_query(fields.FIELD, fields.field_term(name)) for name in filters.fields])
    if filters.venues:
        yield _either(*[_phrase(fields.VENUE, venue) for venue in filters.venues])
    if filters.min_citations is not None:
        yield _range(fields.CITATIONS, filters.min_citations, _MOST)


def _forbidden(filters: Filters, *, citances: bool) -> Iterator[Any]:
    for paper_id in filters.exclude:
        yield term_query(fields.ID, paper_id)
    for citing_id in filters.citing_ids:
        yield term_query(fields.ID, citing_id)
        if citances:
            yield term_query(fields.CITING, citing_id)
    if filters.as_of_year is not None:
        yield _range(fields.YEAR, filters.as_of_year + 1, _MOST)


def _range(field: str, low: int, high: int) -> Any:
    return java_class("org.apache.lucene.document.IntField").newRangeQuery(field, low, high)


def term_query(field: str, value: str) -> Any:
    """The query for documents that have a term, in its indexed form."""
    term = java_class("org.apache.lucene.index.Term")(field, value)
    return java_class("org.apache.lucene.search.TermQuery")(term)


def _phrase(field: str, text: str) -> Any:
    builder = java_class("org.apache.lucene.util.QueryBuilder")(fields.analyzer())
    phrase = builder.createPhraseQuery(field, text)
    if phrase is None:
        raise FilterError(f"the venue {text!r} has no word", "Give words of its name, for example SIGIR.")
    return phrase


def query_terms(topic: Topic, settings: LuceneSettings) -> dict[str, tuple[str, float]]:
    """Term → (word as written, how often it counts)."""
    analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
    terms: dict[str, tuple[str, float]] = {}
    for text, weight in settings.weighted(topic):
        for word in text.split() if weight else ():
            for term in map(str, analyze(fields.analyzer(), java_text(word))):
                shown, times = terms.get(term, (word.strip(".,;:!?()[]\"'“”"), 0.0))
                terms[term] = (shown, times + weight)
    return terms


@functools.cache
def sort_by(name: str) -> Any:
    """The Lucene order of one of SORTS."""
    kind = java_class("org.apache.lucene.search.SortField$Type")
    field = java_class("org.apache.lucene.search.SortField")
    relevance = [field.FIELD_SCORE, field(fields.ID, kind.STRING_VAL)]
    keys: dict[str, Callable[[], list[Any]]] = {
        "relevance": lambda: relevance,
        "newest": lambda: [_by_number(fields.YEAR, reverse=True), *relevance],
        "oldest": lambda: [_by_number(fields.YEAR), *relevance],
        "most-cited": lambda: [_by_number(fields.CITATIONS, reverse=True), *relevance],
        "venue": lambda: [field(fields.VENUE_SORT, kind.STRING), *relevance],
        "field": lambda: [
            _none_last(java_class("org.apache.lucene.search.SortedSetSortField")(fields.FIELD, False)),
            *relevance,
        ],
    }
    return java_class("org.apache.lucene.search.Sort")(*keys[name]())


def _none_last(key: Any) -> Any:
    key.setMissingValue(java_class("org.apache.lucene.search.SortField").STRING_LAST)
    return key


def _by_number(name: str, *, reverse: bool = False) -> Any:
    smallest = java_class("org.apache.lucene.search.SortedNumericSelector$Type").MIN
    return java_class("org.apache.lucene.document.IntField").newSortField(name, reverse, smallest)
