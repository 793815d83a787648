"""Asking a web service: answers are kept, a pace is held, and each way to fail has its remedy."""

import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from citerec.errors import ServiceError
from citerec.files.http import AGENT, Pace
from citerec.files.text import one_line

if TYPE_CHECKING:
    import requests

    from citerec.retrieve.live.base import LiveSettings

_BUSY = (429, 500, 502, 503, 504)
_LONGEST_WAIT = 30  # seconds that a service may ask us to wait
_SECONDS_OF_DAY = 86400
_SHOWN = 120  # characters of what a service says
_SECRETS = ("api_key", "mailto", "x-api-key")  # they are neither kept nor compared
_OTHERWISE = "or search an index of your own: citerec index build SOURCE… --out indexes/NAME"


def live_folder() -> Path:
    """Where the answers of web services are kept: a folder in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("citerec") / "live"


@dataclass(frozen=True, slots=True)
class Name:
    """What a service is called.

    Attributes:
        part: The name of the retriever that asks it.
        title: Its own name.
        key: The environment variable that holds a key.
        keys_from: Where keys are given out.
        lists: The key of its answers under which the papers are.
    """

    part: str
    title: str
    key: str
    keys_from: str
    lists: str


class Answer(NamedTuple):
    """The records of papers that a service lists, and whether it says that more follow."""

    papers: list[Any]
    has_next: bool


class Service:
    """A web service that answers with JSON. Safe to use from several threads.

    Args:
        name: What it is called.
        settings: How it is asked.
        has_key: Whether requests carry a key, for the remedies.
    """

    def __init__(self, name: Name, settings: "LiveSettings", *, has_key: bool) -> None:
        self._name, self._settings, self._has_key = name, settings, has_key
        self._lock = threading.Lock()
        self._opened: requests.Session | None = None

    def get(self, path: str, parameters: Mapping[str, str], headers: Mapping[str, str]) -> "Answer":
        """What it answers; an answer that is kept is not asked for again.

        Raises:
            ServiceError: It cannot be reached, refuses, or answers something else.
        """
        import requests

        address = f"{self._settings.url.rstrip('/')}/{path}"
        with self._lock:
            try:
                answer = self._session().get(
                    address,
                    params=dict(parameters),
                    headers=dict(headers),
                    timeout=self._settings.timeout,
                    allow_redirects=False,  # a key is for this address only
                )
                content = answer.content
            except requests.RequestException as error:
                raise self._unreachable(error) from error
            except (sqlite3.Error, OSError) as error:
                raise ServiceError(
                    f"the answers of {self._name.title} cannot be kept in {live_folder()} ({error})",
                    f"Remove this folder, or keep none: --set {self._section}.keep_days=0",
                ) from error
        if answer.status_code != requests.codes.ok:
            raise self._refused(answer.status_code, content)
        if (found := _answer(content, self._name.lists)) is None:
            raise ServiceError(
                f"{self._host} answered something else than a list of papers as JSON",
                f"Is there a proxy or a login page in between? Try again later, {_OTHERWISE}",
            )
        return found

    def close(self) -> None:
        """Closes its connections."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    @property
    def _host(self) -> str:
        return urlsplit(self._settings.url).netloc or self._settings.url

    @property
    def _section(self) -> str:
        return self._name.part.replace("-", "_")

    def _session(self) -> "requests.Session":
        if self._opened is None:
            self._opened = self._made()
        return self._opened

    def _made(self) -> "requests.Session":
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        settings, folder = self._settings, live_folder()
        pace = Pace(settings.pace, folder / f"{self._name.part}.pace")

        class Paced(HTTPAdapter):
            """Waits before requests; kept answers never come here."""

            def send(self, *arguments: Any, **options: Any) -> requests.Response:
                pace.wait()
                return super().send(*arguments, **options)

        if settings.keep_days:
            from requests_cache import CachedSession
            from requests_cache.backends.sqlite import SQLiteCache

            folder.mkdir(parents=True, exist_ok=True)
            session: requests.Session = CachedSession(
                # The default would be pickle.
                backend=SQLiteCache(folder / f"{self._name.part}.sqlite", serializer="json"),
                serializer="json",
                expire_after=int(settings.keep_days * _SECONDS_OF_DAY),
                stale_if_error=True,
                ignored_parameters=_SECRETS,
                filter_fn=lambda answer: _answer(answer.content, self._name.lists) is not None,
            )
        else:
            session = requests.Session()
        session.headers["User-Agent"] = AGENT
        retry = Retry(
            settings.tries - 1,
            connect=0,  # without a network the user waits for nothing
            read=False,
            status_forcelist=_BUSY,
            backoff_factor=1,
            raise_on_status=False,
            retry_after_max=_LONGEST_WAIT,
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, Paced(max_retries=retry))
        return session

    def _unreachable(self, error: Exception) -> ServiceError:
        import requests

        if isinstance(error, requests.Timeout):
            seconds = self._settings.timeout
            return ServiceError(
                f"{self._host} did not answer within {seconds:g} seconds",
                f"Wait longer: --set {self._section}.timeout={2 * seconds:g}, {_OTHERWISE}",
            )
        return ServiceError(
            f"{self._host} cannot be reached ({type(error).__name__})",
            f"Find a network, {_OTHERWISE}",
        )

    def _refused(self, status: int, content: bytes) -> ServiceError:
        name, found = self._name, _json_object(content) or {}
        said = next((found[key] for key in ("message", "error") if isinstance(found.get(key), str)), "")
        said = f": {one_line(said)[:_SHOWN]}" if said else ""
        message = f"{self._host} answered {status}{said}"
        if status in (401, 403):
            remedy = f"Check the key in {name.key}, or unset it." if self._has_key else f"Set a key: {self._key}."
        elif status == 429:
            wait = "Wait some minutes" if self._has_key else f"Use a key of your own: {self._key}, wait some minutes"
            remedy = f"{wait}, {_OTHERWISE}"
        elif status in _BUSY:
            remedy = f"Try again later, {_OTHERWISE}"
        else:
            remedy = f"Is {self._section}.url right? If so, {name.title} has changed: please report it."
        return ServiceError(message, remedy)

    @property
    def _key(self) -> str:
        return f"{self._name.key}=… ({self._name.keys_from})"


def _answer(content: bytes, lists: str) -> Answer | None:
    """The answer that some bytes are; None if they are none."""
    found = _json_object(content)
    papers = [] if found is None or found.get(lists) is None else found[lists]
    return Answer(papers, bool(found.get("next"))) if found is not None and isinstance(papers, list) else None


def _json_object(content: bytes) -> dict[str, Any] | None:
    """The JSON object that some bytes are; None if they are none."""
    import orjson

    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
