"""Digests of values and files, identities of files, and samples that depend only on a seed."""

import hashlib
from pathlib import Path
from typing import Any

import orjson

from citerec.files.addresses import is_address


def digest_of(value: Any) -> str:
    """A short digest of a JSON value; the order of keys makes no difference."""
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The digest of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def identity(path: Path) -> list[Any]:
    """Tells whether a file is still the one that was read: path, size, time of change; at an address its ETag."""
    status: Any = path.stat()
    facts = status.as_info() if is_address(path) else {}
    return [str(path.resolve()), status.st_size, facts.get("ETag") or facts.get("etag") or status.st_mtime_ns]


def hash_sample(seed: int, *names: str, between: str = "\0") -> int:
    """A number from 0 to 2^64 that depends only on seed and names, the same on every machine.

    The items with the least numbers are a random sample, and an item keeps its number when others are added. `between`
    joins the names in the digest: published samples must stay the same.
    """
    return int.from_bytes(hashlib.blake2b(between.join((str(seed), *names)).encode(), digest_size=8).digest())
