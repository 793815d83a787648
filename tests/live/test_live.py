"""Systems that ask a service, without an index and with one; what services do wrong, and what is kept of answers."""

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from citerec import Answer, Context, Filters, Recipe, Recommender
from citerec.errors import FilterError, IndexUnusableError, QueryError, ServiceError, SettingsError
from tests.live.services import Services, demo_papers, sent

SENTENCE = "Attention alone suffices to translate well <REF>."
LIVE = ["s2-api", "openalex-api"]


def opened(services: Services, system: str, index: Path | None = None, *settings: str) -> Recommender:
    return Recommender.open(index, Recipe.load(system, [*services.settings, *settings]))


def ask(services: Services, system: str = "s2-api", *settings: str, sentence: str = SENTENCE) -> Answer:
    with opened(services, system, None, *settings) as recommender:
        return recommender.search(sentence, 3)


def section(system: str) -> str:
    return system.replace("-", "_")


def keeping(system: str) -> str:
    return f"{section(system)}.keep_days=7"


@pytest.mark.parametrize("system", LIVE)
def test_papers_are_found_without_an_index_but_for_the_citing_one(services: Services, system: str) -> None:
    context = Context(text=SENTENCE, citing_year=2017, citing_title="Attention is all you need!")
    with opened(services, system) as recommender:
        answer = recommender.search(SENTENCE, 5, explain=True)
        others = {hit.paper.title for hit in recommender.search(context, 50)}
    paper = answer[0].paper
    assert paper.paper_id == {"s2-api": "900000041", "openalex-api": "W900000041"}[system]
    assert (paper.title, paper.year, paper.authors[0]) == ("Attention Is All You Need", 2017, "Ashish Vaswani")
    assert (paper.citation_count, paper.external_ids["DOI"]) == (100000, "10.5555/900000041")
    assert paper.fields_of_study == ("Computer Science",)
    assert (paper.tldr is not None) == (system == "s2-api")
    abstract = {one["corpusid"]: one["abstract"] for one in demo_papers()}[900000041]
    assert paper.abstract == " ".join(abstract.split())
    assert [hit.score for hit in answer] == [1 / rank for rank in range(1, len(answer) + 1)]
    assert {"Attention", "translate"} <= {match.word for match in answer[0].matches}
    assert others and paper.title not in others


def test_pages_are_read_up_to_the_depth(services: Services) -> None:
    services.lists_all = True
    with opened(services, "s2-api", None, "s2_api.depth=230") as recommender:
        assert len(recommender.search("Learning <REF>", 252)) == 230
        assert [parameters["offset"] for _, parameters, _ in services.asked] == ["0", "100", "200"]
        assert len(recommender.search("Learning <REF>", 5, Filters(min_citations=1))) == 5
        assert len(services.asked) == 4


def test_with_an_index_its_papers_are_found(services: Services, demo_index: Path) -> None:
    with opened(services, "bm25+s2-api", demo_index) as recommender:
        first = recommender.search(SENTENCE, 5, explain=True)[0]
        words = [match.word for match in first.matches]
        assert (first.paper.paper_id, first.paper.tldr) == ("900000041", None)  # the record is that of the index
        assert len(words) == len(set(words)) > 0
    services.papers.append({**demo_papers()[0], "corpusid": 5, "title": "Attention to what no index has", "year": 2018})
    with opened(services, "s2-api", demo_index) as recommender:
        assert "5" not in {hit.paper.paper_id for hit in recommender.search(SENTENCE, 5)}
        (remark,) = recommender.remarks()
        assert remark.endswith("papers that Semantic Scholar listed are not in the index.")
        assert recommender.remarks() == ()


def test_what_cannot_be_asked_is_said_and_not_sent(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
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
    for url in ("nowhere", "http://", "ftp://example.org", "http://["):
        with pytest.raises(SettingsError, match=r"s2_api\.url"):
            ask(services, "s2-api", f"s2_api.url={url}")
    monkeypatch.setenv("S2_API_KEY", "a\nb")
    with pytest.raises(SettingsError, match="S2_API_KEY is no key"):
        ask(services)
    assert services.asked == []


OTHER = "something else than a list of papers"


@pytest.mark.parametrize("system", LIVE)
@pytest.mark.parametrize(
    ("status", "body", "message", "remedy"),
    [
        (401, {"message": "Unauthorized"}, "answered 401: Unauthorized", "Set a key: "),
        (404, {"error": "Not found"}, "answered 404: Not found", "url right"),
        (429, {"message": "Too Many\nRequests", "code": "429"}, "answered 429: Too Many Requests", "a key of your own"),
        (200, b'{"data": [{"title": "Att', OTHER, "proxy"),
        (200, b"[1, 2]", OTHER, "proxy"),
        (200, {"data": "none", "results": {"a": 1}}, OTHER, "proxy"),
    ],
)
def test_each_failure_has_its_remedy(
    services: Services, system: str, status: int, body: object, message: str, remedy: str
) -> None:
    services.bad = [sent(body, status)] * 9
    with pytest.raises(ServiceError, match=message) as raised:
        ask(services, system, f"{section(system)}.tries=2", keeping(system))
    assert remedy in raised.value.remedy
    assert "\n" not in str(raised.value)
    assert len(services.asked) == (2 if status in (429, 504) else 1)
    services.bad = []
    assert ask(services, system, keeping(system)).hits, "nothing of it was kept"


def test_a_busy_service_is_asked_again_and_one_that_is_slow_or_breaks_off_is_not(services: Services) -> None:
    services.bad = [sent({}, 429, Retry_After="0"), sent({}, 503, Retry_After="0")]
    assert ask(services).hits
    assert services.queries[:3] == [services.queries[0]] * 3

    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(1)
        sent({"data": []})(handler)

    for bad in (slow, sent(b'{"data": [', most=4)):
        services.bad = [bad]
        with pytest.raises(ServiceError, match="cannot be reached") as raised:
            ask(services, "s2-api", "s2_api.timeout=0.2")
        assert "-c s2_api.timeout=SECONDS" in raised.value.remedy


@pytest.mark.parametrize("system", LIVE)
def test_a_question_asked_before_needs_no_network_and_no_key(
    services: Services, system: str, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    name = {"s2-api": "S2_API_KEY", "openalex-api": "OPENALEX_API_KEY"}[system]
    monkeypatch.setenv(name, "secret-of-mine")
    services.bad = [sent({}, 403)]
    with pytest.raises(ServiceError) as raised:
        ask(services, system)
    assert raised.value.remedy == f"Check the key in {name}, or unset it."
    before = ask(services, system, keeping(system))
    _, parameters, headers = services.asked[-1]
    assert before.hits and "secret-of-mine" in (headers.get("x-api-key"), parameters.get("api_key"))
    (kept,) = cache.glob("*.sqlite")
    assert b"secret-of-mine" not in kept.read_bytes() and b"pickle" not in kept.read_bytes()
    asked = len(services.asked)
    monkeypatch.setenv(name, "another")
    assert ask(services, system, keeping(system)) == before
    assert len(services.asked) == asked
    services.stop()
    assert ask(services, system, keeping(system)) == before
    with pytest.raises(ServiceError, match="cannot be reached") as raised:
        ask(services, system, keeping(system), sentence="Evolution of species <REF>")
    assert "Find a network" in raised.value.remedy and "citerec index build" in raised.value.remedy
    with pytest.raises(ServiceError, match="cannot be reached"):
        ask(services, system)  # which keeps nothing
    kept.write_bytes(b"no database at all, but some bytes")
    with pytest.raises(ServiceError, match="cannot be kept") as raised:
        ask(services, system, keeping(system))
    assert f"{section(system)}.keep_days=0" in raised.value.remedy


def test_pace_and_who_is_told_who_asks(services: Services, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    ask(services, "openalex-api", "openalex_api.pace=0.3")
    begun = (cache / "openalex-api.pace").stat().st_mtime
    monkeypatch.setenv("CITEREC_EMAIL", "me@example.org")
    ask(services, "openalex-api", "openalex_api.pace=0.3")
    assert (cache / "openalex-api.pace").stat().st_mtime - begun >= 0.29
    ask(services, "openalex-api", "openalex_api.email=you@example.org")
    ask(services, "s2-api")
    mails = [parameters.get("mailto") for _, parameters, _ in services.asked]
    assert mails == [None, "me@example.org", "you@example.org", *[None] * (len(mails) - 3)]
    assert all(headers["user-agent"].startswith("citerec/") for _, _, headers in services.asked)
