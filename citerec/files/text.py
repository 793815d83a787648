"""Text for people: without control characters, which could control the terminal that shows it."""

import re
from collections.abc import Iterable

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """A text with a space for each control character but tabs and line feeds. Its length, and so offsets, stay."""
    return _CONTROLS.sub(" ", text)


def one_line(text: str) -> str:
    """A text without control characters, white space folded."""
    if text.isprintable() and "  " not in text:  # three times as fast, and nearly every text is so already
        return text.strip(" ")
    return " ".join(printable(text).split())


def replaced(text: str, spans: Iterable[tuple[int, int, str]], start: int = 0, end: int | None = None) -> str:
    """A text, or the part of it from `start` to `end`, with other words in place of some spans.

    Args:
        text: The text.
        spans: Start and end of each span, and the words for it, in order.
        start: Where the part begins.
        end: Where it ends; None for the end of the text.
    """
    parts, at = [], start
    for first, last, words in spans:
        parts += [text[at:first], words]
        at = last
    return "".join([*parts, text[at:end]])


def names_in(text: str) -> list[str]:
    """The names in a list with commas, without white space around them; empty ones are left out."""
    return [name for part in text.split(",") if (name := part.strip())]


def counted(number: int, of: str) -> str:
    """A number and its noun, in the plural if needed."""
    return f"{number:,} {of}{'' if number == 1 else 's'}"
