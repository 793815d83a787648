"""The indexes of the servers for programs, editors and assistants: opened when needed, and anew when replaced.

And what all servers look up in them: papers by id, papers that one can name, and the entries of a bibliography; and
text of third parties, made ready to be shown.
"""

import contextlib
import gc
import hashlib
import logging
import re
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from citerec.contexts.topic import Topic
from citerec.corpus.matching import canonical_id, normalised, passes
from citerec.corpus.store import PaperStore
from citerec.errors import CiterecError, InputError, QueryError, SettingsError
from citerec.files.text import printable
from citerec.index.build import Follower
from citerec.index.manifest import find_index, identity
from citerec.recommend import Recommender
from citerec.records import Filters, Paper
from citerec.retrieve.base import OpenIndex, Retriever
from citerec.retrieve.entries import papers_of_index, title_words
from citerec.systems import choose

log = logging.getLogger("citerec.serve")

_LOOK_SECONDS = 1.0  # between two looks whether an index was replaced
_MOST_MATCHES = 50_000
_CANDIDATES = 200
_NAMED_IDS, _LONGEST_ID = 5, 60  # in an error
_MOST_NAMED = 1000
_LEAST_NAME = 2  # letters
_MOST_WORDS = 20  # that are looked for among the names of authors

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\v\f\x85]")
# Zero-width characters, bidi overrides, tags, variation selectors, fillers; surrogates, which UTF-8 lacks; private use:
# Default_Ignorable_Code_Point, Cf, Cs and Co of Unicode 16.
_INVISIBLE = re.compile(
    "["
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160\u17b4-\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
    "]"
)


class NotFoundError(InputError):
    """There is no index or paper of this name."""


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
        fault: Why what is on disk now cannot be served in place of what was there before; empty if it can.
    """

    def __init__(
        self, path: Path | None, system: str | None = None, assignments: Sequence[str] = (), name: str = ""
    ) -> None:
        self.name, self.system, self.fault = name, "", ""
        self.recommender: Recommender | None = None
        self._path, self._choice = path, (system, assignments)
        self._lock, self._is_closed, self._has_garbage = threading.Lock(), threading.Event(), False

    def open(self) -> Recommender:
        """The open system, which stays open while the caller holds it.

        Raises:
            CiterecError: It cannot be opened.
        """
        with self._lock:
            if self.recommender is None:
                path = find_index(self._path)
                self._open(path)
                threading.Thread(target=self._watch, args=[path], daemon=True).start()
            assert self.recommender is not None
            return self.recommender

    def close(self) -> None:
        """Closes it for good when nobody holds it any more."""
        self._is_closed.set()
        self.recommender = None

    def _open(self, path: Path) -> None:
        state = identity(path)  # before it is opened: what changes later is seen at the next look
        _, system, recipe = choose(path, *self._choice)
        recommender = Recommender.open(path, recipe)
        with contextlib.suppress(CiterecError):  # the first search loads models; no request should wait for that
            recommender.search("the first search", 1)
        weakref.finalize(recommender, self._let_go, recommender.retrievers, recommender.index)
        self.recommender, self.system, self._state = recommender, system, state

    def _let_go(self, retrievers: Sequence[Retriever], index: OpenIndex) -> None:
        for retriever in retrievers:
            retriever.close()
        index.close()
        self._has_garbage = True

    def _watch(self, path: Path) -> None:
        """Opens the index anew whenever it was replaced on disk. If that fails, the old one stays.

        Bibliographies that it was built from are followed: what is new in them is added when they are saved.
        """
        follower = Follower(path)
        while not self._is_closed.wait(_LOOK_SECONDS):
            if self._has_garbage:
                self._has_garbage = False
                gc.collect()  # memory-mapped files are let go with the objects that hold them; some are in cycles
            try:
                if saved := follower.saved():
                    follower.follow(saved)
                if identity(path) != self._state:
                    self._open(path)
                    log.info("%s was replaced: the new one is served", path)
                self.fault = ""
            except Exception as error:  # no fault may end the watch
                if str(error) != self.fault:  # it is tried again at every look
                    log.warning("%s has changed, but what is new cannot be served; the old one is: %s", path, error)
                self.fault = str(error)


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
        self._ids: dict[bytes, str | None] = {}

    def find(self, entries: Mapping[str, Paper], system: Recommender) -> dict[str, str]:
        """Ids of the entries that are papers of the index, by key."""
        digests = {key: _digest(system.manifest.fingerprint, key, entry) for key, entry in entries.items()}
        ids_by_digest = self._ids  # never changed, but replaced: another thread may be reading it
        ids = {digest: ids_by_digest[digest] for digest in digests.values() if digest in ids_by_digest}
        new = {key: entry for key, entry in entries.items() if digests[key] not in ids}
        matches = papers_of_index(new, system.index) if new else {}
        ids |= {digests[key]: matches.get(key) for key in new}
        if new:
            self._ids = dict([*ids_by_digest.items(), *ids.items()][-_MOST_MATCHES:])
        return {key: paper_id for key, digest in digests.items() if (paper_id := ids[digest]) is not None}


def _digest(fingerprint: str, key: str, entry: Paper) -> bytes:
    about = (fingerprint, key, entry.title, entry.year, entry.authors, entry.external_ids.get("DOI"))
    return hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def known_papers(store: PaperStore, paper_ids: Iterable[str]) -> list[Paper]:
    """Papers by id, in order, each once; NotFoundError if the index lacks one."""
    wanted = list(dict.fromkeys(paper_ids))
    papers = store.papers(wanted)
    if lacking := [paper_id for paper_id in wanted if paper_id not in papers]:
        named = ", ".join(shown(repr(paper_id), _LONGEST_ID) for paper_id in lacking[:_NAMED_IDS])
        more = f" and {len(lacking) - _NAMED_IDS} more" if len(lacking) > _NAMED_IDS else ""
        raise NotFoundError(f"the index has no paper {named}{more}", "Give ids as answers show them.")
    return [papers[paper_id] for paper_id in wanted]


def find_papers(index: OpenIndex, query: str, limit: int, filters: Filters) -> list[Paper]:
    """The papers of an index that a query names, best first.

    An id, a DOI or an arXiv id names one paper. Otherwise those come first that have most of the words in their
    title, their authors' names, year and venue; then those whose title has least besides; then the most cited.

    Args:
        index: The open index.
        query: An id, a DOI, an arXiv id, or words of title and authors.
        limit: How many papers at most.
        filters: Years and venues; other filters are not applied to papers that only their authors name.

    Raises:
        FilterError: The years are reversed.
    """
    index.check_filters(filters)
    store = index.store
    if named := _by_identifier(query.strip(), store):
        return named[:limit]
    paper_ids: list[str] = []
    with contextlib.suppress(QueryError):  # no word, or too many
        paper_ids = title_words(index).search(Topic(query), _CANDIDATES, filters).paper_ids()
    surnames = [word.strip(".,;:") for word in query.split()[:_MOST_WORDS]]
    called = store.ids_called([name for name in surnames if len(name) >= _LEAST_NAME], _MOST_NAMED)
    # Only titles need a word in common, so that of authors' papers the filters are checked here.
    titled = store.papers(paper_ids, texts=False)
    others = store.papers(set(called) - titled.keys(), texts=False)
    papers = [*titled.values(), *(paper for paper in others.values() if passes(paper, filters))]
    wanted = normalised(query)

    def rank(paper: Paper) -> tuple[int, int, int, str]:
        """Less is better."""
        beside = len(normalised(paper.title) - wanted)
        return -len(wanted & _words(paper)), beside, -(paper.citation_count or 0), paper.paper_id

    return sorted((paper for paper in papers if wanted & _words(paper)), key=rank)[:limit]


def _by_identifier(query: str, store: PaperStore) -> list[Paper]:
    name = canonical_id(query)
    named = [paper.paper_id for paper in store.named([name]).get(name, ())]
    return list(store.papers([query, name, *named]).values())


def _words(paper: Paper) -> frozenset[str]:
    return normalised(" ".join([paper.title, *paper.authors, str(paper.year or ""), paper.venue or ""]))


def visible(text: str) -> str:
    """A text without control characters, but line feeds and tabs, and without characters that nobody sees."""
    return str(_INVISIBLE.sub("", printable(_LINE_ENDS.sub("\n", text))))


def shown(text: str, most: int = 500) -> str:
    """A text on one line, as `visible` leaves it, of at most so many characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
