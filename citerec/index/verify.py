"""Checks an index directory: every file is intact, and store, words, columns, vectors and manifest agree."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import read_json
from citerec.index.generations import generation_of, opened
from citerec.index.manifest import DENSE, FILE_NAME, Manifest, checksum, open_store


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
