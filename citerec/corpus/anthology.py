"""The file of all entries of the ACL Anthology, read entry by entry: at once it would take more than a gigabyte."""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from citerec.corpus.base import Format
from citerec.corpus.bibtex import parse_bibtex
from citerec.corpus.json_lines import BadRecord, Line, LongLine, bad_record, raw_lines
from citerec.files.rejected import line_bytes
from citerec.records import Record

_BEGIN = re.compile(rb"[ \t]*@\w*[ \t]*[{(]")
_VOLUME = re.compile(rb"\s*@proceedings\b", re.IGNORECASE)
_HEADER = re.compile(rb"%\s*https?://aclanthology\.org/anthology(\+abstracts)?\.bib\.gz\b")


def read_anthology(path: Path) -> Iterator[Line]:
    """The papers of `anthology+abstracts.bib.gz` as `read_bibtex` reads them, in little memory.

    Each entry stands alone there, so this knows no macros and no cross-references. Volumes (`@proceedings`) are left
    out. Raises SourceError as `raw_lines` does.
    """
    bytes_read = 0

    def lines() -> Iterator[bytes]:
        nonlocal bytes_read
        for _, raw, done in raw_lines(path, blank_too=True):
            bytes_read = done
            yield raw

    for number, raw in entries(lines()):
        for record in parse_entry(raw):
            yield Line(number, record, bytes_read)


def is_anthology(path: Path) -> bool:
    """Whether a file says in its first line that it is of the Anthology."""
    return any(_HEADER.match(raw) for _, raw, _ in itertools.islice(raw_lines(path), 1))


def entries(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The number of the first line of each entry, from 1, and its lines. An entry ends with a line of one brace.

    One that is too long is a `LongLine`.
    """
    entry: list[bytes] = []
    begin = size = 0
    longest = line_bytes()

    def whole() -> bytes:
        text = b"".join(entry)
        return LongLine.of(text, longest) if size > longest else text

    for number, raw in enumerate(lines, 1):
        if entry and _BEGIN.match(raw):  # the one before is not closed
            yield begin, whole()
            entry.clear()
        if not entry:
            if raw.isspace():
                continue
            begin, size = number, 0
        size += longest + 1 if isinstance(raw, LongLine) else len(raw)
        if size <= longest or not entry:
            entry.append(raw)
        if raw.strip() == b"}":
            yield begin, whole()
            entry.clear()
    if entry:
        yield begin, whole()


def parse_entry(raw: bytes) -> list[Record | BadRecord]:
    """What a text holds that has one entry; nothing if it is a volume or a comment."""
    if _VOLUME.match(raw):
        return []
    if isinstance(raw, LongLine):
        return [bad_record(raw.reason, raw)]
    return [line.record for line in parse_bibtex(raw.decode("utf-8", "surrogateescape"))]


ANTHOLOGY = Format("acl-anthology", read_anthology)
