"""Addresses of Qdrant and connections to them. Only this module sees the key."""

import atexit
import contextlib
import functools
import os
import re
import socket
import textwrap
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from citerec.errors import InputError, ServiceError
from citerec.files.text import one_line
from citerec.index.base import PAPERS

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

KEY = "CITEREC_QDRANT_API_KEY"
"""Name of the environment variable that holds the key of the server."""

LOCAL = "path:"
"""Before a folder, of the local mode of qdrant-client, which compares everything: for tests."""

FORM = "Write http://HOST:6333/NAME, or for tests, on this machine, path:FOLDER/NAME."

_NAME = r"(?P<name>\w[\w.-]{0,99})"
# No "@": an address with a user or a password is never taken, nor shown.
_SERVER = re.compile(rf"(?P<place>https?://(?:[\w.-]+|\[[\w:.]+\])(?::\d{{1,5}})?(?:/[\w./-]+)?)/{_NAME}/?", re.ASCII)
_FOLDER = re.compile(rf"{LOCAL}(?P<folder>[^\0]*[^\0/])/{_NAME}/?", re.ASCII)
_REACHED_WITHIN = 5.0  # seconds
_ANSWERED_WITHIN = 60  # seconds: of uploads too
_SHOWN = 160  # characters of what a server says

_opening = threading.Lock()


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
        with contextlib.suppress(ValueError):  # of port 65536, or the host a..b
            if found := _SERVER.fullmatch(text):
                where = urlsplit(found["place"])
                (where.hostname or "").encode("idna")
                if where.port != 0:
                    return cls(found["place"].rstrip("/"), found["name"])
        if found := _FOLDER.fullmatch(text):
            return cls(f"{LOCAL}{Path(found['folder']).expanduser().absolute()}", found["name"])
        raise InputError("this is not an address of Qdrant that citerec knows", FORM)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder, of qdrant-client's local mode, which compares everything: for tests."""
        return self.place.startswith(LOCAL)

    @property
    def client(self) -> "QdrantClient":
        """The client of the package qdrant-client, one for all of this process; use it within `failures`.

        Raises:
            ServiceError: No server answers within seconds, or the folder is in use.
            SettingsError: A package is missing.
        """
        with _opening, failures(self):
            return _client(self.place, os.environ.get(KEY, "").strip())

    def alias(self, kind: str) -> str:
        """The name under which `PAPERS` or `CITANCES` are read."""
        return self.name if kind == PAPERS else f"{self.name}-{kind}"

    def __str__(self) -> str:
        return f"{self.place}/{self.name}"


@functools.cache
def _client(place: str, key: str) -> "QdrantClient":
    """A client of a server or a folder, open until the process ends: a folder can be opened only once."""
    from qdrant_client import QdrantClient

    if place.startswith(LOCAL):
        local = QdrantClient(path=place.removeprefix(LOCAL), force_disable_check_same_thread=True)
        atexit.register(local.close)  # when Python ends, its own destructor is too late
        return local
    where = urlsplit(place)
    port = where.port or (443 if where.scheme == "https" else 6333)
    # A wrong address is known in seconds, however long an upload may take.
    socket.create_connection((where.hostname, port), _REACHED_WITHIN).close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a key without encryption, which is said in docs/scale.md
        return QdrantClient(
            url=place,
            port=port,
            api_key=key or None,
            timeout=_ANSWERED_WITHIN,
            check_compatibility=False,
        )


@contextlib.contextmanager
def failures(address: Address) -> Iterator[None]:
    """Turns what the client raises into a ServiceError of one line, which never holds the key."""
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    place = address.place
    try:
        yield
    except UnexpectedResponse as error:
        if error.status_code in (401, 403):
            raise ServiceError(f"{place} refuses the key", f"Set {KEY} to its key.") from None
        reason = f"{error.status_code} {_short(error.reason_phrase)}"
        raise ServiceError(f"{place} refuses the request ({reason})", "See the log of the server.") from None
    except (OSError, ResponseHandlingException) as error:
        if address.is_local:
            raise ServiceError(
                f"cannot use {place} ({_short(error)})", "Give a folder that may be written to."
            ) from None
        remedy = f"Check the address, and that the server runs. {FORM}"
        raise ServiceError(f"no server answers at {place} ({_short(error)})", remedy) from None
    except RuntimeError as error:
        if "already accessed" not in str(error):
            raise
        remedy = "Wait for it, or stop it; a server has any number of readers."
        raise ServiceError(f"{place} is in use by another process", remedy) from None


def _short(said: object) -> str:
    return textwrap.shorten(one_line(str(getattr(said, "strerror", None) or said)), _SHOWN, placeholder="…")
