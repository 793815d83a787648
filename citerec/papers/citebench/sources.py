"""Four data sets of citation texts as one: CiteBench's unification (Funkquist et al., appendix A.1).

`as_published` follows what CiteBench's own scripts do where it differs from its paper or from the source:
UKPLab/citebench, src/data_processing/related_work_benchmark_construction.py and src/constants.py.
"""

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.contexts.callouts import find_callouts
from citerec.corpus.json_lines import (
    BadRecord,
    RecordError,
    optional_id,
    parsed,
    quarantine_line,
    quarantine_of,
    raw_lines,
    read_list,
    read_text,
    tried,
    writing_records,
)
from citerec.errors import InputError, SourceError
from citerec.files.hashing import hash_sample
from citerec.files.progress import FULL_TEXT_BYTES, Progress, Rejected, fault_at, no_progress
from citerec.files.text import one_line, replaced
from citerec.files.writing import write_failures
from citerec.papers.common.pair_sets import positions, unified
from citerec.write.task_files import JSON_REMEDY, task_record, written_records
from citerec.write.tasks import Source, TextTask

_REPORTED_EVERY = 1000
_MOST_BAD = 100  # bad records before the first good one
_SOURCE_ENDING, _TARGET_ENDINGS = ".src", (".tgt.tagged", ".tgt")
_VALIDATION = 0.1  # share of XING's train records that become CiteBench's validation split

# How the sources cite.
_CITE = re.compile(r"<cite>", re.IGNORECASE)
_TAGS = re.compile(r"</?t>")
_MULTI_XSCIENCE = re.compile(r"@cite_\d+")
_REFR = re.compile(r"#REFR\b")
_NUMBER = re.compile(r"\[(\d{1,9})\]")
_AT = re.compile(r"@cite_(\d+)")
_GROUP = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)+)\]")

# What is a citation in ABURAED's sentences to CiteBench's scripts.
_YEAR = r"\([^()]*\d{4}[^()]*\)"
_NAME = r"[A-Z]\w+\s*"
_CITATION = re.compile(
    rf"\([^()]*\d\d[^()]*\)|{_NAME}.{{1,8}}{_YEAR}|{_NAME}{_YEAR}|{_NAME}and\s*{_NAME}\([^()]*\d{{4}}\)"
    r"|\[[^\[\]]*\d[^\[\]]*\]"
)
_DIGIT = re.compile(r"\d")

# Where CHEN's documents begin.
_BEGINS = re.compile(r"\s*\[(\d{1,9}|x)\]\s*")
_ANYWHERE = re.compile(r"(?:^|(?<=\s))\[(\d{1,9}|x)\]\s*")
_SENTENCE_ENDS = re.compile(r"[.!?][\"'”’)\]]*\s*$")
_LOOKED_AT = 20  # characters before a marker

Parse = Callable[[Mapping[str, Any], bool], TextTask]


@dataclass(frozen=True, slots=True)
class Unified:
    """The result of unification: tasks by data set, bad records, and where these are listed, if there are any."""

    tasks: dict[str, int]
    bad: int
    quarantine: Path | None


def unify(
    sources: Sequence[Path],
    out: Path,
    format_name: str | None = None,
    *,
    as_published: bool = False,
    context: bool = True,
    max_bad: float = 0.05,
    on_progress: Progress = no_progress,
) -> Unified:
    """Writes the records of source data sets as CiteBench's, one per line, in order; none is filtered out.

    Args:
        sources: Files of ABURAED, CHEN, LU or XING, of one or several of them.
        out: The file to write, JSON Lines. It is moved into place when it is complete.
        format_name: Their format; by default it is recognised for each file.
        as_published: As for `read_source`; data sets also have the names of CiteBench's files.
        context: Whether to keep the citing abstract and the text around, which CiteBench's default folder lacks.
        max_bad: Share of bad records above which nothing is written, 0 to 1.
        on_progress: Called with the number of records read.

    Raises:
        InputError: `out` is a folder, or it or its quarantine is one of the files that are read.
        SourceError: A file cannot be read or is of no known format, or there is nothing to write.
        BuildError: Too many records are bad, or the disk is full.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder", "Give a file: --out citebench.jsonl")
    quarantine = quarantine_of(out)
    files = {path.resolve() for source in sources for path in (source, *_partners(source))}
    if taken := [path for path in (out, quarantine) if path.resolve() in files]:
        raise InputError(f"{taken[0]} is one of the sources", "Give another --out.")
    counts: Counter[str] = Counter()
    rejected, number = Rejected(max_bad), 0
    items = ((path, item) for path in sources for item in read_source(path, format_name, as_published=as_published))
    with write_failures(out), writing_records(out) as (write, set_aside):
        # The number counts bad records too, so that an id does not change when another record is corrected.
        for number, (path, item) in enumerate(items, 1):
            if number % _REPORTED_EVERY == 0:
                on_progress("citation texts", number, 0)
            if isinstance(item.task, BadRecord):
                rejected.add(bad=1, first=fault_at(path.name, item.line, item.task.reason))
                set_aside(quarantine_line(path.name, item.line, item.task))
                continue
            rejected.add(good=1)
            counts[item.format] += 1
            name = _published_name(item.format, path) if as_published else item.format
            task = replace(item.task, task_id=f"{item.format}-{number}", dataset=name)
            if not context:
                task = replace(task, citing="", before="", after="")
            write(orjson.dumps(task_record(task)))
        if not number:
            raise SourceError("the sources hold no record", "Give files with one record a line, or one list.")
        rejected.check()
    return Unified(dict(counts), rejected.bad, quarantine if rejected.bad else None)


def _published_name(format_name: str, path: Path) -> str:
    """The name of a data set in CiteBench's files; CHEN's two are known by the names of their folders or files."""
    place = "/".join(path.resolve().parts[-2:]).lower()
    part = next((f"_{part}" for part in ("delve", "s2orc") if part in place), "") if format_name == CHEN else ""
    return f"{format_name}_et_al{part}"


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
        as_published: Whether to follow CiteBench's own scripts. CHEN's text stays as it is, and the two abstracts of
            XING are swapped.

    Raises:
        SourceError: The file cannot be read, is of no known format, or has no partner.
    """
    first = _first_object(path)
    name = format_name or next((name for name, (keys, _) in FORMATS.items() if first.keys() >= set(keys)), None)
    if name is None:
        known_keys = "; ".join(f"{name} has {', '.join(keys)}" for name, (keys, _) in FORMATS.items())
        raise SourceError(f"{path} is none of the four data sets", f"Of these, {known_keys}.")
    parse = partial(_chen, first=_first_number(path)) if name == CHEN else FORMATS[name][1]
    for line, record, raw in _records(path):
        task = record if isinstance(record, BadRecord) else tried(partial(_usable, parse, record, as_published), raw)
        yield Item(line, name, task)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadRecord, bytes]]:
    """The objects of a file, or what is wrong with them, each with its place and as it is written."""
    if not path.name.endswith(_SOURCE_ENDING):
        yield from ((number, parsed(raw, dict), raw) for number, raw in written_records(path))
        return
    if not (partners := _partners(path)):
        remedy = f"Put its citation texts beside it, ending in {_TARGET_ENDINGS[0]}."
        raise SourceError(f"{path} has no partner", remedy)
    lines = (raw_lines(file, blank_too=True, longest=FULL_TEXT_BYTES) for file in (path, partners[0]))
    for line, (source, target) in enumerate(itertools.zip_longest(*lines), 1):
        if source is None or target is None:
            raise SourceError(f"{path} and {partners[0]} differ in length: line {line}", "Their lines must match.")
        yield line, tried(partial(_pair, source[1], target[1]), source[1]), source[1]


def _partners(path: Path) -> list[Path]:
    """The files with the citation texts of a file of ABURAED's pairs; the first counts."""
    stem = path.name.removesuffix(_SOURCE_ENDING)
    partners = [path.with_name(f"{stem}{ending}") for ending in _TARGET_ENDINGS if stem != path.name]
    return [partner for partner in partners if partner.exists()]


def _pair(source: bytes, target: bytes) -> dict[str, Any]:
    return {"title": "", "abstract": one_line(source.decode()), "citation": one_line(target.decode())}


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


def _usable(parse: Parse, record: Mapping[str, Any], as_published: bool) -> TextTask:
    """The task of a record, if a writer can use it."""
    task = parse(record, as_published)
    if not any(source.text for source in task.sources):
        raise RecordError("it has no cited text to write from")
    if not any(target.strip() for target in task.targets):
        raise RecordError("its citation text is empty")
    return task


def _aburaed(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """AbuRa'ed et al. (2020): title and abstract of the cited paper, and a sentence that cites it.

    There is one cited paper, and the source does not always say which citation is of it: all become `[0]`. As
    published only `<cite>` does, other citations become `<CITE>`, and digits `#`; there anything in round brackets with
    two digits in a row, or in square brackets with a digit, counts as a citation.
    """
    title = read_text(record, "title") or ""
    text = " ".join(filter(None, [title, read_text(record, "abstract")]))
    citation = _text(record, "citation")
    if as_published:
        target = _TAGS.sub("", _DIGIT.sub("#", _CITATION.sub("<CITE>", citation))).replace("<cite>", "[0]")
        return _task(target.strip(), [Source(_DIGIT.sub("#", text))])
    citation = " ".join(_TAGS.sub(" ", citation).split())
    sound = (callout for callout in find_callouts(citation) if callout.is_sound)
    citation = replaced(citation, ((callout.start, callout.end, "<cite>") for callout in sound))
    return _numbered(citation, _CITE, {"<cite>": 0, "<CITE>": 0}, [Source(text, title=title)])


def _chen(record: Mapping[str, Any], as_published: bool, *, first: int = 0) -> TextTask:
    """Delve and S2ORC of Chen et al. (2021): documents with markers; those without numbers are counted from `first`."""
    names, texts = _documents(record)
    papers = positions(names or [str(first + position) for position in range(len(texts))])
    text, sources = _text(record, "abs"), list(map(Source, texts))
    return _task(text, sources) if as_published else _numbered(_with_numbers(text), _NUMBER, papers, sources)


def _with_numbers(text: str) -> str:
    """A text with `[1]` for each paper that it cites, also if it cites by `@cite_1`, or several at once: `[1,2]`."""
    text = _AT.sub(r"[\1]", text)
    return _GROUP.sub(lambda group: ", ".join(f"[{number}]" for number in re.findall(r"\d+", group[1])), text)


def _documents(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Names and texts of CHEN's documents, a list or one text; no names unless each has its number."""
    documents = record.get("multi_doc")
    if isinstance(documents, str):
        documents = list(_parted(documents))
    if not isinstance(documents, list) or not all(isinstance(text, str) for text in documents):
        raise RecordError("multi_doc is neither a text nor a list of texts")
    marks = [_BEGINS.match(text) for text in documents]
    texts = [one_line(text[mark.end() if mark else 0 :]) for text, mark in zip(documents, marks, strict=True)]
    names = [mark[1] for mark in marks if mark and mark[1] != "x"]
    return (names if len(set(names)) == len(texts) else []), texts


def _parted(text: str) -> Iterator[str]:
    """Splits a text where documents begin: at `[x]`, or at the next number. Others are citations in an abstract.

    If the next number occurs several times, the first after the end of a sentence counts, or else the first before a
    capital.
    """

    def ends_sentence(end: int) -> bool:
        return bool(_SENTENCE_ENDS.search(text[max(0, end - _LOOKED_AT) : end]))

    marks = list(_ANYWHERE.finditer(text)) if _BEGINS.match(text) else []
    starts, place = [0], 0
    while place < len(marks):
        name = marks[place][1]
        following = [mark for mark in marks[place + 1 :] if mark[1] == (name if name == "x" else str(int(name) + 1))]
        after_sentence = (mark for mark in following if name == "x" or ends_sentence(mark.start()))
        before_capital = (mark for mark in following if text[mark.end() : mark.end() + 1].isupper())
        begin = next(after_sentence, next(before_capital, None))
        if begin is None:
            break
        starts.append(begin.start())
        place = marks.index(begin)
    for start, end in itertools.pairwise([*starts, len(text)]):
        yield text[start:end]


def _first_number(path: Path) -> int:
    """The number, 0 or 1, from which most texts of a file of CHEN's count documents without numbers.

    A text that cites 0 counts from 0; one that does not, but cites the number of its documents, counts from 1.
    """
    votes: Counter[int] = Counter()
    for _, record, _ in _records(path):
        with contextlib.suppress(RecordError):  # such a record is set aside
            if not isinstance(record, BadRecord):
                cited = {int(number) for number in _NUMBER.findall(_with_numbers(_text(record, "abs")))}
                names, texts = _documents(record)
                votes[0] += not names and 0 in cited
                votes[1] += not names and 0 not in cited and len(texts) in cited
    return int(votes[1] > votes[0])


def _lu(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Multi-XScience (Lu et al., 2020): a dictionary from anchors to cited papers.

    As published, each anchor of the source is replaced in turn, wherever its letters occur: `@cite_1` also in
    `@cite_12`, which becomes `[0]2`. Anchors without a paper stay.
    """
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
        for number, anchor in enumerate(cited):
            text = text.replace(anchor, f"[{number}]")
        return _task(text, papers, **more)
    return _numbered(text, _MULTI_XSCIENCE, positions(list(cited)), papers, **more)


def _xing(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Xing et al. (2020): `src` is the citing paper, `tgt` the cited one.

    As published they are swapped (no ids), and a tenth of train is `val`: the scripts draw it without a seed, here a
    hash does.
    """
    citing, cited = _text(record, "src_abstract"), _text(record, "tgt_abstract")
    citing_id, cited_id = optional_id(record, "src_paper_id"), optional_id(record, "tgt_paper_id")
    text, split = _text(record, "explicit_citation"), read_text(record, "train_or_test")
    if as_published:
        if split == "train" and hash_sample(0, citing_id or "", cited_id or "", text) / 2**64 < _VALIDATION:
            split = "val"
        citing, cited, citing_id, cited_id = cited, citing, None, None
    more = {side: read_text(record, f"text_{side}_explicit_citation") or "" for side in ("before", "after")}
    sources = [Source(cited, cited_id)]
    return _numbered(text, _REFR, {"#REFR": 0}, sources, citing=citing, **more, citing_id=citing_id, split=split)


def _text(record: Mapping[str, Any], name: str) -> str:
    text = read_text(record, name)
    if text is None:
        raise RecordError(f"{name} is missing")
    return text


def _task(text: str, sources: Sequence[Source], citing: str = "", **more: Any) -> TextTask:
    """A task with this text as its target; what is None is left out of its `extra`."""
    around = {name: more.pop(name, "") for name in ("before", "after")}
    stated = {name: value for name, value in more.items() if value is not None}
    return TextTask("", tuple(sources), citing, **around, targets=(text,), extra=stated)


def _numbered(
    text: str, anchors: re.Pattern[str], papers: Mapping[str, int], sources: Sequence[Source], **more: Any
) -> TextTask:
    """A task whose anchors become `[0]`, `[1]`, …; the rest as for `_task`."""
    target, order = unified(text, anchors, papers)
    return _task(target, [sources[position] for position in order], **more)


ABURAED, CHEN = "aburaed", "chen"
FORMATS: dict[str, tuple[tuple[str, ...], Parse]] = {
    ABURAED: (("title", "abstract", "citation"), _aburaed),
    CHEN: (("multi_doc", "abs"), _chen),
    "lu": (("ref_abstract", "related_work"), _lu),
    "xing": (("explicit_citation", "src_abstract", "tgt_abstract"), _xing),
}
"""The four source data sets of CiteBench by its names: the keys of their records, and a function to a task."""
