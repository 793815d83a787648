"""Asking web services whether the entries of a bibliography exist, and what is known of them (docs/checking.md)."""

import contextlib
import csv
import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field

from citerec.corpus.matching import (
    LEAST_ALIKE,
    acl_in,
    arxiv_in,
    canonical_id,
    doi_in,
    is_preprint,
    keys_of,
    most_alike,
    plain_title,
    same_work,
    similarity,
)
from citerec.corpus.venues import says_venue
from citerec.drafts.bibliography import Bibliography, Entry
from citerec.drafts.check import Finding, findings_by_entry
from citerec.drafts.matching import (
    Match,
    candidates,
    differences,
    is_preprint_entry,
    match_of,
    published_edition,
    same_title,
)
from citerec.errors import CiterecError, InputError, ServiceError
from citerec.files.progress import Progress, no_progress
from citerec.files.text import names_in
from citerec.records import Known, Notice, Paper
from citerec.retrieve.base import OpenIndex
from citerec.settings import PartSettings
from citerec.sources.look_up import Asking, LookUp, Manners, notice_kind, opened

Reply = TypeVar("Reply")

_IN_A_ROW = 2
"""Failures one after another after which a service is not asked any more."""
_UNLISTED = names_in(
    "booklet, dataset, electronic, manual, mastersthesis, misc, mvbook, online, patent, phdthesis, report,"
    "software, standard, techreport, thesis, unpublished, webpage, www"
)
"""Types of entries of which these services list few."""
_PMID = re.compile(r"(?:pmid:\s*|https?://pubmed\.ncbi\.nlm\.nih\.gov/)(\d+)/?", re.IGNORECASE)
_TYPE = re.compile(r"\s*@\s*(\w+)")
_FIELDS_OF_NOTICES = ("OriginalPaperDOI", "RetractionNature", "RetractionDOI", "Title")
_OF_VERDICTS = {"retracted": "retracted", "other-work": "identifier of another work", "not-found": "not found"}
_FAULTS = names_in(
    "authors-differ, authors-missing, authors-placeholder, doi-impossible, doi-unknown, newer-than-draft,"
    "title-differs, two-works, venue-differs, venue-unknown, version-differs, year-differs"
)


class OnlineSettings(PartSettings):
    """How the services are asked, in this order; the first that agrees with an entry is the last that is asked.

    Attributes:
        services: Which are asked, in this order.
        keep_days: Days that answers are kept on this computer; 0 for none.
    """

    crossref: Asking = Asking(pace=0.2, timeout=20, tries=3)
    openalex: Asking = Asking(pace=0.2, timeout=20, tries=3)
    s2: Asking = Asking(pace=1.1, timeout=20, tries=3)
    dblp: Asking = Asking(pace=1.1, timeout=20, tries=3)
    arxiv: Asking = Asking(pace=3.0, timeout=20, tries=3)
    services: str = "crossref,openalex,s2,dblp,arxiv"
    keep_days: float = Field(default=30.0, ge=0)

    def manners(self, service: str) -> Manners:
        """Those of one service."""
        manners, otherwise = dict(getattr(self, service)), "or ask others: -c services=NAME,NAME"
        return Manners(section=service, keep_days=self.keep_days, keeps_misses=True, otherwise=otherwise, **manners)

    def opened(self) -> contextlib.AbstractContextManager[list[LookUp]]:
        """The services, until the end of the block.

        Raises:
            InputError: There is no such service.
        """
        return opened(names_in(self.services), self.manners)


class OnlineMatcher:
    """Finds what services know of entries; one that fails twice in a row is not asked any more.

    Only ids, title, first author and venue of an entry are sent, and each entry is asked for once.

    Args:
        services: Asked in this order, until one agrees with an entry; for a preprint, until one knows where it was
            published.
        index: An index whose papers are compared too.
        retractions: Retraction Watch's table, as Crossref publishes it.
        on_progress: Called as the work goes on.

    Attributes:
        matches: What was found so far, by key.
        failed: The errors of services that failed, by title.
    """

    def __init__(
        self,
        services: Sequence[LookUp],
        index: OpenIndex | None = None,
        retractions: Path | None = None,
        on_progress: Progress = no_progress,
    ) -> None:
        self._services, self._index, self._retractions = services, index, retractions
        self._on_progress, self._in_a_row = on_progress, Counter[str]()
        self.matches: dict[str, Match] = {}
        self.failed: dict[str, CiterecError] = {}

    def __call__(self, entries: Iterable[Paper]) -> Mapping[str, Match]:
        """What is known of entries with a title, by key.

        Raises:
            InputError: The table of retractions cannot be read.
        """
        entries = [entry for entry in entries if entry.title]
        new = [entry for entry in entries if entry.paper_id not in self.matches]
        of_index = candidates(new, self._index) if self._index else {}
        retractions = read_retractions(self._retractions, new) if self._retractions else {}
        for done, entry in enumerate(new):
            self._on_progress("asking", done, len(new))
            match = self._match(entry, of_index.get(entry.paper_id, ()))
            notices = (*match.notices, *retractions.get(entry.paper_id, ()))
            self.matches[entry.paper_id] = match._replace(notices=notices)
        return {entry.paper_id: self.matches[entry.paper_id] for entry in entries}

    @property
    def faults(self) -> list[str]:
        """What went wrong with services, a line each."""
        return [f"{title}: {error.message}" for title, error in self.failed.items()]

    def _match(self, entry: Paper, papers: Sequence[Paper]) -> Match:
        known: list[Known] = []
        was_asked, match = False, match_of(entry, papers)
        for service in self._services if is_listed(entry) else ():
            found = self._ask(service, functools.partial(service.known, entry))
            if found is None:
                continue
            was_asked = True
            known += found
            match = match_of(entry, papers, known)
            if _is_settled(entry, match):
                break
        if any(one.code == "venue-differs" for one in differences(entry, match)):
            match = match._replace(knows_venue=self._knows_venue(entry.venue or ""))
        return match._replace(was_asked=was_asked)

    def _ask(self, service: LookUp, ask: Callable[[], Reply]) -> Reply | None:
        """What a service answers; None if it fails, or has failed in a row."""
        if self._in_a_row[service.title] >= _IN_A_ROW:
            return None
        try:
            answer = ask()
        except ServiceError as error:
            self.failed[service.title] = error
            self._in_a_row[service.title] += 1
            return None
        if answer is not None:  # it knows of such things, and was asked
            self._in_a_row[service.title] = 0
        return answer

    def _knows_venue(self, name: str) -> bool | None:
        """Whether a service knows a venue; None if none could be asked."""
        answers = [self._ask(service, functools.partial(service.has_venue, name)) for service in self._services]
        said = [answer for answer in answers if answer is not None]
        return any(said) if said else None


def find_reference(reference: str, services: Sequence[LookUp]) -> Paper:
    """The paper that somebody names, as its record says; the published one where it is a preprint too.

    Args:
        reference: A DOI, arXiv id, Anthology id, PMID (`pmid:123`), an address of one of these, or a title.
        services: Asked in this order, until one has it; for a preprint, until one knows where it was published.

    Raises:
        InputError: None has it.
        ServiceError: None has it, and one failed.
    """
    wanted, failed = _named(reference), list[ServiceError]()
    known: list[Known] = []
    for service in services:
        try:
            known += service.known(wanted)
        except ServiceError as error:
            failed.append(error)
        ids = keys_of(wanted)
        own = [one.paper for one in known if ids & keys_of(one.paper)] if not wanted.title else []
        near = [one.paper for one in known if similarity(one.paper.title, wanted.title) >= LEAST_ALIKE]
        near.sort(key=lambda one: not same_title(one.title, wanted.title))
        if paper := next(iter(own or near or ([known[0].paper] if known and not wanted.title else [])), None):
            editions = [paper, *(one.paper for one in known if same_work(one.paper, paper))]
            published = next((one for one in editions if says_venue(one.venue) and not is_preprint(one)), None)
            if published:
                return replace(published, external_ids={**paper.external_ids, **published.external_ids})
            wanted = replace(wanted, title=paper.title, authors=paper.authors)
    if known and wanted.title and (best := most_alike(wanted, (one.paper for one in known))):
        return best
    if failed:
        raise failed[0]
    raise InputError(f"no source has {reference!r:.200}", "Check the id or the title; or ask more: -c services=…")


class Addition(NamedTuple):
    """What became of a paper that somebody named.

    Attributes:
        key: The key of its entry.
        paper: Its record, or the entry that was there.
        entry: The text of its new entry; empty if the bibliography had one.
    """

    key: str
    paper: Paper
    entry: str


def add_references(references: Iterable[str], bibliography: Bibliography, services: Sequence[LookUp]) -> list[Addition]:
    """Adds papers that somebody names to a bibliography: all of them, or none if one is not found.

    Errors and arguments as for `find_reference`. No service is asked for what the bibliography has by an identifier.
    """
    listed = {one: key for key, entry in reversed(bibliography.entries.items()) for one in keys_of(entry)}
    found: list[tuple[str | None, Paper]] = []
    for reference in references:
        key = next((listed[one] for one in keys_of(_named(reference)) if one in listed), None)
        found.append((key, bibliography.entries[key] if key else find_reference(reference, services)))
    additions = []
    for key, paper in found:
        begin = len(bibliography.text)
        additions.append(Addition(key or bibliography.add(paper), paper, bibliography.text[begin:].strip()))
    return additions


def _named(reference: str) -> Paper:
    """What is known of a paper that somebody names."""
    if match := _PMID.fullmatch(reference.strip()):
        return Paper("", external_ids={"PubMed": match[1]})
    scheme, _, value = canonical_id(reference).partition(":")
    names = {"doi": "DOI", "arxiv": "ArXiv", "acl": "ACL"}
    if scheme not in names and (acl := acl_in(f"https://aclanthology.org/{reference.strip()}")):
        scheme, value = "acl", acl
    if scheme not in names and (number := arxiv_in(f"arXiv:{reference.strip()}")):
        scheme, value = "arxiv", number
    return Paper("", external_ids={names[scheme]: value}) if scheme in names else Paper("", title=reference.strip())


def _is_settled(entry: Paper, match: Match) -> bool:
    """Whether nothing is left to ask for: an edition agrees, and a preprint's published one is known."""
    if match.paper is None or match.others or any(differences(entry, match)):
        return False
    return not is_preprint_entry(entry) or published_edition(entry, match) is not None


def is_listed(entry: Paper) -> bool:
    """Whether services may list an entry: by its type, or because it has an identifier."""
    kind = _TYPE.match(entry.bibtex or "")
    return bool(keys_of(entry)) or kind is None or kind[1].lower() not in _UNLISTED


def read_retractions(path: Path, entries: Collection[Paper]) -> dict[str, list[Notice]]:
    """The notices of a Retraction Watch table about some entries, by key: by DOI, or by title.

    Raises:
        InputError: It cannot be read, or has other columns.
    """
    by_doi = {doi.casefold(): one.paper_id for one in entries if (doi := doi_in(one.external_ids.get("DOI", "")))}
    by_title = {plain_title(one.title): one.paper_id for one in entries}
    found: dict[str, list[Notice]] = {}
    for row in _rows(path):
        doi, nature, notice, title = (str(row.get(name) or "").strip() for name in _FIELDS_OF_NOTICES)
        key = by_doi.get(doi.casefold()) or by_title.get(plain_title(title))
        if key and (kind := notice_kind(nature)):
            address = f"https://doi.org/{notice}" if notice.startswith("10.") else ""
            found.setdefault(key, []).append(Notice(kind, address, "Retraction Watch"))
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    remedy = "Give the table that Crossref publishes: retraction_watch.csv"
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.DictReader(file)
            if missing := [name for name in _FIELDS_OF_NOTICES if name not in (rows.fieldnames or ())]:
                raise InputError(f"{path} has no column {missing[0]}", remedy)
            yield from rows
    except (OSError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", remedy) from error


def verdict_of(match: Match, codes: Collection[str]) -> str:
    """What is said of an entry in all: of what was found, and the codes of its findings."""
    if said := next((name for code, name in _OF_VERDICTS.items() if code in codes), ""):
        return said
    if any(code in codes for code in _FAULTS):
        return "differs"
    if match.paper is None:
        return "not checked"
    return "published since" if "preprint-published" in codes else "found"


def verdicts_json(
    entries: Sequence[Entry], findings: Sequence[Finding], matches: Mapping[str, Match]
) -> list[dict[str, Any]]:
    """Entries with their verdicts, and their fields beside those of the records that they were compared with."""
    found = findings_by_entry(entries, findings)
    return [
        _verdict(one, matches.get(one.paper.paper_id, Match()), {each.code for each in found[one]}) for one in entries
    ]


def _verdict(entry: Entry, match: Match, codes: Collection[str]) -> dict[str, Any]:
    own, record = entry.paper, match.paper or next(iter(match.others.values()), match.nearest)
    said = {"key": own.paper_id, "path": str(entry.path), "line": entry.line, "verdict": verdict_of(match, codes)}
    return {
        **said,
        "codes": sorted(codes),
        "source": match.place(record) if record else None,
        "entry": _fields(own),
        "record": _fields(record) if record else None,
        "notices": [notice._asdict() for notice in match.notices],
    }


def _fields(paper: Paper) -> dict[str, Any]:
    fields = {"title": paper.title, "authors": list(paper.authors), "year": paper.year, "venue": paper.venue}
    return {**fields, "doi": paper.external_ids.get("DOI"), "arxiv": paper.external_ids.get("ArXiv")}
