"""Long sequences in parts, of which memory holds one."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def in_parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items, in order; the last one may be shorter."""
    remaining = iter(items)
    while part := list(itertools.islice(remaining, size)):
        yield part
