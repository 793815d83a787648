"""Numbered citations: lists of numbers with ranges, and whether a number in brackets cites at all."""

import re

from citerec.contexts.vocabulary import vocabulary

# Repeats are possessive (`++`) or bounded: no input makes them try twice.
DASH = "–—‐‑‒−-"
_ITEM = rf"\d{{1,4}}(?!\d)[a-z]?(?:\s?+[{DASH}]\s?+\d{{1,4}}(?!\d)[a-z]?)?"
LIST = rf"{_ITEM}(?:(?:\s?+[,;]\s?+(?:and\s)?|\s(?:and|&)\s){_ITEM})*+"
"""Numbers and ranges of numbers, as a regular expression."""

_LEAD = r"(?:reviewed in|see|e\.g\.|cf\.|also|i\.e\.|[Rr]efs?\.|for example|see also|see, e\.g\.),?"
_PLACE = (
    r"(?:\s?+[,:;]\s?+(?!\d)(?:see\s)?[^\[\]()\d]{0,40}\d[^\[\]()]{0,40}"
    r"|,?\s?+(?:and|&)\s(?:references|others)[^\[\]()]{0,30}|\sfor\s(?:a\s)?reviews?)"
)
NUMBERED = re.compile(rf"\s*+(?:{_LEAD}\s?+){{0,2}}(?P<list>{LIST})(?P<place>{_PLACE})?\s*+")
"""The content of a bracket with a numbered citation: lead-in, numbers, place in the cited work."""

BROKEN_LIST = re.compile(rf"\s*+{LIST}\s?+[,;{DASH}]?\s*+")
"""Numbers at the beginning of a bracket that is broken."""

WORD_BEFORE = re.compile(r"[^\W_]*$")
"""The letters and digits at the end of a text."""

GREATEST = 999
"""Greater numbers are years, or not citations."""

_INTERVAL_BEFORE = re.compile(
    r"(?:[∈=≤≥<>×∪∩]|\b(?:interval|intervals|range|ranges|between|within|domain|coordinates|scale|bounds?))\s*+$"
)
_SEQUENCE_BEFORE = re.compile(r"\b(?:sequence|list|array|vector|tuple)\s*+$")


def expanded(listed: str) -> tuple[int, ...]:
    """The numbers of `3, 5–7`; none if it is not such a list."""
    if not re.fullmatch(rf"\s*+{LIST}[,;]?\s*+", listed):
        return ()
    numbers: list[int] = []
    for part in re.split(r"[,;&]|and", listed):
        bounds = [int(number) for number in re.findall(r"\d+", part)]
        numbers.extend(number_range(*bounds) if len(bounds) == 2 else bounds)
    return tuple(numbers)


def number_range(first: int, last: int) -> tuple[int, ...]:
    """First to last; just these two if a citation would not have such a range."""
    return tuple(range(first, last + 1)) if first < last <= first + 200 else (first, last)


def cites_in_brackets(text: str, place: int, numbers: tuple[int, ...], match: "re.Match[str]") -> bool:
    """Whether `[…]` cites, and is neither an interval nor an index."""
    after = place + 2 + len(match.group())
    if (
        min(numbers) == 0
        or text[after : after + 1].isalpha()
        or (re.search(r"\d[a-z]", match["list"]) and len(numbers) > 1)
    ):
        return False
    glued = WORD_BEFORE.search(text, max(0, place - 30), place)
    if glued and 0 < len(glued.group()) <= 2 and not glued.group().isdigit():
        return False
    before = text[max(0, place - 30) : place]
    is_interval = len(numbers) == 2 and _INTERVAL_BEFORE.search(before)
    return not (is_interval or (len(numbers) > 1 and _SEQUENCE_BEFORE.search(before)))


def _falls(listed: str) -> bool:
    """Whether a range goes down, as in the score of a match."""
    return any(int(first) >= int(last) for first, last in re.findall(rf"(\d+)\s?[{DASH}]\s?(\d+)", listed))


def cites_in_parentheses(text: str, place: int, match: "re.Match[str]") -> bool:
    """Whether `(…)` cites, and is not an equation, a part of a list, or an argument of a function."""
    listed = match["list"]
    if re.search(r"\d[a-z]", listed) or place == 0 or "0" in re.findall(r"\d+", listed) or _falls(listed):
        return False
    if match["place"] or "ref" in match.group().lower():
        return True
    glued = WORD_BEFORE.search(text, max(0, place - 30), place)
    if text[place - 1] in "=_^)" or (
        glued and glued.group() and not (len(glued.group()) > 5 and glued.group().islower())
    ):
        return False
    before = text[max(0, place - 40) : place].rstrip()
    if not before or before[-1] in "=+×*/<>≤≥±~≈:–—-([" or before[-1].isdigit():
        return False
    word = WORD_BEFORE.search(before.rstrip(".,;"))
    last = word.group().lower() if word else ""
    return last not in vocabulary("before_no_citation") and last not in vocabulary("number_words")
