"""What the endpoints share: settings, indexes, threads, the process for drafts, the writer, metrics."""

import asyncio
import contextlib
import functools
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, cast

import orjson
from fastapi import Depends, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import Field

from citerec.drafts.online import OnlineSettings
from citerec.errors import CiterecError, QueryError
from citerec.files.parallel import end_with
from citerec.files.progress import STAGE_WATCHERS
from citerec.recommend import Recommender
from citerec.records import Context, Paper
from citerec.serve.indexes import Matches, NotFoundError, ServedIndex, known_papers, log
from citerec.settings import PartSettings
from citerec.systems import Names
from citerec.write.drafting import CitationText, citation_task, draft
from citerec.write.writers.base import open_writer


class BusyError(CiterecError):
    """The server has no time for a request now; after `retry_seconds` it may have."""

    retry_seconds = 1


Result = TypeVar("Result")

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where it is set, prometheus_client counts in files that all processes read."""
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServeSettings(PartSettings):
    """Limits, time-outs and threads of the server. On the command line: `-c serve.KEY=VALUE`.

    Attributes:
        hosts: further names of this server that the Host header may have
        threads: threads that search; 0 for one for each processor, at least two
        queue: requests that may wait for a thread; further ones get 503
        drain: seconds after SIGTERM in which requests are still taken, and /ready answers 503
        seconds: longest time for the answer to a request; then 503
        body_seconds: longest time to send a body; then 408
        body_bytes: longest body, in bytes; then 413
    """

    hosts: Names = ()
    threads: int = Field(default=0, ge=0, le=256)
    queue: int = Field(default=16, ge=0)
    drain: float = Field(default=0, ge=0, le=3600)
    seconds: float = Field(default=30, gt=0, le=3600)
    body_seconds: float = Field(default=10, gt=0, le=3600)
    body_bytes: int = Field(default=1_048_576, ge=1024)


_REFUSED_AFTER = 0.25  # seconds


class Threads:
    """Runs functions in threads, and refuses them if too many wait.

    Args:
        threads: How many run at once.
        queue: How many may wait for a thread.
        seconds: How long a caller waits for a result.
        waiting: Counts those that wait for a thread.
    """

    def __init__(self, threads: int, queue: int, seconds: float, waiting: Gauge) -> None:
        self._pool = ThreadPoolExecutor(threads, "serve")
        self._room = threading.Semaphore(threads + queue)
        self._seconds, self._rounds = seconds, (threads + queue) / threads
        self._waiting = waiting
        self._mean = 0.0  # seconds of a function, the last ones most

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
            # Clients that ask again at once would keep the processors busy with refusals.
            await asyncio.sleep(_REFUSED_AFTER)
            busy = BusyError("too many requests wait already", "Try again in a moment.")
            busy.retry_seconds = math.ceil(self._mean * self._rounds) or 1  # until those that wait are answered
            raise busy
        self._waiting.inc()
        future = self._pool.submit(self._timed, work)
        future.add_done_callback(self._left)
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([waiting], timeout=self._seconds)
        if not done:
            future.cancel()  # it leaves the queue now, if it has not begun; the next line would do so a turn later
            waiting.cancel()  # nobody asks what becomes of it
            raise BusyError(f"this took more than {self._seconds:g} seconds", "Send less text, or try again later.")
        return waiting.result()

    def _left(self, future: Future[Any]) -> None:
        self._room.release()
        if future.cancelled():  # it never had a thread
            self._waiting.dec()

    def _timed(self, work: Callable[[], Result]) -> Result:
        self._waiting.dec()
        begun = time.perf_counter()
        try:
            return work()
        finally:
            self._mean += (time.perf_counter() - begun - self._mean) / 8

    def close(self) -> None:
        """Waits for the functions that run, and ends the threads; those that wait for a thread are dropped."""
        self._pool.shutdown(cancel_futures=True)


_MEMORY = 2 << 30  # bytes that a draft may take
_TOO_MUCH = "this took too much memory", "Send less text."


class DraftProcess:
    """A process that answers requests with the texts of drafts: it is killed if one takes too much time or memory.

    It starts with the first request, and opens indexes and the writer of its own. For one thread at a time.

    Args:
        open_service: Opens what it answers from.
        seconds: How long an answer may take.
    """

    def __init__(self, open_service: Callable[[], "Service"], seconds: float) -> None:
        self._open_service, self._seconds = open_service, seconds
        self._pipe: Connection | None = None

    def answer(self, endpoint: Callable[..., Any], request: Any) -> tuple[bytes, list[tuple[str, float]]]:
        """What an endpoint answers, and the stages of its search with their seconds.

        Raises:
            BusyError: It took too much time or memory.
            CiterecError: The endpoint raised it, or the service cannot be opened.
        """
        try:
            pipe = self._pipe or self._begun()
            pipe.send((endpoint, request))
            if not pipe.poll(self._seconds):
                raise BusyError(f"this took more than {self._seconds:g} seconds", "Send less text.")
            outcome, stages = pipe.recv()
        except (BusyError, EOFError, OSError) as error:
            self.close()
            raise error if isinstance(error, BusyError) else BusyError(*_TOO_MUCH) from error
        if isinstance(outcome, Exception):
            raise outcome
        return outcome, stages

    def _begun(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe()
        self._process = context.Process(target=_answer_drafts, args=(self._open_service, other), daemon=True)
        self._process.start()
        other.close()
        self._pipe = pipe
        if fault := pipe.recv():
            self.close()
            raise fault
        return pipe

    def close(self) -> None:
        """Kills the process; the next request begins another one."""
        if self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._pipe = None


def limit_memory(more: int) -> None:
    """Limits this process to so many bytes more than its peak so far; beyond it gets a MemoryError. Only on Linux."""
    if sys.platform == "linux":
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + more
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _answer_drafts(open_service: Callable[[], "Service"], pipe: Connection) -> None:
    """Answers requests until it is killed, one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent, which ends this process
    end_with(os.getppid())
    try:
        service = open_service()
    except CiterecError as error:
        pipe.send(error)
        return
    stages = list[tuple[str, float]]()
    STAGE_WATCHERS[:] = [lambda name, seconds: stages.append((name, seconds))]
    limit_memory(_MEMORY)
    pipe.send(None)
    while True:
        endpoint, request = pipe.recv()
        outcome: object
        try:
            outcome = service.answer(endpoint.__wrapped__, request)
        except CiterecError as error:
            outcome = error
        except MemoryError:
            outcome = BusyError(*_TOO_MUCH)
        except Exception as error:
            log.exception("a fault of citerec")
            outcome = RuntimeError(str(error))
        pipe.send((outcome, stages))
        stages.clear()


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        gauge = functools.partial(Gauge, registry=self.registry)
        now = functools.partial(gauge, multiprocess_mode="livesum")
        histogram = functools.partial(Histogram, registry=self.registry)
        ProcessCollector(registry=self.registry)
        self.requests = Counter("citerec_requests", "Requests.", ["route", "status"], registry=self.registry)
        self.seconds = histogram("citerec_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS)
        self.in_flight = now("citerec_requests_in_flight", "Requests at this moment.")
        self.waiting = now("citerec_requests_waiting", "Requests that wait for a thread.")
        self.papers = gauge("citerec_index_papers", "Papers of a loaded index.", ["index"], multiprocess_mode="max")
        self.loaded = gauge(
            "citerec_index_loaded", "1 if what is on disk is served.", ["index"], multiprocess_mode="livemin"
        )
        self._stages = histogram("citerec_stage_seconds", "Time of a stage.", ["stage"], buckets=(0.001, *_SECONDS))
        STAGE_WATCHERS.append(self.note_stage)

    def note_stage(self, name: str, seconds: float) -> None:
        """Times a stage of a search."""
        self._stages.labels(name).observe(seconds)

    def text(self) -> bytes:
        """All metrics as text; those of all processes together, where several answer."""
        registry = self.registry
        if METRICS_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class Service:
    """What the endpoints share; it is opened with all its indexes.

    Args:
        places: The directories of the indexes, by name; the first one is the default.
        system: Name of the system that searches them; by default the best that each supports.
        assignments: Settings of the system, as `KEY=VALUE`.
        writer: What writes citation texts; by default the writer that needs no model.
        settings: The limits.
        online: How web services are asked for entries; None for not at all.

    Raises:
        CiterecError: An index or the writer cannot be opened, or a setting is wrong.

    Attributes:
        indexes: The indexes, by name.
        threads: The threads that do the work.
        draft_threads: The one that waits for the process for drafts.
        metrics: The metrics.
        matches: Which papers the entries of bibliographies are.
        services: The web services that are asked for entries; none if the operator does not want that.
        is_draining: Whether the server is about to stop, and goes on only for those who do not know it yet.
    """

    is_draining = False

    def __init__(
        self,
        places: Mapping[str, Path],
        system: str | None,
        assignments: Sequence[str],
        writer: str | None,
        settings: ServeSettings,
        online: OnlineSettings | None = None,
    ) -> None:
        self.indexes = {name: ServedIndex(path, system, assignments, name) for name, path in places.items()}
        self.settings, self._writer = settings, open_writer(writer, "citation")
        self.metrics, self.matches, threads = Metrics(), Matches(), settings.threads or max(2, os.cpu_count() or 2)
        self.threads = Threads(threads, settings.queue, settings.seconds, self.metrics.waiting)
        self.draft_threads = Threads(1, settings.queue, settings.seconds, self.metrics.waiting)
        again = functools.partial(Service, places, system, assignments, writer, settings, online)
        self._draft_process = DraftProcess(again, settings.seconds)
        self._writing = threading.Lock()  # writers are not made for several threads
        self._opened = contextlib.ExitStack()
        self.services = self._opened.enter_context(online.opened()) if online else []
        for index in self.indexes.values():
            index.open()

    def close(self) -> None:
        """Ends the threads, and closes the indexes and the connections to web services."""
        self.threads.close()
        self.draft_threads.close()
        self._draft_process.close()
        STAGE_WATCHERS.remove(self.metrics.note_stage)
        for index in self.indexes.values():
            index.close()
        self._opened.close()

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

    def answer(self, work: Callable[..., dict[str, Any]], request: Any, **arguments: Any) -> bytes:
        """The result of the function of an endpoint, and the name of the index, as JSON."""
        index, system = self.open(request.index, getattr(request, "citing", None))
        fields = work(request=request, call=Call(self, system, index.system), **arguments)
        return orjson.dumps({"index": index.name, **fields})

    def answer_apart(self, endpoint: Callable[..., Any], request: Any) -> bytes:
        """What an endpoint answers to a request with texts of drafts, which are read in another process."""
        body, stages = self._draft_process.answer(endpoint, request)
        for name, seconds in stages:
            self.metrics.note_stage(name, seconds)
        return body

    def write(self, context: Context, papers: Sequence[Paper], citing: Paper | None = None) -> CitationText:
        """A citation text for a context; a QueryError if no paper has a text to write from."""
        task = citation_task(context, papers, citing)
        if not task.citing and not any(source.text for source in task.sources):
            raise QueryError("no paper to cite has an abstract", "Choose other papers, or write more of the sentence.")
        with self._writing:
            return draft(task, papers, self._writer)


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]
"""The type of an endpoint's argument that gets the service."""


class Call(NamedTuple):
    """What a request is answered from: the service, the system that searches the index that it names, and its name."""

    service: Service
    system: Recommender
    system_name: str


CallOf = Annotated[Call, Depends(_service)]
"""The type of an endpoint's argument in which `of_index` puts a call."""


def of_index(work: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    """An endpoint that answers with the result of a function, and the name of the index, as JSON.

    All is made in a thread of the service; or in a process, if the request has the texts of files. `request`, an
    argument of the function, names the index, and may name the citing paper.
    """

    @functools.wraps(work)
    async def endpoint(request: Any, call: Any, **arguments: Any) -> Response:
        service: Service = call  # so far
        if hasattr(request, "bibliography"):
            body = await service.draft_threads.run(functools.partial(service.answer_apart, endpoint, request))
        else:
            body = await service.threads.run(functools.partial(service.answer, work, request, **arguments))
        return Response(body, media_type="application/json")

    return endpoint
