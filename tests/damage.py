"""Damaged copies of files that citerec reads back."""

import random
from collections.abc import Iterator
from typing import Any

import orjson

OTHERS: tuple[Any, ...] = (None, True, -1, 0.5, 2**63, "x", "", [], {}, [[1]], [None, None], {"x": []})
"""Values to put in the place of any other."""

RAW = (b"", b"\0\xff\xfe", b"null", b"[]", b"1", b'"x"', b"{}", b"[" * 5000, b'{"a": ' * 5000, b"9" * 5000, b"NaN")
"""Contents that are no file of ours."""


def damaged(raw: bytes, times: int, seed: int = 0) -> Iterator[bytes]:
    """Damaged copies of a JSON value: no file of ours, cut off, and with a value lost or replaced, at random."""
    chosen = random.Random(seed)
    yield from RAW
    for _ in range(5):
        yield raw[: chosen.randrange(len(raw))]
    for _ in range(times):
        value = orjson.loads(raw)
        holder, key = chosen.choice(list(_places(value)))
        if chosen.random() < 0.2:
            del holder[key]
        else:
            holder[key] = chosen.choice(OTHERS)
        yield orjson.dumps(value)
    for number in (b"9" * 5000, b"NaN", b"-Infinity"):
        yield raw.replace(b"0", number, 1) if b"0" in raw else raw + number


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value within a value, by its holder and its key there; few of a long list."""
    keys: Any = list(value) if isinstance(value, dict) else range(min(3, len(value))) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
