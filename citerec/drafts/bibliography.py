"""The bibliography of a draft: what it can cite, which papers of an index that is, new entries, and mended ones."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from citerec.corpus.base import entry_keys, papers_in
from citerec.corpus.bibtex import bibtex_entry, parse_bibtex, values_of
from citerec.corpus.citation_keys import citation_keys, pattern_of
from citerec.corpus.matching import most_alike, normalised
from citerec.corpus.reading import BadRecord, raw_lines
from citerec.drafts.base import Cited, Draft, Source
from citerec.drafts.files import Files
from citerec.drafts.read import draft_kind
from citerec.errors import CiterecError, InputError
from citerec.files.text import replaced
from citerec.records import Paper


class Entry(NamedTuple):
    """An entry: its id is the citation key."""

    paper: Paper
    path: Path
    line: int


class Mending(NamedTuple):
    """A field of an entry, and what it should be, as BibTeX."""

    field: str
    value: str


class Unread(NamedTuple):
    """An entry that cannot be read, and why."""

    path: Path
    line: int
    reason: str


class Entries(NamedTuple):
    """Entries of `.bib` files.

    Attributes:
        entries: In the order of the files; keys may come again.
        unread: Entries that cannot be read.
        lost: Files that cannot be read, and why; their entries are unknown.
        is_whole: Whether no entry can be missing: some files were read, and all of them could be.
    """

    entries: tuple[Entry, ...] = ()
    unread: tuple[Unread, ...] = ()
    lost: tuple[tuple[Path, CiterecError], ...] = ()
    is_whole: bool = False


def read_entries(paths: Iterable[Path], files: Files | None = None) -> Entries:
    """The entries of some `.bib` files.

    Args:
        paths: The files; what cannot be read is told in the answer.
        files: Where texts are read from; by default the disk.
    """
    files = files or Files()
    entries, unread, lost = list[Entry](), list[Unread](), list[tuple[Path, CiterecError]]()
    for path in dict.fromkeys(paths):
        try:
            if path.suffix.lower() != ".bib":
                raise InputError(f"{path} is no .bib file", "Give its entries as BibTeX: --bib FILE")
            for line in parse_bibtex(files.text(path), untitled=True):
                if isinstance(line.record, Paper):
                    entries.append(Entry(line.record, path, line.number))
                elif isinstance(line.record, BadRecord):
                    unread.append(Unread(path, line.number, line.record.reason))
        except CiterecError as error:
            lost.append((path, error))
    return Entries(tuple(entries), tuple(unread), tuple(lost), not lost)


def draft_of(entries: Entries) -> Draft:
    """A draft that cites all of some entries, for those who check a bibliography alone."""
    return Draft("", cited=tuple(Cited(one.paper.paper_id, one.path, one.line, 0, 0) for one in entries.entries))


_BIBLIOGRAPHIES = (".bib", ".bibtex", ".ris", ".json")


def is_bibliography(path: Path) -> bool:
    """Whether a file has entries, by its name: BibTeX, RIS or JSON, also compressed."""
    return not {suffix.lower() for suffix in path.suffixes[-2:]}.isdisjoint(_BIBLIOGRAPHIES)


def read_cited(path: Path) -> dict[str, Paper]:
    """The papers of a file by citation key: entries of BibTeX, RIS or CSL-JSON; of any other file one id in each line.

    Entries that cannot be read are left out.

    Raises:
        SourceError: The file cannot be read, or is a `.json` file that is no bibliography.
        InputError: It is a draft.
    """
    if is_bibliography(path):
        return {paper.paper_id: paper for paper in papers_in(path)}
    if draft_kind(path) != "plain text":
        raise InputError(f"{path} is a draft, not a bibliography", "Give its bibliography, such as refs.bib.")
    ids = (raw.decode("utf-8", "replace").strip() for _, raw, _ in raw_lines(path))
    return {paper_id: Paper(paper_id) for paper_id in ids if paper_id}


_COMPARED = 10  # entries whose titles share most words with that of a paper

Matcher = Callable[[Mapping[str, Paper]], Mapping[str, str]]
"""Ids in an index of entries, by key; those that the index lacks are left out."""


class Bibliography:
    """The entries of `.bib` files. New ones go to the end of the first file, which is made if it is missing.

    Args:
        paths: The files.
        files: Where they are read, and changed.
        match: Finds the papers of entries.
        pattern: Of new keys (docs/formats.md, "Citation keys"); by default that of most keys that are there.

    Attributes:
        entries: Each entry as a paper, by key.
        ids: The paper of the index that an entry is, by key, as far as somebody asked.
        unreadable: What is wrong with entries that cannot be read, each with its file and line.

    Raises:
        InputError: A file cannot be read, or the pattern is wrong.
    """

    def __init__(self, paths: Sequence[Path], files: Files, match: Matcher | None = None, pattern: str = "") -> None:
        self.path, self._files, self._given = paths[0], files, pattern
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder", "Give a file: --bib refs.bib. It is made if it is missing.")
        if pattern:
            citation_keys((), pattern)
        read = read_entries([path for path in paths if files.exists(path)], files)
        for _, error in read.lost:
            raise error
        self.entries: dict[str, Paper] = {entry.paper.paper_id: entry.paper for entry in read.entries}
        self.unreadable = [f"{one.path}:{one.line}: {one.reason}" for one in read.unread]
        self.ids: dict[str, str] = {}
        self._match, self._matched = match, set[str]()
        self._nearest = cache(self._entry_of)

    def papers_of(self, keys: Iterable[str]) -> dict[str, str]:
        """The papers of the index that the entries of some keys are, by key."""
        wanted = [key for key in dict.fromkeys(keys) if key in self.entries]
        if self._match and (new := {key: self.entries[key] for key in wanted if key not in self._matched}):
            self.ids = {**self.ids, **self._match(new)}  # a new dictionary: another thread may be reading the old one
            self._matched |= new.keys()
        return {key: self.ids[key] for key in wanted if key in self.ids}

    def key_of(self, paper: Paper) -> str | None:
        """The key under which a paper of the index has an entry; None if it has none."""
        own = next((key for key, paper_id in self.ids.items() if paper_id == paper.paper_id), None)
        return own or self._nearest(paper)

    def near(self, words: Iterable[str]) -> Counter[str]:
        """How many of some words the title of each entry has, by key; without those that have none."""
        return Counter(key for word in words for key in self._with_word.get(word, ()))

    def _entry_of(self, paper: Paper) -> str | None:
        keys = [key for key, _ in self.near(normalised(paper.title)).most_common(_COMPARED)]
        best = most_alike(paper, (self.entries[key] for key in keys))
        return next((key for key in keys if self.entries[key] is best), None)

    @cached_property
    def _with_word(self) -> dict[str, list[str]]:
        """The keys of the entries whose titles have a word."""
        keys = defaultdict[str, list[str]](list)
        for key, entry in self.entries.items():
            for word in normalised(entry.title):
                keys[word].append(key)
        return keys

    def keys_for(self, papers: Sequence[Paper]) -> list[str]:
        """The key of each paper; of one that has no entry, the key that a new entry would have."""
        keys = [self.key_of(paper) for paper in papers]
        lacking = [paper for paper, key in zip(papers, keys, strict=True) if not key]
        new = iter(entry_keys(lacking, self._pattern, self.entries) if lacking else ())
        return [key or next(new) for key in keys]

    @cached_property
    def _pattern(self) -> str:
        return self._given or pattern_of(self.entries.values())

    @property
    def text(self) -> str:
        """The text of the first file; empty if it is missing."""
        return self._files.text(self.path) if self._files.exists(self.path) else ""

    def addition(self, paper: Paper, key: str) -> str:
        """What goes to the end of the first file to add an entry.

        Raises:
            InputError: The file cannot be read.
        """
        text = self.text
        end = "\r\n" if "\r\n" in text else "\n"
        before = "" if not text or text.endswith(2 * end) else end if text.endswith("\n") else 2 * end
        entry = bibtex_entry(key, paper).strip().replace("\r\n", "\n").replace("\n", end)
        return f"{before}{entry}{end}"

    def add(self, paper: Paper) -> str:
        """The key of a paper; if it has no entry, one is added.

        Raises:
            InputError: The encoding of the file lacks a character of the entry.
        """
        if key := self.key_of(paper):
            return key
        (key,) = self.keys_for([paper])
        size = len(self.text)
        self._files.change(self.path, size, size, self.addition(paper, key))
        self.entries[key], self.ids[key] = paper, paper.paper_id
        self._matched.add(key)
        for word in normalised(paper.title):  # so that another edition of it gets its key
            self._with_word[word].append(key)
        self._nearest.cache_clear()
        return key


def mended(entry: str, mendings: Sequence[Mending]) -> str:
    """The text of an entry with other values of some fields, else byte for byte the same; no field is added."""
    spans, values = [], values_of(entry)
    new = {mending.field.lower(): mending.value for mending in reversed(mendings)}  # the first of a field counts
    for name, value in values.items():
        if name in new:
            whole = entry[value.start : value.end]
            begin, end = ("{", "}") if value.text == whole or '"' in new[name] else (whole[0], whole[-1])
            spans.append((value.start, value.end, f"{begin}{new[name]}{end}"))
    return replaced(entry, spans)


def mend_entries(files: Files, mendings: Mapping[Entry, Sequence[Mending]]) -> int:
    """Mends entries in their files, which are changed and not yet written.

    Returns:
        How many entries were changed: those that were not changed by others meanwhile, and have the fields.
    """
    changed = 0
    for entry, of_entry in sorted(mendings.items(), key=lambda item: -item[0].line):  # from the last line up
        old = entry.paper.bibtex or ""
        source = Source(entry.path, files.text(entry.path))
        at = source.text.find(old, source.line_span(entry.line)[0])
        if old and at >= 0 and (new := mended(old, of_entry)) != old:
            files.change(entry.path, at, at + len(old), new)
            changed += 1
    return changed
