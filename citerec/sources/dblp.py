"""DBLP: who wrote what in computer science, where and when (docs/checking.md)."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from citerec.corpus.base import paper_of
from citerec.corpus.matching import arxiv_in, doi_in, doi_of_address, plain_title, year_in
from citerec.corpus.reading import plain, read_id, read_list, read_object, read_plain, read_strings
from citerec.corpus.venues import same_venue
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.sources.known import Known
from citerec.sources.look_up import PAGE, LookUp, Page

_NUMBER = re.compile(r" \d{4}$")  # it tells authors of one name apart
_LISTED = 5


class Dblp(LookUp):
    """DBLP. It lists publications that have all words, or words that begin with them."""

    name = "dblp"
    title = "DBLP"
    url = "https://dblp.org"
    lists = "hit"
    by_doi = ""
    fields: ClassVar[dict[str, str]] = {"format": "json"}

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:  # noqa: ARG002 - it has none
        """Publications with all words."""
        return self.page("search/publ/api", {"q": query, "h": str(PAGE), "f": str(offset), **self.fields})

    def titled(self, paper: Paper) -> list[Known]:
        """Publications with all words of the title."""
        words = plain_title(paper.title)
        asked = {"q": words, "h": str(_LISTED), **self.fields}
        return self.known_in(self.listed("search/publ/api", asked)) if words else []

    def has_venue(self, name: str) -> bool | None:
        """Whether one of the venues that it lists for a name is of this name, or of one that means the same."""
        found = self.listed("search/venue/api", {"q": plain_title(name), "h": str(_LISTED), **self.fields})
        names = [read_object(one, "info").get(field) for one in found for field in ("venue", "acronym")]
        return any(same_venue(name, other) for other in names if isinstance(other, str))

    def by_id(self, paper: Paper) -> Mapping[str, Any] | None:  # noqa: ARG002
        """None: it is asked by title."""
        return None

    def read(self, content: bytes) -> dict[str, Any] | None:
        """The part of an answer that has the list."""
        try:
            hits = orjson.loads(content)["result"]["hits"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            return None
        return hits if isinstance(hits, dict) and isinstance(hits.get("hit") or [], list) else None

    @staticmethod
    def paper_of(record: Mapping[str, Any], /) -> Paper:
        """The paper of a hit; RecordError if it cannot be read."""
        info = read_object(record, "info")
        named = read_object(info, "authors").get("author") or []
        authors = read_list({"author": named if isinstance(named, list) else [named]}, "author", dict)
        venue = info.get("venue")
        address = read_plain(info, "ee") if isinstance(info.get("ee"), str) else ""
        doi = doi_in(read_plain(info, "doi") or "") or doi_of_address(address or "")
        return paper_of(
            read_id(info, "key"),
            {"DOI": doi, "ArXiv": arxiv_in(address or "")},
            title=(read_plain(info, "title") or "").removesuffix("."),
            year=year_in(read_plain(info, "year") or ""),
            venue=" ".join(read_strings(info, "venue")) if isinstance(venue, list) else read_plain(info, "venue"),
            authors=tuple(_NUMBER.sub("", plain(str(one.get("text") or ""))) for one in authors),
        )
