"""Which tokens may follow: those of a set of sequences, a trie in two arrays."""

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Allowed = Callable[[Sequence[int]], NDArray[np.int64]]
"""The tokens that may follow some new tokens; none if nothing may."""

_REMEMBERED = 1 << 16  # beginnings whose rows are remembered
_ANSWERS = 1 << 10  # and whose next tokens are


class TokenSequences:
    """A set of sequences of token ids, sorted. Safe to call from several threads.

    The sequences that share a beginning are neighbours, so each beginning is a range of rows, found by binary search in
    that of the beginning one token shorter. Four bytes a token and eight a sequence are kept; sorting takes some 40
    bytes more a sequence.

    Attributes:
        longest: How many tokens the longest sequence has.
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        # Bytes with the highest first sort as numbers do.
        rows = sorted({np.asarray(sequence, ">u4").tobytes() for sequence in sequences})
        lengths = np.fromiter((len(row) // 4 for row in rows), np.int64, len(rows))
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self._ids = np.frombuffer(b"".join(rows), ">u4").astype(np.int32)
        self.longest = int(lengths.max(initial=0))
        self._range = functools.lru_cache(_REMEMBERED)(self._find_range)
        self._next = functools.lru_cache(_ANSWERS)(self._find_next)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __contains__(self, sequence: Sequence[int]) -> bool:
        low, high = self._range(tuple(sequence))
        return low < high and int(self._starts[low + 1] - self._starts[low]) == len(sequence)

    def following(self, begun: Sequence[int]) -> NDArray[np.int64]:
        """The tokens that follow a beginning in some sequence, in order; none if no sequence goes on from it."""
        return self._next(tuple(begun))

    def _find_next(self, begun: tuple[int, ...]) -> NDArray[np.int64]:
        low, high = self._longer(*self._range(begun), len(begun))
        tokens: NDArray[np.int64] = self._ids[self._starts[low:high] + len(begun)].astype(np.int64)
        return tokens if len(tokens) < 2 else tokens[np.flatnonzero(np.diff(tokens, prepend=-1))]

    def _find_range(self, begun: tuple[int, ...]) -> tuple[int, int]:
        if not begun:
            return 0, len(self)
        depth = len(begun) - 1
        low, high = self._longer(*self._range(begun[:-1]), depth)
        rows = range(low, high)

        def token(row: int) -> int:
            return int(self._ids[self._starts[row] + depth])

        return low + bisect_left(rows, begun[-1], key=token), low + bisect_right(rows, begun[-1], key=token)

    def _longer(self, low: int, high: int, depth: int) -> tuple[int, int]:
        """The rows of a range of one beginning without the sequence that ends there, which is the first if any does."""
        ends = low < high and int(self._starts[low + 1] - self._starts[low]) == depth
        return low + ends, high


def only_allowed(allowed: Allowed, begin: int) -> list[Any]:
    """The processor of transformers that lets only some tokens follow; `begin` is the length of the prompts."""
    import torch
    from transformers import LogitsProcessor

    class OnlyAllowed(LogitsProcessor):
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            kept = torch.full_like(scores, -torch.inf)
            for row, ids in enumerate(input_ids[:, begin:].tolist()):
                follow = torch.from_numpy(allowed(ids)).to(scores.device)
                kept[row, follow] = scores[row, follow]
            return kept

    return [OnlyAllowed()]
