"""LaTeX in bibliographies, as plain text."""

import functools
import logging
import re
from collections.abc import Callable, Iterator

FAULTS = (AttributeError, LookupError, TypeError, ValueError)
"""What pylatexenc raises for a command that lacks its arguments, such as `\\footnote` alone."""

# Only texts with one of these need decoding; the decoder is slow.
_LATEX = re.compile(r"[\\{}~$%]|--|``|''")
_WORDS = re.compile(r"\S+\s*|\s+")
# What opens and closes a part of a text that is decoded as a whole; a backslash before another sign escapes it.
_MARKS = re.compile(r"\\(?P<opens>begin\b|[(\[])|\\(?P<closes>end\b|[)\]])|\\.|(?P<brace>[{}])|(?P<math>\$\$?)")
_WAITS = re.compile(r"\\(?:[A-Za-z]+\*?|[^A-Za-z\s]?)\s*$")  # a command that may take what follows it
_ARGUMENT = ("{", "[")
_AMPERSANDS = re.compile(r"\\.|\$[^$]*\$|&", re.DOTALL)  # none in mathematics, none that is escaped


def decoded(text: str) -> str:
    """A text with accents, macros, dashes and quotes as Unicode, no braces, white space folded; mathematics stays."""
    if _LATEX.search(text):
        text = "".join(_part(part) if _LATEX.search(part) else part for part in _parts(text))
    return " ".join(text.split())


@functools.lru_cache(1 << 14)  # the same names and signs come again and again
def _part(text: str) -> str:
    # A bare & would be read as the end of a table's cell.
    return _decoder()(_AMPERSANDS.sub(lambda match: r"\&" if match[0] == "&" else match[0], text))


def _parts(text: str) -> Iterator[str]:
    """The parts of a text that can be decoded one by one: words, and words that a brace, `$` or a command joins.

    The decoder goes through a text letter by letter, so an abstract with one accent would take milliseconds.
    """
    part: list[str] = []
    depth, math = 0, ""
    for word in _WORDS.findall(text):
        if part and not (depth or math or word.startswith(_ARGUMENT) or _WAITS.search(part[-1])):
            yield "".join(part)
            part.clear()
        if not part and not _LATEX.search(word):
            yield word
            continue
        part.append(word)
        for mark in _MARKS.finditer(word):
            if mark["math"]:
                math = "" if math == mark["math"] else math or mark["math"]
            depth += bool(mark["opens"] or mark["brace"] == "{") - bool(mark["closes"] or mark["brace"] == "}")
            depth = max(depth, 0)
    yield "".join(part)


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
