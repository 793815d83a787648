"""Checking a draft and its bibliography: what a check is, what it looks at, and what it finds.

The checks themselves are in `checks/`, one function each.
"""

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cached_property, partial
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from citerec.contexts.markers import CitationMarker, Spans, Style, find_markers
from citerec.contexts.sections import is_abstract
from citerec.contexts.split import sentences_of, splitter
from citerec.corpus.matching import (
    LEAST_ALIKE,
    MOST_YEARS,
    alike,
    conflicting,
    edition_name,
    folded,
    is_preprint,
    keys_of,
    normalised,
    plain_title,
    same_author,
    same_work,
    similarity,
)
from citerec.corpus.reading import decoded
from citerec.discourse.worthiness import Placed, Sentence, is_sentence, shipped
from citerec.drafts.base import Cited, Draft, Paragraph, Place, Source
from citerec.drafts.bibliography import NO_ENTRIES, Entries, Entry, Unread
from citerec.drafts.files import Files
from citerec.drafts.read import is_markdown
from citerec.errors import CiterecError
from citerec.files.registry import Registry
from citerec.files.text import names_in
from citerec.records import MARKER, Paper
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.entries import title_search
from citerec.version import __version__


class Severity(StrEnum):
    """How much a finding matters; the words are those of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a draft or its bibliography that should be looked at.

    Attributes:
        code: The check that found it.
        severity: How much it matters.
        path: The file.
        line: Its line, from 1.
        column: The first character, from 1.
        end_line: The line where it ends.
        end_column: The column after its last character.
        message: What is wrong.
        remedy: What to do.
    """

    code: str
    severity: Severity
    path: Path
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.code} {self.message}"

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON."""
        return asdict(self) | {"severity": str(self.severity), "path": str(self.path)}

    @classmethod
    def at(cls, source: Source, span: tuple[int, int], code: str, severity: Severity, *texts: str) -> "Finding":
        """A finding at some characters of a file; `texts` are what is wrong, and what to do."""
        return cls(code, severity, source.path, *source.position(span[0]), *source.position(span[1]), *texts)


@dataclass(frozen=True, slots=True)
class Options:
    """What to check.

    Attributes:
        select: Only these checks; None for all that are on by default.
        ignore: None of these checks.
        year: The year of the draft.
    """

    select: frozenset[str] | None = None
    ignore: frozenset[str] = frozenset()
    year: int = field(default_factory=lambda: date.today().year)


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


Matcher = Callable[[Iterable[Paper]], Mapping[str, Match]]
"""What an index has of entries, by key."""


@dataclass(frozen=True)
class Material:
    """What the checks look at.

    Attributes:
        draft: The draft.
        bibliography: The entries that it can cite; none if there is no bibliography.
        files: The texts of the files.
        year: The year of the draft.
        match: Finds what the index has of entries; None without an index.
    """

    draft: Draft
    bibliography: Entries
    files: Files
    year: int
    match: Matcher | None = None
    _sources: dict[Path, Source] = field(default_factory=dict)

    @cached_property
    def cited_entries(self) -> list[Entry]:
        """The entries that the draft cites, with all entries of each key."""
        keys = {cited.key for cited in self.draft.cited}
        return [entry for entry in self.bibliography.entries if entry.paper.paper_id in keys]

    @cached_property
    def cited(self) -> dict[str, Entry]:
        """The same by key, in the order of the bibliography; the last of several, as the index keeps it."""
        return {entry.paper.paper_id: entry for entry in self.cited_entries}

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries by key; the last of several."""
        return {entry.paper.paper_id: entry for entry in self.bibliography.entries}

    @cached_property
    def matches(self) -> Mapping[str, Match]:
        """For each key that is cited and has an entry with a title, what the index has; empty without an index."""
        return self.match([entry.paper for entry in self.cited.values()]) if self.match else {}

    def source(self, path: Path) -> Source:
        """The text of a file, with its lines; empty if it cannot be read."""
        if path not in self._sources:
            text = ""
            with suppress(CiterecError):
                text = self.files.text(path)
            self._sources[path] = Source(path, text)
        return self._sources[path]


Problems = Iterator[tuple[Place | Cited | Entry | Unread, str, str]]
"""What a check finds: where (a place or a citation, or the first line of an entry), what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check: it is one function, and all that it finds has its name as code.

    Attributes:
        name: Its name, which is the code of what it finds.
        severity: How much that matters.
        summary: What it looks for, in one line.
        tell: Finds it.
        needs_index: Whether it needs an index.
        by_default: Whether it runs if no check is selected.
    """

    name: str
    severity: Severity
    summary: str
    tell: Callable[[Material], Problems]
    needs_index: bool = False
    by_default: bool = True

    def run(self, material: Material) -> Iterator[Finding]:
        """What it finds, each at its place in a file."""
        for where, message, remedy in self.tell(material):
            source = material.source(where.path)
            in_line = source.line_span(where.line)
            span = (where.start, where.end) if isinstance(where, Place | Cited) else in_line
            yield Finding.at(source, span, self.name, self.severity, message, remedy)


def check(
    severity: Severity, summary: str, *, needs_index: bool = False, by_default: bool = True
) -> Callable[[Callable[[Material], Problems]], Check]:
    """A decorator that makes a check of a function: `key_unknown` becomes the check `key-unknown`."""
    return lambda tell: Check(tell.__name__.replace("_", "-"), severity, summary, tell, needs_index, by_default)


_CODES = names_in(
    "authors-differ, bibliography-unreadable, citation-needed, entry-uncited, entry-unreadable, key-duplicate,"
    "key-unknown, newer-than-draft, not-in-index, other-work, place-open, preprint-published, retracted,"
    "title-differs, work-twice, year-differs"
)
CHECKS: Registry[Check] = Registry("check", {code: f"citerec.drafts.check:{code.replace('-', '_')}" for code in _CODES})
"""All checks, by code."""


def check_draft(
    draft: Draft,
    bibliography: Entries | None = None,
    index: OpenIndex | None = None,
    options: Options | None = None,
    files: Files | None = None,
    match: Matcher | None = None,
) -> list[Finding]:
    """What should be looked at in a draft, by file and line.

    Args:
        draft: The draft, from `read_draft`.
        bibliography: Its entries, from `read_entries`; None if it has none: keys are not checked then.
        index: An open index, with which cited entries are compared; None for no comparison.
        options: What to check.
        files: The texts of the files from which draft and bibliography were read; by default the disk.
        match: Finds what the index has of the cited entries; by default `match_entries`.

    Raises:
        InputError: `options` names a check that does not exist.
    """
    options = options or Options()
    checks = [one for one in selected(options) if index is not None or not one.needs_index]
    if index is not None and any(one.needs_index for one in checks):
        match = match or partial(match_entries, index=index)
    material = Material(draft, bibliography or NO_ENTRIES, files or Files(), options.year, match)
    findings = [finding for one in checks for finding in one.run(material)]
    return sorted(findings, key=lambda one: (str(one.path), one.line, one.column, one.code, one.message))


def selected(options: Options) -> list[Check]:
    """The checks that run with some options, in order.

    Raises:
        InputError: There is no such check.
    """
    for name in (*(options.select or ()), *options.ignore):
        CHECKS[name]
    checks = [one for name, one in CHECKS.items() if name not in options.ignore]
    return [one for one in checks if (one.by_default if options.select is None else one.name in options.select)]


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(findings: Sequence[Finding], root: Path | None = None) -> dict[str, Any]:
    """The SARIF log of some findings.

    Args:
        findings: The findings.
        root: The folder that paths are relative to; by default the current one.
    """
    rules = [_rule(check) for _, check in CHECKS.items()]
    driver = {"name": "citerec", "version": __version__, "rules": rules}
    results = [_result(finding, (root or Path.cwd()).resolve()) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.name,
        "shortDescription": {"text": f"{check.summary[:1].upper()}{check.summary[1:]}."},
        "defaultConfiguration": {"level": str(check.severity), "enabled": check.by_default},
    }


def _result(finding: Finding, root: Path) -> dict[str, Any]:
    start = {"startLine": finding.line, "startColumn": finding.column}
    end = {"endLine": finding.end_line, "endColumn": finding.end_column}
    uri = quote(Path(os.path.relpath(finding.path.resolve(), root)).as_posix())
    return {
        "ruleId": finding.code,
        "ruleIndex": list(CHECKS).index(finding.code),
        "level": str(finding.severity),
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": start | end}}],
    }


_CROSS_REFERENCE = re.compile(r"(?:fig|tbl|tab|sec|eq|lst|thm|def|lem|exm)[-:]")  # of pandoc and Quarto
_CROSSREF = re.compile(r"\bcrossref\s*=\s*[{\"]\s*([^\s,{}\"]+)", re.IGNORECASE)


@check(Severity.ERROR, "a bibliography that is missing or cannot be read")
def bibliography_unreadable(material: Material) -> Problems:
    """Says of each file why it cannot be read."""
    for path, error in material.bibliography.lost:
        yield Unread(path, 1, ""), error.message, error.remedy


@check(Severity.ERROR, "an entry that cannot be read")
def entry_unreadable(material: Material) -> Problems:
    """Says of each entry why it cannot be read."""
    for unread in material.bibliography.unread:
        yield unread, f"an entry cannot be read: {unread.reason}", "Correct it, or remove it."


@check(Severity.ERROR, "a citation of a key that has no entry")
def key_unknown(material: Material) -> Problems:
    """Names the nearest keys; silent if a bibliography is missing or cannot be read, which may have the entry.

    A cross-reference of Markdown, such as `@fig-one`, is no citation.
    """
    if not material.bibliography.is_whole:
        return
    unread = " ".join(material.source(path).text for path in {one.path for one in material.bibliography.unread})
    for cited in material.draft.cited:
        if cited.key in material.entries or (is_markdown(cited.path) and _CROSS_REFERENCE.match(cited.key)):
            continue
        near = difflib.get_close_matches(cited.key, material.entries)
        remedy = f"Did you mean {' or '.join(near)}?" if near else "Add its entry, or correct the key."
        if re.search(rf"[{{(]\s*{re.escape(cited.key)}\s*,", unread):
            remedy = "Its entry cannot be read: correct that."
        yield _at_key(material, cited), f"{cited.key} has no entry in the bibliography", remedy


@check(Severity.ERROR, "a key that several entries have")
def key_duplicate(material: Material) -> Problems:
    """Points at each entry whose key an earlier one has."""
    first: dict[str, Entry] = {}
    for entry in material.bibliography.entries:
        earlier = first.setdefault(entry.paper.paper_id, entry)
        if earlier is not entry:
            message = f"the key {entry.paper.paper_id} is that of {earlier.path}:{earlier.line} too"
            yield entry, message, "Remove one of them, or change its key."


@check(Severity.NOTE, "an entry that the draft never cites", by_default=False)
def entry_uncited(material: Material) -> Problems:
    """Leaves out entries that cited ones refer to by `crossref`."""
    parents = {key for entry in material.cited.values() for key in _CROSSREF.findall(entry.paper.bibtex or "")}
    for key, entry in material.entries.items():
        if key not in material.cited and key not in parents:
            yield entry, f"{key} is never cited", "Cite it, or remove it."


@check(Severity.NOTE, "a place that still wants a citation")
def place_open(material: Material) -> Problems:
    """Points at each place of the draft."""
    for place in material.draft.places:
        yield place, "a citation is still missing here", f"For papers to cite: citerec fill {place.path}"


@check(Severity.ERROR, "a cited entry that is newer than the draft")
def newer_than_draft(material: Material) -> Problems:
    """Compares the year of each cited entry with that of the draft."""
    for key, entry in material.cited.items():
        if entry.paper.year is not None and entry.paper.year > material.year:
            message = f"{key} is of {entry.paper.year}, the draft of {material.year}"
            yield entry, message, "Correct its year, or give that of the draft: --year YEAR"


def _at_key(material: Material, cited: Cited) -> Cited:
    """The key alone in its citation."""
    pattern = re.compile(rf"(?<![\w:.-]){re.escape(cited.key)}(?![\w:-])")
    match = pattern.search(material.source(cited.path).text, cited.start, cited.end)
    return replace(cited, start=match.start(), end=match.end()) if match else cited


_RETRACTED = re.compile(
    r"\W*(?:(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter))?\s*[:\]–—-]|notice of retraction\b)", re.IGNORECASE
)
_OTHERS = re.compile(r"\band\s+others\b|\bet\s+al\b|\.\.\.|…")
_YEARS_BETWEEN_EDITIONS = 1


@check(Severity.NOTE, "a cited entry that the index lacks", needs_index=True)
def not_in_index(material: Material) -> Problems:
    """Names the nearest paper, if one is near; an entry with the DOI of another work is told as that."""
    for key, match in material.matches.items():
        if match.paper is None and not match.others:
            entry, near = material.cited[key], match.nearest
            remedy = f"The nearest paper is {named(near)}." if near else "Check its title and authors."
            yield entry, f"{key} is not in the index: {quoted(entry.paper)}", remedy


@check(Severity.WARNING, "a cited entry whose title is not that of its paper", needs_index=True)
def title_differs(material: Material) -> Problems:
    """Ignores case, accents, punctuation, spaces, and a subtitle that one of the two lacks."""
    for key, entry, paper, editions in _compared(material):
        if not any(same_title(entry.paper.title, one.title) for one in editions):
            yield entry, f"the title of {key} differs from that in the index", f"There it is {quoted(paper)}."


@check(Severity.WARNING, "a cited entry whose year is not that of its paper", needs_index=True)
def year_differs(material: Material) -> Problems:
    """A year more or less is none: editions of a work often are a year apart."""
    for key, entry, paper, editions in _compared(material):
        years, year = sorted({one.year for one in editions if one.year is not None}), entry.paper.year
        if years and year is not None and min(abs(year - other) for other in years) > _YEARS_BETWEEN_EDITIONS:
            index_years = " and ".join(map(str, years))
            yield entry, f"{key} is of {year}, in the index of {index_years}", f"Compare with {named(paper)}."


@check(Severity.WARNING, "a cited entry whose authors are not those of its paper", needs_index=True)
def authors_differ(material: Material) -> Problems:
    """Compares the first authors, and looks for authors that the record lacks, or the entry."""
    for _, entry, _, editions in _compared(material):
        records = [one for one in editions if one.authors] if entry.paper.authors else []
        faults = [_fault(entry.paper, one) for one in records]
        if faults and all(faults):
            yield entry, faults[0], f"The index has {', '.join(records[0].authors)}."


@check(Severity.WARNING, "a cited preprint whose published version is in the index", needs_index=True)
def preprint_published(material: Material) -> Problems:
    """Goes by the venue of the entry, its DOI and `eprint` (`citerec.corpus.matching`)."""
    for key, entry, _, editions in _compared(material):
        own = entry.paper
        if not (is_preprint(own) or (own.venue is None and "arxiv" in (own.bibtex or "").casefold())):
            continue
        published = next((one for one in editions if one.venue and not is_preprint(one)), None)
        if published:
            yield entry, f"{key} is a preprint, published in {edition_name(published)}", "Cite the published version."


@check(Severity.WARNING, "a cited paper that was retracted", needs_index=True)
def retracted(material: Material) -> Problems:
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


_NEAR = 0.65
"""Similarity of titles from which a paper is named as the nearest one."""
_LEAST_WITH_AUTHOR = 0.5
"""Similarity of titles from which a record with the same identifier and a shared author is that of the same work."""
_FEWEST_WORDS = 4
"""Words of a title that names one work, whatever else a record says."""
_NOTICE = re.compile(r"(?:\W*(?:retraction|withdrawal)(?:\s+(?:notice|note))?\s*(?::|to\b|of\b|for\b))+", re.IGNORECASE)


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


_SCHEMES = {"doi": "DOI", "arxiv": "arXiv id", "acl": "Anthology id"}


@check(Severity.ERROR, "a cited entry with the DOI, arXiv id or Anthology id of another work")
def other_work(material: Material) -> Problems:
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
def work_twice(material: Material) -> Problems:
    """Entries with one identifier and nearly one title, or with one title and a shared author (`corpus.matching`).

    Two publications of different years are two works: a paper and its journal version, a tutorial held again.
    """
    pairs = {pair.entry: pair for pair in _sharing(material) if pair.is_one_work}
    entries = material.cited_entries
    for group in folded([entry.paper for entry in entries], len(entries)):
        first, *others = [entries[place] for place in sorted(group)]
        for entry in others:
            if not _published_twice(entry.paper, first.paper):
                pairs.setdefault(entry, _Pair(entry, first))
    for entry, pair in pairs.items():
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
    differences = []
    if not same_title(entry.title, other.title):
        differences.append(f"title {quoted(entry)}, there {quoted(other)}")
    if entry.year is not None and other.year is not None and entry.year != other.year:
        differences.append(f"year {entry.year}, there {other.year}")
    if entry.authors and other.authors and not same_author(entry.authors[0], other.authors[0]):
        differences.append(f"first author {entry.authors[0]}, there {other.authors[0]}")
    return "; ".join(differences)


# How `Paragraph` shows citations and places.
_CITATION = re.compile(rf"\\cite\{{[^{{}}]*\}}|\[@[^\[\]]*\]|{re.escape(MARKER)}")
_ASIDE = re.compile(r"\W*(?:acknowl\w*|references|bibliography|funding|ethic\w*|author contributions)", re.IGNORECASE)
_WRITTEN = (Style.AUTHOR_YEAR_PARENTHESES, Style.AUTHOR_YEAR_TEXT, Style.NUMBERED_BRACKETS)
_REMEDY = "Cite what it rests on, if that is not your own work."
_BEGINNINGS = (12, 6, 3)  # words by which a sentence is found again in its file


@check(Severity.NOTE, "a sentence that looks like it needs a citation")
def citation_needed(material: Material) -> Problems:
    """Goes by a small model (`citerec.discourse.worthiness`); not in the abstract, nor beside a citation or a place."""
    model = shipped()
    for paragraph in material.draft.paragraphs:
        headline = paragraph.section or ""
        if is_abstract(headline) or _ASIDE.match(headline):
            continue
        sentences = _sentences(paragraph.text)
        places = [at for at, one in enumerate(sentences) if not one.cites and is_sentence(one.text)]
        if not places:
            continue
        likely = model.probabilities([Placed(sentences, at, headline) for at in places])
        for at, probability in zip(places, likely, strict=True):
            if probability >= model.threshold:
                message = f"this sentence may need a citation: {_shortened(sentences[at].text)}"
                yield _place(material, paragraph, sentences[at].text), message, _REMEDY


def _sentences(text: str) -> list[Sentence]:
    """The sentences of a paragraph without its citations, those that are written by hand included: "(Lee, 2004)"."""
    commands = [CitationMarker(*match.span(), Style.NUMBERED_BRACKETS, 1) for match in _CITATION.finditer(text)]
    taken = Spans((one.start, one.end) for one in commands)
    written = [one for one in find_markers(text, believed=_WRITTEN) if not taken(one.start, one.end)]
    markers = sorted([*commands, *written], key=lambda one: one.start)
    return [
        Sentence(
            " ".join(_CITATION.sub(" ", text[start:end]).split()), any(start <= one.start < end for one in markers)
        )
        for start, end in sentences_of(text, markers, splitter())
    ]


def _place(material: Material, paragraph: Paragraph, sentence: str) -> Place:
    """Where a sentence stands in its file; what commands change in it is not compared."""
    source = material.source(paragraph.path)
    begins, ends = source.line_span(paragraph.line)
    words = sentence.split()
    for many in (len(words), *_BEGINNINGS):
        pattern = r"\s+".join(map(re.escape, words[:many]))
        if match := re.compile(pattern).search(source.text, begins):
            return source.place(*match.span())
    return source.place(begins, ends)


def _shortened(sentence: str, most: int = 80) -> str:
    return sentence if len(sentence) <= most else f"{sentence[:most].rsplit(' ', 1)[0]} …"
