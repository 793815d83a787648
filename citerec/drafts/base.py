"""What a draft is: its running text, and its places."""

import bisect
import re
from dataclasses import dataclass
from pathlib import Path

from citerec.records import MARKER

_MISSING = re.compile(r"\?{0,3}|todo|xxx+|fixme|tbd|cite|citation(?:[ _-]needed)?|ref|missing", re.IGNORECASE)
_ASKING = re.compile(r"\b(?:cite|citations?|refs?|references?)\b|\?\?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a draft that wants a citation.

    Attributes:
        path: The file.
        line: Its line, from 1.
        start: Where it begins in the text of the file, in characters.
        end: Where it ends.
    """

    path: Path
    line: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Draft:
    r"""A draft as running text.

    Attributes:
        text: Its paragraphs, blank lines between them, without commands, formulas, comments and the like. Each place is
            `<REF>`; what is cited stays as `\cite{key}` or `[@key]`.
        places: Its places, in the order of the text.
        title: Its title, if it states one.
    """

    text: str
    places: tuple[Place, ...] = ()
    title: str | None = None


class Source:
    """The text of a file, in which places have lines."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self._ends = [match.end() for match in re.finditer("\n", text)]

    def place(self, start: int, end: int) -> Place:
        """A place of this file."""
        return Place(self.path, self.line(start), start, end)

    def line(self, at: int) -> int:
        """The line of a character, from 1."""
        return bisect.bisect_right(self._ends, at) + 1


class Writer:
    """Collects the paragraphs of a draft. Footnotes and captions follow the paragraph that they are in."""

    def __init__(self) -> None:
        self._paragraphs: list[list[str | Place]] = [[]]
        self._waiting: list[list[str | Place]] = []
        self.title: str | None = None

    def add(self, *parts: str | Place) -> None:
        """Adds text, or places, to the paragraph."""
        self._paragraphs[-1] += [part if isinstance(part, Place) else part.replace(MARKER, "") for part in parts]

    def text(self, source: Source, start: int, end: int) -> None:
        """Adds text of the source, in which `<REF>` is a place."""
        for at, part in enumerate(source.text[start:end].split(MARKER)):
            if at:
                self.add(source.place(start, start + len(MARKER)))
                start += len(MARKER)
            self.add(part)
            start += len(part)

    def end_paragraph(self) -> None:
        """Begins a new paragraph."""
        self._paragraphs += [*self._waiting, []]
        self._waiting = []

    def aside(self, parts: "Writer") -> None:
        """Adds what stands in a footnote or a caption."""
        parts.end_paragraph()
        self._waiting += parts._paragraphs

    def draft(self) -> Draft:
        """The draft."""
        self.end_paragraph()
        places = (part for paragraph in self._paragraphs for part in paragraph if isinstance(part, Place))
        texts = ("".join(MARKER if isinstance(part, Place) else part for part in one) for one in self._paragraphs)
        folded = (" ".join(text.split()) for text in texts)
        return Draft("\n\n".join(filter(None, folded)), tuple(places), self.title)


def is_missing(key: str) -> bool:
    """Whether a citation key says that one is missing: nothing, `?`, `TODO` and the like."""
    return _MISSING.fullmatch(key.strip()) is not None


def asks_for_citation(note: str) -> bool:
    """Whether a note to oneself asks for a citation, such as "cite Smith"."""
    return _ASKING.search(note) is not None
