"""Whether a record passes filters."""

import pytest

from citerec.corpus.matching import passes
from citerec.records import NO_FILTERS, Filters, Paper

PAPER = Paper("1", year=2010, venue="Proc. of the ACM SIGIR Conference", fields_of_study=("Physics",), citation_count=5)
BARE = Paper("2")


@pytest.mark.parametrize(
    ("filters", "paper", "bare"),
    [
        (NO_FILTERS, True, True),
        (Filters(year_from=2010), True, False),
        (Filters(year_from=2011), False, False),
        (Filters(year_to=2010), True, False),
        (Filters(year_to=2009), False, False),
        (Filters(as_of_year=2009), False, True),
        (Filters(fields=("physics", "x")), True, False),
        (Filters(fields=("phys",)), False, False),
        (Filters(venues=("acm sigir",)), True, False),
        (Filters(venues=("sigir acm", "IR")), False, False),
        (Filters(min_citations=5), True, False),
        (Filters(min_citations=6), False, False),
        (Filters(exclude=("1",)), False, True),
        (Filters(citing_ids=("2",)), True, False),
    ],
)
def test_filters(filters: Filters, paper: bool, bare: bool) -> None:
    assert (passes(PAPER, filters), passes(BARE, filters)) == (paper, bare)
