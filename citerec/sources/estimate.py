"""How much a release will take: bytes, papers and time, from the first megabytes of each dataset."""

import contextlib
import functools
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from citerec.errors import CiterecError
from citerec.files.parallel import available_processors
from citerec.sources.base import Corpus, RemoteFile
from citerec.sources.cut import Keeps, kept_papers, wanted_ids
from citerec.sources.fetch import Plan
from citerec.sources.part import Job, read_part

_SAMPLE = 6_000_000  # bytes
_ROOM = 1.1  # for what an estimate misses
_LACKING = 0.8  # share of the release before
# docs/growth.md: a million papers with abstracts, on 2 processors.
_INDEX_BYTES, _INDEX_SECONDS, _ENCODE_SECONDS = 2_400, 0.00016, 1 / 75


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a dataset; None where it is not known before it is read.

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
    bytes: float | None
    passes: int
    records: float | None
    kept: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of a release.

    Attributes:
        datasets: Each dataset.
        lacking: What the release seems to lack, in words.
    """

    datasets: tuple[Expected, ...]
    lacking: tuple[str, ...] = ()

    @property
    def papers(self) -> float | None:
        """How many papers are kept."""
        return self.datasets[0].records

    @property
    def bytes(self) -> float | None:
        """How many bytes are fetched."""
        return _sum([one.bytes and one.bytes * one.passes for one in self.datasets])

    @property
    def kept(self) -> float | None:
        """How many bytes are written."""
        return _sum([one.kept for one in self.datasets])

    @property
    def seconds(self) -> float | None:
        """How long fetching takes."""
        return _sum([one.seconds for one in self.datasets])

    def room(self, *, index: bool) -> float | None:
        """The bytes of disk that are needed, with an index if one is made."""
        if self.kept is None or self.papers is None:
            return None
        # While an index is built, there may be two of it.
        return _ROOM * (self.kept + (2 * _INDEX_BYTES * self.papers if index else 0))

    def index_seconds(self) -> float | None:
        """How long an index with vectors takes here, on processors alone."""
        each = (_INDEX_SECONDS + _ENCODE_SECONDS) * 2 / available_processors()
        return None if self.papers is None else each * self.papers


def _sum(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def estimate(plan: Plan, workers: int | None = None) -> Estimate:
    """Reads the first megabytes of each dataset; errors as for `read_part`."""
    corpus, cut = plan.place.open(), plan.cut
    datasets = dict(plan.files)
    if plan.citations:
        datasets.setdefault(corpus.citations, plan.citations)
    usual = {one.name: one.bytes for one in plan.release.datasets}
    found: list[Expected] = []
    share: float | None = None if cut.cited_by else 0.0
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
            kept: float | None = share if name in plan.files else 0.0  # of what the sample kept
            if is_main and share is not None:
                kept, share = 1.0, part.kept / max(1, part.read)
            passes = int(name in plan.files)
            if cut.cited_by:
                passes += int(is_main) + (cut.hops if name == corpus.citations else 0)
            whole = _bytes(corpus, files, usual.get(name))
            times = None if whole is None else whole / max(1, part.bytes)
            at_once = max(1, min(workers or corpus.workers, corpus.workers, len(files)))
            found.append(
                Expected(
                    name,
                    len(files),
                    whole,
                    passes,
                    None if times is None or kept is None else times * kept * part.kept,
                    None if times is None or kept is None else times * kept * part.size,
                    None if times is None else times * seconds * passes / at_once,
                )
            )
    return Estimate(tuple(found), tuple(_lacking(plan, found)))


def _about_papers() -> Keeps:
    """Keeps what is about any paper."""
    return lambda record, _found: record.paper_id is not None


def _bytes(corpus: Corpus, files: Sequence[RemoteFile], usual: float | None = None) -> float | None:
    """The bytes of a dataset: as its files say, as its first file has on the server, or as earlier releases had."""
    known = [file.bytes for file in files if file.bytes is not None]
    if len(known) == len(files):
        return sum(known)
    with contextlib.closing(cast("Any", corpus.chunks(files[0], lambda _: files[0].url))) as chunks:
        next(chunks, b"")
    return usual if corpus.web.size is None else corpus.web.size * len(files)


def _lacking(plan: Plan, expected: Sequence[Expected]) -> Iterator[str]:
    """Datasets that are much smaller than in the release before: some releases lacked most of their records."""
    corpus = plan.place.open()
    earlier = [name for name in corpus.releases() if name < plan.release.name][-1:]
    for release, one in itertools.product(earlier, expected):
        with contextlib.suppress(CiterecError):  # the release before may be gone
            before = _bytes(corpus, corpus.files(release, one.dataset))
            if before and one.bytes is not None and one.bytes < _LACKING * before:
                yield (
                    f"{one.dataset} has {one.bytes / before:.0%} of the bytes that it had in release {release}: "
                    "does the release lack records?"
                )
