"""Four data sets of citation texts as one: CiteBench's unification (Funkquist et al., appendix A.1)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.callouts import find_callouts
from citerec.corpus.json_lines import BadRecord, RecordError, bad_record, raw_lines
from citerec.corpus.values import optional_id, read_list, read_text
from citerec.datasets.anchors import positions, unified
from citerec.datasets.json_records import json_records
from citerec.errors import SourceError
from citerec.texts.tasks import Source, TextTask

_MULTI_XSCIENCE = re.compile(r"@cite_\d+")
_NUMBERED = re.compile(r"\[(\d+)\]|@cite_(\d+)")
_REFR = re.compile(r"#REFR\b")
_CITE = re.compile(r"<cite>", re.IGNORECASE)
_TAGS = re.compile(r"</?t>")
_DOCUMENT = re.compile(r"\s*\[(\d+|x)\]\s*")
_DOCUMENT_ANYWHERE = re.compile(r"(?:^|(?<=\s))\[(\d+|x)\]\s*")
_SOURCE_ENDING, _TARGET_ENDINGS = ".src", (".tgt.tagged", ".tgt")

Parse = Callable[[Mapping[str, Any], bool], TextTask]


@dataclass(frozen=True, slots=True)
class Item:
    """A record of a source file: where it stands, its data set, and its task, or what is wrong with it."""

    line: int
    format: str
    task: TextTask | BadRecord


def read_source(path: Path, format_name: str | None = None, *, as_published: bool = False) -> Iterator[Item]:
    """The tasks of one file of a source data set, in its order and without ids.

    Args:
        path: The file. Of ABURAED's pairs of files, the one that ends in `.src`; its partner is found by name.
        format_name: A name of FORMATS; recognised by the keys of the first object where None.
        as_published: Whether to do as CiteBench's own scripts did where they depart from the paper or the source:
            LU's and CHEN's papers are numbered as the source lists them, and the two abstracts of XING change places.

    Raises:
        SourceError: The file cannot be read, is of no known format, or has no partner.
    """
    if path.name.endswith(_SOURCE_ENDING) and format_name in (None, ABURAED):
        yield from (Item(line, ABURAED, task) for line, task in _pairs(path, _partner(path)))
        return
    records = json_records(path)
    beginning = []
    for first in records:
        beginning.append(first)
        if isinstance(first.record, dict):
            format_name = format_name or _recognised(first.record, path)
            break
    if format_name is None:
        raise SourceError(f"{path} holds no JSON object", "Name the format: --format lu")
    parse = FORMATS[format_name].parse
    for line, record in chain(beginning, records):
        task: TextTask | BadRecord
        try:
            task = record if isinstance(record, BadRecord) else _checked(parse(record, as_published))
        except RecordError as error:
            task = bad_record(str(error), orjson.dumps(record))
        yield Item(line, format_name, task)


def _recognised(record: Mapping[str, Any], path: Path) -> str:
    for name, known in FORMATS.items():
        if all(key in record for key in known.keys):
            return name
    known_keys = "; ".join(f"{name} has {', '.join(known.keys)}" for name, known in FORMATS.items())
    raise SourceError(f"{path} is none of the four data sets", f"Of these, {known_keys}.")


def _checked(task: TextTask) -> TextTask:
    """The task itself, if a writer can do something with it."""
    if not any(source.text for source in task.sources):
        raise RecordError("it has no cited text to write from")
    if not any(target.strip() for target in task.targets):
        raise RecordError("its citation text is empty")
    return task


def _lu(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Multi-XScience (Lu et al., 2020): a dictionary from anchors to cited papers."""
    cited = record.get("ref_abstract")
    if isinstance(cited, dict) and cited.keys() == {"cite_N", "mid", "abstract"}:  # as columns, in Hugging Face's copy
        rows = zip(*(read_list(cited, name) for name in ("cite_N", "mid", "abstract")), strict=False)
        cited = {str(anchor): {"mid": mid, "abstract": abstract} for anchor, mid, abstract in rows}
    if not isinstance(cited, dict) or not all(isinstance(paper, dict) for paper in cited.values()):
        raise RecordError("ref_abstract is not an object of anchors and papers")
    papers = [Source(read_text(paper, "abstract") or "", optional_id(paper, "mid")) for paper in cited.values()]
    return _task(
        _text(record, "related_work"), _MULTI_XSCIENCE, positions(list(cited)), papers, by_mention=not as_published,
        citing=read_text(record, "abstract") or "", citing_id=optional_id(record, "aid"),
    )  # fmt: skip


def _chen(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Delve and S2ORC of Chen et al. (2021): documents that begin with their markers, a list or one text."""
    names, texts = _documents(record.get("multi_doc"))
    text = _text(record, "abs")
    return _task(
        _NUMBERED.sub(lambda match: f"[{match[1] or match[2]}]", text),
        re.compile(r"\[(\d+)\]"),
        positions(names) if names else _counted(text, len(texts)),
        [Source(text) for text in texts],
        by_mention=not as_published,
    )


def _documents(value: Any) -> tuple[list[str], list[str]]:
    """Names and texts of CHEN's documents; no names where they are not numbered one by one."""
    if isinstance(value, str):
        marks = _in_order(_DOCUMENT_ANYWHERE.finditer(value)) if _DOCUMENT.match(value) else []
        ends = [*(mark.start() for mark in marks[1:]), len(value)]
        value = [value[mark.start() : end] for mark, end in zip(marks, ends, strict=True)] if marks else [value]
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RecordError("multi_doc is neither a text nor a list of texts")
    marked = [_DOCUMENT.match(text) for text in value]
    texts = [" ".join(text[mark.end() if mark else 0 :].split()) for text, mark in zip(value, marked, strict=True)]
    names = [mark[1] for mark in marked if mark and mark[1] != "x"]
    return (names if len(set(names)) == len(texts) else []), texts


def _in_order(marks: Iterator[re.Match[str]]) -> list[re.Match[str]]:
    """The markers that begin a document: `[x]`, or each the next number. Others are citations in an abstract."""
    found: list[re.Match[str]] = []
    for mark in marks:
        last = found[-1][1] if found else mark[1]
        if not found or mark[1] == (last if last == "x" else str(int(last) + 1)):
            found.append(mark)
    return found


def _counted(text: str, papers: int) -> dict[str, int]:
    """Names of papers that are counted: from 0, or from 1 where the text has no 0 but the number of the last."""
    used = {int(match[1] or match[2]) for match in _NUMBERED.finditer(text)}
    first = 1 if 0 not in used and papers in used else 0
    return {str(first + position): position for position in range(papers)}


def _xing(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Xing et al. (2020): `src` is the citing paper and `tgt` the cited one, as the authors' own description says."""
    citing, cited = _text(record, "src_abstract"), _text(record, "tgt_abstract")
    citing, cited = (cited, citing) if as_published else (citing, cited)
    source = Source(cited, None if as_published else optional_id(record, "tgt_paper_id"))
    return _task(
        _text(record, "explicit_citation"), _REFR, {"#REFR": 0}, [source],
        citing=citing, before=read_text(record, "text_before_explicit_citation") or "",
        after=read_text(record, "text_after_explicit_citation") or "",
        citing_id=optional_id(record, "src_paper_id"), split=read_text(record, "train_or_test"),
    )  # fmt: skip


def _aburaed(record: Mapping[str, Any], _: bool) -> TextTask:
    """AbuRa'ed et al. (2020) as JSON: title and abstract of the cited paper, and a sentence that cites it."""
    title = read_text(record, "title") or ""
    text = " ".join(filter(None, [title, read_text(record, "abstract")]))
    return _aburaed_task(text, _text(record, "citation"), title)


def _aburaed_task(text: str, citation: str, title: str = "") -> TextTask:
    """There is one cited paper, and the source does not say which citation of the sentence is it: all become `[0]`."""
    citation = " ".join(_TAGS.sub(" ", citation).split())
    parts, at = [], 0
    for callout in find_callouts(citation):
        if callout.is_sound:
            parts += [citation[at : callout.start], "<cite>"]
            at = callout.end
    return _task("".join([*parts, citation[at:]]), _CITE, {"<cite>": 0, "<CITE>": 0}, [Source(text, title=title)])


def _pairs(sources: Path, targets: Path) -> Iterator[tuple[int, TextTask | BadRecord]]:
    """The tasks of two files whose lines belong together."""
    numbered = zip_longest(raw_lines(sources, blank_too=True), raw_lines(targets, blank_too=True))
    for line, (source, target) in enumerate(numbered, 1):
        if source is None or target is None:
            raise SourceError(f"{sources} and {targets} differ in length: line {line}", "Their lines must match.")
        try:
            text, citation = (" ".join(raw.decode().split()) for _, raw, _ in (source, target))
            yield line, _checked(_aburaed_task(text, citation))
        except (UnicodeDecodeError, RecordError) as error:
            yield line, bad_record("not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error), source[1])


def _partner(path: Path) -> Path:
    for ending in _TARGET_ENDINGS:
        if (partner := path.with_name(path.name.removesuffix(_SOURCE_ENDING) + ending)).exists():
            return partner
    raise SourceError(f"{path} has no partner", f"Its citation texts stand beside it, ending in {_TARGET_ENDINGS[0]}.")


def _text(record: Mapping[str, Any], name: str) -> str:
    text = read_text(record, name)
    if text is None:
        raise RecordError(f"{name} is missing")
    return text


def _task(
    text: str,
    anchors: re.Pattern[str],
    papers: Mapping[str, int],
    sources: Sequence[Source],
    *,
    by_mention: bool = True,
    citing: str = "",
    before: str = "",
    after: str = "",
    **extra: str | None,
) -> TextTask:
    target, order = unified(text, anchors, papers, by_mention=by_mention)
    return TextTask(
        task_id="",
        sources=tuple(sources[position] for position in order),
        citing=citing,
        before=before,
        after=after,
        targets=(target,),
        extra={name: value for name, value in extra.items() if value is not None},
    )


@dataclass(frozen=True, slots=True)
class Format:
    """A source data set: the keys by which its records are recognised, and what makes a task of one."""

    keys: tuple[str, ...]
    parse: Parse


ABURAED = "aburaed"
FORMATS = {
    ABURAED: Format(("title", "abstract", "citation"), _aburaed),
    "chen": Format(("multi_doc", "abs"), _chen),
    "lu": Format(("ref_abstract", "related_work"), _lu),
    "xing": Format(("explicit_citation", "src_abstract", "tgt_abstract"), _xing),
}
"""The four source data sets of CiteBench, by the names that it gives them."""
