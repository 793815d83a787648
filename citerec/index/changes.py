"""What changed from one generation of an index to the next: engines that update themselves write only that."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.files.resume import read_json
from citerec.index.arrays import mapped
from citerec.index.base import Layout
from citerec.index.columns import COLUMNS
from citerec.index.manifest import FILE_NAME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Changes(NamedTuple):
    """The ids of papers that changed, in order; also of those that are no longer there.

    Attributes:
        texts: Those whose record, as far as it is searched, is another.
        cited: Those whose citing sentences, or what filters read of them, are others.
    """

    texts: list[str]
    cited: list[str]


def changes_between(before: Path, now: Path, layout: Layout, engine: str) -> Changes | None:
    """What changed between two generations; None if all is to be written, for the one before has no such words."""
    stated = read_json(before / FILE_NAME) or {}
    if stated.get("engine") != engine or stated.get("abstract_field") != layout.abstract_field:
        return None
    texts = _different(before / COLUMNS, now / COLUMNS, "digests")
    return Changes(texts, sorted({*texts, *_different(before / COLUMNS, now / COLUMNS, "sentence_digests")}))


def _different(before: Path, now: Path, name: str) -> list[str]:
    """The papers whose digests are not the same in two folders, or that only one of them has."""
    import numpy as np

    old, new = (mapped(folder / "ids.npy") for folder in (before, now))
    old_digests, new_digests = (_digests(folder, name) for folder in (before, now))
    if not len(old) or not len(new):
        return _ids(np.concatenate([old, new]))
    places = np.minimum(np.searchsorted(old, new), len(old) - 1)
    kept = old[places] == new
    changed = new[~kept | (old_digests[places] != new_digests)]
    gone = old[~np.isin(old, new[kept])]
    return _ids(np.concatenate([changed, gone]))


def _digests(folder: Path, name: str) -> "NDArray[np.uint64]":
    import numpy as np

    path = folder / f"{name}.npy"
    return mapped(path) if path.is_file() else np.zeros(len(mapped(folder / "ids.npy")), np.uint64)


def _ids(keys: "NDArray[Any]") -> list[str]:
    return sorted(key.decode() for key in keys.tolist())
