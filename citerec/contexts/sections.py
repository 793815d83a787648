"""Headlines and sections: their numbers, what they are about, and sections within sections.

Numbers decide what is within what (Docekal et al., OARelatedWork, 2.1.2 and 2.1.4).
"""

import copy
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

MOST_MISSING = 3
"""Numbers that may be missing between two headlines (Docekal et al., note 7)."""
FEWEST_NUMBERED = 3
"""Fewest numbered headlines that are nested."""
_MOST_NUMBERED = 500  # more are from a table; the search takes quadratic time
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
_TOP = (
    r"abstract|introduction|(?:materials?\s+and\s+)?methods?(?:\s+and\s+materials?)?|methodology"
    r"|(?:experimental\s+|empirical\s+)?(?:results|evaluation)|experiments?|evaluations?|discussions?"
    r"|conclusions?|concluding\s+remarks|summary|limitations|future\s+(?:works?|directions|research)"
    r"|funding|references|bibliography|data\s+availability|(?:conflicts?\s+of|competing)\s+interests?"
    r"|authors?['’]?\s+contributions?|ethics"
)
_ALWAYS_TOP = re.compile(
    rf"\W*(?:(?:acknowled\w+|appendi\w+|supplement\w+).*|(?:{_TOP})(?:[\s,&/]+(?:and\s+)?(?:{_TOP}))*"
    r"(?:\s+(?:section|statement))?[\s.:]*)",
    re.IGNORECASE,
)


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


def is_top(headline: str | None) -> bool:
    """Whether a headline is that of a top-level section, such as Conclusion or Funding."""
    return bool(_ALWAYS_TOP.fullmatch(_named(headline)))


def _named(headline: str | None) -> str:
    return split_number((headline or "").strip())[1]


_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_ROMAN = [tens + ones for tens in ("", "X", "XX", "XXX") for ones in _ONES]
_LONG_WORD = re.compile(r"[^\W\d_]{4}")

Number = tuple[tuple[str, int], ...]
"""The parts of a section number: how each is written (arabic, roman, letter), and its value."""


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
    """Nests the sections of a document; returns the given ones if their numbers make no sense.

    The longest run of consecutive numbers is trusted (the anchor). A headline without a number goes into the numbered
    section before it if that section continues after it: no number is missing between the two. Known top headlines,
    those in capitals if top headlines are in capitals, and those after the last number do not go into it. Single
    numbers that do not follow, such as the steps of an algorithm, are ignored.

    The list stays flat if fewer than three headlines, or fewer than half of the numbered ones, are consecutive, or if
    the numbers do not match level by level: a headline below the top is in no such run (3.5 after 2.3.1). The given
    sections are not changed.
    """
    flat = copy.deepcopy(list(shallow))
    numbers = section_numbers([section.number for section in flat])
    numbered = [place for place, number in enumerate(numbers) if number]
    if not FEWEST_NUMBERED <= len(numbered) <= _MOST_NUMBERED:
        return flat
    anchor = set(_anchor(numbered, numbers, flat))
    is_deep = any(len(numbers[place]) > 1 for place in numbered if place not in anchor)
    if is_deep or len(anchor) < max(FEWEST_NUMBERED, len(numbered) / 2):
        return flat
    return _nested(flat, [number if place in anchor else () for place, number in enumerate(numbers)])


def _anchor(numbered: Sequence[int], numbers: Sequence[Number], flat: Sequence[Section]) -> list[int]:
    """The longest run of headlines in which each number follows the one before it, with few numbers missing.

    Of two equally long runs, the one with fewer lower-case words in its headlines.
    """
    runs: list[tuple[tuple[int, int], list[int]]] = []  # the best one up to each headline: length and looks; places
    for place in numbered:
        small = sum(word[0].islower() for word in flat[place].headline.split())
        score, best = ((1, -small) if missing((), numbers[place]) <= MOST_MISSING else (0, 0)), list[int]()
        for (count, looks), run in runs:
            longer = (count + 1, looks - small)
            if count and longer > score and missing(numbers[run[-1]], numbers[place]) <= MOST_MISSING:
                score, best = longer, run
        runs.append((score, [*best, place] if score[0] else []))
    return max(runs, key=lambda run: run[0])[1]


def _nested(flat: Sequence[Section], numbers: Sequence[Number]) -> list[Section]:
    top: list[Section] = []
    path: list[tuple[Number, Section]] = []  # from the top to the last numbered section, as far as it goes on
    last: Number = ()
    capitals = _capitals_tell(flat, numbers)
    # The number that comes next after each headline; empty after the last.
    after = list(itertools.accumulate(reversed(numbers[1:]), lambda later, one: one or later, initial=last))[::-1]
    for place, (section, number) in enumerate(zip(flat, numbers, strict=True)):
        goes_on = place > 0 and _goes_on(flat[place - 1], section)
        is_one = is_top(section.headline) or (capitals and _in_capitals(section) and not goes_on)
        is_lost = not after[place] or (not section.number and _is_missing_between(last, after[place]))
        if number:
            last = number
            path = [one for one in path if one[0] == number[: len(one[0])]]
        elif is_one or (is_lost and not goes_on):
            level = _shared(last, after[place])
            path = [one for one in path if len(one[0]) <= level]
        (path[-1][1].sections if path else top).append(section)
        if number:
            path.append((number, section))
    return top


def _is_missing_between(before: Number, after: Number) -> bool:
    """Whether a headline is missing at the level where two numbers differ: 3 between 2.1 and 4, 2.2 before 2.3."""
    at = _shared(before, after)
    if at == len(before) or at == len(after) or before[at][0] != after[at][0]:
        return False
    return after[at][1] > before[at][1] + 1


def _shared(before: Number, after: Number) -> int:
    """How many first parts two numbers have in common."""
    return len(list(itertools.takewhile(lambda parts: parts[0] == parts[1], zip(before, after, strict=False))))


def _capitals_tell(flat: Sequence[Section], numbers: Sequence[Number]) -> bool:
    """Whether capitals mark top headlines: most of these are in capitals, and few of the deeper ones."""
    marked = [(len(number), _in_capitals(section)) for section, number in zip(flat, numbers, strict=True) if number]
    tops, deeper = ([capitals for level, capitals in marked if (level == 1) == is_top] for is_top in (True, False))
    return 2 * sum(tops) > len(tops) and 2 * sum(deeper) <= len(deeper)


def _goes_on(before: Section, section: Section) -> bool:
    """Whether a headline is the second line of the one before it, as printed in capitals over two lines."""
    return not (before.paragraphs or section.number) and _in_capitals(before) and _in_capitals(section)


def _in_capitals(section: Section) -> bool:
    return section.headline.isupper() and bool(_LONG_WORD.search(section.headline))


def missing(before: Number, number: Number) -> float:
    """How many numbers are missing between two: none between 2 and 2.1, 2.3 and 3; infinite if it does not follow.

    At the beginning `before` is empty. If a level above changes, only a headline of that level follows: after 2.3.1
    neither 3.5 nor 2.4.1 does.
    """
    shared = _shared(before, number)
    if shared == len(number):
        return math.inf  # the same again, or a section after its own subsection
    style, value = number[shared]
    count = value - 1
    if shared < len(before):
        style_before, last = before[shared]
        is_appendix = shared == 0 and style == "letter" and style_before != style  # after numbered sections
        if len(number) > shared + 1 or (style_before != style and not is_appendix):
            return math.inf
        count -= 0 if is_appendix else last
    # Each deeper level begins at its first number, and the headline above it is missing.
    return count + sum(value for _, value in number[shared + 1 :]) if count >= 0 else math.inf


def section_numbers(written: Sequence[str]) -> list[Number]:
    """Section numbers from their written forms, in the order of their headlines; empty for an invalid one.

    A letter counts as roman if other numbers have roman parts at the same level. Single letters between two roman
    numbers are subsections of the first: I, II, A, B, III.
    """
    split = [text.split(".") if text else [] for text in written]
    roman = {at for parts in split for at, part in enumerate(parts) if len(part) > 1 and part in _ROMAN}
    parts_read = [[_part(part, at in roman) for at, part in enumerate(parts)] for parts in split]
    numbers: list[Number] = [tuple(filter(None, parts)) if all(parts) else () for parts in parts_read]
    top = [place for place, number in enumerate(numbers) if [style for style, _ in number] == ["roman"]]
    for first, last in itertools.pairwise(top):
        for place in range(first + 1, last):
            if [style for style, _ in numbers[place]] == ["letter"]:
                numbers[place] = numbers[first] + numbers[place]
    return numbers


def _part(part: str, may_be_roman: bool) -> tuple[str, int] | None:
    """A part of a number: how it is written, and its value; None if it is invalid."""
    if part.isascii() and part.isdigit() and len(part) < 10 and 0 < int(part) < 100:
        return "arabic", int(part)
    if may_be_roman and part in _ROMAN:
        return "roman", _ROMAN.index(part)
    return ("letter", ord(part) - ord("A") + 1) if len(part) == 1 and "A" <= part <= "Z" else None


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
