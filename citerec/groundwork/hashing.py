"""Digests: of values and files, what tells a file from its later self, and samples that only a seed decides."""

import hashlib
from pathlib import Path
from typing import Any

import orjson


def digest_of(value: Any) -> str:
    """A short digest of a JSON value; the order of keys makes no difference."""
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The digest of what a file holds, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def identity(path: Path) -> list[Any]:
    """What tells whether a file is still the one that was read: place, size, time of change."""
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def hash_sample(seed: int, *names: str, between: str = "\0") -> int:
    """A number from 0 to 2^64 that seed and names decide, on every machine.

    The items with the least numbers are a random sample, and an item keeps its number when others are added. `between`
    joins the names in the digest: samples that were published must stay what they are.
    """
    return int.from_bytes(hashlib.blake2b(between.join((str(seed), *names)).encode(), digest_size=8).digest())
