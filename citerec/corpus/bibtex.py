"""BibTeX: an author's own library, the file of all entries of the ACL Anthology, and entries for papers."""

import functools
import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from citerec.corpus import reading
from citerec.corpus.base import Format, paper_of
from citerec.corpus.citation_keys import check_key, kind_of, own_entry, parts_of
from citerec.corpus.matching import acl_in, arxiv_in, doi_in, entries, year_in
from citerec.corpus.reading import BadRecord, Line, LongLine, RecordError, bad_record, check_size, raw_lines, tried
from citerec.files.text import one_line
from citerec.records import Paper, Record

_VENUES = ("journal", "journaltitle", "booktitle", "series", "publisher", "school", "institution", "howpublished")
# Possessive: no comment makes them try twice.
_ENTRY_WITHOUT_SIGN = re.compile(
    r"(?<![A-Za-z])([A-Za-z]{1,40}+)\s*+[{(]\s*+[^\s{}(),=]{0,600}+\s*+,\s*+[A-Za-z][\w-]{0,60}+\s*+="
)
_FIELD = re.compile(r"\s*+,?\s*+[A-Za-z][\w-]{0,60}+\s*+=\s*+[{\"\w]")
_MARKS = re.compile(r"(?<!\\)[{}\"]|#")  # what bibtexparser goes by
_ENDS = re.compile(r"\s*+(?:#|$)")
_NAMES = {"\\": "backslash", "{": "braceleft", "}": "braceright"}
_NAMED = {name: sign for sign, name in _NAMES.items()}
_ESCAPED = re.compile(rf"\\([_%&#$])|{{\\text({'|'.join(_NAMED)})}}")
# The parser of names takes the tilde of \~n for a space between names.
_TILDE = re.compile(r"\\~\s*(?:\{\s*([A-Za-z])\s*\}|([A-Za-z]))")
_GUARD = "\ue001"  # between a backslash and the end of its line
_LONGEST_VALUE = 100_000  # characters that macros may make of a value
_MOST_ADDED = 10_000_000  # characters that macros and cross-references may add to a file
_SHOWN = 2000
_BEGIN = re.compile(rb"[ \t]*@\w*[ \t]*[{(]")
_END = re.compile(rb"\s*}\s*\Z")
_VOLUME = re.compile(rb"\s*@proceedings\b", re.IGNORECASE)
_HEADER = re.compile(rb"%\s*https?://aclanthology\.org/anthology(\+abstracts)?\.bib\.gz\b")
_STRUCTURE_OF_TEXT = re.compile(r"([{}\"])")
_NAMED_IN_TEXT = {"{": r"{\lbrace}", "}": r"{\rbrace}", '"': '{"}'}
_STRUCTURE = re.compile(r"[{}\\]")
# Between the characters of a ligature: two hyphens would become a dash.
_LIGATURES = re.compile(r"(?<=[-`'!?,<>])(?=[-`',<>])")
_EMPTY = "\ue000"  # stands for {} while braces are escaped
_NAME_OF_FIELD = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*")
_MARKS_OF_VALUES = re.compile(r"(?<!\\)[{}\"]|,")
HTML = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{2,5}|#x[\da-fA-F]{2,4});|</?(?:i|b|em|sub|sup|strong|scp|p|br)\s*/?>")
"""An entity or a tag."""
_AMPERSAND = re.compile(r"\\?&(?:amp|#38|#x26);", re.IGNORECASE)
_UNSPACED = re.compile(r"(?<=[a-z]{2}[.?!])(?=[A-Z][a-z]* [a-z])")  # "… a result.We show …"
_SPECIAL_NAME = re.compile(r"(?:^|\s)and(?:\s|$)|^others$", re.IGNORECASE)


def read_bibtex(path: Path) -> Iterator[Line]:
    """The entries of a `.bib` file, LaTeX accents and braces decoded, each with its original text.

    Macros (`@string`) and cross-references (`crossref`) are resolved. The entry key becomes the paper id. Raises
    SourceError as `raw_lines` does.
    """
    # From bytes: an entry is returned byte for byte, with its line ends.
    whole = b"".join(raw for _, raw, _ in raw_lines(path, blank_too=True, longest=sys.maxsize))
    yield from parse_bibtex(whole.decode("utf-8", "surrogateescape"), path.stat().st_size)


def parse_bibtex(text: str, size: int = 0, *, untitled: bool = False) -> Iterator[Line]:
    """Yields the entries of a `.bib` file whose text is given, as `read_bibtex` does.

    Args:
        text: The text of the file.
        size: Its size in bytes, of which `bytes_read` tells how much is done.
        untitled: Whether entries may have neither title nor abstract; they cannot be searched.
    """
    file = _File(len(text))
    blocks = file.blocks(text)
    for position, block in enumerate(blocks, 1):
        record = tried(functools.partial(_paper, file, block, untitled), block.raw)
        yield Line(block.line, record, size * position // len(blocks))


def read_anthology(path: Path) -> Iterator[Line]:
    """The papers of `anthology+abstracts.bib.gz` as `read_bibtex` reads them, in little memory: entry by entry.

    Each entry stands alone there, so this knows no macros and no cross-references. Volumes (`@proceedings`) are left
    out. Raises SourceError as `raw_lines` does.
    """
    for number, raw, bytes_read in anthology_entries(raw_lines(path, blank_too=True)):
        for record in parse_entry(raw):
            yield Line(number, record, bytes_read)


def anthology_entries(lines: Iterable[tuple[int, bytes, int]]) -> Iterator[tuple[int, bytes, int]]:
    """The entries of the Anthology's file as `entries` gives them: one ends with a line of one brace."""
    return entries(lines, _BEGIN, _END)


def parse_entry(raw: bytes) -> list[Record | BadRecord]:
    """What a text holds that has one entry of the Anthology; nothing if it is a volume or a comment."""
    if _VOLUME.match(raw):
        return []
    if isinstance(raw, LongLine):
        return [bad_record(raw.reason, raw)]
    return [line.record for line in parse_bibtex(raw.decode("utf-8", "surrogateescape"))]


@dataclass(slots=True)
class _Block:
    """An entry, or what is wrong with it."""

    line: int
    raw: str
    fault: str = ""
    key: str = ""
    fields: dict[str, str] = field(default_factory=dict)


class _File:
    """The macros and the entries of a file, and how much they may still add to it.

    A macro may hold others several times, so a few lines could become gigabytes. They are measured before they are
    joined.
    """

    def __init__(self, size: int) -> None:
        self._left = max(_MOST_ADDED, size)
        self._macros: dict[str, str] = {}
        self._fields_by_key: dict[str, dict[str, str]] = {}

    def blocks(self, text: str) -> list[_Block]:
        """The entries of the text, and what nobody can read."""
        from bibtexparser.entrypoint import parse_string
        from bibtexparser.model import Entry, ImplicitComment, ParsingFailedBlock, String

        # bibtexparser logs what it also returns as failed blocks: those go to the quarantine, once.
        logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
        # No middleware: those of bibtexparser leave `macro # "text"` and entries with a repeated field as they are.
        # To bibtexparser, a backslash escapes even the end of a line, which then counts for nothing.
        library = parse_string(text.replace("\\\n", f"\\{_GUARD}\n"), parse_stack=[])
        blocks: list[_Block] = []
        for parsed in sorted(library.blocks, key=lambda parsed: not isinstance(parsed, String)):  # macros first
            # Of several entries with one key the store keeps the last.
            # Of several fields with one name in an entry, BibTeX uses one and continues.
            block: Any = getattr(parsed, "ignore_error_block", None) or parsed
            line, raw = (parsed.start_line or 0) + 1, (block.raw or "").replace(_GUARD, "")
            try:
                if isinstance(block, String):
                    self._macros[block.key.lower()] = self._value(f"the macro {block.key}", block.value)
                elif isinstance(block, Entry):
                    key = block.key
                    fields = {one.key.lower(): self._value(f"{one.key} of {key}", one.value) for one in block.fields}
                    blocks.append(_Block(line, raw, key=key, fields=fields))
                    self._fields_by_key[key] = fields
                elif isinstance(block, ImplicitComment):
                    blocks += _lost(line, raw, after_entry=bool(blocks) and not blocks[-1].fault)
                elif isinstance(block, ParsingFailedBlock):
                    expected = getattr(block.error, "abort_reason", None) or "the entry is not closed"
                    last_line = line + raw.rstrip().count("\n")
                    blocks.append(_Block(line, raw, f"not BibTeX, line {last_line}: {expected}"))
            except RecordError as error:
                blocks.append(_Block(line, raw, str(error)))
        return blocks

    def inherit(self, entry: _Block) -> None:
        """Gives an entry the fields that it has from the entry named by its `crossref`, if it names one."""
        named = entry.fields.get("crossref", "").strip()
        if named and (parent := self._fields_by_key.get(named)):
            inherited = {"booktitle": parent.get("booktitle") or parent.get("title", "")}
            inherited |= {name: parent[name] for name in ("year", "date", "publisher", "series") if name in parent}
            added = {name: value for name, value in inherited.items() if name not in entry.fields}
            self._count(entry.key, sum(map(len, added.values())))
            entry.fields.update(added)  # also for entries that name this one

    def _value(self, what: str, raw: str) -> str:
        """What a macro or a field is; RecordError as for `_parts`, or if it becomes too long."""
        parts = [self._part(part.strip()) for part in _parts(what, raw)]
        length = sum(map(len, parts))
        if length > max(_LONGEST_VALUE, len(raw)):
            raise RecordError(f"macros make {what} {length:,} characters long, more than {_LONGEST_VALUE:,}")
        self._count(what, length - len(raw))
        return "".join(parts)

    def _part(self, raw: str) -> str:
        enclosed = len(raw) > 1 and (raw[0], raw[-1]) in (("{", "}"), ('"', '"'))
        return raw[1:-1] if enclosed else self._macros.get(raw.lower(), raw)

    def _count(self, what: str, added: int) -> None:
        """Raises a RecordError if macros and cross-references have added too much to the file."""
        if added > self._left:
            fault = f"macros and cross-references add more than {_MOST_ADDED:,} characters to the file"
            raise RecordError(f"{what} is left out: {fault}")
        self._left -= max(0, added)


def _parts(what: str, raw: str) -> list[str]:
    """The parts of a value that `#` joins: texts in braces or quotes, and names of macros.

    Raises:
        RecordError: More follows the text, as where a comma is missing.
    """
    raw = raw.replace(_GUARD, "")
    parts, begins, depth, quoted = [], 0, 0, False
    for match in _MARKS.finditer(raw):
        sign, position = match[0], match.start()
        depth += (sign == "{") - (sign == "}")
        quoted ^= sign == '"' and depth == 0
        if sign == "#" and depth == 0 and not quoted:
            parts.append(raw[begins:position])
            begins = position + 1
        elif sign in ("}", '"') and depth == 0 and not quoted and not _ENDS.match(raw, position + 1):
            raise RecordError(f"not BibTeX: expected a comma after {what}")
    parts.append(raw[begins:])
    return parts


def _lost(line: int, comment: str, *, after_entry: bool) -> Iterator[_Block]:
    """What BibTeX takes for a comment, but nobody meant as one: entries without `@`, fields after a closing brace."""
    if after_entry and _FIELD.match(comment):
        yield _Block(line, comment, "not BibTeX: fields after the end of an entry: a brace closes it too early")
    for match in _ENTRY_WITHOUT_SIGN.finditer(comment):
        number = line + comment.count("\n", 0, match.start())
        beginning = comment[match.start() : match.start() + _SHOWN]
        yield _Block(number, beginning, f"not BibTeX: an entry must begin with @{match[1]}{{")


def _paper(file: _File, entry: _Block, untitled: bool) -> Paper:
    if entry.fault:
        raise RecordError(entry.fault)
    file.inherit(entry)
    fields = entry.fields
    # Measured before anything is decoded. What macros and a cross-reference brought counts.
    check_size(max(len(entry.raw), sum(map(len, fields.values()))))
    # What is not UTF-8 fails here, also if a macro or a cross-reference brought it.
    "".join([entry.raw, *fields.values()]).encode()
    archive, eprint = fields.get("archiveprefix") or fields.get("eprinttype") or "", fields.get("eprint", "")
    is_arxiv = archive.lower() == "arxiv" or (not archive and arxiv_in(f"arXiv:{eprint}"))
    ids = {
        "DOI": doi_in(_identifier(fields.get("doi", ""))),
        "PubMed": _identifier(fields.get("pmid", "")),
        "ISBN": _identifier(fields.get("isbn", "")),
        "ACL": acl_in(fields.get("url", "")),
        "ArXiv": _identifier(eprint) if is_arxiv else "",
    }
    return paper_of(
        entry.key,
        ids,
        untitled=untitled,
        title=_plain(fields.get("title", "")),
        abstract=_UNSPACED.sub(" ", _plain(fields.get("abstract", ""))) or None,
        year=year_in(fields.get("year", "")) or year_in(fields.get("date", "")),
        venue=next(filter(None, (_plain(fields.get(name, "")) for name in _VENUES)), None),
        authors=_names(fields.get("author", "") or fields.get("editor", "")),
        bibtex=entry.raw,
    )


# What an entry has besides what a `Paper` has, and its names in CSL and RIS.
_FURTHER = {
    "volume": ("volume", "VL"),
    "number": ("issue", "IS"),
    "pages": ("page", "SP"),
    "publisher": ("publisher", "PB"),
    "address": ("publisher-place", "CY"),
    "edition": ("edition", "ET"),
    "series": ("collection-title", "T3"),
    "issn": ("ISSN", "SN"),
    "isbn": ("ISBN", "SN"),
    "url": ("URL", "UR"),
    "language": ("language", "LA"),
    "keywords": ("keyword", "KW"),
    "abstract": ("abstract", "AB"),
    "note": ("note", "N1"),
}


def further_fields(paper: Paper, form: Literal["csl", "ris"]) -> dict[str, str]:
    """What the author's own entry of a paper has besides what a `Paper` has, by its name in CSL or RIS."""
    values = values_of(paper.bibtex or "") if own_entry(paper) else {}
    at = 0 if form == "csl" else 1
    return {names[at]: _plain(values[field].text) for field, names in _FURTHER.items() if field in values}


class Value(NamedTuple):
    """The value of a field in the text of an entry: where it stands, and what it is between braces or quotes."""

    start: int
    end: int
    text: str


def values_of(entry: str) -> dict[str, Value]:
    """The fields of the text of an entry, by name in small letters; those before something that cannot be read."""
    values, at = dict[str, Value](), entry.find(",") + 1
    while at and (name := _NAME_OF_FIELD.match(entry, at)):
        end = at = name.end()
        depth, quoted = 0, False
        for mark in _MARKS_OF_VALUES.finditer(entry, at):
            sign, end = mark[0], mark.start()
            if depth == 0 and not quoted and sign in (",", "}"):
                break
            depth += (sign == "{") - (sign == "}")
            quoted ^= sign == '"' and depth == 0
        text = entry[at:end].rstrip()
        try:
            is_one = len(_parts(name[1], text)) == 1
        except RecordError:
            break
        inside = text[1:-1] if is_one and text[:1] in ("{", '"') else text
        values[name[1].lower()] = Value(at, at + len(text), inside)
        at = end + 1 if entry[end : end + 1] == "," else 0
    return values


def without_html(value: str) -> str:
    r"""A value without the entities and tags of HTML: `&amp;` is `\&` in BibTeX."""
    return reading.without_markup(_AMPERSAND.sub(r"\\&", value)) if HTML.search(value) else value


def _plain(text: str) -> str:
    """The text of a field as a reader sees it: no LaTeX, no tags, no HTML entities, no control characters."""
    return reading.without_markup(reading.decoded(text))


def _identifier(text: str) -> str:
    """An identifier without the escapes that BibTeX needs. It is no LaTeX otherwise: `--` and `~` stay."""
    text = _ESCAPED.sub(lambda match: match[1] or _NAMED[match[2]], text)
    return one_line(reading.unescaped(text))


def _names(value: str) -> tuple[str, ...]:
    from bibtexparser.middlewares.names import parse_single_name_into_parts, split_multiple_persons_names

    value = _TILDE.sub(lambda match: unicodedata.normalize("NFC", f"{match[1] or match[2]}\u0303"), value)
    names = (name for name in split_multiple_persons_names(value) if name != "others")
    parsed = (parse_single_name_into_parts(name, strict=False) for name in names)
    texts = (" ".join([*parts.first, *parts.von, *parts.last, *parts.jr]) for parts in parsed)
    return tuple(filter(None, map(_plain, texts)))


def bibtex_entry(key: str, paper: Paper) -> str:
    """The entry of a paper under a key: the author's own entry with that key if there is one, else one made.

    Raises:
        InputError: No entry can have this key.
    """
    if own := own_entry(paper):
        return f"{own['before']}{key if key == own['key'] else check_key(key)}{own.string[own.end() :]}"
    (type_name, venue), title = kind_of(paper).bibtex, bibtex_text(paper.title)
    eprint = paper.external_ids.get("ArXiv", "")
    fields = {
        "author": bibtex_names(paper.authors),
        "title": f"{{{title}}}" if title else "",
        venue: bibtex_text(paper.venue or ""),
        "year": str(paper.year or ""),
        "doi": _escaped_identifier(paper.external_ids.get("DOI", "")),
        "eprint": _escaped_identifier(eprint),
        "archivePrefix": "arXiv" if eprint else "",
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    return f"@{type_name}{{{check_key(key)},\n" + ",\n".join(lines) + "\n}"


def bibtex_names(authors: Iterable[str]) -> str:
    """Names as the value of a field of BibTeX."""
    return " and ".join(filter(None, map(_name, authors)))


def _name(author: str) -> str:
    """An author's name; in braces if BibTeX would take it for two, or its words for other parts of a name."""
    given, family, suffix = map(bibtex_text, parts_of(author))
    if given and suffix and "," not in author:
        return f"{family}, {suffix}, {given}"
    name = bibtex_text(author)
    return f"{{{name}}}" if "," in name or _SPECIAL_NAME.search(name) else name


def bibtex_text(text: str) -> str:
    """A text as LaTeX, which BibTeX reads back: a brace of its own could end the entry, so it is named."""
    parts = _STRUCTURE_OF_TEXT.split(_LIGATURES.sub(_EMPTY, reading.escaped(text, backslashes=False)))
    latex = "".join(_NAMED_IN_TEXT.get(part) or _encoder()(part) for part in parts)
    return latex.replace(_EMPTY, "{}")


@functools.cache
def _encoder() -> Callable[[str], str]:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    # In braces, as BibTeX wants accents: in a name, `\\~n` would be the end of a word.
    encoder = UnicodeToLatexEncoder(
        replacement_latex_protection="braces-all", unknown_char_policy="keep", unknown_char_warning=False
    )
    return cast("Callable[[str], str]", encoder.unicode_to_latex)


def _escaped_identifier(text: str) -> str:
    """An identifier, which is no LaTeX: only what could end the field is named, as `read_bibtex` reads it back."""
    return _STRUCTURE.sub(lambda match: f"{{\\text{_NAMES[match[0]]}}}", one_line(text))


BIBTEX = Format("bibtex", read_bibtex, (".bib", ".bibtex"), entry=bibtex_entry)
ANTHOLOGY = Format("acl-anthology", read_anthology, BIBTEX.endings, _HEADER)
