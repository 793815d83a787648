"""Raised citations: superscript characters, markup, and digits that the extraction from PDF has flattened."""

import re
from collections.abc import Iterator, Sequence

from citerec.contexts.callout import Callout, Style
from citerec.contexts.numbers import DASH, LIST, WORD_BEFORE, expanded
from citerec.contexts.vocabulary import vocabulary

DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
LOWERED = str.maketrans(DIGITS + "⁻˒", "0123456789–,")
"""Superscript characters to plain ones, for `str.translate`."""

_RAISED = re.compile(
    rf"(?P<sign>[{DIGITS}][{DIGITS},⁻–˒-]*+)"
    rf"|\^\{{(?P<braced>{LIST})\}}|\^(?P<hat>\d{{1,3}}(?:[,{DASH}]\d{{1,3}})*+)|<sup>\s?+(?P<markup>{LIST})\s?+</sup>"
)
_FLATTENED = re.compile(
    rf"(?<=[.,;:?!”\"’])(?P<list>[1-9]\d{{0,2}}(?:,?[{DASH}]\d{{1,3}}(?!\d)|,\s?\d{{1,3}}(?!\d))*+)"
)
# Apart from the list, which would be tried again from each of its numbers.
_GOES_ON = re.compile(r"[\w%°)\]/–-]|[.,:]\d|\s?+(?:%|percent)")


def raised(text: str) -> Iterator[Callout]:
    """Citations in superscript characters, or marked as raised: `¹²`, `^{12}`, `<sup>12</sup>`."""
    for match in _RAISED.finditer(text):
        listed = match[str(match.lastgroup)].translate(LOWERED)
        # A unit has a dash before its number, and a power follows a letter or two, or a number.
        if listed.startswith(("–", "-")) or (match.start() and text[match.start() - 1] in "⁻⁺"):
            continue
        word = WORD_BEFORE.search(text, max(0, match.start() - 30), match.start())
        base = word.group() if word else ""
        if base and (len(base) <= 2 or base[-1].isdigit()):
            continue
        if (
            not text[: match.start()].strip()
            if match.start() < 3
            else text[match.start() - 2 : match.start()].isspace()
        ):
            continue  # a footnote may begin like this
        if text[match.start() - 1 : match.start()].isspace() and text[match.end() : match.end() + 1].isupper():
            continue  # or like this
        numbers = expanded(listed.rstrip(",–-"))
        if numbers and numbers[0]:
            end = match.end() - (len(match.group()) - len(match.group().rstrip(",–-˒⁻")))
            yield Callout(match.start(), end, Style.SUPERSCRIPT, len(numbers), numbers)


def flattened(text: str, hints: Sequence[tuple[int, int]]) -> Iterator[Callout]:
    """Citations whose raised digits became plain, glued to punctuation: `as shown.12`. Hints are known citations."""
    starts = {start for start, _ in hints}
    for match in _FLATTENED.finditer(text):
        if _GOES_ON.match(text, match.end()):
            continue
        if not (match.start() in starts or _ends_a_clause(text[max(0, match.start() - 32) : match.start()])):
            continue
        numbers = expanded(match["list"])
        if numbers:
            yield Callout(match.start(), match.end(), Style.SUPERSCRIPT, len(numbers), numbers)


def _ends_a_clause(before: str) -> bool:
    """Whether a text ends in a mark of punctuation after a word, rather than within an abbreviation or a number."""
    if before[-1] in '”"’':
        return before[-2:-1] in (".", ",", ";")
    clause = before[:-1]
    if clause.endswith((")", "]", "%", "”", '"')) or re.search(r"\bet\s+al\.?,?$", before):
        return True
    word = WORD_BEFORE.search(clause)
    last = word.group() if word else ""
    return len(last) > 2 and last.isalpha() and last.islower() and last not in vocabulary("abbreviations")
