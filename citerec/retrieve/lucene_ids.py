"""The ids of the papers that pass some filters, as Lucene knows them: for retrievers that have no fields and venues."""

from typing import Any

from citerec.errors import SearchError
from citerec.records import Filters
from citerec.retrieve import lucene_fields as fields
from citerec.retrieve.jvm import java_class, java_failures, java_lock
from citerec.retrieve.lucene_queries import filtered, occur

# Java prints a page as one string, which holds at most 2^31 characters.
_PAGE = 500_000


def matching_ids(searcher: Any, filters: Filters) -> list[str]:
    """The ids of all papers that pass some filters, in order of id.

    Args:
        searcher: A `_Searcher` of `lucene.py`, open on the papers.
        filters: Which papers; `fields` and `venues` are what others cannot answer.
    """
    from citerec.retrieve.lucene import _PAPER_HIT, _text

    found: list[str] = []
    with java_failures("filtering", SearchError):
        while True:
            with java_lock:
                query = filtered(_after(found[-1] if found else None), filters)
                count = min(_PAGE, searcher.count(query))
            # All score the same: the order of relevance is that of ids.
            page = _PAPER_HIT.findall(searcher.search(query, count, "relevance")) if count else []
            found += [_text(paper_id) for _, paper_id in page]
            if count < _PAGE:
                return found


def _after(paper_id: str | None) -> Any:
    everything = java_class("org.apache.lucene.search.MatchAllDocsQuery")()
    if paper_id is None:
        return everything
    ranges = java_class("org.apache.lucene.search.TermRangeQuery")
    later = ranges.newStringRange(fields.ID, paper_id, None, False, False)
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    builder.add(everything, occur().MUST)
    builder.add(later, occur().FILTER)
    return builder.build()
