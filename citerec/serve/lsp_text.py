"""Positions in the texts of an editor, and the citation that is typed at one of them."""

import bisect
import re
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from citerec.drafts.latex import CITATIONS
from citerec.drafts.read import is_markdown
from citerec.records import MARKER

_ENDS = re.compile(r"\r\n|\n|\r")
_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_FAR = 2500  # characters before the cursor in which a citation begins
# Every pattern is linear: repeats are bounded or possessive.
_CITE = re.compile(
    rf"\\(?:{'|'.join(sorted(CITATIONS | {'nocite'}))})\*?(?:\s?\[[^\[\]{{}}]{{0,200}}\]){{0,2}}\s?"
    r"\{(?P<keys>[^{}\\%]{0,2000})\Z"
)
_COMMENT = re.compile(r"(?<!\\)%")
_CLOSED = re.compile(r"(?P<rest>[^\s,{}\\%]*+)\s*+(?:,\s*+[^\s,{}\\%]*+\s*+)*+\}")
_BLANK = re.compile(r"\n[ \t\r]*\n")
# Of the citation around a place: what comes before it, and after it.
_OPENING = re.compile(r"(?:\\[a-zA-Z]{1,40}\*?(?:\[[^\[\]]{0,200}\]){0,2}\{[^{}]{0,2000}|[\[;@][^\[\]\n]{0,300})\Z")
_CLOSING = re.compile(r"\A\??[^{}\[\]\n]{0,2000}?[}\]]")
_COMMANDS = re.compile(r"\\(?!(?:no)?[a-zA-Z]{0,10}cite)[a-zA-Z]+\*?(?:\[[^\]]{0,100}\])?")
_AT = re.compile(r"(?<![\w@])@(?P<key>[\w:.#$%&+?<>~/-]{0,200})\Z")
_REST = re.compile(r"(?:[\w:.#$%&+?<>~/-]*\w)?\??")


class Lines:
    """The lines of a text, for positions in the units of an editor: pygls knows other ends of lines than the protocol.

    Args:
        text: The text.
        encoding: What characters of a line are counted in: `utf-8`, `utf-16` or `utf-32`.
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self._text = text
        self._codec, self._width = _CODECS[encoding]
        ends = list(_ENDS.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._stops = [*(end.start() for end in ends), len(text)]

    def offset(self, position: types.Position) -> int:
        """The offset of a position, in characters; a position that does not exist is moved to the nearest before it."""
        if position.line >= len(self._starts):
            return len(self._text)
        start, stop = self._starts[position.line], self._stops[position.line]
        units = self._text[start:stop].encode(self._codec, "surrogatepass")[: position.character * self._width]
        return start + len(units.decode(self._codec, "ignore"))

    def position(self, offset: int) -> types.Position:
        """The position of a character; one within an end of line is the end of its line."""
        line = bisect.bisect_right(self._starts, offset) - 1
        before = self._text[self._starts[line] : min(offset, self._stops[line])]
        return types.Position(line, len(before.encode(self._codec, "surrogatepass")) // self._width)

    def range(self, start: int, end: int) -> types.Range:
        """The range between two characters."""
        return types.Range(self.position(start), self.position(end))


@dataclass(frozen=True, slots=True)
class Typed:
    """A key of a citation that is being typed, or that the cursor is in.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        text: What is typed of it before the cursor.
        key: All of it.
        draft: The text of the draft with `?` in its place: what is typed is not searched.
    """

    start: int
    end: int
    text: str
    key: str
    draft: str


def typed_at(path: Path, text: str, offset: int) -> Typed | None:
    r"""The key at an offset of a LaTeX or Markdown text; None if there is none. Its citation may not be closed yet."""
    if is_markdown(path):
        return _in_markdown(text, offset)
    before = text[max(0, offset - _FAR) : offset]
    found = _CITE.search(before)
    if found is None or _BLANK.search(found["keys"]) or _COMMENT.search(before[before.rfind("\n") + 1 :]):
        return None
    start = offset - len(found["keys"].rpartition(",")[2].lstrip())
    closed = _CLOSED.match(text, offset)
    end = closed.end("rest") if closed else offset
    draft = f"{text[:start]}?{text[end:]}" if closed else f"{text[:start]}?}}{text[end:]}"
    return Typed(start, end, text[start:offset], text[start:end].strip(), draft)


def _in_markdown(text: str, offset: int) -> Typed | None:
    found = _AT.search(text, max(0, offset - _FAR), offset)
    if found is None:
        return None
    rest = _REST.match(text, offset)
    start, end = found.start("key"), rest.end() if rest else offset
    return Typed(start, end, found["key"], text[start:end], f"{text[:start]}?{text[end:]}")


def paragraph(text: str, at: int) -> tuple[int, int]:
    """Where the paragraph around an offset begins and ends."""
    start = max((match.end() for match in _BLANK.finditer(text, 0, at)), default=0)
    blank = _BLANK.search(text, at)
    return start, blank.start() if blank else len(text)


def plain_paragraph(text: str, at: int) -> str:
    """The paragraph around an offset as running text, with `<REF>` there; other commands are dropped."""
    start, stop = paragraph(text, at)
    before, after = text[start:at].replace(MARKER, ""), text[at:stop].replace(MARKER, "")
    before, after = _OPENING.sub("", before), _CLOSING.sub("", after)
    return re.sub(r"[{}$~]", " ", _COMMANDS.sub(" ", f"{before}{MARKER}{after}"))
