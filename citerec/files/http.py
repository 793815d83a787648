"""HTTP with the manners that public sources ask for: a steady pace, retries, Retry-After, kept answers."""

import contextlib
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser, fromstring

import orjson
import requests
import urllib3
from filelock import FileLock
from requests import Response, Session
from requests.adapters import HTTPAdapter

from citerec.errors import CiterecError
from citerec.version import __version__

TRIES = 6
"""How often what may fail for a while is tried."""
BUSY = (429, 500, 502, 503, 504)
"""Answers of a server that may do better later."""
_SHORT_WAIT, _LONG_WAIT = 30, 600  # seconds that a server may ask us to wait

Value = TypeVar("Value")
Named = Mapping[str, Any] | None


class WebError(CiterecError):
    """A server does not answer, refuses, or answers something else than it should.

    Attributes:
        status: The number of its answer; None if it gave none.
        content: That answer.
        tried: Whether it was asked as often as makes sense.
    """

    def __init__(
        self, message: str, remedy: str, *, status: int | None = None, content: bytes = b"", tried: bool = False
    ) -> None:
        super().__init__(message, remedy)
        self.status, self.content, self.tried = status, content, tried


class Pace:
    """Waits so that all processes of this user together send at most one request in some seconds.

    Args:
        seconds: The least time between the beginnings of two requests; 0 for no limit.
        place: A file whose time of change is that of the last request.
    """

    def __init__(self, seconds: float, place: Path) -> None:
        self._seconds, self._place = seconds, place

    def wait(self) -> None:
        """Returns when a request may be sent."""
        if not self._seconds:
            return
        self._place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self._place}.lock"):
            with contextlib.suppress(FileNotFoundError):
                since = time.time() - self._place.stat().st_mtime
                time.sleep(min(self._seconds, max(0.0, self._seconds - since)))
            self._place.touch()


@dataclass(eq=False, kw_only=True)
class Web:
    """Asks servers. Use one per process.

    Args:
        pace: Waits before each request of `answer` and `json`; files are fetched without waiting.
        patience: Seconds before the second try; each further one waits twice as long. Retry-After comes first.
        tries: How often a server that is busy is asked.
        seconds: To wait for a connection; and between two parts of an answer.
        hurries: Whether a user waits for the answers: a server that cannot be reached is not asked again, nor one that
            wants us to wait for long.
        follows: Whether a server may send us to another address. A key would go there, too.
        new_session: Opens what requests are sent by, such as what keeps their answers.
    """

    pace: Pace | None = None
    patience: float = 1.0
    tries: int = TRIES
    seconds: tuple[float, float] = (10, 60)
    hurries: bool = False
    follows: bool = True
    new_session: Callable[[], Session] = Session

    def json(self, url: str, headers: Named = None) -> Any:
        """The JSON value that a server answers; an answer that breaks off or is none is asked for again.

        Errors as for `answer`.
        """

        def ask() -> Any:
            try:
                return orjson.loads(self.answer(url, headers=headers).content)
            except orjson.JSONDecodeError:
                raise WebError(f"{host_of(url)} answered something else than JSON", "Try again later.") from None

        return self.again(ask)

    def again(self, ask: Callable[[], Value]) -> Value:
        """What a function gets from a server; it is called again, some times, where an answer breaks off or is none."""
        failed = 0
        while True:
            try:
                return ask()
            except WebError as error:
                if error.status is not None or error.tried or (failed := failed + 1) == TRIES:
                    raise
                time.sleep(self.patience * 2 ** (failed - 1))

    def answer(
        self, url: str, parameters: Named = None, headers: Named = None, method: str = "GET", body: Any = None
    ) -> Response:
        """The answer to a request; a `body` is sent as JSON.

        Raises:
            WebError: The server cannot be reached, or refuses.
        """
        options: dict[str, Any] = {"timeout": self.seconds, "allow_redirects": self.follows}
        try:
            response = self.session.request(method, url, params=parameters, headers=headers, json=body, **options)
        except requests.RequestException as error:
            raise unreachable(url, error) from error
        if response.status_code != 200:
            raise refused(url, response.status_code, response.content)
        return response

    def close(self) -> None:
        """Closes its connections."""
        if session := self.__dict__.pop("session", None):
            session.close()

    @functools.cached_property
    def session(self) -> Session:
        """What sends requests: it waits, retries, and says who asks."""
        pace = self.pace

        class Paced(HTTPAdapter):
            """Waits before requests, but for parts of files; kept answers never come here."""

            def send(self, request: Any, stream: bool = False, *arguments: Any, **options: Any) -> Response:
                if pace and not stream:
                    pace.wait()
                return super().send(request, stream, *arguments, **options)

        session = self.new_session()
        session.headers["User-Agent"] = f"citerec/{__version__}"
        retry = urllib3.Retry(
            self.tries - 1,
            connect=0 if self.hurries else None,
            read=False if self.hurries else None,
            status_forcelist=BUSY,
            backoff_factor=self.patience,
            raise_on_status=False,
            allowed_methods=None,  # nothing that is sent changes anything there
            retry_after_max=_SHORT_WAIT if self.hurries else _LONG_WAIT,
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, Paced(max_retries=retry))
        return session


def refused(url: str, status: int, content: bytes = b"") -> WebError:
    """The error for an answer that is none; `status` is its number."""
    remedies = {
        401: "The key is missing or wrong.",
        403: "The key is missing or wrong, or this address may not be read.",
        404: "There is no such thing there.",
        429: "It is asked too often: wait some minutes, or use a key of your own.",
    }
    remedy = remedies.get(status, "Try again later: it goes on where it stopped.")
    return WebError(f"{host_of(url)} answered {status}", remedy, status=status, content=content)


def unreachable(url: str, error: Exception) -> WebError:
    """The error for an answer that never came, or broke off."""
    fault = f"{host_of(url)} cannot be reached ({type(error).__name__})"
    remedy = "Is there a network? Run the same command again: it goes on where it stopped."
    return WebError(fault, remedy, tried=isinstance(next(iter(error.args), None), urllib3.exceptions.MaxRetryError))


def host_of(url: str) -> str:
    """The server of an address, for messages."""
    return urlsplit(url).netloc or url


class _Tree(TreeBuilder):
    def doctype(self, *_: str | None) -> None:
        """Called where a document type begins, before its entities are read: these could be defined without end."""
        raise ValueError("the XML has a document type")


def read_xml(content: bytes) -> Element | None:
    """The root of an XML document; None if it is none, or has a document type."""
    try:
        return fromstring(content, XMLParser(target=_Tree()))
    except (ParseError, ValueError, LookupError):
        return None
