"""Vectors that were encoded for an index, by content: so nothing dear is done twice.

A vector stands under the key of what made it (the part of the index, the model with its version, the backend, how much
of a text it reads) and the digest of its text. So an interrupted run goes on, unchanged texts are not encoded again,
and an index is brought up to date.
"""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.files.parts import in_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "vectors.sqlite"
"""The name of the file in an index, beside its generations."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
  part TEXT NOT NULL, key TEXT NOT NULL, name BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (part, key, name));
CREATE TEMP TABLE asked (name BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_ASKED_AT_ONCE = 500


class VectorCache:
    """The vectors of one part of an index, such as `dense`. For one process at a time, but any number of its threads.

    Args:
        path: The file.
        part: The name of the part.
        key: What makes the vectors that are asked for and put in.
    """

    def __init__(self, path: Path, part: str, key: str) -> None:
        self._of = part, key
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.execute("PRAGMA auto_vacuum=FULL")  # of a new file
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def put(self, names: Sequence[bytes], vectors: "NDArray[np.float16]") -> None:
        """Keeps some vectors, (names, dimension)."""
        rows = ((*self._of, name, vector.tobytes()) for name, vector in zip(names, vectors, strict=True))
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def get(self, names: Iterable[bytes]) -> "dict[bytes, NDArray[np.float16]]":
        """The vectors of some names, by name; those that are not kept are left out."""
        import numpy as np

        found: dict[bytes, NDArray[np.float16]] = {}
        with self._lock, self._connection:
            for some in in_parts(names, _ASKED_AT_ONCE):
                self._connection.executemany("INSERT OR IGNORE INTO asked VALUES (?)", ((name,) for name in some))
                marks = ",".join("?" * len(some))
                query = f"SELECT name, vector FROM vectors WHERE part = ? AND key = ? AND name IN ({marks})"
                for name, vector in self._connection.execute(query, (*self._of, *some)):
                    found[name] = np.frombuffer(vector, np.float16)
        return found

    def drop_others(self) -> None:
        """Removes the vectors of the part for which nobody has asked since the cache was opened."""
        others = "part = ?1 AND (key != ?2 OR name NOT IN (SELECT name FROM asked))"
        with self._lock, self._connection:
            self._connection.execute(f"DELETE FROM vectors WHERE {others}", self._of)
