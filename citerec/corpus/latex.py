"""LaTeX in bibliographies, as plain text."""

import functools
import logging
import re
from collections.abc import Callable

# Only texts with one of these need decoding; the decoder is slow.
_LATEX = re.compile(r"[\\{}~$%]|--|``|''")


def decoded(text: str) -> str:
    """A text with accents, macros, dashes and quotes as Unicode, no braces, white space folded; mathematics stays."""
    if _LATEX.search(text):
        text = _decoder()(text)
    return " ".join(text.split())


@functools.cache
def _decoder() -> Callable[[str], str]:
    from pylatexenc import latexwalker
    from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

    # What pylatexenc leaves out, or reads as another character.
    macros = {"textasciicircum": "^", "textbraceleft": "{", "textbraceright": "}"}
    context = get_default_latex_context_db()
    specs = [MacroTextSpec(name, character) for name, character in macros.items()]
    context.add_context_category("citerec", macros=specs, prepend=True)
    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    known = latexwalker.get_default_latex_context_db()  # made again for each text otherwise
    to_text = LatexNodes2Text(context, math_mode="verbatim", keep_comments=True).latex_to_text

    def decode(text: str) -> str:
        # A bare % in a .bib field is a per cent sign, not a comment; \% is one already.
        return str(to_text(re.sub(r"(?<!\\)%", r"\\%", text), tolerant_parsing=True, latex_context=known))

    return decode
