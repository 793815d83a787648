"""`citerec init`: a project file, so that commands need no options."""

import contextlib
import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from citerec.cli.console import ask, confirm, note, say
from citerec.corpus.citation_keys import DEFAULT_PATTERN, pattern_of
from citerec.corpus.zotero import ADDRESS, zotero_file
from citerec.drafts import read_draft
from citerec.drafts.bibliography import read_entries
from citerec.drafts.project import FILE
from citerec.drafts.read import is_draft
from citerec.errors import InputError
from citerec.files.writing import write_bytes
from citerec.index.manifest import indexes_in
from citerec.settings import INDEXES

_MOST = 200  # files of a folder that are looked at


def init(folder: Annotated[Path, Parameter(show_default=False)] = Path(), /) -> None:
    """Write a project file, citerec.toml.

    It says which bibliography, index and keys the drafts in FOLDER and below it have: then `citerec fill draft.tex`
    needs no options. Three questions are asked; Enter takes what is proposed, from the files that are there.

    Example: citerec init

    Args:
        folder: The folder of the drafts.  [default: this one]
    """
    place = folder / FILE
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", "Make it, or give that of your drafts.")
    if place.exists():
        raise InputError(f"{place} is there already", "Change it, or remove it first.")
    bib = _asked("Bibliography", _bibliography(folder))
    index = _asked("Index", _index(folder))
    entries = read_entries([folder / bib]).entries if bib and (folder / bib).exists() else ()
    keys = _asked("Keys of new entries", pattern_of(one.paper for one in entries))
    lines = [
        "# Settings of citerec for the drafts in this folder and below it. Paths are relative to it.",
        f"bib = {json.dumps(bib)}" if bib else '# bib = "refs.bib"',
        f"index = {json.dumps(index)}" if index else '# index = "indexes/mine"',
        f"keys = {json.dumps(keys or DEFAULT_PATTERN)}",
        "# Further marks of places, as regular expressions: marks = ['\\?\\?\\?', 'CITE-ME']",
    ]
    write_bytes(place, "".join(f"{line}\n" for line in lines).encode())
    say(f"{place} is written.")
    if index and not (folder / index).exists():
        _advise(folder / index, folder / bib)


def _asked(what: str, proposed: str) -> str:
    """What the person answers, or what is proposed."""
    try:
        return ask(f"{what} [{proposed}]: ") or proposed
    except EOFError:
        return proposed


def _bibliography(folder: Path) -> str:
    """The bibliography that a draft of the folder names, or the only one there; else a usual name."""
    files = sorted(folder.iterdir())[:_MOST]
    for path in files:
        try:
            if path.suffix and is_draft(path) and (named := read_draft(path).bibliographies):
                return named[0].relative_to(folder).as_posix()
        except (InputError, ValueError):
            continue
    return next((path.name for path in files if path.suffix.lower() == ".bib"), "refs.bib")


def _index(folder: Path) -> str:
    """The only index below `indexes/`; else the name of one that can be built."""
    indexes = indexes_in(folder / INDEXES) if (folder / INDEXES).is_dir() else []
    return (indexes[0].relative_to(folder) if len(indexes) == 1 else INDEXES / "mine").as_posix()


def _advise(index: Path, bib: Path) -> None:
    """Says how the index is built; of the library of Zotero, if there is one and the person wants it."""
    source: Path | str = bib
    with contextlib.suppress(InputError, EOFError):
        if confirm(f"There is a Zotero library ({zotero_file()}). Search it?", default=True):
            source = ADDRESS
    note(f"Next: citerec index build {source} --out {index}")
