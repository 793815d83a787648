"""The drafts of an editor: their bibliographies, and the papers that are recommended at a place."""

import contextlib
import difflib
import functools
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from citerec.contexts.keys import contexts_of_draft, mentions
from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.drafts import Draft, Files, Place, read_draft
from citerec.drafts.bibliography import Bibliography
from citerec.drafts.checks.matches import Match, match_entries
from citerec.drafts.filling import telling_words
from citerec.drafts.latex import input_path
from citerec.drafts.listing import listed
from citerec.errors import InputError, QueryError
from citerec.index.columns import words_in
from citerec.index.manifest import find_index
from citerec.index.titles import papers_of_index
from citerec.recommend import Recommender
from citerec.records import Answer, Context, Hit, Paper
from citerec.serve.lsp_text import Typed, paragraph, plain_paragraph
from citerec.systems import Recipe, default_system

DEPTH = 50
"""Papers that are searched at a place, so that many are left when what is typed narrows them."""
_LONG_DRAFT = 30_000  # characters: reading more takes too long while someone types
_LISTED = 50  # papers of the bibliography that are offered
_LONG = 4  # letters from which a part of a key is enough
_ROOT = re.compile(r"^\s*%\s*!TEX\s+root\s*=\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_HEAD = 2000  # characters in which a file names its root
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]{1,300})\}")
_MOST_FILES = 100  # that are looked at for the main file of a draft
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^{}]{0,100}\}")


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


@dataclass(frozen=True, slots=True)
class Offer:
    """A paper that is offered at a place.

    Attributes:
        key: Its key, which a new entry would get.
        paper: The entry, or the paper of the index.
        paper_id: Its id in the index, if it is there.
        is_new: Whether the bibliography lacks it.
        context: The context of the place, if it is known.
        hit: What the search said of it, if it was found.
    """

    key: str
    paper: Paper
    paper_id: str | None
    is_new: bool
    context: Context | None = None
    hit: Hit | None = None


class Workbench:
    """Reads drafts and searches for their places. Safe to call from several threads.

    Args:
        options: What the server was started with.

    Attributes:
        recommender: The open system; None until `open` is done.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.recommender: Recommender | None = None
        self._lock = threading.RLock()
        self._matches: dict[Paper, Match] = {}
        self._named: dict[Path, tuple[Path, ...]] = {}
        self._last: dict[Path, Draft] = {}
        # Entries that were sent to the editor, by file, until its text on the disk changes: not every editor says what
        # it holds.
        self._added: dict[Path, tuple[str | None, dict[str, Paper]]] = {}
        # What one keystroke leaves as it was is not read or searched again.
        self._read = functools.lru_cache(16)(self._read_draft)
        self._read_entries = functools.lru_cache(4)(self._read_bibliography)
        self._found = functools.lru_cache(64)(self._search)

    def open(self) -> Recommender:
        """Opens the index, which may take seconds.

        Raises:
            CiterecError: It cannot be opened.
        """
        index = find_index(self.options.index)
        name = self.options.system or default_system(index)
        recommender = Recommender.open(index, Recipe.load(name, self.options.assignments))
        recommender.search("papers to cite", 1)  # loads what the first search needs, before someone waits for it
        self.recommender = recommender
        self._read_entries.cache_clear()  # from now on, their papers can be found
        return recommender

    def close(self) -> None:
        """Closes the index."""
        if self.recommender:
            self.recommender.close()

    def forget(self) -> None:
        """Forgets what was read, after files were saved: those that no editor has open may have changed too."""
        self._read.cache_clear()
        self._named.clear()

    def draft(self, view: View) -> Draft:
        """The draft of a view.

        Raises:
            InputError: It cannot be understood, as where a brace is not closed.
        """
        return self._read(view)

    def paths(self, view: View) -> tuple[Path, ...]:
        """The files of the bibliography of a draft, which may be missing."""
        return (self.options.bib.resolve(),) if self.options.bib else self._paths(view)

    def bibliography(self, view: View) -> Bibliography | None:
        """The bibliography of a draft: the given one, its own, that of its main file, or the only one beside it.

        Raises:
            InputError: A file cannot be read.
        """
        paths = self.paths(view)
        if not paths:
            return None
        files = view.files()
        texts = tuple(files.text(path) if files.exists(path) else None for path in paths)
        is_open = paths[0] in dict(view.texts)
        with self._lock:
            text, added = self._added.get(paths[0], (None, {}))
            pending = {} if is_open or text != texts[0] else added
            bibliography = self._read_entries(paths, texts, tuple(pending.items()))
        bibliography.ids = bibliography.ids | {key: paper.paper_id for key, paper in pending.items()}
        return bibliography

    def note_added(self, view: View, paper: Paper, key: str) -> None:
        """Notes that the editor has added an entry to the bibliography."""
        if bibliography := self.bibliography(view):
            with self._lock:
                files = view.files()
                text = files.text(bibliography.path) if files.exists(bibliography.path) else None
                before, added = self._added.get(bibliography.path, (None, {}))
                self._added[bibliography.path] = text, (added if before == text else {}) | {key: paper}

    def paper(self, paper_id: str) -> Paper | None:
        """A paper of the index."""
        return self.recommender.store.papers([paper_id]).get(paper_id) if self.recommender else None

    def places(self, view: View) -> list[Place]:
        """The places of the file itself, without those of files that it takes in; none if it cannot be understood."""
        try:
            return [place for place in self.draft(view).places if place.path.resolve() == view.path]
        except InputError:
            return []

    def context(self, view: View, at: int, *, near: bool = False) -> Context | None:
        """The context of the place at an offset; from its paragraph alone where the draft cannot be understood.

        With `near`, a long draft is not read as a whole. None without an index, and where a sentence does not end.
        """
        with contextlib.suppress(QueryError):
            return self._context(view, at, near=near)
        return None

    def _context(self, view: View, at: int, *, near: bool) -> Context | None:
        if self.recommender is None:
            return None
        store, bibliography = self.recommender.store, self.bibliography(view)
        if near and len(view.text) > _LONG_DRAFT and (found := self._nearby(view, at, bibliography)):
            return found
        with contextlib.suppress(InputError):
            draft = self.draft(view)
            if (number := _number(draft, view.path, at)) is not None:
                keys = (one.key for one in draft.cited)
                return draft.contexts(store, bibliography.papers_of(keys) if bibliography else None)[number]
        return self._contexts(view, plain_paragraph(view.text, at), bibliography)[0]

    def _contexts(self, view: View, text: str, bibliography: Bibliography | None) -> list[Context]:
        """The contexts of a text of a draft; of the bibliography only what the text cites counts."""
        assert self.recommender is not None
        title = self._last[view.path].title if view.path in self._last else None
        ids = bibliography.papers_of(one.key for one in mentions(text)) if bibliography else None
        return contexts_of_draft(text, self.recommender.store, ids, citing_title=title)

    def _nearby(self, view: View, at: int, bibliography: Bibliography | None) -> Context | None:
        """The context of a place, read from its paragraph and from what is cited before that."""
        start, stop = paragraph(view.text, at)
        part = view.text[start:stop]
        # An environment that begins or ends in another paragraph cannot be understood here.
        for text in (part, _ENVIRONMENT.sub(lambda edge: " " * len(edge[0]), part)):
            with contextlib.suppress(InputError):
                draft = read_draft(view.path, Files(texts={view.path: text}))
                break
        else:
            return None
        number = _number(draft, view.path, at - start)
        if number is None or self.recommender is None:
            return None
        before = "".join(f"\\cite{{{one.key}}}" for one in mentions(view.text[:start]) if not one.in_brackets)
        return self._contexts(view, f"{before}\n\n{draft.text}", bibliography)[number]

    def answer(self, context: Context | None, k: int = DEPTH, *, explain: bool = False) -> Answer | None:
        """The papers recommended for a context; None if there is no index yet, or no word to search for."""
        if context is None or self.recommender is None:
            return None
        try:
            return self._found(context, min(k, self.recommender.manifest.counts.papers), explain)
        except QueryError:
            return None

    def explained(self, offer: Offer) -> Hit | None:
        """The hit of an offer, with the reasons for it."""
        answer = self.answer(offer.context, self.options.k, explain=True) if offer.hit else None
        same = (hit for hit in answer or () if offer.hit and hit.paper.paper_id == offer.hit.paper.paper_id)
        return next(same, offer.hit)

    def completions(self, view: View, typed: Typed) -> list[Offer]:
        """The papers that a completion offers: the best for the sentence, then the other entries of the bibliography.

        If something is typed, they match it, and the entries of the bibliography come first.
        """
        view = view.with_text(typed.draft)
        context = self.context(view, typed.start, near=True)
        answer = self.answer(context)
        asked = frozenset(words_in(typed.text)) if typed.text.strip("?") else frozenset()
        mine = self._entries(view, context, answer, asked)[:_LISTED]
        found = [one for one in self.recommended(view, context, answer) if _matches(asked, one)]
        if asked and self.options.own_first:  # somebody who types a name mostly knows the entry
            return mine + [one for one in found if one.is_new][: self.options.k]
        best = found[: self.options.k]
        keys = {one.key for one in best}
        return best + [one for one in mine if one.key not in keys]

    def recommended(self, view: View, context: Context | None, answer: Answer | None) -> Iterator[Offer]:
        """The papers of an answer as an author sees them, with the keys that they have or would get."""
        bibliography = self.bibliography(view) or Bibliography(
            [view.path.with_suffix(".bib")], Files(), None, self.options.keys
        )
        taken: list[str] = []
        for one in listed(answer or (), bibliography, own_first=self.options.own_first):
            key = one.key or bibliography.key_for(one.paper, taken)
            taken.append(key)
            yield Offer(key, one.paper, one.paper.paper_id, one.key is None, context, one.hit)

    def best(self, view: View, place: Place, count: int) -> tuple[list[Offer], Answer | None]:
        """The best papers for a place, and the answer that they are of."""
        context = self.context(view, place.start)
        answer = self.answer(context)
        best = answer[:count] if answer else None
        return list(self.recommended(view, context, best)), best

    def offer_of(self, view: View, key: str) -> Offer | None:
        """The entry of a key, or the paper of the index whose id it is."""
        bibliography = self.bibliography(view)
        if bibliography and key in bibliography.entries:
            return Offer(key, bibliography.entries[key], bibliography.papers_of([key]).get(key), False)
        paper = self.paper(key)
        return Offer(key, paper, paper.paper_id, True) if paper else None

    def near_keys(self, view: View, key: str) -> list[str]:
        """Keys of the bibliography that are spelt nearly so, nearest first."""
        known = bibliography.entries if (bibliography := self.bibliography(view)) else ()
        return difflib.get_close_matches(key, known, 3)

    def _read_draft(self, view: View) -> Draft:
        draft = self._last[view.path] = read_draft(view.path, view.files())
        return draft

    def _paths(self, view: View) -> tuple[Path, ...]:
        if view.path not in self._last:
            with contextlib.suppress(InputError):
                self.draft(view)
        if (last := self._last.get(view.path)) and last.bibliographies:
            return tuple(path.resolve() for path in last.bibliographies)
        if view.path not in self._named:
            self._named[view.path] = tuple(_of_main_file(view)) or tuple(_alone(view.path.parent))
        return self._named[view.path]

    def _read_bibliography(
        self, paths: tuple[Path, ...], texts: tuple[str | None, ...], added: tuple[tuple[str, Paper], ...]
    ) -> Bibliography:
        given = {path: text for path, text in zip(paths, texts, strict=True) if text is not None}
        match = self._papers_of if self.recommender else None
        bibliography = Bibliography(paths, Files(texts=given), match, self.options.keys)
        for key, paper in added:
            bibliography.entries.setdefault(key, paper)
        return bibliography

    def matches(self, entries: Mapping[str, Paper]) -> dict[str, Match]:
        """What the index has of some entries, by key; nothing until it is open."""
        if self.recommender is None:
            return {}
        new = {entry.paper_id: entry for entry in entries.values() if entry not in self._matches}
        found = match_entries(new.values(), self.recommender.index) if new else {}
        self._matches.update({entry: found.get(key, Match()) for key, entry in new.items()})
        return {key: self._matches[entry] for key, entry in entries.items()}

    def _papers_of(self, entries: Mapping[str, Paper]) -> dict[str, str]:
        assert self.recommender is not None
        return papers_of_index(entries, self.recommender.index)

    def _search(self, context: Context, k: int, explain: bool) -> Answer:
        assert self.recommender is not None
        return self.recommender.search(context, k, explain=explain, fold=True)

    def _entries(
        self, view: View, context: Context | None, answer: Answer | None, asked: frozenset[str]
    ) -> list[Offer]:
        """The entries that match what is typed: first those that the search found, then by words of the sentence."""
        bibliography = self.bibliography(view)
        if bibliography is None:
            return []
        hits = {one.key: one.hit for one in listed(answer or (), bibliography)}
        wanted = telling_words(context) if context else set()
        offers = []
        for key, entry in bibliography.entries.items():
            offer = Offer(key, entry, bibliography.ids.get(key), False, context, hits.get(key))
            if _matches(asked, offer):
                rank = offer.hit.rank if offer.hit else DEPTH + 1
                offers.append(((rank, -len(wanted.intersection(words_in(entry.title))), key), offer))
        return [offer for _, offer in sorted(offers, key=lambda one: one[0])]


def _matches(asked: frozenset[str], offer: Offer) -> bool:
    """Whether each word that is typed begins a word of the authors, the title or the year, or is in the key."""
    paper, key = offer.paper, offer.key.casefold()
    words = words_in(f"{' '.join(paper.authors)} {paper.title} {paper.year or ''}") if asked else ()
    return all(
        key.startswith(one) or (len(one) >= _LONG and one in key) or any(word.startswith(one) for word in words)
        for one in asked
    )


def _number(draft: Draft, path: Path, at: int) -> int | None:
    """The number of the place at an offset of a file, from 0."""
    places = enumerate(draft.places)
    return next((n for n, place in places if place.path.resolve() == path and place.start <= at <= place.end), None)


def _of_main_file(view: View) -> Iterator[Path]:
    """The bibliographies of the file that takes this one in: it is named by `% !TEX root`, or lies near."""
    files = view.files()
    named = _ROOT.search(view.text[:_HEAD])
    near = [path for folder in (view.path.parent, view.path.parent.parent) for path in sorted(folder.glob("*.tex"))]
    for path in [view.path.parent / named[1]] if named else near[:_MOST_FILES]:
        try:
            names = _INPUT.findall(files.text(path))
            inputs = {input_path(path.parent, name.strip(), files).resolve() for name in names}
            if named or view.path in inputs:
                yield from (one.resolve() for one in read_draft(path, files).bibliographies)
                return
        except InputError:
            continue  # what is wrong with it is said where it is open


def _alone(folder: Path) -> list[Path]:
    """The only `.bib` file of a folder."""
    found = list(folder.glob("*.bib"))
    return [found[0].resolve()] if len(found) == 1 else []
