"""Headlines and sections: their numbers, what they are about, and sections within sections.

Numbers decide what is within what (Docekal et al., OARelatedWork, 2.1.2 and 2.1.4).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

LEAST_LATIN = 0.3
"""Share of Latin letters below which a headline is debris."""

_PART = r"(?:\d{1,2}|[IVX]{1,7}|[A-Z])"
_DEEPER = r"(?:\.\d{1,2})*+(?:\.[A-Z](?![\w.]))?"
# A number ends in white space; after a full stop a word may follow at once: "2.Related Work".
_NUMBER = re.compile(
    rf"\s*(?:(?P<spaced>{_PART}{_DEEPER})[.):]?(?=\s|$)|(?P<lower>[ivx]{{1,7}})[.):](?=\s|$)"
    rf"|(?P<glued>(?:\d{{1,2}}|[IVX]{{2,7}}){_DEEPER})[.):](?=[A-Za-z]{{3}})"
    rf"|(?P<letter>[A-Z]{_DEEPER})[.):](?=[A-Z][A-Za-z]{{2}}))\s*"  # not E.coli
)
_NAMED = (
    r"related\s+(?:works?|literature|research|studies)|(?:previous|prior|earlier)\s+(?:works?|research|studies)"
    r"|theoretical\s+backgrounds?|literature\s+(?:review|survey|overview)|(?:review|survey)\s+of\s+(?:the\s+)?(?:related\s+)?literature"
)
_BACKGROUND = r"backgrounds?"
_RELATED_WORK = re.compile(
    rf"(?:(?:the|an?)\s+)?(?P<first>{_NAMED}|{_BACKGROUND})(?:\s*(?:and|&|,|/)\s*(?P<second>{_NAMED}|{_BACKGROUND}))?[\s.:]*",
    re.IGNORECASE,
)
_ABSTRACT = re.compile(r"\W*abstract\W*", re.IGNORECASE)
_INTRODUCTION = re.compile(r"introduction[\s.:]*", re.IGNORECASE)


def split_number(headline: str) -> tuple[str, str]:
    """The number of a headline as it is printed, without the stop after it, and the rest; an empty number if none.

    A lone A or I without a stop is a word: "A Survey".
    """
    match = _NUMBER.match(headline)
    if match is None or not (rest := headline[match.end() :]) or match.group().strip() in ("A", "I"):
        return "", headline
    return match[match.lastgroup or 0], rest


def is_related_work(headline: str | None, *, introduced: bool = False) -> bool:
    """Whether a section is about related work (OARelatedWork, Docekal et al. 2024, section 2.2).

    Args:
        headline: Its headline, with its number or without; None if it has none.
        introduced: Whether another section is the Introduction: then "Background" is one too.
    """
    match = _RELATED_WORK.fullmatch(_named(headline))
    is_more = match and not all(re.fullmatch(_BACKGROUND, kind.lower()) for kind in match.groups() if kind)
    return bool(match and (introduced or is_more))


def is_abstract(headline: str | None) -> bool:
    """Whether a section is the abstract."""
    return bool(_ABSTRACT.fullmatch(headline or ""))


def is_introduction(headline: str | None) -> bool:
    """Whether a section is the Introduction."""
    return bool(_INTRODUCTION.fullmatch(_named(headline)))


def _named(headline: str | None) -> str:
    return split_number((headline or "").strip())[1]


_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_ROMAN = [tens + ones for tens in ("", "X", "XX", "XXX") for ones in _ONES][1:]


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
    number = " ".join((number or "").split()).rstrip(".):")
    if number and re.match(rf"{re.escape(number)}(?![^\W_])", headline):
        headline = headline[len(number) :].lstrip(".): ")
    elif not number:
        number, headline = split_number(headline)
    return Section(headline, number)


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


def cleaned(sections: Sequence[Section], words: Sequence[int]) -> list[Section]:
    """Sections without badly parsed ones (2.1.4), given the number of words of each paragraph.

    A section is left out, with all in it, if its headline is empty or has less than 30 % Latin letters, or if it has no
    text.
    """
    return [
        Section(section.headline, section.number, list(section.paragraphs), cleaned(section.sections, words))
        for section in sections
        if latin_share(section.headline) >= LEAST_LATIN and any(words[place] for place in section.all_paragraphs())
    ]


def latin_share(text: str) -> float:
    """Share of Latin letters in the characters of a text other than white space; 0 of none."""
    signs = "".join(text.split())
    letters = (sign for sign in signs if sign.isalpha() and unicodedata.name(sign, "").startswith("LATIN"))
    return sum(1 for _ in letters) / len(signs) if signs else 0.0
