"""S2ORC full texts, v1 and v2: their text, paragraphs, sentences, bib refs and bib entries (docs/formats.md).

Both versions become the same record. An annotation that does not fit its text is a fault: it is set aside.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.json_lines import BadRecord, RecordError, optional_id, parsed, raw_lines, read_id
from citerec.errors import SourceError
from citerec.files.addresses import client_failures, expanded
from citerec.files.rejected import FULL_TEXT_BYTES
from citerec.files.text import printable

_LONGEST_OFFSET = 18  # digits
_SUFFIXES = (".jsonl", ".json", ".gz")


@dataclass(frozen=True, slots=True, order=True)
class Headline:
    """The headline of a section: its place, and the number that the source gives separately, or an empty text."""

    start: int
    end: int
    number: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph: its place, and the heading above it."""

    start: int
    end: int
    section: str | None


@dataclass(frozen=True, slots=True)
class BibRef:
    """A place at which the text cites, and the id of the bib entry that it cites; None if the source has none."""

    start: int
    end: int
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class BibEntry:
    """A bib entry: the paper that the source matched with it, or None, and its text; empty if its place is unknown."""

    paper_id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class FullText:
    """The full text of a paper. Offsets refer to `text`; paragraphs, sentences and bib refs are in order.

    Attributes:
        paper_id: Its corpusid.
        headlines: The headlines of its sections, in order.
        sentences: Start and end of each; None if the source does not give them.
        bib_entries: By id.
        faults: Messages about annotations that did not fit the text.
    """

    paper_id: str
    text: str
    paragraphs: tuple[Paragraph, ...]
    sentences: tuple[tuple[int, int], ...] | None
    bib_refs: tuple[BibRef, ...]
    bib_entries: Mapping[str, BibEntry]
    faults: tuple[str, ...]
    headlines: tuple[Headline, ...] = ()

    def cited_ids(self) -> frozenset[str]:
        """The matched papers that its text cites."""
        cited = (self.bib_entries.get(ref.entry_id or "") for ref in self.bib_refs)
        return frozenset(entry.paper_id for entry in cited if entry and entry.paper_id)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a shard: its number, from 1; a full text, or what is wrong with it; and how the line begins."""

    number: int
    record: FullText | BadRecord
    beginning: str


@client_failures()
def find_texts(paths: Sequence[Path]) -> list[Path]:
    """The shards of S2ORC below some folders, or the files given, each folder's sorted by name.

    Raises:
        SourceError: A path is missing, holds no shards, or holds both versions.
    """
    found: list[Path] = []
    for path in expanded(paths):
        if not path.exists():
            raise SourceError(f"{path} does not exist", "Give a folder of S2ORC shards, or one of them.")
        if path.is_file():
            found.append(path)
            continue
        versions = [path / name for name in ("s2orc", "s2orc_v2") if (path / name).is_dir()]
        if len(versions) == 2:
            raise SourceError(f"{path} holds both versions of S2ORC", f"Give one: {versions[0]} or {versions[1]}")
        folder = versions[0] if versions else path
        files = sorted(file for file in folder.iterdir() if file.is_file() and file.name.lower().endswith(_SUFFIXES))
        if not files:
            raise SourceError(f"{folder} holds no shards of S2ORC", "They end in .jsonl or .gz")
        found += files
    seen: set[Path] = set()
    for path in found:
        if (resolved := path.resolve()) in seen:
            raise SourceError(f"{path} is given twice", "Name each file once.")
        seen.add(resolved)
    return found


def read_s2orc(path: Path) -> Iterator[TextLine]:
    """Yields the full texts of a shard of `s2orc` or `s2orc_v2`, plain or gzip; memory stays flat.

    Raises:
        SourceError: The file cannot be opened, or its gzip stream is broken.
    """
    for number, raw, _ in raw_lines(path, longest=FULL_TEXT_BYTES):
        yield TextLine(number, parsed(raw, parse_full_text), raw[:200].decode("utf-8", "replace"))


def parse_full_text(record: Mapping[str, Any]) -> FullText:
    """A full text from its JSON object, of either version.

    Raises:
        RecordError: It has no corpusid or no text, or is neither version.
    """
    paper_id = read_id(record, "corpusid")
    if "body" in record:
        return _assembled(paper_id, _Layers(record, "body"), _Layers(record, "bibliography"), _V2_NAMES)
    if "content" in record:
        layers = _Layers(record, "content")
        return _assembled(paper_id, layers, layers, _V1_NAMES)
    raise RecordError("it has neither content (s2orc) nor body (s2orc_v2)")


_V1_NAMES = {name: name.replace("_", "") for name in ("section_header", "paragraph", "bib_ref", "bib_entry")}
_V2_NAMES = {name: name for name in (*_V1_NAMES, "sentence")}


@dataclass(frozen=True, slots=True)
class _Annotation:
    start: int
    end: int
    attributes: Mapping[str, Any]


class _Layers:
    """A text and the layers of annotations over it."""

    def __init__(self, record: Mapping[str, Any], part: str) -> None:
        holder = record.get(part) or {}
        if not isinstance(holder, dict):
            raise RecordError(f"{part} is a {type(holder).__name__}")
        text = holder.get("text")
        if text is not None and not isinstance(text, str):
            raise RecordError(f"{part}.text is a {type(text).__name__}")
        layers = holder.get("annotations") or {}
        if not isinstance(layers, dict):
            raise RecordError(f"{part}.annotations is a {type(layers).__name__}")
        self.part, self.text, self._layers = part, printable(text or ""), layers

    def has(self, name: str | None) -> bool:
        """Whether a layer exists and is not null."""
        return name is not None and self._layers.get(name) is not None

    def read(self, name: str, faults: list[str], *, with_place: bool = True) -> Iterator[_Annotation]:
        """The annotations of a layer in the order of the record; without those that do not fit the text."""
        layer = self._layers.get(name)
        if isinstance(layer, str):
            try:
                layer = orjson.loads(layer)
            except orjson.JSONDecodeError as error:
                faults.append(f"{self.part}.{name} is not JSON: {error.msg}")
                return
        if layer is None:
            return
        if not isinstance(layer, list):
            faults.append(f"{self.part}.{name} is a {type(layer).__name__}, not a list")
            return
        for item in layer:
            attributes = item.get("attributes") if isinstance(item, dict) else None
            start, end = (_offset(item, key) for key in ("start", "end"))
            if start is not None and end is not None and start < end <= len(self.text):
                yield _Annotation(start, end, attributes if isinstance(attributes, dict) else {})
            elif with_place or not isinstance(item, dict):
                faults.append(f"{self.part}.{name}: {item!r:.80} does not fit a text of {len(self.text)} characters")
            else:
                faults.append(f"{self.part}.{name}: {item!r:.80} has no place in the text")
                yield _Annotation(0, 0, attributes if isinstance(attributes, dict) else {})


def _offset(item: Any, key: str) -> int | None:
    value = item.get(key) if isinstance(item, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_OFFSET:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _assembled(paper_id: str, body: _Layers, bibliography: _Layers, names: Mapping[str, str]) -> FullText:
    if not body.text:
        raise RecordError("its text is missing")
    faults: list[str] = []
    headers = body.read(names["section_header"], faults)
    headlines = sorted({Headline(item.start, item.end, str(item.attributes.get("n") or "")) for item in headers})
    starts = [headline.start for headline in headlines]
    paragraphs = []
    for start, end in sorted({(item.start, item.end) for item in body.read(names["paragraph"], faults)}):
        at = bisect_right(starts, start) - 1
        heading = " ".join(body.text[headlines[at].start : headlines[at].end].split()) if at >= 0 else ""
        paragraphs.append(Paragraph(start, end, heading or None))
    sentences = None
    if body.has(names.get("sentence")):
        sentences = tuple(sorted({(item.start, item.end) for item in body.read("sentence", faults)}))
    return FullText(
        paper_id=paper_id,
        text=body.text,
        paragraphs=tuple(paragraphs),
        sentences=sentences,
        bib_refs=_bib_refs(body, names["bib_ref"], faults),
        bib_entries=_bib_entries(bibliography, names["bib_entry"], faults),
        faults=tuple(faults),
        headlines=tuple(headlines),
    )


def _bib_refs(body: _Layers, name: str, faults: list[str]) -> tuple[BibRef, ...]:
    refs: dict[BibRef, None] = {}
    for item in body.read(name, faults):
        start, end = item.start, item.end
        if _cuts_a_word(body.text, start) or _cuts_a_word(body.text, end):
            faults.append(f"{body.part}.{name}: {start} to {end} begins or ends within a word")
            continue
        try:
            entry_id = optional_id(item.attributes, "ref_id")
        except RecordError as error:
            faults.append(f"{body.part}.{name}: {error}")
            entry_id = None
        refs[BibRef(start, end, entry_id)] = None
    return tuple(sorted(refs, key=lambda ref: (ref.start, ref.end, ref.entry_id or "")))


def _cuts_a_word(text: str, place: int) -> bool:
    """Whether a place has letters on both sides, or digits on both: a superscript may follow a letter."""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    return (left.isalpha() and right.isalpha()) or (left.isdecimal() and right.isdecimal())


def _bib_entries(bibliography: _Layers, name: str, faults: list[str]) -> dict[str, BibEntry]:
    entries: dict[str, BibEntry] = {}
    # An entry with a wrong place still says which paper it is.
    for item in bibliography.read(name, faults, with_place=False):
        try:
            entry_id = optional_id(item.attributes, "id")
            paper_id = optional_id(item.attributes, "matched_paper_id")
        except RecordError as error:
            faults.append(f"{bibliography.part}.{name}: {error}")
            continue
        if entry_id:
            text = " ".join(bibliography.text[item.start : item.end].split())
            entries.setdefault(entry_id, BibEntry(paper_id, text))
    return entries
