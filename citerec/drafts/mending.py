"""Mending entries of a bibliography: single fields, byte for byte the same otherwise."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from citerec.corpus.bibtex import values_of
from citerec.drafts.bibliography import Entry
from citerec.drafts.files import Files
from citerec.drafts.matching import Mending


def mended(entry: str, mendings: Sequence[Mending]) -> str:
    """The text of an entry with other values of some fields; a field that it lacks stays lacking."""
    values = values_of(entry)
    new = {mending.field.lower(): mending.value for mending in reversed(mendings)}  # the first of a field counts
    for name, value in sorted(values.items(), key=lambda item: -item[1].start):
        if name in new:
            whole = entry[value.start : value.end]
            begin, end = ("{", "}") if value.text == whole or '"' in new[name] else (whole[0], whole[-1])
            entry = f"{entry[: value.start]}{begin}{new[name]}{end}{entry[value.end :]}"
    return entry


def mend_entries(files: Files, mendings: Mapping[Entry, Sequence[Mending]]) -> int:
    """Mends entries in their files, which are changed and not yet written.

    Returns:
        How many entries were changed: those that were not changed by others meanwhile, and have the fields.
    """
    changed = 0
    for entry, of_entry in sorted(mendings.items(), key=lambda item: -item[0].line):  # from the last line up
        old = entry.paper.bibtex or ""
        at = files.text(entry.path).find(old, _line_start(files, entry.path, entry.line))
        if old and at >= 0 and (new := mended(old, of_entry)) != old:
            files.change(entry.path, at, at + len(old), new)
            changed += 1
    return changed


def _line_start(files: Files, path: Path, line: int) -> int:
    lines = files.text(path).split("\n", line - 1)
    return sum(len(one) + 1 for one in lines[: line - 1])
