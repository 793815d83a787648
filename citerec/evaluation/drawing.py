"""Drawings as SVG with colours from the page's style sheet, so that one drawing works in light and dark mode."""

import html
import io
import re
import warnings
from typing import TYPE_CHECKING, Any

from citerec.diagnostics.drawing import drawing_style
from citerec.evaluation.tables import SYSTEM_COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART_COLOURS = 8
"""How many parts of a whole the page has colours for."""

_VARIABLES = (
    *("ink", "faint", "grid"),
    *(f"system-{number}" for number in range(SYSTEM_COLOURS)),
    *(f"part-{number}" for number in range(PART_COLOURS)),
)
_WIDTH = 9.6


def colour(variable: str) -> str:
    """A placeholder colour for matplotlib, which `svg` replaces with a variable of the page's style sheet."""
    return f"#0a0b{_VARIABLES.index(variable):02x}"


INK, FAINT = colour("ink"), colour("faint")
SYSTEMS = tuple(colour(f"system-{number}") for number in range(SYSTEM_COLOURS))
PARTS = tuple(colour(f"part-{number}") for number in range(PART_COLOURS))

_STYLE: Any = {
    "text.parse_math": False,  # a $ in the name of a class is a $
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "citerec",
    "grid.color": colour("grid"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), FAINT),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(("font.size", "axes.titlesize"), 10),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
}


def figure(height: float, columns: int, **options: Any) -> "Figure":
    """A figure as wide as the page, of a height in inches, with columns of axes; options go to `subplots`."""
    from matplotlib.figure import Figure

    with drawing_style(_STYLE):
        made = Figure(figsize=(_WIDTH, height), layout="constrained")
        made.subplots(1, columns, squeeze=False, **options)
    return made


def svg(drawn: "Figure", title: str) -> str:
    """The `<svg>` element for a page, with a title for screen readers."""
    from matplotlib.text import Text

    for text in drawn.findobj(Text):
        # A text keeps the style it was made with, and labels of ticks are made after `figure`.
        text.set_parse_math(False)
    file = io.StringIO()
    # The warnings are about letters that matplotlib's font lacks; the browser's font has them.
    with drawing_style(_STYLE), warnings.catch_warnings(action="ignore"):
        drawn.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    page = file.getvalue()
    page = page[page.index("<svg") :]
    # The page has this rule in its style sheet, the only one that it allows.
    page = re.sub(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", page, count=1)
    attributes = f'role="img" aria-label="{html.escape(title)}"'
    page = re.sub(
        r'<svg [^>]*viewBox="([^"]*)"[^>]*>', lambda found: f'<svg viewBox="{found[1]}" {attributes}>', page, count=1
    )
    return re.sub(r"#0a0b([0-9a-f]{2})", lambda found: f"var(--{_VARIABLES[int(found[1], 16)]})", page)
