"""OARelatedWork: sections of related work with the abstracts of all that they cite (Docekal et al., 2.2)."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from citerec.contexts.documents import Document
from citerec.contexts.hierarchy import Section, cleaned, hierarchy
from citerec.contexts.s2orc import FullText
from citerec.contexts.sections import is_abstract, is_introduction, is_related_work
from citerec.corpus.store import PaperStore
from citerec.index.titles import Search, title_search
from citerec.papers.common.numbering import OTHER
from citerec.papers.common.pair_sets import Plan, Reading
from citerec.papers.oarelatedwork.matching import linked
from citerec.papers.oarelatedwork.records import DATASET, FULL_TEXTS
from citerec.records import Paper
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

_ADJACENT = re.compile(r"\W*")  # as in the authors' code: KNOT-FIT-BUT/OAPapers, oapapers/filters.py


@dataclass(frozen=True, slots=True)
class Conditions:
    """The least that a section of related work must have to be kept; by default as in Docekal et al."""

    sentences: int = 3
    papers: int = 2  # that it cites and that are in the index
    linked: float = 1.0  # share of its groups of citations that have such a paper, 0 to 1


def related_work_plan(conditions: Conditions, split: str = "pysbd", *, link_titles: bool = False) -> Plan:
    """How a data set of related work is built.

    `split` names the sentence splitter for sources without sentences. With `link_titles`, bib entries without a match
    are searched for in the index, by title, year and author.
    """
    parameters = {"conditions": asdict(conditions), "link_titles": link_titles, "split": split}
    return Plan(DATASET, related_work_tasks, STEPS, parameters, unit="citing papers", label=FULL_TEXTS)


def find_related_work(sections: Sequence[Section]) -> Section | None:
    """The first section of related work, by headline; Background counts if another section is the Introduction."""
    every = list(_walk(sections))
    introduced = any(is_introduction(section.headline) for section in every)
    named = (section for section in every if is_related_work(section.headline))
    backgrounds = (section for section in every if is_related_work(section.headline, introduced=introduced))
    return next(itertools.chain(named, backgrounds), None)


def _walk(sections: Sequence[Section]) -> Iterator[Section]:
    for section in sections:
        yield section
        yield from _walk(section.sections)


def _without(sections: Sequence[Section], left_out: Section) -> list[Section]:
    return [
        Section(each.headline, each.number, each.paragraphs, _without(each.sections, left_out))
        for each in sections
        if each is not left_out
    ]


def related_work_tasks(texts: Iterator[FullText], reading: Reading) -> Iterator[tuple[str, TextTask]]:
    """A task for each full text whose related work meets the conditions, after its paper."""
    conditions = Conditions(**reading.settings["conditions"])
    search = title_search(reading.index) if reading.settings["link_titles"] else None
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
