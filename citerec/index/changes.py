"""What changed from one generation of an index to the next: engines that update themselves write only that."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citerec.corpus.store import PaperStore
from citerec.files.progress import Progress
from citerec.files.resume import read_json
from citerec.index.arrays import mapped
from citerec.index.base import CITANCES, PAPERS, Layout, Searchable
from citerec.index.columns import CITING, COLUMNS
from citerec.index.manifest import FILE_NAME

_REPORTED = 2000


def changes_between(before: Path, now: Path, layout: Layout, engine: str) -> dict[str, list[str]] | None:
    """The ids of the papers that changed between two generations, in order; also of those that are no longer there.

    Returns:
        Under `PAPERS` those whose record, as far as it is searched, is another. Under `CITANCES` those whose citing
        sentences, or what filters read of them, are others. None if all is to be written: there are no such words yet.
    """
    stated = read_json(before / FILE_NAME) or {}
    if stated.get("engine") != engine or stated.get("abstract_field") != layout.abstract_field:
        return None
    texts = _different(before / COLUMNS, now / COLUMNS, "digests")
    cited = _different(before / COLUMNS, now / COLUMNS, f"{CITING}/sentence_digests")
    return {PAPERS: texts, CITANCES: sorted({*texts, *cited})}


def items_of(
    store: PaperStore, kind: str, changed: Sequence[str] | None, whole: int, on_progress: Progress
) -> Iterator[Searchable]:
    """What an engine writes of `PAPERS` or `CITANCES`: those of the papers that changed, or all if they are None.

    Progress is reported as they are taken; `whole` is how many there are in all.
    """
    items: Iterable[Searchable] = store.all_papers(changed)
    doing = "indexing papers"
    if kind == CITANCES:
        items, doing = store.searchable_citances(only=changed), "indexing citing sentences"
    for done, item in enumerate(items, 1):
        yield item
        if done % _REPORTED == 0:
            on_progress(doing, done, whole)


def _different(before: Path, now: Path, name: str) -> list[str]:
    """The papers whose digests are not the same in two folders, or that only one of them has."""
    old, new = (mapped(folder / "ids.npy") for folder in (before, now))
    old_digests, new_digests = (_digests(folder, name) for folder in (before, now))
    if not len(old) or not len(new):
        return _ids(np.concatenate([old, new]))
    places = np.minimum(np.searchsorted(old, new), len(old) - 1)
    kept = old[places] == new
    changed = new[~kept | (old_digests[places] != new_digests)]
    gone = old[~np.isin(old, new[kept])]
    return _ids(np.concatenate([changed, gone]))


def _digests(folder: Path, name: str) -> NDArray[np.uint64]:
    path = folder / f"{name}.npy"
    return mapped(path) if path.is_file() else np.zeros(len(mapped(folder / "ids.npy")), np.uint64)


def _ids(keys: NDArray[Any]) -> list[str]:
    return sorted(key.decode() for key in keys.tolist())
