"""The indexes of a server, by name. One that is replaced on disk is opened anew while requests go on."""

import asyncio
import contextlib
import gc
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.errors import CiterecError, InputError, SettingsError
from citerec.index.generations import Identity, identity
from citerec.recommend import Recommender
from citerec.serve.finding import NotFoundError

log = logging.getLogger("citerec.serve")


@dataclass
class Served:
    """An open index. It is closed when it was replaced and nobody holds it any more.

    Attributes:
        name: Its name in requests.
        system: The name of its system.
        recommender: Searches it.
        identity: What changes when it is replaced.
    """

    name: str
    system: str
    recommender: Recommender
    identity: Identity | None


Open = Callable[[Path], tuple[str, Recommender]]
"""Opens an index: the name of its system, and the system."""


class Indexes:
    """The indexes of a server. Safe to use from several threads.

    Args:
        places: Their directories by name.
        open_index: Opens one.

    Raises:
        CiterecError: One cannot be opened.
    """

    def __init__(self, places: Mapping[str, Path], open_index: Open) -> None:
        self._places, self._open_index = dict(places), open_index
        self._served: dict[str, Served] = {}
        self._failed: dict[str, str] = {}
        self._has_closed = False
        try:
            for name in self._places:
                self._served[name] = self._open(name)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """Their names, in the order in which they were given."""
        return list(self._places)

    def get(self, name: str | None = None) -> Served:
        """An index, the first one by default; it stays open while it is held, whatever happens on disk.

        Raises:
            NotFoundError: There is no index of this name.
        """
        served = self._served.get(self.names[0] if name is None else name)
        if served is None:
            raise NotFoundError("there is no index of this name", f"The indexes are: {', '.join(self.names)}.")
        return served

    def refresh(self, name: str) -> bool:
        """Opens an index anew if it was replaced on disk; whether it was. Errors are logged, and the old one stays."""
        found = identity(self._places[name])
        if not found or found == self._served[name].identity:
            return False
        try:
            new = self._open(name)
        except (CiterecError, OSError) as error:
            if self._failed.get(name) != str(error):  # it is tried again at every look
                log.warning("%s was replaced, but cannot be opened; the old one is served: %s", name, error)
            self._failed[name] = str(error)
            return False
        self._served[name] = new
        self._failed.pop(name, None)
        log.info("%s was replaced: the new one is served", name)
        return True

    async def watch(self, seconds: float) -> None:
        """Looks for replaced indexes again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if self._has_closed:
                self._has_closed = False
                # Memory-mapped files are let go with the objects that hold them, and some of these are in cycles.
                await asyncio.to_thread(gc.collect)
            for name in self.names:
                try:
                    await asyncio.to_thread(self.refresh, name)
                except Exception:  # a fault here must not end the watch
                    log.exception("looking for a new %s failed", name)

    def close(self) -> None:
        """Closes all of them."""
        self._served.clear()

    def _close(self, recommender: Recommender) -> None:
        recommender.close()
        self._has_closed = True

    def _open(self, name: str) -> Served:
        path = self._places[name]
        found = identity(path)  # before it is opened: what changes later is seen at the next look
        system, recommender = self._open_index(path)
        with contextlib.suppress(CiterecError):  # the first search loads models; no request should wait for that
            recommender.search("the first search", 1)
        served = Served(name, system, recommender, found)
        weakref.finalize(served, self._close, recommender)
        return served


def named_places(given: Sequence[str]) -> dict[str, Path]:
    """Directories of indexes by name, from arguments such as `indexes/acm` and `acl=indexes/acl-2024`.

    Raises:
        SettingsError: Two have the same name.
        InputError: A name is empty.
    """
    places: dict[str, Path] = {}
    for argument in given:
        before, equals, after = argument.partition("=")
        path = Path(after if equals else argument)
        name = before if equals else path.resolve().name
        if not name or not str(path):
            raise InputError(f"{argument!r} names no index", "Give a directory, or NAME=DIRECTORY.")
        if name in places:
            raise SettingsError(f"two indexes are called {name!r}", f"Give one another name: NAME={path}")
        places[name] = path
    return places
