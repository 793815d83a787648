"""Reading an index that may be replaced at any moment: all that was read belongs to one index."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError
from citerec.retrieve.manifest import FILE_NAME, Manifest
from citerec.retrieve.staging import open_store, recover

_TRIES = 200
_PAUSE = 0.005
_LONGEST_PAUSE = 0.2

Found = TypeVar("Found")


def read_steadily(index: Path, read: Callable[[], Found], close: Callable[[Found], object] = lambda _: None) -> Found:
    """Reads or opens parts of an index, and again if the index, its vectors or a ranker was replaced meanwhile.

    Args:
        index: The index directory.
        read: Reads it.
        close: Closes what was read, if it is read again.

    Raises:
        IndexUnusableError: It is replaced again and again.
        Exception: `read` raised it, and nothing was replaced.
    """
    for attempt in range(_TRIES):
        recover(index)
        with ExitStack() as held:
            before = _identity(index, held)
            try:
                found = read()
            except Exception:
                if _is_same(index, before):
                    raise
            else:
                if _is_same(index, before):
                    return found
                close(found)
        time.sleep(min(_PAUSE * attempt, _LONGEST_PAUSE))
    raise IndexUnusableError(f"{index} is being replaced again and again", "Wait until the builds are done.")


def manifest_and_store(index: Path) -> tuple[Manifest, PaperStore]:
    """The manifest of an index and its paper store, to read; errors as for both."""
    return read_steadily(index, lambda: (Manifest.read(index), open_store(index)), lambda found: found[1].close())


Identity = list[tuple[str, int, int, bytes]]
"""The folders of an index, each with its device, its number there and its manifest."""


def identity(index: Path) -> Identity | None:
    """What changes when an index, its vectors or a ranker is replaced; None if one is being moved right now."""
    with ExitStack() as held:
        return _identity(index, held)


def _identity(index: Path, held: ExitStack) -> Identity | None:
    """The folders of an index, and their manifests; None if one is moved away meanwhile.

    As long as they are held open, no new folder gets the number of one that was removed.
    """
    found: Identity = []
    try:
        folders = sorted(path for path in index.iterdir() if path.is_dir() and not path.name.startswith("."))
        for folder in (index, *folders):
            descriptor = os.open(folder, os.O_RDONLY)
            held.callback(os.close, descriptor)
            status, manifest = os.fstat(descriptor), folder / FILE_NAME
            content = manifest.read_bytes() if manifest.is_file() else b""
            found.append((folder.name, status.st_dev, status.st_ino, content))
    except FileNotFoundError:
        return None if index.exists() else []
    except OSError:
        pass  # it cannot be read: `read` says so
    return found


def _is_same(index: Path, before: Identity | None) -> bool:
    return before is not None and identity(index) == before
