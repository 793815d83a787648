"""Formats of files that hold records: one file of this folder each."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.json_lines import Line, json_object, raw_lines, tried
from citerec.corpus.values import read_id
from citerec.files.registry import Registry
from citerec.records import Deletion

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
        header: Matches the first line of such files, if not all files with these endings are of this format.
        holds: Whether an object of JSON Lines is of this format, by its keys.
    """

    name: str
    read: Callable[[Path], Iterator[Line]]
    endings: tuple[str, ...] = ()
    header: "re.Pattern[bytes] | None" = None
    holds: Callable[[Mapping[str, Any]], bool] | None = None


def json_lines(
    name: str, parse: Callable[[dict[str, Any]], Any], holds: Callable[[Mapping[str, Any]], bool] | None = None
) -> Format:
    """A format of JSON Lines, plain or gzip: `parse` makes an object a record, or several, or raises a RecordError."""

    def parse_line(raw: bytes) -> Any:
        return parse(json_object(orjson.loads(raw)))

    return Format(name, functools.partial(read_lines, parse=parse_line), holds=holds)


def read_lines(path: Path, parse: Callable[[bytes], Any], header: "re.Pattern[bytes] | None" = None) -> Iterator[Line]:
    """Yields what `parse` makes of each line but headers, a record or several; SourceError as for `raw_lines`."""
    for number, raw, bytes_read in raw_lines(path):
        if not (header and header.match(raw)):
            found = tried(functools.partial(parse, raw), raw)
            for record in found if isinstance(found, Sequence) else [found]:
                yield Line(number, record, bytes_read)


def _removed(raw: bytes) -> Deletion:
    return Deletion("papers", read_id({"id": raw.decode()}, "id"))


IDS = Format(REMOVED, functools.partial(read_lines, parse=_removed))

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
        REMOVED: "citerec.corpus.base:IDS",
    },
)
"""The formats, by name."""
