"""Checking a draft and its bibliography: what a check is, what it looks at, and what it finds.

The checks themselves are in `checks/`, one function each.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from citerec.drafts.base import Cited, Draft, Place, Source
from citerec.drafts.bibliography import NO_ENTRIES, Entries, Entry, Unread
from citerec.drafts.checks import Match, match_entries
from citerec.drafts.files import Files
from citerec.errors import CiterecError
from citerec.files.registry import Registry
from citerec.files.text import names_in
from citerec.records import Paper
from citerec.retrieve.opened import OpenIndex
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
    def at(cls, source: Source, span: tuple[int, int], code: str, severity: Severity, *told: str) -> "Finding":
        """A finding at some characters of a file; `told` is what is wrong, and what to do."""
        return cls(code, severity, source.path, *source.position(span[0]), *source.position(span[1]), *told)


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


Told = Iterator[tuple[Place | Cited | Entry | Unread, str, str]]
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
    tell: Callable[[Material], Told]
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
) -> Callable[[Callable[[Material], Told]], Check]:
    """A decorator that makes a check of a function: `key_unknown` becomes the check `key-unknown`."""
    return lambda tell: Check(tell.__name__.replace("_", "-"), severity, summary, tell, needs_index, by_default)


_CHECKS = names_in(
    "records:authors_differ, keys:bibliography_unreadable, sentences:citation_needed, keys:entry_uncited,"
    "keys:entry_unreadable, keys:key_duplicate, keys:key_unknown, keys:newer_than_draft, records:not_in_index,"
    "works:other_work, keys:place_open, records:preprint_published, records:retracted, records:title_differs,"
    "works:work_twice, records:year_differs"
)
_NAMES = [one.partition(":")[2].replace("_", "-") for one in _CHECKS]
CHECKS: Registry[Check] = Registry(
    "check", {name: f"citerec.drafts.checks.{one}" for name, one in zip(_NAMES, _CHECKS, strict=True)}
)
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
    found = [finding for one in checks for finding in one.run(material)]
    return sorted(found, key=lambda one: (str(one.path), one.line, one.column, one.code, one.message))


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
