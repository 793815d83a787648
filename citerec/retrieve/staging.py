"""Building beside the place and taking it at the end: a crash leaves the old or nothing (docs/storage.md)."""

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from citerec.corpus.sources import Shard
from citerec.corpus.sqlite_store import SqliteStore
from citerec.errors import BuildError
from citerec.retrieve.dense.build import forget_journal
from citerec.version import __version__

STORE = "papers.sqlite"
LUCENE = "lucene"
DENSE = "dense"
RANKERS = ("ltr", "cross-encoder")
PLAN = "plan.json"
_PATIENCE_SECONDS = 10.0


def recover(index: Path) -> None:
    """Puts back an index, or its vectors, whose exchange for new ones was cut short between two renames."""
    for previous, place in ((beside(index, "previous"), index), (beside(index, "previous-vectors"), index / DENSE)):
        if previous.exists() and not place.exists() and place.parent.exists():
            # Under the lock: a builder may just now be between the two renames, and needs a moment.
            with locked(index, patience=_PATIENCE_SECONDS):
                _put_back(previous, place)


def _put_back(previous: Path, index: Path) -> None:
    """To be called under the lock."""
    if previous.exists() and not index.exists():
        previous.rename(index)


def followed(path: Path) -> Path:
    """A path whose link is followed: it is the directory that is exchanged, not the link to it."""
    return path.resolve() if path.is_symlink() else path


def plan_of(shards: list[Shard], what: str) -> dict[str, object]:
    """What is to be built of what: a build that was stopped goes on where this is the same."""
    files = [(str(shard.path.resolve()), shard.format, *_size_and_time(shard.path)) for shard in shards]
    return {"what": what, "citerec": __version__, "shards": [list(file) for file in files]}


def _size_and_time(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def beside(index: Path, what: str) -> Path:
    """A hidden path beside an index, on the same disk."""
    return index.parent / f".{index.name}.{what}"


@contextlib.contextmanager
def staging_of(index: Path, plan: dict[str, object], copy_from: Path | None = None) -> Iterator[Path]:
    """A directory beside the index that takes its place at the end, its rankers with it.

    If stopped, it waits for the same plan.
    """
    staging = beside(index, "building")
    with disk_failures(index), locked(index):
        previous = beside(index, "previous")
        _put_back(previous, index)
        if not _goes_on(staging, plan):
            shutil.rmtree(staging, ignore_errors=True)
            _begin(staging, plan, copy_from)
        yield staging
        for name in RANKERS:  # what was trained costs more than an index: it stays
            if (index / name).is_dir():
                shutil.rmtree(staging / name, ignore_errors=True)  # a copy that was cut short
                shutil.copytree(index / name, staging / name)
        sync(staging)
        shutil.rmtree(previous, ignore_errors=True)
        if index.exists():
            index.rename(previous)
        staging.rename(index)
        (index / PLAN).unlink()
        shutil.rmtree(beside(index, "previous-vectors"), ignore_errors=True)
        forget_journal(index / DENSE)
        shutil.rmtree(previous, ignore_errors=True)


def _goes_on(staging: Path, plan: dict[str, object]) -> bool:
    try:
        written = orjson.loads((staging / PLAN).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return all(written.get(key) == value for key, value in plan.items())


def _begin(staging: Path, plan: dict[str, object], copy_from: Path | None) -> None:
    staging.mkdir()
    if copy_from is not None:
        shutil.copy2(copy_from / STORE, staging / STORE)
        # Lucene never changes a file that it has written: links do for copies.
        shutil.copytree(copy_from / LUCENE, staging / LUCENE, copy_function=os.link)
    store = SqliteStore(staging / STORE)
    try:
        first = store.next_shard()
    finally:
        store.close()
    (staging / PLAN).write_bytes(orjson.dumps({**plan, "first_shard": first}))


@contextlib.contextmanager
def locked(index: Path, patience: float = 0) -> Iterator[None]:
    """Keeps other builds away from an index.

    Raises:
        BuildError: Another process has it, and does not let go within so many seconds.
    """
    index.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(beside(index, "lock"))
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise BuildError(
            f"another process is building {index}",
            "Wait for it, or stop it, then run the same command again.",
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def disk_failures(index: Path) -> Iterator[None]:
    """Turns failures of disk and database into one line with its remedy.

    Raises:
        BuildError: There was one.
    """
    remedy = "Make room, then run the same command: it goes on where it stopped."
    try:
        yield
    except sqlite3.Error as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise BuildError(f"no space left for {index} ({error}); nothing else was touched", remedy) from error
        raise BuildError(
            f"the paper store of {index} failed: {error}", "If it goes on, build the index again."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise BuildError(f"no space left for {index}; nothing else was touched", remedy) from error
        raise BuildError(f"cannot write {index}: {error.strerror or error}", "Check its rights.") from error


def sync(folder: Path) -> None:
    """Forces a directory's files to the disk, so that the rename that follows never precedes them."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
