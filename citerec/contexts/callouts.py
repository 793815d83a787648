"""The citation parser: finds the callouts (places that cite) of a text, and tells sound from mangled ones."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from citerec.contexts.author_year import Reading, names_before, read_bracket, years_in_text
from citerec.contexts.callout import Callout, Spans, Style, trimmed_end
from citerec.contexts.numbers import (
    BROKEN_LIST,
    DASH,
    GREATEST,
    LIST,
    NUMBERED,
    cites_in_brackets,
    cites_in_parentheses,
    expanded,
    number_range,
)
from citerec.contexts.raised import LOWERED, flattened, raised

LONGEST = 600
"""Brackets that are more characters apart than this hold no citation."""

# Repeats are possessive (`++`) or bounded: no input makes them try twice.
_LABEL_WORD = r"(?:[a-z]{0,3}[^\W\d_a-z][^\W\d_]{1,11}\+?|[a-z]{1,3}[A-Z]|[A-Z]\+)[’']?\d{2}(?:\d\d)?[a-z]?"
_LABEL = re.compile(rf"\s*+(?:see |cf\. )?{_LABEL_WORD}(?:\s?+[,;]\s?+{_LABEL_WORD})*+(?:,\s[^\[\]()]{{1,40}})?\s*+")
_BRACKET = re.compile(r"[()\[\]]")
_CLOSER = {"(": ")", "[": "]"}
_LOST_NAME = re.compile(r"(?<!\w)[A-Z]\w{1,30}\s(?:and|&)\s$|(?<!\w)et\sal\.?\s$")
_UNRESOLVED = re.compile(r"[\[(][\s\d,;]{0,40}\?[\s\d,;?]{0,40}[\])]")
_LIFETIME = re.compile(rf"\d{{4}}\s?[{DASH}]\s?\d{{4}}")
_JOINT = re.compile(rf"\s?+[,;{DASH}]?\s?+")
_YEAR = re.compile(r"(?:1[6-9]|20)\d\d[a-z]?")

ALL_STYLES = frozenset(Style)
_JOINABLE = (Style.NUMBERED_BRACKETS, Style.NUMBERED_PARENTHESES)


def find_callouts(
    text: str, hints: Sequence[tuple[int, int]] = (), believed: Container[Style] = ALL_STYLES
) -> list[Callout]:
    """The callouts of a text, in order and without overlaps, in time linear in the length of the text.

    Args:
        text: A sentence or a paragraph.
        hints: Spans known to be citations (the bib refs of S2ORC): there, a number is a citation, and anything without
            a regular style is mangled.
        believed: Styles of citations without a hint: in a paper that cites as `[12]`, `(3)` is an equation.
    """
    brackets = _Brackets(text)
    hinted = Spans(hints)
    found = [*_in_brackets(text, brackets, hinted), *raised(text), *flattened(text, hints)]
    found = _without_overlaps(found)
    found = _without_overlaps([*found, *_in_running_text(text, brackets, found)])
    found = _without_enumerations(text, found, hinted)
    found = [callout for callout in found if callout.style in believed or hinted(callout.start, callout.end)]
    found = [_with_stray(text, brackets, callout) for callout in _joined(text, found)]
    return _with_hints(text, found, hints)


class _Brackets:
    """Which bracket closes which: one pass."""

    def __init__(self, text: str) -> None:
        self.places = [match.start() for match in _BRACKET.finditer(text)]
        self.partner: dict[int, int] = {}
        open_places: list[int] = []
        for place in self.places:
            sign = text[place]
            if sign in _CLOSER:
                open_places.append(place)
            elif open_places and _CLOSER[text[open_places[-1]]] == sign:
                opened = open_places.pop()
                self.partner[opened], self.partner[place] = place, opened
            elif len(open_places) > 1 and _CLOSER[text[open_places[-2]]] == sign:
                open_places.pop()  # `( … [ … )`: the inner one stays open
                opened = open_places.pop()
                self.partner[opened], self.partner[place] = place, opened

    def next_after(self, place: int) -> int | None:
        """The next bracket of any kind."""
        at = bisect_right(self.places, place)
        return self.places[at] if at < len(self.places) else None

    def is_unmatched(self, place: int | None) -> bool:
        """Whether a place is a bracket without a partner."""
        return place is not None and place not in self.partner


def _in_brackets(text: str, brackets: _Brackets, hinted: Spans) -> Iterator[Callout]:
    until = 0
    for place in brackets.places:
        if text[place] not in _CLOSER or place < until:
            continue
        following = brackets.next_after(place)
        partner = brackets.partner.get(place)
        end = following if following is not None else len(text)
        if end - place > LONGEST:
            continue
        if partner is not None and partner == following:
            found = list(_in_pair(text, place, partner, hinted))
        elif partner is None:
            found = _broken(text, brackets, place, end)
        else:
            found = _around_inner(text, brackets, place, end, partner)
        yield from found
        if found:
            until = max(callout.end for callout in found)


def _in_pair(text: str, place: int, partner: int, hinted: Callable[[int, int], bool]) -> Iterator[Callout]:
    """The callouts between two brackets with no other bracket between them."""
    square, end = text[place] == "[", partner + 1
    content = text[place + 1 : partner]
    if "?" in content and _UNRESOLVED.fullmatch(text, place, end):
        yield Callout(place, end, Style.MANGLED, 0)
    elif match := NUMBERED.fullmatch(content):
        numbers = expanded(match["list"])
        known = hinted(place, end)
        greatest = GREATEST if not known or _YEAR.fullmatch(content.strip()) else math.inf
        if not numbers or max(numbers) > greatest:
            yield from _years_in_pair(text, place, partner)
        elif square and (known or cites_in_brackets(text, place, numbers, match)):
            yield Callout(place, end, Style.NUMBERED_BRACKETS, len(numbers), numbers)
        elif not square and (known or cites_in_parentheses(text, place, match)):
            yield Callout(place, end, Style.NUMBERED_PARENTHESES, len(numbers), numbers)
    elif square and (match := _LABEL.fullmatch(content)):
        works = len(re.findall(_LABEL_WORD, content))
        yield Callout(place, end, Style.LABEL, works)
    else:
        yield from _years_in_pair(text, place, partner)


def _years_in_pair(text: str, place: int, partner: int) -> Iterator[Callout]:
    """Authors and years between two brackets, or years alone after the names of their authors."""
    reading, end = read_bracket(text, place + 1, partner), partner + 1
    content = text[place + 1 : partner].lstrip()
    if reading.years_first:
        yield from _years_alone(text, place, end, reading)
    elif not content:
        names = names_before(text, trimmed_end(text, place))
        if names and names.sure:  # its year is lost
            yield Callout(names.start, end, Style.MANGLED, 0)
    elif reading.broken:
        yield Callout(place, end, Style.MANGLED, 0)
    elif reading.entries and reading.whole and not reading.markers:
        yield Callout(place, end, Style.AUTHOR_YEAR_PARENTHESES, reading.works)
    else:
        for entry in reading.entries:
            yield Callout(entry.start, entry.end, Style.AUTHOR_YEAR_PARENTHESES, entry.works)


def _years_alone(text: str, place: int, end: int, reading: Reading) -> Iterator[Callout]:
    """`Lee et al. (1997a)`: with its names, it is a citation; without them, it may be the rest of one."""
    names = names_before(text, trimmed_end(text, place))
    lifetime = reading.works == 1 and _LIFETIME.search(text, place, end)
    if text[place + 1 : end].lstrip().startswith(","):
        yield Callout(place, end, Style.MANGLED, 0)
    elif reading.whole and names and (names.sure or not lifetime):
        yield Callout(names.start, end, Style.AUTHOR_YEAR_TEXT, reading.works)
    elif reading.whole and place == 0:
        yield Callout(place, end, Style.MANGLED, 0)  # the names went with the sentence before
    elif reading.whole and (lost := _LOST_NAME.search(text, max(0, place - 40), place)):
        yield Callout(lost.start(), end, Style.MANGLED, 0)


def _around_inner(text: str, brackets: _Brackets, place: int, end: int, partner: int) -> list[Callout]:
    """The callouts in a bracket before another one opens in it: `(see Lee, 1997 (…))`, or two that were fused."""
    reading = read_bracket(text, place + 1, end)
    inner_end = brackets.partner.get(end)
    fused = (
        inner_end is not None and inner_end - end <= LONGEST and text[end] == text[place] and text[end - 1].isalnum()
    )
    # A bracket that opens right after a year, with a citation in it, was `, Lee et al., 1997b`.
    cites = fused and reading.whole and reading.entries and not reading.markers
    if cites and read_bracket(text, end + 1, inner_end or 0).entries:
        return [Callout(place, partner + 1, Style.MANGLED, 0)]
    return [Callout(entry.start, entry.end, Style.AUTHOR_YEAR_PARENTHESES, entry.works) for entry in reading.entries]


def _broken(text: str, brackets: _Brackets, place: int, end: int) -> list[Callout]:
    """A bracket that is never closed, if it holds a citation; a bracket fused to it belongs to it."""
    square, at_end = text[place] == "[", end == len(text)
    reading = read_bracket(text, place + 1, end)
    listed = BROKEN_LIST.match(text, place + 1, end)
    labels = _LABEL.fullmatch(text, place + 1, trimmed_end(text, end, " ,;")) if square else None
    closed = brackets.partner.get(end) if not at_end and text[end] in _CLOSER else None
    is_near = closed is not None and end < closed <= end + LONGEST
    inner = list(_in_pair(text, end, closed or 0, lambda _start, _end: False)) if is_near else []
    fused = bool(inner) and inner[0].end == (closed or 0) + 1
    stop = None
    if reading.entries:
        stop = reading.entries[-1].end
        if fused and not reading.prose:
            stop = inner[0].end
        elif reading.whole and not at_end and text[end] in ")]":
            stop = end + 1
    elif reading.years_first and (names := names_before(text, trimmed_end(text, place))) and names.sure:
        year = next(years_in_text(text[place + 1 : end]), (0, 0))[1]
        return [Callout(names.start, place + 1 + year, Style.MANGLED, 0)]
    elif listed and (square or (listed.end() == end and not at_end) or len(expanded(listed.group().strip(" ,;"))) > 1):
        whole = listed.end() == end
        stop = listed.end()
        if whole and (fused or text[end : end + 1] in (")", "]")):
            stop = inner[0].end if fused else end + 1
    elif labels:
        stop = inner[0].end if fused else labels.end()
    elif fused and not text[place + 1 : end].strip():
        stop = inner[0].end  # an opening bracket too many
    return [Callout(place, trimmed_end(text, stop), Style.MANGLED, 0)] if stop is not None else []


def _in_running_text(text: str, brackets: _Brackets, found: list[Callout]) -> Iterator[Callout]:
    """`Lee et al., 1997` without brackets; with a closing bracket that was never opened, it is mangled."""
    taken = Spans([(callout.start, callout.end) for callout in found])
    for start, end in years_in_text(text):
        if taken(start, end):
            continue
        names = names_before(text, trimmed_end(text, start))
        following = brackets.next_after(end - 1)
        unopened = following == end and text[end] in ")]" and brackets.is_unmatched(end)
        if names and unopened:
            yield Callout(names.start, end + 1, Style.MANGLED, 0)
        elif names and names.sure and not _is_within(brackets, start, text):
            yield Callout(names.start, end, Style.AUTHOR_YEAR_TEXT, 1)
    for place in brackets.places:
        if text[place] == "]" and brackets.is_unmatched(place):
            first = max(0, place - 40)
            if begin := re.search(rf"(?<![\w.]){LIST}\s?$", text[first:place]):
                yield Callout(first + begin.start(), place + 1, Style.MANGLED, 0)


def _is_within(brackets: _Brackets, place: int, text: str) -> bool:
    """Whether the nearest bracket before a place opens a pair that closes after it."""
    at = bisect_right(brackets.places, place) - 1
    return at >= 0 and text[brackets.places[at]] in _CLOSER and brackets.partner.get(brackets.places[at], -1) > place


def _without_enumerations(text: str, found: list[Callout], hinted: Spans) -> list[Callout]:
    """Leaves out the numbers of a list, `(1) … and (2) …`: they begin at one and count up."""
    single = [
        callout
        for callout in found
        if callout.style is Style.NUMBERED_PARENTHESES
        and callout.works == 1
        and not hinted(callout.start, callout.end)
        and text[callout.end : callout.end + 2].strip(" ").isalpha()
    ]
    others = sum(callout.style is Style.NUMBERED_PARENTHESES for callout in found) - len(single)
    counted = [callout.numbers[0] for callout in single]
    if len(single) == 1 and others:
        return found
    if text.lstrip().startswith("(1)") or "(1) " in text:
        counted = [1, *[number for number in counted if number != 1]]
    if counted == list(range(1, len(counted) + 1)):
        listed = {callout.start for callout in single}
        return [callout for callout in found if callout.start not in listed]
    return found


def _joined(text: str, found: list[Callout]) -> list[Callout]:
    """Brackets side by side as one callout: `[3], [4]`, `[3]–[6]`."""
    joined: list[Callout] = []
    numbers: dict[int, list[int]] = {}  # of those that were joined; as tuples, each would be copied for each bracket
    for callout in found:
        last, place = joined[-1] if joined else None, len(joined) - 1
        gap = _JOINT.fullmatch(text, last.end, callout.start) if last is not None else None
        if last is None or gap is None:
            joined.append(callout)
        elif last.style is callout.style and callout.style in _JOINABLE:
            joined[place] = replace(last, end=callout.end)
            listed = numbers.setdefault(place, list(last.numbers))
            between, added = gap.group().strip(), callout.numbers
            if between and between in DASH and listed and added:
                listed[-1:] = number_range(listed[-1], added[0])
                added = added[1:]
            listed.extend(added)
        elif last.style is Style.NUMBERED_BRACKETS and not callout.is_sound and text[callout.start] == "[":
            joined[place] = Callout(last.start, callout.end, Style.MANGLED, 0)
            numbers.pop(place, None)
        else:
            joined.append(callout)
    for place, listed in numbers.items():
        joined[place] = replace(joined[place], works=len(listed), numbers=tuple(listed))
    return joined


def _with_stray(text: str, brackets: _Brackets, callout: Callout) -> Callout:
    """A callout with an extra closing bracket is mangled; the bracket becomes part of it."""
    if text[callout.end : callout.end + 1] in (")", "]") and brackets.is_unmatched(callout.end):
        return Callout(callout.start, callout.end + 1, Style.MANGLED, 0)
    return callout


def _with_hints(text: str, found: list[Callout], hints: Sequence[tuple[int, int]]) -> list[Callout]:
    """Hints that no callout covers: a bare number glued to a word is a superscript, the rest is broken."""
    covered = Spans([(callout.start, callout.end) for callout in found])
    added = []
    for start, end in hints:
        if covered(start, end):
            continue
        numbers = expanded(text[start:end].strip().translate(LOWERED)) if end - start < LONGEST else ()
        glued = start > 0 and (text[start - 1].isalpha() or text[start - 1] in '.,;:?!)]”"’')
        raised_here = Callout(start, end, Style.SUPERSCRIPT, len(numbers), numbers)
        added.append(raised_here if numbers and glued else Callout(start, end, Style.MANGLED, 0))
    return _without_overlaps([*found, *_joined_superscripts(text, added)]) if added else found


def _joined_superscripts(text: str, added: list[Callout]) -> list[Callout]:
    """`12,` and `13` of one raised group."""
    joined: list[Callout] = []
    for callout in sorted(added, key=lambda callout: callout.start):
        last = joined[-1] if joined else None
        is_beside = (
            last is not None
            and last.style is Style.SUPERSCRIPT
            and callout.end - last.start <= LONGEST
            and _JOINT.fullmatch(text, last.end, callout.start)
        )
        if last is not None and is_beside:
            numbers = expanded(text[last.start : callout.end].translate(LOWERED))
            if numbers:
                joined[-1] = replace(last, end=callout.end, works=len(numbers), numbers=numbers)
                continue
        joined.append(callout)
    return joined


def _without_overlaps(found: list[Callout]) -> list[Callout]:
    """In order; of two that overlap the earlier stays, of two that begin together the longer."""
    kept: list[Callout] = []
    for callout in sorted(found, key=lambda callout: (callout.start, -callout.end)):
        if not kept or callout.start >= kept[-1].end:
            kept.append(callout)
    return kept
