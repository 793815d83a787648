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

from citerec.corpus.store import SearchableCitance
from citerec.index.columns import hash_of
from citerec.index.filters import phrase_of
from citerec.index.words.analysis import terms_of
from citerec.index.words.postings import BUILT
from citerec.records import Filters, Paper

if TYPE_CHECKING:
    from qdrant_client import models

WORDS, DENSE = "words", "dense"
"""The names of the vectors: BM25, and that of the encoder."""

TEXT, TITLE, ABSTRACT, CITANCE = "text", "title", "abstract", "citance"
"""The fields of words. Each has indices of its own in the vector `words`: a weight for a field is one for these."""

ID, YEAR, CITATIONS, FIELDS, VENUE = "id", "year", "citations", "fields", "venue"
CITING, CITING_YEAR, POSITION = "citing", "citing_year", "position"

_NO_LETTERS = re.compile(r"[\W_]+")
_GAP = "0"  # in place of a stop word


def term_index(field: str, term: str) -> int:
    """The index of a term of a field in the vector `words`: 32 bits of a hash, so no vocabulary has to be shared."""
    return hash_of(f"{field} {term}") & 0xFFFFFFFF


def point_id(*names: object) -> str:
    """The id of the point of a paper, or of a citing sentence by its names: the same in every index."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(map(str, names))))


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


def paper_payload(paper: Paper) -> dict[str, Any]:
    """What filters read of a paper. What is unknown is left out: no range matches it."""
    payload: dict[str, Any] = {ID: paper.paper_id}
    if paper.year is not None:
        payload[YEAR] = paper.year
    if paper.citation_count is not None:
        payload[CITATIONS] = paper.citation_count
    if fields := [name.casefold() for name in paper.fields_of_study]:
        payload[FIELDS] = fields
    if paper.venue and (words := _phrase(terms_of(paper.venue))):
        payload[VENUE] = words
    return payload


def citance_payload(citance: SearchableCitance) -> dict[str, Any]:
    """What filters read of a citing sentence: what they read of the cited paper, and who cites it when."""
    payload = paper_payload(citance.cited) | {CITING: citance.citing_id, POSITION: citance.position}
    if citance.citing_year is not None:
        payload[CITING_YEAR] = citance.citing_year
    return payload


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
