"""Converts files of source data sets to one file of CiteBench records."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.result_lines import quarantine_line, quarantine_of, writing_records
from citerec.errors import InputError, SourceError
from citerec.files.progress import Progress, no_progress
from citerec.files.rejected import Rejected, fault_at
from citerec.files.writing import write_failures
from citerec.papers.citebench.published import dataset_name
from citerec.papers.citebench.sources import files_read, read_source
from citerec.write.task_files import task_record

_REPORTED_EVERY = 1000


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
    read = [path for source in sources for path in files_read(source, format_name) if path.exists()]
    for path in (out, quarantine):
        if path.exists() and any(path.samefile(each) for each in read):
            raise InputError(f"{path} is one of the sources", "Give another --out.")
    counts: Counter[str] = Counter()
    rejected = Rejected(max_bad)
    seen = 0
    with write_failures(out), writing_records(out) as (write, set_aside):
        for path in sources:
            for item in read_source(path, format_name, as_published=as_published):
                seen += 1
                if seen % _REPORTED_EVERY == 0:
                    on_progress("citation texts", seen, 0)
                if isinstance(item.task, BadRecord):
                    rejected.add(bad=1, first=fault_at(path.name, item.line, item.task.reason))
                    set_aside(quarantine_line(path.name, item.line, item.task))
                    continue
                rejected.add(good=1)
                counts[item.format] += 1
                # The number counts bad records too, so that an id does not change when another record is corrected.
                name = dataset_name(item.format, path) if as_published else item.format
                task = replace(item.task, task_id=f"{item.format}-{seen}", dataset=name)
                if not context:
                    task = replace(task, citing="", before="", after="")
                write(orjson.dumps(task_record(task)))
        if not seen:
            raise SourceError("the sources hold no record", "Give files with one record a line, or one list.")
        rejected.check()
    return Unified(dict(counts), rejected.bad, quarantine if rejected.bad else None)
