"""Records of OARelatedWork as its authors publish them (BUT-FIT/OARelatedWork on the hub, before CZLC/OARelatedWork).

Field names are those of the data set's card. A text is one of three: a tree of `headline` and `content`, also as JSON
in a string (`oa_related_work`); a list of sections with `title_path` and `paragraphs` (`flattened_sections`); or, of an
abstract, a list of paragraphs. Spans are written as in the authors' evaluation: `<cite>ID<sep>TITLE<sep>FIRST
AUTHOR</cite>`, `UNK` for an unknown id, and `<ref>TYPE</ref>`; but a citation of a source is `[0]`, `[1]`, …
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from citerec.contexts.sections import is_abstract
from citerec.corpus.json_lines import RecordError, optional_id, read_list, read_strings, read_text
from citerec.files.text import one_line, replaced
from citerec.write.anchors import UNKNOWN
from citerec.write.tasks import Source, TextTask, text_of

DATASET = "oarelatedwork"
FULL_TEXTS = "full_texts"
"""Field of a task for the number of its cited papers that have a full text."""
FORMULA = "<eq>"
"""Stands for a formula in a target, as in the authors' evaluation."""

_NUMBERING = re.compile(r"\[\d+\]")  # takes the place of a headline that is missing
_FORMULA = "formula"
_MARKS = re.compile(r"[<>\[\]]")


class _Paragraph(NamedTuple):
    """A paragraph: the headlines above it, without the root's, and its sentences as they are in the record."""

    path: tuple[str, ...]
    sentences: Sequence[Mapping[str, Any]]


class OARelatedWork:
    """Records of OARelatedWork: a paper with its related work apart, and the papers it cites."""

    name = "oarelatedwork"

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Whether a record has this shape."""
        return "related_work" in record and ("referenced" in record or "related_work_orig_path" in record)

    def parse(self, record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True) -> TextTask:  # noqa: ARG002
        """A record as a task with abstracts, and the full texts; a RecordError if a field has another shape.

        Sources are in the order of `referenced`, also those without any text. `extra` has the citing paper's id and
        title, the headline, whether there are subsections, and how many of the cited papers have a full text
        (`full_texts`; not if the record has abstracts only).
        """
        if "referenced" not in record:
            raise RecordError(
                "the cited papers are in another file: take OARelatedWork from the hub, where they are in each"
            )
        referenced = read_list(record, "referenced", dict)
        numbers = {str(paper["id"]): number for number, paper in enumerate(referenced) if paper.get("id") is not None}
        sources = tuple(_cited(paper, numbers) for paper in referenced)
        headline, section = _read(record["related_work"])
        if not (target := "\n".join(_lines(section, _Spans(record, numbers, FORMULA)))):
            raise RecordError("its related work is empty")
        spans = _Spans(record, numbers)
        abstract, rest = _parted(_read(record.get("hierarchy"))[1], spans)
        given = text_of([spans.sentences(paragraph) for paragraph in _read(record.get("abstract"))[1]])
        citing_id = optional_id(record, "id")
        texts = [paper.get("hierarchy") for paper in referenced]
        with_rest = any(isinstance(text, dict | str) or _has_sections(text) for text in texts)
        extra = {
            "citing_id": citing_id,
            "title": read_text(record, "title"),
            "headline": headline,
            "subsections": any(paragraph.path for paragraph in section),
            FULL_TEXTS: sum(source.rest is not None for source in sources) if with_rest else None,
        }
        return TextTask(
            task_id=citing_id or default_id,
            sources=sources,
            citing=(given or abstract or Source("")).text,
            targets=(target,),
            dataset=DATASET,
            extra={name: value for name, value in extra.items() if value is not None},
            citing_rest=rest,
        )


OARELATEDWORK = OARelatedWork()


def _cited(paper: Mapping[str, Any], numbers: Mapping[str, int]) -> Source:
    """A cited paper with its abstract, and the rest of it."""
    abstract, rest = _parted(_read(paper.get("hierarchy"))[1], _Spans(paper, numbers))
    text = abstract or Source("")
    ids = {name: paper[name] for name in ("s2orc_id", "year") if paper.get(name) is not None}
    known = read_text(paper, "title") or "", text.sentences, read_strings(paper, "authors")
    return Source(text.text, optional_id(paper, "id"), *known, extra=ids, rest=rest)


def _parted(paragraphs: Sequence[_Paragraph], spans: "_Spans") -> tuple[Source | None, Source | None]:
    """Abstract and rest of a paper; paragraphs without a section are an abstract."""
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    for paragraph in paragraphs:
        parts[bool(paragraph.path) and not is_abstract(paragraph.path[0])].append(spans.sentences(paragraph))
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
    if not _has_sections(value):
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


def _has_sections(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _headline(value: str | None) -> str:
    headline = one_line(value or "")
    return "" if _NUMBERING.fullmatch(headline) else headline
