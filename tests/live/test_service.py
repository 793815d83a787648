"""What services do wrong, what is kept of their answers, and how they are asked politely."""

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from citerec import Filters, Recipe, Recommender
from citerec.errors import ServiceError, SettingsError
from citerec.records import Answer
from tests.live.services import Services, sent

SENTENCE = "Attention alone suffices to translate well <REF>."
LIVE = ["s2-api", "openalex-api"]


def ask(services: Services, system: str = "s2-api", *settings: str, sentence: str = SENTENCE) -> Answer:
    with Recommender.open(None, Recipe.load(system, [*services.settings, *settings])) as recommender:
        return recommender.search(sentence, 3)


def keeping(system: str) -> str:
    return f"{system.replace('-', '_')}.keep_days=7"


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1)
    sent({"data": []})(handler)


def broken_off(handler: BaseHTTPRequestHandler) -> None:
    sent(b'{"data": [', most=4)(handler)


@pytest.mark.parametrize("system", LIVE)
@pytest.mark.parametrize(
    ("status", "body", "message", "remedy"),
    [
        (401, {"message": "Unauthorized"}, "answered 401: Unauthorized", "Set a key: "),
        (403, {"message": "Forbidden"}, "answered 403: Forbidden", "Set a key: "),
        (302, b"", "answered 302", "url right"),
        (404, {"error": "Not found"}, "answered 404: Not found", "url right"),
        (400, {"error": 7, "message": None}, "answered 400", "url right"),
        (429, {"message": "Too Many\nRequests", "code": "429"}, "answered 429: Too Many Requests", "a key of your own"),
        (500, b"<html>oops</html>", "answered 500", "Try again later"),
        (504, b"", "answered 504", "Try again later"),
        (200, b"<html>Log in</html>", "something else than a list of papers", "proxy"),
        (200, b'{"data": [{"title": "Att', "something else than a list of papers", "proxy"),
        (200, b"[1, 2]", "something else than a list of papers", "proxy"),
        (200, {"data": "none", "results": {"a": 1}}, "something else than a list of papers", "proxy"),
    ],
)
def test_each_failure_has_its_remedy(
    services: Services, system: str, status: int, body: object, message: str, remedy: str
) -> None:
    services.bad = [sent(body, status)] * 9
    with pytest.raises(ServiceError, match=message) as raised:
        ask(services, system, f"{system.replace('-', '_')}.tries=2", keeping(system))
    assert remedy in raised.value.remedy
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)
    assert len(services.asked) == (2 if status in (429, 500, 504) else 1)
    services.bad = []
    assert ask(services, system, keeping(system)).hits, "nothing of it was kept"


@pytest.mark.parametrize("system", LIVE)
def test_a_wrong_key_is_told_from_a_missing_one(
    services: Services, system: str, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    name = {"s2-api": "S2_API_KEY", "openalex-api": "OPENALEX_API_KEY"}[system]
    monkeypatch.setenv(name, "secret-of-mine")
    services.bad = [sent({}, 403)]
    with pytest.raises(ServiceError) as raised:
        ask(services, system)
    assert raised.value.remedy == f"Check the key in {name}, or unset it."
    assert ask(services, system, keeping(system)).hits
    _, parameters, headers = services.asked[-1]
    assert "secret-of-mine" in (headers.get("x-api-key"), parameters.get("api_key"))
    # Kept is the answer, not the key; and the answer is the same for other keys.
    assert b"secret-of-mine" not in b"".join(path.read_bytes() for path in cache.iterdir())
    asked = len(services.asked)
    monkeypatch.setenv(name, "another")
    assert ask(services, system, keeping(system)).hits
    assert len(services.asked) == asked


def test_a_busy_service_is_asked_again(services: Services) -> None:
    services.bad = [sent({}, 429, Retry_After="0"), sent({}, 503, Retry_After="0")]
    assert ask(services).hits
    assert [services.queries[0]] * 3 == services.queries[:3]


@pytest.mark.parametrize("system", LIVE)
def test_a_service_that_is_slow_or_breaks_off(services: Services, system: str) -> None:
    section = system.replace("-", "_")
    services.bad = [slow]
    with pytest.raises(ServiceError, match="cannot be reached") as raised:
        ask(services, system, f"{section}.timeout=0.2")
    assert f"-c {section}.timeout=SECONDS" in raised.value.remedy
    services.bad = [broken_off]
    with pytest.raises(ServiceError, match="cannot be reached"):
        ask(services, system)


@pytest.mark.parametrize("system", LIVE)
def test_a_question_asked_before_needs_no_network(services: Services, system: str, cache: Path) -> None:
    before = ask(services, system, keeping(system))
    asked = len(services.asked)
    assert ask(services, system, keeping(system)) == before
    assert len(services.asked) == asked
    services.stop()
    assert ask(services, system, keeping(system)) == before
    with pytest.raises(ServiceError, match="cannot be reached") as raised:
        ask(services, system, keeping(system), sentence="Evolution of species <REF>")
    assert "Find a network" in raised.value.remedy
    assert "citerec index build" in raised.value.remedy
    with pytest.raises(ServiceError, match="cannot be reached"):
        ask(services, system)  # which keeps nothing
    (kept,) = cache.glob("*.sqlite")
    assert b"pickle" not in kept.read_bytes()
    kept.write_bytes(b"no database at all, but some bytes")
    with pytest.raises(ServiceError, match="cannot be kept") as raised:
        ask(services, system, keeping(system))
    assert f"{system.replace('-', '_')}.keep_days=0" in raised.value.remedy


def test_an_old_answer_is_asked_for_again_unless_nobody_answers(services: Services) -> None:
    short = "s2_api.keep_days=0.00002"  # a second
    before = ask(services, "s2-api", short)
    asked = len(services.asked)
    time.sleep(2.1)
    assert ask(services, "s2-api", short) == before
    assert len(services.asked) == 2 * asked
    time.sleep(2.1)
    services.stop()
    assert ask(services, "s2-api", short) == before


def test_requests_keep_a_pace(services: Services, cache: Path) -> None:
    ask(services, "s2-api", "s2_api.pace=0.3", "s2_api.tries=1")
    assert (cache / "s2-api.pace").is_file()
    begun = (cache / "s2-api.pace").stat().st_mtime
    ask(services, "s2-api", "s2_api.pace=0.3")
    assert (cache / "s2-api.pace").stat().st_mtime - begun >= 0.29


def test_openalex_is_told_who_asks(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(services, "openalex-api")
    monkeypatch.setenv("CITEREC_EMAIL", "me@example.org")
    ask(services, "openalex-api")
    ask(services, "openalex-api", "openalex_api.email=you@example.org")
    ask(services, "s2-api")
    assert [parameters.get("mailto") for _, parameters, _ in services.asked][:3] == [
        None,
        "me@example.org",
        "you@example.org",
    ]
    assert all("example.org" not in str(parameters) for _, parameters, _ in services.asked[3:])
    assert all(headers["user-agent"].startswith("citerec/") for _, _, headers in services.asked)


def test_an_address_or_a_key_that_is_none(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("nowhere", "http://", "ftp://example.org", "http://["):
        with pytest.raises(SettingsError, match=r"s2_api\.url"):
            ask(services, "s2-api", f"s2_api.url={url}")
    for key in ("a\nb", "schlüssel"):
        monkeypatch.setenv("S2_API_KEY", key)
        with pytest.raises(SettingsError, match="S2_API_KEY is no key"):
            ask(services)


def test_pages_are_read_up_to_the_depth(services: Services) -> None:
    services.lists_all = True
    with Recommender.open(None, Recipe.load("s2-api", [*services.settings, "s2_api.depth=230"])) as recommender:
        assert len(recommender.search("Learning <REF>", 252)) == 230
        assert [parameters["offset"] for _, parameters, _ in services.asked] == ["0", "100", "200"]
        assert len(recommender.search("Learning <REF>", 5, Filters(min_citations=1))) == 5
        assert len(services.asked) == 4
