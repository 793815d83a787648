"""Whether a record passes filters."""

import re

from citerec.records import Filters, Paper

_WORD = re.compile(r"\w+")


def passes(paper: Paper, filters: Filters) -> bool:
    """Whether a paper passes all filters; what each means says `Filters`."""
    year, low, high, latest = paper.year, filters.year_from, filters.year_to, filters.as_of_year
    fields = {name.casefold() for name in filters.fields}
    venue = _words(paper.venue or "") if filters.venues else ""
    return (
        paper.paper_id not in (*filters.exclude, *filters.citing_ids)
        and (latest is None or year is None or year <= latest)
        and (low is None or (year is not None and year >= low))
        and (high is None or (year is not None and year <= high))
        and (
            filters.min_citations is None
            or (-1 if paper.citation_count is None else paper.citation_count) >= filters.min_citations
        )
        and (not fields or any(name.casefold() in fields for name in paper.fields_of_study))
        and (not filters.venues or any(_words(name) in venue for name in filters.venues))
    )


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
