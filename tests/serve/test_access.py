"""Tokens and names of hosts: who is answered; how many at once, and for how long."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from citerec.serve.app import listening_socket
from tests.serve.conftest import SENTENCE, TOKEN, Running, Start


@pytest.mark.parametrize("given", [{"CITEREC_TOKEN": TOKEN}, {}], ids=["environment", "file"])
def test_whoever_calls_needs_the_token(given: dict[str, str], start: Start, demo_index: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN}1\n\n  {TOKEN}\n")
    options = ["--host", "0.0.0.0", "-c", "serve.hosts=127.0.0.1"]
    options += [] if given else ["--token-file", str(tmp_path / "tokens")]
    wrong = ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}3", b"Bearer \xff"]
    with start(f"demo={demo_index}", *options, **given) as server, server.client() as client:
        for path in ("/api/v1/indexes", "/api/v1/openapi.json", "/metrics", "/api/nowhere"):
            for authorization in wrong:
                response = client.get(path, headers={"Authorization": authorization})  # type: ignore[dict-item]
                assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert client.get("/api/v1/indexes").status_code == 401
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
        assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 400


def test_a_full_queue_is_503(start: Start, demo_index: Path) -> None:
    text = " ".join([SENTENCE] * 8)

    def ask(server: Running) -> tuple[int, str | None]:
        with server.client() as client:
            response = client.post("/api/v1/recommend", json={"text": text, "k": 100})
        return response.status_code, response.headers.get("Retry-After")

    with start(demo_index, "-c", "serve.threads=1", "-c", "serve.queue=1") as server, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ask(server), range(16)))
        assert set(found) == {(200, None), (503, "1")}
        assert ask(server)[0] == 200


def test_what_takes_too_long_is_503(start: Start, demo_index: Path) -> None:
    with start(demo_index, "-c", "serve.seconds=0.001") as server, server.client() as client:
        response = client.post("/api/v1/recommend", json={"text": " ".join([SENTENCE] * 20), "k": 100})
    assert response.status_code == 503 and "more than 0.001 seconds" in response.json()["error"]


def test_an_answer_does_not_wait_for_its_head_to_be_confirmed() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
