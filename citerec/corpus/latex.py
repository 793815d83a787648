"""LaTeX in bibliographies, as plain text."""

import functools
import logging
import re
from collections.abc import Callable

FAULTS = (AttributeError, LookupError, TypeError, ValueError)
"""What pylatexenc raises for a command that lacks its arguments, such as `\\footnote` alone."""

# Only texts with one of these need decoding; the decoder is slow.
_LATEX = re.compile(r"[\\{}~$%]|--|``|''")
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


def decoded(text: str) -> str:
    """A text with accents, macros, dashes and quotes as Unicode, no braces, white space folded; mathematics stays."""
    if _LATEX.search(text):
        # The decoder goes through a text letter by letter, so an abstract with one accent would take milliseconds.
        text = _UNIT.sub(lambda unit: _part(unit[0]) if _LATEX.search(unit[0]) else unit[0], text)
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
