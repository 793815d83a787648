"""Checks an index directory: every file is intact, and store, words, columns, vectors and manifest agree."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import read_json
from citerec.index.generations import generation_of, opened
from citerec.index.manifest import DENSE, Manifest, checksum, open_store


def verify(index: Path, on_progress: Progress = no_progress) -> list[str]:
    """The faults of an index; an empty list if there are none.

    Raises:
        IndexUnusableError: It is not an index, half built, or of another version.
    """
    return opened(index, lambda: _faults(index, on_progress))


def vectors_beside(index: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folders with vectors of other retrievers than `dense`, and their manifests."""
    for path in sorted(generation_of(index).glob("*/manifest.json")):
        if path.parent.name != DENSE:
            made = read_json(path)
            if made and made.keys() >= {"checksums", "store"}:
                yield path.parent, made


def store_faults(index: Path, manifest: Manifest) -> list[str]:
    """The faults of the paper store of an index: its structure, its counts, its fingerprint."""
    try:
        with contextlib.closing(open_store(index)) as store:
            faults = [f"the paper store: {fault}" for fault in store.integrity_faults()]
            if faults:
                return faults
            counts = store.counts()
            for name in ("papers", "with_abstract", "with_tldr", "with_year", "citances", "with_citances"):
                found, expected = getattr(counts, name), getattr(manifest.counts, name)
                if found != expected:
                    faults.append(f"the paper store has {found:,} {name}, the manifest {expected:,}")
            fingerprint = store.fingerprint()
            if fingerprint != manifest.fingerprint:
                faults.append(f"the paper store has the fingerprint {fingerprint}, the manifest {manifest.fingerprint}")
            return faults
    except IndexUnusableError as error:
        return [error.message]


def _faults(index: Path, on_progress: Progress) -> list[str]:
    manifest, folder = Manifest.read(index), generation_of(index)
    on_progress("checking the store", 0, 1)
    if faults := store_faults(index, manifest):
        return faults
    on_progress("checking words", 0, 1)
    faults += _checksum_faults(folder, manifest.checksums)
    on_progress("checking vectors", 0, 1)
    if (folder / DENSE).exists() and not (folder / DENSE / "manifest.json").exists():
        faults.append(f"{folder / DENSE} has no manifest")
    for place in sorted(folder.glob("*/manifest.json")):
        made = read_json(place) or {}
        if not made.keys() >= {"checksums", "store"}:
            faults.append(f"{place} is broken")
            continue
        faults += _checksum_faults(place.parent, made["checksums"])
        if made["store"] != manifest.fingerprint:
            faults.append(f"{place.parent} was made for other papers: make it again")
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
