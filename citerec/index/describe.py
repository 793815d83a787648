"""What indexes hold, for `citerec index info` and `list`; and whether store, words, columns and vectors agree."""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from citerec.corpus.store import JSON_COLUMNS, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import read_json
from citerec.index.manifest import DENSE, FILE_NAME, Manifest, checksum, generation_of, indexes_in, open_store, opened
from citerec.index.vectors import DenseManifest, has_vectors

_SHOWN = 12


class Description(NamedTuple):
    """The contents of an index."""

    path: Path
    bytes: int
    manifest: Manifest
    years: dict[int, int]
    fields: dict[str, int]
    venues: dict[str, int]
    vectors: DenseManifest | None
    vector_bytes: int

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


def describe(index: Path) -> Description:
    """Describes an index.

    Raises:
        IndexUnusableError: There is none, or it is half built, broken, or of another version.
    """

    def described() -> Description:
        manifest, folder = Manifest.read(index), generation_of(index)
        vectors = folder / DENSE
        with contextlib.closing(open_store(index)) as store:
            years, *most = (histogram(store, name) for name in ("year", "fields_of_study", "venue"))
        fields, venues = (dict(list(one.items())[:_SHOWN]) for one in most)
        dense = DenseManifest.read(vectors) if has_vectors(vectors) else None
        return Description(index, size_of(folder), manifest, years, fields, venues, dense, size_of(vectors))

    return opened(index, described)


def histogram(store: PaperStore, attribute: str) -> dict[Any, int]:
    """How many papers have each value of `year`, `venue` or `fields_of_study`, most first, years in order."""
    counts = Counter[Any]()
    for (value,) in store.select("papers", attribute):
        counts.update(store.json(value) if attribute in JSON_COLUMNS else [value])
    counts.pop(None, None)
    return dict(sorted(counts.items(), key=lambda one: one[0] if attribute == "year" else (-one[1], one[0])))


def list_indexes(folder: Path) -> Iterator[dict[str, Any]]:
    """The indexes of a folder, in order of name: `path`, `papers`, `bytes`, and the `fault` of one that is unusable."""
    for path in indexes_in(folder):
        about = {"path": str(path), "papers": None, "bytes": size_of(generation_of(path)), "fault": None}
        try:
            about["papers"] = opened(path, functools.partial(Manifest.read, path)).counts.papers
        except IndexUnusableError as error:
            about["fault"] = error.message
        yield about


def size_of(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def vectors_beside(index: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folders with vectors of other retrievers than `dense`, and their manifests."""
    for path in sorted(generation_of(index).glob(f"*/{FILE_NAME}")):
        if path.parent.name != DENSE and (manifest := read_json(path)) and "store" in manifest:
            yield path.parent, manifest


def verify(index: Path, on_progress: Progress = no_progress) -> list[str]:
    """The faults of an index; an empty list if there are none.

    Raises:
        IndexUnusableError: It is not an index, half built, or of another version.
    """
    return opened(index, lambda: list(_faults(index, on_progress)))


def _faults(index: Path, on_progress: Progress) -> Iterator[str]:
    manifest, folder = Manifest.read(index), generation_of(index)
    on_progress("checking the store", 0, 1)
    if faults := _store_faults(index, manifest):
        yield from faults
        return
    on_progress("checking words", 0, 1)
    yield from _checksum_faults(folder, manifest.checksums)
    on_progress("checking vectors", 0, 1)
    if (folder / DENSE).exists() and not has_vectors(folder / DENSE):
        yield f"{folder / DENSE} has no manifest"
    for path in sorted(folder.glob(f"*/{FILE_NAME}")):
        fields = read_json(path) or {}
        if not fields.keys() >= {"checksums", "store"}:
            yield f"{path} is broken"
            continue
        yield from _checksum_faults(path.parent, fields["checksums"])
        if fields["store"] != manifest.fingerprint:
            yield f"{path.parent} was made for other papers: make it again"


def _store_faults(index: Path, manifest: Manifest) -> list[str]:
    """The faults of the paper store of an index: its structure, its counts, its fingerprint."""
    try:
        with contextlib.closing(open_store(index)) as store:
            if faults := store.integrity_faults():
                return [f"the paper store: {fault}" for fault in faults]
            own = {**asdict(store.counts()), "fingerprint": store.fingerprint()}
    except IndexUnusableError as error:
        return [error.message]
    expected = {**asdict(manifest.counts), "fingerprint": manifest.fingerprint}
    others = {name: value for name, value in own.items() if value != expected[name]}
    return [f"the paper store has {value} {name}, the manifest {expected[name]}" for name, value in others.items()]


def _checksum_faults(folder: Path, checksums: Mapping[str, str]) -> Iterator[str]:
    """The files of a folder that are missing or damaged."""
    for name, expected in checksums.items():
        if not (folder / name).is_file():
            yield f"{folder / name} is missing"
        elif checksum(folder / name) != expected:
            yield f"{folder / name} is damaged: its checksum is not that of the manifest"
