"""How much a release will take: bytes, papers and time, from the first megabytes of each dataset."""

import contextlib
import functools
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from citerec.files.parallel import available_processors
from citerec.sources.base import Corpus, RemoteFile
from citerec.sources.cut import Keeps, kept_papers, wanted_ids
from citerec.sources.fetch import Plan
from citerec.sources.part import Job, read_part

_SAMPLE = 6_000_000  # bytes
_ROOM = 1.1  # for what an estimate misses
# docs/results.md: a million papers with abstracts, on 2 processors.
_INDEX_BYTES, _INDEX_SECONDS, _ENCODE_SECONDS = 2_400, 0.00016, 1 / 75


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a dataset; NaN where it is not known before it is read.

    Attributes:
        dataset: Its name.
        files: How many files it has.
        bytes: Their size.
        passes: How often they are read.
        records: How many records are kept.
        kept: The size of these here, in bytes.
        seconds: How long it takes.
    """

    dataset: str
    files: int
    bytes: float
    passes: int
    records: float
    kept: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of a release; NaN as in its datasets."""

    datasets: tuple[Expected, ...]

    @property
    def papers(self) -> float:
        """How many papers are kept."""
        return self.datasets[0].records

    @property
    def bytes(self) -> float:
        """How many bytes are fetched."""
        return sum(one.bytes * one.passes for one in self.datasets)

    @property
    def kept(self) -> float:
        """How many bytes are written."""
        return sum(one.kept for one in self.datasets)

    @property
    def seconds(self) -> float:
        """How long fetching takes."""
        return sum(one.seconds for one in self.datasets)

    def room(self, *, index: bool) -> float:
        """The bytes of disk that are needed, with an index if one is made."""
        # While an index is built, there may be two of it.
        return _ROOM * (self.kept + (2 * _INDEX_BYTES * self.papers if index else 0))

    def index_seconds(self) -> float:
        """How long an index with vectors takes here, on processors alone."""
        return (_INDEX_SECONDS + _ENCODE_SECONDS) * 2 / available_processors() * self.papers


def estimate(plan: Plan, workers: int | None = None) -> Estimate:
    """Reads the first megabytes of each dataset; errors as for `read_part`."""
    corpus, cut = plan.place.open(), plan.cut
    datasets = {name: files for name, files in plan.files.items() if files}
    if plan.citations:
        datasets.setdefault(corpus.citations, plan.citations)
    usual = {one.name: one.bytes for one in plan.release.datasets}
    found: list[Expected] = []
    share = 1.0  # of the papers that are kept
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted" if cut.ids else None
        if cut.ids and wanted:
            wanted_ids(cut.ids).save(wanted)
        papers = functools.partial(kept_papers, cut, wanted)
        for name, files in datasets.items():
            is_main = name in plan.mains
            sieve, work = papers if is_main else _about_papers, Path(folder) / name
            begun = time.perf_counter()
            part = read_part(Job(plan.place, plan.release.name, "", sieve, work, work, most=_SAMPLE), files[0])
            seconds = time.perf_counter() - begun
            whole = _bytes(corpus, files, usual.get(name))
            times = whole / max(1, part.bytes)
            kept = times * (1.0 if is_main else share)
            if is_main:
                share = part.kept / max(1, part.read)
            passes = int(name in plan.files)
            if cut.cited_by:
                kept = math.nan if name in plan.files else 0.0
                passes += int(is_main) + (cut.hops if name == corpus.citations else 0)
            seconds *= times * passes / max(1, min(workers or corpus.workers, corpus.workers, len(files)))
            found.append(Expected(name, len(files), whole, passes, kept * part.kept, kept * part.size, seconds))
    return Estimate(tuple(found))


def _about_papers() -> Keeps:
    """Keeps what is about any paper."""
    return lambda record, _found: record.paper_id is not None


def _bytes(corpus: Corpus, files: Sequence[RemoteFile], usual: float | None = None) -> float:
    """The bytes of a dataset: as its files say, as its first file has on the server, or as earlier releases had."""
    known = [file.bytes for file in files if file.bytes is not None]
    if len(known) == len(files):
        return sum(known)
    with contextlib.closing(cast("Any", corpus.chunks(files[0], lambda _: files[0].url))) as chunks:
        next(chunks, b"")
    if corpus.web.size is not None:
        return corpus.web.size * len(files)
    return math.nan if usual is None else usual
