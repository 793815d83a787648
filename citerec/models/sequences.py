"""Which token follows: one of a set of sequences, a trie in two arrays; or one drawn from the likeliest."""

import functools
import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Allowed = Callable[[Sequence[int]], "NDArray[np.int64]"]
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
        import numpy as np

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

    def following(self, begun: Sequence[int]) -> "NDArray[np.int64]":
        """The tokens that follow a beginning in some sequence, in order; none if no sequence goes on from it."""
        return self._next(tuple(begun))

    def _find_next(self, begun: tuple[int, ...]) -> "NDArray[np.int64]":
        import numpy as np

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


def nucleus(prompts: Sequence[Sequence[int]], top_p: float, temperature: float, seed: int) -> list[Any]:
    """The processor of transformers that draws each token from the likeliest ones (Holtzman et al., ICLR 2020).

    These are the fewest whose probabilities sum up to `top_p`, after the logits are divided by `temperature`. What is
    drawn for a prompt depends on the seed, the prompt and the model alone, not on the rest of its batch: use it with
    greedy search, since only the drawn token is left to choose.
    """
    import numpy as np
    import torch
    from transformers import LogitsProcessor

    def digest(ids: Sequence[int]) -> int:
        return int.from_bytes(
            hashlib.blake2b(np.array([seed, *ids], np.int64).tobytes(), digest_size=8).digest(), "big"
        )

    draws = [np.random.default_rng(digest(ids)) for ids in prompts]

    class Nucleus(LogitsProcessor):
        def __call__(self, _input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            sure, tokens = (scores.double() / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
            reached = sure.cumsum(-1)
            # The first token whose sum reaches `top_p` is the last that counts.
            last = (reached < top_p).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
            drawn = torch.tensor([[draw.random()] for draw in draws], dtype=reached.dtype, device=scores.device)
            places = torch.searchsorted(reached, drawn * reached.gather(-1, last), right=True).clamp(max=last)
            chosen = tokens.gather(-1, places)
            return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)

    return [Nucleus()]
