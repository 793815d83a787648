"""Sections within sections, from the numbers of their headlines (Docekal et al., OARelatedWork, 2.1.2 and 2.1.4)."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from citerec.contexts.sections import is_top, split_number

MOST_MISSING = 3
"""Numbers that may be missing between two headlines (Docekal et al., note 7)."""
FEWEST_NUMBERED = 3
"""Fewest numbered headlines that are nested."""
_MOST_NUMBERED = 500  # more are from a table; the search takes quadratic time
LEAST_LATIN = 0.3
"""Share of Latin letters below which a headline is debris."""

Style = Literal["arabic", "roman", "letter"]

_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_ROMAN = [tens + ones for tens in ("", "X", "XX", "XXX") for ones in _ONES]
_LONG_WORD = re.compile(r"[^\W\d_]{4}")


class Part(NamedTuple):
    """A part of a section number: how it is written, and its value."""

    style: Style
    value: int


Number = tuple[Part, ...]


@dataclass(slots=True)
class Section:
    """A section: its headline without its number, its number as printed ("2.1", or empty), its paragraphs, in order.

    Paragraphs are positions in the text, without those of subsections.
    """

    headline: str
    number: str = ""
    paragraphs: list[int] = field(default_factory=list)
    sections: list["Section"] = field(default_factory=list)

    def all_paragraphs(self) -> list[int]:
        """Its paragraphs and those of all its subsections, in order."""
        return [*self.paragraphs, *(place for section in self.sections for place in section.all_paragraphs())]


def outermost(sections: Sequence[Section], is_wanted: Callable[[str], object]) -> Iterator[Section]:
    """The sections whose headline is wanted, in order, without those that are in another one of them."""
    for section in sections:
        if is_wanted(section.headline):
            yield section
        else:
            yield from outermost(section.sections, is_wanted)


def with_number(headline: str, number: str | None = None) -> Section:
    """A section from a headline, with its number split off, or with the number that the source gives separately."""
    headline = " ".join(headline.split())
    given = " ".join((number or "").split()).rstrip(".):")
    if given and re.match(rf"{re.escape(given)}(?![^\W_])", headline):
        headline = headline[len(given) :].lstrip(".): ")
    elif not given:
        given, headline = split_number(headline)
    return Section(headline, given)


def hierarchy(shallow: Sequence[Section]) -> list[Section]:
    """Nests the sections of a document; returns the given ones if their numbers make no sense.

    The longest run of consecutive numbers is trusted (the anchor). A headline without a number goes into the numbered
    section before it if that section continues after it: no number is missing between the two. Known top headlines,
    those in capitals if top headlines are in capitals, and those after the last number do not go into it. Single
    numbers that do not follow, such as the steps of an algorithm, are ignored.

    The list stays flat if fewer than three headlines, or fewer than half of the numbered ones, are consecutive, or if
    the numbers do not match level by level: a headline below the top is in no such run (3.5 after 2.3.1). The given
    sections are not changed.
    """
    flat = [Section(each.headline, each.number, list(each.paragraphs)) for each in shallow]
    numbers = section_numbers([section.number for section in flat])
    numbered = [place for place, number in enumerate(numbers) if number]
    if not FEWEST_NUMBERED <= len(numbered) <= _MOST_NUMBERED:
        return flat
    anchor = set(_anchor(numbered, numbers, flat))
    if len(anchor) < max(FEWEST_NUMBERED, len(numbered) / 2):
        return flat
    if any(len(numbers[place]) > 1 for place in numbered if place not in anchor):
        return flat
    return _nested(flat, [number if place in anchor else () for place, number in enumerate(numbers)])


def _anchor(numbered: Sequence[int], numbers: Sequence[Number], flat: Sequence[Section]) -> list[int]:
    """The longest run of headlines in which each number follows the one before it, with few numbers missing.

    Of two equally long runs, the one with fewer lower-case words in its headlines.
    """
    best: dict[int, tuple[int, int]] = {}
    before: dict[int, int | None] = {}
    for at, place in enumerate(numbered):
        small = sum(word[0].islower() for word in flat[place].headline.split())
        score, link = ((1, -small), None) if _follows((), numbers[place]) else ((0, 0), None)
        for earlier in numbered[:at]:
            count, looks = best[earlier]
            if count and (count + 1, looks - small) > score and _follows(numbers[earlier], numbers[place]):
                score, link = (count + 1, looks - small), earlier
        best[place], before[place] = score, link
    run: list[int] = []
    last: int | None = max(numbered, key=lambda place: best[place])
    while last is not None and best[last][0]:
        run.append(last)
        last = before[last]
    return run[::-1]


def _follows(before: Number, number: Number) -> bool:
    gap = missing(before, number)
    return gap is not None and gap <= MOST_MISSING


def _nested(flat: Sequence[Section], numbers: Sequence[Number]) -> list[Section]:
    top: list[Section] = []
    path: list[tuple[Number, Section]] = []  # from the top to the last numbered section, as far as it goes on
    last: Number = ()
    capitals = _capitals_tell(flat, numbers)
    after = _numbers_after(numbers)
    for place, (section, number) in enumerate(zip(flat, numbers, strict=True)):
        if number:
            while path and path[-1][0] != number[: len(path[-1][0])]:
                path.pop()
            last = number
        else:
            goes_on = place > 0 and _goes_on(flat[place - 1], section)
            is_one = is_top(section.headline) or (capitals and _in_capitals(section) and not goes_on)
            is_lost = not section.number and _is_missing_between(last, after[place])
            if is_one or (not goes_on and (is_lost or not after[place])):
                level = _shared(last, after[place])
                while path and len(path[-1][0]) > level:
                    path.pop()
        (path[-1][1].sections if path else top).append(section)
        if number:
            path.append((number, section))
    return top


def _numbers_after(numbers: Sequence[Number]) -> list[Number]:
    """The number that comes next after each headline; empty after the last."""
    none: Number = ()
    after = itertools.accumulate(reversed(numbers[1:]), lambda later, number: number or later, initial=none)
    return list(after)[::-1]


def _is_missing_between(before: Number, after: Number) -> bool:
    """Whether a headline is missing at the level where two numbers differ: 3 between 2.1 and 4, 2.2 before 2.3."""
    at = _shared(before, after)
    if at == len(before) or at == len(after) or before[at].style != after[at].style:
        return False
    return after[at].value > before[at].value + 1


def _shared(before: Number, after: Number) -> int:
    """How many first parts two numbers have in common."""
    return len(list(itertools.takewhile(lambda parts: parts[0] == parts[1], zip(before, after, strict=False))))


def _capitals_tell(flat: Sequence[Section], numbers: Sequence[Number]) -> bool:
    """Whether capitals mark top headlines: most of these are in capitals, and few of the deeper ones."""
    tops = [_in_capitals(section) for section, number in zip(flat, numbers, strict=True) if len(number) == 1]
    deeper = [_in_capitals(section) for section, number in zip(flat, numbers, strict=True) if len(number) > 1]
    return 2 * sum(tops) > len(tops) and 2 * sum(deeper) <= len(deeper)


def _goes_on(before: Section, section: Section) -> bool:
    """Whether a headline is the second line of the one before it, as printed in capitals over two lines."""
    return not (before.paragraphs or section.number) and _in_capitals(before) and _in_capitals(section)


def _in_capitals(section: Section) -> bool:
    return section.headline.isupper() and bool(_LONG_WORD.search(section.headline))


def missing(before: Number, number: Number) -> int | None:
    """How many numbers are missing between two: none between 2 and 2.1, 2.3 and 3; None if the second does not follow.

    At the beginning `before` is empty. If a level above changes, only a headline of that level follows: after 2.3.1
    neither 3.5 nor 2.4.1 does.
    """
    shared = _shared(before, number)
    if shared == len(number):
        return None  # the same again, or a section after its own subsection
    style, value = number[shared]
    count = value - 1
    if shared < len(before):
        last = before[shared]
        is_appendix = shared == 0 and style == "letter" and last.style != style  # after numbered sections
        if len(number) > shared + 1 or (last.style != style and not is_appendix):
            return None
        count -= 0 if is_appendix else last.value
    if count < 0:
        return None
    # Each deeper level begins at its first number, and the headline above it is missing.
    return count + sum(part.value for part in number[shared + 1 :])


def section_numbers(written: Sequence[str]) -> list[Number]:
    """Section numbers from their written forms, in the order of their headlines; empty for an invalid one.

    A letter counts as roman if other numbers have roman parts at the same level. Single letters between two roman
    numbers are subsections of the first: I, II, A, B, III.
    """
    split = [text.split(".") if text else [] for text in written]
    roman = {at for parts in split for at, part in enumerate(parts) if len(part) > 1 and part in _ROMAN}
    numbers = [_number(parts, roman) for parts in split]
    top = [place for place, number in enumerate(numbers) if len(number) == 1 and number[0].style == "roman"]
    for first, last in itertools.pairwise(top):
        for place in range(first + 1, last):
            if len(numbers[place]) == 1 and numbers[place][0].style == "letter":
                numbers[place] = numbers[first] + numbers[place]
    return numbers


def _number(parts: Sequence[str], roman: set[int]) -> Number:
    """A number from its parts; empty if it is invalid."""
    number = []
    for at, part in enumerate(parts):
        if part.isascii() and part.isdigit() and len(part) < 10 and 0 < int(part) < 100:
            number.append(Part("arabic", int(part)))
        elif at in roman and part in _ROMAN:
            number.append(Part("roman", _ROMAN.index(part)))
        elif len(part) == 1 and "A" <= part <= "Z":
            number.append(Part("letter", ord(part) - ord("A") + 1))
        else:
            return ()
    return tuple(number)


def cleaned(sections: Sequence[Section], words: Sequence[int]) -> list[Section]:
    """Sections without badly parsed ones (2.1.4), given the number of words of each paragraph.

    A section is left out, with all in it, if its headline is empty or has less than 30 % Latin letters, or if it has no
    text.
    """
    kept = []
    for section in sections:
        if not section.headline or latin_share(section.headline) < LEAST_LATIN:
            continue
        if any(words[place] for place in section.all_paragraphs()):
            inner = cleaned(section.sections, words)
            kept.append(Section(section.headline, section.number, list(section.paragraphs), inner))
    return kept


def latin_share(text: str) -> float:
    """Share of Latin letters in the characters of a text other than white space; 0 of none."""
    signs = [sign for sign in text if not sign.isspace()]
    return sum(map(_is_latin, signs)) / len(signs) if signs else 0.0


def _is_latin(sign: str) -> bool:
    return sign.isalpha() and (sign.isascii() or unicodedata.name(sign, "").startswith("LATIN"))
