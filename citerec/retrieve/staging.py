"""Building in a directory beside, which is renamed at the end: a crash keeps the old index (docs/storage.md)."""

import contextlib
import errno
import glob
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from citerec.corpus import stores
from citerec.corpus.shards import Shard
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import PaperStore
from citerec.errors import BuildError
from citerec.files import writing
from citerec.files.hashing import identity
from citerec.files.resume import Journal, forget
from citerec.files.writing import alone, beside, exchange, link, remove
from citerec.retrieve.manifest import store_address

STORE = "papers.sqlite"
LUCENE = "lucene"
DENSE = "dense"


def recover(index: Path) -> None:
    """Restores an index, or a folder of it, if their replacement was interrupted between two renames."""
    writing.recover(index)
    if index.exists():
        for name, aside in _folders_aside(index):
            writing.recover(index / name, aside)


@contextlib.contextmanager
def making_folder(index: Path, name: str) -> Iterator[Path]:
    """A directory beside the index, which replaces a folder of it at the end; it is kept if it is interrupted."""
    making = beside(index, f"making-{name}")
    with disk_failures(index), locked(index):
        yield making
        exchange(making, index / name, beside(index, f"previous-{name}"))
        forget(index / name)


def _folders_aside(index: Path) -> Iterator[tuple[str, Path]]:
    """Folders of an index that were moved aside, by their names in it."""
    prefix = beside(index, "previous-").name
    for aside in index.parent.glob(f"{glob.escape(prefix)}*"):
        yield aside.name.removeprefix(prefix), aside


def open_store(index: Path) -> PaperStore:
    """The paper store of an index directory, to read.

    Raises:
        IndexUnusableError: It is a file that cannot be read.
        InputError: It is a MongoDB database, and no server answers there, or it refuses the user.
    """
    if address := store_address(index):
        return stores.open_store(address, read_only=True)
    return open_file(index)


def open_file(index: Path) -> SqliteStore:
    """The paper store of an index directory that keeps its records itself, to read; errors as for `open_store`."""
    return SqliteStore(index / STORE, read_only=True)


def working_store(staging: Path) -> SqliteStore:
    """The paper store of an index that is being made, to write to."""
    return SqliteStore(staging / STORE)


def followed(path: Path) -> Path:
    """A path with its link followed: the directory is replaced, not the link to it."""
    return path.resolve() if path.is_symlink() else path


def plan_of(shards: list[Shard], what: str, **options: object) -> dict[str, object]:
    """What is built from which shards, how: an interrupted build is resumed if this is the same."""
    return {"what": what, **options, "shards": [[*identity(shard.path), shard.format] for shard in shards]}


@contextlib.contextmanager
def staging_of(index: Path, plan: dict[str, object], begin: Callable[[Path], int] = lambda _: 1) -> Iterator[Journal]:
    """The journal of a directory beside the index, which replaces it at the end and takes over its rankers.

    If interrupted, it waits for the same plan. The note `first_shard` is the number of the store's first new shard:
    `begin` returns it, and writes what is there before that shard.
    """
    with disk_failures(index), locked(index):
        recover(index)
        for _, aside in list(_folders_aside(index)):
            remove(aside)
        journal = Journal(beside(index, "building"), plan)
        staging = journal.folder
        if journal.get("first_shard") is None:
            journal.note(first_shard=begin(staging))
        yield journal
        for folder in index.iterdir() if index.exists() else ():
            # Rankers trained for an index cost more than the index: they are kept.
            if folder.is_dir() and folder.name not in (LUCENE, DENSE) and not folder.name.startswith("."):
                shutil.rmtree(staging / folder.name, ignore_errors=True)  # an interrupted copy
                shutil.copytree(folder, staging / folder.name, copy_function=link)
        exchange(staging, index)
        for folder in (index, index / DENSE):
            forget(folder)


def locked(index: Path) -> contextlib.AbstractContextManager[None]:
    """Keeps other builds away from an index; raises BuildError if another process holds it."""
    return alone(beside(index, "lock"), f"another process is building {index}")


@contextlib.contextmanager
def disk_failures(index: Path) -> Iterator[None]:
    """Turns failures of disk and database into a BuildError with a remedy."""
    remedy = "Make room, then run the same command: it continues where it stopped."
    try:
        yield
    except sqlite3.Error as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise BuildError(f"no space left for {index} ({error}); nothing else was touched", remedy) from error
        raise BuildError(
            f"the paper store of {index} failed: {error}", "If this happens again, rebuild the index."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise BuildError(f"no space left for {index}; nothing else was touched", remedy) from error
        raise BuildError(f"cannot write {index}: {error.strerror or error}", "Check its permissions.") from error
