"""BibTeX: an author's own library."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from citerec.corpus.json_lines import Line, RecordError, bad_record, raw_lines
from citerec.corpus.latex import decoded
from citerec.corpus.tabular import searchable
from citerec.corpus.values import read_id
from citerec.records import Paper

_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_VENUES = ("journal", "journaltitle", "booktitle", "series", "publisher", "school", "institution", "howpublished")
_IDS = {"doi": "DOI", "pmid": "PubMed", "isbn": "ISBN"}


def read_bibtex(path: Path) -> Iterator[Line]:
    """Yields the entries of a `.bib` file, LaTeX accents and braces decoded, each with its original text.

    Macros (`@string`) and cross-references (`crossref`) are resolved. The entry key becomes the paper id. Raises
    SourceError as `raw_lines` does.
    """
    # From bytes: an entry is returned byte for byte, with its line ends.
    text = b"".join(raw for _, raw, _ in raw_lines(path, blank_too=True)).decode("utf-8", "surrogateescape")
    total = path.stat().st_size
    blocks = _blocks(text)
    for position, (number, raw, entry) in enumerate(blocks, 1):
        yield Line(number, _parse(raw, entry), total * position // len(blocks))


def _blocks(text: str) -> list[tuple[int, str, Any]]:
    """(line, raw text, entry) of each entry, or why it cannot be read."""
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.model import DuplicateBlockKeyBlock, DuplicateFieldKeyBlock, Entry, ParsingFailedBlock

    # bibtexparser logs what it also returns as failed blocks: those go to the quarantine, once.
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    # No middleware: those of bibtexparser leave `macro # "text"` and entries with a repeated field as they are.
    library = parse_string(text, parse_stack=[])
    macros: dict[str, str] = {}
    for string in library.strings:
        macros[string.key.lower()] = _value(str(string.value), macros)
    entries: dict[str, Any] = {}
    found: list[tuple[int, str, Any]] = []
    for parsed in library.blocks:
        number = (parsed.start_line or 0) + 1
        # Of several entries with one key the store keeps the last.
        # Of several fields with one name in an entry, BibTeX uses one and continues.
        forgiven = isinstance(parsed, DuplicateBlockKeyBlock | DuplicateFieldKeyBlock)
        block = getattr(parsed, "ignore_error_block", parsed) if forgiven else parsed
        if isinstance(block, Entry):
            fields = {field.key.lower(): _value(str(field.value), macros) for field in block.fields}
            found.append((number, block.raw or "", (block.key, block.entry_type.lower(), fields)))
            entries[block.key] = fields
        elif isinstance(block, ParsingFailedBlock):
            found.append((number, block.raw or "", f"not BibTeX: {block.error or 'no closing brace'}"))
    for _, _, entry in found:
        if not isinstance(entry, str):
            _inherit(entry[2], entries)
    return found


def _value(raw: str, macros: dict[str, str]) -> str:
    """The value of a field: text in braces or quotes, or a macro, or several of these joined by `#`."""
    parts, begins, depth, quoted = [], 0, 0, False
    for position, character in enumerate(raw if "#" in raw else ""):
        depth += (character == "{") - (character == "}")
        quoted ^= character == '"' and depth == 0
        if character == "#" and depth == 0 and not quoted:
            parts.append(raw[begins:position])
            begins = position + 1
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


def _parse(raw: str, entry: tuple[str, str, dict[str, str]] | str) -> Any:
    try:
        if isinstance(entry, str):
            raise RecordError(" ".join(entry.split()))
        if any("\udc80" <= character <= "\udcff" for character in raw):
            raise RecordError("not UTF-8")
        key, _, fields = entry
        return searchable(_paper(read_id({"key": key}, "key"), fields, raw))
    except RecordError as error:
        return bad_record(str(error), raw.encode("utf-8", "surrogateescape"))


def _paper(key: str, fields: dict[str, str], raw: str) -> Paper:
    year = _YEAR.search(fields.get("year", "")) or _YEAR.search(fields.get("date", ""))
    return Paper(
        paper_id=key,
        title=decoded(fields.get("title", "")),
        abstract=decoded(fields.get("abstract", "")) or None,
        year=int(year[0]) if year else None,
        venue=next((venue for name in _VENUES if (venue := decoded(fields.get(name, "")))), None),
        authors=_names(fields.get("author", "") or fields.get("editor", "")),
        external_ids={scheme: fields[name].strip() for name, scheme in _IDS.items() if fields.get(name, "").strip()},
        bibtex=raw,
    )


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
        if plain := decoded(" ".join(words)):
            names.append(plain)
    return tuple(names)
