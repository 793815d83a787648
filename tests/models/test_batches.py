from hypothesis import given
from hypothesis import strategies as st

from citerec.models.batches import batches_by_length

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


@given(LENGTHS)
def test_no_batch_could_have_taken_the_next_text(lengths: list[int]) -> None:
    batches = list(batches_by_length(lengths, 1000, 1000))
    for batch in batches[:-1]:
        assert (len(batch) + 1) * max(lengths[position] for position in batch) > 1000


def test_texts_of_equal_length_keep_their_order() -> None:
    assert list(batches_by_length([3, 3, 5, 3], 6, 10)) == [[2], [0, 1], [3]]


def test_no_texts_no_batches() -> None:
    assert list(batches_by_length([], 10, 10)) == []
