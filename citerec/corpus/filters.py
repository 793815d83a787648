"""Whether a record passes filters."""

import re

from citerec.records import Filters, Paper

_WORD = re.compile(r"\w+")


def passes(paper: Paper, filters: Filters) -> bool:
    """Whether a paper passes all filters; what each means says `Filters`."""
    if paper.paper_id in (*filters.exclude, *filters.citing_ids):
        return False
    if filters.as_of_year is not None and paper.year is not None and paper.year > filters.as_of_year:
        return False
    low, high = filters.year_from, filters.year_to
    if (low is not None or high is not None) and (
        paper.year is None or paper.year < (low or 0) or (high is not None and paper.year > high)
    ):
        return False
    known = -1 if paper.citation_count is None else paper.citation_count
    if filters.min_citations is not None and known < filters.min_citations:
        return False
    if filters.fields:
        wanted = {name.casefold() for name in filters.fields}
        if not any(name.casefold() in wanted for name in paper.fields_of_study):
            return False
    venue = _words(paper.venue or "") if filters.venues else ""
    return not filters.venues or any(_words(name) in venue for name in filters.venues)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
