"""Checks that compare the cited entries with the records of an index."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from citerec.corpus.matching import edition_name, is_preprint, same_author
from citerec.drafts.bibliography import Entry
from citerec.drafts.checks.base import Check, Finding, Material, Severity, check
from citerec.drafts.checks.matches import Match, same_title
from citerec.records import Paper

_RETRACTED = re.compile(
    r"\W*(?:(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter))?\s*[:\]–—-]|notice of retraction\b)", re.IGNORECASE
)
_OTHERS = re.compile(r"\band\s+others\b|\bet\s+al\b|\.\.\.|…")
_YEARS_BETWEEN_EDITIONS = 1

Told = Iterator[tuple[str, str]]
"""Messages and remedies."""


def _each(tell: Callable[[Entry, Match], Told], material: Material, check: Check) -> Iterator[Finding]:
    for key, entry in material.cited.items():
        match = (material.matches or {}).get(key)
        for message, remedy in tell(entry, match) if match else ():
            yield check.in_line(material, entry.path, entry.line, message, remedy)


def _record_check(name: str, severity: Severity, summary: str) -> Callable[[Callable[[Entry, Match], Told]], Check]:
    return lambda tell: check(name, severity, summary, needs_index=True)(partial(_each, tell))


@_record_check("not-in-index", Severity.NOTE, "a cited entry that the index lacks")
def not_in_index(entry: Entry, match: Match) -> Told:
    """Names the nearest paper, if one is near; an entry with the DOI of another work is told as that."""
    if match.paper is None and not match.others:
        remedy = f"The nearest paper is {named(match.nearest)}." if match.nearest else "Check its title and authors."
        yield f"{entry.paper.paper_id} is not in the index: {quoted(entry.paper)}", remedy


@_record_check("title-differs", Severity.WARNING, "a cited entry whose title is not that of its paper")
def title_differs(entry: Entry, match: Match) -> Told:
    """Ignores case, accents, punctuation, spaces, and a subtitle that one of the two lacks."""
    if match.paper is None or any(same_title(entry.paper.title, one.title) for one in match.editions):
        return
    yield f"the title of {entry.paper.paper_id} differs from that in the index", f"There it is {quoted(match.paper)}."


@_record_check("year-differs", Severity.WARNING, "a cited entry whose year is not that of its paper")
def year_differs(entry: Entry, match: Match) -> Told:
    """A year more or less is none: editions of a work often are a year apart."""
    years = sorted({one.year for one in match.editions if one.year is not None})
    year = entry.paper.year
    if match.paper is None or year is None or not years:
        return
    if min(abs(year - other) for other in years) > _YEARS_BETWEEN_EDITIONS:
        known = " and ".join(map(str, years))
        yield f"{entry.paper.paper_id} is of {year}, in the index of {known}", f"Compare with {named(match.paper)}."


@_record_check("authors-differ", Severity.WARNING, "a cited entry whose authors are not those of its paper")
def authors_differ(entry: Entry, match: Match) -> Told:
    """Compares the first authors, and looks for authors that the record lacks, or the entry."""
    records = [one for one in match.editions if one.authors]
    if match.paper is None or not entry.paper.authors or not records:
        return
    faults = [_fault(entry.paper, one) for one in records]
    if all(faults):
        yield faults[0], f"The index has {_listed(records[0])}."


@_record_check("preprint-published", Severity.WARNING, "a cited preprint whose published version is in the index")
def preprint_published(entry: Entry, match: Match) -> Told:
    """Goes by the venue of the entry, its DOI and `eprint` (`citerec.corpus.matching`)."""
    paper = entry.paper
    if not (is_preprint(paper) or (paper.venue is None and "arxiv" in (paper.bibtex or "").casefold())):
        return
    published = next((one for one in match.editions if one.venue and not is_preprint(one)), None)
    if published:
        yield f"{paper.paper_id} is a preprint, published in {edition_name(published)}", "Cite the published version."


@_record_check("retracted", Severity.WARNING, "a cited paper that was retracted")
def retracted(entry: Entry, match: Match) -> Told:
    """Goes by titles, such as "RETRACTED ARTICLE: …" and "Retraction notice to …": records hold nothing else on it."""
    marked = next((one for one in (entry.paper, *match.editions) if _RETRACTED.match(one.title)), match.notice)
    if marked:
        yield (
            f"{entry.paper.paper_id} was retracted: {quoted(marked)}",
            "Do not cite it, or say that it was retracted.",
        )


def _fault(entry: Paper, record: Paper) -> str:
    """What the authors of an entry lack, or have, that those of a record have not; empty if they are the same."""
    key = entry.paper_id
    if not same_author(entry.authors[0], record.authors[0]):
        return f"the first author of {key} is {entry.authors[0]}, in the index {record.authors[0]}"
    for name in entry.authors:
        if not any(same_author(name, other) for other in record.authors):
            return f"{name} is an author of {key}, but not in the index"
    if _OTHERS.search(entry.bibtex or ""):
        return ""
    missing = [name for name in record.authors if not any(same_author(name, other) for other in entry.authors)]
    return f"{key} lacks the author {missing[0]}" if missing else ""


def quoted(paper: Paper) -> str:
    """The title of a paper in quotation marks."""
    return f"“{paper.title}”"


def _listed(paper: Paper) -> str:
    return ", ".join(paper.authors)


def named(paper: Paper) -> str:
    """A paper by its title, first author, year and id."""
    authors = f" by {paper.authors[0]}{' and others' if len(paper.authors) > 1 else ''}" if paper.authors else ""
    return f"{quoted(paper)}{authors}{f', {paper.year}' if paper.year else ''} ({paper.paper_id})"
