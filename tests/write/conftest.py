"""What tests of writing share: real tasks, and a chat endpoint on loopback."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask

Answer = tuple[int, str]


@pytest.fixture(scope="session")
def citebench(shared: Path) -> list[TextTask]:
    """The 50 tasks of CiteBench's sample."""
    return list(read_tasks(shared / "text" / "citebench" / "sample.json"))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Models as small as those of tests are slower with several."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def completion(text: str | None, **more: object) -> Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **more}
    return 200, json.dumps({"id": "1", "object": "chat.completion", "model": "tiny", "choices": [choice]})


@dataclass
class Endpoint:
    """What a server was asked, and how it answers: from a body, and how many came before it, to status and body."""

    url: str = ""
    location: str = ""  # where it sends who asks
    answer: Callable[[dict[str, Any], int], Answer] = lambda _body, _before: completion("A text [0].")
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextlib.contextmanager
def serving() -> Iterator[Endpoint]:
    """An endpoint that answers as long as the block lasts."""
    seen = Endpoint()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                before = len(seen.asked)
                seen.asked.append(body)
                seen.headers.append({name.lower(): value for name, value in self.headers.items()})
                seen.paths.append(self.path)
            status, text = seen.answer(body, before)
            with contextlib.suppress(ConnectionError):  # who asked did not wait
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("retry-after-ms", "10")
                if seen.location:
                    self.send_header("Location", seen.location)
                self.end_headers()
                self.wfile.write(text.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        seen.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield seen
        server.shutdown()
        thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as seen:
        yield seen
