r"""LaTeX drafts: places are `\cite{?}`, `\citep{TODO}`, `\todo{cite …}` and `<REF>`.

Read by pylatexenc, which goes on where braces do not match.
"""

import functools
import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from citerec.drafts.base import Source, Writer, asks_for_citation, is_missing
from citerec.errors import InputError

_CITES = [
    *("cite", "citet", "citep", "citealt", "citealp", "citeauthor", "citeyear", "citeyearpar", "citenum"),
    *("parencite", "textcite", "autocite", "footcite", "footcitetext", "smartcite", "supercite", "fullcite"),
    *("onlinecite", "citen", "shortcite", "newcite", "citeasnoun", "possessivecite", "citeA", "citeNP"),
]
_CITATIONS = frozenset(_CITES) | {name[0].upper() + name[1:] for name in _CITES}
_NOTES = frozenset({"todo", "TODO", "note", "fixme", "hl", "marginpar", "marginnote"})
_ASIDES = frozenset({"footnote", "footnotetext", "caption", "thanks", "sidenote"})
_HEADINGS = frozenset({"part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"})
_INPUTS = frozenset({"input", "include", "subfile"})
# What is no text of the draft. Of these environments only captions are read.
_HIDDEN = frozenset(
    [
        *("equation", "align", "alignat", "flalign", "gather", "multline", "eqnarray", "math", "displaymath", "array"),
        *("split", "tabular", "tabularx", "tabulary", "longtable", "figure", "table", "wrapfigure", "wraptable"),
        *("subfigure", "subtable", "tikzpicture", "pgfpicture", "algorithm", "algorithmic", "algorithm2e", "CCSXML"),
        *("verbatim", "Verbatim", "lstlisting", "minted", "comment", "filecontents", "thebibliography", "keywords"),
    ]
)
_SILENT = frozenset(
    [
        *(
            "label",
            "ref",
            "eqref",
            "pageref",
            "autoref",
            "cref",
            "Cref",
            "nameref",
            "url",
            "nocite",
            "verb",
            "lstinline",
        ),
        *("includegraphics", "bibliography", "bibliographystyle", "usepackage", "hypersetup", "vspace", "hspace"),
        *("maketitle", "tableofcontents"),
        *("newcommand", "renewcommand", "providecommand", "def", "let", "setlength", "setcounter", "pagestyle"),
        *("thispagestyle", "date", "author", "affiliation", "institute", "email", "orcid", "ccsdesc", "keywords"),
    ]
)
_DEEPEST = 8  # files within files
_BEGIN = re.compile(r"^[^%\n]*?\\begin\{document\}", re.MULTILINE)
_KEY = re.compile(r"[^\s{}\\%#,~]+")
_BLANK = re.compile(r"\n[ \t\r]*\n\s*")


def read_latex(path: Path, text: str, opened: Callable[[Path], str]) -> Writer:
    r"""The paragraphs of a LaTeX file, and of the files that it takes in by `\input`.

    Args:
        path: The file.
        text: Its text.
        opened: Gives the text of another file; raises InputError if it cannot be read.

    Raises:
        InputError: The file cannot be understood.
    """
    writer = Writer()
    _Reader(Source(path, text), path.parent, writer, opened, 0).read()
    return writer


class _Reader:
    def __init__(self, source: Source, root: Path, writer: Writer, opened: Callable[[Path], str], depth: int) -> None:
        self._source, self._root, self._writer = source, root, writer
        self._opened, self._depth = opened, depth

    def read(self) -> None:
        """Reads the whole file: what stands in `document`, if there is one, and the title before it."""
        from pylatexenc.latexwalker import LatexWalker, LatexWalkerError

        text = self._source.text
        begin = _BEGIN.search(text)
        end = text.rfind(r"\end{document}") if begin else -1
        start, stop = begin.end() if begin else 0, end if end >= 0 else len(text)
        try:
            if begin:
                known = LatexWalker(text[:start], latex_context=_commands(), tolerant_parsing=True).get_latex_nodes()[0]
                for node in known:
                    if _name(node) == "title":
                        self._node(node)
            self._nodes(
                LatexWalker(text[:stop], latex_context=_commands(), tolerant_parsing=False).get_latex_nodes(pos=start)[
                    0
                ]
            )
        except (LatexWalkerError, RecursionError, IndexError) as error:
            where = getattr(error, "lineno", None)
            raise InputError(
                f"{self._source.path} cannot be understood{f', line {where}' if where else ''}",
                "Close its braces, environments and formulas.",
            ) from error

    def _nodes(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node is not None:
                self._node(node)

    def _node(self, node: Any) -> None:
        from pylatexenc import latexwalker as walked

        if isinstance(node, walked.LatexCharsNode):
            self._chars(node.pos, node.pos + node.len)
        elif isinstance(node, walked.LatexGroupNode):
            self._nodes(node.nodelist)
        elif isinstance(node, walked.LatexEnvironmentNode):
            self._environment(node)
        elif isinstance(node, walked.LatexMacroNode):
            self._macro(node)
        elif isinstance(node, walked.LatexCommentNode):
            if node.comment_post_space.count("\n") > 1:
                self._writer.end_paragraph()
        elif isinstance(node, walked.LatexSpecialsNode):
            self._writer.add(" " if node.specials_chars in "&~" else _as_text(node))
        else:  # mathematics
            self._writer.add(" ")

    def _chars(self, start: int, end: int) -> None:
        """Adds characters; a blank line ends the paragraph."""
        text = self._source.text
        while start < end:
            blank = _BLANK.search(text, start, end)
            stop = blank.start() if blank else end
            self._writer.text(self._source, start, stop)
            if blank:
                self._writer.end_paragraph()
            start = blank.end() if blank else end

    def _environment(self, node: Any) -> None:
        if node.environmentname.rstrip("*") in _HIDDEN:
            for one in _within(node.nodelist or ()):
                if _name(one) == "caption":
                    self._writer.aside(self._apart(one))
            return
        self._writer.end_paragraph()
        self._nodes(node.nodelist or ())
        self._writer.end_paragraph()

    def _macro(self, node: Any) -> None:
        name = node.macroname
        if name in _CITATIONS:
            self._citation(node)
        elif name in _NOTES:
            if asks_for_citation(_argument(node)):
                self._writer.add(self._source.place(node.pos, node.pos + node.len))
        elif name in _ASIDES:
            self._writer.aside(self._apart(node))
        elif name in _HEADINGS:
            self._writer.end_paragraph()
        elif name == "title":
            self._writer.title = self._apart(node).draft().text.replace("\n\n", " ") or None
        elif name in _INPUTS and self._depth < _DEEPEST:
            self._input(_argument(node).strip())
        elif name in ("item", "par"):
            self._writer.end_paragraph()
        elif name not in _SILENT:
            groups = [one for one in _arguments(node) if _is_group(one)]
            if name.isalpha() and len(name) > 1 and groups:
                self._nodes(groups)
            else:
                self._writer.add(_as_text(node))

    def _citation(self, node: Any) -> None:
        keys = [key.strip() for key in _argument(node).split(",")]
        known = [key for key in keys if _KEY.fullmatch(key) and not is_missing(key)]
        if known:
            self._writer.add(f"\\cite{{{','.join(known)}}}")
        if any(map(is_missing, keys)):
            self._writer.add(self._source.place(node.pos, node.pos + node.len))

    def _apart(self, node: Any) -> Writer:
        """What the arguments of a command say, on its own."""
        writer = Writer()
        reader = _Reader(self._source, self._root, writer, self._opened, self._depth)
        reader._nodes(one for one in _arguments(node) if _is_group(one))
        return writer

    def _input(self, name: str) -> None:
        path = self._root / name
        if not path.suffix:
            path = path.with_suffix(".tex")
        if path.is_file():  # LaTeX itself tells what is missing
            source = Source(path, self._opened(path))
            _Reader(source, self._root, self._writer, self._opened, self._depth + 1).read()


def _name(node: Any) -> str | None:
    """The name of a command or an environment; None for other nodes."""
    return getattr(node, "macroname", None) or getattr(node, "environmentname", None)


def _within(nodes: Iterable[Any]) -> Iterable[Any]:
    """Some nodes, and all that are inside of them."""
    for node in nodes:
        if node is not None:
            yield node
            yield from _within(getattr(node, "nodelist", None) or ())


def _arguments(node: Any) -> list[Any]:
    return [one for one in (node.nodeargd.argnlist or () if node.nodeargd else ()) if one is not None]


def _is_group(node: Any) -> bool:
    from pylatexenc.latexwalker import LatexGroupNode

    return isinstance(node, LatexGroupNode) and node.delimiters[0] == "{"


def _argument(node: Any) -> str:
    """The source of the last argument in braces, without these; empty if there is none."""
    groups = [one for one in _arguments(node) if _is_group(one)]
    return str(groups[-1].latex_verbatim()).removeprefix("{").removesuffix("}") if groups else ""


def _as_text(node: Any) -> str:
    """A symbol or an accented letter as Unicode."""
    return str(_to_text().node_to_text(node))


@functools.cache
def _to_text() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text

    return LatexNodes2Text()


@functools.cache
def _commands() -> Any:
    """The commands that pylatexenc knows, and those of citations and notes."""
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import MacroSpec

    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    known = get_default_latex_context_db()
    macros = [MacroSpec(name, "*[[{") for name in sorted(_CITATIONS)]
    macros += [MacroSpec(name, "[{") for name in sorted(_NOTES | _ASIDES | {"title"})]
    macros += [MacroSpec(name, "{") for name in sorted(_INPUTS)]
    known.add_context_category("citerec", macros=macros, prepend=True)
    return known
