"""What every request passes before the app: host, token, rate, size and time of the body, security headers."""

import asyncio
import contextlib
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citerec.serve.access import Rates, host_of, token_of
from citerec.serve.errors import HTTP_ERRORS, error_response
from citerec.serve.settings import ServeSettings

API = "/api/"
_SECURITY = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _SlowReaderError(Exception):
    """A client does not read its answer."""


class Guard:
    """Wraps the app. All refusals are JSON.

    Args:
        app: The app.
        settings: The limits.
        tokens: Whoever calls must have one of them, unless there is none.
        hosts: What the Host header may name; anything if empty.
    """

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, tokens: Collection[bytes] = (), hosts: Collection[str] = ()
    ) -> None:
        self._app, self._settings, self._tokens, self._hosts = app, settings, tokens, hosts
        self._rates = Rates(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            # Waits while a client does not read what it was sent.
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY.items():
                    headers[name] = value
                # The page's files are asked for again each time, so that a new version is seen.
                headers["Cache-Control"] = "no-store" if scope["path"].startswith(API) else "no-cache"
            try:
                async with asyncio.timeout(self._settings.body_seconds):
                    await send(message)
            except TimeoutError:
                raise _SlowReaderError from None

        app = self._refusal(scope) or self._app
        with contextlib.suppress(_SlowReaderError):  # the server closes its connection
            await app(scope, self._in_time(receive), send_secured)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that the app must not see."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._hosts and host_of(headers.get("host", "")) not in self._hosts:
            # A web page whose name was made to point to this machine sends its own name.
            return error_response(400, "this server has another name", "Allow the name: -c serve.hosts=NAME")
        is_guarded = path.startswith(API) or path == "/metrics"  # whoever watches /health or /ready needs no token
        token = token_of(headers.get("authorization", ""), self._tokens) if self._tokens and is_guarded else None
        client = scope["client"][0] if scope.get("client") else ""
        if is_guarded and self._tokens and token is None:
            if seconds := self._rates.wait(f"client {client}"):  # nobody may try tokens without end
                return _too_many(seconds)
            return error_response(
                401, "a token is needed", "Send it: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )
        if path.startswith(API) and (
            seconds := self._rates.wait(f"client {client}" if token is None else f"token {token}")
        ):
            return _too_many(seconds)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._settings.body_bytes:
            return error_response(413, *HTTP_ERRORS[413])
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Web pages elsewhere can make a browser send forms and plain text, but not JSON.
        if scope["method"] == "POST" and path.startswith(API) and kind != "application/json":
            return error_response(415, "the body must be JSON", "Send the header Content-Type: application/json")
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


def _too_many(seconds: int) -> Response:
    return error_response(
        429, "too many requests", f"Try again in {seconds} seconds, or less often.", {"Retry-After": str(seconds)}
    )
