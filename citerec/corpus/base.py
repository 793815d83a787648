"""Formats of files that hold records: one file of this folder each."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.corpus.json_lines import Line, read_json_lines
from citerec.files.registry import Registry

REMOVED = "removed"
"""The format of files of ids whose papers are removed."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    Attributes:
        name: Its name.
        read: Yields the lines of a file, each with its record, several, or what is wrong with it. Raises a SourceError
            if the file cannot be read.
        endings: How the names of such files end, in lower case: ".bib". They may be compressed: ".bib.gz".
    """

    name: str
    read: Callable[[Path], Iterator[Line]]
    endings: tuple[str, ...] = ()


def json_lines(name: str, parse: Callable[[dict[str, Any]], Any]) -> Format:
    """A format of JSON Lines, plain or gzip: `parse` makes an object a record, or several, or raises a RecordError."""
    return Format(name, functools.partial(read_json_lines, parse=parse))


FORMATS: Registry[Format] = Registry(
    "format",
    {
        "s2ag-papers": "citerec.corpus.s2ag:PAPERS",
        "s2ag-abstracts": "citerec.corpus.s2ag:ABSTRACTS",
        "s2ag-tldrs": "citerec.corpus.s2ag:TLDRS",
        "s2ag-citations": "citerec.corpus.s2ag:CITATIONS",
        "s2ag-citations-upserts": "citerec.corpus.s2ag:CHANGED_CITATIONS",
        "s2ag-papers-deletes": "citerec.corpus.s2ag:DELETED_PAPERS",
        "s2ag-abstracts-deletes": "citerec.corpus.s2ag:DELETED_ABSTRACTS",
        "s2ag-tldrs-deletes": "citerec.corpus.s2ag:DELETED_TLDRS",
        "s2ag-citations-deletes": "citerec.corpus.s2ag:DELETED_CITATIONS",
        "openalex": "citerec.corpus.openalex:WORKS",
        "openalex-deleted": "citerec.corpus.openalex:DELETED",
        "arxiv": "citerec.corpus.arxiv:PAPERS",
        "arxiv-deleted": "citerec.corpus.arxiv:DELETED",
        "acl-anthology": "citerec.corpus.bibtex:ANTHOLOGY",
        "bibtex": "citerec.corpus.bibtex:BIBTEX",
        "csl": "citerec.corpus.csl:CSL",
        "ris": "citerec.corpus.ris:RIS",
        "jsonl": "citerec.corpus.tabular:JSONL",
        "csv": "citerec.corpus.tabular:CSV",
        "contexts": "citerec.corpus.contexts_file:CONTEXTS",
        REMOVED: "citerec.corpus.ids_file:IDS",
    },
)
"""The formats, by name."""
