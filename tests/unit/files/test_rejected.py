import re

import pytest

from citerec.errors import BuildError
from citerec.files.progress import Rejected


@pytest.mark.parametrize(
    ("bad", "total", "max_bad", "found"),
    [
        (0, 0, 0.05, ""),
        (20, 100, 0.05, ""),
        (21, 100, 0.05, "21 of 100 records are bad, more than 5%"),
        (50, 1000, 0.05, ""),
        (51, 1000, 0.05, "51 of 1,000 records are bad, more than 5%"),
        (1, 1000, 0, "1 of 1,000 records are bad, more than 0%"),
        (1, 1, 0.05, "1 of 1 records are bad: none is good"),
        (999, 1000, 1, ""),
    ],
)
def test_more_than_twenty_and_more_than_the_share_or_all_are_too_many(
    bad: int, total: int, max_bad: float, found: str
) -> None:
    rejected = Rejected(max_bad)
    rejected.add(total - bad, bad, "a.jsonl, line 3: no id" if bad else "")
    if not found:
        rejected.check()
    else:
        with pytest.raises(BuildError, match=rf"^{re.escape(found)}; the first is a\.jsonl, line 3: no id\. "):
            rejected.check()


def test_while_there_is_more_to_read_its_size_counts_and_a_bad_beginning_is_allowed() -> None:
    rejected = Rejected(0.05)
    rejected.add(bad=999)
    rejected.check(0.5)  # of so few nothing follows
    rejected.add(good=1)
    rejected.check(0.05)  # at most 1,000 of 20,000
    with pytest.raises(BuildError, match="999 of 1,000 records are bad, more than 5%"):
        rejected.check(0.06)
