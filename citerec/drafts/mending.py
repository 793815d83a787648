"""Mending entries of a bibliography: single fields, byte for byte the same otherwise."""

from collections.abc import Mapping, Sequence

from citerec.corpus.bibtex import values_of
from citerec.drafts.base import Source
from citerec.drafts.bibliography import Entry
from citerec.drafts.files import Files
from citerec.drafts.matching import Mending
from citerec.files.text import replaced


def mended(entry: str, mendings: Sequence[Mending]) -> str:
    """The text of an entry with other values of some fields; a field that it lacks stays lacking."""
    spans, values = [], values_of(entry)
    new = {mending.field.lower(): mending.value for mending in reversed(mendings)}  # the first of a field counts
    for name, value in values.items():
        if name in new:
            whole = entry[value.start : value.end]
            begin, end = ("{", "}") if value.text == whole or '"' in new[name] else (whole[0], whole[-1])
            spans.append((value.start, value.end, f"{begin}{new[name]}{end}"))
    return replaced(entry, spans)


def mend_entries(files: Files, mendings: Mapping[Entry, Sequence[Mending]]) -> int:
    """Mends entries in their files, which are changed and not yet written.

    Returns:
        How many entries were changed: those that were not changed by others meanwhile, and have the fields.
    """
    changed = 0
    for entry, of_entry in sorted(mendings.items(), key=lambda item: -item[0].line):  # from the last line up
        old = entry.paper.bibtex or ""
        source = Source(entry.path, files.text(entry.path))
        at = source.text.find(old, source.line_span(entry.line)[0])
        if old and at >= 0 and (new := mended(old, of_entry)) != old:
            files.change(entry.path, at, at + len(old), new)
            changed += 1
    return changed
