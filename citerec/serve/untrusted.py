"""Text of third parties, made ready to be shown: nothing hidden in it, and no more than a limit."""

import re

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\v\f\x85]")
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
# Zero-width characters, bidi overrides, tags, variation selectors, fillers; surrogates, which UTF-8 lacks; private use:
# Default_Ignorable_Code_Point, Cf, Cs and Co of Unicode 16.
_INVISIBLE = re.compile(
    "["
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160\u17b4-\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
    "]"
)


def visible(text: str) -> str:
    """A text without control characters, but line feeds and tabs, and without characters that nobody sees."""
    return str(_INVISIBLE.sub("", _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text))))


def shown(text: str, most: int) -> str:
    """A text on one line, as `visible` leaves it, of at most so many characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
