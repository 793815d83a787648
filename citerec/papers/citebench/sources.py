"""Four data sets of citation texts as one: CiteBench's unification (Funkquist et al., appendix A.1)."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from citerec.contexts.callouts import find_callouts
from citerec.corpus.json_lines import BadRecord, RecordError, parsed, raw_lines, tried
from citerec.corpus.values import optional_id, read_list, read_text
from citerec.errors import SourceError
from citerec.files.rejected import FULL_TEXT_BYTES
from citerec.files.text import one_line, replaced
from citerec.papers.citebench import chen, published
from citerec.papers.common.numbering import positions, unified
from citerec.write.task_files import JSON_REMEDY, written_records
from citerec.write.tasks import Source, TextTask

_MULTI_XSCIENCE = re.compile(r"@cite_\d+")
_REFR = re.compile(r"#REFR\b")
_CITE = re.compile(r"<cite>", re.IGNORECASE)
_TAGS = re.compile(r"</?t>")
_MOST_BAD = 100  # bad records before the first good one
_SOURCE_ENDING, _TARGET_ENDINGS = ".src", (".tgt.tagged", ".tgt")

Parse = Callable[[Mapping[str, Any], bool], TextTask]


class Item(NamedTuple):
    """A record of a source file: its place, its data set, and its task, or what is wrong with it."""

    line: int
    format: str
    task: TextTask | BadRecord


def read_source(path: Path, format_name: str | None = None, *, as_published: bool = False) -> Iterator[Item]:
    """The tasks of one file of a source data set, in its order and without ids.

    Args:
        path: The file. Of ABURAED's pairs of files, the one that ends in `.src`; its partner is found by name.
        format_name: A name of FORMATS; by default recognised by the keys of the first object.
        as_published: Whether to follow CiteBench's own scripts where they differ from the paper or the source:
            `citerec.papers.citebench.published`. CHEN's text stays as it is, and the two abstracts of XING are swapped.

    Raises:
        SourceError: The file cannot be read, is of no known format, or has no partner.
    """
    if _is_pair(path, format_name):
        yield from (Item(line, ABURAED, task) for line, task in _pairs(path, _partner(path), as_published))
        return
    first = _first_object(path)
    format_name = format_name or _recognised(first, path)
    _, parse = FORMATS[format_name]
    if format_name == CHEN:
        counted = chen.first_number(record for _, record, _ in _records(path) if isinstance(record, dict))
        parse = partial(_chen, first=counted)
    for line, record, raw in _records(path):
        task = record if isinstance(record, BadRecord) else tried(partial(_usable, parse, record, as_published), raw)
        yield Item(line, format_name, task)


def files_read(path: Path, format_name: str | None = None) -> list[Path]:
    """The files that `read_source` reads for one: itself, and the partner of a file of ABURAED's pairs."""
    return [path, _partner(path)] if _is_pair(path, format_name) else [path]


def _is_pair(path: Path, format_name: str | None) -> bool:
    return path.name.endswith(_SOURCE_ENDING) and format_name in (None, ABURAED)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadRecord, bytes]]:
    """The objects of a file, or what is wrong with them, each with its place and as it is written."""
    return ((number, parsed(raw, dict), raw) for number, raw in written_records(path))


def _first_object(path: Path) -> dict[str, Any]:
    """The first object of a file; SourceError if none is among its first hundred records."""
    bad: list[BadRecord] = []
    for _, record, _ in itertools.islice(_records(path), _MOST_BAD):
        if not isinstance(record, BadRecord):
            return record
        bad.append(record)
    if not bad:
        raise SourceError(f"{path} holds no record", JSON_REMEDY)
    first, *others = (each.beginning.strip() for each in bad)
    if first.startswith("{") and not first.endswith("}") and others and not others[0].startswith("{"):
        raise SourceError(f"{path} holds an object over several lines", f"Write one per line: jq -c . {path.name}")
    among = f" among its first {_MOST_BAD} records" if len(bad) == _MOST_BAD else ""
    raise SourceError(f"{path} holds no JSON object{among}: the first is {bad[0].reason}", JSON_REMEDY)


def _recognised(record: Mapping[str, Any], path: Path) -> str:
    for name, (keys, _) in FORMATS.items():
        if all(key in record for key in keys):
            return name
    known_keys = "; ".join(f"{name} has {', '.join(keys)}" for name, (keys, _) in FORMATS.items())
    raise SourceError(f"{path} is none of the four data sets", f"Of these, {known_keys}.")


def _usable(parse: Parse, record: Mapping[str, Any], as_published: bool) -> TextTask:
    return _checked(parse(record, as_published))


def _checked(task: TextTask) -> TextTask:
    """The task itself, if a writer can use it."""
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
    text = _text(record, "related_work")
    more: dict[str, Any] = {"citing": read_text(record, "abstract") or "", "citing_id": optional_id(record, "aid")}
    if as_published:
        return _as_it_is(published.lu_target(text, cited), papers, **more)
    return _task(text, _MULTI_XSCIENCE, positions(list(cited)), papers, **more)


def _chen(record: Mapping[str, Any], as_published: bool, *, first: int = 0) -> TextTask:
    """Delve and S2ORC of Chen et al. (2021): documents with markers; those without numbers are counted from `first`."""
    names, texts = chen.documents(record.get("multi_doc"))
    papers = positions(names or [str(first + position) for position in range(len(texts))])
    text, sources = _text(record, "abs"), list(map(Source, texts))
    if as_published:
        return _as_it_is(text, sources)
    return _task(chen.with_anchors(text), chen.ANCHOR, papers, sources)


def _xing(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Xing et al. (2020): `src` is the citing paper, `tgt` the cited one; as published they are swapped (no ids)."""
    citing, cited = _text(record, "src_abstract"), _text(record, "tgt_abstract")
    citing_id, cited_id = optional_id(record, "src_paper_id"), optional_id(record, "tgt_paper_id")
    text, split = _text(record, "explicit_citation"), read_text(record, "train_or_test")
    if as_published:
        split = published.xing_split(split, 0, citing_id or "", cited_id or "", text)
        citing, cited, citing_id, cited_id = cited, citing, None, None
    return _task(
        text, _REFR, {"#REFR": 0}, [Source(cited, cited_id)],
        citing=citing, before=read_text(record, "text_before_explicit_citation") or "",
        after=read_text(record, "text_after_explicit_citation") or "",
        citing_id=citing_id, split=split,
    )  # fmt: skip


def _aburaed(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """AbuRa'ed et al. (2020) as JSON: title and abstract of the cited paper, and a sentence that cites it."""
    title = read_text(record, "title") or ""
    text = " ".join(filter(None, [title, read_text(record, "abstract")]))
    return _aburaed_task(text, _text(record, "citation"), title, as_published=as_published)


def _aburaed_task(text: str, citation: str, title: str = "", *, as_published: bool) -> TextTask:
    """There is one cited paper, and the source does not always say which citation is of it: all become `[0]`."""
    if as_published:
        return _as_it_is(published.aburaed_target(citation), [Source(published.without_digits(text))])
    citation = " ".join(_TAGS.sub(" ", citation).split())
    sound = (callout for callout in find_callouts(citation) if callout.is_sound)
    citation = replaced(citation, ((callout.start, callout.end, "<cite>") for callout in sound))
    return _task(citation, _CITE, {"<cite>": 0, "<CITE>": 0}, [Source(text, title=title)])


def _pairs(sources: Path, targets: Path, as_published: bool) -> Iterator[tuple[int, TextTask | BadRecord]]:
    """The tasks of two files whose lines belong together."""
    lines = (raw_lines(file, blank_too=True, longest=FULL_TEXT_BYTES) for file in (sources, targets))
    numbered = itertools.zip_longest(*lines)
    for line, (source, target) in enumerate(numbered, 1):
        if source is None or target is None:
            raise SourceError(f"{sources} and {targets} differ in length: line {line}", "Their lines must match.")
        yield line, tried(partial(_of_pair, source[1], target[1], as_published), source[1])


def _of_pair(source: bytes, target: bytes, as_published: bool) -> TextTask:
    return _checked(_aburaed_task(one_line(source.decode()), one_line(target.decode()), as_published=as_published))


def _partner(path: Path) -> Path:
    for ending in _TARGET_ENDINGS:
        if (partner := path.with_name(path.name.removesuffix(_SOURCE_ENDING) + ending)).exists():
            return partner
    raise SourceError(f"{path} has no partner", f"Put its citation texts beside it, ending in {_TARGET_ENDINGS[0]}.")


def _text(record: Mapping[str, Any], name: str) -> str:
    text = read_text(record, name)
    if text is None:
        raise RecordError(f"{name} is missing")
    return text


def _task(
    text: str, anchors: re.Pattern[str], papers: Mapping[str, int], sources: Sequence[Source], **more: Any
) -> TextTask:
    """A task whose anchors become `[0]`, `[1]`, …; `more` as for `_as_it_is`."""
    target, order = unified(text, anchors, papers)
    return _as_it_is(target, [sources[position] for position in order], **more)


def _as_it_is(
    text: str, sources: Sequence[Source], citing: str = "", before: str = "", after: str = "", **extra: str | None
) -> TextTask:
    known = {name: value for name, value in extra.items() if value is not None}
    return TextTask("", tuple(sources), citing, before, after, (text,), extra=known)


ABURAED, CHEN = "aburaed", "chen"
FORMATS: dict[str, tuple[tuple[str, ...], Parse]] = {
    ABURAED: (("title", "abstract", "citation"), _aburaed),
    CHEN: (("multi_doc", "abs"), _chen),
    "lu": (("ref_abstract", "related_work"), _lu),
    "xing": (("explicit_citation", "src_abstract", "tgt_abstract"), _xing),
}
"""The four source data sets of CiteBench by its names: the keys of their records, and a function to a task."""
