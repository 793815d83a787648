"""The indexes of the servers for programs, editors and assistants: opened when needed, and anew when replaced."""

import contextlib
import gc
import hashlib
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from citerec.errors import CiterecError, InputError, SettingsError
from citerec.index.generations import identity
from citerec.index.manifest import find_index
from citerec.recommend import Recommender
from citerec.records import Paper
from citerec.retrieve.base import Retriever
from citerec.retrieve.opened import OpenIndex, papers_of_index
from citerec.systems import choose

log = logging.getLogger("citerec.serve")

_LOOK_SECONDS = 1.0  # between two looks whether an index was replaced
_MOST_MATCHES = 50_000


class ServedIndex:
    """An index and the system that searches it. Safe to use from several threads.

    It is opened by whoever needs it first. When it is replaced on disk, the new one is opened while the old one
    answers; the old one is closed when nobody holds it any more.

    Args:
        path: The index directory; by default the only one below `indexes/`.
        system: Name of the system, or a TOML file; by default the best that the index supports.
        assignments: Settings of the system, as `KEY=VALUE`.
        name: The name of the index in requests.

    Attributes:
        system: The name of the system, once it is open.
        recommender: The open system; None until `open` is done.
    """

    def __init__(
        self, path: Path | None, system: str | None = None, assignments: Sequence[str] = (), name: str = ""
    ) -> None:
        self.name, self.system = name, ""
        self.recommender: Recommender | None = None
        self._path, self._choice = path, (system, assignments)
        self._lock, self._is_closed = threading.Lock(), threading.Event()
        self._fault, self._has_garbage = "", False

    def open(self) -> Recommender:
        """The open system, which stays open while the caller holds it.

        Raises:
            CiterecError: It cannot be opened.
        """
        with self._lock:
            if self.recommender is None:
                path, self._is_closed = find_index(self._path), threading.Event()
                self._open(path)
                threading.Thread(target=self._watch, args=[path, self._is_closed], daemon=True).start()
            assert self.recommender is not None
            return self.recommender

    def close(self) -> None:
        """Closes it when nobody holds it any more."""
        self._is_closed.set()
        self.recommender = None

    def _open(self, path: Path) -> None:
        state = identity(path)  # before it is opened: what changes later is seen at the next look
        _, system, recipe = choose(path, *self._choice)
        recommender = Recommender.open(path, recipe)
        with contextlib.suppress(CiterecError):  # the first search loads models; no request should wait for that
            recommender.search("the first search", 1)
        weakref.finalize(recommender, self._let_go, recommender.retrievers, recommender.index)
        self.recommender, self.system, self._state, self._fault = recommender, system, state, ""

    def _let_go(self, retrievers: Sequence[Retriever], index: OpenIndex) -> None:
        for retriever in retrievers:
            retriever.close()
        index.close()
        self._has_garbage = True

    def _watch(self, path: Path, is_closed: threading.Event) -> None:
        """Opens the index anew whenever it was replaced on disk. If that fails, the old one stays."""
        while not is_closed.wait(_LOOK_SECONDS):
            if self._has_garbage:
                self._has_garbage = False
                gc.collect()  # memory-mapped files are let go with the objects that hold them; some are in cycles
            try:
                if identity(path) != self._state:
                    self._open(path)
                    log.info("%s was replaced: the new one is served", path)
            except Exception as error:  # no fault may end the watch
                if self._fault != str(error):  # it is tried again at every look
                    log.warning("%s was replaced, but cannot be opened; the old one is served: %s", path, error)
                self._fault = str(error)


def named_places(arguments: Sequence[str]) -> dict[str, Path]:
    """Directories of indexes by name, from arguments such as `indexes/acm` and `acl=indexes/acl-2024`.

    Raises:
        SettingsError: Two have the same name.
        InputError: A name is empty.
    """
    places: dict[str, Path] = {}
    for argument in arguments:
        before, equals, after = argument.partition("=")
        path = Path(after if equals else argument)
        name = before if equals else path.resolve().name
        if not name or not str(path):
            raise InputError(f"{argument!r} names no index", "Give a directory, or NAME=DIRECTORY.")
        if name in places:
            raise SettingsError(f"two indexes are called {name!r}", f"Give one another name: NAME={path}")
        places[name] = path
    return places


class Matches:
    """Finds which papers of an index the entries of a bibliography are. Safe to use from several threads.

    Each is a search, so the answers are remembered: ids by digests, never texts.
    """

    def __init__(self) -> None:
        self._ids: OrderedDict[bytes, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, entries: Mapping[str, Paper], system: Recommender) -> dict[str, str]:
        """Ids of the entries that are papers of the index, by key."""
        ids = {}
        for key, entry in entries.items():
            digest = _digest(system.manifest.fingerprint, key, entry)
            if digest not in self._ids:
                paper_id = papers_of_index({key: entry}, system.index).get(key)
                with self._lock:
                    self._ids[digest] = paper_id
                    if len(self._ids) > _MOST_MATCHES:
                        self._ids.popitem(last=False)
            if (paper_id := self._ids.get(digest)) is not None:
                ids[key] = paper_id
        return ids


def _digest(fingerprint: str, key: str, entry: Paper) -> bytes:
    about = (fingerprint, key, entry.title, entry.year, entry.authors, entry.external_ids.get("DOI"))
    return hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=16).digest()
