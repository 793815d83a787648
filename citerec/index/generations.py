"""Generations of an index: folders that are never changed once they are there. `CURRENT` names the newest.

A reader opens the files of one generation and keeps them. A writer makes the next one beside it, with links to what did
not change, and then replaces `CURRENT`, as LevelDB does. The generation before is kept for those who are opening it.
What was trained for an index lies beside its generations, in `trained/`.
"""

import contextlib
import errno
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from citerec.errors import BuildError, IndexUnusableError
from citerec.files.resume import JOURNAL, Journal
from citerec.files.writing import alone, link, remove, sync_entry, writing_file

CURRENT, TRAINED = "CURRENT", "trained"
MAKING, LOCK = "making", ".lock"
_KEPT = 2
_TRIES, _PAUSE = 100, 0.01

Found = TypeVar("Found")


def generation_of(index: Path) -> Path:
    """The folder of the current generation of an index; one that does not exist if there is none."""
    return index / (_current(index) or "0")


def trained_of(index: Path, name: str) -> Path:
    """The folder of what was trained for an index, by the name of the part."""
    return index / TRAINED / name


@contextlib.contextmanager
def next_generation(index: Path, plan: Mapping[str, Any]) -> Iterator[Journal]:
    """The journal of a folder that becomes the current generation of an index at the end.

    If the work is interrupted, the folder waits for the same plan.

    Raises:
        BuildError: The disk is full, or another process is building the index.
    """
    with disk_failures(index), alone(index.resolve() / LOCK, f"another process is building {index}"):
        journal = Journal(index / MAKING, plan)
        yield journal
        making = journal.folder
        (making / JOURNAL).unlink()
        for path in [*making.rglob("*"), making]:
            sync_entry(path)  # `CURRENT` never gets to the disk before them
        number = 1 + max((int(path.name) for path in index.iterdir() if path.name.isdecimal()), default=0)
        making.rename(index / str(number))
        with writing_file(index / CURRENT) as partial:
            partial.write_text(f"{number}\n", encoding="ascii")
        sync_entry(index)
        for path in index.iterdir():
            if path.name.isdecimal() and int(path.name) <= number - _KEPT:
                remove(path)


def link_folder(source: Path, target: Path, but: str = "") -> None:
    """Gives the files of a folder, if there is one, which never change, names in another, but for those of one name."""
    if source.is_dir():
        ignored = shutil.ignore_patterns(but)
        shutil.copytree(source, target, copy_function=link, ignore=ignored, dirs_exist_ok=True)


def opened(index: Path, open_files: Callable[[], Found], close: Callable[[Found], object] = lambda _: None) -> Found:
    """Opens files of an index, and again if it, or what was trained for it, was replaced meanwhile.

    Args:
        index: The index directory.
        open_files: Opens them.
        close: Closes what was opened, if it is opened again.

    Raises:
        IndexUnusableError: They are replaced again and again.
        Exception: `open_files` raised it, and nothing was replaced.
    """
    for _ in range(_TRIES):
        before = identity(index)
        try:
            found = open_files()
        except Exception:
            if identity(index) == before:
                raise
        else:
            if identity(index) == before:
                return found
            close(found)
        time.sleep(_PAUSE)
    raise IndexUnusableError(f"{index} is being replaced again and again", "Wait until the builds are done.")


Identity = tuple[str | None, tuple[tuple[str, int, int], ...]]
"""The current generation, and the manifests of what was trained: their places, file numbers and times."""


def identity(index: Path) -> Identity:
    """What changes when an index, or a part that was trained for it, is replaced."""
    manifests = []
    for path in sorted((index / TRAINED).glob("**/manifest.json")):
        with contextlib.suppress(OSError):
            manifests.append((str(path), path.stat().st_ino, path.stat().st_mtime_ns))
    return _current(index), tuple(manifests)


@contextlib.contextmanager
def disk_failures(index: Path) -> Iterator[None]:
    """Turns failures of disk and database into a BuildError with a remedy."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        is_full = getattr(error, "errno", 0) in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        said, remedy = f"cannot write {index}: {getattr(error, 'strerror', None) or error}", "Check its permissions."
        if is_full or any(fault in str(error) for fault in ("is full", "disk I/O")):
            said = f"no space left for {index} ({error}); nothing else was touched"
            remedy = "Make room, then run the same command: it continues where it stopped."
        elif isinstance(error, sqlite3.Error):
            said = f"the paper store of {index} failed: {error}"
            remedy = "If this happens again, rebuild the index."
        raise BuildError(said, remedy) from error


def _current(index: Path) -> str | None:
    with contextlib.suppress(OSError):
        return (index / CURRENT).read_text(encoding="ascii").strip()
    return None
