"""Runs the app in a server, until it is told to stop."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Collection, Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from citerec.errors import InputError
from citerec.serve.access import LOOPBACK, is_loopback
from citerec.serve.app import make_app
from citerec.serve.service import Service

_GRACE_SECONDS = 5
_HEADER_BYTES = 16_384


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; an InputError if the address is taken or not of this machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((str(address[0]), port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        text = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot listen on {host}, port {port}: {text}", "Give another --host or --port.") from error


def serve(
    service: Service,
    listening: socket.socket,
    host: str,
    tokens: Collection[bytes] = (),
    *,
    log: bool = False,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or SIGINT; requests that are being answered are finished, then the indexes closed.

    Args:
        service: What to serve.
        listening: The socket.
        host: The address as the user gave it.
        tokens: Whoever calls needs one of them, unless there is none.
        log: Print a line for each request.
        on_start: Called when requests are taken.
    """
    settings = service.settings
    hosts = {name.lower() for name in settings.hosts}
    if is_loopback(host):
        hosts |= {*LOOPBACK, host}
    config = uvicorn.Config(
        make_app(service, tokens, hosts),
        http=_protocol(settings.body_seconds),
        ws="none",
        lifespan="on",
        log_config=uvicorn.config.LOGGING_CONFIG if log else None,
        log_level="info" if log else "error",
        access_log=log,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        limit_concurrency=settings.connections,
        timeout_graceful_shutdown=int(settings.body_seconds + settings.seconds + _GRACE_SECONDS),
        h11_max_incomplete_event_size=_HEADER_BYTES,
    )
    on_start()
    with _quiet_signals():
        uvicorn.Server(config).run(sockets=[listening])


def _protocol(seconds: float) -> type[H11Protocol]:
    """Uvicorn's, which also closes a connection that does not send the head of its next request in time."""

    class Protocol(H11Protocol):
        late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait_for_request()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait_for_request()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.late is not None:
                self.late.cancel()

        def _wait_for_request(self) -> None:
            if self.late is not None:
                self.late.cancel()
            self.late = self.loop.call_later(seconds, self._close_if_silent)

        def _close_if_silent(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Protocol


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Uvicorn sends itself the signal again after it stopped; a clean stop is no error."""
    kept = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)
