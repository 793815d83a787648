"""RIS, as reference managers and publishers write it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from citerec.corpus.base import Format
from citerec.corpus.bibtex_writer import each_entry
from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.corpus.json_lines import Line, LongLine, RecordError, bad_record, raw_lines, tried
from citerec.corpus.kinds import Kind, kind_of
from citerec.corpus.names import given_first, parts_of
from citerec.corpus.plain import escaped, plain
from citerec.corpus.references import arxiv_in, doi_in, doi_of_address, identified, year_in
from citerec.corpus.tabular import searchable
from citerec.files.rejected import line_bytes
from citerec.files.text import one_line
from citerec.records import Paper

# Tags in small letters, and frequent ones with one space before their hyphen, are read too.
_TAGGED = re.compile(
    r"(?:(?P<tag>[A-Z][A-Z0-9])  -|(?P<small>[a-z][a-z0-9])  -(?= |$)|"
    r"(?P<near>TY|ER|ID|AU|A[1-4]|T[1-3I]|J[FO]|PY|Y1|DO|UR|AB|KW|PB|SN|VL|IS|SP|EP) -(?= |$))(?P<value>.*)",
    re.DOTALL,
)
_BOM = "\ufeff"
_ENDS = ("ER", "EF")
_TITLES = ("TI", "T1", "CT", "BT")
_VENUES = ("JF", "T2", "BT", "JO", "JA", "J1", "J2", "C3", "T3", "PB")
_YEARS = ("PY", "Y1", "DA")
_ADDRESSES = ("UR", "L3", "L2", "M3")
_WITHOUT_START = "not RIS: a record must begin with a line TY  - …"
_TYPES: Mapping[Kind, str] = {"article": "JOUR", "conference": "CONF", "preprint": "UNPB", "other": "GEN"}

Fields = list[tuple[str, str]]


def read_ris(path: Path) -> Iterator[Line]:
    """Yields the records of a RIS file. `ID` becomes the paper id; without one, the DOI or one made.

    A record ends with `ER`, or where the next one begins. Text between records is left out. Raises SourceError as
    `raw_lines` does.
    """
    begun, bytes_read, lines = 0, 0, list[str]()
    found, size, longest = False, 0, line_bytes()
    for number, raw, bytes_read in raw_lines(path):
        text = raw.decode("utf-8", "surrogateescape").lstrip(_BOM).rstrip("\r\n")
        tag = _tag(text)
        if tag in _ENDS:
            if lines:
                yield _line(begun, lines, bytes_read, cut=size > longest)
            lines, size = [], 0
            continue
        if tag == "TY" and lines:  # no ER
            yield _line(begun, lines, bytes_read, cut=size > longest)
            lines, size = [], 0
        if lines or tag:
            begun = begun if lines else number
            found = True
            size += longest + 1 if isinstance(raw, LongLine) else len(raw)
            if size <= longest or not lines:
                lines.append(text)
    if lines:
        yield _line(begun, lines, bytes_read, cut=size > longest)
    elif not found and bytes_read:
        yield Line(1, bad_record(_WITHOUT_START, text), bytes_read)


def _tag(line: str) -> str:
    match = _TAGGED.match(line)
    return (match["tag"] or match["small"] or match["near"]).upper() if match else ""


def _line(number: int, lines: list[str], bytes_read: int, *, cut: bool) -> Line:
    raw = "\n".join(lines)
    if cut:
        line = LongLine.of(raw.encode("utf-8", "surrogateescape"), line_bytes())
        return Line(number, bad_record(line.reason, line), bytes_read)
    return Line(number, tried(partial(_parse, lines, raw), raw), bytes_read)


def _parse(lines: list[str], raw: str) -> Paper:
    raw.encode()  # what is not UTF-8 fails here
    fields: list[tuple[str, list[str]]] = []
    for line in lines:
        if match := _TAGGED.match(line):
            fields.append((_tag(line), [match["value"]]))
        else:  # a long value goes on
            fields[-1][1].append(line)
    if fields[0][0] != "TY":
        raise RecordError(_WITHOUT_START)
    return _paper([(tag, one_line(" ".join(parts))) for tag, parts in fields])


def _paper(fields: Fields) -> Paper:
    title_tag, title = _first(fields, _TITLES)
    addresses = _values(fields, _ADDRESSES)
    ids = {
        "DOI": next(filter(None, [*map(doi_in, _values(fields, ("DO",))), *map(doi_of_address, addresses)]), ""),
        "ArXiv": next(filter(None, map(arxiv_in, addresses)), ""),
    }
    first = _values(fields, ("A1",))
    names = [*first, *(name for name in _values(fields, ("AU",)) if name not in first)]
    names = names or _values(fields, ("A2", "ED"))
    paper = Paper(
        paper_id="",
        title=title,
        abstract=_first(fields, ("AB", "N2"))[1] or None,
        year=next(filter(None, map(year_in, _values(fields, _YEARS))), None),
        venue=_first(fields, [tag for tag in _VENUES if tag != title_tag])[1] or None,
        authors=tuple(filter(None, (given_first(plain(name)) for name in names))),
        external_ids={scheme: value for scheme, value in ids.items() if value},
    )
    return identified(searchable(paper), _first(fields, ("ID",))[1])


def _values(fields: Fields, tags: Iterable[str]) -> list[str]:
    """The values of some tags, the first tag's first."""
    return [value for tag in tags for name, value in fields if name == tag and value]


def _first(fields: Fields, tags: Iterable[str]) -> tuple[str, str]:
    """The first value of some tags, as text, with its tag."""
    found = ((tag, plain(value)) for tag in tags for value in _values(fields, (tag,)))
    return next((pair for pair in found if pair[1]), ("", ""))


def ris_records(papers: Iterable[Paper], pattern: str = DEFAULT_PATTERN) -> list[str]:
    """A RIS record for each paper, in order. `ID` is a citation key, as in BibTeX.

    Args:
        papers: The papers.
        pattern: Of keys that are made (docs/formats.md, "Citation keys").

    Raises:
        InputError: The pattern is wrong.
    """
    return each_entry(papers, pattern, _record)


def _record(key: str, paper: Paper) -> str:
    kind, arxiv = kind_of(paper), paper.external_ids.get("ArXiv")
    fields = [
        ("ID", key),
        *(("AU", _family_first(author)) for author in paper.authors),
        ("TI", escaped(one_line(paper.title))),
        ("PB" if kind == "preprint" else "T2", escaped(one_line(paper.venue or ""))),
        ("PY", str(paper.year or "")),
        ("DO", one_line(paper.external_ids.get("DOI", ""))),
        ("UR", f"https://arxiv.org/abs/{one_line(arxiv)}" if arxiv else ""),
    ]
    lines = [f"{tag}  - {value}" for tag, value in (("TY", _TYPES[kind]), *fields) if value]
    return "\n".join([*lines, "ER  - "])


def _family_first(author: str) -> str:
    given, family, suffix = parts_of(one_line(author))
    return escaped(author if "," in author else ", ".join(filter(None, (family, given, suffix))))


RIS = Format("ris", read_ris, (".ris",))
