"""The citation parser: finds the callouts of a text, the places at which it cites, and tells sound ones from mangled."""

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from citerec.contexts.author_year import names_before, read_bracket, years_in_text

LONGEST = 600
"""Characters between two brackets from which they hold no citation."""


class Style(StrEnum):
    """How a citation is written."""

    NUMBERED_BRACKETS = "numbered-brackets"
    NUMBERED_PARENTHESES = "numbered-parentheses"
    SUPERSCRIPT = "superscript"
    AUTHOR_YEAR_PARENTHESES = "author-year-parentheses"
    AUTHOR_YEAR_TEXT = "author-year-text"
    LABEL = "label"
    MANGLED = "mangled"


@dataclass(frozen=True, slots=True)
class Callout:
    """A place at which a text cites.

    Attributes:
        start: First character.
        end: First character after it.
        style: How it is written; MANGLED where it is broken.
        works: How many works it cites; 0 where it is mangled.
        numbers: The numbers of a numbered one, ranges expanded.
    """

    start: int
    end: int
    style: Style
    works: int
    numbers: tuple[int, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether it is in a regular style."""
        return self.style is not Style.MANGLED


# Repeats are possessive (`++`) or bounded: no input makes them try twice.
_DASH = "–—‐‑‒−-"
_ITEM = rf"\d{{1,4}}(?!\d)[a-z]?(?:\s?+[{_DASH}]\s?+\d{{1,4}}(?!\d)[a-z]?)?"
_LIST = rf"{_ITEM}(?:(?:\s?+[,;]\s?+(?:and\s)?|\s(?:and|&)\s){_ITEM})*+"
_PLACE = r"(?:\s?+[,:;]\s?+(?!\d)(?:see\s)?[^\[\]()\d]{0,40}\d[^\[\]()]{0,40}|,?\s?+(?:and|&)\s(?:references|others)[^\[\]()]{0,30})"
_NUMBERED = re.compile(
    rf"\s*+(?:(?:see|e\.g\.|cf\.|also|i\.e\.|refs?\.|for example|see also|see, e\.g\.),?\s?+){{0,2}}(?P<list>{_LIST})(?P<place>{_PLACE})?\s*+"
)
_LABEL_WORD = r"[A-Z][A-Za-z]{1,11}\+?[’']?\d{2}(?:\d\d)?[a-z]?"
_LABEL = re.compile(rf"\s*+(?:see |cf\. )?{_LABEL_WORD}(?:\s?+[,;]\s?+{_LABEL_WORD})*+(?:,\s[^\[\]()]{{1,40}})?\s*+")
_BROKEN_LIST = re.compile(rf"\s*+{_LIST}\s?+[,;{_DASH}]?\s*+")
_BRACKET = re.compile(r"[()\[\]]")
_CLOSER = {"(": ")", "[": "]"}
_SUPERSCRIPT_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_UNRAISED = str.maketrans(_SUPERSCRIPT_DIGITS + "⁻˒", "0123456789–,")
_RAISED = re.compile(
    rf"(?P<sign>[{_SUPERSCRIPT_DIGITS}][{_SUPERSCRIPT_DIGITS},⁻–˒-]*+)"
    rf"|\^\{{(?P<braced>{_LIST})\}}|\^(?P<hat>\d{{1,3}}(?:[,{_DASH}]\d{{1,3}})*+)|<sup>\s?+(?P<markup>{_LIST})\s?+</sup>"
)
_WORD_BEFORE = re.compile(r"[^\W_]*$")
# The digits of a superscript that the extraction has flattened, glued to a mark of punctuation.
_FLATTENED = re.compile(
    rf"(?<=[.,;:”\"’])(?P<list>[1-9]\d{{0,2}}(?:,?[{_DASH}]\d{{1,3}}(?!\d)|,\s?\d{{1,3}}(?!\d))*+)"
    r"(?![\w%°)\]/–-]|[.,:]\d|\s?+(?:%|percent))"
)
_ABBREVIATIONS = frozenset(
    ["fig", "figs", "eq", "eqs", "sec", "sect", "no", "nos", "vol", "pp", "p", "v", "ver", "tab", "ref", "refs", "ca", "approx", "ch", "chap", "art", "ex", "def", "thm", "prop", "cf", "al", "ed", "eds", "dr", "st", "mr", "mrs", "ms", "op", "cit", "inc", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "rev", "ser", "pt", "nr", "col"]
)
_BEFORE_NO_CITATION = frozenset(
    ["eq", "eqs", "equation", "equations", "step", "steps", "case", "cases", "condition", "conditions", "type", "types", "phase", "phases", "part", "parts", "formula", "formulas", "formulae", "inequality", "constraint", "constraints", "rule", "rules", "axiom", "property", "theorem", "lemma", "definition", "example", "examples", "stage", "stages", "item", "items", "figure", "figures", "fig", "figs", "table", "tables", "section", "sections", "level", "levels", "version", "point", "points", "coordinates", "pair", "pairs", "interval", "range", "between", "within", "at", "is", "are", "was", "were", "ratio", "expression", "expressions", "problem", "program", "objective", "relation", "identity", "assumption", "assumptions", "scenario", "question", "questions", "hypothesis", "option", "sentence", "sentences", "line", "lines", "task", "tasks", "goal", "goals", "category", "statement", "clause", "equal", "equals", "of", "over", "than", "grade", "python", "java"]
)
_NUMBER_WORDS = frozenset(
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand"]
)
_INTERVAL_BEFORE = re.compile(
    r"(?:[∈=≤≥<>×∪∩]|\b(?:interval|intervals|range|ranges|between|within|domain|vector|sequence|list|array|coordinates|scale|bounds?))\s*+$"
)
_LOST_NAME = re.compile(r"(?<!\w)[A-Z]\w{1,30}\s(?:and|&)\s$")
_UNRESOLVED = re.compile(r"\[\s?\?(?:,\s?\?)*+\s?\]")
_JOINT = re.compile(rf"\s?+[,;{_DASH}]?\s?+")
_GREATEST, _GREATEST_KNOWN = 999, 9999
_YEAR = re.compile(r"(?:1[6-9]|20)\d\d[a-z]?")


ALL_STYLES = frozenset(Style)


def find_callouts(
    text: str, hints: Sequence[tuple[int, int]] = (), believed: Container[Style] = ALL_STYLES
) -> list[Callout]:
    """The callouts of a text in order; none overlaps another. Takes time in proportion to the text.

    Args:
        text: A sentence or a paragraph.
        hints: Spans known to be citations (the bib refs of S2ORC). What is written there in no regular style is mangled;
            a number that alone could be anything is believed to be one.
        believed: Styles in which a citation is believed without a hint: in a paper that cites as `[12]`, `(3)` is an
            equation.
    """
    brackets = _Brackets(text)
    found = [*_in_brackets(text, brackets, hints), *_raised(text), *_flattened(text, hints)]
    found = _without_overlaps(found)
    found = _without_overlaps([*found, *_in_running_text(text, brackets, found)])
    found = _without_enumerations(text, found, hints)
    hinted = _Hinted(hints)
    found = [callout for callout in found if callout.style in believed or hinted(callout.start, callout.end)]
    found = _joined(text, found)
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


def _in_brackets(text: str, brackets: _Brackets, hints: Sequence[tuple[int, int]]) -> Iterator[Callout]:
    hinted = _Hinted(hints)
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


class _Hinted:
    """Whether a span overlaps one that is known to be a citation."""

    def __init__(self, hints: Sequence[tuple[int, int]]) -> None:
        self._hints = sorted(hints)
        self._starts = [start for start, _ in self._hints]

    def __call__(self, start: int, end: int) -> bool:
        at = bisect_right(self._starts, end - 1)
        return at > 0 and self._hints[at - 1][1] > start


def _in_pair(text: str, place: int, partner: int, hinted: Callable[[int, int], bool]) -> Iterator[Callout]:
    """What stands between two brackets with no other between them."""
    square, end = text[place] == "[", partner + 1
    content = text[place + 1 : partner]
    if match := _NUMBERED.fullmatch(content):
        numbers = _expanded(match["list"])
        known = hinted(place, end)
        if not numbers or max(numbers) > (_GREATEST if not known or _YEAR.fullmatch(content.strip()) else _GREATEST_KNOWN):
            yield from _years_in_pair(text, place, partner)
        elif known or (_is_numbered_square(text, place, numbers, match) if square else _is_numbered(text, place, match)):
            style = Style.NUMBERED_BRACKETS if square else Style.NUMBERED_PARENTHESES
            yield Callout(place, end, style, len(numbers), numbers)
    elif square and (match := _LABEL.fullmatch(content)):
        works = len(re.findall(_LABEL_WORD, content))
        yield Callout(place, end, Style.LABEL, works)
    else:
        yield from _years_in_pair(text, place, partner)


def _years_in_pair(text: str, place: int, partner: int) -> Iterator[Callout]:
    reading = read_bracket(text, place + 1, partner)
    style = Style.AUTHOR_YEAR_PARENTHESES
    names = names_before(text, _before(text, place)) if reading.years_first else None
    if reading.years_first:
        lives = reading.works == 1 and re.search(rf"\d{{4}}\s?[{_DASH}]\s?\d{{4}}", text[place:partner])
        if reading.whole and names and (names.sure or not lives):
            yield Callout(names.start, partner + 1, Style.AUTHOR_YEAR_TEXT, reading.works)
        elif reading.whole and place == 0:
            yield Callout(place, partner + 1, Style.MANGLED, 0)  # the names went with the sentence before
        elif reading.whole and (lost := _LOST_NAME.search(text, max(0, place - 40), place)):
            yield Callout(lost.start(), partner + 1, Style.MANGLED, 0)
    elif reading.broken or _UNRESOLVED.fullmatch(text, place, partner + 1):
        yield Callout(place, partner + 1, Style.MANGLED, 0)
    elif reading.entries and reading.whole and not reading.markers:
        yield Callout(place, partner + 1, style, reading.works)
    else:
        for entry in reading.entries:
            yield Callout(entry.start, entry.end, style, entry.works)


def _around_inner(text: str, brackets: _Brackets, place: int, end: int, partner: int) -> list[Callout]:
    """What stands in a bracket before another opens within: `(see Lee, 1997 (…))`, or two that were fused."""
    reading = read_bracket(text, place + 1, end)
    inner_end = brackets.partner.get(end)
    if reading.whole and reading.entries and not reading.markers and text[end] == text[place] and inner_end:
        # A bracket that opens right after a year, with a citation in it, was `, Lee et al., 1997b`.
        inner = read_bracket(text, end + 1, inner_end)
        if inner.entries and text[end - 1].isalnum():
            return [Callout(place, partner + 1, Style.MANGLED, 0)]
    return [Callout(entry.start, entry.end, Style.AUTHOR_YEAR_PARENTHESES, entry.works) for entry in reading.entries]


def _broken(text: str, brackets: _Brackets, place: int, end: int) -> list[Callout]:
    """A bracket that is never closed, where it holds a citation; what is fused to it belongs to it."""
    square, at_end = text[place] == "[", end == len(text)
    reading = read_bracket(text, place + 1, end)
    listed = _BROKEN_LIST.match(text, place + 1, end)
    labels = _LABEL.fullmatch(text, place + 1, _before(text, end, " ,;")) if square else None
    closed = brackets.partner.get(end) if not at_end and text[end] in _CLOSER else None
    inner = list(_in_pair(text, end, closed, lambda _start, _end: False)) if closed and closed > end else []
    fused = bool(inner) and inner[0].end == (closed or 0) + 1
    stop = None
    if reading.entries:
        stop = reading.entries[-1].end
        if fused and not reading.prose:
            stop = inner[0].end
        elif reading.whole and not at_end and text[end] in ")]":
            stop = end + 1
    elif reading.years_first and (names := names_before(text, _before(text, place))) and names.sure:
        year = next(years_in_text(text[place + 1 : end]), (0, 0))[1]
        return [Callout(names.start, place + 1 + year, Style.MANGLED, 0)]
    elif listed and (square or (listed.end() == end and not at_end)):
        whole = listed.end() == end
        stop = inner[0].end if fused and whole else end + 1 if whole and text[end : end + 1] in ")]" else listed.end()
    elif labels:
        stop = inner[0].end if fused else labels.end()
    elif fused and not text[place + 1 : end].strip():
        stop = inner[0].end  # an opening bracket too many
    return [Callout(place, _before(text, stop), Style.MANGLED, 0)] if stop is not None else []


def _is_numbered_square(text: str, place: int, numbers: tuple[int, ...], match: "re.Match[str]") -> bool:
    """Whether `[…]` cites, and is no interval and no index."""
    if min(numbers) == 0 or (re.search(r"\d[a-z]", match["list"]) and len(numbers) > 1):
        return False
    glued = _WORD_BEFORE.search(text, max(0, place - 30), place)
    if glued and 0 < len(glued.group()) <= 2 and not glued.group().isdigit():
        return False
    return not (len(numbers) > 1 and _INTERVAL_BEFORE.search(text[max(0, place - 30) : place]))


def _is_numbered(text: str, place: int, match: "re.Match[str]") -> bool:
    """Whether `(…)` cites, and is no equation, no part of a list, no function's argument."""
    listed = match["list"]
    if re.search(r"\d[a-z]", listed) or match["place"] or place == 0 or listed.strip() == "0":
        return False
    glued = _WORD_BEFORE.search(text, max(0, place - 30), place)
    if text[place - 1] in "=_^" or (glued and glued.group() and not (len(glued.group()) > 5 and glued.group().islower())):
        return False
    before = text[max(0, place - 40) : place].rstrip()
    if not before or before[-1] in "=+×*/<>≤≥±~≈:–—-([" or before[-1].isdigit():
        return False
    word = _WORD_BEFORE.search(before.rstrip(".,;"))
    last = word.group().lower() if word else ""
    return last not in _BEFORE_NO_CITATION and last not in _NUMBER_WORDS


def _raised(text: str) -> Iterator[Callout]:
    for match in _RAISED.finditer(text):
        listed = match[str(match.lastgroup)].translate(_UNRAISED)
        # A unit has a dash before its number, and a power stands on a letter or two, or on a number.
        if listed.startswith(("–", "-")) or (match.start() and text[match.start() - 1] in "⁻⁺"):
            continue
        word = _WORD_BEFORE.search(text, max(0, match.start() - 30), match.start())
        base = word.group() if word else ""
        if base and (len(base) <= 2 or base[-1].isdigit()):
            continue
        if not text[: match.start()].strip() if match.start() < 3 else text[match.start() - 2 : match.start()].isspace():
            continue  # a footnote begins so
        if text[match.start() - 1 : match.start()].isspace() and text[match.end() : match.end() + 1].isupper():
            continue  # and so
        numbers = _expanded(listed.rstrip(",–-"))
        if numbers and numbers[0]:
            end = match.end() - (len(match.group()) - len(match.group().rstrip(",–-˒⁻")))
            yield Callout(match.start(), end, Style.SUPERSCRIPT, len(numbers), numbers)


def _flattened(text: str, hints: Sequence[tuple[int, int]]) -> Iterator[Callout]:
    starts = {start for start, _ in hints}
    for match in _FLATTENED.finditer(text):
        if not (match.start() in starts or _ends_a_clause(text[max(0, match.start() - 32) : match.start()])):
            continue
        numbers = _expanded(match["list"])
        if numbers:
            yield Callout(match.start(), match.end(), Style.SUPERSCRIPT, len(numbers), numbers)


def _ends_a_clause(before: str) -> bool:
    """Whether a text ends in a mark of punctuation after a word, rather than within an abbreviation or a number."""
    if before[-1] in "”\"’":
        return before[-2:-1] in (".", ",", ";")
    clause = before[:-1]
    if clause.endswith((")", "]", "%", "”", '"')) or re.search(r"\bet\s+al\.?,?$", before):
        return True
    word = _WORD_BEFORE.search(clause)
    last = word.group() if word else ""
    return len(last) > 2 and last.isalpha() and last.islower() and last not in _ABBREVIATIONS


def _in_running_text(text: str, brackets: _Brackets, found: list[Callout]) -> Iterator[Callout]:
    """`Lee et al., 1997` without brackets; with a bracket that nothing opened it is mangled."""
    taken = _Hinted([(callout.start, callout.end) for callout in found])
    for start, end in years_in_text(text):
        if taken(start, end):
            continue
        names = names_before(text, _before(text, start))
        following = brackets.next_after(end - 1)
        unopened = following == end and text[end] in ")]" and brackets.is_unmatched(end)
        if names and unopened:
            yield Callout(names.start, end + 1, Style.MANGLED, 0)
        elif names and names.sure and not _is_within(brackets, start, text):
            yield Callout(names.start, end, Style.AUTHOR_YEAR_TEXT, 1)
    for place in brackets.places:
        if text[place] == "]" and brackets.is_unmatched(place):
            begin = re.search(rf"(?<![\w.]){_LIST}\s?$", text[max(0, place - 40) : place])
            if begin:
                yield Callout(max(0, place - 40) + begin.start(), place + 1, Style.MANGLED, 0)


def _is_within(brackets: _Brackets, place: int, text: str) -> bool:
    """Whether the nearest bracket before a place opens a pair that closes after it."""
    at = bisect_right(brackets.places, place) - 1
    return at >= 0 and text[brackets.places[at]] in _CLOSER and brackets.partner.get(brackets.places[at], -1) > place


def _without_enumerations(text: str, found: list[Callout], hints: Sequence[tuple[int, int]]) -> list[Callout]:
    """Leaves out the numbers of a list, `(1) … and (2) …`: they begin at one and count up."""
    hinted = _Hinted(hints)
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
        return [callout for callout in found if callout not in single]
    return found


def _joined(text: str, found: list[Callout]) -> list[Callout]:
    """Brackets side by side as one callout: `[3], [4]`, `[3]–[6]`."""
    joined: list[Callout] = []
    for callout in found:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.style is callout.style
            and callout.style in (Style.NUMBERED_BRACKETS, Style.NUMBERED_PARENTHESES)
            and (gap := _JOINT.fullmatch(text, last.end, callout.start))
        ):
            between = gap.group().strip()
            numbers = (*last.numbers, *callout.numbers)
            if between and between in _DASH and last.numbers and callout.numbers:
                numbers = (*last.numbers[:-1], *_range(last.numbers[-1], callout.numbers[0]), *callout.numbers[1:])
            joined[-1] = replace(last, end=callout.end, works=len(numbers), numbers=numbers)
        elif (
            last is not None
            and last.style is Style.NUMBERED_BRACKETS
            and not callout.is_sound
            and text[callout.start] == "["
            and _JOINT.fullmatch(text, last.end, callout.start)
        ):
            joined[-1] = Callout(last.start, callout.end, Style.MANGLED, 0)
        else:
            joined.append(callout)
    return joined


def _with_hints(text: str, found: list[Callout], hints: Sequence[tuple[int, int]]) -> list[Callout]:
    """Hints that no callout covers: a bare number is a superscript or stands in brackets of its own, the rest is broken."""
    covered = _Hinted([(callout.start, callout.end) for callout in found])
    added = []
    for start, end in hints:
        if covered(start, end):
            continue
        numbers = _expanded(text[start:end].strip().translate(_UNRAISED)) if end - start < LONGEST else ()
        glued = start > 0 and (text[start - 1].isalpha() or text[start - 1] in ".,;:?!)]”\"’")
        if numbers and glued:
            added.append(Callout(start, end, Style.SUPERSCRIPT, len(numbers), numbers))
        else:
            added.append(Callout(start, end, Style.MANGLED, 0))
    return _without_overlaps([*found, *_joined_superscripts(text, added)]) if added else found


def _joined_superscripts(text: str, added: list[Callout]) -> list[Callout]:
    """`12,` and `13` of one raised group."""
    joined: list[Callout] = []
    for callout in sorted(added, key=lambda callout: callout.start):
        last = joined[-1] if joined else None
        if last is not None and last.style is Style.SUPERSCRIPT and _JOINT.fullmatch(text, last.end, callout.start):
            numbers = _expanded(text[last.start : callout.end].translate(_UNRAISED))
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


def _expanded(listed: str) -> tuple[int, ...]:
    """The numbers of `3, 5–7`; none where it is no such list."""
    if not re.fullmatch(rf"\s*+{_LIST}[,;]?\s*+", listed):
        return ()
    numbers: list[int] = []
    for part in re.split(r"[,;&]|and", listed):
        bounds = [int(number) for number in re.findall(r"\d+", part)]
        numbers.extend(_range(*bounds) if len(bounds) == 2 else bounds)
    return tuple(numbers)


def _range(first: int, last: int) -> tuple[int, ...]:
    """First to last; just the two where that is no range that a citation would have."""
    return tuple(range(first, last + 1)) if first < last <= first + 200 else (first, last)


def _before(text: str, place: int, signs: str = " \t\n\r\x0b\x0c\xa0") -> int:
    """A place, without the white space, or other signs, before it."""
    while place and text[place - 1] in signs:
        place -= 1
    return place
