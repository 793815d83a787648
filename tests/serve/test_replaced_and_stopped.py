"""Under load: an index that is replaced on disk loses no request, and a stop is clean."""

import contextlib
import json
import signal
import socket
import threading
import time
import tomllib
from pathlib import Path

import httpx
import psutil
import pytest

from citerec.index.build import build_index
from citerec.index.manifest import CURRENT
from tests.conftest import Citerec, write_lines
from tests.serve.conftest import SENTENCE, Running, Start


def papers_of(folder: Path, name: str) -> Path:
    """Papers that tell whose they are."""
    lines = [{"paper_id": f"{name}{number}", "title": f"Term weighting {number}"} for number in range(8)]
    return write_lines(folder / f"{name}.jsonl", lines)


class Load:
    """Clients that ask again and again, each in a thread."""

    def __init__(self, server: Running, clients: int) -> None:
        self.statuses: list[int] = []
        self.mixed: list[set[str]] = []
        self.failures: list[tuple[float, str]] = []
        self._server, self._is_over = server, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self) -> None:
        while not self._is_over.is_set():
            try:
                with self._server.client() as client:
                    response = client.post("/api/v1/recommend", json={"text": SENTENCE, "k": 8})
                self.statuses.append(response.status_code)
                hits = response.json()["answers"][0]["hits"]
                self.mixed.append({str(hit["paper_id"])[0] for hit in hits})
            except httpx.HTTPError as error:
                self.failures.append((time.monotonic(), repr(error)))
                time.sleep(0.01)


def test_an_index_that_is_replaced_loses_no_request(start: Start, tmp_path: Path) -> None:
    papers = [papers_of(tmp_path, name) for name in "ab"]
    place = tmp_path / "place"
    build_index([papers[0]], place)
    with start(place) as server:
        with server.client() as client, Load(server, 4) as load:
            for turn in range(1, 5):
                expected = build_index([papers[turn % 2]], place).fingerprint
                deadline = time.monotonic() + 30
                while client.get("/api/v1/indexes").json()["indexes"][0]["fingerprint"] != expected:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
            (place / CURRENT).write_text("99\n")  # what cannot be opened changes nothing
            time.sleep(2)
            assert client.get("/api/v1/indexes").json()["indexes"][0]["fingerprint"] == expected
            assert 'citerec_index_loaded{index="place"} 0.0' in client.get("/metrics").text
        assert load.failures == []
        assert set(load.statuses) == {200}
        assert {frozenset(names) for names in load.mixed} == {frozenset("a"), frozenset("b")}
        # The old ones are closed: none of their files is held.
        maps, deadline = Path(f"/proc/{server.process.pid}/maps"), time.monotonic() + 10
        while [line for line in maps.read_text().splitlines() if f"{tmp_path}/" in line and "deleted" in line]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "cannot be served" in server.log.read_text()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_load_is_clean(start: Start, demo_index: Path, stop: signal.Signals) -> None:
    with start(demo_index) as server:
        body = json.dumps({"text": " ".join([SENTENCE] * 20), "k": 100}).encode()
        head = b"POST /api/v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with Load(server, 4) as load, socket.create_connection(server.address, 60) as connection:
            while not load.statuses:
                time.sleep(0.01)
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(0.3)  # it is being answered, and takes longer than that beside the others
            stopped = time.monotonic()
            server.process.send_signal(stop)
            answer = b""
            while more := connection.recv(1 << 16):
                answer += more
            assert server.process.wait(60) == 0
        header, _, content = answer.partition(b"\r\n\r\n")
        assert header.startswith(b"HTTP/1.1 200") and len(json.loads(content)["answers"]) == 20
        assert set(load.statuses) == {200}
        assert load.failures and all(when >= stopped for when, _ in load.failures)
        assert server.log.read_text().count("\n") == 1  # the line at the start, and nothing else


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_drains_takes_requests_until_others_know(start: Start, demo_index: Path, workers: int) -> None:
    with start(demo_index, "-c", "serve.drain=5", "--workers", workers) as server, server.client() as client:
        assert client.get("/ready").status_code == 200
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        while client.get("/ready").status_code != 503:
            assert time.monotonic() < begun + 20
        with Load(server, 2) as load:
            time.sleep(1)
        assert set(load.statuses) == {200} and not load.failures
        assert server.process.wait(30) == 0
        assert time.monotonic() - begun >= 5


def test_settings_come_from_files_and_variables_and_each_request_is_logged(
    start: Start, demo_index: Path, citerec: Citerec, tmp_path: Path
) -> None:
    (tmp_path / "serve.toml").write_text("[serve]\nqueue = 7\nseconds = 20\n")
    variables = {"CITEREC_SERVE_QUEUE": "5", "CITEREC_SERVE_DRAIN": "0.5", "CITEREC_SERVE_LOG": "true"}
    shown = citerec("serve", "--print-config", "--config", tmp_path / "serve.toml", **variables).stdout
    settings = tomllib.loads(shown)["serve"]
    assert (settings["queue"], settings["drain"], settings["seconds"], settings["threads"]) == (7, 0.5, 20, 0)
    wrong = citerec("serve", demo_index, CITEREC_SERVE_QUEUE="many")
    assert wrong.returncode == 2 and "serve.queue" in wrong.stderr

    with start(demo_index, **variables) as server, server.client() as client:
        answer = client.post("/api/v1/recommend", json={"text": SENTENCE}, headers={"X-Request-ID": "mine-1"})
        assert answer.headers["x-request-id"] == "mine-1"
        assert len(client.get("/health", headers={"X-Request-ID": "not\tone"}).headers["x-request-id"]) == 32
        text = client.get("/metrics").text
        for stage in ("topic", "words", "fusion", "verdict", "records"):
            assert f'citerec_stage_seconds_count{{stage="{stage}"}}' in text
        assert "citerec_requests_waiting 0.0" in text
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    (logged,) = (line for line in lines if line["request_id"] == "mine-1")
    assert (logged["path"], logged["status"], logged["level"]) == ("/api/v1/recommend", 200, "info")
    assert 0 < logged["seconds"] < 60
    assert SENTENCE not in server.log.read_text()


def workers_of(server: Running) -> list[psutil.Process]:
    alive = []
    for one in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            if one.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(one.cmdline()):
                alive.append(one)
    return alive


def test_several_workers_answer_over_one_index(start: Start, demo_index: Path) -> None:
    with start(demo_index, "--workers", 2) as server:
        begun = {one.pid for one in workers_of(server)}
        assert len(begun) == 2
        with Load(server, 4) as load:
            while len(load.statuses) < 100:
                time.sleep(0.05)
        assert (set(load.statuses), load.failures) == ({200}, [])
        with server.client() as client:
            metrics = client.get("/metrics").text
        assert f'citerec_requests_total{{route="/api/v1/recommend",status="200"}} {len(load.statuses)}.0' in metrics
        # One that dies is started anew, and the other goes on meanwhile.
        workers_of(server)[0].kill()
        deadline = time.monotonic() + 60
        while len({one.pid for one in workers_of(server)} - begun) < 1 or len(workers_of(server)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with server.client() as client:
            assert client.get("/api/v1/indexes").status_code == 200
        workers = workers_of(server)  # they end with a server that is killed
        server.process.kill()
        assert psutil.wait_procs(workers, timeout=30)[1] == []
