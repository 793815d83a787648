"""A writer that uses a chat endpoint with OpenAI's interface, such as a vLLM or llama.cpp server nearby."""

import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
from pydantic import Field

from citerec.errors import InputError, WriterError
from citerec.files.text import one_line
from citerec.write.check import traced
from citerec.write.parallel import in_order
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Prediction, TextTask
from citerec.write.writers.base import Kind, Writer, WriterPart, check_names, checked
from citerec.write.writers.prompts import answer_of, messages, prompt_digest

URL, KEY, MODEL = "CITEREC_CHAT_URL", "CITEREC_CHAT_KEY", "CITEREC_CHAT_MODEL"
_EXAMPLE_URL = "http://localhost:8000/v1"
# Room for an answer, and for the reasoning of some models before it: ours.
_MAX_TOKENS: Mapping[Kind, int] = {"citation": 1024, "tldr": 512, "related-work": 4096, "xsum": 512, "gigaword": 512}
_SAID_LENGTH = 200
_PART_OF_KEY = 8  # characters that are not shown together
_ANSWER = ("temperature", "seed", "max_tokens")
_PATIENCE = ("timeout", "retries", "threads")
_EXAMPLES = "examples"
_MOST_SECONDS, _MOST_THREADS, _MOST_NUMBER = 86_400, 256, 2**31 - 1


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Options of requests to a chat endpoint.

    Attributes:
        temperature: 0 for the likeliest words.
        seed: Seed of sampling; not all servers use it.
        max_tokens: The longest answer; by default as the kind of text needs.
    """

    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    seed: Annotated[int, Field(ge=0, le=_MOST_NUMBER)] = 0
    max_tokens: Annotated[int, Field(ge=1, le=_MOST_NUMBER)] | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach an endpoint; an InputError if the address or the key is wrong. Texts do not depend on it.

    Attributes:
        url: Its address, with `/v1`.
        key: Its key if it needs one. It is sent to the endpoint and shown nowhere.
        timeout: Seconds to wait for an answer.
        retries: How often to try again if it cannot be reached, is too slow, too busy (429) or fails (5xx).
        threads: How many requests to send at once.
    """

    url: str
    key: str = ""
    timeout: Annotated[float, Field(gt=0, le=_MOST_SECONDS)] = 120.0
    retries: Annotated[int, Field(ge=0)] = 3
    threads: Annotated[int, Field(ge=1, le=_MOST_THREADS)] = 4

    def __post_init__(self) -> None:
        parts = _split(self.url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError("the address of the chat endpoint holds more than an address", f"Give the key in {KEY}.")
        if not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise InputError(f"the key in {KEY} has signs that no key has", "Give letters, digits and signs of ASCII.")

    @property
    def local(self) -> bool:
        """Whether the endpoint is on this machine."""
        host = _split(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def place(self) -> str:
        """The address for error messages, with the proxy if the environment names one."""
        parts, proxies = _split(self.url), getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if not proxy or self.local or proxy_bypass(parts.hostname or ""):
            return self.url
        return f"{self.url} (through the proxy {proxy.rpartition('@')[2]})"  # it may hold a password

    def __repr__(self) -> str:
        return f"Connection(url={self.url!r})"


class ChatWriter(Writer):
    """Writes with a chat endpoint. To open one from the environment, use `from_environment`.

    Attributes:
        cut: How many of the texts written so far were cut because they were too long.

    Args:
        model: One of the endpoint's models.
        examples: Tasks with targets, for the prompt.

    Raises:
        InputError: An example has no target, or the environment names a proxy that cannot be used.
    """

    def __init__(
        self,
        connection: Connection,
        model: str,
        kind: Kind,
        options: ChatOptions | None = None,
        examples: Sequence[TextTask] = (),
    ) -> None:
        if without := [example.task_id for example in examples if not answer_of(example)]:
            raise InputError(f"the example {without[0]} has no target", "Give tasks with targets.")
        options = options or ChatOptions()
        self.name = model
        self.cut = 0
        self._connection = connection
        self._kind: Kind = kind
        self._examples = examples
        self._asked = {**asdict(options), "max_tokens": options.max_tokens or _MAX_TOKENS[kind]}
        self.settings = {
            "writer": model,
            "url": connection.url,
            "kind": kind,
            **self._asked,
            "prompt": prompt_digest(kind, examples),
            "examples": [example.task_id for example in examples],
        }
        self._client = _client(connection)

    @classmethod
    def from_environment(
        cls,
        *,
        task: Kind = "citation",
        model: str | None = None,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Self:
        """Opens the writer that environment variables name.

        `CITEREC_CHAT_URL` is the endpoint, `CITEREC_CHAT_KEY` its key if it needs one, `CITEREC_CHAT_MODEL` the model.
        If the first is not set, `OPENAI_BASE_URL` and `OPENAI_API_KEY` are used; OpenAI's key is never sent to
        the address in `CITEREC_CHAT_URL`.

        Args:
            task: The kind of text.
            model: The model; by default from the environment.
            options: Those of `ChatOptions`; `timeout`, `retries`, `threads` of `Connection`; and `examples`, a file of
                tasks with targets: few-shot. Values may be strings; an empty one means the default.
            more: Options by keyword.

        Raises:
            InputError: Address or model is missing, or an option is unknown or out of its range.
            SourceError: The file of examples cannot be read.
        """
        given = {**(options or {}), **more}
        check_names(given, (*_ANSWER, *_PATIENCE, _EXAMPLES), "a chat writer")
        given = {name: value for name, value in given.items() if value != ""}
        url, key = os.environ.get(URL, ""), os.environ.get(KEY, "")
        if not url:
            url, key = os.environ.get("OPENAI_BASE_URL", ""), key or os.environ.get("OPENAI_API_KEY", "")
        if not url:
            raise InputError(
                "there is no chat endpoint", f"Say where one is: export {URL}={_EXAMPLE_URL} (docs/writing.md)."
            )
        model = model or os.environ.get(MODEL)
        if not model:
            raise InputError("no model of the chat endpoint is named", f"Name one: export {MODEL}=NAME.")
        answer = checked(ChatOptions, {name: given[name] for name in _ANSWER if name in given}, "a chat writer")
        patience = {name: given[name] for name in _PATIENCE if name in given}
        connection = checked(Connection, {"url": url, "key": key.strip(), **patience}, "a chat writer")
        examples = given.get(_EXAMPLES)
        shown = list(read_tasks(Path(examples).expanduser())) if examples else []
        return cls(connection, model, task, answer, shown)

    @property
    def remark(self) -> str:
        """How many texts were cut because they were too long."""
        return f"{self.cut:,} texts of this run were cut at {self._asked['max_tokens']:,} tokens." if self.cut else ""

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order, several at once.

        Raises:
            WriterError: The endpoint cannot be reached, refuses, is too slow, or gives an empty answer.
        """
        for prediction, cut in in_order(self._predicted, tasks, self._connection.threads):
            self.cut += cut
            yield prediction

    def _predicted(self, task: TextTask) -> tuple[Prediction, bool]:
        """A text, and whether it was cut."""
        said = self._said(task)
        begins, ends = "<think>", "</think>"  # of models that reason, if the server does not remove their reasoning
        try:
            choice = orjson.loads(said)["choices"][0]
            text = (choice["message"]["content"] or "").rpartition(ends)[2]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise WriterError(
                f"{self._connection.place} answers with something other than a chat completion",
                f"Check that {URL} ends as its server requires, mostly in /v1.",
            ) from error
        cut = choice.get("finish_reason") == "length"
        answer, still_thinking, _ = text.partition(begins)
        if not answer.strip():
            raise WriterError(
                f"{self.name} wrote nothing about {task.task_id}",
                f"Raise max_tokens above {self._asked['max_tokens']}."
                if cut or still_thinking
                else "Try again, or use another model.",
            )
        return traced(task, answer.strip(), self.name), cut

    def _said(self, task: TextTask) -> str:
        """The endpoint's answer, unchanged."""
        import openai

        # A task is never its own example.
        examples = [example for example in self._examples if example.sources != task.sources]
        asked: Any = messages(task, self._kind, examples)
        try:
            answer = self._client.chat.completions.with_raw_response.create(
                model=self.name, messages=asked, **self._asked
            )
            return str(answer.text)
        except (openai.APIConnectionError, openai.APIStatusError) as error:
            failure = self._failure(error)
        # Not from the error: what a server said may hold the key, and a traceback shows the whole of it.
        raise WriterError(*failure)

    def _failure(self, error: Any) -> tuple[str, str]:
        """What went wrong, and the remedy."""
        import openai

        where, retries = self._connection.place, self._connection.retries
        asked = f"asked {retries + 1} times" if retries else "asked once"
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return f"{where} refuses the key ({error.status_code})", f"Set {KEY} to one that it takes."
            case openai.APITimeoutError():
                late = f"{where} did not answer within {self._connection.timeout:g} s, {asked}"
                return late, "Give it more time, or fewer threads."
            case openai.APIConnectionError():
                return f"no server answers at {where}, {asked}", f"Start it, or set {URL}."
            case openai.RateLimitError():
                return f"{where} is too busy (429), {asked}", "Ask later, or with fewer threads."
            case openai.NotFoundError():
                return f"{where} has no model {self.name}, or no chat ({self._told(error)})", f"Set {MODEL} and {URL}."
        remedy = "Give shorter sources if it says that they are too long; else see the server's log."
        return f"{where} fails with {error.status_code}: {self._told(error)}", remedy

    def _told(self, error: Any) -> str:
        """The server's message, short and in one line; withheld if it holds a part of the key."""
        words, key = one_line(str(error.message)), self._connection.key.lower()
        whole = words.replace(" ", "").lower()
        parts = {key[start : start + _PART_OF_KEY] for start in range(max(1, len(key) - _PART_OF_KEY + 1))} - {""}
        return "its words hold the key" if any(part in whole for part in parts) else words[:_SAID_LENGTH]


def _split(url: str) -> SplitResult:
    """The parts of a valid address."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # as Python's sockets take it: no empty part, none too long
        sound = parts.scheme in ("http", "https") and host and url.isprintable() and " " not in url
        if sound and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise _no_address()


def _no_address() -> InputError:
    return InputError("the address of the chat endpoint is not valid", f"Give one such as {_EXAMPLE_URL} in {URL}.")


def _client(connection: Connection) -> Any:
    """OpenAI's client for an endpoint, without the settings that the environment has for OpenAI's own."""
    import openai

    try:
        # No proxy is used for this machine.
        web = openai.DefaultHttpxClient(trust_env=not connection.local)
    except Exception as error:  # an invalid address, a kind that httpx does not know, a missing package
        raise InputError(
            "a proxy that the environment names cannot be used",
            "Change or unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY; set NO_PROXY to hosts with commas.",
        ) from error
    try:
        client = openai.OpenAI(
            base_url=connection.url,
            api_key=connection.key or "none",  # the client needs one; servers that need none ignore it
            admin_api_key="",
            timeout=connection.timeout,
            max_retries=connection.retries,
            http_client=web,
        )
    except Exception as error:  # httpx knows more about addresses than we do; which httpx, openai's version decides
        raise _no_address() from error
    client.organization = client.project = None
    client._custom_headers = {}  # of OPENAI_CUSTOM_HEADERS, which may hold another key
    return client


def _open(
    _name: str, kind: Kind, chat_model: str | None = None, options: Mapping[str, Any] | None = None
) -> ChatWriter:
    return ChatWriter.from_environment(task=kind, model=chat_model, options=options)


CHAT = WriterPart("chat", _open)
