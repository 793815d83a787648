"""The entries that a draft can cite, each with its place."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from citerec.corpus.bibtex import parse_bibtex
from citerec.corpus.json_lines import BadRecord
from citerec.drafts.files import Files
from citerec.errors import CiterecError, InputError
from citerec.records import Paper


class Entry(NamedTuple):
    """An entry: its id is the citation key."""

    paper: Paper
    path: Path
    line: int


class Unread(NamedTuple):
    """An entry that cannot be read, and why."""

    path: Path
    line: int
    reason: str


class Entries(NamedTuple):
    """Entries of `.bib` files.

    Attributes:
        entries: In the order of the files; keys may come again.
        unread: Entries that cannot be read.
        lost: Files that cannot be read, and why; their entries are unknown.
    """

    entries: tuple[Entry, ...] = ()
    unread: tuple[Unread, ...] = ()
    lost: tuple[tuple[Path, CiterecError], ...] = ()


def read_entries(paths: Iterable[Path], files: Files | None = None) -> Entries:
    """The entries of some `.bib` files.

    Args:
        paths: The files; what cannot be read is told in the answer.
        files: Where texts are read from; by default the disk.
    """
    files = files or Files()
    entries: list[Entry] = []
    unread: list[Unread] = []
    lost: list[tuple[Path, CiterecError]] = []
    for path in dict.fromkeys(paths):
        try:
            if path.suffix.lower() != ".bib":
                raise InputError(f"{path} is no .bib file", "Give its entries as BibTeX: --bib FILE")
            for line in parse_bibtex(files.text(path), untitled=True):
                if isinstance(line.record, Paper):
                    entries.append(Entry(line.record, path, line.number))
                elif isinstance(line.record, BadRecord):
                    unread.append(Unread(path, line.number, line.record.reason))
        except CiterecError as error:
            lost.append((path, error))
    return Entries(tuple(entries), tuple(unread), tuple(lost))
