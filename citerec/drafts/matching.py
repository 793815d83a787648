"""What an index, or web services, have of the entries of a bibliography, and in what an entry differs from that."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product, starmap
from typing import NamedTuple

from citerec.corpus.bibtex import bibtex_names, bibtex_text
from citerec.corpus.matching import (
    ARXIV_DOI,
    LEAST_ALIKE,
    MOST_YEARS,
    alike,
    conflicting,
    is_preprint,
    keys_of,
    normalised,
    plain_title,
    same_author,
    same_work,
    similarity,
)
from citerec.corpus.reading import decoded
from citerec.corpus.venues import same_venue, says_venue
from citerec.drafts.bibliography import Mending
from citerec.records import Known, Notice, Paper
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.entries import title_search


class Match(NamedTuple):
    """What an index, or web services, have of an entry.

    Attributes:
        paper: Its paper; None if they lack it.
        editions: All records of its work, the paper among them.
        nearest: Without a paper, the one with the most similar title, if one is near.
        notices: Notices about it, such as that it was retracted.
        others: Records of other works that have an identifier of the entry, by identifier, as `keys_of` has it.
        identifiers: The identifiers of all records.
        sources: The service that gave a record, by its id; empty for those of an index.
        knows_venue: Whether a service knows the venue of the entry; None if none was asked.
        was_asked: Whether services were asked for the entry.
    """

    paper: Paper | None = None
    editions: tuple[Paper, ...] = ()
    nearest: Paper | None = None
    notices: tuple[Notice, ...] = ()
    others: Mapping[str, Paper] = {}
    identifiers: frozenset[str] = frozenset()
    sources: Mapping[str, str] = {}
    knows_venue: bool | None = None
    was_asked: bool = False

    def place(self, record: Paper) -> str:
        """Where a record is: "the index", or a service."""
        return self.sources.get(record.paper_id, "the index")


Matcher = Callable[[Iterable[Paper]], Mapping[str, Match]]
"""What an index or services have of entries, by key."""


class Difference(NamedTuple):
    """In what an entry differs from all records of its work.

    Attributes:
        code: The check that tells it.
        message: What is wrong.
        remedy: What to do.
        mending: The right value of the field; None if it is not known.
    """

    code: str
    message: str
    remedy: str
    mending: Mending | None = None


_NEAR = 0.65
"""Similarity of titles from which a paper is named as the nearest one."""
_LEAST_WITH_AUTHOR = 0.5
"""Similarity of titles from which a record with the same identifier and a shared author is that of the same work."""
_FEWEST_WORDS = 4
"""Words of a title that names one work, whatever else a record says."""
_NOTICE = re.compile(r"(?:\W*(?:retraction|withdrawal)(?:\s+(?:notice|note))?\s*(?::|to\b|of\b|for\b))+", re.IGNORECASE)
_RETRACTED = re.compile(
    r"\W*(?:(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter))?\s*[:\]–—-]|notice of retraction\b)", re.IGNORECASE
)
_OTHERS = re.compile(r"\band\s+others\b|\bet\s+al\b|\.\.\.|…")
_OF_VENUE = re.compile(r"\b(booktitle|journaltitle|journal)\s*=", re.IGNORECASE)
_YEARS_BETWEEN_EDITIONS = 1


def match_entries(entries: Iterable[Paper], index: OpenIndex) -> dict[str, Match]:
    """What an index has of each entry with a title, by key."""
    entries = [entry for entry in entries if entry.title]
    found = candidates(entries, index)
    return {entry.paper_id: match_of(entry, found[entry.paper_id]) for entry in entries}


def candidates(entries: Sequence[Paper], index: OpenIndex) -> dict[str, list[Paper]]:
    """The papers of an index that may be those of some entries, by key: with its id, an identifier, or a like title."""
    identified = index.store.named({key for entry in entries for key in keys_of(entry)})
    search, found = title_search(index), dict[str, list[Paper]]()
    for entry in entries:
        ids = list(dict.fromkeys([entry.paper_id, *search(entry.title)]))
        papers = index.store.papers(ids, texts=False)
        holders = [paper for key in sorted(keys_of(entry)) for paper in identified.get(key, ())]
        near = [*(papers[paper_id] for paper_id in ids if paper_id in papers), *holders]
        found[entry.paper_id] = list({paper.paper_id: paper for paper in near}.values())
    return found


def match_of(entry: Paper, papers: Sequence[Paper], known: Sequence[Known] = ()) -> Match:
    """What some papers of an index, and records of services, are to an entry."""
    listed = {paper.paper_id: paper for paper in (*papers, *(one.paper for one in known))}
    sources = {one.paper.paper_id: one.source for one in known}
    keys, records = keys_of(entry), list(listed.values())
    holders = [paper for paper in records if keys & keys_of(paper)]
    others = [paper for paper in holders if _is_of_another(entry, paper, records)]
    misplaced = {
        key: of_key[0]
        for key in sorted(keys)
        if (of_key := [paper for paper in holders if key in keys_of(paper)]) and all(one in others for one in of_key)
    }
    rated = [(_rating(entry, paper), paper) for paper in records if paper not in others]
    best, paper = max(rated, key=lambda each: each[0], default=((0.0, 0.0), None))  # the first of several
    match = Match(others=misplaced, identifiers=frozenset[str]().union(*map(keys_of, records)), sources=sources)
    notices = [Notice("retraction", quoted(one), match.place(one)) for _, one in rated if _is_notice_of(entry, one)]
    if paper is None or not best[0]:
        near = [(similarity(entry.title, one.title), one) for _, one in rated]
        score, nearest = max(near, key=lambda each: each[0], default=(0.0, None))
        return match._replace(nearest=nearest if score >= _NEAR else None, notices=tuple(notices))
    editions = tuple(one for _, one in rated if one is paper or same_work(one, paper) or same_work(one, entry))
    marked = [Notice("retraction", quoted(one), match.place(one)) for one in editions if is_retracted(one)]
    said = [notice for one in known if one.paper in editions for notice in one.notices]
    return match._replace(paper=paper, editions=editions, notices=tuple(dict.fromkeys([*said, *marked, *notices])))


def is_retracted(paper: Paper) -> bool:
    """Whether the title of a record says that it was retracted."""
    return bool(_RETRACTED.match(paper.title))


def differences(entry: Paper, match: Match) -> Iterator[Difference]:
    """In what an entry differs from all records of its work; nothing if there is none."""
    if match.paper is not None:
        yield from _title(entry, match, match.paper)
        yield from _authors(entry, match)
        yield from _year(entry, match, match.paper)
        if match.sources:  # a corpus may name venues in its own way; of several services one mostly names it so
            yield from _venue(entry, match)
            yield from _doi(entry, match, match.paper)


def _title(entry: Paper, match: Match, paper: Paper) -> Iterator[Difference]:
    """Ignores case, accents, punctuation, spaces, and a subtitle that one of the two lacks."""
    if not any(same_title(entry.title, one.title) for one in match.editions):
        message = f"the title of {entry.paper_id} differs from that in {match.place(paper)}"
        mending = Mending("title", bibtex_text(paper.title))
        yield Difference("title-differs", message, f"There it is {quoted(paper)}.", mending)


def _authors(entry: Paper, match: Match) -> Iterator[Difference]:
    """Compares the first authors, and looks for authors that the record lacks, or the entry."""
    records = [one for one in match.editions if one.authors] if entry.authors else []
    faults = [_fault(entry, one, match.place(one)) for one in records]
    if faults and all(faults):
        code, message = faults[0] or ("", "")
        names = ", ".join(records[0].authors)
        place = match.place(records[0])
        mending = Mending("author", bibtex_names(records[0].authors))
        yield Difference(code, message, f"{place[:1].upper()}{place[1:]} has {names}.", mending)


def _fault(entry: Paper, record: Paper, place: str) -> tuple[str, str] | None:
    """What the authors of an entry lack, or have, that those of a record have not, with its code; None if nothing."""
    key = entry.paper_id
    if not any(starmap(same_author, product(entry.authors, record.authors))):
        first = record.authors[0]
        message = f"none of the authors of {key} is an author of the paper with its title, which is by {first}"
        return "two-works", message
    if not same_author(entry.authors[0], record.authors[0]):
        return "authors-differ", f"the first author of {key} is {entry.authors[0]}, in {place} {record.authors[0]}"
    for name in entry.authors:
        if not any(same_author(name, other) for other in record.authors):
            return "authors-differ", f"{name} is an author of {key}, but not in {place}"
    if _OTHERS.search(entry.bibtex or ""):
        return None
    missing = [name for name in record.authors if not any(same_author(name, other) for other in entry.authors)]
    return ("authors-missing", f"{key} lacks the author {missing[0]}") if missing else None


def _year(entry: Paper, match: Match, paper: Paper) -> Iterator[Difference]:
    """A year more or less is none: editions of a work often are a year apart; but of one venue there is one edition."""
    years, year = sorted({one.year for one in match.editions if one.year is not None}), entry.year
    if not years or year is None:
        return
    if min(abs(year - other) for other in years) > _YEARS_BETWEEN_EDITIONS:
        there, mending = " and ".join(map(str, years)), Mending("year", str(paper.year or years[0]))
        message = f"{entry.paper_id} is of {year}, in {match.place(paper)} of {there}"
        yield Difference("year-differs", message, f"Compare with {named(paper)}.", mending)
    elif match.sources and says_venue(entry.venue):
        of_venue = [one for one in match.editions if one.venue and same_venue(entry.venue or "", one.venue)]
        preprint = any(is_preprint(one) and one.year == year for one in match.editions)
        if of_venue and preprint and all(one.year not in (None, year) for one in of_venue):
            message = f"{entry.paper_id} names {entry.venue}, and the year of the preprint, {year}"
            remedy = f"In {entry.venue} it was published in {of_venue[0].year}."
            yield Difference("version-differs", message, remedy, Mending("year", str(of_venue[0].year)))


def _venue(entry: Paper, match: Match) -> Iterator[Difference]:
    """Compares names of venues (`citerec.corpus.venues`); a paper that is known as a preprint alone has none."""
    where = _OF_VENUE.search(entry.bibtex or "")
    if where is None or not says_venue(entry.venue) or is_preprint(entry):
        return
    own = entry.venue or ""
    published = [one for one in match.editions if one.venue and says_venue(one.venue)]
    if any(same_venue(own, one.venue or "") for one in published):
        return
    code = "venue-unknown" if match.knows_venue is False else "venue-differs"
    unknown = "; no source knows a venue of this name" if match.knows_venue is False else ""
    if published:
        record = published[0]
        message = f"{entry.paper_id} names {own}, {match.place(record)} {record.venue}{unknown}"
        mending = Mending(where[1], bibtex_text(record.venue or ""))
        yield Difference(code, message, f"Compare with {named(record)}.", mending)
    elif preprint := next((one for one in match.editions if is_preprint(one)), None):
        there = match.place(preprint)
        message = f"{entry.paper_id} names {own}, but {there} has only a preprint of {preprint.year}{unknown}"
        yield Difference(code, message, "Check that it was published there, or cite the preprint.")


def _doi(entry: Paper, match: Match, paper: Paper) -> Iterator[Difference]:
    doi = next((key for key in keys_of(entry) if key.startswith("doi:")), "")
    if doi and doi not in match.identifiers:
        there, remedy, mending = paper.external_ids.get("DOI", ""), "Remove it, or correct it.", None
        if there and not there.casefold().startswith(ARXIV_DOI):
            remedy, mending = f"In {match.place(paper)} it is {there}.", Mending("doi", there)
        yield Difference("doi-unknown", f"no source knows the DOI of {entry.paper_id}, {doi[4:]}", remedy, mending)


def published_edition(entry: Paper, match: Match) -> Paper | None:
    """The published edition of an entry that is a preprint; None if there is none, or it is no preprint.

    Goes by the venue of the entry, its DOI and `eprint` (`citerec.corpus.matching`).
    """
    if match.paper is None or not is_preprint_entry(entry):
        return None
    return next((one for one in match.editions if says_venue(one.venue) and not is_preprint(one)), None)


def is_preprint_entry(entry: Paper) -> bool:
    """Whether an entry is that of a preprint."""
    return is_preprint(entry) or (entry.venue is None and "arxiv" in (entry.bibtex or "").casefold())


def quoted(paper: Paper) -> str:
    """The title of a paper in quotation marks."""
    return f"“{paper.title}”"


def named(paper: Paper) -> str:
    """A paper by its title, first author, year and id."""
    authors = f" by {paper.authors[0]}{' and others' if len(paper.authors) > 1 else ''}" if paper.authors else ""
    return f"{quoted(paper)}{authors}{f', {paper.year}' if paper.year else ''} ({paper.paper_id})"


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
    title = notice.title[match.end() :] if (match := _NOTICE.match(notice.title)) else ""
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
