"""Fetching from a server on loopback that breaks off, is busy, and changes its files."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citerec.files.http import Pace, WebError
from citerec.sources.base import ChangedError, FileWeb
from tests.loopback import Server, send

BODY = bytes(range(256)) * 4000
WEB = FileWeb(patience=0)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.mark.parametrize(
    ("answers", "begins"),
    [
        (
            [send(body=BODY, most=100_000, ETag='"a"'), send(body=BODY, most=300_000), send(503), send(body=BODY)],
            [0, 100_000, 400_000, 400_000],
        ),
        ([send(body=BODY[:5000], ETag='"a"'), send(body=BODY, ETag='"a"')], [0, 5000]),  # cut with its length
        ([send(body=BODY, most=100_000), send(body=BODY, nope="1")], [0, 100_000]),  # it knows no ranges
    ],
)
def test_a_file_comes_whole_though_the_connection_breaks(
    server: Server, answers: list[Callable[..., None]], begins: list[int]
) -> None:
    server.answers = list(answers)
    assert b"".join(WEB.chunks(lambda _expired: f"{server.url}/file")) == BODY
    asked = [begin for _, begin in server.asked]
    assert asked[: len(begins)] == [f"bytes={begin}-" if begin else None for begin in begins]


def test_a_file_that_changed_is_not_mixed(server: Server) -> None:
    first, page = send(body=BODY, most=100_000, ETag='"a"'), send(body=b"<html>Sorry</html>")
    for answers in ([page, send(body=BODY, ETag='"a"')], [first, send(body=BODY[::-1], nope="1", ETag='"b"')]):
        server.answers = answers
        with pytest.raises(ChangedError):
            list(WEB.chunks(lambda _expired: f"{server.url}/file"))


def test_an_expired_link_is_asked_for_anew(server: Server) -> None:
    server.answers = [send(403), send(body=BODY, most=5000), send(403), send(body=BODY)]
    told: list[bool] = []

    def link(expired: bool) -> str:
        told.append(expired)
        return f"{server.url}/{len(told)}"

    assert b"".join(WEB.chunks(link)) == BODY
    assert told == [False, True, True]
    assert [path for path, _ in server.asked] == ["/1", "/2", "/2", "/3"]
    server.answers = [send(body=b"\x1f\x8bno gzip", Content_Encoding="gzip")]  # what it calls so is not unzipped
    assert b"".join(WEB.chunks(link)) == b"\x1f\x8bno gzip"


def test_it_gives_up_with_a_remedy(server: Server) -> None:
    for answer, message in (
        (send(body=BODY, most=0), r"cannot be reached.*network"),
        (send(404), "answered 404"),
    ):
        server.answers = [answer]
        with pytest.raises(WebError, match=message) as caught:
            list(WEB.chunks(lambda _expired: server.url))
    assert caught.value.status == 404
    for answer, message in ((send(body=b"<html>"), "something else than JSON"), (send(401), "answered 401.*key")):
        server.answers = [answer]
        with pytest.raises(WebError, match=message):
            WEB.json(server.url)
    asked: list[int] = []
    with pytest.raises(WebError, match="cannot be reached"):
        WEB.again(lambda: asked.append(1) or WEB.answer("http://127.0.0.1:9"))
    assert len(asked) == 1  # each is six tries, with pauses of a minute in all


def test_a_busy_server_is_asked_again_when_it_says(server: Server, tmp_path: Path) -> None:
    server.answers = [send(429, Retry_After="0"), send(503), send(body=b'{"a": 1}')]
    assert WEB.json(server.url) == {"a": 1}
    server.answers = [send(503), send(body=BODY, Last_Modified="Mon, 23 Nov 2026 01:00:00 GMT")]
    headers = WEB.headers(f"{server.url}/file")
    assert headers["last-modified"].startswith("Mon, 23") and headers["Content-Length"] == str(len(BODY))
    Pace(0.2, place := tmp_path / "pace").wait()  # processes keep a pace together
    before = place.stat().st_mtime
    Pace(0.2, place).wait()
    assert place.stat().st_mtime - before >= 0.19
