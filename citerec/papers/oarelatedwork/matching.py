"""Bib entries and papers matched by title, year and author (Docekal et al., OARelatedWork, 2.1.1; Lo et al., 2020)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product, starmap
from typing import NamedTuple

from citerec.contexts.s2orc import FullText
from citerec.corpus.matching import LEAST_ALIKE, MOST_YEARS, same_author, similarity
from citerec.corpus.store import PaperStore
from citerec.index.titles import Search
from citerec.records import Paper

_YEAR = re.compile(r"\b(?:19|20)\d\d(?=[a-z]?\b)")
_STOP = re.compile(r"[.?!:,;](?=\s)|[\"“”]")
_MOST_PIECES = 5  # that form one title, which may contain commas and a colon
_BETWEEN_NAMES = re.compile(r"[,;:&()]|(?<=\w\w)\.|\band\b|\bet\s+al\b")


class Reading(NamedTuple):
    """A way to read a printed bib entry: a possible title, and the authors before it."""

    authors: tuple[str, ...]
    title: str


def readings(entry: str) -> Iterator[Reading]:
    """Ways to read a printed bib entry: the title is one or several pieces between stops, commas or quotation marks."""
    ends = [*(match.end() for match in _STOP.finditer(entry)), len(entry)]
    for at, start in enumerate(ends):
        authors = tuple(name for part in _BETWEEN_NAMES.split(entry[:start]) if (name := part.strip()))
        for end in ends[at + 1 : at + 1 + _MOST_PIECES]:
            if title := entry[start:end].strip():
                yield Reading(authors, title)


def alike(entry: str, paper: Paper) -> float:
    """Similarity of the titles of a printed bib entry and a paper; 0 if the two do not match.

    They match if the titles are alike enough, they share an author, and the years are near if both are known.
    """
    years = [int(year) for year in _YEAR.findall(entry)]
    if paper.year is not None and years and min(abs(year - paper.year) for year in years) > MOST_YEARS:
        return 0.0
    scored = ((similarity(reading.title, paper.title), reading.authors) for reading in readings(entry))
    near = ((score, names) for score, names in scored if score >= LEAST_ALIKE)
    return max(
        (score for score, names in near if any(starmap(same_author, product(names, paper.authors)))), default=0.0
    )


def best_match(entry: str, papers: Iterable[Paper]) -> Paper | None:
    """The paper that a bib entry names; the first of several that are equally similar."""
    scored = ((alike(entry, paper), paper) for paper in papers)
    score, paper = max(scored, key=lambda each: each[0], default=(0.0, None))
    return paper if score else None


def linked(text: FullText, entry_ids: Iterable[str], search: Search, store: PaperStore) -> FullText:
    """A full text in which the given bib entries, if they have no match, get the paper that a search finds, if any."""
    found: dict[str, str] = {}
    for entry_id in dict.fromkeys(entry_ids):
        entry = text.bib_entries.get(entry_id)
        if entry is None or entry.paper_id or not entry.text:
            continue
        ids = search(entry.text)
        papers = store.papers(ids)
        match = best_match(entry.text, (papers[paper_id] for paper_id in ids if paper_id in papers))
        if match is not None and match.paper_id != text.paper_id:
            found[entry_id] = match.paper_id
    matched = {entry_id: replace(text.bib_entries[entry_id], paper_id=paper_id) for entry_id, paper_id in found.items()}
    return replace(text, bib_entries={**text.bib_entries, **matched})
