"""A release fetched into a new folder, cut to size, and brought up to date by the diffs of its source.

A file of a release is fetched, unzipped and cut as it comes, and is written whole or not at all. Estimates come from
the first megabytes of each dataset.
"""

import contextlib
import functools
import gzip
import hashlib
import io
import math
import operator
import re
import shutil
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast
from urllib.parse import urlsplit

import orjson
import platformdirs
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, computed_field

from citerec.corpus.base import CORPUS, REMOVED, UPDATES, papers_in
from citerec.corpus.matching import alike, canonical_id, is_title, look_up_names, names_of, passes
from citerec.corpus.reading import bounded_lines, line_bytes, quarantine_line, raw_lines, writing_lines
from citerec.errors import InputError, SourceError, first_fault
from citerec.files.http import TRIES, ChangedError, Web, WebError
from citerec.files.parallel import available_processors, outcomes_of
from citerec.files.progress import Note, Progress, Rejected, fault_at, no_note, no_progress, told
from citerec.files.resume import JOURNAL, Journal, file_digest, identity, read_json
from citerec.files.writing import Kind, alone, beside, exchange, remove, write_bytes, write_failures, writing_file
from citerec.records import NO_FILTERS, Citation, Deletion, Filters, Paper
from citerec.sources.base import CORPORA, Corpus, RawRecord, Release, RemoteFile, Update, keep_pace
from citerec.version import __version__

_BUFFER = 1 << 20


# A number as few as possible would write otherwise, such as 007, is a text.
_NUMBERED = re.compile(r"([A-Za-z]{0,8})(0|[1-9][0-9]{0,17})")


class Ids:
    """A set of ids. Numbers, also behind letters ("W123"), take a few bytes each; other ids are kept as texts."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        from pyroaring import BitMap64  # of the extra `scale`, which no command needs before it has ids

        self._numbers: defaultdict[str, BitMap64] = defaultdict(BitMap64)
        self._others: set[str] = set()
        for one in ids:
            self.add(one)

    def add(self, one: str) -> None:
        """Adds an id."""
        if match := _NUMBERED.fullmatch(one):
            self._numbers[match[1]].add(int(match[2]))
        else:
            self._others.add(one)

    def __contains__(self, one: object) -> bool:
        if match := _NUMBERED.fullmatch(str(one)):
            return match[1] in self._numbers and int(match[2]) in self._numbers[match[1]]
        return one in self._others

    def __len__(self) -> int:
        return sum(map(len, self._numbers.values())) + len(self._others)

    def __iter__(self) -> Iterator[str]:
        """The ids, always in the same order."""
        for letters in sorted(self._numbers):
            yield from (f"{letters}{number}" for number in self._numbers[letters])
        yield from sorted(self._others)

    def __or__(self, other: "Ids") -> "Ids":
        return self._joined(other, operator.or_)

    def __sub__(self, other: "Ids") -> "Ids":
        return self._joined(other, operator.sub)

    def _joined(self, other: "Ids", how: Callable[[Any, Any], Any]) -> "Ids":
        ids = Ids()
        ids._others = how(self._others, other._others)
        for letters in self._numbers.keys() | other._numbers.keys():
            ids._numbers[letters] = how(self._numbers[letters], other._numbers[letters])
        return ids

    def save(self, path: Path) -> None:
        """Writes the set to a file, whole: a line of JSON with the sizes, the bitmaps, the other ids."""
        blobs = {letters: self._numbers[letters].serialize() for letters in sorted(self._numbers)}
        head = orjson.dumps({letters: len(blob) for letters, blob in blobs.items()})
        write_bytes(path, b"\n".join([head, b"".join(blobs.values()) + "\n".join(sorted(self._others)).encode()]))

    @classmethod
    def load(cls, path: Path) -> Self:
        """The set of a file that `save` wrote."""
        from pyroaring import BitMap64

        head, _, rest = path.read_bytes().partition(b"\n")
        ids = cls()
        for letters, size in orjson.loads(head).items():
            ids._numbers[letters] = BitMap64.deserialize(rest[:size])
            rest = rest[size:]
        ids._others = set(rest.decode().split("\n")) - {""}
        return ids


def loaded(path: Path | None) -> Ids | None:
    """The set of a file, which is read once; None for no file."""
    return _loaded(*identity(path)) if path else None


@functools.lru_cache(maxsize=4)
def _loaded(path: str, _size: int, _changed: int) -> Ids:
    return Ids.load(Path(path))


_FILTERS = TypeAdapter(Filters)


class Cut(NamedTuple):
    """Which papers are kept. All conditions hold at once.

    Attributes:
        filters: What is asked of the record.
        languages: Written in one of these, as codes such as "en".
        ids: A file of ids, one a line (`citerec.corpus.matching.canonical_id`).
        cited_by: A bibliography: its papers, and those near to them in the graph of citations.
        hops: How many citations away from these papers, in either direction.
    """

    filters: Filters = NO_FILTERS
    languages: tuple[str, ...] = ()
    ids: Path | None = None
    cited_by: Path | None = None
    hops: int = 1

    def check(self, corpus: type[Corpus]) -> None:
        """Raises InputError if a source does not have what is asked for, or a file cannot be read."""
        if self.languages and not corpus.says_language:
            raise InputError(f"{corpus.name} does not say languages", "Leave --language out.")
        if self.cited_by and not corpus.citations:
            raise InputError(f"{corpus.name} has no citations", "Leave --cited-by out, or name papers with --ids.")
        if self.ids and not wanted_ids(self.ids):
            raise SourceError(f"{self.ids} has no ids", "Give a file with an id in each line.")
        if self.cited_by and not library_entries(self.cited_by):
            raise SourceError(f"{self.cited_by} has no entries", "Give a bibliography: BibTeX, RIS or CSL-JSON.")

    def to_json(self) -> dict[str, Any]:
        """What identifies the cut, as JSON: files by their names and digests."""
        files = {"ids": self.ids, "cited_by": self.cited_by}
        return {
            **_FILTERS.dump_python(self.filters, mode="json", exclude_defaults=True),
            **({"languages": list(self.languages)} if self.languages else {}),
            **{name: {"name": path.name, "sha256": file_digest(path)} for name, path in files.items() if path},
            **({"hops": self.hops} if self.cited_by else {}),
        }

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> "Cut":
        """The cut of a corpus that is there; its files of ids lie beside it."""
        return cls(_FILTERS.validate_python(values), tuple(values.get("languages", ())))


def wanted_ids(path: Path) -> Ids:
    """The ids in a file, one a line; errors as for `raw_lines`."""
    return Ids(canonical_id(raw.decode("utf-8", "replace")) for _, raw, _ in raw_lines(path))


def library_entries(path: Path) -> list[Paper]:
    """The entries of a bibliography that can be read; errors as for `recognise`."""
    if not path.is_file():
        raise SourceError(f"{path} is no file", "Give a bibliography: BibTeX, RIS or CSL-JSON.")
    return papers_in(path)


def digest_of_line(raw: bytes) -> str:
    """A number by which a record is recognised that did not change."""
    return str(int.from_bytes(hashlib.blake2b(raw.strip(), digest_size=8).digest()) % 10**18)


Notes = defaultdict[str, Ids]
"""What is noted of the records of a file: ids, by what they are."""

Keeps = Callable[[RawRecord, Notes], bool]
"""Whether a record is kept; what else is worth knowing of it is noted."""

Sieve = Callable[[], Keeps]
"""Loads the ids that are needed, where the records are read: a partial of one of the following functions."""


def kept_papers(
    cut: Cut,
    wanted: Path | None = None,
    near: Path | None = None,
    before: Path | None = None,
    digests: Path | None = None,
) -> Keeps:
    """Keeps the papers of a cut, and notes them as `kept`.

    Args:
        cut: The cut.
        wanted: A file with the `names_of` papers, of which one must be there.
        near: A file of ids, of which the paper's own must be one.
        before: A file of the ids that were kept before: those that do not stay are noted as `left`.
        digests: A file of `digest_of_line` of records that are here: they are not kept again.
    """
    wanted_names, near_ids, ids_before, lines = (loaded(path) for path in (wanted, near, before, digests))
    ids_before = ids_before or Ids()

    def keeps(record: RawRecord, notes: Notes) -> bool:
        kept = False
        for paper in _papers_of(record):
            if (
                passes(paper, cut.filters)
                and (not cut.languages or record.language in cut.languages)
                and (near_ids is None or paper.paper_id in near_ids)
                and (wanted_names is None or any(name in wanted_names for name in names_of(paper)))
            ):
                notes["kept"].add(paper.paper_id)
                kept = True
            elif paper.paper_id in ids_before:
                notes["left"].add(paper.paper_id)
        return kept and (lines is None or digest_of_line(record.raw) not in lines)

    return keeps


def kept_joins(kept: Path, before: Path | None = None) -> Keeps:
    """Keeps what is about kept papers. Notes the `keys` of records, if they have some.

    Args:
        kept: A file of the ids of kept papers.
        before: A file of the keys that were kept before. What changed in these records is kept, whatever it is about.
    """
    ids, keys = loaded(kept) or Ids(), loaded(before) or None

    def keeps(record: RawRecord, notes: Notes) -> bool:
        if record.paper_id not in ids and (keys is None or record.key not in keys):
            return False
        if record.key is not None:
            notes["keys"].add(record.key)
        return True

    return keeps


def kept_deletions(path: Path) -> Keeps:
    """Keeps deletions of the records whose keys are in a file; these keys are noted as `deleted`."""
    ids = loaded(path) or Ids()

    def keeps(record: RawRecord, notes: Notes) -> bool:
        keys = [one.key for one in record.records if isinstance(one, Deletion) and one.key in ids]
        for key in keys:
            notes["deleted"].add(key)
        return bool(keys)

    return keeps


def seeds_of(bibliography: Path) -> Keeps:
    """Keeps nothing: notes the papers of a bibliography as `seeds`, and the entries that they are as `entries`.

    They share an identifier, or the title, an author and nearly the year.
    """
    entries: defaultdict[str, list[Paper]] = defaultdict(list)
    for entry in library_entries(bibliography):
        for name in look_up_names(entry.title, entry.external_ids):
            entries[name].append(entry)

    def keeps(record: RawRecord, notes: Notes) -> bool:
        for paper in _papers_of(record):
            for name in look_up_names(paper.title, paper.external_ids) & entries.keys():
                for entry in entries[name]:
                    if not is_title(name) or alike(entry, paper):
                        notes["seeds"].add(paper.paper_id)
                        notes["entries"].add(entry.paper_id)
        return False

    return keeps


def neighbours_of(around: Path) -> Keeps:
    """Keeps nothing: notes as `near` the papers that one of some papers cites, and those that cite one."""
    ids = loaded(around) or Ids()

    def keeps(record: RawRecord, notes: Notes) -> bool:
        for one in record.records:
            if isinstance(one, Citation) and one.cited_id is not None:
                if one.citing_id in ids:
                    notes["near"].add(one.cited_id)
                if one.cited_id in ids:
                    notes["near"].add(one.citing_id)
        return False

    return keeps


def _papers_of(record: RawRecord) -> Iterator[Paper]:
    return (one for one in record.records if isinstance(one, Paper))


class Place(NamedTuple):
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
        place = platformdirs.user_cache_path("citerec") / "pace" / part.name
        return part(Web(pace=functools.partial(keep_pace, part.pause, place)), self.url)


class Job(NamedTuple):
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
    read: int = 0
    kept: int = 0
    bad: int = 0
    size: int = 0
    first_bad: str = ""


class Manner(NamedTuple):
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


def read_part(job: Job, file: RemoteFile) -> Part:
    """Fetches a file and keeps what its job says, unless that was done. What came broken is fetched again, a few times.

    Raises:
        WebError: The file cannot be fetched, or comes broken again and again.
    """
    receipt = job.notes / f"{file.name}.json"
    with contextlib.suppress(FileNotFoundError):
        return Part.model_validate_json(receipt.read_bytes())
    for failed in range(TRIES):
        try:
            part = _read_once(job, file)
        except (ChangedError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            reason = str(error)
            time.sleep(job.place.open().web.patience * 2**failed)
        else:
            write_bytes(receipt, part.model_dump_json().encode())
            return part
    fault = f"{file.dataset}/{file.name} came broken {TRIES} times ({reason})"
    raise WebError(fault, "Try again later: it goes on with this file.")


def _read_once(job: Job, file: RemoteFile) -> Part:
    corpus, notes, keeps = job.place.open(), Notes(Ids), job.sieve()
    counts, first_bad, shard = Counter[str](), "", f"{file.dataset}/{file.name}"
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
                counts["bad"] += 1
                first_bad = first_bad or fault_at(shard, record.number, fault.reason)
                write_bad(quarantine_line(shard, record.number, fault))
                continue
            counts["read"] += 1
            if keeps(record, notes):
                counts["kept"] += 1
                write_kept(record.raw.removesuffix(b"\n"))
            if job.most is not None and stream.bytes >= job.most:
                break
        else:
            expected = stream.bytes if file.bytes is None else file.bytes
            if stream.bytes != expected or (is_packed and not stream.bytes):
                raise EOFError(f"{stream.bytes:,} of {expected:,} bytes came")
    size = path.stat().st_size if counts["kept"] else 0
    if not size:
        path.unlink()
    for label, ids in notes.items():
        ids.save(job.notes / f"{file.name}.{label}")
    facts: dict[str, Any] = {"dataset": file.dataset, "name": path.name, "format": file.format, **counts}
    return Part(**facts, bytes=stream.bytes, size=size, first_bad=first_bad)


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


QUARANTINE, NOTES = "quarantine.jsonl", "notes"
KEPT, KEYS, WANTED, NEAR = "kept.ids", "keys.ids", "wanted.ids", "near.ids"
_MANY = 0.2  # share of the papers that one update hardly deletes


class Step(BaseModel):
    """The release that a corpus began with, or an update.

    Attributes:
        release: The release after it.
        folder: Where its files are, in the folder of the corpus. Those of the last step have the ids of the corpus.
        papers: How many papers the corpus had after it.
        left: Papers that were deleted, or are not of the cut any more.
        parts: The files that were read, in the order in which they are to be read here.
    """

    model_config = ConfigDict(frozen=True)

    release: str
    folder: str
    papers: int
    left: int = 0
    parts: tuple[Part, ...]


class Passes:
    """Passes over the files of an update, or of a release, which is an update of nothing.

    Attributes:
        corpus: The corpus on its server.
        work: The folder to which what is kept is written.
        manner: How to fetch.
    """

    def __init__(self, place: Place, update: Update, work: Path, manner: Manner) -> None:
        self.corpus, self.work, self.manner = place.open(), work, manner
        self._place, self._update = place, update
        self._parts: list[Part] = []

    def read(self, dataset: str, files: Sequence[RemoteFile], sieve: Sieve, *, stage: str = "") -> None:
        """Reads the files of a dataset. A file that was read is not fetched again.

        Args:
            dataset: The dataset.
            files: Its files, and others, which are left out.
            sieve: Which records are kept.
            stage: A name for a pass that only looks at records; without one, what is kept is written.

        Raises:
            WebError: A file cannot be fetched.
            BuildError: Too many records are bad, the disk is full, or a process died.
        """
        files, notes = [file for file in files if file.dataset == dataset], self.work / NOTES / (stage or dataset)
        out = notes if stage else self.work / dataset
        job = Job(self._place, self._update.end, self._update.begin, sieve, notes, out)
        most, rejected = self.corpus.workers, Rejected(self.manner.max_bad)
        workers = min(self.manner.workers or most, most)
        parts: dict[int, Part] = {}
        with contextlib.closing(outcomes_of(functools.partial(read_part, job), files, workers)) as outcomes:
            for number, part in outcomes:
                parts[number] = part
                rejected.add(part.read, part.bad, part.first_bad)
                self.manner.on_progress(f"fetching {stage or dataset}", len(parts), len(files))
                rejected.check(len(parts) / len(files))
        rejected.check()
        self._parts += [] if stage else [parts[number] for number in range(len(files))]

    def ids(self, label: str, *stages: str) -> Ids:
        """The ids of a kind that were noted in some passes, which are called by their stages or datasets."""
        paths = [path for stage in stages for path in sorted((self.work / NOTES / stage).glob(f"*.{label}"))]
        return functools.reduce(operator.or_, map(Ids.load, paths), Ids())

    def noted(self, name: str, ids: Ids) -> Path:
        """A file of ids for a sieve."""
        ids.save(path := self.work / NOTES / f"{name}.ids")
        return path

    def step(
        self, cut: Cut, datasets: Sequence[str], cut_ids: Path, before: Path | None = None, lines: Path | None = None
    ) -> Step:
        """Reads the datasets, cut to size. The ids of the corpus are in the folder of the work then.

        Args:
            cut: Which papers are kept.
            datasets: The datasets.
            cut_ids: The folder with the ids of papers that are asked for, if some are.
            before: The folder with the ids of the corpus before; none for a release.
            lines: A file of `digest_of_line` of papers that are here, if the update has all papers.

        Raises:
            InputError: No paper is of the cut.
        """
        update = self._update
        mains = [name for name in datasets if name not in self.corpus.joins]
        joins = [name for name in datasets if name in self.corpus.joins]
        papers, keys = (Ids.load(before / name) if before else Ids() for name in (KEPT, KEYS))
        wanted, near = (path if (path := cut_ids / name).exists() else None for name in (WANTED, NEAR))
        sieve = functools.partial(kept_papers, cut, wanted, near, before and before / KEPT, lines)
        for name in mains:
            self.read(name, update.upserts, sieve)
        kept, left = self.ids("kept", *mains), self.ids("left", *mains)
        now = kept if update.is_whole else papers - left | kept
        all_ids = self.noted("known", papers | now)
        if not len(papers | now):
            remove(self.work)
            remedy = "Check the spelling of fields and venues, or ask for less."
            raise InputError("no paper of the release is of this cut", remedy)
        for name in mains:
            self.read(name, update.deletions, functools.partial(kept_deletions, all_ids))
        deleted = self.ids("deleted", *mains)
        now -= deleted
        now.save(self.work / KEPT)
        about = functools.partial(kept_joins, self.work / KEPT, before and before / KEYS)
        for name in joins:
            self.read(name, update.upserts, about)
        keys |= self.ids("keys", *joins)
        all_keys = self.noted("all-keys", keys)
        for name in joins:
            named = all_keys if name == self.corpus.citations else all_ids
            self.read(name, update.deletions, functools.partial(kept_deletions, named))
        (keys - self.ids("deleted", self.corpus.citations)).save(self.work / KEYS)
        gone = papers - now
        self._remove(mains[0], gone - deleted)
        if len(gone) > _MANY * len(papers):
            removed = f"The update to {update.end} removed {len(gone):,} of {len(papers):,} papers"
            self.manner.on_note(f"{removed}: is the release whole?")
        self._write_quarantine()
        return Step(
            release=update.end,
            folder=f"{UPDATES}/{update.begin}_{update.end}" if update.begin else "",
            papers=len(now),
            left=len(gone),
            parts=tuple(self._parts),
        )

    def _remove(self, dataset: str, ids: Ids) -> None:
        """Writes a file of the papers that are not of the cut any more, or that the source does not name as deleted."""
        if len(ids):
            path = self.work / dataset / "deletes-cut.gz"
            with writing_file(path) as partial, writing_lines(partial) as write:
                for one in ids:
                    write(one.encode())
            count, size = len(ids), path.stat().st_size
            part = Part(dataset=dataset, name=path.name, format=REMOVED, read=count, kept=count, size=size)
            self._parts.append(part)

    def _write_quarantine(self) -> None:
        """Joins the bad records into one file of JSON Lines, if there are any."""
        if bad := [part for part in self._parts if part.bad]:
            with writing_file(self.work / QUARANTINE) as partial, partial.open("wb") as out:
                for part in bad:
                    with gzip.open(self.work / NOTES / part.dataset / f"{part.name}.bad") as lines:
                        shutil.copyfileobj(lines, out)


_UPDATING = ".updating"

KIND = Kind("fetched corpus", "corpus", CORPUS, frozenset())


class FetchedCorpus(BaseModel):
    """What is in a corpus folder.

    Attributes:
        folder: The folder.
        source: The name of its source.
        datasets: The datasets that were fetched.
        cut: The cut, as `Cut.to_json` states it.
        terms: The terms of use, as the source stated them.
        steps: The release that it began with, then its updates, in order.
    """

    model_config = ConfigDict(frozen=True)

    folder: Path = Field(exclude=True)
    kind: Literal["corpus"] = "corpus"
    version: Literal[2] = 2
    citerec: str = __version__
    source: str
    datasets: tuple[str, ...]
    cut: dict[str, Any]
    terms: str
    steps: tuple[Step, ...] = Field(min_length=1)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shards(self) -> list[dict[str, str]]:
        """The files that hold records, in the order in which they are to be read: path and format."""
        return [{"path": str(path.relative_to(self.folder)), "format": part.format} for path, part in self.files()]

    @property
    def release(self) -> str:
        """The release that it is at."""
        return self.steps[-1].release

    @property
    def papers(self) -> int:
        """How many papers it has."""
        return self.steps[-1].papers

    @property
    def state(self) -> Path:
        """The folder with the ids of what it has."""
        return self.folder / self.steps[-1].folder

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(part.size for part in self.parts)

    @property
    def parts(self) -> list[Part]:
        """All files that were read, in order."""
        return [part for step in self.steps for part in step.parts]

    def files(self) -> Iterator[tuple[Path, Part]]:
        """The files that hold records, in the order in which they are to be read."""
        for step in self.steps:
            for part in step.parts:
                if part.kept:
                    yield self.folder / step.folder / part.dataset / part.name, part

    def faults(self, on_progress: Progress = no_progress) -> Iterator[str]:
        """What is wrong with its files, by their sizes, their records, and the checksum that gzip keeps in each."""
        files = list(self.files())
        for path, part in told(files, "checking", on_progress, len(files)):
            try:
                size = path.stat().st_size
                with gzip.open(path) as lines:
                    count = sum(1 for _ in lines)
            except (OSError, EOFError, zlib.error) as error:
                yield f"{path} cannot be read ({error})"
                continue
            if (size, count) != (part.size, part.kept):
                yield f"{path} has {size:,} bytes and {count:,} records, not {part.size:,} and {part.kept:,}"

    def write(self, folder: Path) -> None:
        """Writes the manifest to a folder."""
        write_bytes(folder / CORPUS, self.model_dump_json(indent=2).encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The corpus in a folder.

        Raises:
            InputError: There is none, or it was written by another version.
        """
        if not KIND.is_at(folder):
            raise InputError(f"{folder} is no fetched corpus", "Fetch one: citerec corpus get SOURCE --out FOLDER")
        try:
            return cls.model_validate({**(read_json(folder / CORPUS) or {}), "folder": folder})
        except ValidationError as error:
            fault = first_fault(error)
            raise InputError(f"{folder / CORPUS} is damaged ({fault})", "Fetch the corpus again.") from None


class Plan(NamedTuple):
    """What to fetch, and where to.

    Attributes:
        place: The corpus on its server.
        release: The release.
        files: The files of each dataset that is kept, papers first.
        citations: The files in which the neighbours of papers are looked for; empty without `Cut.cited_by`.
        cut: Which papers are kept.
        out: The folder that is made.
    """

    place: Place
    release: Release
    files: Mapping[str, tuple[RemoteFile, ...]]
    citations: tuple[RemoteFile, ...]
    cut: Cut
    out: Path

    @property
    def mains(self) -> list[str]:
        """The datasets of the papers themselves."""
        return [name for name in self.files if name not in self.place.open().joins]

    @property
    def identity(self) -> dict[str, Any]:
        """What the result depends on."""
        return {
            "corpus": self.place.corpus,
            "release": self.release.name,
            "cut": self.cut.to_json(),
            "files": {dataset: [file.name for file in files] for dataset, files in self.files.items()},
        }


def make_plan(place: Place, out: Path, release: str | None, datasets: Sequence[str], cut: Cut) -> Plan:
    """What has to be fetched for a corpus; work that was stopped keeps the release that it began with.

    Args:
        place: The corpus on its server.
        out: The folder to make.
        release: The release; by default the newest.
        datasets: The datasets; by default those that are fetched by default. Papers always are.
        cut: Which papers are kept.

    Raises:
        InputError: Something that is asked for does not exist, or `out` holds something else.
        WebError: The server does not answer.
    """
    corpus = place.open()
    cut.check(type(corpus))
    check_free(out)
    details = corpus.release(release or unfinished(out).get("release"))
    by_name = {dataset.name: dataset for dataset in details.datasets}
    if unknown := [name for name in datasets if name not in by_name]:
        fault = f"release {details.name} of {corpus.name} has no dataset {unknown[0]!r}"
        raise InputError(fault, f"Choose: {', '.join(by_name)}.")
    defaults = {name for name, one in by_name.items() if one.is_default and not (datasets and name in corpus.joins)}
    chosen = [name for name in by_name if name in datasets or name in defaults]
    files = {name: tuple(corpus.files(details.name, name)) for name in sorted(chosen, key=corpus.joins.__contains__)}
    for name, listed in files.items():
        if not listed and name not in corpus.joins:
            raise InputError(f"release {details.name} of {corpus.name} has no {name}", "Choose another with --release.")
    citations = tuple(corpus.files(details.name, corpus.citations)) if cut.cited_by else ()
    return Plan(place, details, files, citations, cut, out)


def unfinished(out: Path) -> dict[str, Any]:
    """The plan of work that was begun and not finished; empty if there is none."""
    return (read_json(beside(out, "getting") / JOURNAL) or {}).get("plan") or {}


def fetched_already(out: Path, source: str, release: str | None, cut: Cut) -> FetchedCorpus | None:
    """The corpus that is asked for, if it is there; errors as for `FetchedCorpus.read`."""
    if not KIND.is_at(out):
        return None
    cut.check(CORPORA[source])
    corpus = FetchedCorpus.read(out)
    same = corpus.source == source and corpus.cut == cut.to_json() and release in (None, corpus.steps[0].release)
    return corpus if same else None


def check_free(out: Path) -> None:
    """Raises InputError unless a corpus can be made there."""
    if KIND.is_at(out):
        corpus = FetchedCorpus.read(out)
        remedy = f"Bring it up to date: citerec corpus update {out}. Or give another --out."
        raise InputError(f"{out} holds {corpus.source} already, release {corpus.release}", remedy)
    KIND.check_place(out)


@contextlib.contextmanager
def _fetching(folder: Path) -> Iterator[None]:
    """Lets one process at a time fetch into a folder, and says what to do if the disk is full."""
    with (
        write_failures(folder, "Make room, then run the same command: it goes on where it stopped."),
        alone(beside(folder, "lock"), f"another process is fetching {folder}"),
    ):
        yield


def get_corpus(plan: Plan, manner: Manner) -> FetchedCorpus:
    """Fetches a release into its folder. Work that was stopped, even by a kill, goes on.

    Raises:
        InputError: Other work in this folder was not finished, or no paper is of the cut.
        WebError: The server does not answer, or its files are broken.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    work = beside(plan.out, "getting")
    with _fetching(plan.out):
        check_free(plan.out)
        before = unfinished(plan.out)
        if before and before != {"citerec": __version__, **plan.identity}:
            fault = f"{work} holds other work that was not finished: {before.get('corpus')} {before.get('release')}"
            raise InputError(fault, f"Repeat that command to finish it, or remove {work}, or give another --out.")
        journal = Journal(work, plan.identity)
        if not journal.notes.get("is_whole"):
            _get(plan, work, manner).write(work)
            journal.note(is_whole=True)  # a call that is killed from here on does not need the notes
        remove(work / NOTES)
        exchange(work, plan.out)
        (plan.out / JOURNAL).unlink(missing_ok=True)
    return FetchedCorpus.read(plan.out)


def _get(plan: Plan, work: Path, manner: Manner) -> FetchedCorpus:
    """Reads a release into a folder of work."""
    files = tuple(file for files in plan.files.values() for file in files)
    passes, cut = Passes(plan.place, Update("", plan.release.name, files, ()), work, manner), plan.cut
    if cut.ids:
        wanted_ids(cut.ids).save(work / WANTED)
    if cut.cited_by:
        _neighbourhood(plan, cut.cited_by, passes).save(work / NEAR)
    return FetchedCorpus(
        folder=plan.out,
        source=plan.place.corpus,
        datasets=tuple(plan.files),
        cut=cut.to_json(),
        terms=plan.release.terms,
        steps=(passes.step(cut, list(plan.files), work),),
    )


def _neighbourhood(plan: Plan, bibliography: Path, passes: Passes) -> Ids:
    """The ids of the papers of a bibliography, and of those near to them."""
    looked = {f"{name}, for the bibliography": name for name in plan.mains}
    for stage, name in looked.items():
        passes.read(name, plan.files[name], functools.partial(seeds_of, bibliography), stage=stage)
    around, entries = (passes.ids(label, *looked) for label in ("seeds", "entries"))
    whole = len(library_entries(bibliography))
    passes.manner.on_note(f"{len(entries):,} of {whole:,} entries of {bibliography} are papers of the corpus.")
    if not around:
        remove(passes.work)
        raise InputError(f"no entry of {bibliography} is a paper of the corpus", "Give an entry a DOI, or use --ids.")
    for hop in range(1, plan.cut.hops + 1):
        stage, sieve = f"citations, hop {hop}", functools.partial(neighbours_of, passes.noted(f"around-{hop}", around))
        passes.read(passes.corpus.citations, plan.citations, sieve, stage=stage)
        around |= passes.ids("near", stage)
    return around


def update_corpus(folder: Path, manner: Manner, url: str | None = None) -> FetchedCorpus:
    """Applies what changed since a corpus was fetched or brought up to date, in order; work that was stopped goes on.

    Each update counts only when it is complete. If nothing changed, the corpus is as it was.

    Args:
        folder: The folder of the corpus.
        manner: How to fetch.
        url: The address of its source, if it is not the usual one.

    Raises:
        InputError: There is no corpus, or the source needs a key.
        WebError: The server does not answer, or its files are broken.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    FetchedCorpus.read(folder)  # no lock is made where there is none
    with _fetching(folder):
        corpus = FetchedCorpus.read(folder)
        place = Place(corpus.source, url)
        for update in place.open().updates(corpus.release, corpus.datasets):
            work, before = folder / _UPDATING, corpus.state
            names = [f"{file.dataset}/{file.name}" for file in (*update.upserts, *update.deletions)]
            Journal(work, {"begin": update.begin, "end": update.end, "files": names})
            passes = Passes(place, update, work, manner)
            lines = passes.noted("lines", _lines_of(corpus, passes.corpus)) if update.is_whole else None
            step = passes.step(Cut.of_json(corpus.cut), corpus.datasets, folder, before, lines)
            corpus = corpus.model_copy(update={"steps": (*corpus.steps, step)})
            corpus.state.parent.mkdir(exist_ok=True)
            exchange(work, corpus.state)
            remove(corpus.state / NOTES)  # not before: a killed call goes on with them
            (corpus.state / JOURNAL).unlink(missing_ok=True)
            corpus.write(folder)
        for name in (KEPT, KEYS):
            for path in (folder / name, *folder.glob(f"updates/*/{name}")):
                if path.parent != corpus.state:  # the latest state has its own; a killed call may have left others
                    path.unlink(missing_ok=True)
    return corpus


def _lines_of(corpus: FetchedCorpus, source: Corpus) -> Ids:
    """Digests of the records of papers as they are here: of several of a paper, that of the last one."""
    latest: dict[str, str] = {}
    for path, part in corpus.files():
        if part.dataset not in source.joins and part.format != REMOVED:
            lines = (raw for _, raw, _ in raw_lines(path, blank_too=True))
            for record in source.records(RemoteFile(part.dataset, part.name, part.format, ""), lines):
                digest = digest_of_line(record.raw)
                latest |= {one.paper_id: digest for one in record.records if isinstance(one, Paper)}
    return Ids(latest.values())


_SAMPLE = 6_000_000  # bytes
_ROOM = 1.1  # for what an estimate misses
# docs/results.md: a million papers with abstracts, on 2 processors.
_INDEX_BYTES, _INDEX_SECONDS, _ENCODE_SECONDS = 2_400, 0.00016, 1 / 75


class Expected(NamedTuple):
    """What is expected of a dataset; NaN where it is not known before it is read.

    Attributes:
        dataset: Its name, or "in all".
        bytes: The size of its files.
        passes: How often they are read.
        records: How many records are kept; in all, how many papers.
        kept: The size of these here, in bytes.
        seconds: How long it takes.
    """

    dataset: str
    bytes: float
    passes: int
    records: float
    kept: float
    seconds: float

    def room(self, *, index: bool) -> float:
        """The bytes of disk that are needed, with an index of as many papers as records if one is made."""
        # While an index is built, there may be two of it.
        return _ROOM * (self.kept + (2 * _INDEX_BYTES * self.records if index else 0))

    def index_seconds(self) -> float:
        """How long an index of as many papers, with vectors, takes here, on processors alone."""
        return (_INDEX_SECONDS + _ENCODE_SECONDS) * 2 / available_processors() * self.records


def estimate(plan: Plan, workers: int | None = None) -> list[Expected]:
    """What the first megabytes of each dataset let expect, papers first, and at the end all of them together.

    Errors as for `read_part`.
    """
    corpus, cut = plan.place.open(), plan.cut
    datasets = {name: files for name, files in plan.files.items() if files}
    if plan.citations:
        datasets.setdefault(corpus.citations, plan.citations)
    usual = {one.name: one.bytes for one in plan.release.datasets}
    rows: list[Expected] = []
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
            rows.append(Expected(name, whole, passes, kept * part.kept, kept * part.size, seconds))
    fetched = sum(one.bytes * one.passes for one in rows)
    written, seconds = sum(one.kept for one in rows), sum(one.seconds for one in rows)
    return [*rows, Expected("in all", fetched, 1, rows[0].records, written, seconds)]


def _about_papers() -> Keeps:
    """Keeps what is about any paper."""
    return lambda record, _notes: record.paper_id is not None


def _bytes(corpus: Corpus, files: Sequence[RemoteFile], usual: float | None = None) -> float:
    """The bytes of a dataset: as its files say, as its first file has on the server, or as earlier releases had."""
    sizes = [file.bytes for file in files if file.bytes is not None]
    if len(sizes) == len(files):
        return sum(sizes)
    with contextlib.closing(cast("Any", corpus.chunks(files[0], lambda _: files[0].url))) as chunks:
        next(chunks, b"")
    if corpus.web.size is not None:
        return corpus.web.size * len(files)
    return math.nan if usual is None else usual
