"""Records of OARelatedWork as its authors publish them (BUT-FIT/OARelatedWork on the hub, before CZLC/OARelatedWork).

Field names are those of the data set's card. A text is one of three: a tree of `headline` and `content`, also as JSON
in a string (`oa_related_work`); a list of sections with `title_path` and `paragraphs` (`flattened_sections`); or, of an
abstract, a list of paragraphs. Spans are written as in the authors' evaluation: `<cite>ID<sep>TITLE<sep>FIRST
AUTHOR</cite>`, `UNK` for an unknown id, and `<ref>TYPE</ref>`; but a citation of a source is `[0]`, `[1]`, …
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from citerec.contexts import sections
from citerec.contexts.full_text import Document, FullText
from citerec.contexts.split import folded
from citerec.corpus.reading import RecordError, optional_id, read_list, read_strings, read_text
from citerec.corpus.store import PaperStore
from citerec.files.text import one_line, replaced
from citerec.papers.common.pair_sets import OTHER, Plan, Reading
from citerec.papers.common.sections import cleaned, hierarchy, outermost
from citerec.records import Paper
from citerec.settings import Positive, Share
from citerec.write.anchors import UNKNOWN
from citerec.write.task_files import TaskFormat
from citerec.write.tasks import Source, TextTask, text_of

DATASET = "oarelatedwork"
FORMULA = "<eq>"
"""Stands for a formula in a target, as in the authors' evaluation."""

_NUMBERING = re.compile(r"\[\d+\]")  # takes the place of a headline that is missing
_FORMULA = "formula"
_MARKS = re.compile(r"[<>\[\]]")


class _Paragraph(NamedTuple):
    """A paragraph: the headlines above it, without the root's, and its sentences as they are in the record."""

    path: tuple[str, ...]
    sentences: Sequence[Mapping[str, Any]]


def recognised(record: Mapping[str, Any]) -> bool:
    """Whether a record has the shape of OARelatedWork: a paper with its related work apart, and the papers it cites."""
    return "related_work" in record and ("referenced" in record or "related_work_orig_path" in record)


def parse_record(record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True) -> TextTask:  # noqa: ARG001
    """A record as a task with abstracts, and the full texts; a RecordError if a field has another shape.

    Sources are in the order of `referenced`, also those without any text. `extra` has the citing paper's id and
    title, the headline, and whether there are subsections.
    """
    if "referenced" not in record:
        fault = "the cited papers are in another file: take OARelatedWork from the hub, where they are in each"
        raise RecordError(fault)
    referenced = read_list(record, "referenced", dict)
    numbers = {str(paper["id"]): number for number, paper in enumerate(referenced) if paper.get("id") is not None}
    sources = tuple(_cited(paper, numbers) for paper in referenced)
    headline, section = _read(record["related_work"])
    if not (target := "\n".join(_lines(section, _Spans(record, numbers, FORMULA)))):
        raise RecordError("its related work is empty")
    spans = _Spans(record, numbers)
    abstract, rest = _parted(_read(record.get("hierarchy"))[1], spans)
    own_abstract = text_of([spans.sentences(paragraph) for paragraph in _read(record.get("abstract"))[1]])
    citing_id = optional_id(record, "id")
    extra = {
        "citing_id": citing_id,
        "title": read_text(record, "title"),
        "headline": headline,
        "subsections": any(paragraph.path for paragraph in section),
    }
    return TextTask(
        task_id=citing_id or default_id,
        sources=sources,
        citing=(own_abstract or abstract or Source("")).text,
        targets=(target,),
        dataset=DATASET,
        extra={name: value for name, value in extra.items() if value is not None},
        citing_rest=rest,
    )


OARELATEDWORK = TaskFormat("oarelatedwork", recognised, parse_record)


def _cited(paper: Mapping[str, Any], numbers: Mapping[str, int]) -> Source:
    """A cited paper with its abstract, and the rest of it."""
    abstract, rest = _parted(_read(paper.get("hierarchy"))[1], _Spans(paper, numbers))
    text = abstract or Source("")
    ids = {name: paper[name] for name in ("s2orc_id", "year") if paper.get(name) is not None}
    fields = read_text(paper, "title") or "", text.sentences, read_strings(paper, "authors")
    return Source(text.text, optional_id(paper, "id"), *fields, extra=ids, rest=rest)


def _parted(paragraphs: Sequence[_Paragraph], spans: "_Spans") -> tuple[Source | None, Source | None]:
    """Abstract and rest of a paper; paragraphs without a section are an abstract."""
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    for paragraph in paragraphs:
        parts[bool(paragraph.path) and not sections.is_abstract(paragraph.path[0])].append(spans.sentences(paragraph))
    return text_of(parts[0]), text_of(parts[1])


class _Spans:
    """Writes the sentences of a paper, with its citations and references.

    Args:
        paper: The paper, with `bibliography` and `non_plaintext_content`.
        numbers: Numbers of the sources by id.
        formula: Stands for formulas; by default they are kept, between `$$`.
    """

    def __init__(self, paper: Mapping[str, Any], numbers: Mapping[str, int], formula: str | None = None) -> None:
        self._entries, self._others = read_list(paper, "bibliography"), read_list(paper, "non_plaintext_content")
        self._numbers, self._formula = numbers, formula

    def sentences(self, paragraph: _Paragraph) -> list[str]:
        return [self._said(sentence) for sentence in paragraph.sentences]

    def _said(self, sentence: Mapping[str, Any]) -> str:
        text = sentence["text"]
        if _FORMULA in (sentence.get("headline"), (sentence.get("title_path") or [None])[-1]):
            return self._formula if self._formula is not None else f"$${text}$$"
        spans = [(span["start"], span["end"], self._citation(span["index"])) for span in sentence["citations"] or ()]
        spans += [(span["start"], span["end"], self._reference(span["index"])) for span in sentence["references"] or ()]
        sound, at = [], 0
        for span in sorted(spans):
            if at <= span[0] <= span[1]:
                sound.append(span)
                at = span[1]
        return replaced(text, sound)

    def _citation(self, index: int | None) -> str:
        if index is None or index >= len(self._entries):
            return f"<cite>{UNKNOWN}</cite>"
        entry = self._entries[index]
        paper_id = UNKNOWN if entry["id"] is None else str(entry["id"])
        if paper_id in self._numbers:
            return f"[{self._numbers[paper_id]}]"
        named = entry["title"], (entry["authors"] or [UNKNOWN])[0]
        return f"<cite>{'<sep>'.join([paper_id, *(_MARKS.sub(' ', one_line(name or '')) for name in named)])}</cite>"

    def _reference(self, index: int | None) -> str:
        if index is None or index >= len(self._others):
            return f"<ref>{UNKNOWN}</ref>"
        other = self._others[index]
        return f"<ref>{other['type'] if isinstance(other, dict) else other[0]}</ref>"


def _lines(paragraphs: Sequence[_Paragraph], spans: _Spans) -> Iterator[str]:
    """A line for each paragraph, and for each headline above it that is not above the one before."""
    before: tuple[str, ...] = ()
    for path, sentences in paragraphs:
        differ = (at for at, (one, other) in enumerate(zip(path, before, strict=False)) if one != other)
        yield from path[next(differ, min(len(path), len(before))) :]
        before = path
        if line := one_line(" ".join(spans.sentences(_Paragraph(path, sentences)))):
            yield line


def _read(value: Any) -> tuple[str, list[_Paragraph]]:
    """The root's headline and the paragraphs of a text in any of its shapes."""
    value = orjson.loads(value) if isinstance(value, str) else value
    if isinstance(value, dict) and value:
        return _headline(value.get("headline")), list(_of_tree(value, ()))
    if value and not isinstance(value, list):
        raise RecordError(f"a text is a {type(value).__name__}, not a tree or a list")
    if not value or not isinstance(value[0], dict):
        return "", [_Paragraph((), paragraph) for paragraph in value or ()]
    paragraphs = [
        _Paragraph(tuple(filter(None, map(_headline, section["title_path"][1:]))), paragraph)
        for section in value
        for paragraph in section["paragraphs"]
    ]
    return _headline((value[0]["title_path"] or [None])[0]), paragraphs


def _of_tree(node: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Paragraph]:
    """The paragraphs below a node; a sentence is a node whose content is a text with its spans."""
    content = node["content"]
    if isinstance(content, dict):
        yield _Paragraph(path, [content])
        return
    for are_sentences, children in itertools.groupby(content, lambda child: isinstance(child["content"], dict)):
        if are_sentences:
            yield _Paragraph(path, [{**child["content"], "headline": child.get("headline")} for child in children])
            continue
        for child in children:
            headline = _headline(child.get("headline"))
            yield from _of_tree(child, (*path, headline) if headline else path)


def _headline(value: str | None) -> str:
    headline = one_line(value or "")
    return "" if _NUMBERING.fullmatch(headline) else headline


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
    """The least that a section of related work must have to be kept; by default as in Docekal et al.

    Attributes:
        sentences: The least number of sentences of a section.
        papers: The least number of papers of the index that it cites.
        linked: The least share of its groups of citations that have such a paper, 0 to 1.
    """

    sentences: Positive = 3
    papers: Positive = 2
    linked: Share = 1.0


def find_related_work(tree: Sequence[sections.Section]) -> sections.Section | None:
    """The first section of related work, by headline; Background counts if another section is the Introduction."""
    introduced = next(outermost(tree, sections.is_introduction), None) is not None
    backgrounds = outermost(tree, functools.partial(sections.is_related_work, introduced=introduced))
    return next(outermost(tree, sections.is_related_work), None) or next(backgrounds, None)


def _without(tree: Sequence[sections.Section], left_out: sections.Section) -> list[sections.Section]:
    return [replace(each, sections=_without(each.sections, left_out)) for each in tree if each is not left_out]


def related_work_tasks(texts: Iterator[FullText], reading: Reading) -> Iterator[tuple[str, TextTask]]:
    """A task for each full text whose related work meets the conditions, after its paper."""
    conditions = Conditions(**reading.settings["conditions"])
    for text in texts:
        document = Document(text, reading.settings["split"])
        if task := _task(document, conditions, reading.index.store, reading.counts):
            yield text.paper_id, task


RELATED_WORK_PLAN = Plan(DATASET, related_work_tasks, STEPS, Conditions)
"""How a data set of related work is built."""


def _task(document: Document, conditions: Conditions, store: PaperStore, counts: "Counter[str]") -> TextTask | None:
    """The task of a full text: its related work, to be written from abstracts; None if it does not meet the conditions.

    Args:
        document: The full text.
        conditions: The conditions that it must meet.
        store: The papers with their abstracts: a cited paper is linked if it is matched and in the store.
        counts: Counts each of STEPS that it passes.
    """

    def passes(step: int, condition: object) -> bool:
        counts[STEPS[step]] += bool(condition)
        return bool(condition)

    flat = document.sections()
    if not any(sections.is_related_work(section.headline, introduced=True) for section in flat):
        return None
    tree = cleaned(hierarchy(flat), [document.whole(place).strip() for place in range(len(document.paragraphs))])
    section = find_related_work(tree)
    if section is None or not passes(1, section):
        return None
    # Splitting is slow: it stops when there are enough sentences.
    numbers = itertools.accumulate(len(document.sentences(place)) for place in section.all_paragraphs())
    if not passes(2, any(number >= conditions.sentences for number in numbers)):
        return None
    citing_id = document.text.paper_id
    papers = store.papers({*document.text.cited_ids(), citing_id})
    citing = papers.pop(citing_id, None)
    text, cited, groups = _written(document, section, papers)
    abstract = (citing.abstract if citing else None) or _own_abstract(document, flat)
    if not (
        passes(3, len(cited) >= conditions.papers)
        and passes(4, sum(groups) >= conditions.linked * len(groups))
        and passes(5, all(papers[paper_id].abstract for paper_id in cited))
        and passes(6, abstract)
    ):
        return None
    return TextTask(
        task_id=citing_id,
        sources=tuple(Source.of(papers[paper_id]) for paper_id in cited),
        citing=abstract,
        targets=(text,),
        dataset=DATASET,
        extra={
            "citing_id": citing_id,
            "headline": section.headline,
            "subsections": bool(section.sections),
            "document": _as_json(document, _without(tree, section)),
        },
    )


def _as_json(document: Document, tree: Sequence[sections.Section]) -> list[dict[str, Any]]:
    """Sections as JSON: headline, number, paragraphs as lists of sentences, the sections in it."""
    return [
        {
            "headline": section.headline,
            "number": section.number,
            "paragraphs": [
                [sentence for span in document.sentences(place) if (sentence := folded(document.whole(place), span))]
                for place in section.paragraphs
                if document.whole(place).strip()
            ],
            "sections": _as_json(document, section.sections),
        }
        for section in tree
    ]


def _written(
    document: Document, section: sections.Section, papers: Mapping[str, Paper]
) -> tuple[str, Sequence[str], list[bool]]:
    """The text of a section, one line per paragraph or headline, with `[n]` for the papers that it cites.

    Returns:
        The text; the papers that it cites, in order of first mention; and for each group of citations, with nothing but
        non-words between them, whether it has a linked paper.
    """
    cited: dict[str, int] = {}
    groups: list[bool] = []

    def anchored(place: int) -> str:
        whole, at = document.whole(place), 0
        spans = []
        for number, (marker, entry_ids) in enumerate(document.citations(place)):
            between = whole[at : marker.start]
            if number == 0 or not _ADJACENT.fullmatch(between):
                groups.append(False)
            linked = [one for one in dict.fromkeys(document.text.papers_of(entry_ids)) if one in papers]
            anchors = [f"[{cited.setdefault(paper_id, len(cited))}]" for paper_id in linked]
            groups[-1] |= bool(anchors)
            at = marker.end
            before, after = (" " * side.isalnum() for side in (between[-1:], whole[at : at + 1]))
            spans.append((marker.start, at, f"{before}{' '.join(anchors) or OTHER}{after}"))
        return replaced(whole, spans)

    def lines(section: sections.Section) -> Iterator[str]:
        yield from filter(None, (" ".join(anchored(place).split()) for place in section.paragraphs))
        for inner in section.sections:
            yield inner.headline
            yield from lines(inner)

    return "\n".join(lines(section)), list(cited), groups


def _own_abstract(document: Document, flat: Sequence[sections.Section]) -> str:
    """The abstract in the full text itself."""
    own = next((section.paragraphs for section in flat if sections.is_abstract(section.headline)), [])
    return " ".join(" ".join(document.whole(place).split()) for place in own)
