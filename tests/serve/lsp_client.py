"""An editor, as far as the language server can see: JSON-RPC over the pipes of a process."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Message = dict[str, Any]


class Editor:
    """Starts `citerec lsp` and speaks with it."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        command = [Path(sys.executable).with_name("citerec"), "lsp", *map(str, arguments)]
        self._log, pipe = folder / "stderr", subprocess.PIPE
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=log)
        self.applied: list[Message] = []
        self.stray = b""
        self.last = 0
        self._answers: dict[int, queue.Queue[Message]] = {}
        self._heard: queue.Queue[Message] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, **capabilities: Any) -> Message:
        """Says hello; the answer is what the server can do."""
        edits = {"documentChanges": True, "resourceOperations": ["create"]}
        given = {"workspace": {"applyEdit": True, "workspaceEdit": edits}, **capabilities}
        answer = self.ask("initialize", processId=None, rootUri=None, capabilities=given)
        self.tell("initialized")
        return dict(answer["capabilities"])

    def ready(self) -> None:
        """Waits until the index is open."""
        self.wait(lambda one: one["method"] == "window/logMessage" and "has opened" in one["params"]["message"])

    def open(self, path: Path, text: str, language: str = "latex") -> None:
        """Opens a document with a text that may differ from the disk."""
        document = {"uri": path.as_uri(), "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def change(self, path: Path, text: str, version: int = 2) -> None:
        """Replaces the text of a document."""
        document = {"uri": path.as_uri(), "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def at(self, method: str, path: Path, line: int, character: int, **more: Any) -> Any:
        """Asks for something at a position."""
        position = {"line": line, "character": character}
        return self.ask(method, textDocument={"uri": path.as_uri()}, position=position, **more)

    def actions(self, path: Path, span: Message, diagnostics: Sequence[Message] = ()) -> list[Message]:
        """Asks for code actions."""
        context = {"diagnostics": list(diagnostics)}
        document = {"uri": path.as_uri()}
        return self.ask("textDocument/codeAction", textDocument=document, range=span, context=context) or []

    def diagnostics(self, path: Path, is_right: Callable[[list[Message]], bool]) -> list[Message]:
        """Waits for diagnostics of a file."""
        uri = path.as_uri()
        heard = self.wait(
            lambda one: (
                one["method"] == "textDocument/publishDiagnostics"
                and one["params"]["uri"] == uri
                and is_right(one["params"]["diagnostics"])
            )
        )
        return list(heard["params"]["diagnostics"])

    def wait(self, is_right: Callable[[Message], bool], seconds: float = 60) -> Message:
        """The next notification of a kind."""
        while not is_right(heard := self._heard.get(timeout=seconds)):
            pass
        return heard

    def ask(self, method: str, **params: Any) -> Any:
        """Sends a request and waits for its result."""
        answer = self.send(method, **params).get(timeout=60)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def send(self, method: str, **params: Any) -> "queue.Queue[Message]":
        """Sends a request; its answer comes later."""
        self.last += 1
        self._answers[self.last] = queue.Queue()
        self._write({"id": self.last, "method": method, "params": params or None})
        return self._answers[self.last]

    def tell(self, method: str, **params: Any) -> None:
        """Sends a notification."""
        self._write({"method": method, "params": params})

    def stop(self) -> int:
        """Says goodbye; the exit code of the server."""
        self.ask("shutdown")
        self.tell("exit")
        code = self.process.wait(30)
        self._reader.join(60)
        return code

    def kill(self) -> None:
        """Ends the process if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self._reader.join(60)
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()

    def _write(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    @property
    def errors(self) -> bytes:
        """What it has said on standard error."""
        return self._log.read_bytes()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream
        length = 0
        while header := stream.readline():
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
            elif header.strip() == b"" and length:
                self._heed(json.loads(stream.read(length)))
                length = 0
            elif not header.lower().startswith(b"content-type:"):
                self.stray += header

    def _heed(self, message: Message) -> None:
        if "method" not in message:
            self._answers[message["id"]].put(message)
        elif "id" in message:
            if message["method"] == "workspace/applyEdit":
                self.applied.append(message["params"]["edit"])
                self._write({"id": message["id"], "result": {"applied": True}})
            else:
                self._write({"id": message["id"], "result": None})
        else:
            self._heard.put(message)
