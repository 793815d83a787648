"""Checks for entries of one work, and for entries with an identifier of another work."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from citerec.corpus.matching import folded, is_preprint, keys_of, same_author
from citerec.drafts.bibliography import Entry
from citerec.drafts.check import Material, Severity, Told, check
from citerec.drafts.checks.matches import Match, is_same_work, same_title
from citerec.drafts.checks.records import named, quoted
from citerec.records import Paper

_SCHEMES = {"doi": "DOI", "arxiv": "arXiv id", "acl": "Anthology id"}


@check(Severity.ERROR, "a cited entry with the DOI, arXiv id or Anthology id of another work")
def other_work(material: Material) -> Told:
    """Compares entries with the papers of the index that have their identifiers, and with each other.

    Of two entries with one identifier, only the wrong one is told if the index knows whose identifier it is.
    """
    for key, match in material.matches.items():
        entry = material.cited[key]
        for identifier, paper in match.others.items():
            scheme, value = _written(entry.paper, identifier)
            message = f"{key} has the {scheme} {value} of another paper, {paper.paper_id}: "
            rest = f": the paper of its title is {named(match.paper)}." if match.paper else ", or what differs."
            message += _differences(entry.paper, paper)
            yield entry, message, f"Correct its {scheme}{rest}"
    for pair in _sharing(material):
        entry, other = pair.entry, pair.other
        matches = [material.matches.get(one.paper.paper_id, Match()) for one in (entry, other)]
        if pair.is_one_work or any(pair.identifier in match.others for match in matches):
            continue
        scheme, value = _written(entry.paper, pair.identifier)
        message = f"{pair} have one {scheme}, {value}, but are two works: {_differences(entry.paper, other.paper)}"
        yield entry, message, f"Correct the {scheme} of the one that has that of the other."


@check(Severity.WARNING, "two cited entries of one work")
def work_twice(material: Material) -> Told:
    """Entries with one identifier and nearly one title, or with one title and a shared author (`corpus.matching`).

    Two publications of different years are two works: a paper and its journal version, a tutorial held again.
    """
    found = {pair.entry: pair for pair in _sharing(material) if pair.is_one_work}
    entries = material.cited_entries
    for group in folded([entry.paper for entry in entries], len(entries)):
        first, *others = [entries[place] for place in sorted(group)]
        for entry in others:
            if not _published_twice(entry.paper, first.paper):
                found.setdefault(entry, _Pair(entry, first))
    for entry, pair in found.items():
        same = f"have one {_written(entry.paper, pair.identifier)[0]}" if pair.identifier else "are one work"
        has_one_key = entry.paper.paper_id == pair.other.paper.paper_id
        yield entry, f"{pair} {same}", "Remove one of them." if has_one_key else "Cite one of them throughout."


class _Pair(NamedTuple):
    """An entry and an earlier one; both have the identifier, if there is one."""

    entry: Entry
    other: Entry
    identifier: str = ""

    @property
    def is_one_work(self) -> bool:
        return is_same_work(self.entry.paper, self.other.paper)

    def __str__(self) -> str:
        return f"{self.entry.paper.paper_id} and {self.other.paper.paper_id} ({self.other.path}:{self.other.line})"


def _sharing(material: Material) -> Iterator[_Pair]:
    """Each entry with an earlier one that has an identifier of it; one of the same work, if there is one."""
    earlier: dict[str, list[Entry]] = defaultdict(list)
    for entry in material.cited_entries:
        identifiers = sorted(keys_of(entry.paper), reverse=True)  # the DOI first
        pairs = [_Pair(entry, other, identifier) for identifier in identifiers for other in earlier[identifier]]
        if pairs:
            yield next((pair for pair in pairs if pair.is_one_work), pairs[0])
        for identifier in identifiers:
            earlier[identifier].append(entry)


def _published_twice(first: Paper, second: Paper) -> bool:
    return first.year != second.year and all(paper.venue and not is_preprint(paper) for paper in (first, second))


def _written(paper: Paper, identifier: str) -> tuple[str, str]:
    """The name of the scheme of an identifier, and its value as a record writes it."""
    scheme, _, value = identifier.partition(":")
    values = paper.external_ids.values()
    return _SCHEMES[scheme], next((one for one in values if one.casefold() == value), value)


def _differences(entry: Paper, other: Paper) -> str:
    """In what title, year and first author of two records differ, with the values of both."""
    found = []
    if not same_title(entry.title, other.title):
        found.append(f"title {quoted(entry)}, there {quoted(other)}")
    if entry.year is not None and other.year is not None and entry.year != other.year:
        found.append(f"year {entry.year}, there {other.year}")
    if entry.authors and other.authors and not same_author(entry.authors[0], other.authors[0]):
        found.append(f"first author {entry.authors[0]}, there {other.authors[0]}")
    return "; ".join(found)
