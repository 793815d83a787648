import itertools

from hypothesis import given, strategies as st

from citerec.models.encoder import batches_by_length

LENGTHS = st.lists(st.integers(0, 600), max_size=200)


@given(LENGTHS, st.integers(1, 5000), st.integers(1, 64))
def test_each_text_once_within_the_budget_longest_first(lengths: list[int], max_tokens: int, max_rows: int) -> None:
    batches = list(batches_by_length(lengths, max_tokens, max_rows))
    order = [position for batch in batches for position in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[position] for position in order] == sorted(lengths, reverse=True)
    for batch in batches:
        longest = max(lengths[position] for position in batch)
        assert len(batch) <= max_rows
        assert len(batch) == 1 or len(batch) * longest <= max_tokens
    for batch, following in itertools.pairwise(batches):  # none could have taken the next text
        longest = max(lengths[position] for position in batch)
        assert len(batch) == max_rows or (len(batch) + 1) * longest > max_tokens
        assert following
    equal = [position for batch in batches_by_length([3, 3, 5, 3], 6, 10) for position in batch]
    assert equal == [2, 0, 1, 3]  # texts of equal length keep their order
