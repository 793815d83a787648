import pytest

from citerec.groundwork.limits import too_many_bad


@pytest.mark.parametrize(
    ("bad", "total", "max_bad", "found"),
    [
        (0, 0, 0.05, ""),
        (0, 0, 0, ""),
        (1, 5, 0.05, ""),  # one bad entry of a small library
        (20, 100, 0.05, ""),
        (21, 100, 0.05, "21 of 100 records are bad, more than 5%"),
        (50, 1000, 0.05, ""),
        (51, 1000, 0.05, "51 of 1,000 records are bad, more than 5%"),
        (1, 1000, 0, "1 of 1,000 records are bad, more than 0%"),
        (1, 1, 0.05, "1 of 1 records are bad: none is good"),
        (3, 3, 1, "3 of 3 records are bad: none is good"),
        (999, 1000, 1, ""),
    ],
)
def test_more_than_twenty_and_more_than_the_share_or_all_are_too_many(
    bad: int, total: int, max_bad: float, found: str
) -> None:
    assert too_many_bad("records", bad, total, max_bad) == found


def test_while_there_is_more_to_read_its_size_counts_and_a_bad_beginning_is_allowed() -> None:
    assert not too_many_bad("records", 100, 100, 0.05, whole=2000)
    assert too_many_bad("records", 101, 101, 0.05, whole=2000)
