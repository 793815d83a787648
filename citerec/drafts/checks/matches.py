"""The entries of a draft, and what an index has of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, starmap

from citerec.corpus.matching import (
    LEAST_ALIKE,
    MOST_YEARS,
    alike,
    conflicting,
    keys_of,
    normalised,
    plain_title,
    same_author,
    same_work,
    similarity,
)
from citerec.corpus.plain import decoded
from citerec.records import Paper
from citerec.retrieve.opened import OpenIndex, title_search

_NEAR = 0.65
"""Similarity of titles from which a paper is named as the nearest one."""
_LEAST_WITH_AUTHOR = 0.5
"""Similarity of titles from which a record with the same identifier and a shared author is that of the same work."""
_FEWEST_WORDS = 4
"""Words of a title that names one work, whatever else a record says."""
_NOTICE = re.compile(r"(?:\W*(?:retraction|withdrawal)(?:\s+(?:notice|note))?\s*(?::|to\b|of\b|for\b))+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Match:
    """What an index has of an entry.

    Attributes:
        paper: Its paper; None if the index lacks it.
        editions: All records of its work, the paper among them.
        nearest: Without a paper, the one with the most similar title, if one is near.
        notice: A notice that it was retracted.
        others: Records of other works that have an identifier of the entry, by identifier, as `keys_of` has it.
    """

    paper: Paper | None = None
    editions: tuple[Paper, ...] = ()
    nearest: Paper | None = None
    notice: Paper | None = None
    others: Mapping[str, Paper] = field(default_factory=dict)


def match_entries(entries: Iterable[Paper], index: OpenIndex) -> dict[str, Match]:
    """What an index has of each entry with a title, by key."""
    entries = [entry for entry in entries if entry.title]
    identified = index.store.named({key for entry in entries for key in keys_of(entry)})
    search, matches = title_search(index), dict[str, Match]()
    for entry in entries:
        ids = list(dict.fromkeys([entry.paper_id, *search(entry.title)]))
        papers = index.store.papers(ids, texts=False)
        holders = [paper for key in sorted(keys_of(entry)) for paper in identified.get(key, ())]
        near = [*(papers[paper_id] for paper_id in ids if paper_id in papers), *holders]
        matches[entry.paper_id] = _match(entry, list({paper.paper_id: paper for paper in near}.values()))
    return matches


def _match(entry: Paper, candidates: Sequence[Paper]) -> Match:
    """What some papers, with similar titles or an identifier of the entry, are to it."""
    keys = keys_of(entry)
    holders = [paper for paper in candidates if keys & keys_of(paper)]
    others = [paper for paper in holders if _is_of_another(entry, paper, candidates)]
    misplaced = {
        key: papers[0]
        for key in sorted(keys)
        if (papers := [paper for paper in holders if key in keys_of(paper)]) and all(one in others for one in papers)
    }
    rated = [(_rating(entry, paper), paper) for paper in candidates if paper not in others]
    best, paper = max(rated, key=lambda each: each[0], default=((0.0, 0.0), None))  # the first of several
    notice = next((one for _, one in rated if _is_notice_of(entry, one)), None)
    if paper is None or not best[0]:
        near = [(similarity(entry.title, one.title), one) for _, one in rated]
        score, nearest = max(near, key=lambda each: each[0], default=(0.0, None))
        return Match(nearest=nearest if score >= _NEAR else None, notice=notice, others=misplaced)
    editions = tuple(one for _, one in rated if one is paper or same_work(one, paper) or same_work(one, entry))
    return Match(paper, editions, None, notice, misplaced)


def is_same_work(first: Paper, second: Paper, least: float = LEAST_ALIKE) -> bool:
    """Whether two records with one identifier are of one work, by what else they say.

    They are unless their titles differ, or the authors and the year both do. What a record does not say differs from
    nothing.

    Args:
        first: A record.
        second: Another one.
        least: Similarity of titles that is enough if an author is shared.
    """
    names = list(product(first.authors, second.authors))
    shares_author = not names or any(starmap(same_author, names))
    if not shares_author and _apart(first, second) > MOST_YEARS:
        return False
    titles = sorted(map(plain_title, (first.title, second.title)), key=len)
    if not titles[0] or same_title(first.title, second.title) or same_work(first, second):
        return True
    if shares_author and titles[1].startswith(f"{titles[0]} "):  # which lacks a subtitle, whatever stands before that
        return True
    return similarity(first.title, second.title) >= (least if shares_author else LEAST_ALIKE)


def _is_of_another(entry: Paper, holder: Paper, candidates: Iterable[Paper]) -> bool:
    """Whether a paper with an identifier of an entry is another work; it is too if the entry's own paper is there."""
    if not is_same_work(entry, holder, _LEAST_WITH_AUTHOR):
        return True
    return not same_title(entry.title, holder.title) and any(
        same_title(entry.title, one.title)
        and alike(entry, one)
        and conflicting(keys_of(one), keys_of(holder))
        and not same_work(one, holder)
        for one in candidates
    )


def _apart(first: Paper, second: Paper) -> int:
    """Years between two records; 0 if one does not say its year."""
    return abs(first.year - second.year) if first.year is not None and second.year is not None else 0


def _rating(entry: Paper, paper: Paper) -> tuple[float, float]:
    """How surely a paper is that of an entry, 0 if it is not; then how near its year is."""
    apart = _apart(entry, paper)
    if keys_of(entry) & keys_of(paper):
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
    title = notice.title[found.end() :] if (found := _NOTICE.match(notice.title)) else ""
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
