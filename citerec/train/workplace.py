"""Where a training keeps what it has done so far: a folder beside the model to be, gone when that stands."""

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from citerec.errors import BuildError, SourceError
from citerec.recommend import Recommender
from citerec.retrieve.manifest import is_index
from citerec.train.checkpoint import State
from citerec.train.groups import Choice, Groups
from citerec.train.loop import Schedule
from citerec.version import __version__

_PLAN = "plan.json"


@contextlib.contextmanager
def workplace(out: Path, plan: Mapping[str, Any]) -> Iterator[Path]:
    """A folder to work in. What a stopped training of the same plan left there stands; of another one it is removed.

    Args:
        out: The model to be.
        plan: All that the outcome depends on, as JSON takes it.

    Raises:
        BuildError: Another process trains this model, or the disk is full.
    """
    out = out.resolve()
    folder, lock = _beside(out, "training"), _beside(out, "lock")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=0):
            written = orjson.dumps(plan, option=orjson.OPT_SORT_KEYS)
            if _standing(folder) != written:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                (folder / _PLAN).write_bytes(written)
            yield folder
            shutil.rmtree(folder)
    except Timeout:
        raise BuildError(f"another process trains {out}", "Wait for it, or stop it, then run this again.") from None
    except OSError as error:
        raise BuildError(
            f"cannot train {out}: {error.strerror or error}", "Make room, then run the same command: it goes on."
        ) from error


def plan_of(
    choice: Choice, recommender: Recommender, options: Mapping[str, Any], schedule: Schedule, device: str
) -> dict[str, Any]:
    """All that a model depends on which learns from groups.

    Raises:
        SourceError: There is no such file of contexts.
    """
    return {
        "citerec": __version__,
        "contexts": _described(choice.contexts),
        "dev": _described(choice.dev) if choice.dev else None,
        "choice": [choice.dev_share, choice.dev_limit, choice.limit, choice.seed],
        "index": recommender.manifest.fingerprint,
        "settings": recommender.recipe.to_json(),
        "options": dict(options),
        "schedule": asdict(schedule),
        "device": device,  # another has another precision
    }


def facts_of(
    choice: Choice,
    recommender: Recommender,
    train: Groups,
    dev: Groups,
    options: Mapping[str, Any],
    schedule: Schedule,
    state: State,
) -> dict[str, Any]:
    """What the manifest of such a model says of its training."""
    return {
        **choice.facts(),
        "groups": len(train),
        "dev_groups": len(dev),
        "index": recommender.manifest.fingerprint,
        "retrieval": recommender.recipe.changes(),
        **options,
        **asdict(schedule),
        **state.facts(),
    }


def _beside(out: Path, what: str) -> Path:
    """A name beside the model, or beside the index that holds it: a build puts another folder in its place."""
    if is_index(out.parent):
        return out.parent.parent / f".{out.parent.name}.{out.name}.{what}"
    return out.parent / f".{out.name}.{what}"


def digest_of(path: Path, remedy: str) -> str:
    """What tells a file from any other of other content.

    Args:
        path: The file.
        remedy: What to give where there is none.

    Raises:
        SourceError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}", remedy) from error


def _described(path: Path) -> list[Any]:
    """What tells whether a file has changed."""
    try:
        status = path.stat()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}", "Give a file with one context a line.") from error
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def _standing(folder: Path) -> bytes:
    try:
        return (folder / _PLAN).read_bytes()
    except OSError:
        return b""
