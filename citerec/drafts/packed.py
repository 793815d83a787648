"""Drafts that are a part of a file: the paragraphs of a Word or OpenDocument text, the Markdown of a Jupyter notebook.

Such a file is read as a text, in which each character knows where it stands in the file. What is changed is changed
there; all else stays as it is, byte for byte.
"""

import copy
import functools
import html
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from citerec.errors import InputError

_LARGEST = 1 << 26  # bytes of a part of a file
_BLANK = "\n\n"  # between paragraphs
_CONTROLS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f]")  # which XML cannot hold
_XML = re.compile(
    r"<!--.*?-->|<\?.*?\?>|<(?P<end>/?)(?P<name>[\w:.-]+)[^<>]*?(?P<empty>/?)>"
    r"|(?P<entity>&[#\w]+;)|(?P<text>[^<&]+)",
    re.DOTALL,
)
_JSON = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]')
_CHARACTERS = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]+")


class Piece(NamedTuple):
    """A piece of the text: where it stands in the part of the file, and what it says there."""

    start: int
    end: int
    text: str


class _Kind(NamedTuple):
    """A kind of file.

    Attributes:
        member: The part of its archive that holds the text; empty if it is no archive.
        pieces: Finds the pieces of the text.
        written: A text as it stands in the part.
    """

    member: str
    pieces: Callable[[str], Iterator[Piece]]
    written: Callable[[str], str]


class Packed:
    """The text of a file that holds more than a text.

    Args:
        path: The file, whose ending says what it is.
        data: Its bytes.

    Attributes:
        text: Its text.

    Raises:
        InputError: It is no such file, or is too large.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data, self._kind = path, data, KINDS[path.suffix.lower()]
        try:
            self._use(self._part().decode("utf-8"))
        except (KeyError, ValueError, NotImplementedError, RuntimeError, OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is no {path.suffix} file that can be read", "Save it again.") from error

    def _part(self) -> bytes:
        if not self._kind.member:
            return self._data
        with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
            if archive.getinfo(self._kind.member).file_size > _LARGEST:
                raise InputError(f"{self._path} is too large", "Split it.")
            return archive.read(self._kind.member)

    def _use(self, part: str) -> None:
        """Takes the part of the file that holds the text, as it is now."""
        self._part_now, texts = part, list[str]()
        # Where each character begins and ends in the part.
        self._starts, self._ends = list[int](), list[int]()
        for start, end, text in self._kind.pieces(part):
            is_as_written = end - start == len(text)
            self._starts += range(start, end) if is_as_written else [start] * len(text)
            self._ends += range(start + 1, end + 1) if is_as_written else [end] * len(text)
            texts.append(text)
        self.text = "".join(texts)

    def changed(self, start: int, end: int, new: str) -> "Packed":
        """The file with some characters of its text replaced; tags between them stay.

        Raises:
            InputError: There is no text to which they could be added.
        """
        if not self.text:
            raise InputError(f"{self._path} has no text", "Write some.")
        is_behind = start == end and start > 0 and self._ends[start - 1] > self._starts[start - 1]
        first = self._ends[start - 1] if is_behind else self._starts[min(start, len(self._starts) - 1)]
        last = self._ends[end - 1] if start < end else first
        tags = "".join(
            tag[0] for tag in _XML.finditer(self._part_now, first, last) if self._kind.member and tag["name"]
        )
        changed = copy.copy(self)
        changed._use(self._part_now[:first] + self._kind.written(new) + tags + self._part_now[last:])
        return changed

    def data(self) -> bytes:
        """The bytes of the file with what was changed."""
        part = self._part_now.encode()
        if not self._kind.member:
            return part
        packed = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self._data)) as archive, zipfile.ZipFile(packed, "w") as target:
            target.comment = archive.comment
            for info in archive.infolist():
                content = part if info.filename == self._kind.member else archive.read(info)
                target.writestr(info, content, info.compress_type)
        return packed.getvalue()


class _Names(NamedTuple):
    """What the elements of a kind of XML are called.

    Attributes:
        paragraphs: What holds a paragraph.
        texts: What holds text within it; empty if all of it is text.
        blanks: What is shown as a blank.
        hidden: What is no text of the author, with all that it holds.
        heading: A tag that makes the paragraph a heading.
        title: A tag that makes it the title.
    """

    paragraphs: tuple[str, ...]
    texts: tuple[str, ...]
    blanks: tuple[str, ...]
    hidden: tuple[str, ...]
    heading: re.Pattern[str]
    title: re.Pattern[str]


_WORD = _Names(
    paragraphs=("w:p",),
    texts=("w:t",),
    blanks=("w:br", "w:cr", "w:tab", "w:noBreakHyphen"),
    hidden=("mc:Fallback", "w:txbxContent"),
    heading=re.compile(r'<w:pStyle w:val="(?:Heading|berschrift|Titre|heading) ?\d'),
    title=re.compile(r'<w:pStyle w:val="Title"'),
)
_OPEN_DOCUMENT = _Names(
    paragraphs=("text:p", "text:h"),
    texts=(),
    blanks=("text:s", "text:tab", "text:line-break"),
    hidden=("office:annotation", "text:note", "text:tracked-changes"),
    heading=re.compile(r"<text:h\b"),
    title=re.compile(r'<text:p [^<>]*text:style-name="Title"'),
)


def _paragraphs(names: _Names, part: str) -> Iterator[Piece]:
    """The paragraphs of a document: a heading begins with "# ", the title with "% "."""
    depth = in_text = hidden = 0
    begins = ""  # what the next text of the paragraph begins with
    for token in _XML.finditer(part):
        name, opens, at = token["name"], not token["end"], token.start()
        by = 0 if token["empty"] else 1 if opens else -1
        if name in names.hidden:
            hidden += by
        elif hidden:
            continue
        elif name in names.paragraphs and by:
            depth += by
            begins = ""
            if not depth:
                yield Piece(at, at, _BLANK)
        elif depth and name in names.texts:
            in_text += by
        elif depth and name in names.blanks and opens:
            yield Piece(at, token.end(), " ")
        elif depth and name is None and (in_text or not names.texts) and (token["text"] or token["entity"]):
            text = html.unescape(token[0])
            yield Piece(at, at, begins)
            yield Piece(at, token.end(), text)
            begins = ""
        if depth and name and (names.heading.match(token[0]) or names.title.match(token[0])):
            begins = "% " if names.title.match(token[0]) else "# "


def _cells(part: str) -> Iterator[Piece]:
    """The Markdown cells of a notebook."""
    json.loads(part)
    depth, key, kind, found = 0, "", "", list[re.Match[str]]()
    for token in _JSON.finditer(part):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == _CELLS and kind == '"markdown"':
                yield from _strings(part, found)
            if depth == _CELLS:
                kind, found = "", []
        elif _is_key(part, token.end()):
            key = token[0] if depth == _CELLS + 1 else key
        elif key == '"cell_type"' and depth == _CELLS + 1:
            kind = token[0]
        elif key == '"source"' and depth in (_CELLS + 1, _CELLS + 2):
            found.append(token)


_CELLS = 2  # how deep the cells are
_is_key = re.compile(r"\s*:").match


def _strings(part: str, found: list[re.Match[str]]) -> Iterator[Piece]:
    for string in found:
        for one in _CHARACTERS.finditer(part, string.start() + 1, string.end() - 1):
            yield Piece(*one.span(), json.loads(f'"{one[0]}"'))
    if found:
        yield Piece(found[-1].end() - 1, found[-1].end() - 1, _BLANK)


def _as_xml(text: str) -> str:
    return html.escape(_CONTROLS.sub("", text), quote=False)


KINDS = {
    ".docx": _Kind("word/document.xml", functools.partial(_paragraphs, _WORD), _as_xml),
    ".odt": _Kind("content.xml", functools.partial(_paragraphs, _OPEN_DOCUMENT), _as_xml),
    ".ipynb": _Kind("", _cells, lambda text: json.dumps(text, ensure_ascii=False)[1:-1]),
}
"""What is more than a text, by the endings of the names of files."""
