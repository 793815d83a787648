"""A chat endpoint that answers, fails, hangs and refuses; what is sent to it, and what becomes of it."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import InputError, WriterError
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import Kind, open_writer
from citerec.write.writers.models import ChatOptions, ChatWriter, messages
from tests.conftest import write_lines
from tests.write.conftest import Answer, Endpoint, completion

KEY = "sk-very-secret-1234"
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
NUMBERED = [TextTask(str(number), (Source(f"Paper number {number}."),)) for number in range(20)]


def numbered(body: dict[str, Any]) -> int:
    """Which of `NUMBERED` is asked about."""
    return int(body["messages"][-1]["content"].split("number ")[1].split(".")[0])


def failure(status: int, message: str = "no") -> Answer:
    return status, json.dumps({"error": {"message": message}})


def writer(endpoint: Endpoint, kind: Kind = "citation", key: str = "", **options: Any) -> ChatWriter:
    return ChatWriter(endpoint.url, "tiny", kind, ChatOptions(**options), key=key)


def test_what_is_sent_and_what_is_made_of_the_answer(endpoint: Endpoint) -> None:
    endpoint.answer = lambda *_: completion("BM25 was proposed for search [0]. Nobody knows [7].")
    prediction = writer(endpoint, temperature=0.5, seed=7, max_tokens=99, key=KEY).write(TASK)
    assert prediction.text == "BM25 was proposed for search [0]. Nobody knows [7]."
    assert (prediction.writer, prediction.task, prediction.is_oracle) == ("tiny", TASK, False)
    assert prediction.sentences[0].attributions == (0,)
    assert [sentence.unknown for sentence in prediction.sentences] == [(), ("[7]",)]
    (asked,) = endpoint.bodies
    assert endpoint.asked == [("/v1/chat/completions", None)]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    assert (asked["model"], asked["temperature"], asked["seed"], asked["max_tokens"]) == ("tiny", 0.5, 7, 99)
    assert asked["messages"] == messages(TASK, "citation")
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


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (failure(401, f"Incorrect key {KEY}"), "Error code: 401"),
        (failure(400, f"too long for {KEY}"), "too long for …"),
        (failure(500, "no\x1b[2J\x9b"), "no"),
        ((200, "{garbage"), "gives no text"),
        (completion(None), "wrote nothing about t1. Try again"),
        (completion("<think>hm, hm</think>\n"), "wrote nothing"),
        (completion("", finish_reason="length"), "raise max_tokens above 1024"),
        (completion("hm</think>\n<think>hm, BM25 [0]"), "wrote nothing about t1"),
    ],
)
def test_answers_of_no_use_are_told_without_the_key(endpoint: Endpoint, answer: Answer, words: str) -> None:
    endpoint.answer = lambda *_: answer
    with pytest.raises(WriterError) as error:
        writer(endpoint, key=KEY).write(TASK)
    assert words in str(error.value) and str(error.value).isprintable()
    assert answer[0] == 200 or "Check CITEREC_CHAT_URL" in str(error.value)
    assert KEY not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("<think>What to\nsay [3]?</think>\n\nBM25 works [0].\n", "BM25 works [0]."),
        ("What to say [3]?</think>BM25 works [0].", "BM25 works [0]."),  # of servers whose template begins with them
        ("Trees\x1b]0;x\x07 grow [0].\n\nMore\x9b31m.", "Trees ]0;x  grow [0].\n\nMore 31m."),
    ],
)
def test_thoughts_and_control_characters_are_no_part_of_the_text(endpoint: Endpoint, said: str, text: str) -> None:
    """And it asks again where that may help."""
    endpoint.answer = lambda _body, before: failure((429, 500)[before]) if before < 2 else completion(said)
    assert writer(endpoint).write(TASK).text == text
    assert len(endpoint.bodies) == 3


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_does_not_take_the_key_to_another_server(endpoint: Endpoint, status: int) -> None:
    other = Endpoint()
    endpoint.location = f"{other.url}/chat/completions".replace("127.0.0.1", "localhost")
    endpoint.answer = lambda *_: (status, "")
    with contextlib.suppress(WriterError):
        writer(endpoint, key=KEY).write(TASK)
    other.stop()
    assert KEY not in str(other.headers)


def test_a_run_that_is_stopped_ends_at_once_though_the_server_hangs(endpoint: Endpoint, tmp_path: Path) -> None:
    ended, hangs = threading.Event(), threading.Event()

    def answer(*_: object) -> Answer:
        hangs.set()
        ended.wait(300)
        return completion("Too late.")

    endpoint.answer = answer
    records = [{"id": task.task_id, "input": [task.sources[0].text]} for task in NUMBERED]
    tasks = write_lines(tmp_path / "tasks.jsonl", records)
    command = [Path(sys.executable).with_name("citerec"), "write", "batch", tasks, "--writer", "chat"]
    own = {"CITEREC_CHAT_URL": endpoint.url, "CITEREC_CHAT_KEY": KEY, "CITEREC_CHAT_MODEL": "tiny"}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [*command, "--out", tmp_path / "texts.jsonl"], env={**os.environ, **own}, text=True, **pipes
    ) as run:
        try:
            assert hangs.wait(60)
            run.send_signal(signal.SIGINT)
            _, error = run.communicate(timeout=60)
        finally:
            run.kill()
            ended.set()
    assert run.returncode == 1 and "stopped" in error.splitlines()[-1]
    assert not any(path.is_file() and KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*"))


def test_an_error_waits_for_no_slow_answer_and_what_came_before_it_is_given(endpoint: Endpoint) -> None:
    ended, given = threading.Event(), []

    def answer(body: dict[str, Any], _before: int) -> Answer:
        number = numbered(body)
        if number == 3:
            ended.wait(30)
        while number == 2 and len(given) < 2 and not ended.is_set():
            time.sleep(0.01)
        return failure(400) if number == 2 else completion(f"Text {number}.")

    endpoint.answer = answer
    began = time.monotonic()
    with pytest.raises(WriterError, match="Error code: 400"):
        for prediction in writer(endpoint, threads=4).write_many(NUMBERED):
            given.append(prediction.text)
    assert time.monotonic() - began < 29
    ended.set()
    assert given == ["Text 0.", "Text 1."]


def test_the_environment_says_where_it_is(
    endpoint: Endpoint, silent_port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("CITEREC_CHAT_URL", "CITEREC_CHAT_KEY", "CITEREC_CHAT_MODEL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "sk-of-openai")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: sk-of-openai")
    with pytest.raises(InputError, match="there is no chat endpoint"):
        open_writer("chat", "tldr")
    monkeypatch.setenv("CITEREC_CHAT_URL", endpoint.url)
    with pytest.raises(InputError, match="no model"):
        open_writer("chat", "tldr")
    monkeypatch.setenv("CITEREC_CHAT_MODEL", "tiny")
    with pytest.raises(InputError, match="there is no option 'beams' of a chat writer"):
        open_writer("chat", "tldr", options={"beams": 3})
    chat = open_writer("chat", "tldr", options={"max_tokens": 50})
    chat.write(TASK)
    assert "sk-of-openai" not in str(endpoint.headers)  # the key of OpenAI is for OpenAI
    monkeypatch.setenv("CITEREC_CHAT_KEY", KEY)
    keyed = open_writer("chat", "tldr", options={"max_tokens": "50", "threads": "1", "chat_model": "other"})
    keyed.write(TASK)
    assert endpoint.headers[1]["authorization"] == f"Bearer {KEY}"
    assert keyed.settings == {**chat.settings, "writer": "other"}
    assert KEY not in json.dumps(dict(keyed.settings)) + repr(keyed) + caplog.text
    # Without an address of ours, OpenAI's own variables.
    monkeypatch.delenv("CITEREC_CHAT_URL")
    monkeypatch.delenv("CITEREC_CHAT_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    open_writer("chat", "citation").write(TASK)
    assert endpoint.headers[2]["authorization"] == "Bearer sk-of-openai"
    monkeypatch.setenv("CITEREC_CHAT_URL", f"http://127.0.0.1:{silent_port}/v1")
    with pytest.raises(WriterError, match=r"^http.*gives no text: Connection error\. Check CITEREC_CHAT_URL"):
        open_writer("chat", "tldr").write(TASK)
