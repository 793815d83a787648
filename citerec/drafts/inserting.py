"""Putting a text into a draft: where the sentence of a place ends, and how a text is written there."""

import re
from pathlib import Path
from typing import NamedTuple

from citerec.contexts.split import splitter
from citerec.drafts.read import is_latex, is_markdown
from citerec.records import MARKER

_FAR = 5000  # characters in which a sentence ends
_FINISHED = re.compile(r"[.!?][\"'’”»)\]]*\Z")


class _Markup(NamedTuple):
    """What is not running text.

    Attributes:
        hidden: Formulas, code and, as a group `comment`, comments: no sentence ends within them.
        group: What is in braces or brackets: neither.
        stop: Here the running text ends, whether or not the sentence has a full stop.
    """

    hidden: re.Pattern[str]
    group: re.Pattern[str]
    stop: re.Pattern[str]


_LATEX = _Markup(
    hidden=re.compile(
        r"\\[%&$#_{}]|(?P<comment>%[^\n]*)|\$\$[^$]+\$\$|\$[^$]+\$|\\\[.*?\\\]|\\\(.*?\\\)"
        r"|\\begin\{(?P<name>(?:equation|align|gather|multline|displaymath|math)\*?)\}.*?\\end\{(?P=name)\}",
        re.DOTALL,
    ),
    group=re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]"),
    stop=re.compile(
        r"\n[ \t\r]*\n|[{}$&]|\\\\|\\(?:begin|end|item|par|(?:sub){0,2}section|paragraph|chapter|caption|verb)(?![a-z])"
    ),
)
_MARKDOWN = _Markup(
    hidden=re.compile(r"(?P<comment><!--.*?(?:-->|\Z))|`[^`\n]+`|\$\$[^$]+\$\$|(?<!\\)\$[^$\n]+\$", re.DOTALL),
    group=re.compile(r"\[[^\[\]\n]*\]"),
    stop=re.compile(r"\n[ \t\r]*\n|\||\n[ \t]*(?:(?:[-*+>#]|\d{1,3}[.)])[ \t]|```|~~~)"),
)
_DEPTH = 5  # as deep as groups are followed
_COMMAND = re.compile(r"\\[a-zA-Z@]+\*?")

_NAMES = {"\\": "textbackslash", "^": "textasciicircum", "~": "textasciitilde", "<": "textless", ">": "textgreater"}
_AS_LATEX = {ord(sign): f"\\{sign}" for sign in "{}$&#%_"} | {ord(sign): f"\\{_NAMES[sign]}{{}}" for sign in _NAMES}
# Entities where citerec itself would not know the sign as escaped.
_AS_MARKDOWN = {ord(sign): f"\\{sign}" for sign in "\\*_{}#"} | {ord(sign): f"&#{ord(sign)};" for sign in "<@`$[]"}


def sentence_end(path: Path, text: str, at: int) -> int:
    """Where the sentence of the running text that an offset of a draft is in ends; without a stop, where its text ends.

    Args:
        path: The file, whose name says what it is.
        text: Its text.
        at: An offset that is not within a command, such as the end of a place.
    """
    markup, rest = _LATEX if is_latex(path) else _MARKDOWN, text[at : at + _FAR]
    rest = markup.hidden.sub(_masked, rest)
    for _ in range(_DEPTH):
        rest = markup.group.sub(_masked, rest)
    if stop := markup.stop.search(rest):
        rest = rest[: stop.start()]
    for _, end in splitter()(_COMMAND.sub(_masked, rest)):
        if _FINISHED.search(rest[:end]):
            return at + end
    return at + len(rest.rstrip())


def _masked(found: re.Match[str]) -> str:
    return (" " if found.groupdict().get("comment") else "X") * len(found[0])


def as_source(path: Path, text: str) -> str:
    """A text as it is written in a draft of this name: signs that LaTeX or Markdown would read are escaped."""
    if is_latex(path):
        return text.translate(_AS_LATEX)
    return text.translate(_AS_MARKDOWN) if is_markdown(path) else text.replace(MARKER, "")
