"""Tokens, names of hosts, threads: first the parts, then over HTTP."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from citerec.errors import InputError, SettingsError
from citerec.serve.app import has_token, host_of, is_loopback, read_tokens
from citerec.serve.indexes import named_places
from citerec.serve.service import BusyError, ServeSettings, Threads
from tests.conftest import ROOT
from tests.serve.conftest import SENTENCE, TOKEN, Running, Start


def test_tokens_of_a_file_or_of_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{TOKEN}\n\n  {TOKEN}2\n")
    tokens = read_tokens(file, None)
    assert tokens == (TOKEN.encode(), f"{TOKEN}2".encode())
    assert read_tokens(None, TOKEN) == (TOKEN.encode(),)
    assert read_tokens(None, None) == ()
    assert has_token(f"Bearer {TOKEN}2", tokens)
    assert not any(
        has_token(one, tokens) for one in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}3", "Bearer \xff")
    )
    file.write_text("")
    for broken in (file, tmp_path / "none"):
        with pytest.raises(InputError):
            read_tokens(broken, None)
    with pytest.raises(SettingsError):
        read_tokens(None, "short")


def test_names_of_hosts_and_addresses_of_this_machine() -> None:
    names = {"localhost:80": "localhost", "[::1]:80": "::1", "127.0.0.1": "127.0.0.1", "[": None, "": None}
    names |= {"evil.example#127.0.0.1": "evil.example", "x@localhost.evil.example": "localhost.evil.example"}
    assert {header: host_of(header) for header in names} == names
    assert all(map(is_loopback, ["127.0.0.1", "localhost", "::1", "127.8.8.8"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.org", ""]))


def test_threads_refuse_what_goes_over_the_queue() -> None:
    go_on = threading.Event()
    threads = Threads(1, 1, 5)

    async def test() -> None:
        running = [asyncio.create_task(threads.run(lambda: go_on.wait(5))) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert threads.is_full
        with pytest.raises(BusyError):
            await threads.run(lambda: 1)
        go_on.set()
        assert await asyncio.gather(*running) == [True, True]
        assert await threads.run(lambda: 1) == 1
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0)

    asyncio.run(test())
    threads.close()


def test_threads_do_not_wait_for_ever() -> None:
    threads, ran, begun, go_on = Threads(1, 5, 0.05), [], threading.Event(), threading.Event()

    def holds() -> None:
        begun.set()
        go_on.wait()

    async def test() -> None:
        while not begun.is_set():  # on a busy machine a thread may not even begin in this time
            with pytest.raises(BusyError, match=r"more than 0\.05 seconds"):
                await threads.run(holds)
        with pytest.raises(BusyError, match=r"more than 0\.05 seconds"):
            await threads.run(lambda: ran.append(1))  # waits for the one that holds the only thread
        go_on.set()
        answer = None
        while answer is None:
            with contextlib.suppress(BusyError):  # on a busy machine even this may take longer
                answer = await threads.run(lambda: 2)
        assert answer == 2

    asyncio.run(test())
    assert ran == []  # nobody waits for it any more
    threads.close()


def test_names_of_indexes() -> None:
    assert named_places(["a/b", "c=d/e", "f=g=h"]) == {"b": Path("a/b"), "c": Path("d/e"), "f": Path("g=h")}
    with pytest.raises(InputError):
        named_places(["=a"])


def test_settings_are_typed_and_described() -> None:
    settings = ServeSettings.load(["queue=3", "hosts=a.example, b.example"])
    assert (settings.queue, settings.hosts) == (3, ("a.example", "b.example"))
    for wrong in ("queue=-1", "seconds=long", "nothing=1"):
        with pytest.raises(SettingsError):
            ServeSettings.load([wrong])
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    assert all(f"`serve.{name}`" in page for name in ServeSettings.model_fields)


@pytest.fixture
def guarded(start: Start, demo_index: Path) -> Iterator[Running]:
    """A server on all addresses, with a token and a name."""
    options = ["--host", "0.0.0.0", "-c", "serve.hosts=127.0.0.1"]
    with start(f"demo={demo_index}", *options, CITEREC_TOKEN=TOKEN) as running:
        yield running


def test_whoever_calls_needs_the_token(guarded: Running) -> None:
    with guarded.client() as client:
        for path in ("/api/v1/indexes", "/api/v1/openapi.json", "/metrics", "/api/nowhere"):
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                response = client.get(path, headers=headers)
                assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
        assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 400


def test_a_full_queue_is_503(start: Start, demo_index: Path) -> None:
    settings = [part for one in ("threads=1", "queue=1") for part in ("-c", f"serve.{one}")]
    text = " ".join([SENTENCE] * 8)

    def ask(server: Running) -> tuple[int, str | None]:
        with server.client() as client:
            response = client.post("/api/v1/recommend", json={"text": text, "k": 100})
        return response.status_code, response.headers.get("Retry-After")

    with start(demo_index, *settings) as server, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ask(server), range(16)))
        assert set(found) == {(200, None), (503, "2")}
        assert ask(server)[0] == 200
