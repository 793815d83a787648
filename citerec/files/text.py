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


_FUNCTION_WORDS = """
a an the this that these those each every either neither both all any some no none such same other another own
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones
myself ourselves yourself himself herself itself oneself themselves
who whom whose which what whatever whoever when whenever where wherever why how
am is are was were be been being do does did doing done have has had having can cannot could may might must
shall should will would can't don't doesn't didn't isn't aren't wasn't weren't won't not
and or but nor so yet if then else than because although though while whereas unless until since as whether
of in on at by for with without within about against among between through throughout during before after above
below over under up down out off into onto from to toward towards upon via per across along around behind beside
besides beyond despite except inside outside near
also too very only just even still already again further here there thus hence therefore however moreover
furthermore more most less least much many few several et al e g i etc
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""The closed word classes of English, which a sentence on any topic needs. The list is citerec's own."""
