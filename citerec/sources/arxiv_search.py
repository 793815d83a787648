"""arXiv's search of preprints, by id or title (docs/checking.md)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from citerec.corpus.arxiv import parse_paper
from citerec.corpus.matching import arxiv_in, keys_of, plain_title
from citerec.files.text import one_line
from citerec.files.xml import Element, read_xml
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.sources.known import Known, Notice
from citerec.sources.look_up import PAGE, LookUp, Page

_ATOM, _ARXIV = "{http://www.w3.org/2005/Atom}", "{http://arxiv.org/schemas/atom}"
_LISTED, _MOST_WORDS = 5, 12
_SMALL = 3  # letters of words that are not searched
_ACCEPTED = re.compile(
    r"\b(?:accepted|published|presented|appear\w*)\s+(?:at|in|to|by|as|for)\s+(?:the\s+)?([^,;.]+)", re.I
)
_WITHDRAWN = re.compile(r"\bwithdrawn\b", re.IGNORECASE)


class ArxivSearch(LookUp):
    """arXiv's API."""

    name = "arxiv"
    title = "arXiv"
    url = "https://export.arxiv.org/api"
    lists = "entries"
    by_doi = ""
    paper_of = staticmethod(parse_paper)

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:  # noqa: ARG002 - it has none
        """Preprints with all words."""
        asked = " AND ".join(f"all:{word}" for word in plain_title(query).split())
        return self.page("query", {"search_query": asked, "start": str(offset), "max_results": str(PAGE)})

    def titled(self, paper: Paper) -> list[Known]:
        """Preprints with the first words of the title."""
        words = [word for word in plain_title(paper.title).split() if len(word) > _SMALL][:_MOST_WORDS]
        asked = " AND ".join(f"ti:{word}" for word in words)
        return (
            self.known_in(self.listed("query", {"search_query": asked, "max_results": str(_LISTED)})) if words else []
        )

    def by_id(self, paper: Paper) -> Mapping[str, Any] | None:
        """The preprint with the arXiv id of a paper, or with a DOI that arXiv gave."""
        names = sorted(keys_of(paper))
        own = next((name for name in names if name.startswith("arxiv:")), "").removeprefix("arxiv:")
        return next(iter(self.listed("query", {"id_list": own})), None) if own else None

    def notices_of(self, record: Mapping[str, Any]) -> Iterator[Notice]:
        """Whether its authors took it back."""
        if _WITHDRAWN.search(record["comments"]):
            yield Notice("retraction", f"https://arxiv.org/abs/{record['id']}", self.title)

    def read(self, content: bytes) -> dict[str, Any] | None:
        """The entries of a feed, as lines of arXiv's metadata file; None for what is no feed."""
        feed = read_xml(content)
        if feed is None or feed.tag != f"{_ATOM}feed":
            return None
        return {"entries": list(map(_entry, feed.iterfind(f"{_ATOM}entry")))}


def _entry(entry: Element) -> dict[str, Any]:
    """An entry as a line of the metadata file. Where a comment says that it was accepted, that is its journal."""
    said = one_line(entry.findtext(f"{_ARXIV}comment") or "")
    accepted = _ACCEPTED.search(said)
    names = (one_line(author.findtext(f"{_ATOM}name") or "") for author in entry.iterfind(f"{_ATOM}author"))
    return {
        "id": arxiv_in(entry.findtext(f"{_ATOM}id") or ""),
        "title": one_line(entry.findtext(f"{_ATOM}title") or ""),
        "abstract": one_line(entry.findtext(f"{_ATOM}summary") or ""),
        "doi": entry.findtext(f"{_ARXIV}doi"),
        "journal-ref": entry.findtext(f"{_ARXIV}journal_ref") or (accepted[1] if accepted else None),
        "authors_parsed": [[name] for name in names if name],
        "versions": [{"created": entry.findtext(f"{_ATOM}published")}],
        "categories": " ".join(one.get("term", "") for one in entry.iterfind(f"{_ATOM}category")),
        "comments": said,
    }
