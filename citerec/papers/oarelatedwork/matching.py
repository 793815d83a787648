"""Bib entries and papers matched by title, year and author (Docekal et al., OARelatedWork, 2.1.1; Lo et al., 2020)."""

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from citerec.contexts.s2orc import FullText
from citerec.corpus import matching
from citerec.corpus.store import PaperStore
from citerec.index.titles import Search, nearest
from citerec.records import Paper

_YEAR = re.compile(r"\b(?:19|20)\d\d(?=[a-z]?\b)")
_STOP = re.compile(r"[.?!:,;](?=\s)|[\"“”]")
_MOST_PIECES = 5  # that form one title, which may contain commas and a colon
_BETWEEN_NAMES = re.compile(r"[,;:&()]|(?<=\w\w)\.|\band\b|\bet\s+al\b")


def readings(entry: str) -> Iterator[Paper]:
    """Ways to read a printed bib entry: papers without an id, with a possible title and the authors before it.

    The title is one or several pieces between stops, commas or quotation marks.
    """
    ends = [*(match.end() for match in _STOP.finditer(entry)), len(entry)]
    for at, start in enumerate(ends):
        authors = tuple(name for part in _BETWEEN_NAMES.split(entry[:start]) if (name := part.strip()))
        for end in ends[at + 1 : at + 1 + _MOST_PIECES]:
            if title := entry[start:end].strip():
                yield Paper("", title, authors=authors)


def alike(entry: str, paper: Paper) -> float:
    """Similarity of the titles of a printed bib entry and a paper; 0 if the two do not match.

    They match if the titles are alike enough, they share an author, and the years are near if both are known.
    """
    years = [] if paper.year is None else map(int, _YEAR.findall(entry))
    year = min(years, key=lambda year: abs(year - (paper.year or 0)), default=None)
    named = (reading for reading in readings(entry) if reading.authors and paper.authors)
    return max((matching.alike(replace(reading, year=year), paper) for reading in named), default=0.0)


def linked(text: FullText, entry_ids: Iterable[str], search: Search, store: PaperStore) -> FullText:
    """A full text in which the given bib entries, if they have no match, get the paper that a search finds, if any."""
    matched = {}
    for entry_id in dict.fromkeys(entry_ids):
        entry = text.bib_entries.get(entry_id)
        if entry is None or entry.paper_id or not entry.text:
            continue
        paper_id = nearest(entry.text, functools.partial(alike, entry.text), search, store)
        if paper_id and paper_id != text.paper_id:
            matched[entry_id] = replace(entry, paper_id=paper_id)
    return replace(text, bib_entries={**text.bib_entries, **matched})
