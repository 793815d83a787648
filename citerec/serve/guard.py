"""What every request passes before the app: host, token, size and time of the body, security headers."""

import asyncio
import contextlib
import hmac
import ipaddress
import time
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from fastapi import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citerec.errors import InputError, SettingsError
from citerec.serve.errors import error_response
from citerec.serve.service import Metrics, ServeSettings

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
