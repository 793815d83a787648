"""Addresses of Qdrant and connections to them. Only this module sees the key."""

import contextlib
import os
import re
import socket
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from citerec.errors import InputError, ServiceError
from citerec.files.text import one_line

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

KEY = "CITEREC_QDRANT_API_KEY"
"""Name of the environment variable that holds the key of the server."""

FORM = "Write http://HOST:6333/NAME, or for tests, on this machine, path:FOLDER/NAME."

_NAME = r"(?P<name>\w[\w.-]{0,99})"
# No "@": an address with a user or a password is never taken, nor shown.
_SERVER = re.compile(rf"(?P<place>https?://(?:[\w.-]+|\[[\w:.]+\])(?::\d{{1,5}})?(?:/[\w./-]+)?)/{_NAME}/?", re.ASCII)
_FOLDER = re.compile(rf"path:(?P<folder>[^\0]*[^\0/])/{_NAME}/?", re.ASCII)
_REACHED_WITHIN = 5.0  # seconds
_ANSWERED_WITHIN = 60  # seconds: of uploads too
_SHOWN = 160  # characters of what a server says


class Address(NamedTuple):
    """Where collections are: a server or a folder (`place`), and their name there."""

    place: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """An address as users write it; a folder becomes absolute.

        Raises:
            InputError: It has not this form. It is not shown: it may hold a password.
        """
        if (found := _SERVER.fullmatch(text)) and _is_possible(found["place"]):
            return cls(found["place"].rstrip("/"), found["name"])
        if found := _FOLDER.fullmatch(text):
            return cls(f"path:{Path(found['folder']).expanduser().absolute()}", found["name"])
        raise InputError("this is not an address of Qdrant that citerec knows", FORM)

    @property
    def folder(self) -> Path | None:
        """The folder of qdrant-client's local mode, which compares everything: for tests. None for a server."""
        kind, _, rest = self.place.partition(":")
        return Path(rest) if kind == "path" else None

    def __str__(self) -> str:
        return f"{self.place}/{self.name}"


def _is_possible(place: str) -> bool:
    """Whether a server can have this host and port."""
    with contextlib.suppress(ValueError):  # of port 65536, or the host a..b
        where = urlsplit(place)
        (where.hostname or "").encode("idna")
        return where.port != 0
    return False


class _Shared:
    """A client that several parts of this process use: a folder can be opened only once."""

    def __init__(self, client: "QdrantClient") -> None:
        self.client = client
        self.users = 0


_clients: dict[str, _Shared] = {}
_lock = threading.Lock()


class Connection:
    """A connection to an address, to be closed. Safe to use from several threads.

    Attributes:
        address: The address.
        client: The client of the package qdrant-client; use it within `failures`.

    Raises:
        ServiceError: No server answers within seconds, or the folder is in use.
        SettingsError: A package is missing.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        with _lock:
            if address.place not in _clients:
                with failures(address):
                    _clients[address.place] = _Shared(_client(address))
            self._shared = _clients[address.place]
            self._shared.users += 1
        self.client = self._shared.client
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the client closes with its last user."""
        with _lock:
            if not self._is_open:
                return
            self._is_open = False
            self._shared.users -= 1
            if not self._shared.users:
                del _clients[self.address.place]
                self._shared.client.close()


def _client(address: Address) -> "QdrantClient":
    from qdrant_client import QdrantClient

    if address.folder:
        return QdrantClient(path=str(address.folder), force_disable_check_same_thread=True)
    where = urlsplit(address.place)
    port = where.port or (443 if where.scheme == "https" else 6333)
    # A wrong address is known in seconds, however long an upload may take.
    socket.create_connection((where.hostname, port), _REACHED_WITHIN).close()
    key = os.environ.get(KEY, "").strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a key without encryption, which is said in docs/qdrant.md
        return QdrantClient(
            url=f"{where.scheme}://{where.netloc}",
            port=port,
            prefix=where.path.strip("/") or None,
            api_key=key or None,
            timeout=_ANSWERED_WITHIN,
            check_compatibility=False,
        )


@contextlib.contextmanager
def failures(address: Address) -> Iterator[None]:
    """Turns what the client raises into a ServiceError of one line, which never holds the key."""
    check = f"Check the address, and that the server runs. {FORM}"
    try:
        yield
    except OSError as error:
        if address.folder:
            why = f"cannot use {address.place} ({error.strerror or error})"
            raise ServiceError(why, "Give a folder that may be written to.") from None
        if isinstance(error, TimeoutError):
            raise ServiceError(f"no server answers at {address.place}", check) from None
        raise ServiceError(f"no server answers at {address.place} ({error.strerror or error})", check) from None
    except Exception as error:
        kind = type(error)
        status = getattr(error, "status_code", None)
        if kind.__name__ == "ResponseHandlingException":
            raise ServiceError(f"{address.place} does not answer ({_short(error)})", check) from None
        if status in (401, 403):
            raise ServiceError(f"{address.place} refuses the key", f"Set {KEY} to its key.") from None
        if kind.__name__ == "UnexpectedResponse":
            said = f"{status} {_short(getattr(error, 'reason_phrase', ''))}"
            raise ServiceError(f"{address.place} refuses the request ({said})", "See the log of the server.") from None
        if "already accessed" in str(error):
            busy = f"{address.place} is in use by another process"
            raise ServiceError(busy, "Wait for it, or stop it; a server has any number of readers.") from None
        raise


def _short(said: object) -> str:
    text = one_line(str(said))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
