"""Leases: which of several processes works on what, in a database that all of them write to.

A lease is a document of the collection `leases`: who has it (`owner`), and until when. It is taken in one step,
renewed by a thread while the work goes on, and free again when it is given back or not renewed: another process then
takes over what a killed one began. Times are those of the primary's clock.
"""

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, Self

from citerec.corpus.sqlite_database import SqliteDatabase
from citerec.corpus.store import PaperStore, StoreError
from citerec.errors import CiterecError, InputError

if TYPE_CHECKING:
    from citerec.corpus.mongo_database import MongoDatabase

SECONDS = 60.0
"""How long a lease lasts that is not renewed: so long the work of a killed process waits."""

_COLLECTION = "leases"
_RENEWALS = 4  # in the time that a lease lasts: three may fail
_PAUSE_SECONDS = 1.0


class Leases(Protocol):
    """The leases of this process; a context manager, which gives back at its end what it has.

    Attributes:
        shared: Whether there may be other processes.
    """

    shared: bool

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def offer(self, sources: Mapping[str, str]) -> None:
        """Says which leases there are to take, each with the source of its work.

        Raises:
            InputError: The leases of the database are those of other sources.
        """

    def take(self, name: str) -> bool:
        """Takes a lease that was offered; False if another process has it."""

    def give_back(self, name: str) -> None:
        """Gives a lease back: its work is done."""

    def alone(self, name: str, on_wait: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """Waits for a lease that need not be offered, and keeps it; `on_wait` is called again and again meanwhile."""

    def check(self) -> None:
        """Makes sure that no lease was lost; to be called before each write.

        Raises:
            StoreError: The leases were not renewed in time: another process may have taken over.
        """

    def pause(self) -> None:
        """Waits a moment for other processes, which have what is left."""


def leases_of(store: PaperStore) -> Leases:
    """The leases of this process in the database of a store. Only one process writes to SQLite: it gets every lease."""
    database = store.database
    return _Unshared() if isinstance(database, SqliteDatabase) else _MongoLeases(database)


class _Unshared:
    """The leases of the only process that writes."""

    shared = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def offer(self, sources: Mapping[str, str]) -> None:
        pass

    def take(self, _name: str) -> bool:
        return True

    def give_back(self, name: str) -> None:
        pass

    def alone(self, _name: str, _on_wait: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def check(self) -> None:
        pass

    def pause(self) -> None:
        pass


class _MongoLeases:
    shared = True

    def __init__(self, database: "MongoDatabase") -> None:
        self._database = database
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._held: set[str] = set()
        self._lock = threading.Lock()  # of what is held, and its renewal
        self._renewed = time.monotonic()
        self._lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_end, name="leases", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(CiterecError):  # they end by themselves
            self._database.change(_COLLECTION, {"owner": self._owner}, owner=None, until=0)

    def offer(self, sources: Mapping[str, str]) -> None:
        self._refuse_others(sources)  # first: what is refused leaves nothing behind
        self._make(sources)
        self._refuse_others(sources)  # of a process that began at the same moment

    def _refuse_others(self, sources: Mapping[str, str]) -> None:
        found = self._database.sorted(_COLLECTION, {"source": {"$ne": None}}, "source")
        if any(sources.get(fields["_id"]) != fields["source"] for fields in found):
            raise other_shards(self._database.name)

    def _make(self, sources: Mapping[str, str | None]) -> None:
        new = ({"_id": name, "source": source, "owner": None, "until": 0} for name, source in sources.items())
        self._database.insert_new(_COLLECTION, new)

    def take(self, name: str) -> bool:
        with self._lock:
            begun = time.monotonic()
            now = self._database.milliseconds()
            free = {"_id": name, "until": {"$lte": now}}
            if not self._database.change_one(_COLLECTION, free, owner=self._owner, until=self._end(now)):
                return False
            if not self._held:
                self._renewed = begun
            self._held.add(name)
        return True

    def give_back(self, name: str) -> None:
        with self._lock:
            self._held.discard(name)
            self._database.change_one(_COLLECTION, {"_id": name, "owner": self._owner}, owner=None, until=0)

    @contextlib.contextmanager
    def alone(self, name: str, on_wait: Callable[[], None]) -> Iterator[None]:
        self._make({name: None})
        while not self.take(name):
            on_wait()
            self.pause()
        try:
            yield
        finally:
            self.give_back(name)

    def check(self) -> None:
        if self._lost or (self._held and time.monotonic() - self._renewed > SECONDS):
            raise StoreError(
                f"{self._database.name} did not answer for {SECONDS:.0f} seconds: another process may have taken over",
                "Run the same command again: it goes on with what is left.",
            )

    def pause(self) -> None:
        time.sleep(min(_PAUSE_SECONDS, SECONDS / _RENEWALS))

    def _end(self, now: int) -> int:
        return now + round(SECONDS * 1000)

    def _renew_until_end(self) -> None:
        while not self._ended.wait(SECONDS / _RENEWALS):
            # A failure here is not the end: there are further renewals, and `check` sees when all of them failed.
            with contextlib.suppress(CiterecError), self._lock:
                if self._held:
                    self._renew()

    def _renew(self) -> None:
        begun = time.monotonic()
        ours = {"_id": {"$in": sorted(self._held)}, "owner": self._owner}
        until = self._end(self._database.milliseconds())
        if self._database.change(_COLLECTION, ours, until=until) < len(self._held):
            self._lost = True
        self._renewed = begun


def other_shards(name: str) -> InputError:
    """The error of a database that was filled, or is being filled, from other sources."""
    return InputError(f"{name} holds papers of other shards", "Give the address of an empty database.")
