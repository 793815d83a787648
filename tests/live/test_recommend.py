"""Systems that ask a service, without an index and with one."""

from pathlib import Path

import pytest

from citerec import Context, Filters, Recipe, Recommender
from citerec.errors import FilterError, IndexUnusableError, QueryError, SettingsError
from tests.live.services import Services, demo_papers

SENTENCE = "Attention alone suffices to translate well <REF>."
LIVE = ["s2-api", "openalex-api"]


def opened(services: Services, system: str, index: Path | None = None, *settings: str) -> Recommender:
    return Recommender.open(index, Recipe.load(system, [*services.settings, *settings]))


@pytest.mark.parametrize("system", LIVE)
def test_papers_are_found_without_an_index(services: Services, system: str) -> None:
    with opened(services, system) as recommender:
        answer = recommender.search(SENTENCE, 5, explain=True)
    first = answer[0]
    assert first.paper.title == "Attention Is All You Need"
    assert first.paper.paper_id in ("900000041", "W900000041")
    assert (first.paper.year, first.paper.authors[0]) == (2017, "Ashish Vaswani")
    assert (first.paper.citation_count, first.paper.external_ids["DOI"]) == (100000, "10.5555/900000041")
    assert first.paper.fields_of_study == ("Computer Science",)
    assert (first.paper.tldr is not None) == (system == "s2-api")
    expected = {str(one["corpusid"]): one["abstract"] for one in demo_papers()}["900000041"]
    assert first.paper.abstract == " ".join(expected.split())
    assert [hit.score for hit in answer] == [1 / rank for rank in range(1, len(answer) + 1)]
    assert {"Attention", "translate"} <= {match.word for match in first.matches}


def test_fewer_words_are_asked_for_until_enough_is_found(services: Services) -> None:
    sentence = (
        "Deep networks with many layers learn representations of natural images, as encoder-like models do <REF>."
    )
    with opened(services, "s2-api") as recommender:
        assert recommender.search(sentence, 3)
    sizes = [len(query.split()) for query in services.queries]
    assert sizes == sorted(set(sizes), reverse=True) and sizes[0] == 6
    assert not any("-" in query or "<REF>" in query for query in services.queries)
    assert all(path == "/graph/v1/paper/search" for path, _, _ in services.asked)


def test_filters_are_sent(services: Services) -> None:
    """That they hold is in the contract of retrievers."""
    services.lists_all = True
    filters = Filters(year_from=1990, year_to=2015, min_citations=5000, fields=("computer science",))
    for system in LIVE:
        with opened(services, system) as recommender:
            assert recommender.search("Deep networks for image recognition <REF>", 20, filters)
            assert recommender.search("Deep learning <REF>", 5, Filters(year_from=2015, as_of_year=2010)).hits == ()
            with pytest.raises(FilterError, match="reversed"):
                recommender.search("Deep learning <REF>", 5, Filters(year_from=2015, year_to=2010))
    asked = {path: one for path, one, _ in services.asked if "year" in one or "filter" in one}
    assert asked["/graph/v1/paper/search"]["year"] == "1990-2015"
    assert asked["/graph/v1/paper/search"]["minCitationCount"] == "5000"
    conditions = "from_publication_date:1990-01-01,to_publication_date:2015-12-31,cited_by_count:>4999"
    assert asked["/openalex/works"]["filter"] == conditions


@pytest.mark.parametrize("system", LIVE)
def test_the_citing_paper_itself_is_not_found(services: Services, system: str) -> None:
    context = Context(text=SENTENCE, citing_year=2017, citing_title="Attention is all you need!")
    with opened(services, system) as recommender:
        assert "Attention Is All You Need" not in {hit.paper.title for hit in recommender.search(context, 50)}


def test_two_services_are_fused_and_editions_folded(services: Services) -> None:
    with opened(services, "s2-api+openalex-api") as recommender:
        apart = recommender.search(SENTENCE, 10)
        folded = recommender.search(SENTENCE, 10, fold=True)
    assert {hit.paper.paper_id[0] for hit in apart} == {"9", "W"}
    keys = [(-hit.score, hit.paper.paper_id.encode()) for hit in apart]
    assert keys == sorted(keys)
    assert folded[0].paper.title == "Attention Is All You Need"
    assert [other.title for other in folded[0].also] == ["Attention Is All You Need"]


def test_with_an_index_its_papers_are_found(services: Services, demo_index: Path) -> None:
    with opened(services, "bm25+s2-api", demo_index) as recommender:
        first = recommender.search(SENTENCE, 5, explain=True)[0]
        words = [match.word for match in first.matches]
        assert (first.paper.paper_id, first.paper.tldr) == ("900000041", None)  # the record is that of the index
        assert len(words) == len(set(words)) > 0
    unknown = {**demo_papers()[0], "corpusid": 5, "title": "Attention to what no index has", "year": 2018}
    services.papers.append(unknown)
    with opened(services, "s2-api", demo_index) as recommender:
        assert "5" not in {hit.paper.paper_id for hit in recommender.search(SENTENCE, 5)}
        (remark,) = recommender.remarks()
        assert remark.endswith("papers that Semantic Scholar listed are not in the index.")
        assert recommender.remarks() == ()


def test_what_needs_an_index_says_so(services: Services) -> None:
    with pytest.raises(IndexUnusableError, match="neither an index nor a system"):
        Recommender.open()
    for system in ("bm25", "hybrid+s2-api"):
        with pytest.raises(SettingsError, match="without an index") as raised:
            opened(services, system)
        assert "citerec index build" in raised.value.remedy
    with opened(services, "s2-api") as recommender:
        with pytest.raises(SettingsError, match="needs an index"):
            recommender.search(SENTENCE, sort="newest")
        with pytest.raises(FilterError, match="1,000 papers that a service lists"):
            recommender.search(SENTENCE, 1001)
        with pytest.raises(QueryError, match="no word to ask Semantic Scholar for"):
            recommender.search("It was shown that this is so <REF>.")
    assert services.asked == []
