"""How much a release will take: bytes, papers and time, from the first megabytes of each dataset."""

import contextlib
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.errors import CiterecError
from citerec.files.parallel import available_processors
from citerec.sources.base import RawRecord, RemoteFile
from citerec.sources.cut import Found, kept_papers, wanted_ids
from citerec.sources.fetch import Plan
from citerec.sources.part import BrokenError, Listing, Stream

_SAMPLE = 4_000_000  # bytes
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


@dataclass(frozen=True, slots=True)
class _Sample:
    bytes: int
    size: int | None  # of the whole file
    read: int
    kept: int
    kept_bytes: int
    seconds: float


def estimate(plan: Plan, workers: int | None = None) -> Estimate:
    """Reads the first megabytes of each dataset; errors as for `Web.chunks`."""
    workers = min(workers or plan.place.open().workers, plan.place.open().workers)
    found: list[Expected] = []
    share: float | None = None
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted"
        if plan.cut.ids:
            wanted_ids(plan.cut.ids).save(wanted)
        keeps = kept_papers(plan.cut.filters, plan.cut.languages, wanted if plan.cut.ids else None)
        for name in plan.mains:
            sample = _sample(plan, name, lambda record: keeps(record, Found()))
            if not plan.cut.cited_by:
                share = sample.kept / max(1, sample.read)
            found.append(_expected(plan, name, sample, 1.0 if share is not None else None, workers))
    for name in plan.joins:
        sample = _sample(plan, name, lambda record: record.paper_id is not None)
        found.append(_expected(plan, name, sample, share, workers))
    if plan.citations and plan.place.open().citations not in plan.files:
        name = plan.place.open().citations
        found.append(_expected(plan, name, _sample(plan, name, lambda _: False), 0.0, workers))
    return Estimate(tuple(found), tuple(_lacking(plan, found)))


def _expected(plan: Plan, name: str, sample: _Sample, share: float | None, workers: int) -> Expected:
    files, hops = plan.files.get(name) or plan.citations, plan.cut.hops if plan.cut.cited_by else 0
    passes = (1 if name in plan.files else 0) + (bool(hops) if name in plan.mains else 0)
    if name == plan.place.open().citations:
        passes += hops
    whole = _whole(plan, name, files, sample.size)
    parts = whole / sample.bytes if whole is not None and sample.bytes else 0
    known = share is not None and whole is not None
    return Expected(
        name,
        len(files),
        whole,
        passes,
        parts * sample.kept * (share or 0) if known else None,
        parts * sample.kept_bytes * (share or 0) if known else None,
        None if whole is None else parts * sample.seconds * passes / max(1, min(workers, len(files))),
    )


def _whole(plan: Plan, name: str, files: Sequence[RemoteFile], size: int | None) -> float | None:
    """The bytes of a dataset: as its files say, as its first file tells, or as earlier releases were."""
    known = [file.bytes for file in files if file.bytes is not None]
    if len(known) == len(files):
        return sum(known)
    if size is not None:
        return size * len(files)
    return next((one.bytes for one in plan.release.datasets if one.name == name), None)


def _sample(plan: Plan, dataset: str, keeps: Callable[[RawRecord], bool]) -> _Sample:
    """Reads the beginning of a dataset."""
    file = (plan.files.get(dataset) or plan.citations)[0]
    corpus, listing = plan.place.open(), Listing(plan.place, plan.release.name, dataset)
    for last in (False, False, True):
        begun, packer = time.perf_counter(), zlib.compressobj(1)
        read = kept = kept_bytes = 0
        with Stream(corpus, file, listing, _SAMPLE) as stream:
            try:
                # Where the sample ends, so does the stream of gzip, in the middle.
                for record in corpus.records(file, stream):
                    if record.bad:
                        continue
                    read += 1
                    if keeps(record):
                        kept += 1
                        kept_bytes += len(packer.compress(record.raw))
            except (EOFError, OSError, zlib.error, BrokenError):
                if not read and not last:
                    continue  # it came broken
            kept_bytes += len(packer.flush())
            return _Sample(stream.bytes, stream.size, read, kept, kept_bytes, time.perf_counter() - begun)
    raise AssertionError("the last try returns")


def _lacking(plan: Plan, expected: Sequence[Expected]) -> Iterator[str]:
    """Datasets that are much smaller than in the release before: some releases lacked most of their records."""
    corpus = plan.place.open()
    earlier = [name for name in corpus.releases() if name < plan.release.name]
    if not earlier:
        return
    for one in expected:
        with contextlib.suppress(CiterecError):  # the release before may be gone
            files = corpus.files(earlier[-1], one.dataset)
            before = sum(file.bytes or 0 for file in files)
            if files and not before:
                before = len(files) * (_size(plan, earlier[-1], files[0]) or 0)
            if one.bytes is not None and one.bytes < _LACKING * before:
                yield (
                    f"{one.dataset} has {one.bytes / before:.0%} of the bytes that it had in release {earlier[-1]}: "
                    "does the release lack records?"
                )


def _size(plan: Plan, release: str, file: RemoteFile) -> int | None:
    """The size of a file, as the server says when it is asked for it."""
    with Stream(plan.place.open(), file, Listing(plan.place, release, file.dataset), 1) as stream:
        stream.readinto(bytearray(1))
        return stream.size


def _sum(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
