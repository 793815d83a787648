"""Descriptions of indexes, for `citerec index info` and `list`."""

import contextlib
import functools
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from citerec.corpus.store import JSON_COLUMNS, PaperStore
from citerec.errors import IndexUnusableError
from citerec.index.generations import generation_of, opened
from citerec.index.manifest import DENSE, Manifest, is_index, open_store
from citerec.index.vectors.vectors import DenseManifest, has_vectors

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Description:
    """The contents of an index."""

    path: Path
    bytes: int
    manifest: Manifest
    years: dict[int, int]
    fields: dict[str, int]
    venues: dict[str, int]
    vectors: DenseManifest | None = None
    vector_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "path": str(self.path),
            "bytes": self.bytes,
            **self.manifest.model_dump(),
            "years": {str(year): count for year, count in self.years.items()},
            "fields_of_study": self.fields,
            "venues": self.venues,
            "vectors": self.vectors and {"bytes": self.vector_bytes, **self.vectors.model_dump()},
        }


@dataclass(frozen=True, slots=True)
class Listed:
    """An index of a folder, or what is wrong with it."""

    path: Path
    bytes: int
    manifest: Manifest | None
    fault: str | None = None


def describe(index: Path) -> Description:
    """Describes an index.

    Raises:
        IndexUnusableError: There is none, or it is half built, broken, or of another version.
    """
    return opened(index, lambda: _described(index))


def _described(index: Path) -> Description:
    manifest, vectors = Manifest.read(index), generation_of(index) / DENSE
    with contextlib.closing(open_store(index)) as store:
        return Description(
            path=index,
            bytes=size_of(generation_of(index)),
            manifest=manifest,
            years=histogram(store, "year"),
            fields=_most(histogram(store, "fields_of_study")),
            venues=_most(histogram(store, "venue")),
            vectors=DenseManifest.read(vectors) if has_vectors(vectors) else None,
            vector_bytes=size_of(vectors),
        )


def histogram(store: PaperStore, attribute: str) -> dict[Any, int]:
    """How many papers have each value of `year`, `venue` or `fields_of_study`, most first, years in order."""
    counts = Counter[Any]()
    for (value,) in store.select("papers", attribute):
        counts.update(store.json(value) if attribute in JSON_COLUMNS else [value])
    counts.pop(None, None)
    order = itemgetter(0) if attribute == "year" else lambda item: (-item[1], item[0])
    return dict(sorted(counts.items(), key=order))


def list_indexes(folder: Path) -> list[Listed]:
    """The indexes of a folder, in order of name; also those that cannot be used, and why. Of an index, itself."""
    found = []
    for path in [folder] if is_index(folder) else sorted(folder.iterdir()) if folder.is_dir() else []:
        if is_index(path) and not path.name.startswith("."):
            found.append(opened(path, functools.partial(_listed, path)))
    return found


def _listed(path: Path) -> Listed:
    try:
        return Listed(path, size_of(generation_of(path)), Manifest.read(path))
    except IndexUnusableError as error:
        return Listed(path, size_of(generation_of(path)), None, error.message)


def _most(histogram: dict[str, int]) -> dict[str, int]:
    return dict(list(histogram.items())[:_SHOWN])


def size_of(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
