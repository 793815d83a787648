"""What the endpoints share: settings, indexes, threads, the writer, metrics."""

import asyncio
import contextlib
import functools
import gc
import hashlib
import logging
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, cast

import orjson
from fastapi import Depends, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import BeforeValidator, ConfigDict, Field
from starlette.types import Scope

from citerec.contexts.topic import Topic
from citerec.corpus.matching import arxiv_in, doi_in, normalised, passes
from citerec.corpus.store import PaperStore
from citerec.errors import CiterecError, InputError, QueryError, SettingsError
from citerec.files.text import names_in
from citerec.index.generations import identity
from citerec.index.manifest import find_index
from citerec.recommend import Recommender
from citerec.records import Context, Filters, Paper
from citerec.retrieve.base import Retriever
from citerec.retrieve.opened import OpenIndex, papers_of_index, title_words
from citerec.serve.guard import BusyError
from citerec.settings import PartSettings, assign, setting_keys
from citerec.systems import choose
from citerec.write.citation import CitationText, citation_task, draft
from citerec.write.writers.base import Writer, open_writer

log = logging.getLogger("citerec.serve")

_LOOK_SECONDS = 1.0  # between two looks whether an index was replaced
_MOST_MATCHES = 50_000
_CANDIDATES = 200
_NAMED_IDS, _LONGEST_ID = 5, 60  # in an error
_MOST_NAMED = 1000
_LEAST_NAME = 2  # letters
_MOST_WORDS = 20  # that are looked for among the names of authors

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\v\f\x85]")
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
# Zero-width characters, bidi overrides, tags, variation selectors, fillers; surrogates, which UTF-8 lacks; private use:
# Default_Ignorable_Code_Point, Cf, Cs and Co of Unicode 16.
_INVISIBLE = re.compile(
    "["
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160\u17b4-\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
    "]"
)


class NotFoundError(InputError):
    """There is no index or paper of this name."""


class ServedIndex:
    """An index and the system that searches it. Safe to use from several threads.

    It is opened by whoever needs it first. When it is replaced on disk, the new one is opened while the old one
    answers; the old one is closed when nobody holds it any more.

    Args:
        path: The index directory; by default the only one below `indexes/`.
        system: Name of the system, or a TOML file; by default the best that the index supports.
        assignments: Settings of the system, as `KEY=VALUE`.
        name: The name of the index in requests.

    Attributes:
        system: The name of the system, once it is open.
        recommender: The open system; None until `open` is done.
    """

    def __init__(
        self, path: Path | None, system: str | None = None, assignments: Sequence[str] = (), name: str = ""
    ) -> None:
        self.name, self.system = name, ""
        self.recommender: Recommender | None = None
        self._path, self._choice = path, (system, assignments)
        self._lock, self._is_closed, self._has_garbage = threading.Lock(), threading.Event(), False

    def open(self) -> Recommender:
        """The open system, which stays open while the caller holds it.

        Raises:
            CiterecError: It cannot be opened.
        """
        with self._lock:
            if self.recommender is None:
                path = find_index(self._path)
                self._open(path)
                threading.Thread(target=self._watch, args=[path], daemon=True).start()
            assert self.recommender is not None
            return self.recommender

    def close(self) -> None:
        """Closes it for good when nobody holds it any more."""
        self._is_closed.set()
        self.recommender = None

    def _open(self, path: Path) -> None:
        state = identity(path)  # before it is opened: what changes later is seen at the next look
        _, system, recipe = choose(path, *self._choice)
        recommender = Recommender.open(path, recipe)
        with contextlib.suppress(CiterecError):  # the first search loads models; no request should wait for that
            recommender.search("the first search", 1)
        weakref.finalize(recommender, self._let_go, recommender.retrievers, recommender.index)
        self.recommender, self.system, self._state = recommender, system, state

    def _let_go(self, retrievers: Sequence[Retriever], index: OpenIndex) -> None:
        for retriever in retrievers:
            retriever.close()
        index.close()
        self._has_garbage = True

    def _watch(self, path: Path) -> None:
        """Opens the index anew whenever it was replaced on disk. If that fails, the old one stays."""
        fault = ""
        while not self._is_closed.wait(_LOOK_SECONDS):
            if self._has_garbage:
                self._has_garbage = False
                gc.collect()  # memory-mapped files are let go with the objects that hold them; some are in cycles
            try:
                if identity(path) != self._state:
                    self._open(path)
                    log.info("%s was replaced: the new one is served", path)
            except Exception as error:  # no fault may end the watch
                if str(error) != fault:  # it is tried again at every look
                    log.warning("%s was replaced, but cannot be opened; the old one is served: %s", path, error)
                fault = str(error)


def named_places(arguments: Sequence[str]) -> dict[str, Path]:
    """Directories of indexes by name, from arguments such as `indexes/acm` and `acl=indexes/acl-2024`.

    Raises:
        SettingsError: Two have the same name.
        InputError: A name is empty.
    """
    places: dict[str, Path] = {}
    for argument in arguments:
        before, equals, after = argument.partition("=")
        path = Path(after if equals else argument)
        name = before if equals else path.resolve().name
        if not name or not str(path):
            raise InputError(f"{argument!r} names no index", "Give a directory, or NAME=DIRECTORY.")
        if name in places:
            raise SettingsError(f"two indexes are called {name!r}", f"Give one another name: NAME={path}")
        places[name] = path
    return places


class Matches:
    """Finds which papers of an index the entries of a bibliography are. Safe to use from several threads.

    Each is a search, so the answers are remembered: ids by digests, never texts.
    """

    def __init__(self) -> None:
        self._ids: dict[bytes, str | None] = {}

    def find(self, entries: Mapping[str, Paper], system: Recommender) -> dict[str, str]:
        """Ids of the entries that are papers of the index, by key."""
        digests = {key: _digest(system.manifest.fingerprint, key, entry) for key, entry in entries.items()}
        known = self._ids  # never changed, but replaced: another thread may be reading it
        ids = {digest: known[digest] for digest in digests.values() if digest in known}
        new = {key: entry for key, entry in entries.items() if digests[key] not in ids}
        matches = papers_of_index(new, system.index) if new else {}
        ids |= {digests[key]: matches.get(key) for key in new}
        if new:
            self._ids = dict([*known.items(), *ids.items()][-_MOST_MATCHES:])
        return {key: paper_id for key, digest in digests.items() if (paper_id := ids[digest]) is not None}


def _digest(fingerprint: str, key: str, entry: Paper) -> bytes:
    about = (fingerprint, key, entry.title, entry.year, entry.authors, entry.external_ids.get("DOI"))
    return hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def known_papers(store: PaperStore, paper_ids: Iterable[str]) -> list[Paper]:
    """Papers by id, in order, each once; NotFoundError if the index lacks one."""
    wanted = list(dict.fromkeys(paper_ids))
    found = store.papers(wanted)
    if lacking := [paper_id for paper_id in wanted if paper_id not in found]:
        named = ", ".join(shown(repr(paper_id), _LONGEST_ID) for paper_id in lacking[:_NAMED_IDS])
        more = f" and {len(lacking) - _NAMED_IDS} more" if len(lacking) > _NAMED_IDS else ""
        raise NotFoundError(f"the index has no paper {named}{more}", "Give ids as answers show them.")
    return [found[paper_id] for paper_id in wanted]


def find_papers(index: OpenIndex, query: str, limit: int, filters: Filters) -> list[Paper]:
    """The papers of an index that a query names, best first.

    An id, a DOI or an arXiv id names one paper. Otherwise those come first that have most of the words in their
    title, their authors' names, year and venue; then those whose title has least besides; then the most cited.

    Args:
        index: The open index.
        query: An id, a DOI, an arXiv id, or words of title and authors.
        limit: How many papers at most.
        filters: Years and venues; other filters are not applied to papers that only their authors name.
    """
    store = index.store
    if named := _by_identifier(query.strip(), store):
        return named[:limit]
    found: list[str] = []
    with contextlib.suppress(QueryError):  # no word, or too many
        found = title_words(index).search(Topic(query), _CANDIDATES, filters).paper_ids()
    surnames = [word.strip(".,;:") for word in query.split()[:_MOST_WORDS]]
    called = store.ids_called([name for name in surnames if len(name) >= _LEAST_NAME], _MOST_NAMED)
    # Only titles need a word in common, so that of authors' papers the filters are checked here.
    titled = store.papers(found, texts=False)
    others = store.papers(set(called) - titled.keys(), texts=False)
    papers = [*titled.values(), *(paper for paper in others.values() if passes(paper, filters))]
    wanted = normalised(query)
    scored = sorted((_rank(paper, wanted), paper.paper_id, paper) for paper in papers if wanted & _words(paper))
    return [paper for _, _, paper in scored[:limit]]


def _by_identifier(query: str, store: PaperStore) -> list[Paper]:
    if not query or len(query.split()) > 2:  # "doi: 10.1/x"
        return []
    if own := store.papers([query]):
        return list(own.values())
    identifier = arxiv_in(query) or doi_in(query)
    if not any(letter.isdigit() for letter in identifier):
        return []
    found = store.papers(store.ids_called([identifier], _CANDIDATES))
    return [paper for paper in found.values() if _has(paper, identifier)]


def _has(paper: Paper, identifier: str) -> bool:
    return identifier.casefold() in (value.casefold() for value in paper.external_ids.values())


def _words(paper: Paper) -> frozenset[str]:
    return normalised(" ".join([paper.title, *paper.authors, str(paper.year or ""), paper.venue or ""]))


def _rank(paper: Paper, wanted: frozenset[str]) -> tuple[int, int, int]:
    """Less is better."""
    beside = len(normalised(paper.title) - wanted)
    return -len(wanted & _words(paper)), beside, -(paper.citation_count or 0)


def visible(text: str) -> str:
    """A text without control characters, but line feeds and tabs, and without characters that nobody sees."""
    return str(_INVISIBLE.sub("", _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text))))


def shown(text: str, most: int) -> str:
    """A text on one line, as `visible` leaves it, of at most so many characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


Result = TypeVar("Result")

_PREFIX = "serve."
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where it is set, prometheus_client counts in files that all processes read
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


def _names(value: Any) -> Any:
    return tuple(names_in(value)) if isinstance(value, str) else value


class ServeSettings(PartSettings):
    """Limits, time-outs and threads of the server. On the command line: `-c serve.KEY=VALUE`."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    hosts: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """further names of this server that the Host header may have"""
    threads: int = Field(default=0, ge=0, le=256)
    """threads that search; 0 for one for each processor, at least two"""
    queue: int = Field(default=64, ge=0)
    """requests that may wait for a thread; further ones get 503"""
    seconds: float = Field(default=30, gt=0, le=3600)
    """longest time for the answer to a request; then 503"""
    body_seconds: float = Field(default=10, gt=0, le=3600)
    """longest time to send a body; then 408"""
    body_bytes: int = Field(default=1_048_576, ge=1024)
    """longest body, in bytes; then 413"""

    @classmethod
    def load(cls, assignments: Sequence[str] = ()) -> Self:
        """The settings, changed by assignments such as `serve.queue=100`.

        Raises:
            SettingsError: A key is unknown, or a value is out of range.
        """
        values: dict[str, Any] = {}
        known = functools.partial(setting_keys, cls, _PREFIX)
        assign(values, [assignment.removeprefix(_PREFIX) for assignment in assignments], known)
        return cls.checked(values, _PREFIX.rstrip("."), known)


class Threads:
    """Runs functions in threads, and refuses them if too many wait.

    Args:
        threads: How many run at once.
        queue: How many may wait for a thread.
        seconds: How long a caller waits for a result.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, "serve")
        self._room = threading.Semaphore(threads + queue)
        self._seconds = seconds

    @property
    def is_full(self) -> bool:
        """Whether the next call would be refused."""
        if has_room := self._room.acquire(blocking=False):
            self._room.release()
        return not has_room

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of a function that runs in a thread.

        A function that takes too long goes on, and holds its thread until it ends: Python cannot stop a thread.

        Raises:
            BusyError: Too many functions wait already, or it took too long.
        """
        if not self._room.acquire(blocking=False):
            raise BusyError("too many requests wait already", "Try again in a moment.")
        future = self._pool.submit(work)
        future.add_done_callback(lambda _: self._room.release())
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([waiting], timeout=self._seconds)
        if not done:
            future.cancel()  # it leaves the queue now, if it has not begun; `waiting.cancel()` would do so a turn later
            raise BusyError(f"this took more than {self._seconds:g} seconds", "Send less text, or try again later.")
        return waiting.result()

    def close(self) -> None:
        """Waits for the functions that run, and ends the threads; those that wait for a thread are dropped."""
        self._pool.shutdown(cancel_futures=True)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("citerec_requests", "Requests.", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "citerec_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        gauge = functools.partial(Gauge, registry=self.registry)
        self.in_flight = gauge("citerec_requests_in_flight", "Requests at this moment.", multiprocess_mode="livesum")
        self.papers = gauge("citerec_index_papers", "Papers of a loaded index.", ["index"], multiprocess_mode="max")
        self.loaded = gauge("citerec_index_loaded", "Whether an index is loaded.", ["index"], multiprocess_mode="max")

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts and times a request that was answered; the status is 0 if no answer was begun."""
        # The path of the route, not of the request: clients can make up any number of those.
        route = getattr(scope.get("route"), "path", "other")
        self.requests.labels(route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics as text; those of all processes together, where several answer."""
        registry = self.registry
        if _FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@contextlib.contextmanager
def metrics_of_workers() -> Iterator[None]:
    """Processes that are started in this block count together."""
    with tempfile.TemporaryDirectory(prefix="citerec-metrics-") as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]


@dataclass
class Service:
    """What the endpoints share.

    Attributes:
        indexes: The indexes by name; the first one is the default.
        settings: The limits.
        writer: Writes citation texts.
        writing: Held while it writes: writers are not made for several threads.
        threads: The threads that do the work.
        metrics: The metrics.
        matches: Which papers the entries of bibliographies are.
    """

    indexes: Mapping[str, ServedIndex]
    settings: ServeSettings
    writer: Writer
    writing: threading.Lock = field(default_factory=threading.Lock)
    threads: Threads = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    matches: Matches = field(default_factory=Matches)

    def __post_init__(self) -> None:
        number = self.settings.threads or max(2, os.cpu_count() or 2)
        self.threads = Threads(number, self.settings.queue, self.settings.seconds)

    def close(self) -> None:
        """Ends the threads, and closes the indexes."""
        self.threads.close()
        for index in self.indexes.values():
            index.close()

    def open(self, name: str | None, citing: str | None = None) -> tuple[ServedIndex, Recommender]:
        """An index, by default the first one, and its system; it stays open while the caller holds it.

        Raises:
            NotFoundError: There is no index of this name, or it has no paper `citing`.
        """
        index = next(iter(self.indexes.values())) if name is None else self.indexes.get(name)
        if index is None:
            raise NotFoundError("there is no index of this name", f"The indexes are: {', '.join(self.indexes)}.")
        system = index.open()
        if citing is not None:
            known_papers(system.store, [citing])
        return index, system

    def write(self, context: Context, papers: Sequence[Paper], citing: Paper | None = None) -> CitationText:
        """A citation text for a context; a QueryError if no paper has a text to write from."""
        task = citation_task(context, papers, citing)
        if not task.citing and not any(source.text for source in task.sources):
            raise QueryError("no paper to cite has an abstract", "Choose other papers, or write more of the sentence.")
        with self.writing:
            return draft(task, papers, self.writer)


def open_service(places: Mapping[str, Path], system: str | None, assignments: Sequence[str], writer: str) -> Service:
    """Opens what is served.

    Args:
        places: The directories of the indexes, by name.
        system: Name of the system that searches them; by default the best that each supports.
        assignments: `KEY=VALUE`: settings of the server, which begin with `serve.`, and of the system.
        writer: What writes citation texts.

    Raises:
        CiterecError: An index or the writer cannot be opened, or a setting is wrong.
    """
    settings = ServeSettings.load([one for one in assignments if one.startswith(_PREFIX)])
    of_system = [one for one in assignments if not one.startswith(_PREFIX)]
    indexes = {name: ServedIndex(path, system, of_system, name) for name, path in places.items()}
    service = Service(indexes, settings, open_writer(writer, "citation"))
    for index in indexes.values():
        index.open()
    return service


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]
"""The type of an endpoint's argument that gets the service."""


@dataclass(frozen=True)
class Call:
    """What a request is answered from: the service, the system that searches the index that it names, and its name."""

    service: Service
    system: Recommender
    system_name: str


CallOf = Annotated[Call, Depends(_service)]
"""The type of an endpoint's argument in which `of_index` puts a call."""


def of_index(work: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    """An endpoint that answers with the result of a function, and the name of the index, as JSON.

    All is made in a thread of the service. `asked`, an argument of the function, names the index, and may name the
    citing paper.
    """

    @functools.wraps(work)
    async def endpoint(asked: Any, call: Any, **arguments: Any) -> Response:
        service: Service = call  # so far

        def answer() -> bytes:
            index, system = service.open(asked.index, getattr(asked, "citing", None))
            found = work(asked=asked, call=Call(service, system, index.system), **arguments)
            return orjson.dumps({"index": index.name, **found})

        return Response(await service.threads.run(answer), media_type="application/json")

    return endpoint
