"""Checks that compare the cited entries with the records of an index."""

import re
from collections.abc import Iterator

from citerec.corpus.matching import edition_name, is_preprint, same_author
from citerec.drafts.bibliography import Entry
from citerec.drafts.check import Material, Severity, Told, check
from citerec.drafts.checks.matches import same_title
from citerec.records import Paper

_RETRACTED = re.compile(
    r"\W*(?:(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter))?\s*[:\]–—-]|notice of retraction\b)", re.IGNORECASE
)
_OTHERS = re.compile(r"\band\s+others\b|\bet\s+al\b|\.\.\.|…")
_YEARS_BETWEEN_EDITIONS = 1


@check(Severity.NOTE, "a cited entry that the index lacks", needs_index=True)
def not_in_index(material: Material) -> Told:
    """Names the nearest paper, if one is near; an entry with the DOI of another work is told as that."""
    for key, match in material.matches.items():
        if match.paper is None and not match.others:
            entry, near = material.cited[key], match.nearest
            remedy = f"The nearest paper is {named(near)}." if near else "Check its title and authors."
            yield entry, f"{key} is not in the index: {quoted(entry.paper)}", remedy


@check(Severity.WARNING, "a cited entry whose title is not that of its paper", needs_index=True)
def title_differs(material: Material) -> Told:
    """Ignores case, accents, punctuation, spaces, and a subtitle that one of the two lacks."""
    for key, entry, paper, editions in _compared(material):
        if not any(same_title(entry.paper.title, one.title) for one in editions):
            yield entry, f"the title of {key} differs from that in the index", f"There it is {quoted(paper)}."


@check(Severity.WARNING, "a cited entry whose year is not that of its paper", needs_index=True)
def year_differs(material: Material) -> Told:
    """A year more or less is none: editions of a work often are a year apart."""
    for key, entry, paper, editions in _compared(material):
        years, year = sorted({one.year for one in editions if one.year is not None}), entry.paper.year
        if years and year is not None and min(abs(year - other) for other in years) > _YEARS_BETWEEN_EDITIONS:
            known = " and ".join(map(str, years))
            yield entry, f"{key} is of {year}, in the index of {known}", f"Compare with {named(paper)}."


@check(Severity.WARNING, "a cited entry whose authors are not those of its paper", needs_index=True)
def authors_differ(material: Material) -> Told:
    """Compares the first authors, and looks for authors that the record lacks, or the entry."""
    for _, entry, _, editions in _compared(material):
        records = [one for one in editions if one.authors] if entry.paper.authors else []
        faults = [_fault(entry.paper, one) for one in records]
        if faults and all(faults):
            yield entry, faults[0], f"The index has {', '.join(records[0].authors)}."


@check(Severity.WARNING, "a cited preprint whose published version is in the index", needs_index=True)
def preprint_published(material: Material) -> Told:
    """Goes by the venue of the entry, its DOI and `eprint` (`citerec.corpus.matching`)."""
    for key, entry, _, editions in _compared(material):
        own = entry.paper
        if not (is_preprint(own) or (own.venue is None and "arxiv" in (own.bibtex or "").casefold())):
            continue
        published = next((one for one in editions if one.venue and not is_preprint(one)), None)
        if published:
            yield entry, f"{key} is a preprint, published in {edition_name(published)}", "Cite the published version."


@check(Severity.WARNING, "a cited paper that was retracted", needs_index=True)
def retracted(material: Material) -> Told:
    """Goes by titles, such as "RETRACTED ARTICLE: …" and "Retraction notice to …": records hold nothing else on it."""
    for key, match in material.matches.items():
        entry = material.cited[key]
        marked = next((one for one in (entry.paper, *match.editions) if _RETRACTED.match(one.title)), match.notice)
        if marked:
            yield entry, f"{key} was retracted: {quoted(marked)}", "Do not cite it, or say that it was retracted."


def _compared(material: Material) -> Iterator[tuple[str, Entry, Paper, tuple[Paper, ...]]]:
    """The cited entries that the index has: key, entry, paper, and all records of its work."""
    for key, match in material.matches.items():
        if match.paper is not None:
            yield key, material.cited[key], match.paper, match.editions


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


def named(paper: Paper) -> str:
    """A paper by its title, first author, year and id."""
    authors = f" by {paper.authors[0]}{' and others' if len(paper.authors) > 1 else ''}" if paper.authors else ""
    return f"{quoted(paper)}{authors}{f', {paper.year}' if paper.year else ''} ({paper.paper_id})"
