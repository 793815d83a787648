"""What indexes hold, for `citerec index info` and `list`; and whether store, words, columns and vectors agree."""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from citerec.corpus.store import JSON_COLUMNS, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import read_json
from citerec.index.generations import generation_of, opened
from citerec.index.manifest import DENSE, FILE_NAME, Manifest, checksum, indexes_in, is_index, open_store
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
    paths = [folder] if is_index(folder) else indexes_in(folder)
    return [opened(path, functools.partial(_listed, path)) for path in paths]


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


def verify(index: Path, on_progress: Progress = no_progress) -> list[str]:
    """The faults of an index; an empty list if there are none.

    Raises:
        IndexUnusableError: It is not an index, half built, or of another version.
    """
    return opened(index, lambda: _faults(index, on_progress))


def vectors_beside(index: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folders with vectors of other retrievers than `dense`, and their manifests."""
    for folder, made in _made_in(generation_of(index)):
        if made and folder.name != DENSE:
            yield folder, made


def _made_in(generation: Path) -> Iterator[tuple[Path, dict[str, Any] | None]]:
    """The folders that commands made in a generation, and their manifests; None for one that is broken."""
    for path in sorted(generation.glob(f"*/{FILE_NAME}")):
        made = read_json(path)
        yield path.parent, made if made and made.keys() >= {"checksums", "store"} else None


def _store_faults(index: Path, manifest: Manifest) -> list[str]:
    """The faults of the paper store of an index: its structure, its counts, its fingerprint."""
    try:
        with contextlib.closing(open_store(index)) as store:
            if faults := store.integrity_faults():
                return [f"the paper store: {fault}" for fault in faults]
            expected = asdict(manifest.counts)
            faults = [
                f"the paper store has {count:,} {name}, the manifest {expected[name]:,}"
                for name, count in asdict(store.counts()).items()
                if count != expected[name]
            ]
            if (fingerprint := store.fingerprint()) != manifest.fingerprint:
                faults.append(f"the paper store has the fingerprint {fingerprint}, the manifest {manifest.fingerprint}")
            return faults
    except IndexUnusableError as error:
        return [error.message]


def _faults(index: Path, on_progress: Progress) -> list[str]:
    manifest, folder = Manifest.read(index), generation_of(index)
    on_progress("checking the store", 0, 1)
    if faults := _store_faults(index, manifest):
        return faults
    on_progress("checking words", 0, 1)
    faults += _checksum_faults(folder, manifest.checksums)
    on_progress("checking vectors", 0, 1)
    if (folder / DENSE).exists() and not (folder / DENSE / FILE_NAME).exists():
        faults.append(f"{folder / DENSE} has no manifest")
    for place, made in _made_in(folder):
        if not made:
            faults.append(f"{place / FILE_NAME} is broken")
            continue
        faults += _checksum_faults(place, made["checksums"])
        if made["store"] != manifest.fingerprint:
            faults.append(f"{place} was made for other papers: make it again")
    return faults


def _checksum_faults(folder: Path, checksums: Mapping[str, str]) -> list[str]:
    """The files of a folder that are missing or damaged."""
    faults = []
    for name, expected in checksums.items():
        if not (folder / name).is_file():
            faults.append(f"{folder / name} is missing")
        elif checksum(folder / name) != expected:
            faults.append(f"{folder / name} is damaged: its checksum is not that of the manifest")
    return faults
