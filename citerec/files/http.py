"""HTTP with the manners that public sources ask for: a steady pace, retries, Retry-After, kept answers."""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
import requests
import urllib3
from requests import Response, Session
from requests.adapters import HTTPAdapter

from citerec.errors import CiterecError
from citerec.version import __version__

TRIES = 6
"""How often what may fail for a while is tried."""
BUSY = (429, 500, 502, 503, 504)
"""Answers of a server that may do better later."""
_SHORT_WAIT, _LONG_WAIT = 30, 600  # seconds that a server may ask us to wait

_EXPIRED = (401, 403)  # of a link that was signed for a while
_CHUNK = 1 << 18
_AS_IT_IS = {"Accept-Encoding": "identity"}

Value = TypeVar("Value")
Named = Mapping[str, Any] | None
Link = Callable[[bool], str]
"""The address of a file; called with True if the last one has expired, so that it must be asked for anew."""


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


class ChangedError(WebError):
    """A file changed on the server while it was read: what was read of it is worth nothing."""


@dataclass(eq=False, kw_only=True)
class Web:
    """Asks servers. Use one per process.

    Args:
        pace: Called before each request of `answer` and `json`, to wait; files are fetched without waiting.
        patience: Seconds before the second try; each further one waits twice as long. Retry-After comes first.
        tries: How often a server that is busy is asked.
        seconds: To wait for a connection; and between two parts of an answer.
        hurries: Whether a user waits for the answers: a server that cannot be reached is not asked again, nor one that
            wants us to wait for long.
        follows: Whether a server may send us to another address. A key would go there, too.
        new_session: Opens what requests are sent by, such as what keeps their answers.

    Attributes:
        size: The size in bytes of the file that is being fetched; None if the server does not say it.
    """

    pace: Callable[[], object] | None = None
    patience: float = 1.0
    tries: int = TRIES
    seconds: tuple[float, float] = (10, 60)
    hurries: bool = False
    follows: bool = True
    new_session: Callable[[], Session] = Session
    size: int | None = field(default=None, init=False)

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

    def headers(self, url: str) -> Mapping[str, str]:
        """The headers of a file, without the file, with its size as `chunks` gives it; errors as for `answer`."""
        return self.answer(url, headers=_AS_IT_IS, method="HEAD").headers

    def chunks(self, link: Link) -> Iterator[bytes]:
        """The bytes of a file, as they come; `size` has its size from then on.

        Where the connection breaks it goes on at the next byte. It gives up after some failures without a byte between
        them. At the end it asks for what comes after the last byte: a proxy may have cut an answer and its length, and
        a gzip file of several members may have been cut between two of them.

        Raises:
            ChangedError: The file has changed meanwhile: begin again.
            WebError: The file cannot be fetched.
        """
        done, tag, failed, came, self.size = 0, None, 0, False, None
        url = link(False)
        while True:
            fields = _AS_IT_IS | ({"Range": f"bytes={done}-"} if done else {})
            if done and tag and not tag.startswith("W/"):
                fields["If-Range"] = tag
            before = done
            try:
                with self.session.get(url, headers=fields, timeout=self.seconds, stream=True) as response:
                    if response.status_code in _EXPIRED and failed < TRIES:
                        url = link(True)
                        failed += 1
                        continue
                    # At the end; or the server knows no ranges, so that nothing more can be learnt.
                    if (done and response.status_code == 416) or (came and response.status_code == 200):
                        return
                    if not response.ok:
                        raise refused(url, response.status_code)
                    tag = _same_file(response, url, done, tag, came=came)
                    skipped = done if response.status_code == 200 else 0  # the server knows no ranges
                    if (length := response.headers.get("Content-Length", "")).isdigit():
                        self.size = int(length) + done - skipped
                    # Not `iter_content`: it would unzip what a server calls an encoding, and Range counts zipped bytes.
                    for chunk in response.raw.stream(_CHUNK, decode_content=False):
                        fresh = chunk[skipped:]
                        skipped -= len(chunk) - len(fresh)
                        done += len(fresh)
                        yield fresh
                    whole = response.headers.get("Content-Range", "").rpartition("/")[2]
                    if (whole.isdigit() and done >= int(whole)) or (came and done == before):
                        return
                    came = True
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                failed = 1 if done > before else failed + 1
                if failed >= TRIES:
                    raise unreachable(url, error) from error
                time.sleep(self.patience * 2 ** (failed - 1))

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
                    pace()
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


def _same_file(response: Response, url: str, done: int, tag: str | None, *, came: bool) -> str | None:
    """The tag of a file; ChangedError if it is another one than before.

    What seemed whole and had no tag, where the file has one, was a page that said something else.
    """
    stamp = response.headers.get("ETag") or response.headers.get("Last-Modified")
    begin = response.headers.get("Content-Range", f"bytes {done}-").removeprefix("bytes ").partition("-")[0]
    if (stamp and stamp != tag and (came or (done and tag))) or (response.status_code == 206 and begin != str(done)):
        raise ChangedError(f"{host_of(url)} has another file there than before", "Begin with this file again.")
    return stamp or tag


def size_of(headers: Mapping[str, str]) -> int | None:
    """The size of a file on a server; None if the server does not say it."""
    size = headers.get("Content-Length", "")
    return int(size) if size.isdecimal() else None


def host_of(url: str) -> str:
    """The server of an address, for messages."""
    return urlsplit(url).netloc or url
