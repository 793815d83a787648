"""A look-up of another package: the library server of a research group."""

from citerec.corpus.tabular import parse_paper
from citerec.records import NO_FILTERS, Filters
from citerec.sources.look_up import LookUp, Page


class GroupLibrary(LookUp):
    """It lists papers by the words of their titles, and answers with the columns of `Paper`."""

    name = "group-library"
    title = "our library"
    url = "https://library.example.org"
    lists = "papers"
    by_doi = "doi/{}"
    paper_of = staticmethod(parse_paper)

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """One page of papers."""
        return self.page("search", {"q": query, "from": str(offset)})
