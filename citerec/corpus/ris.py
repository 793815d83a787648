"""RIS, as reference managers and publishers write it."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from citerec.corpus.base import Format, paper_of
from citerec.corpus.citation_keys import given_first, kind_of, parts_of
from citerec.corpus.matching import arxiv_in, doi_in, doi_of_address, entries, first_of, identified, year_in
from citerec.corpus.reading import Line, LongLine, RecordError, bad_record, escaped, plain, raw_lines, tried
from citerec.files.text import one_line
from citerec.records import Paper

# Tags in small letters, and frequent ones with one space before their hyphen, are read too.
_TAG = re.compile(
    rb"^(?:\xef\xbb\xbf)*([A-Z][A-Z0-9](?=  -)|[a-z][a-z0-9](?=  -(?:[ \r]|$))|"
    rb"(?:TY|ER|ID|AU|A[1-4]|T[1-3I]|J[FO]|PY|Y1|DO|UR|AB|KW|PB|SN|VL|IS|SP|EP)(?= -(?:[ \r]|$))) {1,2}-",
    re.MULTILINE,
)
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)*(?:TY  -|(?:ty |TY) -(?:[ \r]|$))", re.MULTILINE)
_END = re.compile(rb"(?:\xef\xbb\xbf)*(?:E[RF]  -|(?:e[rf] |ER) -(?:[ \r]|$))", re.MULTILINE)
_ENDS = (b"ER", b"EF")
_TITLES = ("TI", "T1", "CT", "BT")
_VENUES = ("JF", "T2", "BT", "JO", "JA", "J1", "J2", "C3", "T3", "PB")
_YEARS = ("PY", "Y1", "DA")
_ADDRESSES = ("UR", "L3", "L2", "M3")
_WITHOUT_START = "not RIS: a record must begin with a line TY  - …"


def read_ris(path: Path) -> Iterator[Line]:
    """Yields the records of a RIS file. `ID` becomes the paper id; without one, the DOI or one made.

    A record ends with `ER`, or where the next one begins. Text between records is left out. Raises SourceError as
    `raw_lines` does.
    """
    raw, is_ris = b"", False
    for number, raw, bytes_read in entries(raw_lines(path, blank_too=True), _BEGIN, _END):
        before, *parts = _TAG.split(raw)
        tagged = zip(map(bytes.upper, parts[::2]), parts[1::2], strict=True)
        if (fields := [field for field in tagged if field[0] not in _ENDS]) or isinstance(raw, LongLine):
            is_ris = True
            yield Line(number + before.count(b"\n"), tried(partial(_paper, fields), raw), bytes_read)
    if raw and not is_ris:
        yield Line(1, bad_record(_WITHOUT_START, raw), bytes_read)


def _paper(fields: list[tuple[bytes, bytes]]) -> Paper:
    tagged = [(tag.decode(), one_line(value.decode())) for tag, value in fields]
    if "TY" not in dict(tagged):
        raise RecordError(_WITHOUT_START)

    def values(*tags: str) -> list[str]:
        return [value for tag in tags for name, value in tagged if name == tag and value]

    def text(*tags: str) -> str:
        return first_of(plain, values(*tags))

    title_tag = next(filter(text, _TITLES), "")
    addresses, first = values(*_ADDRESSES), values("A1")
    doi = first_of(doi_in, values("DO")) or first_of(doi_of_address, addresses)
    names = [*first, *(name for name in values("AU") if name not in first)] or values("A2", "ED")
    paper = paper_of(
        None,
        {"DOI": doi, "ArXiv": first_of(arxiv_in, addresses)},
        title=text(title_tag),
        abstract=text("AB", "N2") or None,
        year=next(filter(None, map(year_in, values(*_YEARS))), None),
        venue=text(*(tag for tag in _VENUES if tag != title_tag)) or None,
        authors=tuple(filter(None, (given_first(plain(name)) for name in names))),
    )
    return identified(paper, text("ID"))


def ris_record(key: str, paper: Paper) -> str:
    """The record of a paper, with a citation key as its `ID`."""
    from citerec.corpus.bibtex import further_fields

    (type_name, venue), arxiv = kind_of(paper).ris, paper.external_ids.get("ArXiv")
    further = {tag: escaped(value) for tag, value in further_fields(paper, "ris").items()}
    further["SP"], _, further["EP"] = re.sub("[-–—]+", "-", further.get("SP", "")).partition("-")
    fields = [
        ("ID", key),
        *(("AU", _family_first(author)) for author in paper.authors),
        ("TI", escaped(paper.title)),
        (venue, escaped(paper.venue or "")),
        ("PY", str(paper.year or "")),
        ("DO", one_line(paper.external_ids.get("DOI", ""))),
        ("UR", f"https://arxiv.org/abs/{one_line(arxiv)}" if arxiv else ""),
        *((tag, value) for tag, value in further.items() if tag != venue),
    ]
    lines = [f"{tag}  - {value}" for tag, value in (("TY", type_name), *fields) if value]
    return "\n".join([*lines, "ER  - "])


def _family_first(author: str) -> str:
    given, family, suffix = parts_of(author)
    return escaped(author if "," in author else ", ".join(filter(None, (family, given, suffix))))


RIS = Format("ris", read_ris, (".ris",), entry=ris_record)
