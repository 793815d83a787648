"""Checks that need only the draft and its bibliography."""

import difflib
import re
from collections.abc import Iterator

from citerec.drafts.base import Cited
from citerec.drafts.bibliography import Entry
from citerec.drafts.checks.base import Check, Finding, Material, Severity, check
from citerec.drafts.read import is_markdown

_NEAREST_KEYS = 3
_CROSS_REFERENCE = re.compile(r"(?:fig|tbl|tab|sec|eq|lst|thm|def|lem|exm)[-:]")  # of pandoc and Quarto
_CROSSREF = re.compile(r"\bcrossref\s*=\s*[{\"]\s*([^\s,{}\"]+)", re.IGNORECASE)


@check("bibliography-unreadable", Severity.ERROR, "a bibliography that is missing or cannot be read")
def bibliography_unreadable(material: Material, check: Check) -> Iterator[Finding]:
    """Says of each file why it cannot be read."""
    for path, error in material.bibliography.lost if material.bibliography else ():
        yield Finding(check.name, check.severity, path, 1, 1, 1, 1, error.message, error.remedy)


@check("entry-unreadable", Severity.ERROR, "an entry that cannot be read")
def entry_unreadable(material: Material, check: Check) -> Iterator[Finding]:
    """Says of each entry why it cannot be read."""
    for path, line, reason in material.bibliography.unread if material.bibliography else ():
        yield check.in_line(material, path, line, f"an entry cannot be read: {reason}", "Correct it, or remove it.")


@check("key-unknown", Severity.ERROR, "a citation of a key that has no entry")
def key_unknown(material: Material, check: Check) -> Iterator[Finding]:
    """Names the nearest keys; silent if a bibliography cannot be read, which may have the entry.

    A cross-reference of Markdown, such as `@fig-one`, is no citation.
    """
    if material.bibliography is None or material.bibliography.lost:
        return
    unread = " ".join(material.source(path).text for path in {one.path for one in material.bibliography.unread})
    for cited in material.draft.cited:
        if cited.key in material.entries or (is_markdown(cited.path) and _CROSS_REFERENCE.match(cited.key)):
            continue
        near = difflib.get_close_matches(cited.key, material.entries, n=_NEAREST_KEYS)
        remedy = f"Did you mean {' or '.join(near)}?" if near else "Add its entry, or correct the key."
        if re.search(rf"[{{(]\s*{re.escape(cited.key)}\s*,", unread):
            remedy = "Its entry cannot be read: correct that."
        message = f"{cited.key} has no entry in the bibliography"
        yield check.at(material, cited.path, *_of_key(material, cited), message, remedy)


@check("key-duplicate", Severity.ERROR, "a key that several entries have")
def key_duplicate(material: Material, check: Check) -> Iterator[Finding]:
    """Points at each entry whose key an earlier one has."""
    first: dict[str, Entry] = {}
    for entry in material.bibliography.entries if material.bibliography else ():
        earlier = first.setdefault(entry.paper.paper_id, entry)
        if earlier is not entry:
            message = f"the key {entry.paper.paper_id} is that of {earlier.path}:{earlier.line} too"
            yield check.in_line(material, entry.path, entry.line, message, "Remove one of them, or change its key.")


@check("entry-uncited", Severity.NOTE, "an entry that the draft never cites", by_default=False)
def entry_uncited(material: Material, check: Check) -> Iterator[Finding]:
    """Leaves out entries that cited ones refer to by `crossref`."""
    parents = {key for entry in material.cited.values() for key in _CROSSREF.findall(entry.paper.bibtex or "")}
    for key, entry in material.entries.items():
        if key not in material.cited and key not in parents:
            yield check.in_line(material, entry.path, entry.line, f"{key} is never cited", "Cite it, or remove it.")


@check("place-open", Severity.NOTE, "a place that still wants a citation")
def place_open(material: Material, check: Check) -> Iterator[Finding]:
    """Points at each place of the draft."""
    for place in material.draft.places:
        remedy = f"For papers to cite: citerec fill {place.path}"
        yield check.at(material, place.path, place.start, place.end, "a citation is still missing here", remedy)


@check("newer-than-draft", Severity.ERROR, "a cited entry that is newer than the draft")
def newer_than_draft(material: Material, check: Check) -> Iterator[Finding]:
    """Compares the year of each cited entry with that of the draft."""
    for key, entry in material.cited.items():
        if entry.paper.year is not None and entry.paper.year > (year := material.options.year):
            message = f"{key} is of {entry.paper.year}, the draft of {year}"
            yield check.in_line(
                material, entry.path, entry.line, message, "Correct its year, or give that of the draft: --year YEAR"
            )


def _of_key(material: Material, cited: Cited) -> tuple[int, int]:
    """Where a key stands in its citation."""
    pattern = re.compile(rf"(?<![\w:.-]){re.escape(cited.key)}(?![\w:-])")
    found = pattern.search(material.source(cited.path).text, cited.start, cited.end)
    return found.span() if found else (cited.start, cited.end)
