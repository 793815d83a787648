"""A chat endpoint on loopback that answers, fails, hangs and refuses; what is sent to it, and what becomes of it."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import CiterecError, InputError, WriterError
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import Kind, open_writer
from citerec.write.writers.models import ChatOptions, ChatWriter, messages
from tests.conftest import write_lines

KEY = "sk-very-secret-1234"
Answer = tuple[int, str]


@dataclass
class Endpoint:
    """What a server was asked, and how it answers.

    Attributes:
        url: Where it is.
        answer: From the body of a request, and how many came before it, to status and body.
        asked: The bodies that came, in order.
        headers: Their headers.
    """

    url: str = ""
    location: str = ""
    answer: Callable[[dict[str, Any], int], Answer] = lambda _body, _before: completion("A text [0].")
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def completion(text: str | None, **more: object) -> Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **more}
    return 200, json.dumps({"id": "1", "object": "chat.completion", "model": "tiny", "choices": [choice]})


def failure(status: int, message: str = "no") -> Answer:
    return status, json.dumps({"error": {"message": message}})


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
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
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("retry-after-ms", "10")
                if seen.location:
                    self.send_header("Location", seen.location)
                self.end_headers()
                self.wfile.write(text.encode())
            except ConnectionError:
                pass  # who asked did not wait

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield seen
    server.shutdown()
    server.server_close()
    thread.join()


TASK = TextTask(
    "t1",
    (
        Source("We propose BM25 for search.", "p1", "Okapi", authors=("S. Robertson",)),
        Source("Vectors find words that mean the same.", "p2", "Dense retrieval", authors=tuple("ABCD")),
    ),
    citing="We compare words and vectors.",
    before="Search has a long history.",
    after="We build on both.",
)


def writer(endpoint: Endpoint, kind: Kind = "citation", key: str = "", **options: Any) -> ChatWriter:
    return ChatWriter(endpoint.url, "tiny", kind, ChatOptions(**options), key=key)


def from_environment(kind: Kind = "citation", model: str | None = None, options: Any = None) -> ChatWriter:
    opened = open_writer("chat", kind, options={**(options or {}), **({"chat_model": model} if model else {})})
    assert isinstance(opened, ChatWriter)
    return opened


def test_it_writes_and_says_what_each_sentence_was_drawn_from(endpoint: Endpoint) -> None:
    endpoint.answer = lambda *_: completion("BM25 was proposed for search [0]. Nobody knows [7].")
    chat = writer(endpoint)
    prediction = chat.write(TASK)
    assert prediction.text == "BM25 was proposed for search [0]. Nobody knows [7]."
    assert (prediction.writer, prediction.task, prediction.is_oracle) == ("tiny", TASK, False)
    assert prediction.sentences[0].attributions == (0,)
    assert [sentence.unknown for sentence in prediction.sentences] == [(), ("[7]",)]


def test_what_is_sent(endpoint: Endpoint) -> None:
    writer(endpoint, temperature=0.5, seed=7, max_tokens=99, key=KEY).write(TASK)
    (asked,) = endpoint.asked
    assert endpoint.paths == ["/v1/chat/completions"]
    assert asked["model"] == "tiny"
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (0.5, 7, 99)
    assert asked["messages"] == messages(TASK, "citation")
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    system, user = asked["messages"]
    assert system["role"] == "system"
    assert "[0]" in system["content"]
    for words in (
        "Source [0]: S. Robertson. Okapi\nWe propose BM25 for search.",
        "Source [1]: A, B, C et al.. Dense retrieval\nVectors find",
        "The paper that cites them:\nWe compare",
        "before the text:\nSearch has",
        "after the text:\nWe build on both.",
    ):
        assert words in user["content"]


def test_kinds_of_text_have_prompts_of_their_own(endpoint: Endpoint) -> None:
    paper = TextTask("t", (Source("We propose BM25.", title="Okapi"),))
    systems = set()
    kinds: list[Kind] = ["citation", "tldr", "related-work"]
    for kind in kinds:
        writer(endpoint, kind).write(paper)
        systems.add(endpoint.asked[-1]["messages"][0]["content"])
    assert len(systems) == 3
    of_tldr = endpoint.asked[1]["messages"]
    assert "one sentence" in of_tldr[0]["content"]
    assert "[0]" not in of_tldr[1]["content"]
    assert endpoint.asked[1]["max_tokens"] < endpoint.asked[2]["max_tokens"]


def test_it_asks_again_where_that_may_help(endpoint: Endpoint) -> None:
    for status in (429, 500, 503):
        asked = len(endpoint.asked)
        endpoint.answer = lambda _body, before, asked=asked, status=status: (  # type: ignore[misc]
            failure(status) if before < asked + 2 else completion("At last.")
        )
        assert writer(endpoint).write(TASK).text == "At last."
        assert len(endpoint.asked) == asked + 3


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (401, f"Incorrect key {KEY}", "Error code: 401"),
        (404, "no model tiny", "no model tiny"),
        (400, f"too long for {KEY}", "too long for …"),
        (500, "broken", "broken"),
    ],
)
def test_what_is_wrong_is_said_without_the_key(endpoint: Endpoint, status: int, message: str, words: str) -> None:
    endpoint.answer = lambda *_: failure(status, message)
    with pytest.raises(WriterError, match="Check CITEREC_CHAT_URL") as error:
        writer(endpoint, key=KEY).write(TASK)
    assert words in str(error.value)
    assert KEY not in "".join(traceback.format_exception(error.value))
    assert "\n" not in str(error.value)


def test_a_redirect_does_not_take_the_key_to_another_server(endpoint: Endpoint, tmp_path: Path) -> None:
    taken: list[str | None] = []

    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.headers["Authorization"])
            self.send_response(500)
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - the name that the server calls

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        for status in (301, 302, 307, 308):
            endpoint.location = f"http://localhost:{other.server_port}/v1/chat/completions"
            endpoint.answer = lambda *_, status=status: (status, "")  # type: ignore[misc]
            with pytest.raises(WriterError):
                writer(endpoint, key=KEY).write(TASK)
    finally:
        other.shutdown()
        other.server_close()
    assert not any(taken)


def test_no_file_of_a_stopped_run_holds_the_key(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.answer = lambda _body, before: completion("A text [0].") if before == 0 else failure(500, f"Bearer {KEY}")
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": str(number), "input": ["A text."]} for number in range(3)])
    environment = {"CITEREC_CHAT_URL": endpoint.url, "CITEREC_CHAT_KEY": KEY, "CITEREC_CHAT_MODEL": "tiny"}
    command = ["write", "batch", str(tasks), "--writer", "chat", "--out", str(tmp_path / "texts.jsonl")]
    done = subprocess.run(
        [Path(sys.executable).with_name("citerec"), *command, "-c", "writer.threads=1"],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Error code: 500" in done.stderr
    assert KEY not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_no_server(endpoint: Endpoint, silent_port: int) -> None:
    endpoint.url = f"http://127.0.0.1:{silent_port}/v1"
    with pytest.raises(WriterError, match=r"^http.*gives no text: Connection error\. Check CITEREC_CHAT_URL"):
        writer(endpoint).write(TASK)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, "{garbage"), "gives no text"),
        ((200, "<html></html>"), "gives no text"),
        ((200, '{"choices": []}'), "gives no text"),
        ((200, "[]"), "gives no text"),
        (completion(None), "wrote nothing about t1. Try again"),
        (completion("  \n "), "wrote nothing"),
        (completion("<think>hm, hm</think>\n"), "wrote nothing"),
        (completion("", finish_reason="length"), "raise max_tokens above 1024"),
        (completion("<think>hm, BM25 [0]", finish_reason="length"), "wrote nothing about t1"),
        (completion(" <think>hm, BM25 [0]"), "wrote nothing about t1"),
        (completion("hm</think>\n<think>hm, BM25 [0]"), "wrote nothing about t1"),
    ],
)
def test_answers_of_no_use(endpoint: Endpoint, answer: Answer, words: str) -> None:
    endpoint.answer = lambda *_: answer
    with pytest.raises(WriterError) as error:
        writer(endpoint).write(TASK)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "said",
    [
        "<think>What to\nsay [3]?</think>\n\nBM25 works [0].\n",
        "What to say [3]?</think>BM25 works [0].",  # servers whose template begins with the thoughts
        "<think>What?</think> No. <think>This [3]?</think> BM25 works [0].",
        "BM25 works [0]. <think>And what [3]",
    ],
)
def test_thoughts_are_no_part_of_the_text(endpoint: Endpoint, said: str) -> None:
    endpoint.answer = lambda *_: completion(said)
    assert writer(endpoint).write(TASK).text == "BM25 works [0]."


def numbered(body: dict[str, Any]) -> int:
    """Which of `NUMBERED` is asked about."""
    return int(body["messages"][-1]["content"].split("number ")[1].split(".")[0])


NUMBERED = [TextTask(str(number), (Source(f"Paper number {number}."),)) for number in range(20)]


def test_many_tasks_are_asked_at_once_and_come_in_order(endpoint: Endpoint) -> None:
    at_once, most, lock, together = 0, 0, threading.Lock(), threading.Barrier(3)

    def slow(body: dict[str, Any], _before: int) -> Answer:
        nonlocal at_once, most
        number = numbered(body)
        with lock:
            at_once += 1
            most = max(most, at_once)
        if number < 3:
            together.wait(30)  # goes on only when three are asked at once
        time.sleep(0.002 * (3 - number % 3))
        with lock:
            at_once -= 1
        return completion(f"Text {number} [0].")

    endpoint.answer = slow
    tasks = iter(NUMBERED)
    predictions = writer(endpoint, threads=3).write_many(tasks)
    first = next(predictions)
    assert (taken := next(tasks, None)) is not None  # not all were at once
    texts = [first.text, *(one.text for one in predictions)]
    assert texts == [f"Text {number} [0]." for number in range(20) if str(number) != taken.task_id]
    assert most == 3


@pytest.mark.parametrize("slow", [1, 3])
def test_no_error_waits_for_slow_answers_and_what_came_before_it_is_given(endpoint: Endpoint, slow: int) -> None:
    ended, waited_for = threading.Event(), threading.Event()
    given: list[str] = []
    expected = ["Text 0.", "Text 1."][:slow]

    def answer(body: dict[str, Any], _before: int) -> Answer:
        number = numbered(body)
        if number == slow and not ended.wait(30):
            waited_for.set()
        while number == 2 and given != expected and not ended.is_set():
            time.sleep(0.01)
        return failure(400) if number == 2 else completion(f"Text {number}.")

    endpoint.answer = answer
    try:
        with pytest.raises(WriterError, match="Error code: 400"):
            for prediction in writer(endpoint, threads=4).write_many(NUMBERED):
                given.append(prediction.text)
        assert not waited_for.is_set()
    finally:
        ended.set()
    assert given == expected


def test_who_takes_no_more_waits_for_nothing(endpoint: Endpoint) -> None:
    ended, waited_for = threading.Event(), threading.Event()

    def answer(body: dict[str, Any], _before: int) -> Answer:
        if numbered(body) and not ended.wait(30):
            waited_for.set()
        return completion("Yes.")

    endpoint.answer = answer
    try:
        for prediction in writer(endpoint, threads=4).write_many(NUMBERED):
            assert prediction.text == "Yes."
            break
        assert not waited_for.is_set()
    finally:
        ended.set()
    assert len(endpoint.asked) <= 5


@pytest.mark.parametrize("stopped", [True, False])
def test_a_run_ends_at_once_though_the_server_hangs(endpoint: Endpoint, tmp_path: Path, stopped: bool) -> None:
    """From outside: the process ends too, by Ctrl-C or by an error."""
    ended, hangs = threading.Event(), threading.Event()

    def answer(body: dict[str, Any], _before: int) -> Answer:
        if numbered(body) == 0 and not stopped:
            hangs.wait(120)
            return failure(400)
        hangs.set()
        ended.wait(300)
        return completion("Too late.")

    endpoint.answer = answer
    records = [{"id": task.task_id, "input": [task.sources[0].text]} for task in NUMBERED]
    tasks = write_lines(tmp_path / "tasks.jsonl", records)
    command: list[str | Path] = [Path(sys.executable).with_name("citerec"), "write", "batch", tasks]
    with subprocess.Popen(
        [*command, "--writer", "chat", "--out", tmp_path / "out.jsonl"],
        env={**os.environ, "CITEREC_CHAT_URL": endpoint.url, "CITEREC_CHAT_MODEL": "tiny"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            assert hangs.wait(60)
            if stopped:
                run.send_signal(signal.SIGINT)
            _, error = run.communicate(timeout=60)  # it waits neither for the server nor for its own patience, 120 s
        finally:
            run.kill()
            ended.set()
    assert run.returncode == 1
    assert ("stopped" if stopped else "Error code: 400") in error.splitlines()[-1]


def test_the_environment_says_where_it_is(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    names = ("CITEREC_CHAT_URL", "CITEREC_CHAT_KEY", "CITEREC_CHAT_MODEL", "OPENAI_BASE_URL")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-openai-too")
    monkeypatch.setenv("OPENAI_ORG_ID", "sk-of-openai-org")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: sk-of-openai-header")
    with pytest.raises(InputError, match="there is no chat endpoint"):
        from_environment()
    monkeypatch.setenv("CITEREC_CHAT_URL", endpoint.url)
    with pytest.raises(InputError, match="no model"):
        from_environment()
    monkeypatch.setenv("CITEREC_CHAT_MODEL", "tiny")
    # The key of OpenAI is for OpenAI.
    chat = from_environment("tldr", options={"max_tokens": 50})
    chat.write(TASK)
    assert "sk-of-openai" not in str(endpoint.headers)
    monkeypatch.setenv("CITEREC_CHAT_KEY", KEY)
    keyed = from_environment("tldr", "other", options={"max_tokens": "50", "threads": "1"})
    keyed.write(TASK)
    assert endpoint.headers[1]["authorization"] == f"Bearer {KEY}"
    assert keyed.name == "other"
    assert keyed.settings == {**chat.settings, "writer": "other"}
    assert keyed.settings["temperature"] == 0
    shown = json.dumps(dict(keyed.settings)) + repr(keyed) + caplog.text
    assert KEY not in shown
    # Without an address of ours, OpenAI's own variables.
    monkeypatch.delenv("CITEREC_CHAT_URL")
    monkeypatch.delenv("CITEREC_CHAT_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    open_writer("chat", "citation").write(TASK)
    assert endpoint.headers[2]["authorization"] == "Bearer sk-of-openai"


@pytest.mark.parametrize(
    ("kind", "words", "options"),
    [
        (InputError, "there is no option 'beams' of a chat writer. Give temp", {"beams": 3}),
        (InputError, "there is no option 'model' of a chat writer", {"model": "x"}),
        (InputError, "temperature: Input should be a valid number", {"temperature": "warm"}),
        (InputError, "max_tokens: Input should be greater than or equal to 1", {"max_tokens": "0"}),
    ],
)
def test_wrong_options(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, kind: type[CiterecError], words: str, options: Any
) -> None:
    monkeypatch.setenv("CITEREC_CHAT_MODEL", "tiny")
    monkeypatch.setenv("CITEREC_CHAT_URL", endpoint.url)
    with pytest.raises(kind) as error:
        from_environment(options=options)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_no_control_character_of_an_answer_or_a_complaint_gets_through(endpoint: Endpoint) -> None:
    answers = [completion("Trees\x1b]0;x\x07 grow [0].\n\nMore\x9b31m."), failure(400, "no\x1b[2J\x9b")]
    endpoint.answer = lambda _body, before: answers[before]
    chat = writer(endpoint)
    assert next(iter(chat.write_many([TASK]))).text == "Trees ]0;x  grow [0].\n\nMore 31m."
    with pytest.raises(WriterError) as caught:
        list(chat.write_many([TASK]))
    assert str(caught.value).isprintable()
