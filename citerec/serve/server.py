"""Runs the app in one server or in several processes, until they are told to stop."""

import asyncio
import contextlib
import functools
import math
import os
import signal
import socket
from collections.abc import Callable, Collection, Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.supervisors.multiprocess import Multiprocess

from citerec.errors import InputError
from citerec.files.parallel import end_with
from citerec.serve.app import make_app
from citerec.serve.guard import LOOPBACK, is_loopback
from citerec.serve.service import Service, metrics_of_workers

_GRACE_SECONDS = 5
_SILENT_SECONDS = 30  # after which a process that does not answer its parent is started anew
_HEADER_BYTES = 16_384
_CONNECTIONS = 1000  # at once; further ones get 503


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; an InputError if the address is taken or not of this machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((str(address[0]), port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        text = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot listen on {host}, port {port}: {text}", "Give another --host or --port.") from error


def serve(
    open_service: Callable[[], Service],
    listening: socket.socket,
    host: str,
    tokens: Collection[bytes] = (),
    *,
    workers: int = 1,
    log: bool = False,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or SIGINT; requests that are being answered are finished, then the indexes closed.

    Args:
        open_service: Opens what to serve. Each of several processes calls it, so it must be picklable.
        listening: The socket.
        host: The address as the user gave it.
        tokens: Whoever calls needs one of them, unless there is none.
        workers: How many processes answer. They share the socket, and the memory-mapped files of the indexes.
        log: Print a line for each request.
        on_start: Called when requests are taken.

    Raises:
        CiterecError: What is to be served cannot be opened.
    """
    service = open_service()
    settings = service.settings
    hosts = {name.lower() for name in settings.hosts}
    if is_loopback(host):
        hosts |= {*LOOPBACK, host}
    app: Any = make_app(service, tokens, hosts)
    if workers > 1:
        service.close()  # it was opened to know that it can be
        app = functools.partial(_app_of_worker, open_service, tokens, hosts, os.getpid())
    config = uvicorn.Config(
        app,
        factory=workers > 1,
        workers=workers,
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=uvicorn.config.LOGGING_CONFIG if log else None,
        log_level="info" if log else "error",
        access_log=log,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=math.ceil(settings.body_seconds),
        timeout_graceful_shutdown=int(settings.body_seconds + settings.seconds + _GRACE_SECONDS),
        timeout_worker_healthcheck=_SILENT_SECONDS,
        h11_max_incomplete_event_size=_HEADER_BYTES,
    )
    on_start()
    with _quiet_signals():
        if workers > 1:
            with metrics_of_workers():
                Multiprocess(config, [listening]).run()
        else:
            uvicorn.Server(config).run(sockets=[listening])


def _app_of_worker(
    open_service: Callable[[], Service], tokens: Collection[bytes], hosts: Collection[str], parent: int
) -> ASGIApp:
    """The app of one of several processes, which ends with its parent."""
    end_with(parent)
    return make_app(open_service(), tokens, hosts)


class _Protocol(H11Protocol):
    """Uvicorn's, which also closes a connection that does not send the head of its next request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look_later()

    def _look_later(self) -> None:
        self.loop.call_later(self.timeout_keep_alive, self._look, self.cycle)

    def _look(self, cycle: RequestResponseCycle | None) -> None:
        """Closes the connection if nothing is being answered, and no request came since the last look."""
        if self.cycle is cycle and (cycle is None or cycle.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
            self._look_later()


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Uvicorn sends itself the signal again after it stopped; a clean stop is no error."""
    kept = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)
