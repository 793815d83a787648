"""Files and directories that are written whole or not at all: first beside their place, then moved to it.

A directory cannot take the place of another in one step. So the old one moves aside first, the new one takes its place,
and the old one is removed last. After a crash in between, `recover` puts the old one back.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from citerec.errors import BuildError

_TRIES = 100


def beside(place: Path, what: str) -> Path:
    """A hidden path beside another, on the same disk."""
    return place.parent / f".{place.name}.{what}"


def exchange(new: Path, place: Path, aside: Path | None = None) -> None:
    """Replaces a directory by a complete new one on the same disk.

    Meanwhile the old one is at `aside`, by default `.NAME.previous`; `recover` must be given the same path.
    """
    aside = aside or beside(place, "previous")
    recover(place, aside)
    sync(new)
    for attempt in range(_TRIES):
        if place.exists():
            shutil.rmtree(aside, ignore_errors=True)
            place.rename(aside)
        try:
            new.rename(place)
            break
        except OSError:
            # A reader between the two renames took this for a crash, and put the old one back.
            if attempt == _TRIES - 1 or not place.exists():
                recover(place, aside)
                raise
    sync_entry(place.parent)
    shutil.rmtree(aside, ignore_errors=True)


def recover(place: Path, aside: Path | None = None) -> None:
    """Puts back a directory whose exchange was interrupted; call this before reading it."""
    aside = aside or beside(place, "previous")
    if not place.exists() and aside.exists():
        # It fails if a running exchange puts its new one there first, which is as good.
        with contextlib.suppress(OSError):
            aside.rename(place)


@contextlib.contextmanager
def writing_file(path: Path) -> Iterator[Path]:
    """Yields a path to write to, which replaces the file at the end; if anything fails, the old file is kept.

    Anything but a regular file, such as a pipe, is written to directly. A link is followed.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = beside(path, "writing")
    try:
        yield partial
        sync_entry(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def write_failures(out: Path, remedy: str = "Make room, or give another --out.") -> Iterator[None]:
    """Turns errors of writing, such as a full disk, into a BuildError."""
    try:
        yield
    except OSError as error:
        raise BuildError(f"cannot write {out}: {error.strerror or error}", remedy) from error


def write_json(path: Path, value: object) -> None:
    """Writes a JSON value, durably and whole."""
    with writing_file(path) as partial:
        partial.write_bytes(orjson.dumps(value))


@contextlib.contextmanager
def alone(lock: Path, busy: str, remedy: str = "Wait for it, or stop it.", patience: float = 0) -> Iterator[None]:
    """Allows one process at a time, by a lock file; its folder is created if missing.

    Raises:
        BuildError: Another process is still running after `patience` seconds; the message is `busy`.
        OSError: The lock file cannot be written.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock)
        held.acquire(timeout=patience)
    except Timeout:
        raise BuildError(busy, remedy) from None
    try:
        yield
    finally:
        held.release()


def sync(folder: Path) -> None:
    """Forces a directory's files to the disk, so that a later rename never gets there first."""
    for path in [*folder.rglob("*"), folder]:
        sync_entry(path)


def sync_entry(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
