"""Fetching from a server on loopback that changes its files, or gives nothing of use."""

from collections.abc import Iterator

import pytest

from citerec.files.http import ChangedError, Web, WebError
from tests.loopback import Server, send

BODY = bytes(range(256)) * 4000
WEB = Web(patience=0)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def test_a_file_that_changed_is_not_mixed(server: Server) -> None:
    first, page = send(body=BODY, most=100_000, ETag='"a"'), send(body=b"<html>Sorry</html>")
    for answers in ([page, send(body=BODY, ETag='"a"')], [first, send(body=BODY[::-1], nope="1", ETag='"b"')]):
        server.answers = answers
        with pytest.raises(ChangedError):
            list(WEB.chunks(lambda _expired: f"{server.url}/file"))


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
