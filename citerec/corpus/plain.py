"""Text as a reader sees it: HTML entities, inline tags and LaTeX of titles, venues and names as plain text."""

import functools
import html
import re
from collections import Counter

from citerec.corpus.latex import decoded
from citerec.files.text import one_line

# Most texts have none of these, and reading must stay fast.
_SIGNS = re.compile(r"[&<\\]")
_SHORT = 300
_MATH = r"\$[^$]*\$"
_LATEX = re.compile(rf"{_MATH}|(\\)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BLOCKS = ("br", "p", "title", "sec", "div")
_INLINE = ("i", "b", "u", "em", "strong", "sub", "sup", "tt", "small", "span", "font", "inf", "sc", "scp")
_JATS = ("italic", "bold", "underline", "monospace", "roman")
# MathML is not among them: its tags stay.
_TAG = re.compile(
    rf"{_MATH}|<(?P<closing>/?)(?:jats:)?(?P<name>{'|'.join((*_BLOCKS, *_INLINE, *_JATS))})(?:\s[^<>]{{0,300}})?/?>",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    r"""A text without entities, inline tags and LaTeX, on one line; mathematics between `$` stays.

    LaTeX is decoded only where there is a backslash outside mathematics. `&lt;b&gt;` becomes the text `<b>`.
    """
    if not _SIGNS.search(text):
        return one_line(text)
    return _remembered(text) if len(text) <= _SHORT else _decoded(text)


def _decoded(text: str) -> str:
    if any(match[1] for match in _LATEX.finditer(text)):
        text = decoded(text)
    return without_markup(text)


# Decoding takes a tenth of a millisecond, and names come again; abstracts do not.
_remembered = functools.lru_cache(1 << 14)(_decoded)


def without_markup(text: str) -> str:
    """A text without inline tags and entities, on one line. A tag stays if it is not both opened and closed."""
    if "<" in text:
        open_tags = Counter[str]()
        for match in _TAG.finditer(text):
            if name := match["name"]:
                open_tags[name.lower()] += -1 if match["closing"] else 1
        text = _TAG.sub(lambda match: _shown(match, open_tags), text)
    return one_line(unescaped(text))


def _shown(match: "re.Match[str]", open_tags: "Counter[str]") -> str:
    name = (match["name"] or "").lower()
    if not name or (open_tags[name] and name != "br"):
        return match[0]
    return " " if name in _BLOCKS else ""


def unescaped(text: str) -> str:
    """A text with HTML entities as characters."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def escaped(text: str, *, backslashes: bool = True) -> str:
    """A text, on one line, from which `plain` makes the given one: what looks like an entity, tag or LaTeX is escaped.

    Args:
        text: The text as a reader should see it.
        backslashes: Whether backslashes are escaped too, where the file has no way of its own for them.
    """
    text = _ENTITY.sub(lambda match: f"&amp;{match[0][1:]}", one_line(text))
    text = _TAG.sub(lambda match: f"&lt;{match[0][1:]}" if match["name"] else match[0], text)
    return _LATEX.sub(lambda match: "&#92;" if match[1] else match[0], text) if backslashes else text
