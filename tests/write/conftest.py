"""What tests of writing share: real tasks, and a chat endpoint on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask
from tests.loopback import Server, send

Answer = tuple[int, str]


@pytest.fixture(scope="session")
def citebench(shared: Path) -> list[TextTask]:
    """The 50 tasks of CiteBench's sample."""
    return list(read_tasks(shared / "text" / "citebench" / "sample.json"))


def completion(text: str | None, **more: object) -> Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **more}
    return 200, json.dumps({"id": "1", "object": "chat.completion", "model": "tiny", "choices": [choice]})


class Endpoint(Server):
    """Notes what it is asked, and answers: from a body, and how many came before it, to status and body."""

    def __init__(self) -> None:
        super().__init__()
        self.url += "/v1"
        self.location = ""  # where it sends who asks
        self.answer: Callable[[dict[str, Any], int], Answer] = lambda _body, _before: completion("A text [0].")
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers = [self._answer]
        self._lock = threading.Lock()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            before = len(self.bodies)
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        status, text = self.answer(body, before)
        more = {"Location": self.location} if self.location else {}
        send(status, text.encode(), content_type="application/json", retry_after_ms="10", **more)(handler)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    started = Endpoint()
    yield started
    started.stop()
