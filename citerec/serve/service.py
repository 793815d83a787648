"""What the endpoints share: indexes, threads, limits, the writer, metrics."""

import asyncio
import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, cast

import orjson
from fastapi import Depends, Request, Response

from citerec.errors import QueryError
from citerec.index.titles import papers_of_index
from citerec.recommend import Recommender
from citerec.records import MARKER, Context, Paper
from citerec.serve.errors import BusyError, LimitError
from citerec.serve.indexes import Indexes
from citerec.serve.metrics import Metrics
from citerec.serve.models import ErrorAnswer
from citerec.serve.settings import ServeSettings
from citerec.write.citation import CitationText, citation_task, draft
from citerec.write.writers import Writer

Made = TypeVar("Made")

_MOST = 50_000  # entries of bibliographies whose papers are remembered
_PART = 50  # entries after which answers are remembered: a request that took too long was not in vain

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        401: "A token is needed",
        422: "The request is wrong",
        429: "Too many requests",
        503: "Too busy, or an index cannot be used",
    }.items()
}
"""The errors that every endpoint may answer with."""


class Threads:
    """Runs functions in threads, and refuses them if too many wait.

    Args:
        threads: How many run at once.
        queue: How many may wait for a thread.
        seconds: How long a caller waits for a result.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, "serve")
        self._room = threads + queue
        self._seconds = seconds
        self._pending = 0
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether the next call would be refused."""
        return self._pending >= self._room

    async def run(self, work: Callable[[], Made]) -> Made:
        """The result of a function that runs in a thread.

        A function that takes too long goes on, and holds its thread until it ends: Python cannot stop a thread.

        Raises:
            BusyError: Too many functions wait already, or it took too long.
        """
        with self._lock:
            if self.is_full:
                raise BusyError("too many requests wait already", "Try again in a moment.")
            self._pending += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._ended)
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([waiting], timeout=self._seconds)
        if not done:
            future.cancel()  # it leaves the queue now, if it has not begun; `waiting.cancel()` would do so a turn later
            raise BusyError(f"this took more than {self._seconds:g} seconds", "Send less text, or try again later.")
        return waiting.result()

    def _ended(self, _: "Future[Any]") -> None:
        with self._lock:
            self._pending -= 1

    def close(self) -> None:
        """Waits for the functions that run, and ends the threads; those that wait for a thread are dropped."""
        self._pool.shutdown(cancel_futures=True)


class Matches:
    """Finds which papers of an index the entries of a bibliography are. Safe to use from several threads.

    Each is a search, so the answers are remembered: ids by digests, never texts.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, entries: Mapping[str, Paper], system: Recommender) -> dict[str, str]:
        """Ids of the entries that are papers of the index, by key."""
        digests = {key: _digest(system.manifest.fingerprint, key, entry) for key, entry in entries.items()}
        with self._lock:
            found = {key: self._known[digest] for key, digest in digests.items() if digest in self._known}
        new = [key for key in entries if key not in found]
        for start in range(0, len(new), _PART):
            part = new[start : start + _PART]
            matched = papers_of_index({key: entries[key] for key in part}, system.index)
            found |= {key: matched.get(key) for key in part}
            with self._lock:
                self._known.update((digests[key], found[key]) for key in part)
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
        return {key: paper_id for key in entries if (paper_id := found[key]) is not None}


def _digest(fingerprint: str, key: str, entry: Paper) -> bytes:
    about = (fingerprint, key, entry.title, entry.year, entry.authors, entry.external_ids.get("DOI"))
    return hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass
class Service:
    """What the endpoints share.

    Attributes:
        indexes: The indexes.
        settings: The limits.
        writer: Writes citation texts.
        writing: Held while it writes: writers are not made for several threads.
        threads: The threads that do the work.
        metrics: The metrics.
        matches: Which papers the entries of bibliographies are.
    """

    indexes: Indexes
    settings: ServeSettings
    writer: Writer
    writing: threading.Lock = field(default_factory=threading.Lock)
    threads: Threads = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    matches: Matches = field(default_factory=Matches)

    def __post_init__(self) -> None:
        made = self.settings
        self.threads = Threads(made.number_of_threads, made.queue, made.seconds)

    def close(self) -> None:
        """Ends the threads, and closes the indexes."""
        self.threads.close()
        self.indexes.close()

    def write(self, context: Context, papers: Sequence[Paper], citing: Paper | None = None) -> CitationText:
        """A citation text for a context; a QueryError if no paper has a text to write from."""
        task = citation_task(context, papers, citing)
        if not task.citing and not any(source.text for source in task.sources):
            raise QueryError("no paper to cite has an abstract", "Choose other papers, or write more of the sentence.")
        with self.writing:
            return draft(task, papers, self.writer)

    def check(self, text: str, k: int) -> None:
        """Raises a LimitError if a text or a list is too long."""
        limits = self.settings
        if len(text) > limits.characters:
            raise LimitError(
                f"the text has {len(text):,} characters, more than {limits.characters:,}", "Send a part of it."
            )
        if (refs := text.count(MARKER)) > limits.refs:
            raise LimitError(f"the text has {refs:,} {MARKER}, more than {limits.refs:,}", "Send a part of it.")
        if k > limits.k:
            raise LimitError(f"k is {k:,}, more than {limits.k:,}", f"Ask for at most {limits.k:,} papers.")


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]
"""The type of an endpoint's argument that gets the service."""


def in_thread(work: Callable[..., Any]) -> Callable[..., Any]:
    """An endpoint that answers with the result of a function as JSON; both are made in a thread of the service."""

    @functools.wraps(work)
    async def endpoint(service: Service, **arguments: Any) -> Response:
        content = await service.threads.run(lambda: orjson.dumps(work(service=service, **arguments)))
        return Response(content, media_type="application/json")

    return endpoint
