"""Checks that need only the draft and its bibliography."""

import difflib
import re
from dataclasses import replace

from citerec.drafts.base import Cited
from citerec.drafts.bibliography import Entry, Unread
from citerec.drafts.check import Material, Severity, Told, check
from citerec.drafts.read import is_markdown

_CROSS_REFERENCE = re.compile(r"(?:fig|tbl|tab|sec|eq|lst|thm|def|lem|exm)[-:]")  # of pandoc and Quarto
_CROSSREF = re.compile(r"\bcrossref\s*=\s*[{\"]\s*([^\s,{}\"]+)", re.IGNORECASE)


@check(Severity.ERROR, "a bibliography that is missing or cannot be read")
def bibliography_unreadable(material: Material) -> Told:
    """Says of each file why it cannot be read."""
    for path, error in material.bibliography.lost:
        yield Unread(path, 1, ""), error.message, error.remedy


@check(Severity.ERROR, "an entry that cannot be read")
def entry_unreadable(material: Material) -> Told:
    """Says of each entry why it cannot be read."""
    for unread in material.bibliography.unread:
        yield unread, f"an entry cannot be read: {unread.reason}", "Correct it, or remove it."


@check(Severity.ERROR, "a citation of a key that has no entry")
def key_unknown(material: Material) -> Told:
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
def key_duplicate(material: Material) -> Told:
    """Points at each entry whose key an earlier one has."""
    first: dict[str, Entry] = {}
    for entry in material.bibliography.entries:
        earlier = first.setdefault(entry.paper.paper_id, entry)
        if earlier is not entry:
            message = f"the key {entry.paper.paper_id} is that of {earlier.path}:{earlier.line} too"
            yield entry, message, "Remove one of them, or change its key."


@check(Severity.NOTE, "an entry that the draft never cites", by_default=False)
def entry_uncited(material: Material) -> Told:
    """Leaves out entries that cited ones refer to by `crossref`."""
    parents = {key for entry in material.cited.values() for key in _CROSSREF.findall(entry.paper.bibtex or "")}
    for key, entry in material.entries.items():
        if key not in material.cited and key not in parents:
            yield entry, f"{key} is never cited", "Cite it, or remove it."


@check(Severity.NOTE, "a place that still wants a citation")
def place_open(material: Material) -> Told:
    """Points at each place of the draft."""
    for place in material.draft.places:
        yield place, "a citation is still missing here", f"For papers to cite: citerec fill {place.path}"


@check(Severity.ERROR, "a cited entry that is newer than the draft")
def newer_than_draft(material: Material) -> Told:
    """Compares the year of each cited entry with that of the draft."""
    for key, entry in material.cited.items():
        if entry.paper.year is not None and entry.paper.year > material.year:
            message = f"{key} is of {entry.paper.year}, the draft of {material.year}"
            yield entry, message, "Correct its year, or give that of the draft: --year YEAR"


def _at_key(material: Material, cited: Cited) -> Cited:
    """The key alone in its citation."""
    pattern = re.compile(rf"(?<![\w:.-]){re.escape(cited.key)}(?![\w:-])")
    found = pattern.search(material.source(cited.path).text, cited.start, cited.end)
    return replace(cited, start=found.start(), end=found.end()) if found else cited
