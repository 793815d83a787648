"""The entries of a draft, and what an index has of them."""

import re
from collections.abc import Iterable, Mapping
from itertools import product, starmap
from pathlib import Path
from typing import NamedTuple, Protocol

from citerec.corpus.editions import same_work
from citerec.corpus.latex import decoded
from citerec.corpus.store import PaperStore
from citerec.corpus.titles import LEAST_ALIKE, alike, normalised, plain_doi, same_author, similarity
from citerec.records import Paper
from citerec.retrieve.titles import Search, title_search

_NEAR = 0.65
"""Similarity of titles from which a paper is named as the nearest one."""
_FEWEST_WORDS = 4
"""Words of a title that names one work, whatever else a record says."""
_NOTICE = re.compile(r"(?:\W*(?:retraction|withdrawal)(?:\s+(?:notice|note))?\s*(?::|to\b|of\b|for\b))+", re.IGNORECASE)


class Library(Protocol):
    """An open index, such as a `Recommender`."""

    @property
    def path(self) -> Path:
        """Its directory."""

    @property
    def store(self) -> PaperStore:
        """Its papers."""


class Match(NamedTuple):
    """What an index has of an entry.

    Attributes:
        paper: Its paper; None if the index lacks it.
        editions: All records of its work, the paper among them.
        nearest: Without a paper, the one with the most similar title, if one is near.
        notice: A notice that it was retracted.
    """

    paper: Paper | None = None
    editions: tuple[Paper, ...] = ()
    nearest: Paper | None = None
    notice: Paper | None = None


def match_entries(entries: Iterable[Paper], library: Library) -> dict[str, Match]:
    """What an index has of each entry with a title, by key."""
    with title_search(library.path) as search:
        return {
            entry.paper_id: match_entry(entry, _candidates(entry, search, library.store))
            for entry in entries
            if entry.title
        }


def _candidates(entry: Paper, search: Search, store: PaperStore) -> list[Paper]:
    ids = list(dict.fromkeys([entry.paper_id, *search(entry.title)]))
    papers: Mapping[str, Paper] = store.papers(ids, texts=False)
    return [papers[paper_id] for paper_id in ids if paper_id in papers]


def match_entry(entry: Paper, candidates: Iterable[Paper]) -> Match:
    """What some papers with similar titles are to an entry."""
    rated = [(_rating(entry, paper), paper) for paper in candidates]
    best, paper = max(rated, key=lambda each: each[0], default=((0.0, 0.0), None))  # the first of several
    notices = (one for _, one in rated if _NOTICE.match(one.title) and _is_notice_of(entry, one))
    notice = next(notices, None)
    if paper is None or not best[0]:
        near = [(similarity(entry.title, one.title), one) for _, one in rated]
        score, nearest = max(near, key=lambda each: each[0], default=(0.0, None))
        return Match(nearest=nearest if score >= _NEAR else None, notice=notice)
    editions = tuple(one for _, one in rated if one is paper or same_work(one, paper) or same_work(one, entry))
    return Match(paper, editions, None, notice)


def _rating(entry: Paper, paper: Paper) -> tuple[float, float]:
    """How surely a paper is that of an entry, 0 if it is not; then how near its year is."""
    apart = abs(entry.year - paper.year) if entry.year is not None and paper.year is not None else 0
    if plain_doi(entry) and plain_doi(entry) == plain_doi(paper):
        return 3.0, -apart
    if (score := alike(entry, paper)) and (same_title(entry.title, paper.title) or _else_same(entry, paper, apart)):
        return 1.0 + score, -apart
    if similarity(entry.title, paper.title) < 1 or len(normalised(entry.title)) < _FEWEST_WORDS:
        return 0.0, 0.0
    # The same title: the year is wrong, or the authors are; not both.
    if any(starmap(same_author, product(entry.authors, paper.authors))):
        return 1.0, -apart
    return (0.5, 0.0) if apart == 0 and entry.year is not None else (0.0, 0.0)


def _else_same(entry: Paper, paper: Paper, apart: int) -> bool:
    """Whether first author and year are the same: only then another title is an error, and not another paper."""
    return apart <= 1 and all(starmap(same_author, zip(entry.authors[:1], paper.authors, strict=False)))


def _is_notice_of(entry: Paper, notice: Paper) -> bool:
    title = _NOTICE.sub("", notice.title, count=1)
    return similarity(entry.title, title) >= LEAST_ALIKE and normalised(entry.title) <= normalised(title)


def same_title(first: str, second: str) -> bool:
    """Whether two titles are the same but for case, accents, punctuation, spaces, and a subtitle that one lacks."""
    first, second = decoded(first), decoded(second)  # a corpus may hold LaTeX
    one, other = ("".join(re.findall(r"\w+", title.casefold())) for title in (first, second))
    if one == other or normalised(first) == normalised(second):
        return True
    shorter, longer = sorted((first, second), key=len)
    parts = re.split(r"\s*[:?!.(–—]\s*|\s+-\s+", longer)
    return any(normalised(part) == normalised(shorter) for part in (parts[0], " ".join(parts[1:])) if part)
