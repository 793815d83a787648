"""The interface of corpora that can be fetched, their table, and what several of them need.

A corpus is a subclass of `Corpus` in the table `CORPORA`, or an entry point of the group `citerec.corpora` of another
package. It can then be named in `citerec corpus show | get | update`.
"""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from filelock import FileLock

from citerec.corpus.reading import BadRecord, parsed
from citerec.errors import InputError
from citerec.files.http import Link, Web, WebError
from citerec.files.registry import Registry
from citerec.records import Record


class RemoteFile(NamedTuple):
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


class Dataset(NamedTuple):
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


class Release(NamedTuple):
    """A state of a corpus: its name, which sorts by time where it is a date, its datasets, and the terms of use."""

    name: str
    datasets: tuple[Dataset, ...]
    terms: str


class Update(NamedTuple):
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


def keep_pace(seconds: float, place: Path) -> None:
    """Waits so that all processes of this user together send at most one request in some seconds.

    Args:
        seconds: The least time between the beginnings of two requests; 0 for no limit.
        place: A file whose time of change is that of the last request.
    """
    if not seconds:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        with contextlib.suppress(FileNotFoundError):
            since = time.time() - place.stat().st_mtime
            time.sleep(min(seconds, max(0.0, seconds - since)))
        place.touch()


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

    def __init__(self, web: Web, url: str | None = None) -> None:
        self.web = web
        self.url_used = (url or self.url).rstrip("/")

    def releases(self) -> list[str]:
        """The names of its releases, oldest first; by default the one that is there.

        Raises:
            WebError: The server does not answer, or answers something else.
        """
        return [self.release().name]

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
            link: Gives its address, as for `Web.chunks`.

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
