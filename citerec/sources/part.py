"""One file of a release: fetched, unzipped and cut to size as it comes, and written whole or not at all."""

import contextlib
import functools
import gzip
import io
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, ConfigDict

from citerec.corpus.json_lines import bounded_lines, quarantine_line, writing_lines
from citerec.files.http import ChangedError, Pace, Web, WebError
from citerec.files.parallel import outcomes_of
from citerec.files.progress import Note, Progress, Rejected, fault_at, line_bytes, no_note, no_progress
from citerec.files.writing import write_json, writing_file
from citerec.sources.base import CORPORA, Corpus, RemoteFile
from citerec.sources.cut import Found, Sieve
from citerec.sources.ids import Ids

_TRIES = 6
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """A corpus on a server: its name, and the address if it is not the usual one."""

    corpus: str
    url: str | None = None

    @functools.lru_cache(maxsize=1)  # noqa: B019 - of a value
    def open(self) -> Corpus:
        """The corpus; one for each process."""
        part = CORPORA[self.corpus]
        # The manners are for public servers: one on this machine is asked without waiting.
        if self.url and urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1"):
            return part(Web(patience=0.01), self.url)
        return part(Web(Pace(part.pause, platformdirs.user_cache_path("citerec") / "pace" / part.name)), self.url)


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

    def link(self, file: RemoteFile, expired: bool) -> str:
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
        name: Its name here.
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


@dataclass(frozen=True, slots=True)
class Manner:
    """How to fetch.

    Attributes:
        workers: How many files at once; None for as many as the source allows.
        max_bad: Share of bad records, 0 to 1, above which the work stops.
        on_progress: Called with how many files are done.
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
    workers = min(manner.workers or corpus.workers, corpus.workers)
    parts: dict[int, Part] = {}
    with contextlib.closing(outcomes_of(functools.partial(read_part, job), files, workers)) as outcomes:
        for number, part in outcomes:
            parts[number] = part
            rejected.add(part.read, part.bad, part.first_bad)
            manner.on_progress(f"fetching {stage}", len(parts), len(files))
            rejected.check(len(parts) / len(files))
    rejected.check()
    return [parts[number] for number in range(len(files))]


def read_part(job: Job, file: RemoteFile) -> Part:
    """Fetches a file and keeps what its job says, unless that was done. What came broken is fetched again, a few times.

    Raises:
        WebError: The file cannot be fetched, or comes broken again and again.
    """
    receipt = job.notes / f"{file.name}.json"
    with contextlib.suppress(FileNotFoundError):
        return Part.model_validate_json(receipt.read_bytes())
    for failed in range(_TRIES):
        try:
            part = _read_once(job, file)
        except (ChangedError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            reason = str(error)
            time.sleep(job.place.open().web.patience * 2**failed)
        else:
            write_json(receipt, part.model_dump())
            return part
    raise WebError(
        f"{file.dataset}/{file.name} came broken {_TRIES} times ({reason})",
        "Try again later: it goes on with this file.",
    )


def _read_once(job: Job, file: RemoteFile) -> Part:
    corpus, found, keeps = job.place.open(), Found(Ids), job.sieve()
    read = kept = bad = 0
    first_bad, shard = "", f"{file.dataset}/{file.name}"
    is_packed = file.name.endswith(".gz")
    path = job.out / (file.name if is_packed else f"{file.name}.gz")
    with (
        contextlib.closing(cast("Any", corpus.chunks(file, functools.partial(job.link, file)))) as chunks,
        writing_file(path) as kept_file,
        writing_file(job.notes / f"{path.name}.bad") as bad_file,
        writing_lines(kept_file) as write_kept,
        writing_lines(bad_file) as write_bad,
    ):
        stream = Stream(chunks)
        for record in corpus.records(file, stream.lines(is_packed=is_packed)):
            if fault := record.bad:
                bad += 1
                first_bad = first_bad or fault_at(shard, record.number, fault.reason)
                write_bad(quarantine_line(shard, record.number, fault))
                continue
            read += 1
            if keeps(record, found):
                kept += 1
                write_kept(record.raw.removesuffix(b"\n"))
            if job.most is not None and stream.bytes >= job.most:
                break
        else:
            expected = stream.bytes if file.bytes is None else file.bytes
            if stream.bytes != expected or (is_packed and not stream.bytes):
                raise EOFError(f"{stream.bytes:,} of {expected:,} bytes came")
    if not kept:
        path.unlink()
    for label, ids in found.items():
        ids.save(job.notes / f"{file.name}.{label}")
    return Part(
        dataset=file.dataset,
        name=path.name,
        format=file.format,
        bytes=stream.bytes,
        read=read,
        kept=kept,
        bad=bad,
        size=path.stat().st_size if kept else 0,
        first_bad=first_bad,
    )


class Stream(io.RawIOBase):
    """The bytes of a file as they come.

    Attributes:
        bytes: How many came.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.bytes, self._chunks, self._rest = 0, chunks, memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer with the bytes that come next."""
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
            self.bytes += len(self._rest)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def lines(self, *, is_packed: bool) -> Iterator[bytes]:
        """The lines, unzipped."""
        file: Any = io.BufferedReader(self, _BUFFER)
        if is_packed:
            file = io.BufferedReader(cast("Any", gzip.GzipFile(fileobj=file)), _BUFFER)
        return bounded_lines(file, line_bytes())
