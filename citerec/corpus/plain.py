"""Text as a reader sees it: HTML entities, inline tags and LaTeX of titles, venues and names as plain text."""

import functools
import html
import logging
import re
from collections import Counter
from collections.abc import Callable

from citerec.files.text import one_line

FAULTS = (AttributeError, LookupError, TypeError, ValueError)
"""What pylatexenc raises for a command that lacks its arguments, such as `\\footnote` alone."""

# Only texts with one of these need decoding; the decoder is slow.
_TEX_SIGNS = re.compile(r"[\\{}~$%]|--|``|''")
# What can be decoded by itself: a word with the commands, groups and mathematics in it, and what a command may take;
# else, where a brace or a `$` has no other half, all that follows.
_UNIT = re.compile(
    r"""(?:
    \\(?!begin\b)[A-Za-z]++\*?+\s*+ | \\[^A-Za-z\s(\[]\s*+ | (?<!\s)\s++(?=[{\[]) | [^\s\\{}$]
    | \{(?:[^{}\\]|\\.|\{(?:[^{}\\]|\\.)*+\})*+\} | \$\$(?:[^$\\]|\\.)*+\$\$ | \$(?:[^$\\]|\\.)++\$
    )++(?!\S) | \S.*""",
    re.VERBOSE | re.DOTALL,
)
_AMPERSANDS = re.compile(r"\\.|\$[^$]*\$|&", re.DOTALL)  # none in mathematics, none that is escaped
# Most texts have none of these, and reading must stay fast.
_SIGNS = re.compile(r"[&<\\]")
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
    if _SIGNS.search(text):
        if any(match[1] for match in _LATEX.finditer(text)):
            text = decoded(text)
        return without_markup(text)
    return one_line(text)


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


def decoded(text: str) -> str:
    """A text with accents, macros, dashes and quotes as Unicode, no braces, white space folded; mathematics stays."""
    if _TEX_SIGNS.search(text):
        # The decoder goes through a text letter by letter, so an abstract with one accent would take milliseconds.
        text = _UNIT.sub(lambda unit: _part(unit[0]) if _TEX_SIGNS.search(unit[0]) else unit[0], text)
    return " ".join(text.split())


@functools.lru_cache(1 << 14)  # the same names and signs come again and again
def _part(text: str) -> str:
    # A bare & would be read as the end of a table's cell.
    return _decoder()(_AMPERSANDS.sub(lambda match: r"\&" if match[0] == "&" else match[0], text))


@functools.cache
def _decoder() -> Callable[[str], str]:
    from pylatexenc import latexwalker
    from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

    # What pylatexenc leaves out, or reads as another character.
    macros = {"textasciicircum": "^", "textbraceleft": "{", "textbraceright": "}", "textless": "<", "textgreater": ">"}
    context = get_default_latex_context_db()
    specs = [MacroTextSpec(name, character) for name, character in macros.items()]
    context.add_context_category("citerec", macros=specs, prepend=True)
    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    known = latexwalker.get_default_latex_context_db()  # made again for each text otherwise
    to_text = LatexNodes2Text(context, math_mode="verbatim", keep_comments=True).latex_to_text

    def decode(text: str) -> str:
        # A bare % in a .bib field is a per cent sign, not a comment; \% is one already.
        try:
            return str(to_text(re.sub(r"(?<!\\)%", r"\\%", text), tolerant_parsing=True, latex_context=known))
        except FAULTS:
            return text

    return decode
