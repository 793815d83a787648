"""Sections within sections, as their numbers say (Docekal et al., OARelatedWork, 2.1.2 and 2.1.4)."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from citerec.contexts.sections import Section

LEAST_LATIN = 0.3
"""Share of Latin letters below which a headline is debris."""

_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_ROMAN = [tens + ones for tens in ("", "X", "XX", "XXX") for ones in _ONES][1:]


def outermost(sections: Sequence[Section], is_wanted: Callable[[str], object]) -> Iterator[Section]:
    """The sections whose headline is wanted, in order, without those that are in another one of them."""
    for section in sections:
        if is_wanted(section.headline):
            yield section
        else:
            yield from outermost(section.sections, is_wanted)


def hierarchy(shallow: Sequence[Section]) -> list[Section]:
    """Nests the sections of a document by their numbers: 2.1 goes into 2, and A between II and III into II.

    A headline without a number goes into the numbered section before it if that goes on after it, or the next number
    follows. The given sections are not changed.
    """
    flat = [replace(section, sections=[]) for section in shallow]
    numbers, last = list[list[str]](), ""
    for place, section in enumerate(flat):
        printed = section.number.strip(".")
        if printed in _ROMAN:
            last = printed
        elif last and re.fullmatch("[A-Z]", printed) and any(one.number in _ROMAN for one in flat[place:]):
            printed = f"{last}.{printed}"
        numbers.append(printed.split(".") if printed else [])
    top: list[Section] = []
    path: list[tuple[list[str], Section]] = []  # from the top to the last numbered section
    for place, (section, number) in enumerate(zip(flat, numbers, strict=True)):
        if number:
            path = [one for one in path if one[0] == number[: len(one[0])] != number]
        elif path:
            first, following = path[0][0][0], next((later[0] for later in numbers[place:] if later), "")
            if following not in (first, _next(first)):
                path = []
        (path[-1][1].sections if path else top).append(section)
        if number:
            path.append((number, section))
    return top


def _next(part: str) -> str:
    """The number after an arabic or roman one, or after a letter."""
    if part in _ROMAN[:-1]:
        return _ROMAN[_ROMAN.index(part) + 1]
    return str(int(part) + 1) if part.isdecimal() else chr(ord(part[0]) + 1)


def cleaned(sections: Sequence[Section], texts: Sequence[str]) -> list[Section]:
    """Sections without badly parsed ones (2.1.4), given the text of each paragraph.

    A section is left out, with all in it, if its headline is empty or has less than 30 % Latin letters, or if it has no
    text.
    """
    return [
        Section(section.headline, section.number, list(section.paragraphs), cleaned(section.sections, texts))
        for section in sections
        if latin_share(section.headline) >= LEAST_LATIN and any(texts[place] for place in section.all_paragraphs())
    ]


def latin_share(text: str) -> float:
    """Share of Latin letters in the characters of a text other than white space; 0 of none."""
    signs = "".join(text.split())
    letters = (sign for sign in signs if sign.isalpha() and unicodedata.name(sign, "").startswith("LATIN"))
    return sum(1 for _ in letters) / len(signs) if signs else 0.0
