"""Sets of ids that fit into memory even for hundreds of millions of papers."""

import functools
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.files.hashing import identity
from citerec.files.writing import writing_file

# A number as few as possible would write otherwise, such as 007, is a text.
_NUMBERED = re.compile(r"([A-Za-z]{0,8})(0|[1-9][0-9]{0,17})")


class Ids:
    """A set of ids. Numbers, also behind letters ("W123"), take a few bytes each; other ids are kept as texts."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        from pyroaring import BitMap64  # of the extra `scale`, which no command needs before it has ids

        self._numbers: defaultdict[str, BitMap64] = defaultdict(BitMap64)
        self._others: set[str] = set()
        for one in ids:
            self.add(one)

    def add(self, one: str) -> None:
        """Adds an id."""
        if found := _NUMBERED.fullmatch(one):
            self._numbers[found[1]].add(int(found[2]))
        else:
            self._others.add(one)

    def __contains__(self, one: object) -> bool:
        found = _NUMBERED.fullmatch(str(one))
        if not found:
            return one in self._others
        return found[1] in self._numbers and int(found[2]) in self._numbers[found[1]]

    def __len__(self) -> int:
        return sum(map(len, self._numbers.values())) + len(self._others)

    def __iter__(self) -> Iterator[str]:
        """The ids, always in the same order."""
        for letters in sorted(self._numbers):
            yield from (f"{letters}{number}" for number in self._numbers[letters])
        yield from sorted(self._others)

    def __or__(self, other: "Ids") -> "Ids":
        return self._joined(other, operator.or_)

    def __sub__(self, other: "Ids") -> "Ids":
        return self._joined(other, operator.sub)

    def _joined(self, other: "Ids", how: Callable[[Any, Any], Any]) -> "Ids":
        made = Ids()
        made._others = how(self._others, other._others)
        for letters in self._numbers.keys() | other._numbers.keys():
            made._numbers[letters] = how(self._numbers[letters], other._numbers[letters])
        return made

    def save(self, path: Path) -> None:
        """Writes the set to a file, whole: a line of JSON with the sizes, the bitmaps, the other ids."""
        blobs = {letters: self._numbers[letters].serialize() for letters in sorted(self._numbers)}
        head = orjson.dumps({letters: len(blob) for letters, blob in blobs.items()})
        with writing_file(path) as partial:
            partial.write_bytes(b"\n".join([head, b"".join(blobs.values()) + "\n".join(sorted(self._others)).encode()]))

    @classmethod
    def load(cls, path: Path) -> Self:
        """The set of a file that `save` wrote."""
        from pyroaring import BitMap64

        head, _, rest = path.read_bytes().partition(b"\n")
        made = cls()
        for letters, size in orjson.loads(head).items():
            made._numbers[letters] = BitMap64.deserialize(rest[:size])
            rest = rest[size:]
        made._others = set(rest.decode().split("\n")) - {""}
        return made


def loaded(path: Path | None) -> Ids | None:
    """The set of a file, which is read once; None for no file."""
    return _loaded(*identity(path)) if path else None


@functools.lru_cache(maxsize=4)
def _loaded(path: str, _size: int, _changed: int) -> Ids:
    return Ids.load(Path(path))
