"""BibTeX: an author's own library."""

import html
import logging
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from citerec.corpus.json_lines import BadRecord, Line, RecordError, check_account, raw_lines, tried
from citerec.corpus.latex import decoded
from citerec.corpus.tabular import searchable
from citerec.corpus.values import read_id
from citerec.groundwork.printable import one_line
from citerec.records import Paper

_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_VENUES = ("journal", "journaltitle", "booktitle", "series", "publisher", "school", "institution", "howpublished")
_LINE_FEED = "\n"
_ENTRY_BEGINS = re.compile(r"^[ \t]*@\w*[ \t]*[{(]", re.MULTILINE)
# Possessive: no comment makes them try twice.
_ENTRY_WITHOUT_SIGN = re.compile(
    r"(?<![A-Za-z])([A-Za-z]{1,40}+)\s*+[{(]\s*+[^\s{}(),=]{0,600}+\s*+,\s*+[A-Za-z][\w-]{0,60}+\s*+="
)
_FIELD = re.compile(r"\s*+,?\s*+[A-Za-z][\w-]{0,60}+\s*+=\s*+[{\"\w]")
_MARKS = re.compile(r"(?<!\\)[{}\"]|#")  # what bibtexparser goes by
_CLOSING = ("}", '"')
_ENDS = re.compile(r"\s*+(?:#|$)")
_AMPERSANDS = re.compile(r"\\.|\$[^$]*\$|&", re.DOTALL)  # none in mathematics, none that is escaped
_HTML = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NAMED = {"backslash": "\\", "braceleft": "{", "braceright": "}"}
_ESCAPED = re.compile(rf"\\([_%&#$])|{{\\text({'|'.join(_NAMED)})}}")
_IDS = {"doi": "DOI", "pmid": "PubMed", "isbn": "ISBN"}


def read_bibtex(path: Path) -> Iterator[Line]:
    """Yields the entries of a `.bib` file, LaTeX accents and braces decoded, each with its original text.

    Macros (`@string`) and cross-references (`crossref`) are resolved. The entry key becomes the paper id. Raises
    SourceError as `raw_lines` does.
    """
    # From bytes: an entry is returned byte for byte, with its line ends.
    text = b"".join(raw for _, raw, _ in raw_lines(path, blank_too=True)).decode("utf-8", "surrogateescape")
    total = path.stat().st_size
    blocks = _blocks(path, text)
    for position, (number, raw, entry) in enumerate(blocks, 1):
        record = tried(partial(_parse, raw, entry), raw)
        yield Line(number, record, total * position // len(blocks))


class _Block(NamedTuple):
    """An entry, or what is wrong with it, with its line and its raw text."""

    line: int
    raw: str
    entry: "_Entry | str"


class _Entry(NamedTuple):
    key: str
    fields: dict[str, str]


def _blocks(path: Path, text: str) -> list[_Block]:
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.model import (
        DuplicateBlockKeyBlock,
        DuplicateFieldKeyBlock,
        Entry,
        ImplicitComment,
        ParsingFailedBlock,
    )

    # bibtexparser logs what it also returns as failed blocks: those go to the quarantine, once.
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    # No middleware: those of bibtexparser leave `macro # "text"` and entries with a repeated field as they are.
    library = parse_string(text, parse_stack=[])
    macros, found = _macros(library.strings)
    entries: dict[str, dict[str, str]] = {}
    begun: set[int] = set()
    for parsed in library.blocks:
        number = (parsed.start_line or 0) + 1
        # Of several entries with one key the store keeps the last.
        # Of several fields with one name in an entry, BibTeX uses one and continues.
        forgiven = isinstance(parsed, DuplicateBlockKeyBlock | DuplicateFieldKeyBlock)
        block = getattr(parsed, "ignore_error_block", parsed) if forgiven else parsed
        raw = block.raw or ""
        if isinstance(block, ImplicitComment):
            found += _lost(number, raw, after_entry=bool(found) and isinstance(found[-1].entry, _Entry))
            continue
        begun.add(number)
        if isinstance(block, Entry):
            fields = tried(partial(_fields, block, macros), raw)
            if isinstance(fields, BadRecord):
                found.append(_Block(number, raw, fields.reason))
            else:
                found.append(_Block(number, raw, _Entry(block.key, fields)))
                entries[block.key] = fields
        elif isinstance(block, ParsingFailedBlock):
            found.append(_Block(number, raw, _not_bibtex(number, raw, block.error)))
    _check_all_begun(path, text, begun)
    for item in found:
        if isinstance(item.entry, _Entry):
            _inherit(item.entry.fields, entries)
    return found


def _macros(strings: Iterable[Any]) -> tuple[dict[str, str], list[_Block]]:
    """The values of `@string` by name, and those that are bad."""
    macros: dict[str, str] = {}
    bad = []
    for string in strings:
        value = tried(partial(_value, string.key, str(string.value), macros), string.raw)
        if isinstance(value, BadRecord):
            bad.append(_Block(string.start_line + 1, string.raw, value.reason))
        else:
            macros[string.key.lower()] = value
    return macros, bad


def _not_bibtex(line: int, raw: str, error: Any) -> str:
    expected = getattr(error, "abort_reason", None) or "the entry is not closed"
    return f"not BibTeX, line {line + raw.rstrip().count(_LINE_FEED)}: {expected}"


def _lost(line: int, comment: str, *, after_entry: bool) -> Iterator[_Block]:
    """What BibTeX takes for a comment, but nobody meant as one: entries without `@`, fields after a closing brace."""
    if after_entry and _FIELD.match(comment):
        yield _Block(line, comment, "not BibTeX: fields after the end of an entry: a brace closes it too early")
    for match in _ENTRY_WITHOUT_SIGN.finditer(comment):
        number = line + comment.count(_LINE_FEED, 0, match.start())
        yield _Block(number, comment[match.start() :], f"not BibTeX: an entry must begin with @{match[1]}{{")


def _check_all_begun(path: Path, text: str, begun: set[int]) -> None:
    """Raises a BuildError unless each entry that begins a line was found."""
    line, at, signs = 1, 0, set()
    for match in _ENTRY_BEGINS.finditer(text):
        line, at = line + text.count(_LINE_FEED, at, match.start()), match.start()
        signs.add(line)
    check_account(path, len(signs), len(signs & begun), "entries")


def _fields(entry: Any, macros: dict[str, str]) -> dict[str, str]:
    return {field.key.lower(): _value(field.key, str(field.value), macros) for field in entry.fields}


def _value(name: str, raw: str, macros: dict[str, str]) -> str:
    """The value of a field: text in braces or quotes, or a macro, or several of these joined by `#`.

    Raises:
        RecordError: More follows the text, as where a comma is missing.
    """
    parts, begins, depth, quoted = [], 0, 0, False
    for match in _MARKS.finditer(raw):
        sign, position = match[0], match.start()
        depth += (sign == "{") - (sign == "}")
        quoted ^= sign == '"' and depth == 0
        if sign == "#" and depth == 0 and not quoted:
            parts.append(raw[begins:position])
            begins = position + 1
        elif sign in _CLOSING and depth == 0 and not quoted and not _ENDS.match(raw, position + 1):
            raise RecordError(f"not BibTeX: expected a comma after the value of {name}")
    parts.append(raw[begins:])
    return "".join(_part(part.strip(), macros) for part in parts)


def _part(raw: str, macros: dict[str, str]) -> str:
    enclosed = len(raw) > 1 and (raw[0], raw[-1]) in (("{", "}"), ('"', '"'))
    return raw[1:-1] if enclosed else macros.get(raw.lower(), raw)


def _inherit(fields: dict[str, str], entries: dict[str, dict[str, str]]) -> None:
    parent = entries.get(fields.get("crossref", "").strip())
    if parent:
        fields.setdefault("booktitle", parent.get("booktitle") or parent.get("title", ""))
        for name in ("year", "date", "publisher", "series"):
            if name in parent:
                fields.setdefault(name, parent[name])


def _parse(raw: str, entry: _Entry | str) -> Paper:
    if isinstance(entry, str):
        raise RecordError(entry)
    # What is not UTF-8 fails here, also if a macro or a cross-reference brought it.
    "".join([raw, *entry.fields.values()]).encode()
    return searchable(_paper(read_id({"key": entry.key}, "key"), entry.fields, raw))


def _paper(key: str, fields: dict[str, str], raw: str) -> Paper:
    year = _YEAR.search(fields.get("year", "")) or _YEAR.search(fields.get("date", ""))
    ids = {scheme: _identifier(fields.get(name, "")) for name, scheme in _IDS.items()}
    return Paper(
        paper_id=key,
        title=_plain(fields.get("title", "")),
        abstract=_plain(fields.get("abstract", "")) or None,
        year=int(year[0]) if year else None,
        venue=next((venue for name in _VENUES if (venue := _plain(fields.get(name, "")))), None),
        authors=_names(fields.get("author", "") or fields.get("editor", "")),
        external_ids={scheme: value for scheme, value in ids.items() if value},
        bibtex=raw,
    )


def _plain(text: str) -> str:
    """The text of a field as a reader sees it: no LaTeX, no HTML entities, no control characters."""
    # A bare & would be read as the end of a table's cell.
    text = decoded(_AMPERSANDS.sub(lambda match: r"\&" if match[0] == "&" else match[0], text))
    return one_line(_HTML.sub(lambda match: html.unescape(match[0]), text))


def _identifier(text: str) -> str:
    """An identifier without the escapes that BibTeX needs. It is no LaTeX otherwise: `--` and `~` stay."""
    text = _ESCAPED.sub(lambda match: match[1] or _NAMED[match[2]], text)
    return one_line(_HTML.sub(lambda match: html.unescape(match[0]), text))


def _names(value: str) -> tuple[str, ...]:
    from bibtexparser.middlewares.names import parse_single_name_into_parts, split_multiple_persons_names

    names = []
    for name in split_multiple_persons_names(value):
        if name == "others":
            continue
        try:
            parts = parse_single_name_into_parts(name, strict=False)
            words = [*parts.first, *parts.von, *parts.last, *parts.jr]
        except ValueError:
            words = [name]
        if plain := _plain(" ".join(words)):
            names.append(plain)
    return tuple(names)
