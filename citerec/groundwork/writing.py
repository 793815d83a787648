"""Files and directories that are written whole or not at all: beside their place first, put there when they are whole.

A directory cannot take the place of another in one step. So the old one moves aside first, the new one takes its place,
and the old one is removed last. Where a crash came in between, `recover` puts the old one back.
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
    """Puts a directory that is whole in place of what stands there; both are on one disk.

    Meanwhile the old one stands `aside`, `.NAME.previous` by default; `recover` must be given the same.
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
            # A reader that came between the two renames took that for a crash, and has put the old one back.
            if attempt == _TRIES - 1 or not place.exists():
                recover(place, aside)
                raise
    sync_entry(place.parent)
    shutil.rmtree(aside, ignore_errors=True)


def recover(place: Path, aside: Path | None = None) -> None:
    """Puts back a directory whose exchange was cut short: to be called before it is read."""
    aside = aside or beside(place, "previous")
    if not place.exists() and aside.exists():
        # It fails where an exchange that goes on at this moment puts its new one there first, which is as good.
        with contextlib.suppress(OSError):
            aside.rename(place)


@contextlib.contextmanager
def writing_file(path: Path) -> Iterator[Path]:
    """A path to write a file to, which takes its place at the end; if anything fails, what stood there stays.

    What is no regular file, such as a pipe, is written to as it is. A link is followed.
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
    """Raises BuildError where there is no room, or nothing may be written."""
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
    """Keeps work to one process at a time, by a lock file whose folder is made where it is not there.

    Raises:
        BuildError: Another process is still at work after so many seconds; the message is `busy`.
        OSError: Nothing can be written there.
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
    """Forces a directory's files to the disk, so that the rename that follows never precedes them."""
    for path in [*folder.rglob("*"), folder]:
        sync_entry(path)


def sync_entry(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
