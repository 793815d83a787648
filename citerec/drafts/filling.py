"""Filling a draft: papers are cited at its places, and their entries added to its bibliography."""

from collections.abc import Sequence
from pathlib import Path

from citerec.contexts.split import splitter
from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.corpus.store import PaperStore
from citerec.drafts.bibliography import Bibliography, Matcher
from citerec.drafts.files import Files
from citerec.drafts.inserting import sentence_end
from citerec.drafts.read import read_draft
from citerec.errors import InputError
from citerec.index.columns import words_in
from citerec.records import Context, Hit, Paper

_LONG = 4  # letters: shorter words are mostly "of" and "the"
_SHARED = 2  # words that a sentence must share with the context to support it


class Filling:
    """A draft and its bibliography, which are changed in `files` until these are written.

    Args:
        path: The draft.
        bibliography: Its `.bib` file; by default those that it names.
        files: Where both are read, and changed; by default the disk.
        match: Finds the papers of entries.
        pattern: Of new keys.

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
        pattern: str = DEFAULT_PATTERN,
    ) -> None:
        self.path, self.files = path, files or Files()
        self.draft = read_draft(path, self.files)
        named = [bibliography] if bibliography else list(self.draft.bibliographies)
        if not named:
            raise InputError(f"{path} names no bibliography", "Give one: --bib refs.bib. It is made if it is missing.")
        self.bibliography = Bibliography(named, self.files, match, pattern)

    def contexts(
        self, store: PaperStore, *, citing_id: str | None = None, citing_title: str | None = None
    ) -> list[Context]:
        """A context for each place of the draft as it is now; arguments as for `Draft.contexts`.

        Of the bibliography, only what the draft cites counts: it may be a whole library.
        """
        cited = self.bibliography.papers_of(one.key for one in self.draft.cited)
        return self.draft.contexts(store, cited, citing_id=citing_id, citing_title=citing_title)

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


def telling_words(context: Context) -> set[str]:
    """The longer words of a sentence and of those before it."""
    return {word for word in words_in(f"{context.text} {context.before}") if len(word) >= _LONG}


def support(hit: Hit, context: Context) -> str | None:
    """The sentence of the abstract that shares most words with the context; None if none shares enough."""
    wanted = telling_words(context)
    abstract = hit.paper.abstract or ""
    sentences = [abstract[start:end] for start, end in splitter()(abstract)]
    shared = [len(wanted.intersection(words_in(sentence))) for sentence in sentences]
    return sentences[shared.index(max(shared))] if shared and max(shared) >= _SHARED else None
