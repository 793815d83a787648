"""Filling a draft: papers are cited at its places, and their entries added to its bibliography.

And its sentences: without their citations, and where they stand in its files.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from citerec.contexts.markers import CitationMarker, Spans, Style, find_markers
from citerec.contexts.split import sentences_of, splitter
from citerec.discourse.worthiness import Sentence
from citerec.drafts.base import Paragraph, Place, Source
from citerec.drafts.bibliography import Bibliography, Matcher
from citerec.drafts.files import Files, State
from citerec.drafts.read import draft_kind, read_draft
from citerec.drafts.support import supporting_sentence
from citerec.errors import InputError
from citerec.files.text import names_in
from citerec.index.columns import words_in
from citerec.records import MARKER, Answer, Context, Hit, Paper


class Filling:
    """A draft and its bibliography, which are changed in `files` until these are written.

    Args:
        path: The draft.
        bibliography: Its `.bib` file; by default those that it names.
        files: Where both are read, and changed; by default the disk.
        match: Finds the papers of entries.
        pattern: Of new keys; by default as the bibliography has them.

    Attributes:
        draft: The draft as it is now.
        bibliography: Its bibliography.
        files: The files.

    Raises:
        InputError: A file cannot be read or understood, or the draft names no bibliography and none is given.
    """

    def __init__(
        self,
        path: Path,
        bibliography: Path | None = None,
        files: Files | None = None,
        match: Matcher | None = None,
        pattern: str = "",
    ) -> None:
        self.path, self.files = path, files or Files()
        self.draft = read_draft(path, self.files)
        named = [bibliography] if bibliography else list(self.draft.bibliographies)
        if not named:
            raise InputError(f"{path} names no bibliography", "Give one: --bib refs.bib. It is made if it is missing.")
        self._read_bibliography = partial(Bibliography, named, self.files, match, pattern)
        self.bibliography = self._read_bibliography()

    @property
    def cited(self) -> dict[str, str]:
        """The papers of the index that the draft cites, by key; no others of the bibliography, which may be large."""
        return self.bibliography.papers_of(one.key for one in self.draft.cited)

    def beside(self, place: Place) -> tuple[str, ...]:
        """The papers of the index that the citation at a place cites already."""
        keys = (one.key for one in self.draft.cited if (one.path, one.start) == (place.path, place.start))
        return tuple(self.bibliography.papers_of(keys).values())

    def restore(self, state: State) -> None:
        """Takes the draft and its bibliography back to a state of their files."""
        self.files.restore(state)
        self._read()

    def reload(self) -> bool:
        """Reads the draft and its bibliography again if others have saved one of them; whether they have."""
        if is_saved := self.files.reload():
            self._read()
        return is_saved

    def _read(self) -> None:
        self.draft, self.bibliography = read_draft(self.path, self.files), self._read_bibliography()

    def mark(self, path: Path, at: int, marker: str) -> int:
        """Makes a place at an offset of a file; its number."""
        self.files.change(path, at, at, marker)
        self.draft = read_draft(self.path, self.files)
        places = enumerate(self.draft.places)
        return next(number for number, one in places if one.path == path and at <= one.start <= at + len(marker))

    def unmark(self, path: Path, at: int, marker: str) -> None:
        """Takes back a place that was made."""
        self.files.change(path, at, at + len(marker), "")
        self.draft = read_draft(self.path, self.files)

    def cite(self, place: int, papers: Sequence[Paper], said: str = "") -> list[str]:
        """Cites papers at a place, by its number from 0; the places after it then have other numbers.

        Args:
            place: The place.
            papers: The papers.
            said: A text that cites them too, as it is written in the draft; it is put behind the sentence of the place.

        Returns:
            Their keys. Papers that the bibliography lacks are added to it.

        Raises:
            InputError: An encoding lacks a character of an entry.
        """
        at = self.draft.places[place]
        keys = list(dict.fromkeys(map(self.bibliography.add, papers)))
        if said:
            end = sentence_end(at.path, self.files.text(at.path), at.end)
            self.files.change(at.path, end, end, f" {said}")
        self.files.change(at.path, at.start, at.end, self.draft.citation(at, keys))
        self.draft = read_draft(self.path, self.files)
        return keys


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
    stop=re.compile(r"\n[ \t\r]*\n|\||\n[ \t]*(?:(?:[-*+>#]|\d{1,3}[.)])[ \t]|```|~~~|#\+)"),
)
_DEPTH = 5  # as deep as groups are followed
_COMMAND = re.compile(r"\\[a-zA-Z@]+\*?")

_NAMES = {"\\": "textbackslash", "^": "textasciicircum", "~": "textasciitilde", "<": "textless", ">": "textgreater"}
_AS_LATEX = {ord(sign): f"\\{sign}" for sign in "{}$&#%_"} | {ord(sign): f"\\{_NAMES[sign]}{{}}" for sign in _NAMES}
# Entities where citerec itself would not know the sign as escaped.
_AS_MARKDOWN = {ord(sign): f"\\{sign}" for sign in "\\*_{}#"} | {ord(sign): f"&#{ord(sign)};" for sign in "<@`$[]"}
_ORG_NAMES = ("lbrack", "rbrack", "tilde", "dollar", "equal")
_AS_TYPST = {ord(sign): f"\\{sign}" for sign in "\\*_#$@<`[]/"}
_AS_ORG = {ord(sign): f"\\{name}{{}}" for sign, name in zip("[]~$=", _ORG_NAMES, strict=True)} | {ord("\\"): None}

_AS_SOURCE: dict[str, Mapping[int, str | None]] = {
    "LaTeX": _AS_LATEX,
    "Markdown": _AS_MARKDOWN,
    "a Jupyter notebook": _AS_MARKDOWN,
    "Typst": _AS_TYPST,
    "Org": _AS_ORG,
}
_READS_SIGNS = ("LaTeX", "Markdown", "a Jupyter notebook")  # there `<REF>` is escaped too


def sentence_end(path: Path, text: str, at: int) -> int:
    """Where the sentence of the running text that an offset of a draft is in ends; without a stop, where its text ends.

    Args:
        path: The file, whose name says what it is.
        text: Its text.
        at: An offset that is not within a command, such as the end of a place.
    """
    markup, rest = _LATEX if draft_kind(path) == "LaTeX" else _MARKDOWN, text[at : at + _FAR]
    rest = markup.hidden.sub(_masked, rest)
    for _ in range(_DEPTH):
        rest = markup.group.sub(_masked, rest)
    if stop := markup.stop.search(rest):
        rest = rest[: stop.start()]
    for _, end in splitter()(_COMMAND.sub(_masked, rest)):
        if _FINISHED.search(rest[:end]):
            return at + end
    return at + len(rest.rstrip())


def _masked(match: re.Match[str]) -> str:
    return (" " if match.groupdict().get("comment") else "X") * len(match[0])


# How `Paragraph` shows citations and places.
_SHOWN = re.compile(rf"\\cite\{{[^{{}}]*\}}|\[@[^\[\]]*\]|{re.escape(MARKER)}")
_SIGN = "\N{OBJECT REPLACEMENT CHARACTER}"
_KEY = re.compile(r"@([\w:.#$%&+?<>~/-]*\w)")
_WRITTEN = (Style.AUTHOR_YEAR_PARENTHESES, Style.AUTHOR_YEAR_TEXT, Style.NUMBERED_BRACKETS)
_BEGINNINGS = (12, 6, 3)  # words by which a sentence is found again in its file


def draft_sentences(text: str) -> list[Sentence]:
    """The sentences of a paragraph without its citations, those that are written by hand included: "(Lee, 2004)"."""
    commands = [CitationMarker(*match.span(), Style.NUMBERED_BRACKETS, 1) for match in _SHOWN.finditer(text)]
    taken = Spans((one.start, one.end) for one in commands)
    written = [one for one in find_markers(text, believed=_WRITTEN) if not taken(one.start, one.end)]
    markers = sorted([*commands, *written], key=lambda one: one.start)
    return [
        Sentence(
            " ".join(_SHOWN.sub(" ", text[start:end]).split()),
            any(start <= one.start < end for one in markers),
            tuple(key for match in _SHOWN.finditer(text, start, end) for key in _keys(match[0])),
            " ".join(_SHOWN.sub(" ", _SHOWN.sub(_SIGN, text[start:end], count=1)).replace(_SIGN, MARKER).split()),
        )
        for start, end in sentences_of(text, markers, splitter())
    ]


def _keys(citation: str) -> list[str]:
    """The keys of a citation in the running text."""
    return names_in(citation[6:-1]) if citation.startswith("\\cite") else _KEY.findall(citation)


def sentence_place(source: Source, paragraph: Paragraph, sentence: str) -> Place:
    """Where a sentence stands in its file; what commands change in it is not compared.

    If only its beginning is found, the place ends there; if nothing is, it is the first line of the paragraph.
    """
    begins, ends = source.line_span(paragraph.line)
    words = sentence.split()
    for many in (len(words), *_BEGINNINGS):
        pattern = r"\s+".join(map(re.escape, words[:many]))
        if match := re.compile(pattern).search(source.text, begins):
            return source.place(*match.span())
    return source.place(begins, ends)


def as_source(path: Path, text: str) -> str:
    """A text as it is written in a draft of this name: signs that its markup would read are escaped."""
    kind = draft_kind(path)
    if kind not in _READS_SIGNS:
        text = text.replace(MARKER, "")
    return text.translate(_AS_SOURCE.get(kind, {}))


FITTING = 5
"""Papers of the bibliography come first if they are among so many that the system ranks highest."""
_LONG = 4  # letters: shorter words are mostly "of" and "the"


def telling_words(context: Context) -> set[str]:
    """The longer words of a sentence and of those before it."""
    return {word for word in words_in(f"{context.text} {context.before}") if len(word) >= _LONG}


class DraftHit(NamedTuple):
    """A paper that is shown for a context.

    Attributes:
        hit: What the search found; its rank and score stay those of the system.
        key: Its key in the bibliography; None if that lacks the paper and its other editions.
        paper: The edition to cite: the one that the bibliography has, or else that of the hit.
        comes_first: Whether it stands before others because the bibliography has it.
        context: The context.
    """

    hit: Hit
    key: str | None
    paper: Paper
    comes_first: bool
    context: Context

    @property
    def support(self) -> str | None:
        """The sentence of its abstract that supports citing it best, if one does, and no citing sentence is known."""
        if self.hit.citance:
            return None
        sentence, supports = supporting_sentence(self.context.text.replace(MARKER, " "), self.hit.paper)
        return sentence if supports else None


def draft_hits(answer: Answer, bibliography: Bibliography, *, own_first: bool = True) -> list[DraftHit]:
    """The hits of an answer in the order in which an author sees them.

    Those papers of the bibliography come first that are among the best `FITTING`, in the system's order, but no weak
    one where the system is sure of its first paper; then all others, in that order. No hit is left out, none is added,
    and the order does not depend on how many are shown.

    Args:
        answer: The hits that are shown, best first.
        bibliography: The author's own.
        own_first: Whether its papers come first; otherwise they only have their keys.
    """
    best = answer.hits[0].verdict if answer.hits else None

    def one(hit: Hit) -> DraftHit:
        keys = ((bibliography.key_of(paper), paper) for paper in (hit.paper, *hit.also))
        key, paper = next((each for each in keys if each[0]), (None, hit.paper))
        fits = hit.rank <= FITTING and (hit.verdict, best) != ("weak", "sure")
        return DraftHit(hit, key, paper, bool(key) and own_first and fits, answer.context)

    return sorted(map(one, answer), key=lambda each: not each.comes_first)
