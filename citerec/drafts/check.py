"""Checking a draft and its bibliography: what a check is, what it looks at, and what it finds.

Each check is a function: its name is the code of what it finds.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from citerec.corpus.bibtex import HTML, values_of, without_html
from citerec.corpus.matching import edition_name, folded, is_preprint, keys_of, same_author
from citerec.drafts.base import Cited, Draft, Place, Source
from citerec.drafts.bibliography import Entries, Entry, Mending, Unread
from citerec.drafts.files import Files
from citerec.drafts.filling import draft_sentences, sentence_place
from citerec.drafts.matching import (
    Difference,
    Match,
    Matcher,
    differences,
    is_retracted,
    is_same_work,
    match_entries,
    named,
    published_edition,
    quoted,
    same_title,
)
from citerec.drafts.read import draft_kind
from citerec.drafts.support import DOES_NOT_FIT, ON_TOPIC, SUPPORTS, Judgement, library_of, supporting_sentence
from citerec.files.registry import Registry
from citerec.records import Context, Paper
from citerec.retrieve.base import OpenIndex
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
        mending: The right value of a field of the entry; None if it is not known.
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
    mending: Mending | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.code} {self.message}"

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON."""
        mending = self.mending and self.mending._asdict()
        return asdict(self) | {"severity": str(self.severity), "path": str(self.path), "mending": mending}

    @classmethod
    def at(
        cls, source: Source, span: tuple[int, int], code: str, severity: Severity, *said: "str | Mending | None"
    ) -> "Finding":
        """A finding at some characters of a file; `said` is what is wrong, what to do, and the right value."""
        places = *source.position(span[0]), *source.position(span[1])
        return cls(code, severity, source.path, *places, *said)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Options:
    """What to check.

    Attributes:
        select: Only these checks; None for all that are on by default.
        ignore: None of these checks.
        year: The year of the draft.
        online: Whether entries are compared with what web services know: `match` has asked them.
        support: Whether citations are compared with what their papers say.
    """

    select: frozenset[str] | None = None
    ignore: frozenset[str] = frozenset()
    year: int = field(default_factory=lambda: date.today().year)
    online: bool = False
    support: bool = False


@dataclass(frozen=True)
class Material:
    """What the checks look at.

    Attributes:
        draft: The draft.
        bibliography: The entries that it can cite; none if there is no bibliography.
        index: The index.
        options: What to check.
        files: The texts of the files.
        match: Finds what the index, or web services, have of entries; by default `match_entries`, with an index.
    """

    draft: Draft
    bibliography: Entries
    index: OpenIndex | None
    options: Options
    files: Files
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
        """For each key that is cited and has an entry with a title, what `match` has; empty without it and an index."""
        match = self.match or (partial(match_entries, index=self.index) if self.index is not None else None)
        return match([entry.paper for entry in self.cited.values()]) if match else {}

    @cached_property
    def differences(self) -> dict[str, list[Difference]]:
        """In what each of these entries differs from its paper."""
        return {key: list(differences(self.cited[key].paper, match)) for key, match in self.matches.items()}

    @cached_property
    def judgements(self) -> list[Judgement]:
        """What is said of each citation of an entry, in the order of the text."""
        return list(judgements(self))

    def source(self, path: Path) -> Source:
        """The text of a file, with its lines; empty if it cannot be read."""
        if path not in self._sources:
            self._sources[path] = Source(path, self.files.text_if_any(path))
        return self._sources[path]


_Needs = Literal["", "index", "online", "records", "support"]
_Where = Place | Cited | Entry | Unread
Problems = Iterator[tuple[_Where, str, str] | tuple[_Where, str, str, Mending | None]]
"""What a check finds: where (a place or a citation, or the first line of an entry), what is wrong, what to do, and the
right value of a field of the entry if it is known."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check: it is one function, and all that it finds has its name as code.

    Attributes:
        name: Its name, which is the code of what it finds.
        severity: How much that matters.
        summary: What it looks for, in one line.
        tell: Finds it.
        needs: What it needs: an `index`, web services (`online`), `records` of either, or `support`.
        by_default: Whether it runs if no check is selected.
    """

    name: str
    severity: Severity
    summary: str
    tell: Callable[[Material], Problems]
    needs: _Needs = ""
    by_default: bool = True

    def runs(self, material: Material) -> bool:
        """Whether it has what it needs."""
        options, has_index = material.options, material.index is not None
        has = {"": True, "online": options.online, "support": options.support}
        has |= {"index": has_index and not options.online, "records": has_index or material.match is not None}
        return has[self.needs]

    def run(self, material: Material) -> Iterator[Finding]:
        """What it finds, each at its place in a file."""
        for where, *said in self.tell(material):
            source = material.source(where.path)
            span = (where.start, where.end) if isinstance(where, Place | Cited) else source.line_span(where.line)
            yield Finding.at(source, span, self.name, self.severity, *said)


def check(
    severity: Severity, summary: str, *, needs: _Needs = "", by_default: bool = True
) -> Callable[[Callable[[Material], Problems]], Check]:
    """A decorator that makes a check of a function: `key_unknown` becomes the check `key-unknown`."""
    return lambda tell: Check(tell.__name__.replace("_", "-"), severity, summary, tell, needs, by_default)


WRITING = Options(ignore=frozenset({"not-in-index"}))
"""While someone writes, what the index lacks is no fault."""


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
    return findings_of(Material(draft, bibliography or Entries(), index, options or Options(), files or Files(), match))


def findings_of(material: Material) -> list[Finding]:
    """What is found, by file and line. Errors as for `check_draft`."""
    checks = [one for one in selected(material.options) if one.runs(material)]
    findings = [finding for one in checks for finding in one.run(material)]
    return sorted(findings, key=lambda one: (str(one.path), one.line, one.column, one.code, one.message))


def findings_by_entry(entries: Sequence[Entry], findings: Sequence[Finding]) -> dict[Entry, list[Finding]]:
    """The findings of each of some entries."""
    at_line = defaultdict(list)
    for finding in findings:
        at_line[finding.path, finding.line].append(finding)
    return {entry: at_line[entry.path, entry.line] for entry in entries}


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


def sarif(findings: Iterable[Finding]) -> dict[str, Any]:
    """The SARIF log of some findings; paths are relative to the current folder."""
    rules = [_rule(check) for _, check in CHECKS.items()]
    numbers = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [{"ruleIndex": numbers[finding.code], **_result(finding)} for finding in findings]
    driver = {"name": "citerec", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.name,
        "shortDescription": {"text": f"{check.summary[:1].upper()}{check.summary[1:]}."},
        "defaultConfiguration": {"level": str(check.severity), "enabled": check.by_default},
    }


def _result(finding: Finding) -> dict[str, Any]:
    start = {"startLine": finding.line, "startColumn": finding.column}
    end = {"endLine": finding.end_line, "endColumn": finding.end_column}
    uri = quote(Path(os.path.relpath(finding.path.resolve())).as_posix())
    return {
        "ruleId": finding.code,
        "level": str(finding.severity),
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": start | end}}],
    }


_KEY_OF_ENTRY = re.compile(r"[{(]\s*([^\s,{}()]+)\s*,")
_NEAR_KEY = 60  # of 100
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
    from rapidfuzz import fuzz, process  # most drafts have no such key, and it takes a moment to load

    if not material.bibliography.is_whole:
        return
    unread = " ".join(material.source(path).text for path in {one.path for one in material.bibliography.unread})
    keys, broken = list(material.entries), set(_KEY_OF_ENTRY.findall(unread))
    for cited in material.draft.cited:
        is_markdown = draft_kind(cited.path) == "Markdown"
        if cited.key in material.entries or (is_markdown and _CROSS_REFERENCE.match(cited.key)):
            continue
        near = [key for key, *_ in process.extract(cited.key, keys, scorer=fuzz.ratio, limit=3, score_cutoff=_NEAR_KEY)]
        remedy = f"Did you mean {' or '.join(near)}?" if near else "Add its entry, or correct the key."
        if cited.key in broken:
            remedy = "Its entry cannot be read: correct that."
        start, end = cited.in_text(material.source(cited.path).text)  # the key alone in its citation
        yield replace(cited, start=start, end=end), f"{cited.key} has no entry in the bibliography", remedy


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
        if entry.paper.year is not None and entry.paper.year > material.options.year:
            message = f"{key} is of {entry.paper.year}, the draft of {material.options.year}"
            yield entry, message, "Correct its year, or give that of the draft: --year YEAR"


@check(Severity.ERROR, "an entry with a DOI that no DOI can be")
def doi_impossible(material: Material) -> Problems:
    """Goes by its form, and by its registrant: from 10.1000 to 10.80000, more than were given out so far."""
    for key, entry in material.cited.items():
        doi = entry.paper.external_ids.get("DOI", "")
        form = _DOI.fullmatch(doi)
        if doi and (form is None or not _FIRST_REGISTRANT <= int(form[1]) <= _LAST_REGISTRANT):
            yield entry, f"{doi} of {key} cannot be a DOI", "Copy it again from the page of the paper, or remove it."


@check(Severity.WARNING, "an entry with authors that are no names")
def authors_placeholder(material: Material) -> Problems:
    """Finds "Anonymous", "First Author", "John Doe", "et al." and the like."""
    for key, entry in material.cited.items():
        if name := next(filter(_PLACEHOLDER.fullmatch, entry.paper.authors), ""):
            yield entry, f"{name} is an author of {key}", "Give the names of the authors; after some: and others."


@check(Severity.WARNING, "an entry with HTML in a field")
def html_entity(material: Material) -> Problems:
    """Finds entities such as `&amp;`, and tags such as `<i>`: BibTeX prints them as they are."""
    for key, entry in material.cited.items():
        for name, (*_, value) in values_of(entry.paper.bibtex or "").items():
            if name not in _ADDRESSES and (found := HTML.search(value)):
                mended = without_html(value)
                yield entry, f"{name} of {key} has HTML: {found[0]}", f"Write: {mended}", Mending(name, mended)


@check(Severity.NOTE, "a cited entry that the index lacks", needs="index")
def not_in_index(material: Material) -> Problems:
    """Names the nearest paper, if one is near; an entry with the DOI of another work is told as that."""
    return _lacking(material, "is not in the index", "paper", "Check its title and authors.")


@check(Severity.WARNING, "a cited entry that no source knows", needs="online")
def not_found(material: Material) -> Problems:
    """Names the nearest record, if one is near. A source may lack a paper that exists."""
    return _lacking(material, "was not found", "record", "Check that it exists.")


def _lacking(material: Material, said: str, of: str, remedy: str) -> Problems:
    """The entries of which `match` has nothing; if services are asked, of those that these were asked for."""
    for key, match in material.matches.items():
        if match.paper is None and not match.others and (match.was_asked or not material.options.online):
            entry, near = material.cited[key], match.nearest
            nearest = f"The nearest {of} is {named(near)}." if near else remedy
            yield entry, f"{key} {said}: {quoted(entry.paper)}", nearest


def _told(code: str, severity: Severity, summary: str, needs: Literal["online", "records"] = "records") -> Check:
    """A check that tells one kind of difference between entries and their papers."""

    def tell(material: Material) -> Problems:
        for key, found in material.differences.items():
            yield from ((material.cited[key], *one[1:]) for one in found if one.code == code)

    return Check(code, severity, summary, tell, needs)


title_differs = _told("title-differs", Severity.WARNING, "a cited entry whose title is not that of its paper")
year_differs = _told("year-differs", Severity.WARNING, "a cited entry whose year is not that of its paper")
authors_differ = _told("authors-differ", Severity.WARNING, "a cited entry whose authors are not those of its paper")
authors_missing = _told("authors-missing", Severity.WARNING, "a cited entry that lacks authors of its paper")
two_works = _told("two-works", Severity.WARNING, "a cited entry with the title of one work and authors of another")
venue_differs = _told("venue-differs", Severity.WARNING, "a cited entry with another venue than its paper", "online")
venue_unknown = _told("venue-unknown", Severity.WARNING, "a cited entry whose venue no source knows", "online")
version_differs = _told("version-differs", Severity.NOTE, "venue and year of two versions of a work", "online")
doi_unknown = _told("doi-unknown", Severity.WARNING, "a cited entry whose DOI no source knows", "online")


@check(Severity.WARNING, "a cited preprint that was published", needs="records")
def preprint_published(material: Material) -> Problems:
    """Goes by the venue of the entry, its DOI and `eprint` (`citerec.corpus.matching`)."""
    for key, match in material.matches.items():
        if published := published_edition(material.cited[key].paper, match):
            message = f"{key} is a preprint, published in {edition_name(published)}"
            doi = published.external_ids.get("DOI", "")
            yield material.cited[key], message, f"Cite the published version{f': {doi}' if doi else ''}."


@check(Severity.WARNING, "a cited paper that was retracted", needs="records")
def retracted(material: Material) -> Problems:
    """Goes by titles, such as "RETRACTED ARTICLE: …" and "Retraction notice to …", and by notices of services."""
    for key, match in material.matches.items():
        entry = material.cited[key]
        noted = [one for one in match.notices if one.kind == "retraction"]
        if noted or is_retracted(entry.paper):
            said = f": {noted[0].address or noted[0].source}" if noted else ""
            yield entry, f"{key} was retracted{said}", "Do not cite it, or say that it was retracted."


@check(Severity.WARNING, "a cited paper about which its journal has published a concern", needs="records")
def concern(material: Material) -> Problems:
    """Goes by the notices that services name."""
    for entry, address in _noted(material, "concern"):
        message = f"there is an expression of concern about {entry.paper.paper_id}: {address}"
        yield entry, message, "Read it before you cite the paper."


@check(Severity.NOTE, "a cited paper that was corrected", needs="records")
def corrected(material: Material) -> Problems:
    """Goes by the notices that services name."""
    for entry, address in _noted(material, "correction"):
        yield entry, f"{entry.paper.paper_id} was corrected: {address}", "Read the correction."


def _noted(material: Material, kind: str) -> Iterator[tuple[Entry, str]]:
    """The entries that have a notice of a kind, and where the first one stands."""
    for key, match in material.matches.items():
        if notice := next((one for one in match.notices if one.kind == kind), None):
            yield material.cited[key], notice.address or notice.source


_SCHEMES = {"doi": "DOI", "arxiv": "arXiv id", "acl": "Anthology id"}


_DOI = re.compile(r"10\.(\d{4,9})(?:\.\d+)*/\S+")
_FIRST_REGISTRANT, _LAST_REGISTRANT = 1000, 80_000
_PLACEHOLDER = re.compile(
    r"anonymous(?: authors?)?|(?:first|second|third|some|unknown|the) authors?|authors?(?: name)?(?: \w)?|unknown|"
    r"et\.? al\.?|(?:john|jane) (?:doe|smith)|n\.?a\.?|tba|tbd|todo|\W*|x+|lorem ipsum",
    re.IGNORECASE,
)
_ADDRESSES = ("url", "doi", "file", "eprint", "abstract", "note")


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


@check(Severity.NOTE, "a citation whose paper may not fit the sentence", needs="support")
def may_not_fit(material: Material) -> Problems:
    """Compares sentence and paper, among all that the draft cites (`citerec.drafts.support`)."""
    for one in material.judgements:
        if one.verdict == DOES_NOT_FIT:
            paper = material.cited[one.key].paper
            message = f"{one.key} may not fit this sentence: {quoted(paper)}"
            remedy = f"Its nearest sentence: “{_shortened(one.says, 200)}”" if one.says else "Check that it is meant."
            yield one.place, message, remedy


_BEFORE_SIGN = re.compile(r"\s+(?=[.,;:!?)])")
_AROUND = 600  # characters around a citing sentence that are read with it


def judgements(material: Material, only: str = "") -> Iterator[Judgement]:
    """What is said of each citation in the running text of an entry with a title; with `only`, of one key."""
    papers = {key: entry.paper for key, entry in material.cited.items() if entry.paper.title}
    if material.index:  # which may have abstracts that the bibliography lacks
        ids = {key: match.paper.paper_id for key, match in material.matches.items() if match.paper}
        texts = material.index.store.papers(list(ids.values()))
        papers |= {
            key: replace(papers[key], abstract=texts[paper_id].abstract)
            for key, paper_id in ids.items()
            if paper_id in texts and not papers[key].abstract
        }
    library = library_of(tuple(papers.values()))
    for paragraph in material.draft.paragraphs:
        sentences = draft_sentences(paragraph.text)
        for at, sentence in enumerate(sentences):
            keys = dict.fromkeys(key for key in sentence.keys if key in papers and only in ("", key))
            if not keys:
                continue
            around = sentences[max(0, at - _AROUND) : at], sentences[at + 1 : at + _AROUND]
            before, after = (" ".join(one.text for one in part) for part in around)
            claim = _BEFORE_SIGN.sub("", sentence.text)  # where the citation was
            context = Context(text=sentence.marked, before=before[-_AROUND:], after=after[:_AROUND])
            fits = library.fit(context)
            for key in keys:
                says, supports = supporting_sentence(claim, papers[key])
                fit = fits.get(key)
                is_fitting = fit is None or library.fits(fit)
                verdict = (SUPPORTS if supports else ON_TOPIC) if is_fitting else DOES_NOT_FIT
                place = sentence_place(material.source(paragraph.path), paragraph, sentence.text)
                yield Judgement(key, claim, verdict if says or fit is not None else "", says, place)


def _shortened(sentence: str, most: int = 80) -> str:
    return sentence if len(sentence) <= most else f"{sentence[:most].rsplit(' ', 1)[0]} …"


_CODES = sorted(one.name for one in list(globals().values()) if isinstance(one, Check))
CHECKS: Registry[Check] = Registry("check", {code: f"citerec.drafts.check:{code.replace('-', '_')}" for code in _CODES})
"""All checks, by code: those above, and those of other packages."""
