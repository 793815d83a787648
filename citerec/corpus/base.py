"""Formats of files that hold records, one file of this folder each: how they are read, and how entries are written."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.citation_keys import DEFAULT_PATTERN, citation_keys, own_key
from citerec.corpus.json_lines import Line, RecordError, json_object, raw_lines, tried
from citerec.corpus.values import read_id
from citerec.files.registry import Registry
from citerec.records import Deletion, Paper

REMOVED = "removed"
"""The format of files of ids whose papers are removed."""

DATASETS = ("papers", "abstracts", "tldrs", "citations")
"""The datasets of S2AG that citerec reads, by their names in a release."""


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
        entry: Makes the entry of a paper under a citation key, a text or a JSON object, if citerec writes this format.
    """

    name: str
    read: Callable[[Path], Iterator[Line]]
    endings: tuple[str, ...] = ()
    header: "re.Pattern[bytes] | None" = None
    holds: Callable[[Mapping[str, Any]], bool] | None = None
    entry: Callable[[str, Paper], Any] | None = None


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
        **{f"s2ag-{dataset}": f"citerec.corpus.s2ag:{dataset.upper()}" for dataset in DATASETS},
        "s2ag-citations-upserts": "citerec.corpus.s2ag:CHANGED_CITATIONS",
        **{f"s2ag-{dataset}-deletes": f"citerec.corpus.s2ag:DELETED_{dataset.upper()}" for dataset in DATASETS},
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
        "contexts": "citerec.corpus.tabular:CONTEXTS",
        REMOVED: "citerec.corpus.base:IDS",
    },
)
"""The formats, by name."""


def paper_of(paper_id: str, ids: Mapping[str, str | None], *, untitled: bool = False, **fields: Any) -> Paper:
    """The paper of an entry, with those of its identifiers that are not empty.

    Raises:
        RecordError: It has no text to search, and may not be `untitled`.
    """
    if not (untitled or fields["title"] or fields.get("abstract")):
        raise RecordError("neither title nor abstract: nothing to search")
    return Paper(paper_id, external_ids={scheme: value for scheme, value in ids.items() if value}, **fields)


def entries_of(papers: Iterable[Paper], form: str = "bibtex", pattern: str = DEFAULT_PATTERN) -> list[Any]:
    """One entry per paper, in order, with keys that do not repeat; an author's own BibTeX entries byte for byte.

    Args:
        papers: The papers.
        form: The format: `bibtex`, `csl` or `ris`.
        pattern: Of the keys of entries that are made (docs/formats.md, "Citation keys").

    Raises:
        InputError: The pattern is wrong.
    """
    papers, entry = list(papers), FORMATS[form].entry
    return [entry(key, paper) for key, paper in zip(entry_keys(papers, pattern), papers, strict=True)] if entry else []


def entry_keys(papers: Sequence[Paper], pattern: str = DEFAULT_PATTERN) -> list[str]:
    """The key of each paper: that of the author's own entry, else one made by the pattern that no other paper has.

    Raises:
        InputError: The pattern is wrong.
    """
    own = [own_key(paper) for paper in papers]
    made = iter(citation_keys((paper for paper in papers if not own_key(paper)), pattern, set(filter(None, own))))
    return [key or next(made) for key in own]
