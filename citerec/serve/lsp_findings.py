"""What the language server says of a draft without being asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from citerec.drafts import Draft
from citerec.drafts.check import Options, Severity, check_draft, read_entries
from citerec.errors import InputError
from citerec.serve.lsp_drafts import View, Workbench

_OTHER_KEYS = re.compile(r"(?:fig|tbl|tab|sec|eq|lst|thm|def|lem|exm)[-:]")  # cross-references of pandoc and Quarto
# These are told above, with what an editor needs to mend them; what the index lacks is no fault.
_TOLD = frozenset({"place-open", "key-unknown", "entry-unreadable", "bibliography-unreadable", "not-in-index"})
_CHECKED = Options(ignore=_TOLD)
_LINE = re.compile(r", line (\d+)")
_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+): (?P<reason>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to be said of a file: `start` and `end` in characters, or a whole line.

    Attributes:
        path: The file.
        code: What kind of finding: `place`, `no-entry`, or `unreadable-` and `entry`, `bibliography` or `draft`; else
            that of a check.
        message: In words.
        line: Its line, from 1.
        start: Where it begins, if it is a part of lines.
        end: Where it ends.
        severity: How much it matters; a `place` is only a hint.
    """

    path: Path
    code: str
    message: str
    line: int
    start: int | None = None
    end: int | None = None
    severity: Severity = Severity.WARNING


def findings(bench: Workbench, view: View) -> list[Finding]:
    """Open places, keys without an entry, entries that cannot be read; or why the draft cannot be understood.

    And what `citerec check` finds beyond that.
    """
    try:
        draft = bench.draft(view)
    except InputError as error:
        line = int(at[1]) if (at := _LINE.search(error.message)) else 1
        return [Finding(view.path, "unreadable-draft", str(error), line, severity=Severity.NOTE)]
    found = [
        Finding(view.path, "place", "A citation is missing here.", place.line, place.start, place.end)
        for place in draft.places
        if place.path.resolve() == view.path
    ]
    try:
        bibliography = bench.bibliography(view)
    except InputError as error:
        return [*found, Finding(view.path, "unreadable-bibliography", str(error), 1)]
    if bibliography is None:
        return found
    for cited in draft.cited:
        key, known = cited.key, bibliography.entries
        if cited.path.resolve() == view.path and key not in known and not _OTHER_KEYS.match(key):
            start = _key_in(view.text, key, cited.start, cited.end)
            message = f"{bibliography.path.name} has no entry {key}."
            found.append(Finding(view.path, "no-entry", message, cited.line, start, start + len(key)))
    for unreadable in bibliography.unreadable:
        if place := _PLACE.match(unreadable):
            found.append(Finding(Path(place["path"]), "unreadable-entry", place["reason"], int(place["line"])))
    return [*found, *_of_check(bench, view, draft)]


def _of_check(bench: Workbench, view: View, draft: Draft) -> Iterator[Finding]:
    """What `citerec check` finds beyond that; what needs the index, once this is open."""
    files = view.files()
    entries = read_entries(bench.paths(view), files)
    cited = {one.key for one in draft.cited}
    papers = {one.paper.paper_id: one.paper for one in entries.entries if one.paper.paper_id in cited}
    checked = check_draft(
        draft, entries, bench.recommender.index if bench.recommender else None, _CHECKED, files, bench.matches(papers)
    )
    for one in checked:
        message = f"{one.message}. {one.remedy}"
        yield Finding(one.path.resolve(), one.code, message, one.line, severity=one.severity)


def _key_in(text: str, key: str, start: int, end: int) -> int:
    """Where a key stands in a citation."""
    found = re.compile(rf"(?<![^\s,;{{@\[-]){re.escape(key)}(?![\w:-])").search(text, start, end)
    return found.start() if found else start
