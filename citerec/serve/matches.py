"""Which papers of an index the entries of a bibliography are. Each is a search, so the answers are remembered."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping

from citerec.index.titles import papers_of_index
from citerec.recommend import Recommender
from citerec.records import Paper

_MOST = 50_000
_PART = 50  # entries after which answers are remembered: a request that took too long was not in vain


class Matches:
    """Finds papers of entries. Remembers ids by digests, never texts. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, entries: Mapping[str, Paper], system: Recommender) -> dict[str, str]:
        """Ids of the entries that are papers of the index, by key."""
        digests = {key: _digest(system.manifest.fingerprint, key, entry) for key, entry in entries.items()}
        with self._lock:
            found = {key: self._known[digest] for key, digest in digests.items() if digest in self._known}
        new = [key for key in entries if key not in found]
        for start in range(0, len(new), _PART):
            part = new[start : start + _PART]
            matched = papers_of_index({key: entries[key] for key in part}, system.index)
            found |= {key: matched.get(key) for key in part}
            with self._lock:
                self._known.update((digests[key], found[key]) for key in part)
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
        return {key: paper_id for key in entries if (paper_id := found[key]) is not None}


def _digest(fingerprint: str, key: str, entry: Paper) -> bytes:
    about = (fingerprint, key, entry.title, entry.year, entry.authors, entry.external_ids.get("DOI"))
    return hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=16).digest()
