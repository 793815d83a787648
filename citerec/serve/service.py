"""What the endpoints share: settings, indexes, threads, the writer, metrics; errors as answers; and the guard.

The guard is what every request passes before the app: host, token, size and time of the body, security headers.
"""

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import orjson
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citerec.errors import CiterecError, FilterError, InputError, QueryError, SettingsError, WriterError
from citerec.files.text import names_in
from citerec.recommend import Recommender
from citerec.records import Context, Paper
from citerec.serve.indexes import Matches, NotFoundError, ServedIndex, known_papers, shown
from citerec.settings import PartSettings, assign, setting_keys
from citerec.write.drafting import CitationText, citation_task, draft
from citerec.write.writers.base import Writer, open_writer

log = logging.getLogger("citerec.serve")

_RETRY_SECONDS = 2
_LONGEST = 500
_SEE = "See /api/v1/openapi.json for what this address takes."


class RequestError(InputError):
    """A request goes over a limit, or has a draft or a bibliography that cannot be used."""


class BusyError(CiterecError):
    """The server has no time for a request now."""


_STATUS: dict[type[CiterecError], int] = {
    NotFoundError: 404,
    RequestError: 422,
    QueryError: 422,
    FilterError: 422,
    SettingsError: 422,
    BusyError: 503,
    WriterError: 503,
}
"""The errors that are shown as they are. All others may name files of this machine: they are logged."""

_TEXTS = {
    400: ("the body is not JSON", "Send one JSON object in UTF-8."),
    401: ("a token is needed", "Send it: Authorization: Bearer TOKEN"),
    404: ("there is nothing at this address", "See /api/v1/openapi.json for the addresses."),
    405: ("this address does not take this method", _SEE),
    408: ("the body took too long to arrive", "Send it at once."),
    413: ("the body is too long", "Send less text at a time."),
    415: ("the body must be JSON", "Send the header Content-Type: application/json"),
    500: ("this is a fault of citerec", "Please report it: the log of the server has the details."),
    503: ("the index or a model cannot be used now", "The log of the server says why."),
}
_OTHER = ("the request cannot be answered", _SEE)


class ErrorAnswer(BaseModel):
    """An error: what is wrong, and what to do."""

    error: str
    remedy: str


ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorAnswer, "description": "A token is needed"},
    422: {"model": ErrorAnswer, "description": "The request is wrong"},
    503: {"model": ErrorAnswer, "description": "Too busy, or an index cannot be used"},
}
"""The errors that every endpoint may answer with."""


def error_response(
    status: int, error: str = "", remedy: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """An error as JSON: `{"error": …, "remedy": …}`; in the words of its status where no others are given."""
    headers = dict(headers or {})
    if status == 503:
        headers.setdefault("Retry-After", str(_RETRY_SECONDS))
    if status == 408:  # not for 413: a client that still sends would never see the answer
        headers["Connection"] = "close"
    if not error:
        error, remedy = _TEXTS.get(status, _OTHER)
    texts = {"error": shown(error, _LONGEST), "remedy": shown(remedy, _LONGEST)}
    return Response(orjson.dumps(texts), status, headers, media_type="application/json")


async def _answer_to(_: Request, error: Exception) -> Response:
    """The answer to a request that failed."""
    match error:
        case RequestValidationError():
            return _invalid(error.errors()[0])
        case HTTPException():
            return error_response(error.status_code, headers=error.headers)
        case CiterecError():
            for kind in type(error).__mro__:
                if kind in _STATUS:
                    return error_response(_STATUS[kind], error.message, error.remedy)
            log.error("%s", error)
            return error_response(503)
    return error_response(500)


def _invalid(fault: Mapping[str, Any]) -> Response:
    """The answer to a request with a wrong field."""
    if fault["type"] == "json_invalid":
        return error_response(400)
    field = ".".join(str(part) for part in fault["loc"][1:])
    if fault["type"] == "extra_forbidden":
        return error_response(422, f"there is no field {field!r}", _SEE)
    message = str(fault["msg"]).removeprefix("Value error, ")
    return error_response(422, f"{field or 'the body'}: {message[:1].lower()}{message[1:]}", _SEE)


def add_error_handlers(app: FastAPI) -> None:
    """Every error of an app becomes JSON."""
    for kind in (CiterecError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _answer_to)


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


API = "/api/"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16
_SECURITY = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_tokens(file: Path | None, given: str | None) -> tuple[bytes, ...]:
    """The tokens of a file, one a line, or else the given one; empty if there is neither.

    Raises:
        InputError: The file cannot be read, or has no token.
        SettingsError: A token is too short, or not plain ASCII.
    """
    try:
        lines = file.read_text(encoding="utf-8").split() if file else (given or "").split()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the tokens of {file}: {error}", "Give a text file, one token a line.") from error
    if file and not lines:
        raise InputError(f"{file} has no token", "Write one in it, for example from: openssl rand -hex 32")
    for token in lines:
        if len(token) < _LEAST_TOKEN or not token.isascii():
            raise SettingsError(
                f"a token has fewer than {_LEAST_TOKEN} characters, or others than ASCII's",
                "Make one: openssl rand -hex 32",
            )
    return tuple(token.encode() for token in lines)


def has_token(header: str, tokens: Collection[bytes]) -> bool:
    """Whether an Authorization header has one of the tokens. Takes equally long for every wrong token."""
    scheme, _, token = header.partition(" ")
    sent = token.strip().encode("utf-8", "replace")
    same = [hmac.compare_digest(sent, one) for one in tokens]
    return any(same) and scheme.lower() == "bearer"


def host_of(header: str) -> str | None:
    """The name in a Host header, without its port; None if it is not a name."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


class _SlowReaderError(Exception):
    """A client does not read its answer."""


class Guard:
    """Wraps the app, and measures it. All refusals are JSON.

    Args:
        app: The app.
        settings: The limits.
        metrics: Where requests are counted and timed.
        tokens: Whoever calls must have one of them, unless there is none.
        hosts: What the Host header may name; anything if empty.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        metrics: Metrics,
        tokens: Collection[bytes] = (),
        hosts: Collection[str] = (),
    ) -> None:
        self._app, self._settings, self._metrics, self._tokens, self._hosts = app, settings, metrics, tokens, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        status, begun = 0, time.perf_counter()

        async def send_secured(message: Message) -> None:
            # Waits while a client does not read what it was sent.
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers.update(_SECURITY)
                # The page's files are asked for again each time, so that a new version is seen.
                headers["Cache-Control"] = "no-store" if scope["path"].startswith(API) else "no-cache"
            try:
                async with asyncio.timeout(self._settings.body_seconds):
                    await send(message)
            except TimeoutError:
                raise _SlowReaderError from None

        # Where a client does not read its answer, the server closes its connection.
        with self._metrics.in_flight.track_inprogress(), contextlib.suppress(_SlowReaderError):
            try:
                await (self._refusal(scope) or self._app)(scope, self._in_time(receive), send_secured)
            finally:
                self._metrics.note(scope, status, time.perf_counter() - begun)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that the app must not see."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._hosts and host_of(headers.get("host", "")) not in self._hosts:
            # A web page whose name was made to point to this machine sends its own name.
            return error_response(400, "this server has another name", "Allow the name: -c serve.hosts=NAME")
        is_guarded = path.startswith(API) or path == "/metrics"  # whoever watches /health or /ready needs no token
        if is_guarded and self._tokens and not has_token(headers.get("authorization", ""), self._tokens):
            return error_response(401, headers={"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._settings.body_bytes:
            return error_response(413)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Web pages elsewhere can make a browser send forms and plain text, but not JSON.
        if scope["method"] == "POST" and path.startswith(API) and kind != "application/json":
            return error_response(415)
        return None

    def _in_time(self, receive: Receive) -> Receive:
        """`receive`, which fails when the body is not complete in time. No thread works before it is."""
        deadline = asyncio.get_running_loop().time() + self._settings.body_seconds
        is_complete = False

        async def receive_in_time() -> Message:
            nonlocal is_complete
            if is_complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408) from None
            is_complete = not message.get("more_body", False)
            return message

        return receive_in_time
