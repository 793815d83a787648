"""Full texts in the format of S2ORC, v1 and v2: paragraphs with their citations, sentences and sections.

Both versions become the same record. An annotation that does not fit its text is a fault: it is set aside.
"""

import functools
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.contexts.markers import CitationMarker, Spans, Style, find_markers
from citerec.contexts.sections import Section, with_number
from citerec.contexts.split import Span, sentences_of, splitter, trimmed, with_trailing
from citerec.corpus.reading import (
    FULL_TEXT_BYTES,
    BadRecord,
    RecordError,
    json_object,
    optional_id,
    parsed,
    raw_lines,
    read_count,
    read_id,
    read_list,
    read_object,
    read_year,
)
from citerec.errors import SourceError
from citerec.files.addresses import client_failures, expanded
from citerec.files.text import printable

_SUFFIXES = (".jsonl", ".json", ".gz")


class Headline(NamedTuple):
    """The headline of a section: its place, and the number that the source gives separately, or an empty text."""

    start: int
    end: int
    number: str


class Paragraph(NamedTuple):
    """A paragraph: its place, and the heading above it."""

    start: int
    end: int
    section: str | None


class BibRef(NamedTuple):
    """A place at which the text cites, and the id of the bib entry that it cites; None if the source has none."""

    start: int
    end: int
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class FullText:
    """The full text of a paper. Offsets refer to `text`; paragraphs, sentences and bib refs are in order.

    Attributes:
        paper_id: Its corpusid.
        year: Its year, if the record has one: those of S2AG have none.
        headlines: The headlines of its sections, in order.
        sentences: Start and end of each; none if the source does not give them.
        bib_entries: By id.
        faults: Messages about annotations that did not fit the text.
    """

    paper_id: str
    text: str
    paragraphs: tuple[Paragraph, ...]
    sentences: tuple[tuple[int, int], ...]
    bib_refs: tuple[BibRef, ...]
    bib_entries: Mapping[str, str | None]
    faults: tuple[str, ...]
    headlines: tuple[Headline, ...] = ()
    year: int | None = None

    def papers_of(self, entry_ids: Iterable[str | None]) -> Iterator[str]:
        """The matched papers of bib entries, one after another."""
        return filter(None, (self.bib_entries.get(entry_id or "") for entry_id in entry_ids))

    def cited_ids(self) -> frozenset[str]:
        """The matched papers that its text cites."""
        return frozenset(self.papers_of(ref.entry_id for ref in self.bib_refs))


class TextLine(NamedTuple):
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
    return list(dict.fromkeys(file for path in expanded(paths) for file in _texts_at(path)))


def _texts_at(path: Path) -> list[Path]:
    if not path.exists():
        raise SourceError(f"{path} does not exist", "Give a folder of S2ORC shards, or one of them.")
    if path.is_file():
        return [path]
    versions = [path / name for name in ("s2orc", "s2orc_v2") if (path / name).is_dir()]
    if len(versions) == 2:
        raise SourceError(f"{path} holds both versions of S2ORC", f"Give one: {versions[0]} or {versions[1]}")
    folder = versions[0] if versions else path
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name.lower().endswith(_SUFFIXES))
    if not files:
        raise SourceError(f"{folder} holds no shards of S2ORC", "They end in .jsonl or .gz")
    return files


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
    faults: list[str] = []
    if "body" in record:
        body, bibliography = _Layers(record, "body", faults), _Layers(record, "bibliography", faults)
    elif "content" in record:
        body = bibliography = _Layers(record, "content", faults)
    else:
        raise RecordError("it has neither content (s2orc) nor body (s2orc_v2)")
    if not body.text:
        raise RecordError("its text is missing")
    headers = body.read("section_header")
    headlines = sorted({Headline(start, end, str(more.get("n") or "")) for start, end, more in headers})
    return FullText(
        paper_id=paper_id,
        text=body.text,
        paragraphs=tuple(_paragraphs(body, headlines)),
        sentences=tuple(body.spans("sentence")),
        bib_refs=_bib_refs(body),
        bib_entries=_bib_entries(bibliography),
        faults=tuple(faults),
        headlines=tuple(headlines),
        year=read_year(record, "year"),
    )


class _Layers:
    """A text and the layers of annotations over it; what is wrong with them goes to `faults`."""

    def __init__(self, record: Mapping[str, Any], part: str, faults: list[str]) -> None:
        holder = read_object(record, part)
        self.part, self.text, self._faults = part, printable(str(holder.get("text") or "")), faults
        self._layers = read_object(holder, "annotations")

    def _own(self, name: str) -> str:
        """The name of a layer in this version: v1 writes `bibref`."""
        return name.replace("_", "") if self.part == "content" else name

    def fault(self, name: str, what: object) -> None:
        """Sets aside what is wrong with an annotation of a layer."""
        self._faults.append(f"{self.part}.{self._own(name)}: {what}")

    def ids(self, name: str, attributes: Mapping[str, Any], *keys: str) -> list[str | None]:
        """The ids in the attributes of an annotation, by their keys; None for all if one is wrong."""
        try:
            return [optional_id(attributes, key) for key in keys]
        except RecordError as error:
            self.fault(name, error)
            return [None] * len(keys)

    def spans(self, name: str) -> list[tuple[int, int]]:
        """The places of the annotations of a layer, in order of place, each once."""
        return sorted({(start, end) for start, end, _ in self.read(name)})

    def read(self, name: str, *, with_place: bool = True) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
        """Start, end and attributes of the annotations of a layer, without those that do not fit the text.

        If they may be without a place, these are from 0 to 0.
        """
        layer = self._layers.get(self._own(name))
        try:
            layer = orjson.loads(layer) if isinstance(layer, str) else layer
            items = read_list({name: layer}, name)
        except (orjson.JSONDecodeError, RecordError) as error:
            self.fault(name, error)
            return
        for item in items:
            attributes: Mapping[str, Any] = {}
            try:
                attributes = read_object(json_object(item), "attributes")
                start, end = (read_count(item, key, len(self.text)) for key in ("start", "end"))
                if start is None or end is None or start >= end:
                    raise RecordError("it has no place in the text")
            except RecordError as error:
                self.fault(name, f"{item!r:.80}: {error}")
                start = end = 0
            if end or not with_place:
                yield start, end, attributes


def _paragraphs(body: _Layers, headlines: Sequence[Headline]) -> Iterator[Paragraph]:
    for start, end in body.spans("paragraph"):
        above = headlines[: bisect_left(headlines, (start + 1,))]
        heading = " ".join(body.text[above[-1].start : above[-1].end].split()) if above else ""
        yield Paragraph(start, end, heading or None)


def _bib_refs(body: _Layers) -> tuple[BibRef, ...]:
    refs: set[BibRef] = set()
    for start, end, attributes in body.read("bib_ref"):
        if _cuts_a_word(body.text, start) or _cuts_a_word(body.text, end):
            body.fault("bib_ref", f"{start} to {end} begins or ends within a word")
            continue
        refs.add(BibRef(start, end, *body.ids("bib_ref", attributes, "ref_id")))
    return tuple(sorted(refs, key=lambda ref: (ref.start, ref.end, ref.entry_id or "")))


def _cuts_a_word(text: str, place: int) -> bool:
    """Whether a place has letters on both sides, or digits on both: a superscript may follow a letter."""
    sides = text[max(0, place - 1) : place + 1]
    return len(sides) == 2 and place > 0 and (sides.isalpha() or sides.isdecimal())


def _bib_entries(bibliography: _Layers) -> dict[str, str | None]:
    entries: dict[str, str | None] = {}
    # An entry with a wrong place still says which paper it is.
    for _, _, attributes in bibliography.read("bib_entry", with_place=False):
        entry_id, paper_id = bibliography.ids("bib_entry", attributes, "id", "matched_paper_id")
        if entry_id:
            entries.setdefault(entry_id, paper_id)
    return entries


_ENTRY_ID = re.compile(r"(\D*)(\d+)")
_DASHES = frozenset("–—‐-−")
# What the bib refs of a paper look like, with the character before each.
_IN_PARENTHESES = re.compile(r".?\(\s?\d{1,3}\s?[,;)–-]?")
_NAMED = re.compile(r"[^\W\d_]{2}|(?:1[6-9]|20)\d\d")
_RAISED = re.compile(r"[^\s\[(]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹][\d⁰¹²³⁴⁵⁶⁷⁸⁹,–-]*")


class Document:
    """A full text, its headlines with their numbers, and the citations of its paragraphs.

    Paragraphs are named by their place in `paragraphs`; of two that overlap, the first counts.

    Args:
        text: The full text.
        split: The sentence splitter for sources without sentences.
    """

    def __init__(self, text: FullText, split: str = "pysbd") -> None:
        self.text, self._split = text, split
        self.paragraphs: list[Paragraph] = []
        for paragraph in text.paragraphs:
            if not self.paragraphs or paragraph.start >= self.paragraphs[-1].end:
                self.paragraphs.append(paragraph)
        self._markers: dict[int, list[CitationMarker]] = {}

    def sections(self) -> list[Section]:
        """Its sections one after another; text before the first headline is in none."""
        headlines = self.text.headlines
        sections = [with_number(self.text.text[one.start : one.end], one.number) for one in headlines]
        for place, paragraph in enumerate(self.paragraphs):
            if at := bisect_left(headlines, (paragraph.start + 1,)):
                sections[at - 1].paragraphs.append(place)
        return sections

    def whole(self, place: int) -> str:
        """The text of a paragraph."""
        paragraph = self.paragraphs[place]
        return self.text.text[paragraph.start : paragraph.end]

    def refs(self, place: int) -> Sequence[BibRef]:
        """The bib refs within a paragraph, in order."""
        paragraph = self.paragraphs[place]
        first, last = (bisect_left(self.text.bib_refs, (end,)) for end in (paragraph.start, paragraph.end))
        return [ref for ref in self.text.bib_refs[first:last] if ref.end <= paragraph.end]

    def _hints(self, place: int) -> list[Span]:
        """The places of the bib refs in a paragraph."""
        start = self.paragraphs[place].start
        return [(ref.start - start, ref.end - start) for ref in self.refs(place)]

    def markers(self, place: int) -> list[CitationMarker]:
        """The citation markers of a paragraph in order, mangled ones too."""
        if place not in self._markers:
            self._markers[place] = find_markers(self.whole(place), self._hints(place), self._believed)
        return self._markers[place]

    def citations(self, place: int) -> list[tuple[CitationMarker, tuple[str, ...]]]:
        """The citations of a paragraph in order, each with the ids of its bib entries.

        What has no bib ref counts if it is sound, and written in a style that the paper uses.
        """
        hinted = Spans(self._hints(place))
        counted = (one for one in self.markers(place) if one.is_sound or hinted(one.start, one.end))
        return [(marker, self.entry_ids(place, marker)) for marker in counted]

    def sentences(self, place: int) -> list[Span]:
        """The places of the sentences in a paragraph: those of the source, or else by the splitter."""
        spans = self._given_sentences(place)
        return spans or sentences_of(self.whole(place), self.markers(place), splitter(self._split))

    def _given_sentences(self, place: int) -> list[Span]:
        """The sentences of the source; none if they overlap, or leave out a citation."""
        whole, paragraph, all_spans = self.whole(place), self.paragraphs[place], self.text.sentences
        first, last = (bisect_left(all_spans, (end, 0)) for end in (paragraph.start, paragraph.end))
        inside = [span for span in all_spans[first:last] if span[1] <= paragraph.end]
        spans = [trimmed(whole, start - paragraph.start, end - paragraph.start) for start, end in inside]
        if any(start < before for (_, before), (start, _) in itertools.pairwise(spans)):
            return []
        sentences = with_trailing(whole, spans, self.markers(place))
        covered = Spans(sentences)
        return sentences if all(covered(marker.start, marker.end) for marker in self.markers(place)) else []

    def entry_ids(self, place: int, marker: CitationMarker) -> tuple[str, ...]:
        """The bib entries of a citation marker: those of the bib refs that it overlaps, and those within its range."""
        start, end = (self.paragraphs[place].start + at for at in (marker.start, marker.end))
        near = (ref.entry_id or "" for ref in self.refs(place) if start < ref.end and ref.start < end)
        ids = [entry_id for entry_id in near if entry_id in self.text.bib_entries]
        if self._shift and 0 < len(set(ids)) < marker.works:
            prefix, shift = self._shift
            ids = [*(f"{prefix}{number + shift}" for number in marker.numbers), *ids]
        return tuple(dict.fromkeys(entry_id for entry_id in ids if entry_id in self.text.bib_entries))

    def papers_cited(self, place: int) -> Set[str]:
        """The papers to which the bib refs of a paragraph lead, including those of a range between two of them."""
        refs = self.refs(place)
        if any(not _DASHES.isdisjoint(self.text.text[ref.start : ref.end + 2]) for ref in refs):
            return self._papers
        return set(self.text.papers_of(ref.entry_id for ref in refs))

    def cited_before(self, place: int) -> tuple[str, ...]:
        """The papers cited before a character of the text, once for each bib ref that leads to one; never itself."""
        refs = self.text.bib_refs[: bisect_left(self.text.bib_refs, (place,))]
        papers = self.text.papers_of(ref.entry_id for ref in refs if ref.end <= place)
        return tuple(paper_id for paper_id in papers if paper_id != self.text.paper_id)

    @functools.cached_property
    def _papers(self) -> Set[str]:
        return set(filter(None, self.text.bib_entries.values()))

    @functools.cached_property
    def _shift(self) -> tuple[str, int] | None:
        """What makes an entry's id of its number: the letters before it, and how much is added to it.

        None unless all bib refs with one number agree: ids count from 0 or from 1.
        """
        shifts: set[tuple[str, int]] = set()
        for ref in self.text.bib_refs:
            digits = re.findall(r"\d+", self.text.text[ref.start : ref.end]) if ref.end - ref.start < 9 else []
            if len(digits) == 1 and (match := _ENTRY_ID.fullmatch(ref.entry_id or "")):
                shifts.add((match[1], int(match[2]) - int(digits[0])))
        return shifts.pop() if len(shifts) == 1 else None

    @functools.cached_property
    def _believed(self) -> frozenset[Style]:
        """The styles of its bib refs, which the paper may use. `(3)` may be an equation, `(Paris, 1998)` a fair."""
        surfaces = [self.text.text[max(0, ref.start - 1) : ref.end].strip() for ref in self.text.bib_refs]
        years = not surfaces or any(map(_NAMED.search, surfaces))
        used = {
            Style.AUTHOR_YEAR_PARENTHESES: years,
            Style.AUTHOR_YEAR_TEXT: years,
            Style.NUMBERED_PARENTHESES: any(map(_IN_PARENTHESES.match, surfaces)),
            Style.SUPERSCRIPT: any(map(_RAISED.fullmatch, surfaces)),
        }
        return frozenset(style for style in Style if used.get(style, True))
