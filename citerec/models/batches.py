"""Batches of texts of similar length: there is little padding, and no batch is larger than memory allows."""

from collections.abc import Iterator, Sequence


def batches_by_length(lengths: Sequence[int], max_tokens: int, max_rows: int) -> Iterator[list[int]]:
    """The positions of texts in batches, longest first, so that too little memory fails at once.

    Args:
        lengths: The length of each text, in tokens.
        max_tokens: Rows of a batch times its longest text, at most. A longer text is its own batch.
        max_rows: Texts in a batch, at most.

    Yields:
        Positions in `lengths`; each is in one batch, those of equal length in their order.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    begin = 0
    while begin < len(order):
        rows = max(1, min(max_rows, max_tokens // max(1, lengths[order[begin]])))
        yield order[begin : begin + rows]
        begin += rows
