"""What is stored in Qdrant for papers and citing sentences, and the filters over it.

BM25 is a sparse vector. A term scores `weight · idf · tf / (tf + k1 · (1 − b + b · dl / mean))`. The last part depends
on the text alone: it is the text's value for the term. The weight is the query's. The server adds the idf, whose
formula is Lucene's (`Modifier.IDF`).
"""

import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from citerec.corpus.store import SearchableCitance
from citerec.index.columns import hash_of
from citerec.index.filters import phrase_of
from citerec.index.hits import Searchable, key_of
from citerec.index.words.analysis import terms_of
from citerec.index.words.postings import BUILT
from citerec.records import Filters, Paper

if TYPE_CHECKING:
    from qdrant_client import models

WORDS, DENSE = "words", "dense"
"""The names of the vectors: BM25, and that of the encoder."""

ID, YEAR, CITATIONS, FIELDS, VENUE = "id", "year", "citations", "fields", "venue"
KEY, CITING, CITING_YEAR = "key", "citing", "citing_year"

_NO_LETTERS = re.compile(r"[\W_]+")
_GAP = "0"  # in place of a stop word


def point_id(key: str) -> str:
    """The id of the point of a paper or a citing sentence: the same in every index."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, key))


def text_vector(texts: Mapping[str, str], means: Mapping[str, float]) -> "models.SparseVector | None":
    """The vector of the texts of a paper or a citing sentence; None if they have no term.

    Args:
        texts: The texts, by field.
        means: The fields that are searched, and how many terms each has on average, of the texts that have one.
    """
    values: dict[tuple[str, str], float] = {}
    for field in means.keys() & texts.keys():
        terms = [term for term in terms_of(texts[field]) if term is not None]
        norm = BUILT.k1 * (1 - BUILT.b + BUILT.b * len(terms) / (means[field] or 1.0))
        values |= {(field, term): times / (times + norm) for term, times in Counter(terms).items()}
    return words_vector(values)


def words_vector(weights: Mapping[tuple[str, str], float]) -> "models.SparseVector | None":
    """The vector of the weights of terms, by field and term; None if there is none.

    Its indices are 32 bits of a hash, so no vocabulary has to be shared. Each field has indices of its own.
    """
    from qdrant_client import models

    values: dict[int, float] = {}
    for (field, term), weight in weights.items():
        index = hash_of(f"{field} {term}") & 0xFFFFFFFF
        values[index] = values.get(index, 0.0) + weight
    return models.SparseVector(indices=list(values), values=list(values.values())) if values else None


def payload_of(item: Searchable) -> dict[str, Any]:
    """What filters read of a paper; of a citing sentence what they read of the cited paper, and who cites it when.

    What is unknown is left out: no range matches it.
    """
    paper = item if isinstance(item, Paper) else item.cited
    payload = {
        ID: paper.paper_id,
        YEAR: paper.year,
        CITATIONS: paper.citation_count,
        FIELDS: [str(name).casefold() for name in paper.fields_of_study],
        VENUE: _phrase(terms_of(paper.venue or "")),
    }
    if isinstance(item, SearchableCitance):
        payload |= {KEY: key_of(item), CITING: item.citing_id, CITING_YEAR: item.citing_year}
    return {name: value for name, value in payload.items() if value not in (None, "", [])}


def payload_indexes() -> dict[str, Any]:
    """The kind of index of each field of the payload that filters name; the same in both collections."""
    from qdrant_client import models

    kind = models.PayloadSchemaType
    words = models.TextIndexParams(
        type=models.TextIndexType.TEXT, tokenizer=models.TokenizerType.WORD, lowercase=True, phrase_matching=True
    )
    names, numbers = (ID, FIELDS, CITING), (YEAR, CITATIONS, CITING_YEAR)
    return {**dict.fromkeys(names, kind.KEYWORD), **dict.fromkeys(numbers, kind.INTEGER), VENUE: words}


def filter_of(filters: Filters, *, citances: bool = False) -> "models.Filter | None":
    """The filter over papers, or over citing sentences, that is exactly these filters; None if all pass.

    Raises:
        FilterError: A venue has no word.
    """
    from qdrant_client import models

    def in_range(key: str, **limits: float | None) -> "list[models.FieldCondition]":
        limited = any(limit is not None for limit in limits.values())
        return [models.FieldCondition(key=key, range=models.Range(**limits))] if limited else []

    def one_of(key: str, values: Sequence[str]) -> "list[models.FieldCondition]":
        return [models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))] if values else []

    phrases = [models.MatchPhrase(phrase=_phrase(phrase_of(venue))) for venue in filters.venues]
    venues: list[Any] = [models.FieldCondition(key=VENUE, match=phrase) for phrase in phrases]
    must: list[Any] = [
        *in_range(YEAR, gte=filters.year_from, lte=filters.year_to),
        *in_range(CITATIONS, gte=filters.min_citations),
        *in_range(CITING_YEAR, lte=filters.as_of_year if citances else None),
        *one_of(FIELDS, [name.casefold() for name in filters.fields]),
        *([models.Filter(should=venues)] if venues else []),
    ]
    must_not: list[Any] = [
        *one_of(ID, [*filters.exclude, *filters.citing_ids]),
        *one_of(CITING, filters.citing_ids),
        *in_range(YEAR, gt=filters.as_of_year),  # a paper of unknown year is not known to be newer
    ]
    return models.Filter(must=must or None, must_not=must_not or None) if must or must_not else None


def _phrase(terms: Sequence[str | None]) -> str:
    """The terms of a name at their places, as words that every tokenizer of the server leaves whole."""
    words = [_NO_LETTERS.sub("", term) or _GAP if term else _GAP for term in terms]
    return " ".join(words).strip(f"{_GAP} ")
