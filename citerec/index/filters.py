"""From filters to a mask: which papers of an index may be found. The same for all that is searched by row."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from citerec.errors import FilterError, IndexUnusableError
from citerec.index.columns import (
    COLUMNS,
    NAMES,
    Mask,
    PaperColumns,
    PaperRows,
    Rows,
    begins_of,
    hash_of,
    hashes_of,
    owners_of,
    places_in,
)
from citerec.index.words.analysis import terms_of
from citerec.records import Filters

SORTS = ("relevance", "newest", "oldest", "most-cited", "venue", "field")
"""Orders of hits; ties are ordered by relevance, then paper id."""

Terms = Sequence[str | None]

# A mask takes a byte for each paper. Contexts of an evaluation differ only in their years.
_KEPT = 64


class PaperFilter:
    """Which papers of an index pass filters. Safe to use from several threads.

    Args:
        rows: The papers.
        folder: The folder of the generation.
    """

    def __init__(self, rows: PaperRows, folder: Path) -> None:
        self._rows = rows
        path = folder / COLUMNS / NAMES
        try:
            self._written_names = path.read_bytes()  # the index may be replaced until they are needed
        except OSError as error:
            raise IndexUnusableError(f"{path} cannot be read ({error.strerror})", "Build the index again.") from error
        self._mask = functools.lru_cache(_KEPT)(self._passing)

    @functools.cached_property
    def names(self) -> Mapping[str, Sequence[str]]:
        """Its `fields` of study and `venues`, as they are written, in order of their small letters."""
        names: Mapping[str, Sequence[str]] = orjson.loads(self._written_names)
        return names

    @functools.cached_property
    def _venue_terms(self) -> Mapping[str, Terms]:
        return {name: terms_of(name) for name in self.names["venues"]}

    def _passing(self, filters: Filters) -> Mask:
        return passing(filters, self._rows.known, self._venue_terms if filters.venues else {})

    def passing(self, filters: Filters) -> Mask:
        """Which papers pass all filters, (papers,).

        Raises:
            FilterError: A venue has no word.
        """
        mask = self._mask(replace(filters, exclude=(), citing_ids=())).copy()
        hidden = self._rows.rows([*filters.exclude, *filters.citing_ids])
        mask[hidden[hidden >= 0]] = False
        return mask

    def in_order(self, sort: str, rows: Rows, scores: NDArray[Any]) -> Rows:
        """The places of some rows in an order of `SORTS`; ties are ordered by score, then paper id."""
        return np.lexsort((rows, -scores, self._order_of(sort, rows)))

    def _order_of(self, sort: str, rows: Rows) -> NDArray[np.float64]:
        """What some rows are sorted by, least first, (rows,): `newest`, `oldest`, `most-cited`, `venue` or `field`.

        What is not known comes last: infinity.
        """
        known = self._rows.known
        if sort in ("newest", "oldest", "most-cited"):
            values = (known.citation_counts if sort == "most-cited" else known.years)[rows].astype(np.float64)
            return np.where(values < 0, np.inf, values if sort == "oldest" else -values)
        if sort == "venue":
            return _ranks(self.names["venues"], known.venues[rows, 1])
        begins, places = places_in(known.field_begins, rows)
        ranks = np.full(len(rows), np.inf)
        np.minimum.at(ranks, owners_of(begins), _ranks(self.names["fields"], known.fields[places]))
        return ranks


def passing(filters: Filters, known: PaperColumns, venue_terms: Mapping[str, Terms]) -> Mask:
    """Which papers pass all filters but `exclude` and `citing_ids`, (papers,).

    Args:
        filters: The filters.
        known: The columns of the papers.
        venue_terms: The terms of each of their venues, by its name as it is written.

    Raises:
        FilterError: A venue that is asked for has no word.
    """
    mask = np.ones(len(known), dtype=bool)
    if filters.as_of_year is not None:
        mask &= known.years <= filters.as_of_year  # an unknown year passes: it is not known to be newer
    if filters.year_from is not None or filters.year_to is not None:
        mask &= known.years >= (filters.year_from or 0)
    if filters.year_to is not None:
        mask &= known.years <= filters.year_to
    if filters.min_citations is not None:
        mask &= known.citation_counts >= max(0, filters.min_citations)
    if filters.fields:
        matches = begins_of(np.isin(known.fields, hashes_of(map(str.casefold, filters.fields))))
        mask &= matches[known.field_begins[1:]] > matches[known.field_begins[:-1]]
    if filters.venues:
        phrases = [*map(phrase_of, filters.venues)]
        names = (name for name, terms in venue_terms.items() if any(_has_phrase(terms, one) for one in phrases))
        mask &= np.isin(known.venues[:, 0], hashes_of(names))
    return mask


def phrase_of(venue: str) -> Terms:
    """The terms of a venue that is asked for, without gaps at its ends; FilterError if it has no word."""
    terms = terms_of(venue)
    while terms and terms[-1] is None:
        terms.pop()
    while terms and terms[0] is None:
        terms.pop(0)
    if not terms:
        raise FilterError(f"the venue {venue!r} has no word", "Give words of its name, for example SIGIR.")
    return terms


def _has_phrase(terms: Terms, phrase: Terms) -> bool:
    """Whether the terms of a phrase follow each other somewhere; a gap stands for any word."""
    return any(
        all(asked in (None, term) for asked, term in zip(phrase, terms[begin:], strict=False))
        for begin in range(len(terms) - len(phrase) + 1)
    )


def _ranks(names: Sequence[str], hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The rank of each hash among those of names in small letters, in their order; infinity for others."""
    ranks = {hash_of(name): rank for rank, name in enumerate(dict.fromkeys(map(str.casefold, names)))}
    return np.array([ranks.get(one, np.inf) for one in hashes.tolist()], np.float64)
