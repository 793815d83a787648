"""Text for people: without control characters, which could control the terminal that shows it."""

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """A text with a space for each control character but tabs and line feeds. Its length, and so offsets, stay."""
    return _CONTROLS.sub(" ", text)


def one_line(text: str) -> str:
    """A text without control characters, white space folded."""
    if text.isprintable() and "  " not in text:  # three times as fast, and nearly every text is so already
        return text.strip(" ")
    return " ".join(printable(text).split())


def counted(number: int, of: str) -> str:
    """A number and its noun, in the plural if needed."""
    return f"{number:,} {of}{'' if number == 1 else 's'}"
