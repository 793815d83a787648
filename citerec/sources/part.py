"""One file of a release: fetched, unzipped and cut to size as it comes, and written whole or not at all."""

import contextlib
import functools
import gzip
import io
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import orjson
import platformdirs
from pydantic import BaseModel, ConfigDict

from citerec.corpus.json_lines import bounded_lines
from citerec.files.http import ChangedError, Pace, Web, WebError
from citerec.files.parallel import outcomes_of
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.rejected import Rejected, fault_at, line_bytes
from citerec.files.writing import writing_file
from citerec.sources.base import CORPORA, Corpus, RemoteFile
from citerec.sources.cut import Found, Sieve
from citerec.sources.ids import Ids

_TRIES = 6
_BUFFER = 1 << 20
# Level 1 takes a third of the time of 6, for files some fifth larger.
_LEVEL = 1


class BrokenError(Exception):
    """What came is not the whole file."""


@dataclass(frozen=True, slots=True)
class Place:
    """A corpus on a server: its name, and the address if it is not the usual one."""

    corpus: str
    url: str | None = None

    def open(self) -> Corpus:
        """The corpus; one for each process."""
        return _opened(self)


@functools.lru_cache(maxsize=1)
def _opened(place: Place) -> Corpus:
    part = CORPORA[place.corpus]
    # The manners are for public servers: one on this machine is asked without waiting.
    if place.url and urlsplit(place.url).hostname in ("127.0.0.1", "localhost", "::1"):
        return part(Web(patience=0.01), place.url)
    pace = Pace(part.pause, platformdirs.user_cache_path("citerec") / "pace" / part.name)
    return part(Web(pace), place.url)


@dataclass(frozen=True, slots=True)
class Job:
    """What to do with files of a release, or of an update.

    Attributes:
        place: The corpus on its server.
        release: The release, or the one after the update.
        since: The release before the update; empty for a release.
        sieve: Which records are kept.
        notes: The folder for what was found in each file: counts, ids, bad records. A file with counts is done.
        out: The folder to which the kept lines are written.
        most: The bytes of a file after which it need not be read further; None to read it whole.
    """

    place: Place
    release: str
    since: str
    sieve: Sieve
    notes: Path
    out: Path
    most: int | None = None

    def link(self, file: RemoteFile, *, expired: bool) -> str:
        """The address of a file, asked for anew if it has expired; errors as for `Corpus.files`."""
        if not expired:
            return file.url
        corpus = self.place.open()
        files = corpus.files(self.release, file.dataset) if not self.since else []
        for update in corpus.updates(self.since, [file.dataset]) if self.since else []:
            if update.end == self.release:
                files += [*update.upserts, *update.deletions]
        for one in files:
            if one.name == file.name:
                return one.url
        raise WebError(f"{corpus.name} has no {file.dataset}/{file.name} any more", "Begin again.")


class Part(BaseModel):
    """A file that was read.

    Attributes:
        dataset: Its dataset.
        name: Its name there.
        format: What reads the file here.
        bytes: Its size there, or how much of it was read.
        read: Its good records.
        kept: Those that were kept.
        bad: Its bad records.
        size: The size of the file here; 0 if nothing was kept: then there is none.
        first_bad: What is wrong with the first bad record.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    name: str
    format: str
    bytes: int = 0
    read: int
    kept: int
    bad: int = 0
    size: int = 0
    first_bad: str = ""

    @property
    def file_name(self) -> str:
        """The name of the file here."""
        return packed_name(self.name)


def packed_name(name: str) -> str:
    """The name here of a file of a source: it is always compressed."""
    return name if name.endswith(".gz") else f"{name}.gz"


@dataclass(frozen=True, slots=True)
class Manner:
    """How to fetch.

    Attributes:
        workers: How many files at once; None for as many as the source allows.
        max_bad: Share of bad records, 0 to 1, above which the work stops.
        on_progress: Called with bytes as they come.
        on_note: Called with a line about what is worth knowing.
    """

    workers: int | None = None
    max_bad: float = 0.05
    on_progress: Progress = no_progress
    on_note: Note = no_note


def fetch_files(stage: str, files: Sequence[RemoteFile], job: Job, manner: Manner) -> list[Part]:
    """The parts that some files of a dataset give, in their order. A file that is there is not fetched again.

    Args:
        stage: The name of the work, for progress.
        files: The files.
        job: What to do with each.
        manner: How to fetch.

    Raises:
        WebError: A file cannot be fetched.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    corpus, rejected = job.place.open(), Rejected(manner.max_bad)
    known: dict[str, Part] = {}
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            part = known[file.name] = Part.model_validate_json(_receipt(job, file).read_bytes())
            rejected.add(part.read, part.bad, part.first_bad)
    todo = [file for file in files if file.name not in known]
    workers = min(manner.workers or corpus.workers, corpus.workers)
    with contextlib.closing(outcomes_of(functools.partial(read_part, job), todo, workers)) as outcomes:
        for number, part in outcomes:
            known[todo[number].name] = part
            rejected.add(part.read, part.bad, part.first_bad)
            done, whole = _bytes(files, known)
            manner.on_progress(f"fetching {stage}", done, whole)
            rejected.check(done / whole if whole and len(known) < len(files) else None)
    rejected.check()
    return [known[file.name] for file in files]


def _receipt(job: Job, file: RemoteFile) -> Path:
    return job.notes / f"{file.name}.json"


def _bytes(files: Sequence[RemoteFile], known: Mapping[str, Part]) -> tuple[float, float]:
    """How many bytes came, and how many there are; files of unknown size count as the mean of the others."""
    sizes = [known[file.name].bytes if file.name in known else file.bytes for file in files]
    told = [size for size in sizes if size is not None]
    mean = sum(told) / len(told) if told else 0
    return sum(part.bytes for part in known.values()), sum(mean if size is None else size for size in sizes)


def read_part(job: Job, file: RemoteFile) -> Part:
    """Fetches a file and keeps what its job says. What came broken is fetched again, a few times.

    Raises:
        WebError: The file cannot be fetched, or comes broken again and again.
    """
    for failed in range(_TRIES):
        try:
            part = _read_once(job, file)
        except (BrokenError, ChangedError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            reason = str(error)
            time.sleep(job.place.open().web.patience * 2**failed)
        else:
            with writing_file(_receipt(job, file)) as partial:
                partial.write_text(part.model_dump_json(), encoding="utf-8")
            return part
    raise WebError(
        f"{file.dataset}/{file.name} came broken {_TRIES} times ({reason})",
        "Try again later: it goes on with this file.",
    )


def _read_once(job: Job, file: RemoteFile) -> Part:
    corpus, found, keeps = job.place.open(), Found(Ids), job.sieve()
    read = kept = bad = 0
    first_bad, name = "", f"{file.dataset}/{file.name}"
    path = job.out / packed_name(file.name)
    with (
        Stream(corpus, file, job) as stream,
        packed_file(path) as out,
        packed_file(job.notes / f"{file.name}.bad") as quarantine,
    ):
        for record in corpus.records(file, stream):
            if fault := record.bad:
                bad += 1
                first_bad = first_bad or fault_at(name, record.number, fault.reason)
                row = {"shard": name, "line": record.number, "reason": fault.reason, "beginning": fault.beginning}
                quarantine.write(orjson.dumps(row) + b"\n")
                continue
            read += 1
            if keeps(record, found):
                kept += 1
                out.write(record.raw if record.raw.endswith(b"\n") else record.raw + b"\n")
            if job.most is not None and stream.bytes >= job.most:
                break
        else:
            stream.check(file)
    if not kept:
        path.unlink()
    for label, ids in found.items():
        ids.save(job.notes / f"{file.name}.{label}")
    return Part(
        dataset=file.dataset,
        name=file.name,
        format=file.format,
        bytes=stream.bytes,
        read=read,
        kept=kept,
        bad=bad,
        size=path.stat().st_size if kept else 0,
        first_bad=first_bad,
    )


@contextlib.contextmanager
def packed_file(path: Path) -> Iterator[BinaryIO]:
    """A compressed file to write lines to, which is there when it is whole."""
    with (
        writing_file(path) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
        io.BufferedWriter(cast("Any", packed), _BUFFER) as file,
    ):
        yield file


class Stream(io.RawIOBase):
    """The lines of a file on a server, unzipped if its name ends in .gz.

    Attributes:
        bytes: How many bytes of it came.
    """

    def __init__(self, corpus: Corpus, file: RemoteFile, job: Job) -> None:
        self.bytes = 0
        self._chunks: Any = corpus.chunks(file, lambda expired: job.link(file, expired=expired))
        self._rest = memoryview(b"")
        self._lines: Any = io.BufferedReader(self, _BUFFER)
        if file.name.endswith(".gz"):
            self._lines = io.BufferedReader(cast("Any", gzip.GzipFile(fileobj=self._lines)), _BUFFER)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer with the bytes that come next."""
        if not self._rest:
            chunk = next(self._chunks, b"")
            self.bytes += len(chunk)
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def __iter__(self) -> Iterator[bytes]:
        return bounded_lines(self._lines, line_bytes())

    def check(self, file: RemoteFile) -> None:
        """Raises an error unless the whole file came."""
        if file.name.endswith(".gz") and not self.bytes:
            raise BrokenError("nothing came")
        if file.bytes is not None and self.bytes != file.bytes:
            raise BrokenError(f"{self.bytes:,} of {file.bytes:,} bytes came")

    def close(self) -> None:
        """Closes the connection."""
        if not self.closed:
            self._chunks.close()
        super().close()
