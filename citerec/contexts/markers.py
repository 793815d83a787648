"""The citation parser: finds the citation markers (places that cite) of a text, and tells sound from mangled ones.

Names with years are read token by token, from left to right or in a window of fixed width; brackets with numbers are
read by patterns. The time is linear in the length of the text.
"""

import functools
import itertools
import re
import tomllib
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import resources
from typing import NamedTuple

from citerec.records import MARKER

LONGEST = 600
"""Brackets that are more characters apart than this hold no citation."""

GREATEST = 999
"""Greater numbers are years, or not citations."""

# Repeats are possessive (`++`) or bounded: no input makes them try twice.
_BRACKET = re.compile(r"[()\[\]]")
_CLOSER = {"(": ")", "[": "]"}
_WORD_BEFORE = re.compile(r"[^\W_]*$")
_LOST_NAME = re.compile(r"(?<!\w)[A-Z]\w{1,30}\s(?:and|&)\s$|(?<!\w)et\sal\.?\s$")
_UNRESOLVED = re.compile(r"[\[(][\s\d,;]{0,40}\?[\s\d,;?]{0,40}[\])]")
_YEAR = r"(?:1[6-9]|20)\d\d"

_LABEL_WORD = r"(?:[a-z]{0,3}[^\W\d_a-z][^\W\d_]{1,11}\+?|[a-z]{1,3}[A-Z]|[A-Z]\+)[’']?\d{2}(?:\d\d)?[a-z]?"
_LABEL = re.compile(rf"\s*+(?:see |cf\. )?{_LABEL_WORD}(?:\s?+[,;]\s?+{_LABEL_WORD})*+(?:,\s[^\[\]()]{{1,40}})?\s*+")

_DASH = "–—‐‑‒−-"
_JOINT = re.compile(rf"\s?+[,;{_DASH}]?\s?+")
_LIFETIME = re.compile(rf"\d{{4}}\s?[{_DASH}]\s?\d{{4}}")
_ITEM = rf"\d{{1,4}}(?!\d)[a-z]?(?:\s?+[{_DASH}]\s?+\d{{1,4}}(?!\d)[a-z]?)?"
_LIST = rf"{_ITEM}(?:(?:\s?+[,;]\s?+(?:and\s)?|\s(?:and|&)\s){_ITEM})*+"  # numbers and ranges of numbers
_BROKEN_LIST = re.compile(rf"\s*+{_LIST}\s?+[,;{_DASH}]?\s*+")
_LEAD = r"(?:reviewed in|see|e\.g\.|cf\.|also|i\.e\.|[Rr]efs?\.|for example|see also|see, e\.g\.),?"
_PLACE = (
    r"(?:\s?+[,:;]\s?+(?!\d)(?:see\s)?[^\[\]()\d]{0,40}\d[^\[\]()]{0,40}"
    r"|,?\s?+(?:and|&)\s(?:references|others)[^\[\]()]{0,30}|\sfor\s(?:a\s)?reviews?)"
)
# The content of a bracket with a numbered citation: lead-in, numbers, place in the cited work.
_NUMBERED = re.compile(rf"\s*+(?:{_LEAD}\s?+){{0,2}}(?P<list>{_LIST})(?P<place>{_PLACE})?\s*+")
_INTERVAL_BEFORE = re.compile(
    r"(?:[∈=≤≥<>×∪∩]|\b(?:interval|intervals|range|ranges|between|within|domain|coordinates|scale|bounds?))\s*+$"
)
_SEQUENCE_BEFORE = re.compile(r"\b(?:sequence|list|array|vector|tuple)\s*+$")

# Raised citations: superscript characters, markup, and digits that the extraction from PDF has flattened.
_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = str.maketrans(_DIGITS + "⁻˒", "0123456789–,")
_RAISED = re.compile(
    rf"(?P<sign>[{_DIGITS}][{_DIGITS},⁻–˒-]*+)"
    rf"|\^\{{(?P<braced>{_LIST})\}}|\^(?P<hat>\d{{1,3}}(?:[,{_DASH}]\d{{1,3}})*+)|<sup>\s?+(?P<markup>{_LIST})\s?+</sup>"
)
_FLATTENED = re.compile(
    rf"(?<=[.,;:?!”\"’])(?P<list>[1-9]\d{{0,2}}(?:,?[{_DASH}]\d{{1,3}}(?!\d)|,\s?\d{{1,3}}(?!\d))*+)"
)
# Before what is no citation: the dash of a unit; a letter or two, or a number, of which it is a power; and nothing, as
# before a footnote.
_NO_RAISED = re.compile(rf"[⁻⁺]$|(?<![^\W_])[^\W_]{{1,2}}$|[\d{_DIGITS}]$|\s\s$|\A\s?$")
# Apart from the list, which would be tried again from each of its numbers.
_GOES_ON = re.compile(r"[\w%°)\]/–-]|[.,:]\d|\s?+(?:%|percent)")

# Author–year citations.
_WINDOW = 160  # characters before a year in which its names must be
_UNDATED = (
    r"in\s+press|under\s+review|in\s+revision|in\s+prep(?:aration|\.)?|forthcoming|to\s+appear|submitted|accepted"
    r"|unpublished|n\.\s?d\."
)

# Possessive repeats (`++`) give nothing back: no input makes them try twice.
_TOKEN = re.compile(
    rf"""
    (?P<year>{_YEAR}(?!\d)(?:\s?[–-]\s?{_YEAR}(?!\d)|/\s?{_YEAR}(?!\d))?(?:[a-z](?:[–-][a-z])?(?!\w))?|(?i:{_UNDATED})(?!\w))
  | (?P<marker><REF>)
  | (?P<etal>[Ee]t\.?\s*al(?!\w)\.?(?:['’]s?(?!\w))?|and\s+(?:others|colleagues|co-?workers|associates)(?!\w))
  | (?P<lead>(?:e\.\s?g\.|i\.\s?e\.|cf\.?(?!\w)|viz\.))
  | (?P<place>
      (?:pp?|bk|book|study|experiment|exp|lines?|ll|n|ch|chaps?|chapters?|sec|sect|sections?|figs?|figures?|tables?|tab|eqs?|equations?|theorem|thm|lemma
        |vols?|nos?|appendix|part|pages?|examples?|prop|proposition|note|footnote|fn|para|§)
      \.?\s?(?:\d[\w.]*+(?:\s?[–—-]\s?\d++)?|[ivxl]++(?:[–-][ivxl]++)?)(?!\w)
      | :\s?\d++(?:\s?[–—-]\s?\d++)?(?!\w)
      | (?:[Aa]ppendix|[Aa]pp\.)\s[A-Z](?!\w)
    )
  | (?P<number>\d++(?:\s?[–—-]\s?\d++)?(?!\w))
  | (?P<initial>[A-Z]\.(?:[\s-]?[A-Z]\.)*+(?!\w))
  | (?P<word>[^\W\d_](?:[\w'’‐¨´-]|\.(?=\w)|(?<=-)\s(?=[a-zà-ÿ]{{2}}))*+)
  | (?P<amp>&(?:amp;)?)
  | (?P<comma>,|:(?=\s))
  | (?P<semicolon>;)
  | (?P<dot>\.)
  | (?P<space>\s++)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_BARE_YEAR = re.compile(rf"(?<![\w(\[–-]){_YEAR}(?!\d)(?:[a-z](?!\w))?(?![–-]\d)")

_WITHIN_NAMES = ("of", "for", "the", "on")  # Bureau of Statistics
_ACRONYM = 3  # letters from which capitals alone are a meeting's name rather than an author's

# Names as patterns over codes, one letter for each token (`_code`): "St. Clair", "van der Roy", "Souza e Silva, Jr.".
_NAME = r"(?:S\.|(?:[PSpi]|[NPSJ]b)*)[NPSJ](?:,*J\.)?"
_NAMES = re.compile(
    rf"(?P<others>(?:{_NAME}[&,]+)*{_NAME},*e,*)$|(?P<joined>(?:{_NAME}[&,]+)*{_NAME},*&[&,]*{_NAME},*)$|{_NAME},*$"
)
_CODES = {"initial": "i", "particle": "p", "etal": "e", "amp": "&", "comma": ",", "dot": "."}
_CODES_OF_WORDS = {"St": "S", "Jr": "J", "Sr": "J", "e": "b", "y": "b"}


class Style(StrEnum):
    """How a citation is written."""

    NUMBERED_BRACKETS = "numbered-brackets"
    NUMBERED_PARENTHESES = "numbered-parentheses"
    SUPERSCRIPT = "superscript"
    AUTHOR_YEAR_PARENTHESES = "author-year-parentheses"
    AUTHOR_YEAR_TEXT = "author-year-text"
    LABEL = "label"
    MANGLED = "mangled"


ALL_STYLES = frozenset(Style)


@dataclass(frozen=True, slots=True)
class CitationMarker:
    """A place at which a text cites.

    Attributes:
        end: First character after it.
        style: How it is printed; MANGLED if it is broken.
        works: How many works it cites; 0 if it is mangled.
        numbers: The numbers of a numbered one, ranges expanded.
    """

    start: int
    end: int
    style: Style = Style.MANGLED
    works: int = 0
    numbers: tuple[int, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether it is in a regular style."""
        return self.style is not Style.MANGLED


class Spans:
    """Tells whether a span overlaps one of a set of spans."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        in_order = sorted(spans)
        self._starts = [start for start, _ in in_order]
        self._ends = list(itertools.accumulate((end for _, end in in_order), max))  # how far those up to it reach

    def __call__(self, start: int, end: int) -> bool:
        """Whether characters from start to end overlap one of them."""
        at = bisect_right(self._starts, end - 1)
        return at > 0 and self._ends[at - 1] > start


def trimmed_end(text: str, place: int, signs: str = " \t\n\r\x0b\x0c\xa0") -> int:
    """A place moved back over the white space (or other characters) before it."""
    while place and text[place - 1] in signs:
        place -= 1
    return place


# Authors and years


@dataclass(slots=True)
class Reading:
    """The citations in a text between brackets.

    Attributes:
        years_first: Years before any name: they belong to names before the bracket.
        prose: Whether there is other text.
        has_marker: Whether there is a `<REF>`.
        broken: Whether an author has no year, or a year no author.
        ends_open: Whether it ends in names without a year.
    """

    entries: list[CitationMarker] = field(default_factory=list)
    years_first: int = 0
    prose: bool = False
    has_marker: bool = False
    broken: bool = False
    ends_open: bool = False

    @property
    def whole(self) -> bool:
        """Whether everything between the brackets belongs to citations."""
        return not self.prose and not self.ends_open

    @property
    def works(self) -> int:
        """How many works are cited."""
        return self.years_first + sum(entry.works for entry in self.entries)

    def go_on(self, end: int, works: int = 0) -> None:
        """Adds the text up to a place, with some works, to the last citation; before any, to the years."""
        if self.entries:
            last = self.entries[-1]
            self.entries[-1] = replace(last, end=end, works=last.works + works)
        else:
            self.years_first += works


class Names(NamedTuple):
    """The start of the names before a year or a bracket; sure if `and`, `&` or `et al.` says that they are authors."""

    start: int
    sure: bool


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


@functools.cache
def vocabulary(name: str) -> frozenset[str]:
    """A set of words by its name in vocabulary.toml, in lower case: they tell citations from similar text."""
    text = resources.files("citerec.contexts").joinpath("vocabulary.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)[name].split())


def _tokens(text: str, start: int, end: int) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text, start, end):
        kind, word = str(match.lastgroup), match.group()
        if kind != "space":
            yield _Token(_kind_of_word(word) if kind == "word" else kind, word, *match.span())


def _kind_of_word(word: str) -> str:
    lower = word.lower()
    if lower in ("and", "und"):
        return "amp"
    if len(word) == 1 and word.isalpha():
        return "letter" if word.islower() else "initial"
    if lower in vocabulary("particles") and not word[0].isupper():
        return "particle"
    if lower in vocabulary("leads") and (not word[0].isupper() or lower in vocabulary("no_names")):
        return "lead"
    return "name" if _is_name(word) else "other"


def _is_name(word: str) -> bool:
    """Whether a word looks like a surname: it has a capital, and is not a month, heading or function word."""
    head = word.removesuffix("'s").removesuffix("’s")
    if head.lower() in vocabulary("no_names") or any(character.isdigit() for character in head):
        return False
    # d'Alembert, al-Rahman, deHaan
    return len(head) > 1 if head[0].isupper() else bool(re.match(r"[a-z]{1,3}['’-]?[A-Z]", head))


def read_bracket(text: str, start: int, end: int) -> Reading:
    """Reads the text between an opening bracket, just before `start`, and the closing one at `end`."""
    reading, names = Reading(), list[_Token]()
    last = ""  # what the last token was: name, year, or something between
    for token in _tokens(text, start, end):
        match token.kind:
            case "name" | "particle" | "initial" | "etal" | "amp":
                names.append(token)
                last = "name"
            case "comma" if names:
                names.append(token)
            case "comma" | "dot":
                pass
            case "semicolon":
                reading.prose |= _has_name(names)
                reading.broken |= _are_authors(names)
                names = []
            case "year":
                reading.broken |= _has_name(names) and names[-1].kind == "amp"
                if _has_name(names) and not _is_meeting(names):
                    first = _first_of(names, reading.prose)
                    style = Style.AUTHOR_YEAR_PARENTHESES
                    reading.entries.append(CitationMarker(first.start, token.end, style, _works(token)))
                elif reading.entries and last in ("year", "place"):
                    reading.go_on(token.end, _works(token))
                elif not reading.entries and not names and last in ("", "year"):
                    reading.go_on(token.end, 1)
                else:
                    reading.prose = True
                names, last = [], "year"
            case "letter" if last == "year" and reading.works:
                reading.go_on(token.end, 1)
            case "place" | "number" if reading.works and (token.kind == "place" or last in ("year", "place")):
                names, last = [], "place"
                reading.go_on(token.end)
            case "marker":
                reading.has_marker = True
                names, last = [], "marker"
            case "lead" | "letter" if token.kind == "lead" or token.text == "a":
                if not (_has_name(names) and token.text in _WITHIN_NAMES):
                    reading.prose |= _has_name(names)  # "see", or "in": names before it are prose
                    names = []
            case _:
                reading.prose = True
                names, last = [], "other"
    reading.broken |= _are_authors(names)
    reading.ends_open = _has_name(names)
    return reading


def _has_name(names: Sequence[_Token]) -> bool:
    return any(token.kind == "name" for token in names)


def _are_authors(names: Sequence[_Token]) -> bool:
    return _has_name(names) and any(token.kind == "etal" and token.text[0] in "eE" for token in names)


def _works(year: _Token) -> int:
    """The works of a year, `1998a–c`: three."""
    letters = re.search(r"([a-z])[–-]([a-z])$", year.text)
    return max(ord(letters[2]) - ord(letters[1]) + 1, 1) if letters else 1


def _is_meeting(names: Sequence[_Token]) -> bool:
    """Whether it is a meeting with its year, `SIGIR 2010`, rather than an author."""
    only = [token.text for token in names if token.kind != "initial"]
    return len(only) == 1 and only[0].isupper() and len(only[0]) >= _ACRONYM


def _first_of(names: Sequence[_Token], prose: bool) -> _Token:
    """Where the names begin: in a bracket with prose, those that a comma separates from it."""
    if not prose or any(token.kind in ("etal", "amp") for token in names):
        return next(token for token in names if token.kind not in ("comma", "amp"))
    after_comma = (after for before, after in itertools.pairwise(names) if before.kind == "comma")
    return [names[0], *after_comma][-1]


def names_before(text: str, end: int) -> Names | None:
    """The names that end at a place, or before the white space there: `Lee, Kim and Roy (2003)`; None if none do."""
    end = trimmed_end(text, end)
    start = max(0, end - _WINDOW)
    if start and (start := text.find(" ", start, end)) < 0:  # do not begin within a word
        return None
    tokens = list(_tokens(text, start, end))
    match = _NAMES.search("".join(map(_code, tokens)))
    return Names(tokens[match.start()].start, match.lastgroup is not None) if match else None


def _code(token: _Token) -> str:
    if token.kind == "name" and token.text not in _CODES_OF_WORDS:
        return "P" if token.text.lower() in vocabulary("particles") else "N"
    return _CODES_OF_WORDS.get(token.text) or _CODES.get(token.kind, "-")


# Citation markers


def find_markers(
    text: str, hints: Sequence[tuple[int, int]] = (), believed: Container[Style] = ALL_STYLES
) -> list[CitationMarker]:
    """The citation markers of a text, in order and without overlaps, in time linear in the length of the text.

    Args:
        text: A sentence or a paragraph.
        hints: Spans known to be citations (the bib refs of S2ORC): there, a number is a citation, and anything without
            a regular style is mangled.
        believed: Styles of citations without a hint: in a paper that cites as `[12]`, `(3)` is an equation.
    """
    hinted = Spans(hints)
    parser = _Parser(text, hinted)
    markers = _without_overlaps([*parser.in_brackets(), *_raised(text), *_flattened(text, hints)])
    markers = _without_overlaps([*markers, *parser.in_running_text(markers)])
    markers = _without_enumerations(text, markers, hinted)
    markers = [marker for marker in markers if marker.style in believed or hinted(marker.start, marker.end)]
    markers = [parser.with_stray(marker) for marker in _joined(text, markers)]
    return _without_overlaps([*markers, *_from_hints(text, markers, hints)])


class _Parser:
    """Finds the citations of a text that its brackets or its names with years show."""

    def __init__(self, text: str, hinted: Spans) -> None:
        self.text, self.hinted = text, hinted
        self.places = [match.start() for match in _BRACKET.finditer(text)]
        self.partner: dict[int, int] = {}  # of each bracket that has one
        opened: list[int] = []
        for place in self.places:
            if text[place] in _CLOSER:
                opened.append(place)
                continue
            for depth in (1, 2):  # in `( … [ … )` the inner one stays open
                if len(opened) >= depth and _CLOSER[text[opened[-depth]]] == text[place]:
                    self.partner |= {opened[-depth]: place, place: opened[-depth]}
                    del opened[-depth:]
                    break

    def is_stray(self, place: int) -> bool:
        """Whether a closing bracket without a partner stands at a place."""
        return self.text[place : place + 1] in (")", "]") and place not in self.partner

    def in_brackets(self) -> Iterator[CitationMarker]:
        """The citations in brackets, and those whose years are in brackets."""
        until = 0
        for place, following in itertools.pairwise([*self.places, len(self.text)]):
            if self.text[place] not in _CLOSER or place < until or following - place > LONGEST:
                continue
            partner = self.partner.get(place)
            if partner is None:
                markers = self._broken(place, following)
            elif partner == following:
                markers = list(self._in_pair(place, partner, self.hinted(place, partner + 1)))
            else:
                markers = self._around_inner(place, following, partner)
            yield from markers
            until = max((marker.end for marker in markers), default=until)

    def _in_pair(self, place: int, partner: int, is_hinted: bool) -> Iterator[CitationMarker]:
        """The citation markers between two brackets with no other bracket between them."""
        square, end = self.text[place] == "[", partner + 1
        content = self.text[place + 1 : partner]
        match = _NUMBERED.fullmatch(content)
        numbers = _expanded(match["list"]) if match else ()
        is_free = is_hinted and not re.fullmatch(rf"{_YEAR}[a-z]?", content.strip())  # to be any number
        if "?" in content and _UNRESOLVED.fullmatch(self.text, place, end):
            yield CitationMarker(place, end)
        elif match and numbers and (is_free or max(numbers) <= GREATEST):
            if is_hinted or (_cites_in_brackets if square else _cites_in_parentheses)(self.text, place, match):
                style = Style.NUMBERED_BRACKETS if square else Style.NUMBERED_PARENTHESES
                yield CitationMarker(place, end, style, len(numbers), numbers)
        elif square and not match and _LABEL.fullmatch(content):
            yield CitationMarker(place, end, Style.LABEL, len(re.findall(_LABEL_WORD, content)))
        else:
            yield from self._years_in_pair(place, partner)

    def _years_in_pair(self, place: int, partner: int) -> Iterator[CitationMarker]:
        """Authors and years between two brackets, or years alone after the names of their authors."""
        reading, end = read_bracket(self.text, place + 1, partner), partner + 1
        if reading.years_first:
            yield from self._years_alone(place, end, reading)
        elif not self.text[place + 1 : partner].strip():
            names = names_before(self.text, place)
            if names and names.sure:  # its year is lost
                yield CitationMarker(names.start, end)
        elif reading.broken:
            yield CitationMarker(place, end)
        elif reading.entries and reading.whole and not reading.has_marker:
            yield CitationMarker(place, end, Style.AUTHOR_YEAR_PARENTHESES, reading.works)
        else:
            yield from reading.entries

    def _years_alone(self, place: int, end: int, reading: Reading) -> Iterator[CitationMarker]:
        """`Lee et al. (1997a)`: with its names, it is a citation; without them, it may be the rest of one."""
        text = self.text
        names = names_before(text, place)
        is_lifetime = reading.works == 1 and _LIFETIME.search(text, place, end)
        if text[place + 1 : end].lstrip().startswith(","):
            yield CitationMarker(place, end)
        elif reading.whole and names and (names.sure or not is_lifetime):
            yield CitationMarker(names.start, end, Style.AUTHOR_YEAR_TEXT, reading.works)
        elif reading.whole and place == 0:
            yield CitationMarker(place, end)  # the names went with the sentence before
        elif reading.whole and (lost := _LOST_NAME.search(text, max(0, place - 40), place)):
            yield CitationMarker(lost.start(), end)

    def _around_inner(self, place: int, end: int, partner: int) -> list[CitationMarker]:
        """The markers in a bracket before another one opens in it: `(see Lee, 1997 (…))`, or two that were fused."""
        text, inner_end = self.text, self.partner.get(end, -1)
        reading = read_bracket(text, place + 1, end)
        # A bracket that opens right after a year, with a citation in it, was `, Lee et al., 1997b`.
        fused = end < inner_end <= end + LONGEST and text[end] == text[place] and text[end - 1].isalnum()
        cites = fused and reading.whole and reading.entries and not reading.has_marker
        if cites and read_bracket(text, end + 1, inner_end).entries:
            return [CitationMarker(place, partner + 1)]
        return reading.entries

    def _broken(self, place: int, end: int) -> list[CitationMarker]:
        """A bracket that is never closed, if it holds a citation; a bracket fused to it belongs to it."""
        text, square = self.text, self.text[place] == "["
        reading = read_bracket(text, place + 1, end)
        names = names_before(text, place) if reading.years_first and not reading.entries else None
        if names and names.sure:
            year = _BARE_YEAR.search(text[place + 1 : end])
            return [CitationMarker(names.start, place + 1 + (year.end() if year else 0))]
        fused, closed = self._end_of_fused(end), end + 1 if text[end : end + 1] in (")", "]") else None
        listed = _BROKEN_LIST.match(text, place + 1, end)
        numbers = _expanded(listed.group().strip(" ,;")) if listed else ()
        is_all = listed is not None and listed.end() == end
        if reading.entries:
            stop = (not reading.prose and fused) or (reading.whole and closed) or reading.entries[-1].end
        elif listed and (square or (is_all and end < len(text)) or len(numbers) > 1):
            stop = (is_all and (fused or closed)) or listed.end()
        elif square and (labels := _LABEL.fullmatch(text, place + 1, trimmed_end(text, end, " ,;"))):
            stop = fused or labels.end()
        elif fused and not text[place + 1 : end].strip():
            stop = fused  # an opening bracket too many
        else:
            return []
        return [CitationMarker(place, trimmed_end(text, stop))]

    def _end_of_fused(self, place: int) -> int | None:
        """The end of a pair of brackets that opens at a place, if it holds nothing but a citation."""
        partner = self.partner.get(place, -1)
        if not place < partner <= place + LONGEST:
            return None
        inner = next(self._in_pair(place, partner, is_hinted=False), None)
        return inner.end if inner and inner.end == partner + 1 else None

    def in_running_text(self, markers: Iterable[CitationMarker]) -> Iterator[CitationMarker]:
        """`Lee et al., 1997` without brackets; with a closing bracket that was never opened, it is mangled."""
        text = self.text
        taken = Spans((marker.start, marker.end) for marker in markers)
        for start, end in map(re.Match.span, _BARE_YEAR.finditer(text)):
            names = None if taken(start, end) else names_before(text, start)
            if names and self.is_stray(end):
                yield CitationMarker(names.start, end + 1)
            elif names and names.sure and not self._is_within(start):
                yield CitationMarker(names.start, end, Style.AUTHOR_YEAR_TEXT, 1)
        for place in self.places:
            if text[place] == "]" and self.is_stray(place):
                first = max(0, place - 40)
                if begin := re.search(rf"(?<![\w.]){_LIST}\s?$", text[first:place]):
                    yield CitationMarker(first + begin.start(), place + 1)

    def _is_within(self, place: int) -> bool:
        """Whether the nearest bracket before a place opens a pair that closes after it."""
        at = bisect_right(self.places, place) - 1
        return at >= 0 and self.partner.get(self.places[at], -1) > place

    def with_stray(self, marker: CitationMarker) -> CitationMarker:
        """A citation marker with an extra closing bracket is mangled; the bracket becomes part of it."""
        return CitationMarker(marker.start, marker.end + 1) if self.is_stray(marker.end) else marker


def _expanded(listed: str) -> tuple[int, ...]:
    """The numbers of `3, 5–7`; none if it is not such a list."""
    if not re.fullmatch(rf"\s*+{_LIST}[,;]?\s*+", listed):
        return ()
    numbers: list[int] = []
    for part in re.split(r"[,;&]|and", listed):
        bounds = [int(number) for number in re.findall(r"\d+", part)]
        numbers.extend(_range(*bounds) if len(bounds) == 2 else bounds)
    return tuple(numbers)


def _range(first: int, last: int) -> Sequence[int]:
    """First to last; just these two if a citation would not have such a range."""
    return range(first, last + 1) if first < last <= first + 200 else (first, last)


def _word_before(text: str, place: int) -> str:
    """The letters and digits right before a place."""
    match = _WORD_BEFORE.search(text, max(0, place - 40), place)
    return match.group() if match else ""


def _cites_in_brackets(text: str, place: int, match: "re.Match[str]") -> bool:
    """Whether `[…]` cites, and is neither an interval nor an index."""
    listed, after = match["list"], place + len(match.group()) + 2
    numbers, glued = _expanded(listed), _word_before(text, place)
    if min(numbers) == 0 or text[after : after + 1].isalpha() or (len(numbers) > 1 and re.search(r"\d[a-z]", listed)):
        return False
    if 0 < len(glued) <= 2 and not glued.isdigit():
        return False
    before = text[max(0, place - 30) : place]
    is_interval = len(numbers) == 2 and _INTERVAL_BEFORE.search(before)
    return not (is_interval or (len(numbers) > 1 and _SEQUENCE_BEFORE.search(before)))


def _cites_in_parentheses(text: str, place: int, match: "re.Match[str]") -> bool:
    """Whether `(…)` cites, and is not an equation, a part of a list, or an argument of a function."""
    listed = match["list"]
    ranges = re.findall(rf"(\d+)\s?[{_DASH}]\s?(\d+)", listed)
    falls = any(int(first) >= int(last) for first, last in ranges)  # as in the score of a match
    if falls or place == 0 or re.search(r"\d[a-z]", listed) or "0" in re.findall(r"\d+", listed):
        return False
    if match["place"] or "ref" in match.group().lower():
        return True
    glued = _word_before(text, place)
    if text[place - 1] in "=_^)" or (glued and not (len(glued) > 5 and glued.islower())):
        return False
    before = text[max(0, place - 40) : place].rstrip()
    if not before or before[-1] in "=+×*/<>≤≥±~≈:–—-([" or before[-1].isdigit():
        return False
    before = before.rstrip(".,;")
    word = _word_before(before, len(before)).lower()
    return word not in vocabulary("before_no_citation") and word not in vocabulary("number_words")


def _raised(text: str) -> Iterator[CitationMarker]:
    """Citations in superscript characters, or marked as raised: `¹²`, `^{12}`, `<sup>12</sup>`."""
    for match in _RAISED.finditer(text):
        start, listed = match.start(), match[str(match.lastgroup)].translate(_LOWERED)
        begins_line = start and text[start - 1].isspace() and text[match.end() : match.end() + 1].isupper()
        if begins_line or listed.startswith(("–", "-")) or _NO_RAISED.search(text, max(0, start - 40), start):
            continue
        numbers = _expanded(listed.rstrip(",–-"))
        if numbers and numbers[0]:
            end = start + len(match.group().rstrip(",–-˒⁻"))
            yield CitationMarker(start, end, Style.SUPERSCRIPT, len(numbers), numbers)


def _flattened(text: str, hints: Iterable[tuple[int, int]]) -> Iterator[CitationMarker]:
    """Citations whose raised digits became plain, glued to punctuation: `as shown.12`. Hints are known citations."""
    starts = {start for start, _ in hints}
    for match in _FLATTENED.finditer(text):
        if _GOES_ON.match(text, match.end()):
            continue
        is_one = match.start() in starts or _ends_a_clause(text[max(0, match.start() - 32) : match.start()])
        if is_one and (numbers := _expanded(match["list"])):
            yield CitationMarker(match.start(), match.end(), Style.SUPERSCRIPT, len(numbers), numbers)


def _ends_a_clause(before: str) -> bool:
    """Whether a text ends in a mark of punctuation after a word, rather than within an abbreviation or a number."""
    if before[-1] in '”"’':
        return before[-2:-1] in (".", ",", ";")
    if before[:-1].endswith((")", "]", "%", "”", '"')) or re.search(r"\bet\s+al\.?,?$", before):
        return True
    word = _word_before(before, len(before) - 1)
    return len(word) > 2 and word.isalpha() and word.islower() and word not in vocabulary("abbreviations")


def _without_enumerations(text: str, markers: list[CitationMarker], hinted: Spans) -> list[CitationMarker]:
    """Leaves out the numbers of a list, `(1) … and (2) …`: they begin at one and count up."""
    in_parentheses = [marker for marker in markers if marker.style is Style.NUMBERED_PARENTHESES]
    free = [one for one in in_parentheses if one.works == 1 and not hinted(one.start, one.end)]
    single = [one for one in free if text[one.end : one.end + 2].strip(" ").isalpha()]
    if len(single) == 1 < len(in_parentheses):
        return markers
    counted = [marker.numbers[0] for marker in single]
    if text.lstrip().startswith("(1)") or "(1) " in text:
        counted = [1, *(number for number in counted if number != 1)]
    listed = {marker.start for marker in single} if counted == list(range(1, len(counted) + 1)) else ()
    return [marker for marker in markers if marker.start not in listed]


def _joined(text: str, markers: Iterable[CitationMarker]) -> Iterator[CitationMarker]:
    """Brackets side by side as one citation marker: `[3], [4]`, `[3]–[6]`."""
    groups: list[list[CitationMarker]] = []
    for marker in markers:
        if groups and _are_one(groups[-1][-1], marker, text):
            groups[-1].append(marker)
        else:
            groups.append([marker])
    for first, *others in groups:
        numbers = list(first.numbers)
        for one, other in itertools.pairwise([first, *others]):
            between, added = text[one.end : other.start].strip(), list(other.numbers)
            if added and between and between in _DASH:
                added[:1] = _range(numbers.pop(), added[0])
            numbers += added
        if not others:
            yield first
        elif others[-1].is_sound:
            yield replace(first, end=others[-1].end, works=len(numbers), numbers=tuple(numbers))
        else:
            yield CitationMarker(first.start, others[-1].end)


def _are_one(one: CitationMarker, other: CitationMarker, text: str) -> bool:
    """Whether two citation markers are one citation: nothing but a comma or a dash stands between them."""
    if one.style is other.style:
        is_alike = one.style in (Style.NUMBERED_BRACKETS, Style.NUMBERED_PARENTHESES)
    else:
        is_alike = one.style is Style.NUMBERED_BRACKETS and not other.is_sound and text[other.start] == "["
    return is_alike and _JOINT.fullmatch(text, one.end, other.start) is not None


def _from_hints(text: str, markers: Iterable[CitationMarker], hints: Iterable[tuple[int, int]]) -> list[CitationMarker]:
    """Hints that no citation marker covers: bare numbers glued to a word are a superscript, the rest is broken."""
    covered = Spans((marker.start, marker.end) for marker in markers)
    added: list[CitationMarker] = []
    for start, end in sorted(hints):
        if covered(start, end):
            continue
        is_glued = start > 0 and (text[start - 1].isalpha() or text[start - 1] in '.,;:?!)]”"’')
        last = added[-1] if added and added[-1].style is Style.SUPERSCRIPT else None
        if last and _JOINT.fullmatch(text, last.end, start) and (numbers := _lowered(text, last.start, end)):
            added[-1] = replace(last, end=end, works=len(numbers), numbers=numbers)  # `12,` and `13` of one group
        elif is_glued and (numbers := _lowered(text, start, end)):
            added.append(CitationMarker(start, end, Style.SUPERSCRIPT, len(numbers), numbers))
        else:
            added.append(CitationMarker(start, end))
    return added


def _lowered(text: str, start: int, end: int) -> tuple[int, ...]:
    """The numbers of a part of a text, which may be raised; none if it is longer than a citation."""
    return _expanded(text[start:end].strip().translate(_LOWERED)) if end - start <= LONGEST else ()


def _without_overlaps(markers: Iterable[CitationMarker]) -> list[CitationMarker]:
    """In order; of two that overlap the earlier stays, of two that begin together the longer."""
    kept: list[CitationMarker] = []
    for marker in sorted(markers, key=lambda marker: (marker.start, -marker.end)):
        if not kept or marker.start >= kept[-1].end:
            kept.append(marker)
    return kept


def marked(text: str, year: int | None) -> str | None:
    """A citing sentence with `<REF>` in place of its citation of a paper: the sentences of S2AG have none.

    It is the only citation of the sentence, or the only one with the year of the paper; None if neither can be told.
    """
    if MARKER in text:
        return text if text.count(MARKER) == 1 else None
    citations = find_markers(text)
    if len(citations) > 1:
        citations = [one for one in citations if str(year) in text[one.start : one.end]]
    return f"{text[: citations[0].start]}{MARKER}{text[citations[0].end :]}" if len(citations) == 1 else None
