"""OARelatedWork: sections of related work with the abstracts of all that they cite (Docekal et al., 2.2).

Bib entries and papers are matched by title, year and author (2.1.1, after Lo et al., 2020).
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from citerec.contexts.documents import Document
from citerec.contexts.s2orc import FullText
from citerec.contexts.sections import (
    Section,
    cleaned,
    hierarchy,
    is_abstract,
    is_introduction,
    is_related_work,
    outermost,
)
from citerec.corpus import matching
from citerec.corpus.store import PaperStore
from citerec.papers.common.numbering import OTHER
from citerec.papers.common.pair_sets import Plan, Reading
from citerec.papers.oarelatedwork.records import DATASET, FULL_TEXTS
from citerec.records import Paper
from citerec.retrieve.opened import Search, nearest, title_search
from citerec.settings import Positive, Share
from citerec.write.tasks import Source, TextTask

STEPS = (
    "texts",
    "texts with a section of related work",
    "of them, with sentences enough",
    "of them, that cite linked papers enough",
    "of them, with a linked paper in each group of citations",
    "of them, whose linked papers all have an abstract",
    "of them, with an abstract of their own",
)

# Pieces of a printed bib entry.
_YEAR = re.compile(r"\b(?:19|20)\d\d(?=[a-z]?\b)")
_STOP = re.compile(r"[.?!:,;](?=\s)|[\"“”]")
_MOST_PIECES = 5  # that form one title, which may contain commas and a colon
_BETWEEN_NAMES = re.compile(r"[,;:&()]|(?<=\w\w)\.|\band\b|\bet\s+al\b")

_ADJACENT = re.compile(r"\W*")  # as in the authors' code: KNOT-FIT-BUT/OAPapers, oapapers/filters.py


@dataclass(frozen=True, slots=True)
class Conditions:
    """The least that a section of related work must have to be kept; by default as in Docekal et al."""

    sentences: Positive = 3
    papers: Positive = 2  # that it cites and that are in the index
    linked: Share = 1.0  # share of its groups of citations that have such a paper, 0 to 1
    link_titles: bool = False  # whether bib entries without a match are searched for, by title, year and author


def related_work_plan(conditions: Conditions, split: str = "pysbd") -> Plan:
    """How a data set of related work is built; `split` names the sentence splitter for sources without sentences."""
    parameters = {"conditions": asdict(conditions), "split": split}
    return Plan(DATASET, related_work_tasks, STEPS, parameters, unit="citing papers", label=FULL_TEXTS)


def find_related_work(sections: Sequence[Section]) -> Section | None:
    """The first section of related work, by headline; Background counts if another section is the Introduction."""
    introduced = next(outermost(sections, is_introduction), None) is not None
    backgrounds = outermost(sections, functools.partial(is_related_work, introduced=introduced))
    return next(outermost(sections, is_related_work), None) or next(backgrounds, None)


def _without(sections: Sequence[Section], left_out: Section) -> list[Section]:
    return [
        Section(each.headline, each.number, each.paragraphs, _without(each.sections, left_out))
        for each in sections
        if each is not left_out
    ]


def related_work_tasks(texts: Iterator[FullText], reading: Reading) -> Iterator[tuple[str, TextTask]]:
    """A task for each full text whose related work meets the conditions, after its paper."""
    conditions = Conditions(**reading.settings["conditions"])
    search = title_search(reading.index) if conditions.link_titles else None
    for text in texts:
        document = Document(text, reading.settings["split"])
        if task := _task(document, conditions, reading.index.store, reading.counts, search):
            yield text.paper_id, task


def _task(
    document: Document, conditions: Conditions, store: PaperStore, counts: "Counter[str]", search: Search | None
) -> TextTask | None:
    """The task of a full text: its related work, to be written from abstracts; None if it does not meet the conditions.

    Args:
        document: The full text.
        conditions: The conditions that it must meet.
        store: The papers with their abstracts: a cited paper is linked if it is matched and in the store.
        counts: Counts each of STEPS that it passes.
        search: Finds papers for bib entries without a match.
    """

    def passes(step: int, condition: object) -> bool:
        counts[STEPS[step]] += bool(condition)
        return bool(condition)

    flat = document.sections()
    if not any(is_related_work(section.headline, introduced=True) for section in flat):
        return None
    tree = cleaned(hierarchy(flat), document.words)
    section = find_related_work(tree)
    if section is None or not passes(1, section):
        return None
    if not passes(2, _has_sentences(document, section.all_paragraphs(), conditions.sentences)):
        return None
    if search is not None:
        citations = [citation for place in section.all_paragraphs() for citation in document.citations(place)]
        entry_ids = [entry_id for _, entry_ids in citations for entry_id in entry_ids]
        document.text = linked(document.text, entry_ids, search, store)
    citing_id = document.text.paper_id
    papers = store.papers({*document.text.cited_ids(), citing_id})
    citing = papers.pop(citing_id, None)
    text = _RelatedWork(document, section, papers)
    abstract = (citing.abstract if citing else None) or _own_abstract(document, flat)
    if not (
        passes(3, len(text.cited) >= conditions.papers)
        and passes(4, text.linked_groups >= conditions.linked * text.groups)
        and passes(5, all(papers[paper_id].abstract for paper_id in text.cited))
        and passes(6, abstract)
    ):
        return None
    return TextTask(
        task_id=citing_id,
        sources=tuple(Source.of(papers[paper_id]) for paper_id in text.cited),
        citing=abstract,
        targets=("\n".join(text.lines),),
        dataset=DATASET,
        extra={
            "citing_id": citing_id,
            "headline": section.headline,
            "subsections": bool(section.sections),
            "document": document.as_json(_without(tree, section)),
        },
    )


def _has_sentences(document: Document, places: Sequence[int], fewest: int) -> bool:
    """Whether paragraphs have at least so many sentences; splitting is slow, so it stops when there are enough."""
    found = itertools.accumulate(len(document.sentences(place)) for place in places)
    return any(count >= fewest for count in found)


class _RelatedWork:
    """The text of a section, one line per paragraph or headline, with `[n]` for the papers that it cites.

    Papers are cited in order of first mention. Citations with nothing but non-words between them are one group, which
    may have a linked paper.
    """

    def __init__(self, document: Document, section: Section, papers: Mapping[str, Paper]) -> None:
        self._document, self._papers = document, papers
        self.lines: list[str] = []
        self.cited: dict[str, int] = {}
        self.groups = self.linked_groups = 0
        self._add(section)

    def _add(self, section: Section) -> None:
        for place in section.paragraphs:
            if line := " ".join(self._anchored(place).split()):
                self.lines.append(line)
        for inner in section.sections:
            self.lines.append(inner.headline)
            self._add(inner)

    def _anchored(self, place: int) -> str:
        whole, at, linked_here = self._document.whole(place), 0, False
        parts: list[str] = []
        for number, (callout, entry_ids) in enumerate(self._document.citations(place)):
            between = whole[at : callout.start]
            if number == 0 or not _ADJACENT.fullmatch(between):
                self.groups += 1
                linked_here = False
            anchors = [f"[{self.cited.setdefault(paper_id, len(self.cited))}]" for paper_id in self._linked(entry_ids)]
            if anchors and not linked_here:
                self.linked_groups += 1
                linked_here = True
            glued = bool(between) and between[-1].isalnum()
            parts += [between, " " if glued else "", " ".join(anchors) or OTHER]
            at = callout.end
            if whole[at : at + 1].isalnum():
                parts.append(" ")
        return "".join([*parts, whole[at:]])

    def _linked(self, entry_ids: Sequence[str]) -> list[str]:
        entries = (self._document.text.bib_entries.get(entry_id) for entry_id in entry_ids)
        found = (entry.paper_id for entry in entries if entry and entry.paper_id)
        return list(dict.fromkeys(paper_id for paper_id in found if paper_id in self._papers))


def _own_abstract(document: Document, sections: Sequence[Section]) -> str:
    """The abstract in the full text itself."""
    own = next((section.paragraphs for section in sections if is_abstract(section.headline)), [])
    return " ".join(" ".join(document.whole(place).split()) for place in own)


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
