"""The drafts of an editor: what is typed, their bibliographies, papers for a place, and what should be looked at."""

import contextlib
import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from citerec.contexts.keys import mentions
from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.drafts import Draft, Files, Place, read_draft
from citerec.drafts.base import Source
from citerec.drafts.bibliography import Bibliography, read_entries
from citerec.drafts.check import Finding, Severity, check_draft
from citerec.drafts.check import Options as CheckOptions
from citerec.drafts.checks.matches import Match, match_entries
from citerec.drafts.latex import CITATIONS, input_path
from citerec.drafts.listing import Listed, listed, telling_words
from citerec.drafts.read import is_markdown
from citerec.errors import InputError, QueryError
from citerec.files.text import replaced
from citerec.index.columns import words_in
from citerec.recommend import Recommender
from citerec.records import Answer, Context, Paper
from citerec.retrieve.opened import OpenIndex
from citerec.serve.indexes import Matches, ServedIndex

_DEPTH = 50  # papers that are searched at a place, so that many are left when what is typed narrows them
_LISTED = 50  # papers of the bibliography that are offered
_LONG = 4  # letters from which a part of a key is enough
_MOST_FILES = 100  # that are looked at for the main file of a draft
_HEAD = 2000  # characters in which a file names its root
_FAR = 2500  # characters before the cursor in which a citation begins
# Every pattern is linear: repeats are bounded or possessive.
_ROOT = re.compile(r"^\s*%\s*!TEX\s+root\s*=\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]{1,300})\}")
_CITE = re.compile(
    rf"\\(?:{'|'.join(sorted(CITATIONS | {'nocite'}))})\*?(?:\s?\[[^\[\]{{}}]{{0,200}}\]){{0,2}}\s?"
    r"\{(?P<keys>[^{}\\%]{0,2000})\Z"
)
_COMMENT = re.compile(r"(?<!\\)%")
_CLOSED = re.compile(r"(?P<rest>[^\s,{}\\%]*+)\s*+(?:,\s*+[^\s,{}\\%]*+\s*+)*+\}")
_BLANK = re.compile(r"\n[ \t\r]*\n")
_EDGE = re.compile(r"(?P<alone>\\(?:begin|end)\{[^{}]{0,100}\}|\}|\$+|\\[()\[\]])|\\.|\{", re.DOTALL)
_AT = re.compile(r"(?<![\w@])@(?P<key>[\w:.#$%&+?<>~/-]{0,200})\Z")
_REST = re.compile(r"(?:[\w:.#$%&+?<>~/-]*\w)?\??")
_LINE = re.compile(r", line (\d+)")
_CHECKS = CheckOptions(ignore=frozenset({"not-in-index"}))  # while someone writes, what the index lacks is no fault


@dataclass(frozen=True, slots=True)
class Options:
    """What the language server was started with.

    Attributes:
        index: The index to search; by default the only one below `indexes/`.
        system: The system; by default the best that the index supports.
        assignments: Settings of it that are changed.
        bib: The bibliography; by default the draft's own.
        keys: Pattern of new keys.
        k: How many papers are recommended in a completion.
        own_first: Whether papers of the bibliography come first.
    """

    index: Path | None = None
    system: str | None = None
    assignments: tuple[str, ...] = ()
    bib: Path | None = None
    keys: str = DEFAULT_PATTERN
    k: int = 10
    own_first: bool = True


@dataclass(frozen=True, slots=True)
class View:
    """A draft as an editor shows it: its path, and the texts of all open files, saved or not."""

    path: Path
    texts: tuple[tuple[Path, str], ...]

    @property
    def text(self) -> str:
        """The text of the draft."""
        return dict(self.texts)[self.path]

    def with_text(self, text: str) -> "View":
        """The same with another text of the draft."""
        return replace(self, texts=tuple((path, text if path == self.path else old) for path, old in self.texts))

    def files(self) -> Files:
        """The files, with what is open in the editor."""
        return Files(texts=dict(self.texts))

    def draft(self) -> Draft:
        """The draft as a whole; InputError if it cannot be understood."""
        return read_draft(self.path, self.files())


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
    closing = ""
    if is_markdown(path):
        found = _AT.search(text, max(0, offset - _FAR), offset)
        if found is None:
            return None
        start, rest = found.start("key"), _REST.match(text, offset)
        end = rest.end() if rest else offset
    else:
        before = text[max(0, offset - _FAR) : offset]
        found = _CITE.search(before)
        if found is None or _BLANK.search(found["keys"]) or _COMMENT.search(before[before.rfind("\n") + 1 :]):
            return None
        start, closed = offset - len(found["keys"].rpartition(",")[2].lstrip()), _CLOSED.match(text, offset)
        end = closed.end("rest") if closed else offset
        closing = "" if closed else "}"
    return Typed(start, end, text[start:offset], text[start:end].strip(), f"{text[:start]}?{closing}{text[end:]}")


def _paragraph(text: str, at: int) -> tuple[int, int]:
    """Where the paragraph around an offset begins and ends."""
    start = max((match.end() for match in _BLANK.finditer(text, 0, at)), default=0)
    blank = _BLANK.search(text, at)
    return start, blank.start() if blank else len(text)


def _closed(text: str) -> str:
    """A part of a LaTeX text in which edges of groups, environments and formulas are blank that others may not have."""
    blank, opened = list[re.Match[str]](), list[re.Match[str]]()
    for edge in _EDGE.finditer(text):
        if edge[0] == "{":
            opened.append(edge)
        elif edge[0] == "}" and opened:
            opened.pop()
        elif edge["alone"]:
            blank.append(edge)
    return replaced(text, sorted((*edge.span(), " " * len(edge[0])) for edge in (*blank, *opened)))


@dataclass(frozen=True, slots=True)
class Offer:
    """A paper that is offered at a place.

    Attributes:
        key: Its key, which a new entry would get.
        paper: The entry, or the paper of the index.
        paper_id: Its id in the index, if it is there.
        is_new: Whether the bibliography lacks it.
        found: What the search for the place said of it, if it was found.
    """

    key: str
    paper: Paper
    paper_id: str | None
    is_new: bool
    found: Listed | None = None

    @property
    def rank(self) -> int:
        """Its rank among the papers of the index; 0 if it was not found."""
        return self.found.hit.rank if self.found else 0

    def fits(self, words: frozenset[str]) -> bool:
        """Whether each word that is typed begins a word of the authors, the title or the year, or is in the key."""
        paper, key = self.paper, self.key.casefold()
        own = words_in(f"{' '.join(paper.authors)} {paper.title} {paper.year or ''}") if words else ()
        return all(
            key.startswith(word) or (len(word) >= _LONG and word in key) or any(one.startswith(word) for one in own)
            for word in words
        )


class Workbench:
    """Reads drafts, checks them, and searches for their places. Safe to call from several threads.

    Args:
        options: What the server was started with.

    Attributes:
        index: The index, which has to be opened.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.index = ServedIndex(options.index, options.system, options.assignments)
        self._current: Recommender | None = None
        self._last: dict[Path, Draft] = {}
        self._named: dict[Path, tuple[Path, ...]] = {}
        self._matches, self._compared = Matches(), dict[Paper, Match]()
        # Bibliographies on the disk, and what they are with the entries that were sent to the editor: not every editor
        # says what it holds.
        self._added: dict[Path, tuple[bytes, str]] = {}
        # What one keystroke leaves as it was is not read or searched again.
        self._read = functools.lru_cache(16)(View.draft)
        self._bibliography = functools.lru_cache(4)(self._read_bibliography)
        self._search = functools.lru_cache(64)(self._search_index)

    @property
    def recommender(self) -> Recommender | None:
        """The open system; None until the index is open. Another one when it was replaced."""
        current = self.index.recommender
        if current is not self._current:
            self._current = current
            self._compared.clear()
            self._bibliography.cache_clear()
            self._search.cache_clear()
        return current

    def forget(self) -> None:
        """Forgets what was read, after files were saved: those that no editor has open may have changed too."""
        self._read.cache_clear()
        self._named.clear()

    def view(self, path: Path, texts: Mapping[Path, str]) -> View:
        """The view of a file: all texts that are open, and bibliographies with entries that wait to be saved."""
        for bib, (before, after) in list(self._added.items()):
            if bib in texts or _on_disk(bib) != before:
                del self._added[bib]
            else:
                texts = {**texts, bib: after}
        return View(path, tuple(texts.items()))

    def note_added(self, view: View, offer: Offer) -> None:
        """Notes that the editor has added the entry of a paper to the bibliography, which may not be saved yet."""
        bibliography = self.bibliography(view)
        text = bibliography.text + bibliography.addition(offer.paper, offer.key)
        self._added[bibliography.path] = _on_disk(bibliography.path), text

    def draft(self, view: View) -> Draft:
        """The draft of a view.

        Raises:
            InputError: It cannot be understood, as where a brace is not closed.
        """
        draft = self._last[view.path] = self._read(view)
        return draft

    def paths(self, view: View) -> tuple[Path, ...]:
        """The bibliography of a draft: the given one, its own, that of its main file, or the only one beside it."""
        if self.options.bib:
            return (self.options.bib.resolve(),)
        with contextlib.suppress(InputError):
            draft = self._last.get(view.path) or self.draft(view)
            if draft.bibliographies:
                return tuple(path.resolve() for path in draft.bibliographies)
        if view.path not in self._named:
            beside = tuple(path.resolve() for path in view.path.parent.glob("*.bib"))
            self._named[view.path] = _of_main_file(view) or (beside if len(beside) == 1 else ())
        return self._named[view.path]

    def bibliography(self, view: View) -> Bibliography:
        """The bibliography of a draft, whose files may be missing; an empty one if there is none.

        Raises:
            InputError: A file cannot be read.
        """
        files, paths = view.files(), self.paths(view)
        texts = tuple((path, files.text(path)) for path in paths if files.exists(path))
        return self._bibliography(paths or (view.path.with_suffix(".bib"),), texts, self.recommender is not None)

    def paper(self, paper_id: str | None) -> Paper | None:
        """A paper of the index."""
        return self.recommender.store.papers([paper_id]).get(paper_id) if self.recommender and paper_id else None

    def places(self, view: View) -> list[Place]:
        """The places of the file itself, without those of files that it takes in; none if it cannot be understood."""
        try:
            return [place for place in self.draft(view).places if place.path.resolve() == view.path]
        except InputError:
            return []

    def context(self, view: View, at: int) -> Context | None:
        """The context of the place at an offset, from its paragraph and the keys that are cited before.

        The draft is not read as a whole: that takes long while someone types, and there may be a brace that is not
        closed yet. None without an index, and where there is no sentence.
        """
        if (recommender := self.recommender) is None:
            return None
        start, stop = _paragraph(view.text, at)
        part, last = view.text[start:stop], self._last.get(view.path)
        for readable in (part, _closed(part)):
            with contextlib.suppress(InputError, QueryError):
                draft = read_draft(view.path, Files(texts={view.path: readable}))
                if (number := _number(draft, view.path, at - start)) is not None:
                    before = [one.key for one in mentions(view.text[:start]) if not one.in_brackets]
                    citations = "".join(f"\\cite{{{key}}}" for key in before)
                    draft = replace(draft, text=f"{citations}\n\n{draft.text}", title=last.title if last else None)
                    cited = self.bibliography(view).papers_of(one.key for one in mentions(draft.text))
                    return draft.contexts(recommender.store, cited if self.paths(view) else None)[number]
        return None

    def _answer(self, context: Context | None) -> Answer | None:
        """The papers recommended for a context; None if there is no index yet, or no word to search for."""
        with contextlib.suppress(QueryError):
            return self._search(context) if context and self.recommender else None
        return None

    def completions(self, view: View, typed: Typed) -> list[Offer]:
        """The papers that a completion offers: the best for the sentence, then the other entries of the bibliography.

        If something is typed, they match it, and the entries of the bibliography come first.
        """
        view = view.with_text(typed.draft)
        context = self.context(view, typed.start)
        words = frozenset(words_in(typed.text)) if typed.text.strip("?") else frozenset()
        best = [offer for offer in self._recommended(view, self._answer(context)) if offer.fits(words)]
        own = {offer.key: offer for offer in sorted(best, key=lambda offer: offer.rank) if not offer.is_new}
        own |= {
            offer.key: offer for offer in self._entries(view, context) if offer.key not in own and offer.fits(words)
        }
        mine = list(own.values())[:_LISTED]
        if words and self.options.own_first:  # somebody who types a name mostly knows the entry
            return mine + [offer for offer in best if offer.is_new][: self.options.k]
        best = best[: self.options.k]
        return best + [offer for offer in mine if offer not in best]

    def best(self, view: View, place: Place, count: int) -> tuple[list[Offer], Answer | None]:
        """The best papers for a place, and the answer that they are of."""
        answer = self._answer(self.context(view, place.start))
        best = answer[:count] if answer else None
        return self._recommended(view, best), best

    def _recommended(self, view: View, answer: Answer | None) -> list[Offer]:
        """The papers of an answer as an author sees them, with the keys that they have or would get."""
        bibliography, offers = self.bibliography(view), dict[str, Offer]()
        for one in listed(answer, bibliography, own_first=self.options.own_first) if answer else ():
            key = one.key or bibliography.key_for(one.paper, offers)
            offers[key] = Offer(key, one.paper, one.paper.paper_id, one.key is None, one)
        return list(offers.values())

    def _entries(self, view: View, context: Context | None) -> list[Offer]:
        """The entries of the bibliography: first those whose titles share most words with the sentence."""
        bibliography, wanted = self.bibliography(view), telling_words(context) if context else set()
        entries = sorted(bibliography.entries.items())
        entries.sort(key=lambda entry: -len(wanted.intersection(words_in(entry[1].title))))
        return [Offer(key, entry, bibliography.ids.get(key), False) for key, entry in entries]

    def offer_of(self, view: View, key: str, paper_id: str | None = None) -> Offer | None:
        """The entry of a key, or else the paper of the index with this id, by default the one whose id the key is."""
        bibliography = self.bibliography(view)
        if key in bibliography.entries:
            return Offer(key, bibliography.entries[key], bibliography.papers_of([key]).get(key), False)
        paper = self.paper(paper_id or key)
        return Offer(key, paper, paper.paper_id, True) if paper else None

    def near_keys(self, view: View, key: str) -> list[str]:
        """Keys of the bibliography that are spelt nearly so, nearest first."""
        return difflib.get_close_matches(key, self.bibliography(view).entries, 3)

    def findings(self, view: View) -> list[Finding]:
        """What `citerec check` finds in a draft, or why it cannot be understood; with the index, once this is open."""
        try:
            draft = self.draft(view)
        except InputError as error:
            source, line = Source(view.path, view.text), _LINE.search(error.message)
            span = source.line_span(int(line[1]) if line else 1)
            return [Finding.at(source, span, "unreadable-draft", Severity.NOTE, error.message, error.remedy)]
        files, paths = view.files(), self.paths(view)
        index = self.recommender.index if self.recommender else None
        compare = functools.partial(self._compare, index) if index else None
        return check_draft(draft, read_entries(paths, files) if paths else None, index, _CHECKS, files, compare)

    def _compare(self, index: OpenIndex, entries: Iterable[Paper]) -> dict[str, Match]:
        """What the index has of entries, by key; each is compared once."""
        papers = {paper.paper_id: paper for paper in entries}
        if new := [paper for paper in papers.values() if paper not in self._compared]:
            matches = match_entries(new, index)
            self._compared.update({paper: matches.get(paper.paper_id, Match()) for paper in new})
        return {key: self._compared.get(paper, Match()) for key, paper in papers.items()}

    def _read_bibliography(
        self, paths: tuple[Path, ...], texts: tuple[tuple[Path, str], ...], is_open: bool
    ) -> Bibliography:
        match = self._papers_of if is_open else None
        return Bibliography(paths, Files(texts=dict(texts), disk=False), match, self.options.keys)

    def _papers_of(self, entries: Mapping[str, Paper]) -> dict[str, str]:
        return self._matches.find(entries, self.recommender) if self.recommender else {}

    def _search_index(self, context: Context) -> Answer:
        assert self.recommender is not None
        k = min(_DEPTH, self.recommender.manifest.counts.papers)
        return self.recommender.search(context, k, explain=True, fold=True)


def _on_disk(path: Path) -> bytes:
    """What is in a file; nothing if it is missing or cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def _number(draft: Draft, path: Path, at: int) -> int | None:
    """The number of the place at an offset of a file, from 0."""
    places = enumerate(draft.places)
    return next((n for n, place in places if place.path.resolve() == path and place.start <= at <= place.end), None)


def _of_main_file(view: View) -> tuple[Path, ...]:
    """The bibliographies of the file that takes this one in: it is named by `% !TEX root`, or lies near."""
    files = view.files()
    named = _ROOT.search(view.text[:_HEAD])
    near = [path for folder in (view.path.parent, view.path.parent.parent) for path in sorted(folder.glob("*.tex"))]
    for path in [view.path.parent / named[1]] if named else near[:_MOST_FILES]:
        try:
            names = _INPUT.findall(files.text(path))
            inputs = {input_path(path.parent, name.strip(), files).resolve() for name in names}
            if named or view.path in inputs:
                return tuple(one.resolve() for one in read_draft(path, files).bibliographies)
        except InputError:
            continue  # what is wrong with it is said where it is open
    return ()
