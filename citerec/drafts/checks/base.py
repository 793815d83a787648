"""What a check is, what it looks at, and what it finds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from citerec.drafts.base import Draft, Source
from citerec.drafts.bibliography import Entries, Entry
from citerec.drafts.checks.matches import Match
from citerec.drafts.files import Files
from citerec.files.registry import Registry


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


@dataclass(frozen=True)
class Material:
    """What the checks look at.

    Attributes:
        draft: The draft.
        bibliography: The entries that it can cite; None if there is no bibliography.
        matches: For each key that is cited and has an entry, what the index has; None without an index.
        files: The texts of the files.
        options: What to check.
    """

    draft: Draft
    bibliography: Entries | None
    matches: Mapping[str, Match] | None
    files: Files
    options: Options
    _sources: dict[Path, Source] = field(default_factory=dict)

    @cached_property
    def cited(self) -> dict[str, Entry]:
        """The entries that the draft cites, by key, in the order of the bibliography."""
        return {entry.paper.paper_id: entry for entry in self.cited_entries}

    @cached_property
    def cited_entries(self) -> list[Entry]:
        """The same, with all entries of each key."""
        keys = {cited.key for cited in self.draft.cited}
        entries = self.bibliography.entries if self.bibliography else ()
        return [entry for entry in entries if entry.paper.paper_id in keys]

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The entries by key; the last of several, as the index keeps it."""
        return {entry.paper.paper_id: entry for entry in self.bibliography.entries} if self.bibliography else {}

    def source(self, path: Path) -> Source:
        """The text of a file, with its lines."""
        if path not in self._sources:
            self._sources[path] = Source(path, self.files.text(path))
        return self._sources[path]


@dataclass(frozen=True, slots=True)
class Check:
    """A check: it is one function, and all that it finds has its name as code.

    Attributes:
        name: Its name, which is the code of what it finds.
        severity: How much that matters.
        summary: What it looks for, in one line.
        run: Finds it.
        needs_index: Whether it needs an index.
        by_default: Whether it runs if no check is selected.
    """

    name: str
    severity: Severity
    summary: str
    run: Callable[[Material, "Check"], Iterator[Finding]]
    needs_index: bool = False
    by_default: bool = True

    def at(self, material: Material, path: Path, start: int, end: int, message: str, remedy: str) -> Finding:
        """A finding at some characters of a file."""
        source = material.source(path)
        places = (*source.position(start), *source.position(end))
        return Finding(self.name, self.severity, path, *places, message, remedy)

    def in_line(self, material: Material, path: Path, line: int, message: str, remedy: str) -> Finding:
        """A finding in a line of a file, such as the first one of an entry."""
        start, end = material.source(path).line_span(line)
        return self.at(material, path, start, end, message, remedy)


_CHECKS = "citerec.drafts.checks"
CHECKS: Registry[Check] = Registry(
    "check",
    {
        "authors-differ": f"{_CHECKS}.records:authors_differ",
        "bibliography-unreadable": f"{_CHECKS}.keys:bibliography_unreadable",
        "citation-needed": f"{_CHECKS}.sentences:citation_needed",
        "entry-uncited": f"{_CHECKS}.keys:entry_uncited",
        "entry-unreadable": f"{_CHECKS}.keys:entry_unreadable",
        "key-duplicate": f"{_CHECKS}.keys:key_duplicate",
        "key-unknown": f"{_CHECKS}.keys:key_unknown",
        "newer-than-draft": f"{_CHECKS}.keys:newer_than_draft",
        "not-in-index": f"{_CHECKS}.records:not_in_index",
        "other-work": f"{_CHECKS}.works:other_work",
        "place-open": f"{_CHECKS}.keys:place_open",
        "preprint-published": f"{_CHECKS}.records:preprint_published",
        "retracted": f"{_CHECKS}.records:retracted",
        "title-differs": f"{_CHECKS}.records:title_differs",
        "work-twice": f"{_CHECKS}.works:work_twice",
        "year-differs": f"{_CHECKS}.records:year_differs",
    },
)
"""All checks, by code."""


def check(
    name: str, severity: Severity, summary: str, *, needs_index: bool = False, by_default: bool = True
) -> Callable[[Callable[[Material, Check], Iterator[Finding]]], Check]:
    """A decorator that makes a check of a function."""

    def made(run: Callable[[Material, Check], Iterator[Finding]]) -> Check:
        return Check(name, severity, summary, run, needs_index, by_default)

    return made
