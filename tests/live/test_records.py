"""What is asked for and how answers are read: words of a sentence, papers by DOI, records whole and damaged."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.topic import topic_of
from citerec.errors import ServiceError
from citerec.records import Context, Filters, Paper
from citerec.retrieve.live import queries_of, words_of
from citerec.sources.look_up import LOOK_UPS, LookUp, Manners, SemanticScholar, readable
from tests.live.services import demo_papers, graph_paper, sent, work
from tests.loopback import Server

PAPER = demo_papers()[0]
ITEM = {"type": "article-journal", "DOI": "10.1/a(b)", "title": ["A title"], "issued": {"date-parts": [[2020]]}}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_any_value_in_any_field_is_read_or_left_out(data: st.DataObject) -> None:
    record = graph_paper(PAPER)
    for key in data.draw(st.sets(st.sampled_from(sorted(record)), max_size=3)):
        record[key] = data.draw(values)
    records: list[Any] = [record, data.draw(values), None, "text", 7, {}]
    for paper in readable(records, SemanticScholar.paper_of):
        assert paper.paper_id and " " not in paper.paper_id
        for text in (paper.title, paper.abstract or "", paper.venue or "", paper.tldr or "", *paper.authors):
            assert text == " ".join(text.split())


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def look_up(server: Server, name: str, path: str, answer: Any) -> LookUp:
    """It asks a server that answers at one path."""
    server.answers = [lambda handler: sent(answer, 200 if urlsplit(handler.path).path == path else 404)(handler)]
    return LOOK_UPS[name](Manners(url=server.url, pace=0, keep_days=0, email="me@example.org"))


@pytest.mark.parametrize(
    ("name", "path", "answer", "title"),
    [
        ("s2", "/paper/DOI:10.1/a%28b%29", graph_paper(PAPER), PAPER["title"]),
        ("openalex", "/works/doi:10.1/a%28b%29", work(PAPER), PAPER["title"]),
        ("crossref", "/works/10.1/a%28b%29", {"status": "ok", "message": ITEM}, "A title"),
    ],
    ids=["s2", "openalex", "crossref"],
)
def test_a_paper_by_doi(server: Server, name: str, path: str, answer: Any, title: str) -> None:
    asking = look_up(server, name, path, answer)
    known, unknown = (Paper("", external_ids={"DOI": doi}) for doi in ("10.1/a(b)", "10.1/unknown"))
    record = asking.by_id(known)
    assert record is not None and asking.paper_of(record).title == title
    assert asking.by_id(unknown) is None
    assert all(("mailto=me%40example.org" in asked) == (name != "s2") for asked, _ in server.asked)
    with pytest.raises(ServiceError, match="something else"):
        look_up(server, name, path, []).by_id(known)


def test_what_crossref_lists(server: Server) -> None:
    asking = look_up(server, "crossref", "/works", {"message": {"items": [ITEM, "nothing", None]}})
    page = asking.search("a title", Filters(year_from=2019, year_to=2021))
    assert [paper.title for paper in page.papers] == ["A title"] and not page.has_more
    asked = parse_qs(urlsplit(server.asked[0][0]).query)
    assert (asked["filter"], asked["query.bibliographic"]) == (["from-pub-date:2019,until-pub-date:2021"], ["a title"])


@pytest.mark.parametrize(
    ("sentence", "before", "words"),
    [
        ("Attention alone suffices to translate well <REF>.", "", ["Attention", "translate"]),
        ("We use BERT (Devlin et al., 2019) and self-training as <REF> do.", "", ["BERT", "self", "training"]),
        ("In 2019, results of previous work were shown <REF>.", "", []),
        ("This was shown by <REF>.", "Transformers translate well.", ["Transformers", "translate"]),
    ],
)
def test_words_of_a_sentence_or_else_of_those_around(sentence: str, before: str, words: list[str]) -> None:
    assert words_of(topic_of(Context(text=sentence, before=before))) == words


@given(st.text(), st.integers(1, 10))
def test_queries_are_plain_words(text: str, most: int) -> None:
    queries = list(queries_of(topic_of(Context(text=text)), most))
    sizes = [len(query.split()) for query in queries]
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(query.replace(" ", "").isalnum() and len(query.split()) <= most for query in queries)
