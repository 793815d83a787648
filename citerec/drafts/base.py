"""What a draft is: its running text, what it cites, and its places."""

import bisect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from citerec.contexts.topic import contexts_of_draft
from citerec.corpus.store import PaperStore
from citerec.records import MARKER, Context

_MISSING = re.compile(r"\?{0,3}|<ref>|todo|xxx+|fixme|tbd|cite|citation(?:[ _-]needed)?|ref|missing", re.IGNORECASE)
MARKS = re.compile(
    r"<REF>|(?<!\])\[(?:(?i:citation needed)|\?{1,3}|CITE|REF)\](?![(\[:])|\((?:REF|(?i:citation needed))\)"
)
"""What marks a place in running text, in every kind of draft."""
_OPTION, _FAR = re.compile(r"\\[A-Za-z]+\*?\Z"), 40
# What stands before a citation that is a word of its sentence: "@? showed", "shown by @?".
_SPOKEN = re.compile(
    r"(?:\A|\n(?:---)?[ \t\r]*\n|[.!?]\s+|\b(?:by|of|from|in|see|following|to|with|than|unlike|both)\s+)\s*\Z",
    re.IGNORECASE,
)
_SIGN = "\ue000"  # a place, while the text is put together
ABSTRACT = "Abstract"
"""The section of paragraphs in an environment for the abstract."""
_ASKING = re.compile(r"\b(?:cite|citations?|refs?|references?)\b|\?\?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    r"""How a citation is written: `opening`, the keys, `closing`.

    The keys are `written` in some way, with `prefix` before each and `separator` between.

    `\citep[see]{salton,?}` has the opening `\citep[see]{salton,` and the closing `}`.
    """

    opening: str
    closing: str
    separator: str = ","
    prefix: str = ""
    written: Callable[[str], str] = str

    def __call__(self, keys: Iterable[str]) -> str:
        """The citation of some keys."""
        return self.opening + self.separator.join(self.prefix + self.written(key) for key in keys) + self.closing


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a draft that wants a citation.

    Attributes:
        path: The file.
        line: Its line, from 1.
        start: Where it begins in the text of the file, in characters.
        end: Where it ends.
        form: What the citation that replaces it looks like; None where the place itself does not say.
        section: The heading that it is under.
        note: What a note says of the citation that is wanted: "eye tracking" in `todo{cite eye tracking}`.
        is_spoken: Whether the citation is a word of its sentence, as at its beginning: "<REF> showed".
    """

    path: Path
    line: int
    start: int
    end: int
    form: Form | None = None
    section: str | None = None
    note: str = ""
    is_spoken: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Cited:
    """A key that a draft cites, and where: `start` and `end` are of the whole citation, in characters."""

    key: str
    path: Path
    line: int
    start: int
    end: int

    def in_text(self, text: str) -> tuple[int, int]:
        """Where the key alone is in the text of its file; the whole citation, if it is not found."""
        pattern = re.compile(rf"(?<![\w:.-]){re.escape(self.key)}(?![\w:-])")
        match = pattern.search(text, self.start, self.end)
        return match.span() if match else (self.start, self.end)


@dataclass(frozen=True, slots=True)
class Citation:
    r"""Keys that are cited together, and how the running text shows them; not at all in a table, or by `\nocite`."""

    keys: tuple[Cited, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of the running text, the line where it begins, and the heading that it is under."""

    text: str
    path: Path
    line: int
    section: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    r"""A draft as running text.

    Attributes:
        text: Its paragraphs, blank lines between them, without commands, formulas, comments and the like. Each place is
            `<REF>`; what is cited stays as `\cite{key}` or `[@key]`.
        places: Its places, in the order of the text.
        cited: What it cites, in the order of the text.
        paragraphs: Its paragraphs, one by one.
        title: Its title, if it states one.
        authors: Its authors, if it names them.
        bibliographies: The `.bib` files that it names, which may be missing.
        missing: The files that it takes in by `\input` and that are not there.
        form: How its citations are written, where a place does not say.
        spoken: How those are written that are words of their sentences.
    """

    text: str
    places: tuple[Place, ...] = ()
    cited: tuple[Cited, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    title: str | None = None
    authors: tuple[str, ...] = ()
    bibliographies: tuple[Path, ...] = ()
    missing: tuple[Path, ...] = ()
    form: Form = Form("[@", "]", "; @")
    spoken: Form | None = None

    def contexts(
        self,
        store: PaperStore,
        cited: Mapping[str, str] | None = None,
        *,
        citing_id: str | None = None,
        citing_title: str | None = None,
        are_in_text: bool = True,
    ) -> list[Context]:
        """A context for each place, in order; without places, one for the whole text. Arguments as `contexts_of_draft`.

        What is cited is what the text cites, unless `are_in_text` says that it is a list of its own.
        The draft's title and authors stand in where neither the citing paper nor its title is given. What a note says
        of the citation that is wanted is added to the sentence.
        """
        title, authors = (citing_title, ()) if citing_id or citing_title else (self.title, self.authors)
        named = {"citing_id": citing_id, "citing_title": title}
        contexts = contexts_of_draft(self.text, store, cited, are_in_text=are_in_text, **named)
        contexts = [replace(context, citing_authors=authors) for context in contexts]
        if len(contexts) != len(self.places):  # no place
            return contexts
        return [
            replace(context, section=place.section, text=context.text + (f" ({place.note})" if place.note else ""))
            for context, place in zip(contexts, self.places, strict=True)
        ]

    def citation(self, place: Place, keys: Sequence[str]) -> str:
        """What the place becomes if these keys are cited there."""
        return (place.form or (self.spoken if place.is_spoken else None) or self.form)(keys)


class Source:
    """The text of a file, in which places have lines."""

    ends = re.compile(r"\r?\n")
    """What ends a line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        ends = list(self.ends.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._stops = [*(end.start() for end in ends), len(text)]

    def place(self, start: int, end: int, form: Form | None = None, note: str = "") -> Place:
        """A place of this file."""
        return Place(self.path, self.line(start), start, end, form, note=note)

    def is_spoken(self, at: int) -> bool:
        """Whether a citation at an offset is a word of its sentence: it begins one, or follows "by" and the like."""
        return _SPOKEN.search(self.text, max(0, at - _FAR), at) is not None

    def citation(self, keys: Iterable[str], start: int, end: int, text: str) -> Citation:
        """A citation of this file; `text` is how the running text shows it."""
        return Citation(tuple(Cited(key, self.path, self.line(start), start, end) for key in keys), text)

    def line(self, at: int) -> int:
        """The line of a character, from 1."""
        return bisect.bisect_right(self._starts, at)

    def position(self, at: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = self.line(at)
        return line, at - self._starts[line - 1] + 1

    def line_span(self, line: int) -> tuple[int, int]:
        """Where a line begins and ends, without its line end; the last one for lines behind it."""
        line = min(max(line, 1), len(self._starts))
        return self._starts[line - 1], self._stops[line - 1]


Part = str | Place | Citation


@dataclass(slots=True)
class _Paragraph:
    begins: Paragraph | None = None
    parts: list[Part] = field(default_factory=list)


class Writer:
    """Collects the paragraphs of a draft. Footnotes and captions follow the paragraph that they are in.

    Args:
        marks: What marks a place.

    Attributes:
        title: The title of the draft.
        authors: Its authors.
        section: The heading that what follows is under.
        in_abstract: Whether what follows is the abstract: then paragraphs are in a section of this name.
        bibliographies: The `.bib` files that the draft names.
        missing: The files that it takes in and that are not there.
        commands: How often each command or form of citation is used.
    """

    def __init__(self, marks: re.Pattern[str]) -> None:
        self.marks = marks
        self._paragraphs: list[_Paragraph] = [_Paragraph()]
        self._waiting: list[_Paragraph] = []
        self.title: str | None = None
        self.authors: list[str] = []
        self.section: str | None = None
        self.in_abstract = False
        self.bibliographies: list[Path] = []
        self.missing: list[Path] = []
        self.commands: Counter[str] = Counter()

    def add(self, *parts: Part) -> None:
        """Adds text, places or citations to the paragraph."""
        for part in parts:
            if isinstance(part, Place):
                part = replace(part, section=self.section)
            self._paragraphs[-1].parts.append(part)

    def text(self, source: Source, start: int, end: int) -> None:
        """Adds text of the source, with its places."""
        paragraph = self._paragraphs[-1]
        for mark in (*self.marks.finditer(source.text, start, end), None):
            if mark and _OPTION.search(source.text, max(0, mark.start() - _FAR), mark.start()):
                continue  # the option of a command
            part = source.text[start : mark.start() if mark else end]
            if paragraph.begins is None and part.strip():
                line = source.line(start + len(part) - len(part.lstrip()))
                section = ABSTRACT if self.in_abstract else self.section
                paragraph.begins = Paragraph("", source.path, line, section)
            self.add(part)
            if mark:
                self.add(replace(source.place(*mark.span()), is_spoken=source.is_spoken(mark.start())))
                start = mark.end()

    def end_paragraph(self) -> None:
        """Begins a new paragraph."""
        self._paragraphs += [*self._waiting, _Paragraph()]
        self._waiting = []

    def aside(self, parts: "Writer") -> None:
        """Adds what stands in a footnote or a caption."""
        parts.end_paragraph()
        self._waiting += parts._paragraphs
        self.commands += parts.commands

    def draft(self, form: Form, spoken: Form | None = None) -> Draft:
        """The draft; `form` is how its citations are written, and `spoken` how those are that are words."""
        self.end_paragraph()
        parts = [part for paragraph in self._paragraphs for part in paragraph.parts]
        shown = [(one, _running("".join(map(_shown, one.parts)))) for one in self._paragraphs]
        return Draft(
            text="\n\n".join(text for _, text in shown if text),
            places=tuple(part for part in parts if isinstance(part, Place)),
            cited=tuple(key for part in parts if isinstance(part, Citation) for key in part.keys),
            paragraphs=tuple(replace(one.begins, text=text) for one, text in shown if text and one.begins),
            title=self.title,
            authors=tuple(self.authors),
            bibliographies=tuple(dict.fromkeys(self.bibliographies)),
            missing=tuple(dict.fromkeys(self.missing)),
            form=form,
            spoken=spoken,
        )

    def words(self) -> str:
        """Its text in one line, such as that of a heading."""
        self.end_paragraph()
        texts = (part for paragraph in self._paragraphs for part in paragraph.parts if isinstance(part, str))
        return " ".join("".join(texts).split())


def _shown(part: Part) -> str:
    if isinstance(part, Place):
        return _SIGN
    return (part if isinstance(part, str) else part.text).replace(_SIGN, "")


def _running(text: str) -> str:
    """A paragraph in which only places are `<REF>`."""
    while MARKER in text:  # what is left may form another one
        text = text.replace(MARKER, "")
    return " ".join(text.split()).replace(_SIGN, MARKER)


def is_missing(key: str) -> bool:
    """Whether a citation key says that one is missing: nothing, `?`, `TODO` and the like."""
    return _MISSING.fullmatch(key.strip()) is not None


def asks_for_citation(note: str) -> bool:
    """Whether a note to oneself asks for a citation, such as "cite Smith"."""
    return _ASKING.search(note) is not None


def wanted(note: str) -> str:
    """What a note that asks for a citation says of it: "Smith" in "cite Smith"; empty if nothing."""
    return " ".join(_ASKING.sub(" ", note).replace(MARKER, " ").split()).strip(" .:;,!?")
