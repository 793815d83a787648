"""Text of third parties, made ready for a language model: nothing hidden in it, and no more than a limit."""

import regex

_LINE_ENDS = regex.compile(r"\r\n?|[\p{Zl}\p{Zp}\v\f\x85]")
_CONTROLS = regex.compile(r"[^\P{Cc}\n\t]")
# Zero-width characters, bidi overrides, tags, variation selectors, fillers; surrogates, which UTF-8 lacks; private use.
_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cs}\p{Co}]")


def visible(text: str) -> str:
    """A text without control characters, but line feeds and tabs, and without characters that nobody sees."""
    return str(_INVISIBLE.sub("", _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text))))


def shown(text: str, most: int) -> str:
    """A text on one line, as `visible` leaves it, of at most so many characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
