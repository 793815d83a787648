"""Papers by DOI from each service, and Crossref's lists."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from citerec.errors import ServiceError
from citerec.records import Filters
from citerec.sources.look_up import LOOK_UPS, Manners
from tests.live.services import demo_papers, graph_paper, work
from tests.loopback import Site, send

PAPER = demo_papers()[0]
ITEM = {"type": "article-journal", "DOI": "10.1/a(b)", "title": ["A title"], "issued": {"date-parts": [[2020]]}}
ANSWERS: dict[str, tuple[str, Any, str]] = {
    "s2": ("/paper/DOI:10.1/a%28b%29", graph_paper(PAPER), PAPER["title"]),
    "openalex": ("/works/doi:10.1/a%28b%29", work(PAPER), PAPER["title"]),
    "crossref": ("/works/10.1/a%28b%29", {"status": "ok", "message": ITEM}, "A title"),
}


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


def answering(site: Site, path: str, answer: Any) -> None:
    """Lets a server answer whatever is asked at a path."""
    body = send(body=orjson.dumps(answer))
    site.answers = [lambda handler: (body if urlsplit(handler.path).path == path else send(404))(handler)]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_paper_by_doi(site: Site, name: str) -> None:
    path, answer, title = ANSWERS[name]
    answering(site, path, answer)
    look_up = LOOK_UPS[name](Manners(url=site.url, pace=0, email="me@example.org"))
    paper = look_up.paper("10.1/a(b)")
    assert paper is not None
    assert paper.title == title
    assert look_up.paper("10.1/unknown") is None
    assert all(("mailto=me%40example.org" in asked) == (name != "s2") for asked, _ in site.asked)
    answering(site, path, [])
    with pytest.raises(ServiceError, match="something else"):
        LOOK_UPS[name](Manners(url=site.url, pace=0, keep_days=0)).paper("10.1/a(b)")


def test_what_crossref_lists(site: Site) -> None:
    answering(site, "/works", {"message": {"items": [ITEM, "nothing", None]}})
    page = LOOK_UPS["crossref"](Manners(url=site.url, pace=0)).search("a title", Filters(year_from=2019))
    assert [paper.title for paper in page.papers] == ["A title"]
    assert not page.has_more
    asked = parse_qs(urlsplit(site.asked[0][0]).query)
    assert asked["filter"] == ["from-pub-date:2019"]
    assert asked["query.bibliographic"] == ["a title"]
