"""Callouts (citations in a text), and spans of a text."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


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
        end: First character after it.
        style: How it is printed; MANGLED if it is broken.
        works: How many works it cites; 0 if it is mangled.
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


class Spans:
    """Tells whether a span overlaps one of a set of spans."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            if self._spans and start < self._spans[-1][1]:
                self._spans[-1] = (self._spans[-1][0], max(end, self._spans[-1][1]))
            else:
                self._spans.append((start, end))
        self._starts = [start for start, _ in self._spans]

    def __call__(self, start: int, end: int) -> bool:
        """Whether characters from start to end overlap one of them."""
        at = bisect_right(self._starts, end - 1)
        return at > 0 and self._spans[at - 1][1] > start


def trimmed_end(text: str, place: int, signs: str = " \t\n\r\x0b\x0c\xa0") -> int:
    """A place moved back over the white space (or other characters) before it."""
    while place and text[place - 1] in signs:
        place -= 1
    return place
