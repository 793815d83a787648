"""What is stored in Qdrant for papers and citing sentences, and the filters over it.

BM25 is a sparse vector. A term scores `weight · idf · tf / (tf + k1 · (1 − b + b · dl / mean))`. The last part depends
on the text alone: it is the text's value for the term. The weight is the query's. The server adds the idf, whose
formula is Lucene's (`Modifier.IDF`).
"""

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from citerec.corpus.store import SearchableCitance, SearchableText
from citerec.index.columns import hash_of
from citerec.index.filters import phrase_of
from citerec.index.hits import DocumentKey, Searchable
from citerec.index.words.analysis import terms_of
from citerec.index.words.postings import BUILT
from citerec.records import Filters

if TYPE_CHECKING:
    from qdrant_client import models

WORDS, DENSE = "words", "dense"
"""The names of the vectors: BM25, and that of the encoder."""

ID, YEAR, CITATIONS, FIELDS, VENUE = "id", "year", "citations", "fields", "venue"
CITING, CITING_YEAR, POSITION = "citing", "citing_year", "position"

_NO_LETTERS = re.compile(r"[\W_]+")
_GAP = "0"  # in place of a stop word


def term_index(field: str, term: str) -> int:
    """The index of a term of a field in the vector `words`: 32 bits of a hash, so no vocabulary has to be shared.

    Each field has indices of its own: a weight for a field is one for these.
    """
    return hash_of(f"{field} {term}") & 0xFFFFFFFF


def point_id(key: DocumentKey) -> str:
    """The id of the point of a paper or a citing sentence: the same in every index."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(map(str, key))))


def text_vector(fields: Mapping[str, str], means: Mapping[str, float]) -> "models.SparseVector | None":
    """The vector of the texts of some fields; None if they have no term.

    Args:
        fields: The texts, by field.
        means: How many terms each field has on average, of the texts that have one.
    """
    found: dict[int, float] = {}
    for field, text in fields.items():
        terms = [term for term in terms_of(text) if term is not None]
        norm = BUILT.k1 * (1 - BUILT.b + BUILT.b * len(terms) / (means[field] or 1.0))
        for term, times in Counter(terms).items():
            index = term_index(field, term)
            found[index] = found.get(index, 0.0) + times / (times + norm)
    return _sparse(found)


def query_vector(terms: Mapping[str, float], fields: Mapping[str, float]) -> "models.SparseVector | None":
    """The vector of a query: terms with their weights, in fields with theirs; None if nothing has a weight."""
    found: dict[int, float] = {}
    for field, of_field in fields.items():
        for term, weight in terms.items() if of_field else ():
            index = term_index(field, term)
            found[index] = found.get(index, 0.0) + of_field * weight
    return _sparse(found)


def _sparse(values: Mapping[int, float]) -> "models.SparseVector | None":
    from qdrant_client import models

    return models.SparseVector(indices=list(values), values=list(values.values())) if values else None


def key_of(item: Searchable) -> DocumentKey:
    """What names a paper, or a citing sentence."""
    if isinstance(item, SearchableText):
        return DocumentKey(item.paper_id)
    return DocumentKey(item.cited.paper_id, item.citing_id, item.position)


def payload_of(item: Searchable) -> dict[str, Any]:
    """What filters read of a paper; of a citing sentence what they read of the cited paper, and who cites it when.

    What is unknown is left out: no range matches it.
    """
    paper = item if isinstance(item, SearchableText) else item.cited
    payload = {
        ID: paper.paper_id,
        YEAR: paper.year,
        CITATIONS: paper.citation_count,
        FIELDS: [str(name).casefold() for name in orjson.loads(paper.fields_of_study)],
        VENUE: _phrase(terms_of(paper.venue or "")),
    }
    if isinstance(item, SearchableCitance):
        payload |= {CITING: item.citing_id, CITING_YEAR: item.citing_year, POSITION: item.position}
    return {name: value for name, value in payload.items() if value not in (None, "", [])}


def indexed_fields(*, citances: bool) -> "Iterator[tuple[str, Any]]":
    """The fields of the payload that have an index, and its kind."""
    from qdrant_client import models

    kind = models.PayloadSchemaType
    yield from ((ID, kind.KEYWORD), (YEAR, kind.INTEGER), (CITATIONS, kind.INTEGER), (FIELDS, kind.KEYWORD))
    words = models.TextIndexParams(
        type=models.TextIndexType.TEXT, tokenizer=models.TokenizerType.WORD, lowercase=True, phrase_matching=True
    )
    yield VENUE, words
    if citances:
        yield from ((CITING, kind.KEYWORD), (CITING_YEAR, kind.INTEGER))


def filter_of(filters: Filters, *, citances: bool = False) -> "models.Filter | None":
    """The filter over papers, or over citing sentences, that is exactly these filters; None if all pass.

    Raises:
        FilterError: A venue has no word.
    """
    from qdrant_client import models

    def in_range(key: str, **limits: float | None) -> "models.FieldCondition":
        return models.FieldCondition(key=key, range=models.Range(**limits))

    def one_of(key: str, values: Sequence[str]) -> "models.FieldCondition":
        return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))

    must: list[Any] = []
    must_not: list[Any] = []
    if filters.year_from is not None or filters.year_to is not None:
        must.append(in_range(YEAR, gte=filters.year_from or 0, lte=filters.year_to))
    if filters.min_citations is not None:
        must.append(in_range(CITATIONS, gte=filters.min_citations))
    if filters.fields:
        must.append(one_of(FIELDS, [name.casefold() for name in filters.fields]))
    if filters.venues:
        phrases = [models.MatchPhrase(phrase=_phrase(phrase_of(venue))) for venue in filters.venues]
        must.append(models.Filter(should=[models.FieldCondition(key=VENUE, match=phrase) for phrase in phrases]))
    if hidden := [*filters.exclude, *filters.citing_ids]:
        must_not.append(one_of(ID, hidden))
    if citances and filters.citing_ids:
        must_not.append(one_of(CITING, list(filters.citing_ids)))
    if filters.as_of_year is not None:
        must_not.append(in_range(YEAR, gt=filters.as_of_year))  # a paper of unknown year is not known to be newer
        if citances:
            must.append(in_range(CITING_YEAR, gte=0, lte=filters.as_of_year))
    return models.Filter(must=must or None, must_not=must_not or None) if must or must_not else None


def _phrase(terms: Sequence[str | None]) -> str:
    """The terms of a name at their places, as words that every tokenizer of the server leaves whole."""
    words = [_NO_LETTERS.sub("", term) or _GAP if term else _GAP for term in terms]
    return " ".join(words).strip(f"{_GAP} ")
