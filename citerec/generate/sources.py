"""Papers of an index as writers see them."""

from citerec.records import Paper
from citerec.texts.tasks import Source


def source_of(paper: Paper) -> Source:
    """A paper as writers see it: its abstract, empty where it has none."""
    return Source(paper.abstract or "", paper.paper_id, paper.title, authors=paper.authors)
