"""Fetching from a server on loopback that breaks off, is busy, and changes its files."""

from collections.abc import Iterator

import pytest

from citerec.files.http import ChangedError, Pace, Web, WebError
from tests.loopback import Server, send

BODY = bytes(range(256)) * 4000


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def fetched(web: Web, server: Server) -> bytes:
    return b"".join(web.chunks(lambda _expired: f"{server.url}/file"))


def test_a_file_comes_whole_though_the_connection_breaks(server: Server) -> None:
    server.answers = [
        send(body=BODY, most=100_000, ETag='"a"'),
        send(body=BODY, most=300_000),
        send(503),
        send(body=BODY),
    ]
    assert fetched(Web(patience=0), server) == BODY
    assert [begin for _, begin in server.asked] == [None, "bytes=100000-", "bytes=400000-", "bytes=400000-"]


def test_an_answer_that_was_cut_with_its_length_is_gone_on_with(server: Server) -> None:
    server.answers = [send(body=BODY[:5000], ETag='"a"'), send(body=BODY, ETag='"a"')]
    assert fetched(Web(patience=0), server) == BODY
    assert [begin for _, begin in server.asked] == [None, "bytes=5000-"]


def test_a_page_in_place_of_the_file_is_not_its_beginning(server: Server) -> None:
    server.answers = [send(body=b"<html>Sorry</html>"), send(body=BODY, ETag='"a"')]
    with pytest.raises(ChangedError):
        fetched(Web(patience=0), server)


def test_a_server_without_ranges_sends_again_what_is_left_out(server: Server) -> None:
    server.answers = [send(body=BODY, most=100_000), send(body=BODY, nope="1")]
    assert fetched(Web(patience=0), server) == BODY


def test_a_file_that_changed_is_not_mixed(server: Server) -> None:
    server.answers = [send(body=BODY, most=100_000, ETag='"a"'), send(body=BODY[::-1], nope="1", ETag='"b"')]
    with pytest.raises(ChangedError):
        fetched(Web(patience=0), server)


def test_what_a_server_calls_an_encoding_is_not_unzipped(server: Server) -> None:
    server.answers = [send(body=b"\x1f\x8bno gzip", Content_Encoding="gzip")]
    assert fetched(Web(patience=0), server) == b"\x1f\x8bno gzip"


def test_an_expired_link_is_asked_for_anew(server: Server) -> None:
    server.answers = [send(403), send(body=BODY, most=5000), send(403), send(body=BODY)]
    told: list[bool] = []

    def link(expired: bool) -> str:
        told.append(expired)
        return f"{server.url}/{len(told)}"

    assert b"".join(Web(patience=0).chunks(link)) == BODY
    assert told == [False, True, True]
    assert [path for path, _ in server.asked] == ["/1", "/2", "/2", "/3"]


def test_it_gives_up_with_a_remedy(server: Server) -> None:
    server.answers = [send(body=BODY, most=0)]
    with pytest.raises(WebError, match=r"cannot be reached.*network"):
        fetched(Web(patience=0), server)
    server.answers = [send(404)]
    with pytest.raises(WebError, match="answered 404") as caught:
        fetched(Web(patience=0), server)
    assert caught.value.status == 404


def test_a_busy_server_is_asked_again_when_it_says(server: Server) -> None:
    server.answers = [send(429, Retry_After="0"), send(503), send(body=b'{"a": 1}')]
    assert Web(patience=0).json(server.url) == {"a": 1}
    server.answers = [send(body=b"<html>")]
    with pytest.raises(WebError, match="something else than JSON"):
        Web(patience=0).json(server.url)
    server.answers = [send(401)]
    with pytest.raises(WebError, match=r"answered 401.*key"):
        Web(patience=0).json(server.url)


def test_headers_without_the_file(server: Server) -> None:
    server.answers = [send(503), send(body=BODY, Last_Modified="Mon, 23 Nov 2026 01:00:00 GMT")]
    headers = Web(patience=0).headers(f"{server.url}/file")
    assert headers["last-modified"].startswith("Mon, 23") and headers["Content-Length"] == str(len(BODY))
    server.answers = [send(404)]
    with pytest.raises(WebError, match="answered 404"):
        Web(patience=0).headers(f"{server.url}/file")


def test_nobody_there() -> None:
    asked = []

    def ask() -> object:
        asked.append(1)
        return Web(patience=0).answer("http://127.0.0.1:9")

    with pytest.raises(WebError, match="cannot be reached"):
        Web(patience=0).again(ask)
    assert len(asked) == 1  # each is six tries, with pauses of a minute in all


def test_processes_keep_a_pace_together(tmp_path) -> None:  # type: ignore[no-untyped-def]
    place = tmp_path / "pace"
    first = Pace(0.2, place)
    first.wait()
    before = place.stat().st_mtime
    Pace(0.2, place).wait()
    assert place.stat().st_mtime - before >= 0.19
