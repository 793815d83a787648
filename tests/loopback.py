"""Servers on loopback for tests: one that answers in turn, and one with a page for each address."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers by a list of functions, one for each request; the last one answers all further requests."""

    def __init__(self, protocol: str = "HTTP/1.0") -> None:
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = protocol

            def do_GET(self) -> None:
                outer.note(self)
                with contextlib.suppress(ConnectionError):  # who waited has gone
                    (outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0])(self)

            do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def note(self, handler: BaseHTTPRequestHandler) -> None:
        """Keeps what is asked."""
        self.asked.append((handler.path, handler.headers.get("Range")))

    def stop(self) -> None:
        """Closes the port: from now on nobody answers."""
        self._server.shutdown()
        self._server.server_close()


def send(status: int = 200, body: bytes = b"", most: int | None = None, **headers: str) -> Answer:
    """An answer; with `most` the connection breaks after so many bytes of it."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        sent, code = body, status
        begin = int((handler.headers.get("Range") or "bytes=0-")[6:-1])
        handler.close_connection = True
        if begin and status == 200 and "nope" not in headers:
            sent, code = body[begin:], 206
        handler.send_response(code)
        if code == 206:
            handler.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(sent)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(sent[:most])

    return answer


class Site(Server):
    """Answers by address: the path, with its query. What has no page is 404."""

    def __init__(self, pages: Mapping[str, bytes | Answer] = {}, **headers: str) -> None:
        super().__init__()
        self.pages = dict(pages)

        def answer(handler: BaseHTTPRequestHandler) -> None:
            page = self.pages.get(handler.path)
            answered = page if callable(page) else send(404) if page is None else send(body=page, **headers)
            answered(handler)

        self.answers = [answer]
