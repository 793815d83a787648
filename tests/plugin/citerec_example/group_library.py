"""A look-up of another package: the library server of a research group."""

from collections.abc import Mapping
from typing import Any

from citerec.corpus.tabular import parse_paper
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.sources.look_up import LookUp, Page, readable


class GroupLibrary(LookUp):
    """It lists papers by the words of their titles, and answers with the columns of `Paper`."""

    name = "group-library"
    title = "our library"
    url = "https://library.example.org"
    lists = "papers"

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """One page of papers."""
        records, has_more = self.listed("search", {"q": query, "from": str(offset)}, {})
        return Page(list(readable(records, parse_paper)), has_more)

    def paper(self, doi: str) -> Paper | None:
        """The paper with a DOI."""
        record: Mapping[str, Any] | None = self.asked(f"doi/{doi}", {}, {}, may_lack=True)
        return next(readable([record], parse_paper), None)
