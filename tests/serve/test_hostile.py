"""Requests that no honest client sends: hundreds of them in this file, and the server still answers."""

import contextlib
import json
import random
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings, strategies as st

from tests.conftest import ROOT
from tests.serve.conftest import JSON, SENTENCE, Running, Start

HTML = "<script>alert(1)</script><img src=x onerror=alert(1)> <REF>"
PATHS = ["/api/v1/recommend", "/api/v1/generate"]
PATHS += ["/api/v1/drafts", "/api/v1/drafts/recommend", "/api/v1/drafts/cite"]

TEXTS = [SENTENCE, HTML, "<REF>" * 10, "a" * 21_000, "'; DROP TABLE papers; -- <REF>"]
TEXTS += ["\x00 <REF>", "\u202e <REF> \U0001f600"]
FIELDS = "text title citing cited papers filters k explain fold bibtex index <b>new</b>".split()
FIELDS += "name bibliography place words keys".split()
FILTERS = "year_from year_to fields venues min_citations exclude".split()

_texts = st.text(max_size=60) | st.sampled_from(TEXTS)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=8,
)


def check(response: httpx.Response) -> None:
    """No answer is a fault of the server, and none is HTML."""
    assert response.status_code < 500 or response.status_code == 503, response.text
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    content = json.loads(response.content)
    if response.status_code >= 400:
        assert set(content) == {"error", "remedy"}
        assert len(response.content) < 4000


@pytest.fixture(autouse=True)
def still_answers(client: httpx.Client) -> Any:
    yield
    assert client.post("/api/v1/recommend", json={"text": SENTENCE}).status_code == 200


_filters = st.dictionaries(st.sampled_from([*FILTERS, HTML]), _values, max_size=3)
_bodies = st.dictionaries(st.sampled_from([*FIELDS, HTML]), _values, max_size=4)


@settings(max_examples=100)
@given(path=st.sampled_from(PATHS), body=_bodies, text=st.sampled_from(TEXTS), filters=st.none() | _filters)
@example(path=PATHS[0], body={HTML: HTML}, text=HTML, filters={HTML: HTML})
@example(path=PATHS[0], body={"cited": {HTML: HTML}}, text=HTML, filters=None)
def test_any_value_in_any_field(client: httpx.Client, path: str, body: Any, text: str, filters: Any) -> None:
    more = {} if filters is None else {"filters": filters}
    check(client.post(path, content=json.dumps({"text": text, **more, **body}).encode(), headers=JSON))


@pytest.mark.parametrize("text", [HTML, "%00", "..%2f..%2fetc", "\u202e", "a" * 5000, "{}", "%ff", "-1", "9" * 40])
def test_strange_addresses_and_queries(client: httpx.Client, text: str) -> None:
    for path in (f"/api/v1/papers/{text}", f"/api/{text}"):
        check(client.get(httpx.URL(client.base_url).copy_with(path=path)))
    for name in (*FILTERS, "q", "offset", "limit", "index", "<b>"):
        check(client.get("/api/v1/papers", params={name: text}))


def test_known_traps(client: httpx.Client) -> None:
    deep, wide = b"[" * 100_000, b'{"a":' * 30_000
    bodies = [
        deep + b"]" * 100_000,
        wide,
        b'{"text": "a <REF>", "k": NaN}',
        b'{"text": "a <REF>", "k": 1e999}',
        b'{"text": "a <REF>", "k": ' + b"9" * 10_000 + b"}",
        b'{"text": "\\ud800 <REF>"}',
        b'{"text": "a <REF>", "cited": {"\\ud800": "x"}}',
        b'\xef\xbb\xbf{"text": "a <REF>"}',
        '{"text": "a <REF>"}'.encode("utf-16"),
        b"",
        json.dumps({"text": "1. " * 2000 + "<REF>"}).encode(),
        json.dumps({"text": "(" * 19_000 + "<REF>"}).encode(),
        json.dumps({"text": "a <REF>", "filters": {"exclude": [str(n) for n in range(5000)]}}).encode(),
    ]
    for path in PATHS:
        for body in bodies:
            check(client.post(path, content=body, headers=JSON))
        for kind in ("application/json; charset=latin-1", "text/html", ""):
            check(client.post(path, content=b"\xff{}", headers={"Content-Type": kind}))


def raw(server: Running, *parts: bytes, reads: bool = True) -> bytes:
    """Sends bytes on a connection of its own; the answer, until the server closes it."""
    answer = b""
    with socket.create_connection(server.address, 30) as connection, contextlib.suppress(ConnectionError):
        for part in parts:
            connection.sendall(part)
        while reads and (more := connection.recv(1 << 16)):
            answer += more
    return answer


HEAD = b"POST /api/v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_draft_that_takes_too_long_is_given_up_and_others_go_on(start: Start, demo_index: Path) -> None:
    """Its process is killed; searches run elsewhere, and the next draft has a new process."""
    many = " ".join(f"Neural model {number} ranks papers better." for number in range(7000))
    with start(demo_index, "-c", "serve.seconds=5") as server, server.client() as client:

        def ask(text: str) -> httpx.Response:
            return client.post("/api/v1/drafts/suggest", json={"name": "a.md", "text": text}, timeout=60)

        while ask("A text.").status_code == 503:  # the process is being opened
            pass
        with ThreadPoolExecutor(1) as pool:
            hostile = pool.submit(ask, many)
            while not hostile.done():
                assert client.post("/api/v1/recommend", json={"text": SENTENCE}).status_code == 200
        assert hostile.result().status_code == 503 and "more than 5 seconds" in hostile.result().json()["error"]
        answer = ask("Attention suffices to translate texts, as many others have shown before.")
        while answer.status_code == 503:
            answer = ask("Attention suffices to translate texts, as many others have shown before.")
        assert answer.json()["index"] == demo_index.name


def test_connections_that_are_cut(server: Running) -> None:
    body = json.dumps({"text": SENTENCE}).encode()
    whole = HEAD + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
    for end in range(0, len(whole), 3):
        raw(server, whole[:end], reads=False)
    assert raw(server, whole).startswith(b"HTTP/1.1 200")


def test_what_is_no_http(server: Running) -> None:
    rubbish = random.Random(1)
    heads = [rubbish.randbytes(100) + b"\r\n\r\n" for _ in range(20)]
    heads += [HEAD + b"Content-Length: -1\r\n\r\n", HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"]
    heads += [HEAD + b"Connection: close\r\nX: " + b"a" * 100_000 + b"\r\n\r\n"]
    heads += [b"GET / HTTP/1.1\r\n%bConnection: close\r\n\r\n" % hosts for hosts in (b"", b"Host: a\r\nHost: b\r\n")]
    for head in heads:
        assert raw(server, head)[9:10] in (b"4", b"")


def test_slow_clients_hold_no_thread(server: Running, client: httpx.Client) -> None:
    """The server waits two seconds for a body."""
    found: list[bytes] = []
    slow = [
        (HEAD + b"Content-Length: 100\r\n\r\n", b'{"text": "a"'),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"),
    ] * 8
    threads = [threading.Thread(target=lambda parts=parts: found.append(raw(server, *parts))) for parts in slow]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert client.post("/api/v1/recommend", json={"text": SENTENCE}).status_code == 200
    assert time.monotonic() - begun < 6  # two threads held by sixteen such clients: 16 seconds
    for thread in threads:
        thread.join(20)
    assert time.monotonic() - begun < 15
    assert [answer[:12] for answer in found] == [b"HTTP/1.1 408"] * 16


@pytest.mark.skipif(sys.platform != "linux", reason="other systems set no such limit")
def test_memory_is_limited() -> None:
    program = (
        "from citerec.serve.service import limit_memory\n"
        "limit_memory(100 << 20)\n"
        "held = bytearray(20 << 20)\n"
        "try:\n"
        "    bytearray(300 << 20)\n"
        "except MemoryError:\n"
        "    print('refused')\n"
    )
    # A process is said to have had as much memory as the one that began it: here that is a small one.
    begin = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    command = [sys.executable, "-c", begin, program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
