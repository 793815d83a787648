"""The interface of corpora that can be fetched, their table, and what several of them need.

A corpus is a subclass of `Corpus` in the table `CORPORA`, or an entry point of the group `citerec.corpora` of another
package. It can then be named in `citerec corpus show | get | update`.
"""

import functools
import hashlib
import operator
import re
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import orjson
import requests
import urllib3
from pydantic import TypeAdapter

from citerec.corpus.base import papers_in
from citerec.corpus.matching import alike, canonical_id, is_title, look_up_names, names_of, passes
from citerec.corpus.reading import BadRecord, parsed, raw_lines
from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest, identity
from citerec.files.http import TRIES, Named, Web, WebError, host_of, refused, unreachable
from citerec.files.registry import Registry
from citerec.files.writing import write_bytes
from citerec.records import NO_FILTERS, Citation, Deletion, Filters, Paper, Record


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a release.

    Attributes:
        dataset: The dataset to which it belongs: "papers".
        name: Its name here, unique in its dataset and the same whenever the release is listed, such as "000.jsonl.gz".
        format: What reads it once it is here: a name of `citerec.corpus.base.FORMATS`.
        url: Its address, which may expire.
        bytes: Its size there, compressed as it comes; None if the source does not say.
    """

    dataset: str
    name: str
    format: str
    url: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A part of a release, such as `papers` or `abstracts`.

    Attributes:
        name: Its name.
        about: What it holds, in a sentence.
        bytes: Its size in bytes, compressed; None if unknown. Sizes known only roughly, from earlier releases, count.
        is_default: Whether it is fetched if no dataset is named.
    """

    name: str
    about: str
    bytes: int | None = None
    is_default: bool = True


@dataclass(frozen=True, slots=True)
class Release:
    """A state of a corpus: its name, which sorts by time where it is a date, its datasets, and the terms of use."""

    name: str
    datasets: tuple[Dataset, ...]
    terms: str


@dataclass(frozen=True, slots=True)
class Update:
    """What changed from one release to a later one. All upserts come before all deletions.

    Attributes:
        begin: The release before.
        end: The release after.
        upserts: Files of new and changed records.
        deletions: Files of deleted ones; their formats read `citerec.records.Deletion`.
        is_whole: Whether the upserts are all records of the later release, changed or not. Those that are not among
            them were deleted: the source does not say what it changed.
    """

    begin: str
    end: str
    upserts: tuple[RemoteFile, ...]
    deletions: tuple[RemoteFile, ...]
    is_whole: bool = False


class RawRecord(NamedTuple):
    """A record as its source writes it, in one line or several, and what citerec reads in it.

    Attributes:
        number: Its line, from 1.
        raw: Its bytes, as they are kept; with the end of the last line.
        records: What it holds, such as a paper and its citations.
        bad: Why it cannot be read.
        language: The language of the paper as a code ("en"), where the source says so.
        paper_id: In a dataset of `Corpus.joins`: the paper for which it is kept; None if it is of use for none.
            `records` may then be empty, which saves time.
        key: In a dataset whose deletions do not name papers, such as S2AG's citations: its own id.
    """

    number: int
    raw: bytes
    records: tuple[Record, ...] = ()
    bad: BadRecord | None = None
    language: str | None = None
    paper_id: str | None = None
    key: str | None = None


Link = Callable[[bool], str]
"""The address of a file; called with True if the last one has expired, so that it must be asked for anew."""

_EXPIRED = (401, 403)  # of a link that was signed for a while
_CHUNK = 1 << 18
_AS_IT_IS = {"Accept-Encoding": "identity"}


class ChangedError(WebError):
    """A file changed on the server while it was read: what was read of it is worth nothing."""


@dataclass(eq=False)
class FileWeb(Web):
    """Fetches files, too.

    Attributes:
        size: The size in bytes of the file that is being fetched; None if the server does not say it.
    """

    size: int | None = field(default=None, init=False)

    def headers(self, url: str) -> Mapping[str, str]:
        """The headers of a file, without the file, with its size as `chunks` gives it; errors as for `answer`."""
        return self.answer(url, headers=_AS_IT_IS, method="HEAD").headers

    def chunks(self, link: Link, headers: Named = None) -> Iterator[bytes]:
        """The bytes of a file, as they come; `size` has its size from then on.

        Where the connection breaks it goes on at the next byte. It gives up after some failures without a byte between
        them. At the end it asks for what comes after the last byte: a proxy may have cut an answer and its length, and
        a gzip file of several members may have been cut between two of them.

        Raises:
            ChangedError: The file has changed meanwhile: begin again.
            WebError: The file cannot be fetched.
        """
        done, tag, failed, came, self.size = 0, None, 0, False, None
        url = link(False)
        while True:
            fields = {**_AS_IT_IS, **(headers or {})}
            if done:
                fields |= {"Range": f"bytes={done}-"} | ({"If-Range": tag} if tag and not tag.startswith("W/") else {})
            before = done
            try:
                with self.session.get(url, headers=fields, timeout=self.seconds, stream=True) as response:
                    if response.status_code in _EXPIRED and failed < TRIES:
                        url = link(True)
                        failed += 1
                        continue
                    # At the end; or the server knows no ranges, so that nothing more can be learnt.
                    if (done and response.status_code == 416) or (came and response.status_code == 200):
                        return
                    if not response.ok:
                        raise refused(url, response.status_code)
                    tag = _same_file(response, url, done, tag, came=came)
                    skipped = done if response.status_code == 200 else 0  # the server knows no ranges
                    if (length := response.headers.get("Content-Length", "")).isdigit():
                        self.size = int(length) + done - skipped
                    # Not `iter_content`: it would unzip what a server calls an encoding, and Range counts zipped bytes.
                    for chunk in response.raw.stream(_CHUNK, decode_content=False):
                        fresh = chunk[skipped:]
                        skipped -= len(chunk) - len(fresh)
                        done += len(fresh)
                        yield fresh
                    whole = response.headers.get("Content-Range", "").rpartition("/")[2]
                    if (whole.isdigit() and done >= int(whole)) or (came and done == before):
                        return
                    came = True
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                failed = 1 if done > before else failed + 1
                if failed >= TRIES:
                    raise unreachable(url, error) from error
                time.sleep(self.patience * 2 ** (failed - 1))


def _same_file(response: requests.Response, url: str, done: int, tag: str | None, *, came: bool) -> str | None:
    """The tag of a file; ChangedError if it is another one than before.

    What seemed whole and had no tag, where the file has one, was a page that said something else.
    """
    stamp = response.headers.get("ETag") or response.headers.get("Last-Modified")
    begin = response.headers.get("Content-Range", f"bytes {done}-").removeprefix("bytes ").partition("-")[0]
    if (stamp and stamp != tag and (came or (done and tag))) or (response.status_code == 206 and begin != str(done)):
        raise ChangedError(f"{host_of(url)} has another file there than before", "Begin with this file again.")
    return stamp or tag


class Corpus(ABC):
    """A source of papers in releases.

    Attributes:
        name: Its name on the command line.
        title: Its full name.
        home: Where people read about it.
        licence: Under which licence it is, in a few words; `Release.terms` may say more.
        about: What it holds, and how much, in a sentence or two.
        key: The environment variable of the key; empty if none is needed.
        url: The address of its interface, by default; `--url` gives another.
        workers: How many files may be fetched at once.
        pause: Seconds between two requests to the interface; files are fetched without waiting.
        joins: Datasets whose records are kept only for papers that are kept; they are read after the others.
        says_language: Whether `RawRecord.language` is known.
        citations: The dataset whose records hold citations; empty if there is none. It may be that of the papers.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    home: ClassVar[str]
    licence: ClassVar[str]
    about: ClassVar[str]
    key: ClassVar[str] = ""
    url: ClassVar[str]
    workers: ClassVar[int] = 4
    pause: ClassVar[float] = 0.0
    joins: ClassVar[frozenset[str]] = frozenset()
    says_language: ClassVar[bool] = False
    citations: ClassVar[str] = ""

    def __init__(self, web: FileWeb, url: str | None = None) -> None:
        self.web = web
        self.url_used = (url or self.url).rstrip("/")

    @abstractmethod
    def releases(self) -> list[str]:
        """The names of its releases, oldest first.

        Raises:
            WebError: The server does not answer, or answers something else.
        """

    @abstractmethod
    def release(self, name: str | None = None) -> Release:
        """A release; the newest one by default. Errors as for `releases`; InputError if there is none of this name."""

    def check_release(self, name: str | None, names: Sequence[str]) -> None:
        """Raises InputError if a release is asked for that is not one of those that there are."""
        if name and name not in names:
            remedy = "Leave --release out; or bring an earlier corpus up to date with `citerec corpus update`."
            raise InputError(f"{self.title} has no release {name!r}; the latest: {', '.join(names[-3:])}", remedy)

    @abstractmethod
    def files(self, release: str, dataset: str) -> list[RemoteFile]:
        """The files of a dataset, with fresh addresses. Errors as for `release`; InputError if a key is missing."""

    @abstractmethod
    def updates(self, since: str, datasets: Sequence[str]) -> list[Update]:
        """What changed after a release, in order; empty if it is the newest. Errors as for `files`."""

    def chunks(self, _file: RemoteFile, link: Link) -> Iterator[bytes]:
        """The bytes of a file as they come. Where an interface answers in pages, the pages together are the file.

        Args:
            _file: The file.
            link: Gives its address, as for `FileWeb.chunks`.

        Raises:
            ChangedError: What was read is worth nothing: begin with this file again.
            WebError: The file cannot be fetched.
        """
        return self.web.chunks(link)

    @abstractmethod
    def records(self, file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The records of a file, from its lines, unzipped; it must not read ahead more than a record."""


def json_records(
    lines: Iterable[bytes], parse: Callable[[dict[str, Any]], Record | Sequence[Record]]
) -> Iterator[RawRecord]:
    """`Corpus.records` for JSON Lines: `parse` makes one record of an object, or several, or raises RecordError.

    If an object has a `language`, it is that of the paper.
    """

    def read(value: dict[str, Any]) -> tuple[tuple[Record, ...], None, str | None]:
        result, language = parse(value), value.get("language")
        records = tuple(result) if isinstance(result, Sequence) else (result,)
        return records, None, language if isinstance(language, str) else None

    for number, raw in enumerate(lines, 1):
        if not raw.isspace():
            parts = parsed(raw, read)
            yield RawRecord(number, raw, bad=parts) if isinstance(parts, BadRecord) else RawRecord(number, raw, *parts)


def day_of(headers: Mapping[str, str]) -> str:
    """The day on which a file on a server last changed, in UTC, as "2026-11-23".

    Raises:
        WebError: The server does not say it.
    """
    try:
        return parsedate_to_datetime(headers.get("Last-Modified", "")).astimezone(UTC).date().isoformat()
    except ValueError:
        remedy = "Fetch the file yourself, and give it to `index build`."
        raise WebError("the server does not say when its file was made", remedy) from None


def size_of(headers: Mapping[str, str]) -> int | None:
    """The size of a file on a server; None if the server does not say it."""
    size = headers.get("Content-Length", "")
    return int(size) if size.isdecimal() else None


CORPORA: Registry[type[Corpus]] = Registry(
    "corpus",
    {
        "acl-anthology": "citerec.sources.acl_anthology:Anthology",
        "arxiv": "citerec.sources.arxiv:Arxiv",
        "openalex": "citerec.sources.openalex:OpenAlex",
        "s2ag": "citerec.sources.s2ag:SemanticScholar",
    },
    plural="corpora",
)
"""The corpora that can be fetched, by name."""


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
        match = _NUMBERED.fullmatch(str(one))
        if not match:
            return one in self._others
        return match[1] in self._numbers and int(match[2]) in self._numbers[match[1]]

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


@dataclass(frozen=True, slots=True)
class Cut:
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
    lines = (raw.decode("utf-8", "replace") for _, raw, _ in raw_lines(path))
    return Ids(map(canonical_id, lines))


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
    """Keeps what is about kept papers. Notes these papers as `about`, and the keys of records, if they have some.

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
        elif record.paper_id is not None:
            notes["about"].add(record.paper_id)
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
