"""Real servers, each in a process of its own, on free ports of this machine."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import CITEREC

TOKEN = "a-token-of-the-tests-0123456789"
JSON = {"Content-Type": "application/json"}
SENTENCE = "Term weighting <REF> is a strong baseline."


@dataclass
class Running:
    """A running server."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def client(self, **more: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **more)  # type: ignore[arg-type]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


Start = Callable[..., "contextlib.AbstractContextManager[Running]"]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Starts `citerec serve` on a free port, and stops it."""

    @contextlib.contextmanager
    def started(*arguments: object, **environment: str) -> Iterator[Running]:
        log = tmp_path_factory.mktemp("serve") / "log"
        command = [CITEREC, "serve", "--port", "0", *map(str, arguments)]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **environment}
            )
        try:
            while not (found := re.search(r"at (http://\S+)/api/v1", log.read_text())):
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            running = Running(found[1].replace("0.0.0.0", "127.0.0.1"), process, log)
            with running.client() as client:
                assert client.get("/health").json() == {"status": "ok"}
            yield running
            if process.poll() is None:
                assert running.stop() == 0, log.read_text()
            assert "Traceback" not in log.read_text(), log.read_text()
        finally:
            process.kill()
            process.wait()

    return started


@pytest.fixture(scope="session")
def server(start: Start, demo_index: Path) -> Iterator[Running]:
    """A server of the demo corpus under two names; it is quick to lose patience."""
    settings = ["-c", "serve.body_seconds=2", "-c", "serve.queue=500", "-c", "serve.body_bytes=400000"]
    with start(f"demo={demo_index}", f"other={demo_index}", *settings) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
