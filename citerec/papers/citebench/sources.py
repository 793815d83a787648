"""Four data sets of citation texts as one: CiteBench's unification (Funkquist et al., appendix A.1).

`as_published` follows what CiteBench's own scripts do where it differs from its paper or from the source:
UKPLab/citebench, src/data_processing/related_work_benchmark_construction.py and src/constants.py.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.markers import find_markers
from citerec.corpus.reading import (
    FULL_TEXT_BYTES,
    BadRecord,
    RecordError,
    optional_id,
    parsed,
    quarantine_line,
    raw_lines,
    read_list,
    read_text,
    tried,
    writing_records,
)
from citerec.errors import InputError, SourceError
from citerec.files.progress import Progress, Rejected, fault_at, no_progress
from citerec.files.resume import hash_sample
from citerec.files.text import one_line, replaced
from citerec.files.writing import apart, write_failures
from citerec.papers.common.pair_sets import positions, unified
from citerec.write.task_files import task_record, written_records
from citerec.write.tasks import Source, TextTask

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
_BEGINS = re.compile(r"(?:^|(?<=\s))\[(\d{1,9}|x)\]\s*")


def unify(
    sources: Sequence[Path],
    out: Path,
    *,
    as_published: bool = False,
    max_bad: float = 0.05,
    on_progress: Progress = no_progress,
) -> tuple[dict[str, int], int]:
    """Writes the records of source data sets as CiteBench's, one per line, in order; none is filtered out.

    Args:
        sources: Files of ABURAED, CHEN, LU or XING, of one or several of them.
        out: The file to write, JSON Lines. It is moved into place when it is complete.
        as_published: As for `read_source`.
        max_bad: Share of bad records above which nothing is written, 0 to 1.
        on_progress: Called with the number of records read.

    Returns:
        Tasks by data set, and how many records are bad: these are listed in `quarantine_of(out)`.

    Raises:
        InputError: `out` is a folder, or one of the files that are read.
        SourceError: A file cannot be read, or there is nothing to write.
        BuildError: Too many records are bad, or the disk is full.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder", "Give a file: --out citebench.jsonl")
    apart(out, *sources)
    counts: Counter[str] = Counter()
    rejected, number = Rejected(max_bad), 0
    items = ((path, item) for path in sources for item in read_source(path, as_published=as_published))
    with write_failures(out), writing_records(out) as (write, set_aside):
        # The number counts bad records too, so that an id does not change when another record is corrected.
        for number, (path, (line, task)) in enumerate(items, 1):
            on_progress("citation texts", number, 0)
            if isinstance(task, BadRecord):
                rejected.add(bad=1, first=fault_at(path.name, line, task.reason))
                set_aside(quarantine_line(path.name, line, task))
                continue
            rejected.add(good=1)
            counts[task.dataset] += 1
            write(orjson.dumps(task_record(replace(task, task_id=f"{task.dataset}-{number}"))))
        if not number:
            raise SourceError("the sources hold no record", "Give files with one record a line, or one list.")
        rejected.check()
    return dict(counts), rejected.bad


def read_source(path: Path, *, as_published: bool = False) -> Iterator[tuple[int, TextTask | BadRecord]]:
    """The tasks of one file of a source data set, in its order and without ids: lines, and tasks or what is wrong.

    Args:
        path: The file. Of ABURAED's pairs of files, the one that ends in `.src`; its partner is found by name.
        as_published: Whether to follow CiteBench's own scripts. CHEN's text stays as it is, and the two abstracts of
            XING are swapped.

    Raises:
        SourceError: The file cannot be read, or has no partner.
    """
    parse = functools.partial(_task_of, as_published=as_published)
    if not path.name.endswith(_SOURCE_ENDING):
        yield from ((number, parsed(raw, parse)) for number, raw in written_records(path)[1])
        return
    stem = path.name.removesuffix(_SOURCE_ENDING)
    partner = next((one for ending in _TARGET_ENDINGS if (one := path.with_name(f"{stem}{ending}")).exists()), None)
    if partner is None:
        remedy = f"Put its citation texts beside it, ending in {_TARGET_ENDINGS[0]}."
        raise SourceError(f"{path} has no partner", remedy)

    def parse_pair(source: bytes, target: bytes) -> TextTask:
        return parse({"title": "", "abstract": one_line(source.decode()), "citation": one_line(target.decode())})

    lines = (raw_lines(file, blank_too=True, longest=FULL_TEXT_BYTES) for file in (path, partner))
    for line, (source, target) in enumerate(itertools.zip_longest(*lines), 1):
        if source is None or target is None:
            raise SourceError(f"{path} and {partner} differ in length: line {line}", "Their lines must match.")
        yield line, tried(functools.partial(parse_pair, source[1], target[1]), source[1])


def _task_of(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """The task of a record, if a writer can use it."""
    name = next((name for name, (keys, _) in FORMATS.items() if record.keys() >= set(keys)), None)
    if name is None:
        known_keys = "; ".join(f"{name} has {', '.join(keys)}" for name, (keys, _) in FORMATS.items())
        raise RecordError(f"it is of none of the four data sets: {known_keys}")
    task: TextTask = FORMATS[name][1](record, as_published)
    if not any(source.text for source in task.sources):
        raise RecordError("it has no cited text to write from")
    if not any(target.strip() for target in task.targets):
        raise RecordError("its citation text is empty")
    return replace(task, dataset=name)


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
    sound = (marker for marker in find_markers(citation) if marker.is_sound)
    citation = replaced(citation, ((marker.start, marker.end, "<cite>") for marker in sound))
    return _numbered(citation, _CITE, {"<cite>": 0, "<CITE>": 0}, [Source(text, title=title)])


def _chen(record: Mapping[str, Any], as_published: bool) -> TextTask:
    """Delve and S2ORC of Chen et al. (2021): documents with markers.

    Those without numbers are counted from 1 if the text cites the last one's number, and no 0; else from 0.
    """
    names, texts = _documents(record)
    text, sources = _text(record, "abs"), list(map(Source, texts))
    if as_published:
        return _task(text, sources)
    text = _GROUP.sub(
        lambda group: ", ".join(f"[{one}]" for one in re.findall(r"\d+", group[1])), _AT.sub(r"[\1]", text)
    )
    cited = set(map(int, _NUMBER.findall(text)))
    first = int(0 not in cited and len(texts) in cited)
    papers = positions(names or [str(first + position) for position in range(len(texts))])
    return _numbered(text, _NUMBER, papers, sources)


def _documents(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Names and texts of CHEN's documents, a list or one text; no names unless each has its number."""
    documents = record.get("multi_doc")
    if isinstance(documents, str):
        documents = list(_parted(documents))
    if not isinstance(documents, list) or not all(isinstance(text, str) for text in documents):
        raise RecordError("multi_doc is neither a text nor a list of texts")
    marks = [_BEGINS.match(text.lstrip()) for text in documents]
    texts = [one_line(text.lstrip()[mark.end() if mark else 0 :]) for text, mark in zip(documents, marks, strict=True)]
    names = [mark[1] for mark in marks if mark and mark[1] != "x"]
    return (names if len(set(names)) == len(texts) else []), texts


def _parted(text: str) -> Iterator[str]:
    """Splits a text where documents begin: at `[x]`, or at the next number. Others are citations in an abstract."""
    starts, wanted = [0], ""
    for mark in _BEGINS.finditer(text):
        if mark.start() and mark[1] == wanted:
            starts.append(mark.start())
        if mark.start() == starts[-1]:
            wanted = mark[1] if mark[1] == "x" else str(int(mark[1]) + 1)
    for start, end in itertools.pairwise([*starts, len(text)]):
        yield text[start:end]


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
    extra = {name: value for name, value in more.items() if value is not None}
    return TextTask("", tuple(sources), citing, **around, targets=(text,), extra=extra)


def _numbered(
    text: str, anchors: re.Pattern[str], papers: Mapping[str, int], sources: Sequence[Source], **more: Any
) -> TextTask:
    """A task whose anchors become `[0]`, `[1]`, …; the rest as for `_task`."""
    target, order = unified(text, anchors, papers)
    return _task(target, [sources[position] for position in order], **more)


FORMATS: dict[str, tuple[tuple[str, ...], Any]] = {
    "aburaed": (("title", "abstract", "citation"), _aburaed),
    "chen": (("multi_doc", "abs"), _chen),
    "lu": (("ref_abstract", "related_work"), _lu),
    "xing": (("explicit_citation", "src_abstract", "tgt_abstract"), _xing),
}
"""The four source data sets of CiteBench by its names: the keys of their records, and a function to a task."""
