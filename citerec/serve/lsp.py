"""The language server: completion, hover, code actions and diagnostics for the citations of a draft, over stdio."""

import asyncio
import contextlib
import difflib
import functools
import itertools
import logging
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec, TextDocument

from citerec.contexts.topic import mentions
from citerec.corpus.citation_keys import check_key, cited_as, own_entry
from citerec.drafts import Draft, Files, read_draft
from citerec.drafts.base import Place, Source
from citerec.drafts.bibliography import Bibliography, Entries, mended, read_entries
from citerec.drafts.check import WRITING, Finding, Material, Severity, findings_of, judgements
from citerec.drafts.filling import DraftHit, draft_hits, telling_words
from citerec.drafts.latex import CITATIONS, input_path
from citerec.drafts.matching import Match, match_entries
from citerec.drafts.online import OnlineMatcher, find_reference
from citerec.drafts.read import draft_kind, is_draft
from citerec.drafts.suggest import Suggestion, place_after, suggestions
from citerec.drafts.support import DOES_NOT_FIT, Judgement
from citerec.errors import CiterecError, InputError, QueryError
from citerec.files.text import one_line
from citerec.index.columns import words_in
from citerec.recommend import Recommender
from citerec.records import Answer, Context, Paper, why
from citerec.retrieve.base import OpenIndex
from citerec.serve.indexes import Matches, ServedIndex, shown
from citerec.sources.look_up import LookUp
from citerec.version import __version__
from citerec.write.drafting import tldrs, usual_writer

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
# Groups without others in them, which are kept; and all other edges of groups, environments and formulas.
_EDGE = re.compile(r"(?P<kept>\\[{}$]|\{[^{}]*\})|\\(?:begin|end)\{[^{}]{0,100}\}|\\[()\[\]]|[{}$]")
_AT = re.compile(r"(?<![\w@])@(?P<key>[\w:.#$%&+?<>~/-]{0,200})\Z")
_REST = re.compile(r"(?:[\w:.#$%&+?<>~/-]*\w)?\??")
_LINE = re.compile(r", line (\d+)")


class View(NamedTuple):
    """A draft as an editor shows it: its path, and the texts of all open files, saved or not."""

    path: Path
    texts: tuple[tuple[Path, str], ...]

    @property
    def text(self) -> str:
        """The text of the draft."""
        return dict(self.texts)[self.path]

    def with_text(self, text: str) -> "View":
        """The same with another text of the draft."""
        return self._replace(texts=tuple((path, text if path == self.path else old) for path, old in self.texts))

    def files(self) -> Files:
        """The files, with what is open in the editor."""
        return Files(texts=dict(self.texts))


class Typed(NamedTuple):
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
    r"""The key at an offset of a draft; None if there is none. Its citation may not be closed yet."""
    closing = ""
    if draft_kind(path) not in ("LaTeX", "plain text"):
        match = _AT.search(text, max(0, offset - _FAR), offset)
        if match is None:
            return None
        start, rest = match.start("key"), _REST.match(text, offset)
        end = rest.end() if rest else offset
    else:
        before = text[max(0, offset - _FAR) : offset]
        match = _CITE.search(before)
        if match is None or _BLANK.search(match["keys"]) or _COMMENT.search(before[before.rfind("\n") + 1 :]):
            return None
        start, closed = offset - len(match["keys"].rpartition(",")[2].lstrip()), _CLOSED.match(text, offset)
        end = closed.end("rest") if closed else offset
        closing = "" if closed else "}"
    return Typed(start, end, text[start:offset], text[start:end].strip(), f"{text[:start]}?{closing}{text[end:]}")


def _paragraph(text: str, at: int) -> tuple[int, int]:
    """Where the paragraph around an offset begins and ends."""
    start = max((match.end() for match in _BLANK.finditer(text, 0, at)), default=0)
    blank = _BLANK.search(text, at)
    return start, blank.start() if blank else len(text)


class Offer(NamedTuple):
    """A paper that is offered at a place.

    Attributes:
        key: Its key, which a new entry would get.
        paper: The entry, or the paper of the index.
        paper_id: Its id in the index, if it is there.
        is_new: Whether the bibliography lacks it.
        draft_hit: What the search for the place said of it, if it was found.
    """

    key: str
    paper: Paper
    paper_id: str | None
    is_new: bool
    draft_hit: DraftHit | None = None

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
        index: The index to search, which has to be opened.
        bib: The bibliography; by default the draft's own.
        keys: Pattern of new keys; by default as the bibliography has them.
        k: How many papers are recommended in a completion.
        own_first: Whether papers of the bibliography come first.
        services: The web services that may be asked for entries.

    Attributes:
        asked: What the services had of entries that they were asked for.
    """

    def __init__(
        self, index: ServedIndex, bib: Path | None, keys: str, k: int, own_first: bool, services: Sequence[LookUp]
    ) -> None:
        self.index, self.services = index, services
        self.bib, self.keys, self.k, self.own_first = bib, keys, k, own_first
        self._current: Recommender | None = None
        self._last: dict[Path, Draft] = {}
        self._named: dict[Path, tuple[Path, ...]] = {}
        self._suggested: dict[Path, list[Suggestion]] = {}
        self._matches = Matches()
        # Bibliographies on the disk, and what they are with the entries that were sent to the editor: not every editor
        # says what it holds.
        self._added: dict[Path, tuple[bytes, str]] = {}
        # What one keystroke leaves as it was is not read or searched again.
        self._read = functools.lru_cache(16)(lambda view: read_draft(view.path, view.files()))
        self._bibliography = functools.lru_cache(4)(self._read_bibliography)
        self._answer = functools.lru_cache(64)(self._search)
        self._cited = functools.lru_cache(4)(lambda text: [one.key for one in mentions(text) if not one.in_brackets])
        self.asked: dict[Paper, Match] = {}
        self._match = functools.cache(_match)

    @property
    def recommender(self) -> Recommender | None:
        """The open system; None until the index is open. Another one when it was replaced."""
        current = self.index.recommender
        if current is not self._current:
            self._current = current
            self._match.cache_clear()
            self._bibliography.cache_clear()
            self._answer.cache_clear()
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
        if self.bib:
            return (self.bib.resolve(),)
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
        return self._bibliography(paths or (view.path.with_suffix(".bib"),), texts, self.recommender)

    def paper(self, paper_id: str | None) -> Paper | None:
        """A paper of the index."""
        return self.recommender.store.papers([paper_id]).get(paper_id) if self.recommender and paper_id else None

    def places(self, view: View) -> list[Place]:
        """The places of the file itself, without those of files that it takes in; none if it cannot be understood."""
        with contextlib.suppress(InputError):
            return [place for place in self.draft(view).places if place.path.resolve() == view.path]
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
        closed = _EDGE.sub(lambda edge: edge[0] if edge["kept"] else " " * len(edge[0]), part)
        for readable in (part, closed):
            with contextlib.suppress(InputError, QueryError):
                draft = read_draft(view.path, Files(texts={view.path: readable}))
                if (number := _number(draft, view.path, at - start)) is not None:
                    before = self._cited(view.text[:start])
                    citations = "".join(f"\\cite{{{key}}}" for key in before)
                    keys = [*before, *(one.key for one in mentions(draft.text))]
                    draft = replace(draft, text=f"{citations}\n\n{draft.text}", title=last.title if last else None)
                    cited = self.bibliography(view).papers_of(keys)
                    return draft.contexts(recommender.store, cited if self.paths(view) else None)[number]
        return None

    def completions(self, view: View, typed: Typed) -> list[Offer]:
        """The papers that a completion offers: the best for the sentence, then the other entries of the bibliography.

        If something is typed, they match it, and the entries of the bibliography come first.
        """
        view = view.with_text(typed.draft)
        context = self.context(view, typed.start)
        words = frozenset(words_in(typed.text)) if typed.text.strip("?") else frozenset()
        best = [offer for offer in self._recommended(view, self._answer(context)) if offer.fits(words)]
        own = {offer.key: offer for offer in best if not offer.is_new}
        others = (one for one in self._entries(view, context) if one.key not in own and one.fits(words))
        mine, k = [*own.values(), *itertools.islice(others, _LISTED)][:_LISTED], self.k
        if words and self.own_first:  # somebody who types a name mostly knows the entry
            return mine + [offer for offer in best if offer.is_new][:k]
        return best[:k] + [offer for offer in mine if offer not in best[:k]]

    def best(self, view: View, place: Place, count: int) -> tuple[list[Offer], Answer | None]:
        """The best papers for a place, and the answer that they are of."""
        answer = self._answer(self.context(view, place.start))
        best = answer[:count] if answer else None
        return self._recommended(view, best), best

    def _recommended(self, view: View, answer: Answer | None) -> list[Offer]:
        """The papers of an answer as an author sees them, with the keys that they have or would get."""
        bibliography = self.bibliography(view)
        found = draft_hits(answer, bibliography, own_first=self.own_first) if answer else []
        keys = bibliography.keys_for([one.paper for one in found])
        offers = (
            Offer(key, one.paper, one.paper.paper_id, one.key is None, one)
            for key, one in zip(keys, found, strict=True)
        )
        return list({one.key: one for one in offers}.values())

    def _entries(self, view: View, context: Context | None) -> Iterator[Offer]:
        """The entries of the bibliography: first those whose titles share most words with the sentence."""
        bibliography = self.bibliography(view)
        near = bibliography.near(telling_words(context) if context else ())
        keys = sorted(bibliography.entries, key=lambda key: (-near[key], key))
        return (Offer(key, bibliography.entries[key], bibliography.ids.get(key), False) for key in keys)

    def offer_of(self, view: View, key: str, paper_id: str | None = None) -> Offer | None:
        """The entry of a key, or else the paper of the index with this id, by default the one whose id the key is."""
        bibliography = self.bibliography(view)
        if key in bibliography.entries:
            return Offer(key, bibliography.entries[key], bibliography.papers_of([key]).get(key), False)
        paper = self.paper(paper_id or key)
        return Offer(key, paper, paper.paper_id, True) if paper else None

    def findings(self, view: View) -> list[Finding]:
        """What `citerec check` finds in a draft, or why it cannot be understood; with the index, once this is open."""
        try:
            draft = self.draft(view)
        except InputError as error:
            source, line = Source(view.path, view.text), _LINE.search(error.message)
            span = source.line_span(int(line[1]) if line else 1)
            return [Finding.at(source, span, "unreadable-draft", Severity.NOTE, error.message, error.remedy)]
        return [*findings_of(self._material(view, draft)), *self._suggestions(view)]

    def suggest(self, view: View) -> None:
        """Looks for sentences that may want a citation, and for which the index has a likely paper."""
        if self.recommender:
            draft, bibliography = self.draft(view), self.bibliography(view)
            cited = bibliography.papers_of(one.key for one in draft.cited)
            found = suggestions(draft, self.recommender, view.files(), cited)
            self._suggested[view.path] = [one for one in found if one.place.path.resolve() == view.path]

    def _suggestions(self, view: View) -> Iterator[Finding]:
        """The sentences that were found and are still there."""
        source = Source(view.path, view.text)
        for one in self._suggested.get(view.path, ()):
            if (start := view.text.find(one.sentence)) >= 0:
                message = f"this sentence may want a citation, such as {_title(one.answer.hits[0].paper)}"
                span, remedy = (start, start + len(one.sentence)), "Its code actions cite papers."
                yield Finding.at(source, span, "may-want-citation", Severity.NOTE, message, remedy)

    def sentence_place(self, view: View, at: int) -> tuple[View, Place]:
        """A view with a place at the end of the sentence that an offset is in, and the place."""
        draft = self._last.get(view.path) or self.draft(view)
        end, marker = place_after(draft, view.path, view.text, at)
        marked = view.with_text(f"{view.text[:end]}{marker}{view.text[end:]}")
        return marked, Source(view.path, marked.text).place(end + 1, end + len(marker))  # without the space

    def judgement(self, view: View, key: str, line: int) -> Judgement | None:
        """What is said of the citation of a key at a line, from 1: whether its paper fits, and what it says."""
        found = judgements(self._material(view, self.draft(view)), key)
        here = [one for one in found if one.place.path.resolve() == view.path and one.place.line <= line]
        return here[-1] if here else None

    def _material(self, view: View, draft: Draft) -> Material:
        files, paths = view.files(), self.paths(view)
        index = self.recommender.index if self.recommender else None
        compare = functools.partial(self._compare, index) if index or self.services else None
        bibliography = read_entries(paths, files) if paths else Entries()
        options = replace(WRITING, online=bool(self.services))
        return Material(draft, bibliography, index, options, files, compare)

    def _compare(self, index: OpenIndex | None, entries: Iterable[Paper]) -> dict[str, Match]:
        """What the index, or web services, have of entries, by key; each is compared once."""
        return {entry.paper_id: self.asked.get(entry) or self._match(entry, index) for entry in entries}

    def ask(self, view: View) -> bool:
        """Asks the web services for cited entries that they were not asked for; whether there were any."""
        material = self._material(view, self.draft(view))
        new = [entry.paper for entry in material.cited.values() if entry.paper not in self.asked]
        matcher = OnlineMatcher(self.services, material.index)
        for entry in new:  # one by one: what is known already is shown where the draft changes meanwhile
            match = matcher([entry]).get(entry.paper_id, Match())
            self.asked = self.asked | ({entry: match} if match.was_asked else {})
        return bool(new)

    def _read_bibliography(
        self, paths: tuple[Path, ...], texts: tuple[tuple[Path, str], ...], recommender: Recommender | None
    ) -> Bibliography:
        match = functools.partial(self._matches.find, system=recommender) if recommender else None
        return Bibliography(paths, Files(texts=dict(texts), disk=False), match, self.keys)

    def _search(self, context: Context | None) -> Answer | None:
        """The papers recommended for a context; None if there is no index yet, or no word to search for."""
        with contextlib.suppress(QueryError):
            if context and (recommender := self.recommender):
                k = min(_DEPTH, recommender.manifest.counts.papers)
                return recommender.search(context, k, explain=True, fold=True)
        return None


def _match(entry: Paper, index: OpenIndex | None) -> Match:
    """What an index has of an entry."""
    return match_entries([entry], index).get(entry.paper_id, Match()) if index else Match()


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
        with contextlib.suppress(InputError):  # what is wrong with it is said where it is open
            names = _INPUT.findall(files.text(path))
            inputs = {input_path(path.parent, name.strip(), files).resolve() for name in names}
            if named or view.path in inputs:
                return tuple(one.resolve() for one in read_draft(path, files).bibliographies)
    return ()


Result = TypeVar("Result")
Changes = dict[Path, list[types.TextEdit]]
"""Edits of several files."""

LOG = logging.getLogger("citerec.lsp")
"""What happens; it is written with `citerec lsp --log`."""
ADD_ENTRY = "citerec.addEntry"
"""The command of a completion item: adds the entry of the paper that was accepted."""
ADD_REFERENCE = "citerec.addReference"
"""The command of a code action: looks up what was written as a key, and adds its entry."""
PAPERS = "citerec/recommend"
"""The request of an editor that shows papers beside the text."""
_PAUSE = 0.05  # seconds in which a further key makes a completion needless
_QUIET = 0.5  # seconds without a change before a draft is checked
_HOVERED, _ACTIONS = 3, 5
_AUTHORS = 3
_TITLE, _QUOTED, _START, _LONGEST = 80, 240, 300, 100  # characters that are shown
_SUFFIXES = {"latex": ".tex", "tex": ".tex", "markdown": ".md", "quarto": ".qmd", "plaintext": ".txt", "bibtex": ".bib"}
_SUFFIXES |= {"typst": ".typ", "org": ".org"}
_NO_NAME = re.compile(r"[^\w.-]+")  # of an address without a file, such as untitled:Untitled-1
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|])")
_HINTS = ("place-open", "may-want-citation")
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


class Lines(Source):
    """The lines of a text, for positions in the units of an editor: pygls knows other ends of lines than the protocol.

    Args:
        path: The file.
        text: Its text.
        codec: Counts the units of a line.
    """

    ends = re.compile(r"\r\n|\n|\r")

    def __init__(self, path: Path, text: str, codec: PositionCodec) -> None:
        super().__init__(path, text)
        self._codec = codec

    def offset(self, position: types.Position) -> int:
        """The offset of a position, in characters; a position that does not exist is moved to the nearest before it."""
        start, stop = self.line_span(position.line + 1)
        if self.line(start) <= position.line:
            return stop
        line = self.text[start:stop]
        units = min(position.character, self._codec.client_num_units(line))  # pygls would end a character earlier
        return start + self._codec.position_from_client_units([line], types.Position(0, units)).character

    def at(self, offset: int) -> types.Position:
        """The position of a character; one within an end of line is the end of its line."""
        start, stop = self.line_span(self.line(offset))
        return types.Position(self.line(offset) - 1, self._codec.client_num_units(self.text[start : min(offset, stop)]))

    def range(self, start: int, end: int) -> types.Range:
        """The range between two characters."""
        return types.Range(self.at(start), self.at(end))


class Server(LanguageServer):
    """The language server: the documents of an editor, messages to it, and what it shows of their findings.

    Args:
        bench: What reads, checks and searches.
    """

    def __init__(self, bench: Workbench) -> None:
        # The whole text at each change: pygls and editors do not agree on what ends a line.
        super().__init__("citerec", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.bench = bench
        self.is_shut_down = False
        self.offers: dict[tuple[Path, str], Offer] = {}
        self.turns: dict[str, int] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._findings = defaultdict[Path, list[Finding]](list)
        self._said = ""
        self._pool, self._asking = ThreadPoolExecutor(2, "citerec"), ThreadPoolExecutor(1, "asking")

    async def tried(self, work: Callable[..., Result], *arguments: Any, asks: bool = False) -> Result | None:
        """The result of a function that runs in a thread; what fails is said in a line, and the result is None.

        What asks web services has a thread of its own: nothing else waits for them.
        """
        try:
            pool = self._asking if asks else self._pool
            return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
        except CiterecError as error:
            self.say(str(error))
        except Exception as error:  # a fault of ours must not end the server
            LOG.exception("failed")
            self.say(f"citerec failed: {error!r:.200}. Start `citerec lsp --log` to see where.")
        return None

    def say(self, message: str) -> None:
        """Shows an error in the editor; the same one not twice running: editors ask again at each move."""
        message = one_line(message)
        LOG.info("%s", message)
        if message != self._said:
            self._said = message
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))

    def note(self, message: str) -> None:
        """Writes a message into the editor's log."""
        LOG.info("%s", message)
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    def path(self, uri: str) -> Path:
        """The path of a document; one that has no file yet lies in the folder of the server."""
        document = self.workspace.get_text_document(uri)
        named = to_fs_path(uri) if uri.startswith("file:") else None
        suffix = _SUFFIXES.get(document.language_id or "", "")
        return Path(named or f"{_NO_NAME.sub('-', uri)[-_LONGEST:]}{suffix}").resolve()

    def documents(self) -> dict[Path, TextDocument]:
        """The documents that are open."""
        return {self.path(uri): document for uri, document in list(self.workspace.text_documents.items())}

    def uri(self, path: Path) -> str:
        """The address of a file, as the editor writes it if it is open there."""
        document = self.documents().get(path)
        return document.uri if document else from_fs_path(str(path)) or ""

    def view_of(self, path: Path) -> View:
        """A file and all open texts."""
        return self.bench.view(path, {one: document.source for one, document in self.documents().items()})

    def view(self, uri: str) -> View | None:
        """A draft and all open texts; None if it is no draft that is open."""
        path = self.path(uri)
        return self.view_of(path) if path in self.documents() and is_draft(path) else None

    def lines(self, path: Path, text: str) -> Lines:
        """The lines of a text, counted as the editor does."""
        return Lines(path, text, self.workspace.position_codec)

    def remember(self, path: Path, offers: Iterable[Offer]) -> None:
        """Remembers offers, to say more of them and to add their entries."""
        self.offers |= {(path, offer.key): offer for offer in offers}

    def check(self, uri: str | None, pause: float = 0) -> None:
        """Checks a draft when it has not changed for some seconds; without an address, or for a bibliography, all."""
        drafts = {path: one.uri for path, one in self.documents().items() if path.suffix.lower() != ".bib"}
        for path, address in drafts.items():
            if uri is None or path == self.path(uri) or self.path(uri) not in drafts:
                self.stop_check(address)
                self._checks[address] = asyncio.get_running_loop().create_task(self._check(path, pause))

    def stop_check(self, uri: str) -> None:
        """Does not check a draft that waits for it."""
        if task := self._checks.pop(uri, None):
            task.cancel()

    async def _check(self, path: Path, pause: float) -> None:
        await asyncio.sleep(pause)
        if path in self.documents() and path.suffix:  # of any other kind that is no draft, that is said
            self.publish(path, await self.tried(self.bench.findings, self.view_of(path)) or [])
            if pause:  # while somebody types, sentences and entries are not whole
                return
            await self.tried(self.bench.suggest, self.view_of(path))
            self.publish(path, await self.tried(self.bench.findings, self.view_of(path)) or [])
            may_ask = bool(self.bench.services)
            if may_ask and await self.tried(self.bench.ask, self.view_of(path), asks=True):
                self.publish(path, await self.tried(self.bench.findings, self.view_of(path)) or [])

    def publish(self, draft: Path, findings: list[Finding]) -> None:
        """Shows the findings of a draft, each at its file, and removes those that it had before."""
        before, self._findings[draft] = self._findings[draft], findings
        files, opened = self.view_of(draft).files(), self.documents()
        for path in dict.fromkeys([draft, *(finding.path.resolve() for finding in (*before, *findings))]):
            is_open_draft = path in opened and is_draft(path)
            if is_open_draft and path != draft:  # its own check tells what is in it
                continue
            of_all = findings if is_open_draft else itertools.chain(*self._findings.values())
            text = files.text_if_any(path)  # that it is missing, or cannot be read, may be the finding
            source, lines = Source(path, text), self.lines(path, text)
            here = dict.fromkeys(one for one in of_all if one.path.resolve() == path)
            diagnostics = [_diagnostic(finding, source, lines) for finding in here]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(self.uri(path), diagnostics))

    def edit(self, changes: Changes) -> types.WorkspaceEdit:
        """An edit of several files, which makes those that are missing."""
        steps = list[Any]()
        for path, edits in changes.items():
            uri = self.uri(path)
            version = self.workspace.get_text_document(uri).version
            if version is None and not path.exists():
                steps.append(types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=True)))
            steps.append(types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), [*edits]))
        return types.WorkspaceEdit(document_changes=steps)

    def mendings(self, path: Path, span: types.Range) -> list[types.CodeAction]:
        """The right values of fields, as far as findings know them, of the entries that begin in a part of a file."""
        text = self.view_of(path).text
        entries = {one.line: one.paper for one in read_entries([path], Files(texts={path: text}, disk=False)).entries}
        lines, actions = self.lines(path, text), dict[str, types.CodeAction]()
        for finding in itertools.chain(*self._findings.values()):
            entry = entries.get(finding.line) if finding.path.resolve() == path else None
            mending, is_here = finding.mending, span.start.line <= finding.line - 1 <= span.end.line
            if entry is None or mending is None or not is_here:
                continue
            old, (start, _) = entry.bibtex or "", Source(path, text).line_span(finding.line)
            begin = text.find(old, start)
            edit = types.TextEdit(lines.range(begin, begin + len(old)), mended(old, [mending]))
            title = f"Change {mending.field} of {entry.paper_id} to {shown(mending.value, _TITLE)}"
            actions[title] = types.CodeAction(title, types.CodeActionKind.QuickFix, edit=self.edit({path: [edit]}))
        return list(actions.values())

    def entries(self, path: Path) -> Sequence[tuple[Paper, int, int]]:
        """The entries of a bibliography, each with where its key is."""
        files = self.view_of(path).files()
        return _keys_in(path, files.text(path)) if files.exists(path) else ()

    def location(self, path: Path, start: int, end: int) -> types.Location:
        """Where some characters of a file are."""
        text = self.view_of(path).files().text(path)
        return types.Location(self.uri(path), self.lines(path, text).range(start, end))

    def entry_edit(self, view: View, offer: Offer) -> Changes:
        """The edit that adds the entry of a paper to the bibliography of a draft.

        Raises:
            InputError: It names none, or it cannot be read.
        """
        if not self.bench.paths(view):
            remedy = r"Write \bibliography{refs}, or start citerec lsp with --bib."
            raise InputError(f"{view.path.name} names no bibliography", remedy)
        bibliography = self.bench.bibliography(view)
        end = self.lines(bibliography.path, bibliography.text).at(len(bibliography.text))
        edit = types.TextEdit(types.Range(end, end), bibliography.addition(offer.paper, offer.key))
        return {bibliography.path: [edit]}

    def close_all(self) -> None:
        """Stops the threads, and closes the index."""
        for pool in (self._pool, self._asking):
            pool.shutdown(wait=False, cancel_futures=True)
        self.bench.index.close()


@functools.lru_cache(4)
def _keys_in(path: Path, text: str) -> tuple[tuple[Paper, int, int], ...]:
    source, found = Source(path, text), []
    for one in read_entries([path], Files(texts={path: text}, disk=False)).entries:
        if own := own_entry(one.paper):
            start = text.find(one.paper.bibtex or "", source.line_span(one.line)[0])
            found.append((one.paper, start + own.start("key"), start + own.end("key")))
    return tuple(found)


def _diagnostic(finding: Finding, source: Source, lines: Lines) -> types.Diagnostic:
    start = source.line_span(finding.line)[0] + finding.column - 1
    end = source.line_span(finding.end_line)[0] + finding.end_column - 1
    severity = types.DiagnosticSeverity.Hint if finding.code in _HINTS else _SEVERITIES[finding.severity]
    message = f"{finding.message}. {finding.remedy}"
    return types.Diagnostic(lines.range(start, end), message, severity, finding.code, source="citerec")


async def opened(ls: Server, _params: types.InitializedParams) -> None:
    """Opens the index in the background, and says when it is open."""
    ls.note("citerec is opening its index. Until then only your bibliography is offered.")
    recommender = await ls.tried(ls.bench.index.open)
    if recommender:
        ls.note(f"citerec has opened {recommender.path}: {recommender.manifest.counts.papers:,} papers.")
        ls.check(None)  # which also finds the papers of the entries, before they are asked for


async def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
    """Entries and papers for the citation that is being typed."""
    uri = params.text_document.uri
    turn = ls.turns[uri] = ls.turns.get(uri, 0) + 1
    await asyncio.sleep(_PAUSE)
    view = ls.view(uri)
    if view is None or ls.turns[uri] != turn:
        return types.CompletionList(is_incomplete=view is not None, items=[])
    lines = ls.lines(view.path, view.text)
    typed = typed_at(view.path, view.text, lines.offset(params.position))
    if typed is None:
        return types.CompletionList(is_incomplete=False, items=[])
    offers = await ls.tried(ls.bench.completions, view, typed) or []
    ls.remember(view.path, offers)
    span = lines.range(typed.start, typed.end)
    items = [_item(uri, typed, span, number, offer) for number, offer in enumerate(offers)]
    return types.CompletionList(is_incomplete=True, items=items)


def _item(uri: str, typed: Typed, span: types.Range, number: int, offer: Offer) -> types.CompletionItem:
    add_entry = types.Command("Add the entry", ADD_ENTRY, arguments=[uri, offer.key, offer.paper_id])
    return types.CompletionItem(
        label=f"{cited_as(offer.paper)} · {shown(_title(offer.paper), _TITLE)}",
        kind=types.CompletionItemKind.Reference,
        detail=_in_line(offer.paper),
        label_details=types.CompletionItemLabelDetails(description=offer.key),
        # What matches is decided here, by authors and titles too: the editor must keep all items, in this order.
        filter_text=typed.text or None,
        sort_text=f"{number:04}",
        text_edit=types.TextEdit(span, offer.key),
        command=add_entry if offer.is_new else None,
        data={"uri": uri, "key": offer.key},
    )


async def resolved(ls: Server, item: types.CompletionItem) -> types.CompletionItem:
    """The documentation of a completion item."""
    data = item.data if isinstance(item.data, dict) else {}
    if offer := ls.offers.get((ls.path(data.get("uri", "")), data.get("key", ""))):
        text = await ls.tried(_about, ls.bench, offer) or ""
        item.documentation = types.MarkupContent(types.MarkupKind.Markdown, text)
    return item


async def add_entry(ls: Server, uri: str, key: str, paper_id: str) -> None:
    """Adds the entry of a paper that was accepted in a completion."""
    view = ls.view(uri)
    offer = await ls.tried(ls.bench.offer_of, view, key, paper_id) if view else None
    if view is None or offer is None or not offer.is_new or not (edit := await ls.tried(ls.entry_edit, view, offer)):
        return
    answer = await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(ls.edit(edit), f"Add {key}"))
    if answer.applied:
        await ls.tried(ls.bench.note_added, view, offer)
    else:
        ls.say(f"The editor did not add {key} to the bibliography. {answer.failure_reason or 'Add its entry by hand.'}")
    ls.check(uri, _QUIET)


async def add_reference(ls: Server, uri: str, reference: str) -> None:
    """Looks up what somebody wrote as a key: an id, or a title. Its entry is added, and its key takes the place."""
    view = ls.view(uri)
    found = await ls.tried(find_reference, reference, ls.bench.services, asks=True) if view else None
    view = ls.view(uri)  # as it is now
    edit = await ls.tried(_reference_edit, ls, view, reference, found) if view and found else None
    if edit:
        await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(ls.edit(edit), f"Add {reference}"))
        ls.check(uri, _QUIET)


def _reference_edit(ls: Server, view: View, reference: str, paper: Paper) -> Changes:
    bibliography, lines = ls.bench.bibliography(view), ls.lines(view.path, view.text)
    is_new, key = bibliography.key_of(paper) is None, bibliography.keys_for([paper])[0]
    named = [one for one in ls.bench.draft(view).cited if one.key == reference and one.path.resolve() == view.path]
    edits: Changes = {view.path: [types.TextEdit(lines.range(*one.in_text(view.text)), key) for one in named]}
    return edits | (ls.entry_edit(view, Offer(key, paper, None, True)) if is_new else {})


async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """What a key is, or the best papers for a place."""
    view = ls.view(params.text_document.uri)
    return await ls.tried(_hover, ls, view, params.position) if view else None


def _hover(ls: Server, view: View, position: types.Position) -> types.Hover | None:
    offset, text = ls.lines(view.path, view.text).offset(position), ""
    typed = typed_at(view.path, view.text, offset)
    places = [place for place in ls.bench.places(view) if place.start <= offset <= place.end]
    if typed and typed.key and (offer := ls.bench.offer_of(view, typed.key) or ls.offers.get((view.path, typed.key))):
        judgement = ls.bench.judgement(view, typed.key, position.line + 1)
        text = "\n\n".join([_about(ls.bench, offer), *(_judged(judgement) if judgement else ())])
    elif places:
        text = _about_place(ls.bench, view, places[0])
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None


async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """Papers to cite at a place, what to do about a key without an entry, and right values of fields of entries."""
    view, path = ls.view(params.text_document.uri), ls.path(params.text_document.uri)
    if view is None:
        return ls.mendings(path, params.range) if path in ls.documents() else None
    return await ls.tried(_actions, ls, view, params)


def _actions(ls: Server, view: View, params: types.CodeActionParams) -> list[types.CodeAction]:
    unknown = [one for one in params.context.diagnostics if one.code == "key-unknown"]
    actions = [action for diagnostic in unknown for action in _key_actions(ls, view, diagnostic)]
    was_asked = params.context.trigger_kind != types.CodeActionTriggerKind.Automatic
    for offer, changes, is_marked in _offers(ls, view, params.range, any_sentence=was_asked and not actions):
        told = "Cite" if is_marked else "Cite for this sentence"
        title = f"{told} {offer.key}: {shown(_title(offer.paper), _TITLE)}"
        actions.append(types.CodeAction(title, types.CodeActionKind.QuickFix, edit=ls.edit(changes)))
    return actions


def _offers(ls: Server, view: View, span: types.Range, *, any_sentence: bool) -> Iterator[tuple[Offer, Changes, bool]]:
    """The papers for the places in a range; each with the edits that cite it, and whether it is for a place.

    Without a place there, and with `any_sentence`, those for the end of the sentence that the range begins in.
    """
    lines = ls.lines(view.path, view.text)
    start, end = lines.offset(span.start), lines.offset(span.end)
    places = [one for one in ls.bench.places(view) if one.start <= end and one.end >= start]
    sought = [(view, place, (place.start, place.end), "") for place in places]
    if any_sentence and not places:
        marked, place = ls.bench.sentence_place(view, start)
        sought = [(marked, place, (place.start - 1, place.start - 1), " ")]
    for marked, place, at, space in sought:
        offers, _ = ls.bench.best(marked, place, _ACTIONS)
        ls.remember(view.path, offers)
        for offer in offers:
            citation = space + ls.bench.draft(view).citation(place, [offer.key])
            changes = {view.path: [types.TextEdit(lines.range(*at), citation)]}
            yield offer, changes | (ls.entry_edit(view, offer) if offer.is_new else {}), bool(places)


async def papers(ls: Server, params: Any) -> list[dict[str, Any]]:
    """The papers for the place or the sentence at a position, as a panel of an editor shows them (docs/editors.md)."""
    view = ls.view(params.textDocument.uri)
    at = types.Position(params.position.line, params.position.character)
    return await ls.tried(_papers, ls, view, types.Range(at, at)) or [] if view else []


def _papers(ls: Server, view: View, span: types.Range) -> list[dict[str, Any]]:
    return [
        {
            "key": offer.key,
            "label": f"{cited_as(offer.paper)} · {_title(offer.paper)}",
            "verdict": offer.draft_hit.hit.verdict if offer.draft_hit else None,
            "isNew": offer.is_new,
            "about": _about(ls.bench, offer),
            "edit": ls.edit(changes),
        }
        for offer, changes, _ in _offers(ls, view, span, any_sentence=True)
    ]


def _key_actions(ls: Server, view: View, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
    fix, actions, lines = types.CodeActionKind.QuickFix, [], ls.lines(view.path, view.text)
    key = view.text[lines.offset(diagnostic.range.start) : lines.offset(diagnostic.range.end)]
    offer = ls.offers.get((view.path, key)) or ls.bench.offer_of(view, key)
    if offer and offer.is_new:
        edit = ls.edit(ls.entry_edit(view, offer))
        actions.append(types.CodeAction(f"Add the entry {key}", fix, [diagnostic], is_preferred=True, edit=edit))
    if ls.bench.services:
        title = f"Look up {shown(key, _TITLE)}, and add it"
        look_up = types.Command(title, ADD_REFERENCE, arguments=[ls.uri(view.path), key])
        actions.append(types.CodeAction(title, fix, [diagnostic], command=look_up))
    for near in difflib.get_close_matches(key, ls.bench.bibliography(view).entries, 3):
        edit = ls.edit({view.path: [types.TextEdit(diagnostic.range, near)]})
        actions.append(types.CodeAction(f"Change {key} to {near}", fix, [diagnostic], edit=edit))
    return actions


async def definition(ls: Server, params: types.DefinitionParams) -> list[types.Location]:
    """The entries of the key that the cursor is in."""
    found = await ls.tried(_uses, ls, params.text_document.uri, params.position) or {}
    return [ls.location(path, *span) for path, spans in found.items() if not is_draft(path) for span in spans]


async def references(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
    """Where the key that the cursor is in is cited, and its entries."""
    found = await ls.tried(_uses, ls, params.text_document.uri, params.position) or {}
    return [ls.location(path, *span) for path, spans in found.items() for span in spans]


async def rename(ls: Server, params: types.RenameParams) -> types.WorkspaceEdit | None:
    """The key that the cursor is in with another name, in its entries and in all drafts that are open."""
    if await ls.tried(check_key, params.new_name) is None:
        return None
    found = await ls.tried(_uses, ls, params.text_document.uri, params.position) or {}
    changes = {
        path: [types.TextEdit(ls.location(path, *one).range, params.new_name) for one in sorted(set(spans))]
        for path, spans in found.items()
    }
    return ls.edit({path: edits for path, edits in changes.items() if edits})


async def symbols(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The entries of a bibliography."""
    path = ls.path(params.text_document.uri)
    return await ls.tried(_symbols, ls, path) or [] if path.suffix.lower() == ".bib" else []


def _symbols(ls: Server, path: Path) -> list[types.DocumentSymbol]:
    lines, listed = ls.lines(path, ls.view_of(path).files().text(path)), []
    for entry, start, end in ls.entries(path):
        whole, title = lines.range(start, end), shown(_title(entry), _TITLE)
        kind = types.SymbolKind.Constant
        listed.append(types.DocumentSymbol(entry.paper_id or title, kind, whole, whole, detail=title))
    return listed


def _uses(ls: Server, uri: str, position: types.Position) -> dict[Path, list[tuple[int, int]]]:
    """Where the key at a position is cited in the drafts that are open, and where it is the key of an entry."""
    path = ls.path(uri)
    text = ls.view_of(path).files().text(path)
    at = ls.lines(path, text).offset(position)
    if is_draft(path):
        typed, bibs = typed_at(path, text, at), {*ls.bench.paths(ls.view_of(path))}
        key = typed.key if typed else ""
    else:
        bibs = {path}
        key = next((one.paper_id for one, start, end in ls.entries(path) if start <= at <= end), "")
    found = defaultdict[Path, list[tuple[int, int]]](list)
    drafts = [ls.view_of(one) for one in ls.documents() if key and is_draft(one)]
    for view in [one for one in drafts if not bibs.isdisjoint(ls.bench.paths(one))]:
        files = view.files()
        with contextlib.suppress(InputError):  # what is wrong with a draft is said there
            for one in ls.bench.draft(view).cited:
                if one.key == key:
                    found[one.path.resolve()].append(one.in_text(files.text(one.path)))
    for bib in sorted(bibs):
        found[bib] += [(start, end) for one, start, end in ls.entries(bib) if one.paper_id == key]
    return found


async def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Checks a draft that was opened; a bibliography concerns all drafts."""
    ls.check(params.text_document.uri)


async def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Checks a draft that has changed, after a pause."""
    ls.check(params.text_document.uri, _QUIET)


async def did_save(ls: Server, _params: types.DidSaveTextDocumentParams) -> None:
    """Checks all drafts again: files that they take in may have changed."""
    ls.bench.forget()
    ls.check(None)


async def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Removes what was said of a draft."""
    ls.stop_check(params.text_document.uri)
    ls.publish(ls.path(params.text_document.uri), [])


async def shut_down(ls: Server, _params: Any) -> None:
    """Notes that the editor has said goodbye."""
    ls.is_shut_down = True


def _about(bench: Workbench, offer: Offer) -> str:
    """A paper in Markdown: what it is, why it is offered, what supports it, and where it is."""
    draft_hit, paper = offer.draft_hit, bench.paper(offer.paper_id)
    parts = [_summary(paper or offer.paper)]
    if draft_hit:
        if verdict := draft_hit.hit.verdict:
            parts.append(f"**{verdict.capitalize()}**")
        if told := why(draft_hit.hit):
            parts.append(f"**Why:** {_plain('; '.join(told))}")
        if citance := draft_hit.hit.citance:
            titles = bench.recommender.titles([draft_hit.hit]) if bench.recommender else {}
            by = titles.get(citance.citing_id) or citance.citing_id
            parts.append(f"**Cited so:** “{_plain(shown(citance.text, _QUOTED))}” ({_plain(by)})")
        elif sentence := draft_hit.support:
            parts.append(f"**It says:** “{_plain(shown(sentence, _QUOTED))}”")
    if paper:
        cited = "" if paper.citation_count is None else f", {paper.citation_count:,} citations"
        parts.append(_plain(f"In the index: {paper.paper_id}{cited}"))
    elif bench.recommender:
        parts.append("Not in the index.")
    if (match := bench.asked.get(offer.paper)) and match.paper:
        parts.append(_plain(f"Found in {match.place(match.paper)}."))
    if offer.is_new:
        parts.append("*Not in your bibliography: its entry is added.*")
    return "\n\n".join(parts)


def _judged(judgement: Judgement) -> list[str]:
    """What is said of a citation, in Markdown."""
    says = [f"**It says:** “{_plain(shown(judgement.says, _QUOTED))}”"] if judgement.says else []
    return [*says, "*It may not fit this sentence.*"] if judgement.verdict == DOES_NOT_FIT else says


def _about_place(bench: Workbench, view: View, place: Place) -> str:
    """The best papers for a place, in Markdown, and how sure the system is."""
    if bench.recommender is None:
        return "The index is not open."
    offers, answer = bench.best(view, place, _HOVERED)
    if not offers:
        return "No paper found for this place."
    lines = ["Nothing in the index seems to fit; the nearest papers:", ""] if answer and answer.nothing_fits else []
    lines += [
        f"{number}. **{_plain(_title(offer.paper))}** {_plain(_in_line(offer.paper))} (`{offer.key}`"
        f"{'' if offer.is_new else ', in your bibliography'}"
        f"{f', {offer.draft_hit.hit.verdict}' if offer.draft_hit and offer.draft_hit.hit.verdict else ''})"
        for number, offer in enumerate(offers, 1)
    ]
    if sure := answer.confidence if answer else None:
        best = next(offer.key for offer in offers if offer.draft_hit and offer.draft_hit.hit.rank == 1)
        lines += ["", f"`{best}` is right with {sure.first:.0%}, one of the first ten with {sure.among_ten:.0%}."]
    return "\n".join(lines)


def _summary(paper: Paper) -> str:
    """Title, authors, year, venue, TLDR and the start of the abstract of a paper, in Markdown."""
    (tldr,) = tldrs([paper], usual_writer("tldr"))
    parts = [f"**{_plain(_title(paper))}**", _plain(_in_line(paper))]
    parts += [f"**TLDR:** {_plain(tldr.text)}" if tldr.text else "", _plain(shown(paper.abstract or "", _START))]
    return "\n\n".join(filter(None, parts))


def _title(paper: Paper) -> str:
    return paper.title or "(untitled)"


def _in_line(paper: Paper) -> str:
    """Authors, year and venue of a paper."""
    names = ", ".join(paper.authors[:_AUTHORS]) + (" et al." if len(paper.authors) > _AUTHORS else "")
    return one_line(" · ".join(filter(None, (names, str(paper.year or ""), paper.venue))))


def _plain(text: str) -> str:
    """A text in which nothing is Markdown."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def make_server(bench: Workbench) -> Server:
    """A language server, not started."""
    server = Server(bench)
    triggers = types.CompletionOptions(trigger_characters=["{", ",", "@"], resolve_provider=True)
    actions = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    server.feature(types.INITIALIZED)(opened)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(completion)
    server.feature(types.COMPLETION_ITEM_RESOLVE)(resolved)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)(code_action)
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(definition)
    server.feature(types.TEXT_DOCUMENT_REFERENCES)(references)
    server.feature(types.TEXT_DOCUMENT_RENAME)(rename)
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(symbols)
    server.feature(PAPERS)(papers)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(did_save)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)
    server.feature(types.SHUTDOWN)(shut_down)
    server.command(ADD_ENTRY)(add_entry)
    if bench.services:
        server.command(ADD_REFERENCE)(add_reference)
    return server


def serve(bench: Workbench, *, log: bool = False) -> int:
    """Serves an editor over standard input and output until it says goodbye.

    Args:
        bench: What reads, checks and searches.
        log: Whether to write what happens to standard error.

    Returns:
        The exit code: 1 if the editor left without a goodbye.
    """
    handler = logging.StreamHandler(sys.stderr) if log else logging.NullHandler()
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOG.setLevel(logging.INFO)
    # Nothing but the protocol may reach standard output: a library or the Java machine might print.
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = make_server(bench)
    try:
        server.start_io(sys.stdin.buffer, protocol)
    finally:
        server.close_all()
    return 0 if server.is_shut_down else 1
