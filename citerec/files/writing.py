"""Files and directories that are written whole or not at all: first beside their place, then moved to it.

An old directory moves aside first, the new one takes its place, and the old one is removed last. After a crash in
between, `recover` puts the old one back.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from citerec.errors import BuildError, InputError
from citerec.files.addresses import client_failures, is_address


def beside(place: Path, what: str) -> Path:
    """A hidden path beside another, on the same disk."""
    return place.parent / f".{place.name}.{what}"


def apart(out: Path, *sources: Path | None) -> Path:
    """Where a file is written, behind links; an InputError if that is a file that is read."""
    if (place := out.resolve()) in (source.resolve() for source in sources if source):
        raise InputError(f"{out} is the file that is read", "Give another one to --out.")
    return place


def exchange(new: Path, place: Path) -> None:
    """Replaces a directory by a complete new one on the same disk."""
    recover(place)
    for path in [*new.rglob("*"), new]:
        sync_entry(path)  # a later rename never gets to the disk before them
    aside = beside(place, "previous")
    while new.exists():
        if place.exists():
            remove(aside)
            place.rename(aside)
        try:
            new.rename(place)
        except OSError:
            # A reader between the two renames took this for a crash, and put the old one back: once more.
            if not place.exists():
                recover(place)
                raise
    sync_entry(place.parent)
    remove(aside)


def recover(place: Path) -> None:
    """Puts back a directory whose exchange was interrupted; call this before reading it."""
    aside = beside(place, "previous")
    # It fails if a running exchange puts its new one there first, which is as good. An empty folder in its place, made
    # after the crash, must not keep the only copy aside, where it would be removed.
    with contextlib.suppress(OSError):
        if aside.exists() and (not place.exists() or not any(place.iterdir())):
            aside.rename(place)


def link(source: str | Path, target: str | Path) -> None:
    """Gives a file that is never written again a second name; copies it where that is not possible."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def remove(folder: Path) -> None:
    """Removes a directory, if there is one. It is renamed first, so that half of one is never used for a whole one.

    Its new name begins unlike all names that `recover` is called with: what is being removed is never put back.
    """
    rest = folder.with_name(f".removed-{folder.name.removeprefix('.')}")
    shutil.rmtree(rest, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.rename(rest)
    shutil.rmtree(rest, ignore_errors=True)


@contextlib.contextmanager
def writing_file(path: Path) -> Iterator[Path]:
    """Yields a path to write to, which replaces the file at the end; if anything fails, the old file is kept.

    The permissions of the old file stay. Anything but a regular file, such as a pipe, is written to directly. A link is
    followed. What is at an address is written here first, and sent whole.
    """
    if is_address(path):
        with tempfile.TemporaryDirectory(prefix="citerec-") as folder:
            yield (partial := Path(folder) / path.name)
            with client_failures(), partial.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        return
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = beside(path, "writing")
    try:
        yield partial
        if path.exists():
            shutil.copymode(path, partial)
        sync_entry(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def write_failures(out: Path, remedy: str = "Make room, or give another --out.") -> Iterator[None]:
    """Turns errors of files and databases, such as a full disk, into a BuildError."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise BuildError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}", remedy) from error


def write_json(path: Path, value: object) -> None:
    """Writes a JSON value, durably and whole."""
    write_bytes(path, orjson.dumps(value))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file, durably and whole."""
    with writing_file(path) as partial:
        partial.write_bytes(data)


@contextlib.contextmanager
def alone(lock: Path, busy: str) -> Iterator[None]:
    """Allows one process at a time, by a lock file; its folder is created if missing.

    There are no locks at addresses. Two processes do the same work twice there, and write the same bytes.

    Raises:
        BuildError: Another process is running; the message is `busy`.
        InputError: The lock file cannot be written.
    """
    if is_address(lock):
        yield
        return
    from filelock import FileLock, Timeout  # it takes a moment to load, and who only reads needs no lock

    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise BuildError(busy, "Wait for it, or stop it, then run the same command again.") from None
    except OSError as error:
        raise InputError(f"cannot write {lock.parent}: {error.strerror or error}", "Give another place.") from error
    with held:
        yield


def sync_entry(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk; Windows cannot do that with what is open to read."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Kind(NamedTuple):
    """A kind of directory. Its manifest, a JSON object, names it under `kind`."""

    name: str  # its name in errors
    kind: str
    manifest: str  # the name of that file
    names: frozenset[str]  # of everything in such a directory

    def is_at(self, path: Path) -> bool:
        """Whether a folder is of this kind by its manifest; a broken manifest counts as of this kind."""
        recover(path)
        try:
            return bool(orjson.loads((path / self.manifest).read_bytes()).get("kind") == self.kind)
        except OSError:
            return False
        except (orjson.JSONDecodeError, AttributeError):
            return True

    def check_place(self, out: Path) -> None:
        """Raises InputError if anything but a directory of this kind is there, or it cannot be written."""
        out = out.resolve()  # a link is followed, not replaced
        recover(out)
        if Path.cwd().is_relative_to(out):
            raise InputError(f"{out} is the current folder, or holds it", "Give another --out.")
        standing = next(folder for folder in (out, *out.parents) if folder.exists())
        if not os.access(standing, os.W_OK) or not (standing.is_dir() or standing == out):
            raise InputError(f"cannot write {out}: {standing} is not a folder to write to", "Give another --out.")
        if not out.exists():
            return
        if not out.is_dir() or (any(out.iterdir()) and not self.is_at(out)):
            raise InputError(f"{out} exists and is no {self.name}", "Give another --out, or remove it first.")
        if others := sorted(path.name for path in out.iterdir() if path.name not in self.names):
            raise InputError(f"{out} holds other things too, such as {others[0]}", "Give another --out, or move them.")

    @contextlib.contextmanager
    def writing(self, out: Path) -> Iterator[Path]:
        """Yields a directory to write to, which becomes `out` at the end; if anything fails, the old one is kept.

        Raises:
            InputError: Something else is there.
            BuildError: The disk is full, or may not be written to.
        """
        self.check_place(out)
        out = out.resolve()
        partial = beside(out, "writing")
        try:
            with write_failures(out):
                remove(partial)
                partial.mkdir(parents=True)
                yield partial
                exchange(partial, out)
        finally:
            remove(partial)
