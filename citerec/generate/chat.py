"""A writer that asks a chat endpoint: any that speaks as OpenAI's does, such as a vLLM or llama.cpp server nearby."""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from citerec.errors import InputError, WriterError
from citerec.generate.check import traced
from citerec.generate.generation import checked
from citerec.generate.prompts import messages, prompt_digest
from citerec.generate.writers import Kind
from citerec.texts.read import read_tasks
from citerec.texts.tasks import TextTask, Written

URL, KEY, MODEL = "CITEREC_CHAT_URL", "CITEREC_CHAT_KEY", "CITEREC_CHAT_MODEL"
_EXAMPLE_URL = "http://localhost:8000/v1"
# Room for an answer, and for what some models think before it: ours.
_MAX_TOKENS: Mapping[Kind, int] = {"citation": 1024, "tldr": 512, "related-work": 4096}
# Models that reason put what they thought before the answer, where the server does not take it out.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_SAID_LENGTH = 200
_ANSWER = ("temperature", "seed", "max_tokens")
_PATIENCE = ("timeout", "retries", "threads")


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How a chat endpoint is asked.

    Attributes:
        temperature: 0 for the likeliest words.
        seed: Of what is drawn; not all servers heed it.
        max_tokens: The longest answer; as the kind of text needs if not said.
    """

    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach an endpoint, and with how much patience. None of it decides what is written.

    Attributes:
        url: Its address, up to and with `/v1`.
        key: Its key; empty where it needs none. It is sent to the endpoint and shown nowhere.
        timeout: Seconds to wait for an answer, each time.
        retries: How often to ask again: where it cannot be reached, is too slow, too busy (429) or fails (5xx).
        threads: How many questions at once.
    """

    url: str
    key: str = ""
    timeout: float = 120.0
    retries: int = 3
    threads: int = 4

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the address of the chat endpoint is none", f"Give one such as {_EXAMPLE_URL} in {URL}.")
        if parts.username or parts.password or parts.query:
            raise InputError("the address of the chat endpoint holds more than an address", f"Give the key in {KEY}.")
        if self.timeout <= 0 or self.retries < 0 or self.threads < 1:
            raise InputError(
                f"a chat endpoint cannot be asked with timeout {self.timeout}, retries {self.retries}, threads "
                f"{self.threads}",
                "Give a timeout above 0, retries from 0, threads from 1.",
            )

    def __repr__(self) -> str:
        return f"Connection(url={self.url!r})"


class ChatWriter:
    """Writes by asking a chat endpoint. Where it is and how it is asked comes from `from_environment`, or as here.

    Attributes:
        name: The model.
        settings: All that its texts depend on, as far as the endpoint lets us know.
        cut: How many answers so far ended because they were too long.

    Args:
        connection: How to reach it.
        model: Which of its models.
        kind: What it is to write.
        options: How it is asked.
        examples: Tasks with targets to learn from, in the prompt.

    Raises:
        InputError: An example has no target.
    """

    knows_target = False

    def __init__(
        self,
        connection: Connection,
        model: str,
        kind: Kind,
        options: ChatOptions | None = None,
        examples: Sequence[TextTask] = (),
    ) -> None:
        from openai import OpenAI

        if without := [example.task_id for example in examples if not example.targets]:
            raise InputError(f"the example {without[0]} has no target", "Give tasks with what authors wrote.")
        options = options or ChatOptions()
        self.name = model
        self.cut = 0
        self._connection = connection
        self._kind: Kind = kind
        self._examples = examples
        self._asked = {**asdict(options), "max_tokens": options.max_tokens or _MAX_TOKENS[kind]}
        self.settings: Mapping[str, Any] = {
            "writer": model,
            "url": connection.url,
            "kind": kind,
            **self._asked,
            "prompt": prompt_digest(kind, examples),
            "examples": [example.task_id for example in examples],
        }
        self._client = OpenAI(
            base_url=connection.url,
            api_key=connection.key or "none",  # the client wants one; servers that need none do not look at it
            admin_api_key="",
            timeout=connection.timeout,
            max_retries=connection.retries,
        )
        # What else the environment holds of OpenAI's is not for this endpoint.
        self._client.organization = self._client.project = None

    @classmethod
    def from_environment(
        cls, *, task: Kind = "citation", model: str | None = None, examples: Path | None = None, **more: Any
    ) -> Self:
        """The writer that the environment describes.

        `CITEREC_CHAT_URL` says where the endpoint is, `CITEREC_CHAT_KEY` its key if it needs one, `CITEREC_CHAT_MODEL`
        the model. Where the first is not set, `OPENAI_BASE_URL` and `OPENAI_API_KEY` do; a key of OpenAI's is never
        sent to an address of ours.

        Args:
            task: What it is to write.
            model: Which model; the environment's if not said.
            examples: A file of tasks with targets: few-shot.
            more: Options of `ChatOptions`, and `timeout`, `retries`, `threads` of `Connection`; texts will do.

        Raises:
            InputError: Address or model is missing, or an option is out of its range.
            SourceError: The file of examples cannot be read.
        """
        url, key = os.environ.get(URL, ""), os.environ.get(KEY, "")
        if not url:
            url, key = os.environ.get("OPENAI_BASE_URL", ""), key or os.environ.get("OPENAI_API_KEY", "")
        if not url:
            raise InputError(
                "there is no chat endpoint", f"Say where one is: export {URL}={_EXAMPLE_URL} (docs/neural-writers.md)."
            )
        model = model or os.environ.get(MODEL)
        if not model:
            raise InputError("no model of the chat endpoint is named", f"Name one: export {MODEL}=NAME.")
        if unknown := sorted(set(more) - {*_ANSWER, *_PATIENCE}):
            raise InputError(
                f"there is no option {unknown[0]!r} of a chat writer", f"Give {', '.join((*_ANSWER, *_PATIENCE))}."
            )
        options = checked(ChatOptions, {name: more[name] for name in _ANSWER if name in more}, "a chat writer")
        patience = {name: more[name] for name in _PATIENCE if name in more}
        connection = checked(Connection, {"url": url, "key": key.strip(), **patience}, "a chat writer")
        shown = list(read_tasks(examples)) if examples else []
        return cls(connection, model, task, options, shown)

    @property
    def remark(self) -> str:
        """How many answers ended because they were too long."""
        return f"{self.cut:,} answers were cut at {self._asked['max_tokens']:,} tokens." if self.cut else ""

    def write(self, task: TextTask) -> Written:
        """A text, and for each sentence the sources that it was drawn from.

        Raises:
            WriterError: The endpoint cannot be reached, refuses, is too slow, or answers with nothing.
        """
        return traced(task, self._answer(task), self.name)

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Written]:
        """Texts for many tasks, in their order; several at once. Errors as for `write`."""
        remaining = iter(tasks)
        with ThreadPoolExecutor(self._connection.threads, thread_name_prefix="chat") as pool:
            # As many as are asked at once and as many again: a pool would take in all tasks else.
            waiting = [
                pool.submit(self.write, task) for task in itertools.islice(remaining, 2 * self._connection.threads)
            ]
            try:
                while waiting:
                    yield waiting.pop(0).result()
                    waiting += [pool.submit(self.write, task) for task in itertools.islice(remaining, 1)]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # an error, or Ctrl-C: what was not begun is not asked
                raise

    def _answer(self, task: TextTask) -> str:
        said = self._said(task)
        try:
            choice = orjson.loads(said)["choices"][0]
            text = choice["message"]["content"] or ""
            answer = _THOUGHTS.sub("", text).strip()
        except (ValueError, LookupError, TypeError) as error:
            raise WriterError(
                f"{self._connection.url} answers with what is no chat completion",
                f"Check that {URL} ends as its server says, mostly in /v1.",
            ) from error
        ended = choice.get("finish_reason") == "length"
        if not answer:
            raise WriterError(
                f"{self.name} wrote nothing about {task.task_id}",
                f"Raise max_tokens above {self._asked['max_tokens']}." if ended else "Ask again, or another model.",
            )
        self.cut += ended
        return answer

    def _said(self, task: TextTask) -> str:
        """The endpoint's answer, as it came."""
        import openai

        # No task is an example to itself.
        examples = [example for example in self._examples if example.sources != task.sources]
        asked: Any = messages(task, self._kind, examples)
        where, retries = self._connection.url, self._connection.retries
        try:
            answer = self._client.chat.completions.with_raw_response.create(
                model=self.name, messages=asked, **self._asked
            )
            return str(answer.text)
        except openai.APITimeoutError as error:
            raise WriterError(
                f"{where} did not answer within {self._connection.timeout:g} s, {_times(retries + 1)}",
                "Give it more time, or fewer threads.",
            ) from error
        except openai.APIConnectionError as error:
            raise WriterError(
                f"no server answers at {where}, {_times(retries + 1)}", f"Start it, or set {URL}."
            ) from error
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            # What it says may hold the key.
            raise WriterError(
                f"{where} refuses the key ({error.status_code})", f"Set {KEY} to one that it takes."
            ) from None
        except openai.RateLimitError as error:
            raise WriterError(
                f"{where} is too busy (429), {_times(retries + 1)}", "Ask later, or with fewer threads."
            ) from error
        except openai.NotFoundError as error:
            raise WriterError(
                f"{where} has no model {self.name}, or no chat ({self._told(error)})", f"Set {MODEL} and {URL}."
            ) from error
        except openai.APIStatusError as error:
            raise WriterError(
                f"{where} fails with {error.status_code}: {self._told(error)}",
                "Give shorter sources if that is what it says; else see the server's log.",
            ) from error

    def _told(self, error: Any) -> str:
        """The server's own words, short, in one line, and without the key."""
        words = " ".join(str(error.message).split())
        if self._connection.key:
            words = words.replace(self._connection.key, "…")
        return words[:_SAID_LENGTH]


def _times(number: int) -> str:
    return "asked once" if number == 1 else f"asked {number} times"
