r"""LaTeX drafts: places are `\cite{?}`, `\citep{TODO}`, `\todo{cite …}` and `<REF>`.

Read by pylatexenc, which goes on where braces do not match.
"""

import functools
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pylatexenc import latexwalker as walked
from pylatexenc.latex2text import LatexNodes2Text
from pylatexenc.macrospec import EnvironmentSpec, MacroSpec, ParsedMacroArgs

from citerec.corpus.reading import FAULTS
from citerec.drafts.base import Draft, Form, Source, Writer, asks_for_citation, is_missing, wanted
from citerec.drafts.files import Files
from citerec.errors import InputError
from citerec.files.text import names_in

_CITES = names_in(
    "cite, citet, citep, citealt, citealp, citeauthor, citeyear, citeyearpar, citenum, parencite, textcite, autocite,"
    "footcite, footcitetext, smartcite, supercite, fullcite, onlinecite, citen, shortcite, newcite, citeasnoun,"
    "possessivecite, citeA, citeNP"
)
_SEVERAL = names_in("cites, parencites, textcites, autocites, footcites, smartcites, supercites")
"""Those of biblatex that have several groups of keys, each with its notes."""
CITATIONS = frozenset(case for name in (*_CITES, *_SEVERAL) for case in (name, name[0].upper() + name[1:]))
"""The commands that cite, without their backslash and star."""

_NOTES = frozenset({"todo", "TODO", "note", "fixme", "hl", "marginpar", "marginnote"})
_NEEDED = frozenset({"needcite", "needscite", "citationneeded", "missingcite", "citeme"})
_ASIDES = frozenset({"footnote", "footnotetext", "caption", "thanks", "sidenote"})
_HEADINGS = frozenset({"part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"})
_INPUTS = frozenset({"input", "include", "subfile"})
_BIBLIOGRAPHIES = frozenset({"bibliography", "addbibresource", "addglobalbib"})
_VERBATIM = ("verbatim", "Verbatim", "lstlisting", "minted", "comment", "filecontents")
# What is no text of the draft. Of these environments only captions are read.
_HIDDEN = names_in(
    f"{','.join(_VERBATIM)},"
    "equation, align, alignat, flalign, gather, multline, eqnarray, math, displaymath, array, split, tabular, tabularx,"
    "tabulary, longtable, figure, table, wrapfigure, wraptable, subfigure, subtable, tikzpicture, pgfpicture,"
    "algorithm, algorithmic, algorithm2e, CCSXML, thebibliography, keywords"
)
# Commands that are defined: what stands in them need not be whole, as in \newcommand{\be}{\begin{equation}}.
_DEFINITIONS = ("newcommand", "renewcommand", "providecommand", "DeclareRobustCommand", "def", "gdef", "edef")
_SILENT = names_in(
    f"{','.join(_DEFINITIONS)},"
    "label, ref, eqref, pageref, autoref, cref, Cref, nameref, url, verb, lstinline, includegraphics, usepackage,"
    "bibliographystyle, hypersetup, vspace, hspace, documentclass, maketitle, tableofcontents, printbibliography,"
    "let, setlength, setcounter, pagestyle, thispagestyle, date, author, affiliation, institute, email, orcid, ccsdesc,"
    "keywords"
)
# What cites as a word of a sentence, and in brackets; and what tells that there are both.
_SPOKEN = (
    ("textcite", "parencite", re.compile(r"\\(?:textcite|parencite|autocite)\b|\{biblatex\}")),
    ("citet", "citep", re.compile(r"\\cite[tp]\*?[\[{]|\{natbib\}")),
)
_RAW = ("url", "href", "path", "nolinkurl", "lstinline")
# Between braces, or two of the usual signs: `\path (a) node {b (c)}` is a drawing.
_ADDRESS = re.compile(r"\*?(?:\s?\[[^\[\]]{0,500}\])?(?:\s?\{(?:[^{}]|\{[^{}]{0,1000}\}){0,5000}\}|([|!+])[^\n]*?\1)")
_BRACES = r"\{[^{}]*+\}"
for _ in range(4):
    _BRACES = rf"\{{(?:[^{{}}]|{_BRACES}){{0,5000}}+\}}"
_DEFINITION = re.compile(
    rf"\*?\s?(?:\{{\s?\\[a-zA-Z@]+\s?\}}|\\[a-zA-Z@]+)(?:\s?\[[^\[\]]{{0,500}}\]|\#\d)*+\s?{_BRACES}"
)
_KEY_GROUPS = re.compile(r"\*?(?:\s?\([^(){}]{0,500}\)){0,2}(?:(?:\s?\[[^\[\]{}]{0,500}\]){0,2}\s?\{[^{}]{0,5000}\})+")
_DEEPEST = 8  # files within files
_TO_TEXT = LatexNodes2Text()
# Between the names of authors, and what stands beside a name; both are linear, as their repeats are bounded.
_BETWEEN_NAMES = re.compile(r"\\(?:and|And|AND)\b|\\\\|[,&]|\band\s|\n\s{0,100}\n")
_BESIDE_NAMES = re.compile(
    r"\$[^$]{0,100}\$|~|\\(?:thanks|footnote|footnotemark|inst|affil|email|orcid|orcidlink|textsuperscript|"
    r"IEEEauthorrefmark|IEEEauthorblockA)\b(?:\[[^\]]{0,100}\])?(?:\{[^{}]{0,300}\})?"
)
_BEGIN = re.compile(r"^[^%\n]*?\\begin\{document\}", re.MULTILINE)
_KEY = re.compile(r"[^\s{}\\%#,~]+")
_BLANK = re.compile(r"\n[ \t\r]*\n\s*")


def read_latex(path: Path, text: str, files: Files, marks: re.Pattern[str]) -> Draft:
    r"""The draft in a LaTeX file, and in the files that it takes in by `\input`.

    Args:
        path: The file.
        text: Its text.
        files: Where the other files are read.
        marks: What marks a place in running text.

    Raises:
        InputError: The file cannot be understood.
    """
    writer = Writer(marks)
    _Reader(Source(path, text), writer, files, (path,)).read()
    spoken, usual = next(((word, aside) for word, aside, sign in _SPOKEN if sign.search(text)), ("", "cite"))
    usual = next((name for name, _ in writer.commands.most_common() if name != spoken), usual)
    return writer.draft(Form(f"\\{usual}{{", "}"), Form(f"\\{spoken}{{", "}") if spoken else None)


class _Reader:
    def __init__(self, source: Source, writer: Writer, files: Files, open_files: tuple[Path, ...]) -> None:
        self._source, self._writer, self._files, self._open_files = source, writer, files, open_files
        self._root = open_files[0].parent

    def read(self) -> None:
        """Reads the whole file: what stands in `document`, if there is one, and the title before it."""
        text = self._source.text
        begin = _BEGIN.search(text)
        end = text.rfind(r"\end{document}") if begin else -1
        start, stop = begin.end() if begin else 0, end if end >= 0 else len(text)
        try:
            preamble = walked.LatexWalker(text[:start], latex_context=_commands(), tolerant_parsing=True)
            for node in preamble.get_latex_nodes()[0]:
                if _name(node) in {"title", "author", *_BIBLIOGRAPHIES}:
                    self._node(node)
            body = walked.LatexWalker(text[:stop], latex_context=_commands(), tolerant_parsing=False)
            self._nodes(body.get_latex_nodes(pos=start)[0])
        except (walked.LatexWalkerError, RecursionError, IndexError) as error:
            where = getattr(error, "lineno", None)
            message = f"{self._source.path} cannot be understood{f', line {where}' if where else ''}"
            raise InputError(message, "Close its braces, environments and formulas.") from error

    def _nodes(self, nodes: Iterable[Any]) -> None:
        for node in filter(None, nodes):
            self._node(node)

    def _node(self, node: Any) -> None:
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
        for blank in _BLANK.finditer(self._source.text, start, end):
            self._writer.text(self._source, start, blank.start())
            self._writer.end_paragraph()
            start = blank.end()
        self._writer.text(self._source, start, end)

    def _environment(self, node: Any) -> None:
        name = node.environmentname.rstrip("*")
        if name in _HIDDEN:
            self._hidden(() if name in _VERBATIM else node.nodelist or ())
            return
        outer, self._writer.in_abstract = self._writer.in_abstract, name == "abstract"
        self._writer.end_paragraph()
        self._nodes(node.nodelist or ())
        self._writer.in_abstract = outer
        self._writer.end_paragraph()

    def _hidden(self, nodes: Iterable[Any]) -> None:
        """Reads captions, and which keys are cited elsewhere, as in a table."""
        for node in filter(None, nodes):
            if _name(node) == "caption":
                self._writer.aside(self._apart(node))
            elif _name(node) in CITATIONS:
                self._keys(node, shown=False)
            else:
                self._hidden([*_arguments(node), *(getattr(node, "nodelist", None) or ())])

    def _macro(self, node: Any) -> None:
        name = node.macroname
        if name in CITATIONS:
            self._citation(node)
        elif name in _NEEDED:
            self._writer.add(self._source.place(node.pos, node.pos + node.len - len(node.macro_post_space)))
            self._writer.add(node.macro_post_space)
        elif name in _NOTES:
            if asks_for_citation(_argument(node)):
                note = wanted(self._apart(node).words())
                self._writer.add(self._source.place(node.pos, node.pos + node.len, note=note))
        elif name in _ASIDES:
            self._writer.aside(self._apart(node))
        elif name in _HEADINGS:
            self._writer.end_paragraph()
            self._writer.section = self._apart(node).words() or None
        elif name == "title":
            self._writer.title = self._apart(node).words() or None
        elif name == "author":
            names = _TO_TEXT.latex_to_text(_BETWEEN_NAMES.sub(";", _BESIDE_NAMES.sub(" ", _argument(node))))
            self._writer.authors += [" ".join(name.split()) for name in names.split(";") if name.strip()]
        elif name == "nocite":
            self._keys(node, shown=False)
        elif name in _BIBLIOGRAPHIES:
            for one in filter(str.strip, _argument(node).split(",")):
                path = self._root / one.strip().replace("\0", "")
                is_named = path.suffix.lower() == ".bib"  # `refs.v2` is `refs.v2.bib`
                self._writer.bibliographies.append(path if is_named else path.parent / f"{path.name}.bib")
        elif name in _INPUTS and len(self._open_files) <= _DEEPEST:
            self._input(_argument(node).strip())
        elif name in ("item", "par"):
            self._writer.end_paragraph()
        elif name not in _SILENT:
            groups = _groups(node)
            if name.isalpha() and len(name) > 1 and groups:
                self._nodes(groups)
            else:
                self._writer.add(_as_text(node))

    def _citation(self, node: Any) -> None:
        self._keys(node, shown=True)
        groups = _groups(node)
        group = next((one for one in groups if any(map(is_missing, _content(one).split(",")))), [None, *groups][-1])
        listed = _content(group) if group else ""
        keys = listed.split(",")
        missing = [at for at, key in enumerate(keys) if is_missing(key)]
        if len(missing) < len(keys):
            self._writer.commands[node.macroname] += 1
        if not missing or group is None:  # without groups: \cite at the end of a file
            return
        start, end, inner = node.pos, node.pos + node.len, group.pos + 1
        before = "".join(f"{key}," for key in keys[: missing[0]])
        after = "".join(f",{key}" for key in keys[missing[0] :] if not is_missing(key))
        text = self._source.text
        form = Form(text[start:inner] + before, after + text[inner + len(listed) : end])
        self._writer.add(self._source.place(start, end, form))

    def _keys(self, node: Any, *, shown: bool) -> None:
        """Adds the keys that a citation cites."""
        listed = names_in(",".join(map(_content, _groups(node))))
        keys = [key for key in listed if _KEY.fullmatch(key) and key != "*" and not is_missing(key)]
        if keys:
            text = f"\\cite{{{','.join(keys)}}}" if shown else ""
            self._writer.add(self._source.citation(keys, node.pos, node.pos + node.len, text))

    def _apart(self, node: Any) -> Writer:
        """What the arguments of a command say, on its own."""
        reader = _Reader(self._source, Writer(self._writer.marks), self._files, self._open_files)
        reader._nodes(_groups(node))
        return reader._writer

    def _input(self, name: str) -> None:
        path = input_path(self._root, name, self._files)
        is_there = self._files.exists(path)
        # LaTeX itself tells what takes in itself. Bibliographies are no LaTeX.
        if is_there and path not in self._open_files and path.suffix.lower() != ".bib":
            source = Source(path, self._files.text(path))
            _Reader(source, self._writer, self._files, (*self._open_files, path)).read()
        elif name and not is_there:
            self._writer.missing.append(path)


def input_path(root: Path, name: str, files: Files) -> Path:
    """The file that a name in `input` means: as LaTeX does, `NAME.tex` if it is there, else `NAME` itself."""
    path = root / name.replace("\0", "")  # which TeX ignores, and no path can hold
    with_suffix = path.parent / f"{path.name}.tex"
    return with_suffix if files.exists(with_suffix) else path


def _name(node: Any) -> str | None:
    """The name of a command or an environment; None for other nodes."""
    return getattr(node, "macroname", None) or getattr(node, "environmentname", None)


def _arguments(node: Any) -> list[Any]:
    arguments = getattr(node, "nodeargd", None)
    return [one for one in getattr(arguments, "argnlist", None) or () if one is not None]


def _groups(node: Any) -> list[Any]:
    """The arguments in braces."""
    return [one for one in _arguments(node) if getattr(one, "delimiters", None) == ("{", "}")]


def _argument(node: Any) -> str:
    """The source of the last argument in braces, without these; empty if there is none."""
    groups = _groups(node)
    return _content(groups[-1]) if groups else ""


def _content(group: Any) -> str:
    """The source of a group, without its braces."""
    return str(group.latex_verbatim()).removeprefix("{").removesuffix("}")


def _as_text(node: Any) -> str:
    """A symbol or an accented letter as Unicode; nothing for a command that lacks its arguments."""
    try:
        return str(_TO_TEXT.node_to_text(node))
    except FAULTS:
        return ""


@functools.cache
def _commands() -> Any:
    """The commands that pylatexenc knows, and those of citations, notes and listings."""
    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    database = walked.get_default_latex_context_db()
    address, key_groups = _Matching(_ADDRESS, has_groups=False), _Matching(_KEY_GROUPS, has_groups=True)
    macros = [MacroSpec(name, args_parser=address) for name in _RAW]
    macros += [MacroSpec(name, args_parser=_Matching(_DEFINITION, has_groups=False)) for name in _DEFINITIONS]
    for name in sorted(CITATIONS):
        macros.append(MacroSpec(name, args_parser=key_groups if name.lower() in _SEVERAL else "*[[{"))
    macros += [MacroSpec(name, "[{") for name in sorted(_NOTES | _ASIDES | {"title", "author", "addbibresource"})]
    macros += [MacroSpec(name, "{") for name in sorted(_INPUTS | {"bibliography", "addglobalbib", "nocite"})]
    listings = [EnvironmentSpec(name, args_parser=_Listing(name)) for name in _VERBATIM]
    database.add_context_category("citerec", macros=macros, environments=listings, prepend=True)
    return database


class _Matching:
    """Takes what a pattern matches for the arguments of a command; only if it `has_groups` are these read."""

    argspec = ""

    def __init__(self, pattern: re.Pattern[str], *, has_groups: bool) -> None:
        self._pattern, self._has_groups = pattern, has_groups

    def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> tuple[Any, int, int]:  # noqa: ARG002 - pylatexenc names it
        match = self._pattern.match(w.s, pos)
        end, groups = match.end() if match else pos, []
        if self._has_groups:
            groups = [w.get_latex_braced_group(at)[0] for at in range(pos, end) if w.s[at] == "{"]
        return ParsedMacroArgs(argnlist=groups), pos, end - pos


class _Listing:
    """Takes what stands in an environment for no LaTeX, up to its end: pylatexenc does so for `verbatim` only."""

    argspec = ""

    def __init__(self, name: str) -> None:
        self._end = f"\\end{{{name}}}"

    def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> tuple[Any, int, int]:  # noqa: ARG002 - pylatexenc names it
        if (end := w.s.find(self._end, pos)) < 0:
            raise walked.LatexWalkerParseError(s=w.s, pos=pos, msg=f"Cannot find {self._end}")
        return ParsedMacroArgs(argnlist=[]), pos, end - pos
