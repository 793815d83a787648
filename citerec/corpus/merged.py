"""A folder of merged papers: JSON Lines that `citerec index build` reads, made of the files of several sources."""

import contextlib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.ingest import ingest
from citerec.corpus.merging import MergeCounts, Merging
from citerec.corpus.result_lines import Write, writing_lines
from citerec.corpus.shards import find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.errors import InputError, SourceError
from citerec.files.hashing import identity
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.files.writing import Kind, alone, beside, remove, write_failures
from citerec.records import Paper

MANIFEST = "merged.json"
_FILES = 8  # so that as many processes can read them at once
_LINES = 10_000  # that go to a file before the next one is filled: few papers need one file only


def _names(what: str) -> list[str]:
    return [f"{what}-{number}.jsonl.gz" for number in range(_FILES)]


KIND = Kind("merged corpus", "merged-corpus", MANIFEST, frozenset({MANIFEST, *_names("papers"), *_names("citations")}))


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How to read the sources: as the options of `citerec index build`."""

    max_bad: float = 0.05
    workers: int | None = None


def merge_corpora(sources: Mapping[str, Path], out: Path, options: MergeOptions, on_progress: Progress) -> MergeCounts:
    """Merges the papers of several sources into a folder, in place of one that is already there.

    An interrupted run is resumed: sources that were read are not read again.

    Args:
        sources: Files or folders of papers (docs/formats.md), by the name of their source. Of a field that several
            have, the value of the first counts.
        out: The folder. It has `papers-0.jsonl.gz` and so on, `citations-0.jsonl.gz` … if there are any, and
            `merged.json`.
        options: How to read the sources.
        on_progress: Called as the work goes on.

    Raises:
        InputError: There are not two sources, or something else is at `out`.
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another process is at work there.
    """
    if len(sources) < 2:
        raise InputError("there is nothing to merge", "Give two sources or more.")
    KIND.check_place(out)
    out = out.resolve()
    shards = {name: find_shards([path]) for name, path in sources.items()}
    plan = [[name, [[*identity(shard.path), shard.format] for shard in found]] for name, found in shards.items()]
    busy = f"another process is merging into {out}"
    with alone(beside(out, "merging.lock"), busy), write_failures(out), contextlib.ExitStack() as stack:
        journal = Journal(beside(out, "merging"), {"merge": plan})
        opened = {}
        for number, (name, found) in enumerate(shards.items()):
            store = SqliteStore(journal.folder / f"{number}.sqlite")
            stack.callback(store.close)
            if name not in journal.done:
                ingest(found, store, first=1, **asdict(options), on_progress=on_progress)
                journal.finish(name)
            if not store.counts().papers:
                raise SourceError(f"{sources[name]} holds no paper", "Give at least one readable paper record.")
            opened[name] = store
        merging = stack.enter_context(contextlib.closing(Merging(opened, journal.folder / "works.sqlite")))
        counts = merging.find_works(on_progress)
        with KIND.writing(out) as folder:
            _write(folder, "papers", map(paper_line, merging.papers()), counts.works, on_progress)
            _write(folder, "citations", merging.citations(), 0, on_progress)
            stated = {"kind": KIND.kind, "sources": list(sources), **asdict(counts)}
            (folder / MANIFEST).write_bytes(orjson.dumps(stated, option=orjson.OPT_INDENT_2) + b"\n")
    remove(journal.folder)
    return counts


def paper_line(paper: Paper) -> dict[str, Any]:
    """A paper as the object of a line of citerec's own JSON Lines; empty fields are left out."""
    return {name: value for name, value in asdict(paper).items() if value not in (None, "", (), {})}


def _write(folder: Path, what: str, lines: Iterable[Mapping[str, Any]], whole: int, on_progress: Progress) -> None:
    """Writes objects as JSON Lines into some files, the same bytes for the same objects."""
    done = 0
    with contextlib.ExitStack() as stack:
        write_to: dict[str, Write] = {}
        for name, part in zip(itertools.cycle(_names(what)), in_parts(lines, _LINES), strict=False):
            if name not in write_to:
                write_to[name] = stack.enter_context(writing_lines(folder / name))
            for line in part:
                write_to[name](orjson.dumps(line))
            done += len(part)
            on_progress(f"writing {what}", done, max(whole, done))
