"""Models as writers: encoder-decoders and causal models of transformers, and chat endpoints with OpenAI's interface.

A `Generation` says how a model of transformers writes: its lengths, beams and post-processing. The published recipes
stand with the prompts in models.toml.
"""

import hashlib
import os
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import orjson

from citerec.contexts.provenance import provenance_of_part
from citerec.errors import InputError, ModelError, WriterError
from citerec.files.parallel import in_parts
from citerec.files.text import one_line
from citerec.files.writing import Kind as DirectoryKind
from citerec.models.encoder import batches_by_length
from citerec.models.find import find_model
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, read_model_manifest
from citerec.models.text_models import Encoded, TextModel
from citerec.settings import Amount, Natural, Positive, Share
from citerec.write.anchors import traced
from citerec.write.task_files import input_of
from citerec.write.tasks import PREFIX, PROMPT, Prediction, Source, TextTask
from citerec.write.writers.base import MODEL, Kind, Writer, WriterPart, checked, targets_of

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_KINDS: Mapping[Kind, Mapping[str, Any]] = _TABLES["kinds"]
"""Prompts and lengths by kind of text."""
_STANDARD = TextTask("0", (Source("text", title="title"),), "citing", "before", "after", ("target",))


def messages(task: TextTask, kind: Kind) -> list[dict[str, str]]:
    """The messages that ask for the text of a task, with `role` and `content`."""
    system, question = _KINDS[kind]["system"].format(**_TABLES["texts"]), _question(task, kind)
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def plain_prompt(task: TextTask, kind: Kind) -> tuple[str, str]:
    """The same as one text, for a model that goes on from it; its last words, which a long prompt must keep, apart."""
    *parts, ask = "\n\n".join(message["content"] for message in messages(task, kind)).split("\n\n")
    return "\n\n".join(parts), f"\n\n{ask}\n\n"


def prompt_digest(kind: Kind) -> str:
    """A digest of the prompt's words, for settings."""
    return "sha256:" + hashlib.sha256(orjson.dumps(messages(_STANDARD, kind))).hexdigest()[:32]


def _question(task: TextTask, kind: Kind) -> str:
    name = _KINDS[kind].get("source")
    parts = [_source(name or f"Source [{number}]", source) for number, source in enumerate(task.sources)]
    if not name:
        around = [("before the text", task.before), ("after the text", task.after)]
        parts += [f"The paper that cites them:\n{task.citing}"] * bool(task.citing)
        parts += [f"What stands {place}:\n{text}" for place, text in around if text]
    return "\n\n".join([*parts, _KINDS[kind]["ask"]])


def _source(name: str, source: Source) -> str:
    authors = ", ".join(source.authors[:3]) + (" et al." if len(source.authors) > 3 else "")
    heading = ". ".join(filter(None, (authors, source.title)))
    return f"{name}:{' ' + heading if heading else ''}\n{source.text or '(Its abstract is not known.)'}"


URL, KEY, CHAT_MODEL = "CITEREC_CHAT_URL", "CITEREC_CHAT_KEY", "CITEREC_CHAT_MODEL"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Options of the chat writer. Texts do not depend on `threads`.

    Attributes:
        temperature: 0 for the likeliest words.
        seed: Seed of sampling; not all servers use it.
        max_tokens: The longest answer; by default as the kind of text needs.
        threads: How many requests to send at once.
        chat_model: The model; by default from the environment.
    """

    temperature: Amount = 0.0
    seed: Natural = 0
    max_tokens: Positive | None = None
    threads: Positive = 4
    chat_model: str | None = None


class ChatWriter(Writer):
    """Writes with a chat endpoint. To open one from the environment, use `open_writer`.

    Args:
        url: The endpoint's address, with `/v1`.
        model: One of its models.
        kind: The kind of text.
        options: How to ask.
        key: The endpoint's key if it needs one. It is sent to the endpoint and shown nowhere.

    """

    def __init__(
        self, url: str, model: str, kind: Kind = "citation", options: ChatOptions = ChatOptions(), *, key: str = ""
    ) -> None:
        import openai

        self.name = model
        self._url, self._kind, self._key, self._threads = url, kind, key, options.threads
        # The client needs a key; servers that need none ignore it.
        self._client: Any = openai.OpenAI(base_url=url, api_key=key or "none")
        # What the environment has for OpenAI's own service is sent nowhere else.
        self._client.organization = self._client.project = None
        self._client._custom_headers = {}
        most = options.max_tokens or _KINDS[kind]["max_tokens"]
        self._request = {"temperature": options.temperature, "seed": options.seed, "max_tokens": most}
        self.settings = {"writer": model, "url": url, "kind": kind, **self._request, "prompt": prompt_digest(kind)}

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order, several at once.

        It ends at the first error, and waits neither then nor at Ctrl-C for answers that are still to come: joblib's
        threads are daemons, unlike those of `concurrent.futures`.

        Raises:
            WriterError: The endpoint cannot be reached, refuses, is too slow, or gives an empty answer.
        """
        from joblib import Parallel, delayed

        threads = Parallel(self._threads, backend="threading", return_as="generator", pre_dispatch="2*n_jobs")
        answers = threads(delayed(self._predicted)(task) for task in tasks)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of joblib, if not all are taken
            yield from answers

    def _predicted(self, task: TextTask) -> Prediction:
        import openai

        prompt = messages(task, self._kind)
        try:
            completion = self._client.chat.completions.create(model=self.name, messages=prompt, **self._request)
            text = completion.choices[0].message.content or ""
        except (openai.OpenAIError, AttributeError, LookupError, TypeError, ValueError) as error:  # or no completion
            fault = one_line(str(error).replace(self._key or "\0", "…"))
            remedy = f"Check {URL} (it mostly ends in /v1), {CHAT_MODEL} and {KEY}, or see the server's log."
            raise WriterError(f"{self._url} gives no text: {fault}", remedy) from None
        # Models that reason say so, if the server does not remove their reasoning.
        text = text.rpartition("</think>")[2].partition("<think>")[0].strip()
        if not text:
            remedy = f"Try again, raise max_tokens above {self._request['max_tokens']}, or use another model."
            raise WriterError(f"{self.name} wrote nothing about {task.task_id}", remedy)
        return traced(task, text, self.name)


def open_from_environment(_name: str, kind: Kind, *, options: Mapping[str, Any] | None = None) -> ChatWriter:
    """Opens the writer that environment variables name.

    `CITEREC_CHAT_URL` is the endpoint, `CITEREC_CHAT_KEY` its key if it needs one, `CITEREC_CHAT_MODEL` the model.
    If the first is not set, `OPENAI_BASE_URL` and `OPENAI_API_KEY` are used; OpenAI's key is never sent to
    the address in `CITEREC_CHAT_URL`.

    Args:
        kind: The kind of text.
        options: Those of `ChatOptions`. Values may be strings.

    Raises:
        InputError: Address or model is missing, or an option is unknown or out of its range.
    """
    chosen = checked(ChatOptions, options or {}, "a chat writer")
    url, key = os.environ.get(URL), os.environ.get(KEY, "")
    if not url:
        url, key = os.environ.get("OPENAI_BASE_URL"), key or os.environ.get("OPENAI_API_KEY", "")
    model = chosen.chat_model or os.environ.get(CHAT_MODEL)
    if not url:
        raise InputError("there is no chat endpoint", f"Say where one is: export {URL}=http://localhost:8000/v1")
    if not model:
        raise InputError("no model of the chat endpoint is named", f"Name one: export {CHAT_MODEL}=NAME.")
    return ChatWriter(url, model, kind, chosen, key=key.strip())


CHAT = WriterPart("chat", open_from_environment)


# Tokens read at once, padding and beams included, and texts written at once.
_TOKENS_AT_ONCE = {"cpu": 16384, "cuda": 262_144}
_ROWS_AT_ONCE = {"cpu": 8, "cuda": 64}


@dataclass(frozen=True, slots=True)
class Generation:
    """How a model writes. Lengths are in its own tokens, special ones and the prompt included.

    Attributes:
        max_input_tokens: How much it reads.
        min_tokens, max_tokens: How much it writes.
        beams: Beams of beam search; 1 is greedy.
        length_penalty: With several beams: the greater, the longer the texts.
        no_repeat_ngram: How many tokens in a row may not occur twice; 0 for no limit.
        prompt: The beginning of each text: "This paper" (CiTES).
        gold_prompt: How many of the target's first tokens each text begins with, in place of a prompt: an upper bound,
            for it shows the target to the model (3 in CiTES, Mao et al. 2022, section 4.1). 0 for none.
        post_processing: `ref` replaces a leading REF by "This paper" and removes all others (CiTES).
        global_attention: Whether LED and PRIMERA read some tokens with global attention.
        top_p: Draw each token from the likeliest ones that together have this probability (nucleus sampling), in place
            of a beam search; None for that.
        seed: Seed of what is drawn.
    """

    max_input_tokens: Positive
    min_tokens: Natural = 0
    max_tokens: Positive = 512
    beams: Positive = 1
    length_penalty: float = 1.0
    no_repeat_ngram: Natural = 0
    prompt: str | None = None
    post_processing: Literal["ref"] | None = None
    global_attention: bool = True
    top_p: Share | None = None
    seed: Natural = 0
    gold_prompt: Natural = 0

    def changed(self, changes: Mapping[str, Any]) -> "Generation":
        """The same with some options changed; values may be strings, an empty one is None: no prompt. See `checked`."""
        values = {name: None if value == "" else value for name, value in changes.items()}
        changed = checked(Generation, {**asdict(self), **values}, "a seq2seq writer")
        if changed.min_tokens > changed.max_tokens:
            raise InputError(f"min_tokens is above max_tokens, {changed.max_tokens}", "Give less, or more.")
        return changed


_FAMILIES = {name: Generation(**values) for name, values in _TABLES["families"].items()}
PRESETS = {name: Generation(**values) for name, values in _TABLES["presets"].items()}


def recipe(family: str, kind: Kind, preset: str | None = None) -> Generation:
    """How a model writes by default.

    Args:
        family: A `TextModel.family`.
        kind: The kind of text.
        preset: One of `PRESETS`, in place of the recipe for family and kind, which is as published if it was:
            docs/writing.md.

    Raises:
        InputError: There is no such preset.
    """
    if preset:
        if preset not in PRESETS:
            raise InputError(f"there is no preset {preset!r} of a model", f"Give {' or '.join(PRESETS)}.")
        return PRESETS[preset]
    generation = replace(_FAMILIES.get(family, _FAMILIES["other"]), **_KINDS[kind].get("generation", {}))
    return generation if generation.top_p is None else replace(generation, beams=1)  # one text is drawn


def processed(text: str, processing: Literal["ref"] | None) -> str:
    """A model's text after post-processing (Mao et al. 2022, section 4.1)."""
    if processing == "ref":
        text = re.sub(r"^\s*REF\b", "This paper", text)
        text = re.sub(r"\s*\bREF\b", "", text)
    return text.strip()


class WriterManifest(ModelManifest):
    """`manifest.json` of a trained writer; `dev` has its scores on the dev tasks, and those of the base.

    Attributes:
        base: The model with which training began, by the name given.
        base_identity: Its `model_identity`.
        writes: The kind of text that it learnt to write.
        generation: How it writes by default.
    """

    kind: Literal["citerec-writer"] = "citerec-writer"
    base: str
    base_identity: str
    writes: Kind
    generation: Generation


_FILES = "chat_template.jinja generation_config.json sentencepiece.bpe.model spiece.model tokenizer.model"
WRITER_DIRECTORY = DirectoryKind(
    "trained writer", "citerec-writer", MANIFEST, MODEL_FILES | {MANIFEST, *_FILES.split()}
)


class Seq2seqWriter(Writer):
    """Writes with an encoder-decoder or a causal model. To open one, use `open`.

    Attributes:
        name: The model by the name given, or the name of its folder.
        generation: How it writes.

    Raises:
        ModelError: The model cannot read or write so many tokens.
    """

    def __init__(self, model: TextModel, kind: Kind, generation: Generation) -> None:
        check_room(model, generation)
        self.name = _name_of(Path(model.name)) if Path(model.name).is_dir() else model.name
        self.generation = generation
        facts = {"writer": self.name, "model": model.identity, "family": model.family, "kind": kind}
        self.settings = {**facts, **asdict(generation), "precision": model.precision}
        if model.is_causal:
            self.settings["instructions"] = prompt_digest(kind)
        self.is_oracle = generation.gold_prompt > 0
        self._model, self._kind = model, kind
        model.global_attention = generation.global_attention

    @classmethod
    def open(
        cls, name: str, kind: Kind = "citation", *, device: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Self:
        """Opens a writer: one from `citerec train writer`, or a model of transformers.

        It writes as it was trained for this kind of text, else as published for its family, as far as the model can.

        Args:
            name: A folder, or a name on the hub such as `allenai/led-base-16384`.
            kind: The kind of text.
            device: The device that torch uses; by default a GPU if there is one.
            options: Changes to its `Generation`; values may be strings: `Generation.changed`. And `preset`, one of
                `PRESETS`, in place of what it does by default.

        Raises:
            ModelError: It cannot be found or loaded, does not write, or has no room for so many tokens.
            InputError: An option or the device is unknown, or a value is out of its range.
        """
        changes = dict(options or {})
        preset = changes.pop("preset", None)
        model = TextModel.open(name, device=device)
        folder = Path(find_model(name))
        manifest = read_model_manifest(folder, WriterManifest, "a writer", "Train it again: citerec train writer …")
        if manifest and manifest.writes == kind and not preset:
            generation = manifest.generation.changed(changes)
        else:
            generation = fitted(model, recipe(model.family, kind, preset), changes)
        writer = cls(model, kind, generation)
        writer.provenance = provenance_of_part(folder)
        return writer

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order, a batch at a time."""
        for part in in_parts(tasks, _rows(self._model, self.generation)):
            inputs = [encode_task(self._model, task, self.generation.max_input_tokens, self._kind) for task in part]
            prompts = [prompt_of(self._model, task, self.generation) for task in part]
            texts = write_texts(self._model, inputs, self.generation, prompts=prompts)
            for task, text in zip(part, texts, strict=True):
                yield replace(traced(task, text, self.name), is_oracle=self.is_oracle)


def _name_of(folder: Path) -> str:
    """The name of a folder; with that of the one around it if it is the folder of a seed: `led/seed-22`."""
    own = folder.name
    return f"{folder.resolve().parent.name}/{own}" if re.fullmatch(r"seed-\d+", own) else own


def fitted(model: TextModel, generation: Generation, changes: Mapping[str, Any]) -> Generation:
    """A recipe as far as the model has room, with some options changed.

    What a causal model reads and writes has room together: by default a quarter of it, at most, is for the text.
    """
    room, most = model.max_input_tokens, model.max_output_tokens
    if model.is_causal and room:
        most = room // 4
    written = min(generation.max_tokens, most or generation.max_tokens)
    fitted = replace(generation, max_tokens=written, min_tokens=min(generation.min_tokens, written)).changed(changes)
    if room is None or "max_input_tokens" in changes:
        return fitted
    left = max(1, room - fitted.max_tokens) if model.is_causal else room
    return replace(fitted, max_input_tokens=min(fitted.max_input_tokens, left))


def check_room(model: TextModel, generation: Generation) -> None:
    """Raises a ModelError if a model cannot read or write so many tokens."""
    read, written, room = generation.max_input_tokens, generation.max_tokens, model.max_input_tokens
    needs = [("max_input_tokens is", read, room), ("max_tokens is", written, model.max_output_tokens)]
    if model.is_causal:
        needs.append(("max_input_tokens and max_tokens together are", read + written, room))
    for what, tokens, limit in needs:
        if limit is not None and tokens > limit:
            raise ModelError(f"{model.name} has room for {limit} tokens, {what} {tokens}", f"Give at most {limit}.")


def encode_task(model: TextModel, task: TextTask, max_tokens: int, kind: Kind = "citation") -> Encoded:
    """The input of a model for a task.

    Encoder-decoders read all of CiteBench's input, in its order; with a token after the query, what is known of the
    citing paper first. Causal models read the prompt of the chat writer as one text. A prefix of the task comes first.
    """
    prefix = [str(task.extra[PREFIX])] if PREFIX in task.extra else []
    if model.is_causal:
        text, last = plain_prompt(task, kind)
        return model.encode_prompt(" ".join([*prefix, text]), last, max_tokens)
    if model.query_end is not None:
        documents = [source.text for source in task.sources if source.text]
        return model.encode(documents, max_tokens, [*prefix, *input_of(replace(task, sources=()))])
    return model.encode([text for text in (*prefix, *input_of(task)) if text], max_tokens)


def prompt_of(model: TextModel, task: TextTask, generation: Generation) -> tuple[int, ...]:
    """The ids with which the text of a task begins: its own prompt, the writer's, or the beginning of the target.

    Raises:
        WriterError: The writer begins as the target does, and the task has none; or its own prompt is too long.
    """
    if generation.gold_prompt:
        return model.gold_prompt(targets_of(task)[0], generation.gold_prompt)
    prompt = model.prompt(str(task.extra.get(PROMPT, "")) or generation.prompt or "")
    if len(prompt) >= generation.max_tokens:
        raise WriterError(f"the prompt of {task.task_id} is longer than {generation.max_tokens} tokens", "Shorten it.")
    return prompt


def write_texts(
    model: TextModel,
    inputs: Sequence[Encoded],
    generation: Generation,
    on_progress: Callable[[int], None] = lambda _done: None,
    *,
    prompts: Sequence[Sequence[int]] | None = None,
) -> list[str]:
    """The texts that a model, not in training mode, writes for inputs of `encode_task`, in their order.

    Each begins with its prompt, as `prompt_of` gives it; by default all with that of the settings. Calls `on_progress`
    with the number of texts so far.
    """
    import torch

    prompts = prompts or [model.prompt(generation.prompt or "")] * len(inputs)
    texts = [""] * len(inputs)
    tokens = _TOKENS_AT_ONCE.get(model.device, 16384) // generation.beams
    done = 0
    for length in sorted(set(map(len, prompts))):  # a batch needs prompts of one length
        of_length = [row for row, prompt in enumerate(prompts) if len(prompt) == length]
        config = generation_config(generation, length)
        lengths = [len(inputs[row].ids) for row in of_length]
        for places in batches_by_length(lengths, tokens, _rows(model, generation)):
            rows = [of_length[place] for place in places]
            if generation.top_p:
                torch.manual_seed(generation.seed)
            written = model.generate([inputs[row].ids for row in rows], config, [prompts[row] for row in rows])
            for row, ids in zip(rows, written, strict=True):
                texts[row] = processed(model.decode(ids), generation.post_processing)
            done += len(rows)
            on_progress(done)
    return texts


def _rows(model: TextModel, generation: Generation) -> int:
    return max(1, _ROWS_AT_ONCE.get(model.device, 8) // generation.beams)


def generation_config(generation: Generation, begun: int) -> Any:
    """The generation settings for transformers, for texts of which so many tokens are given."""
    from transformers import GenerationConfig

    config: dict[str, Any] = {"num_beams": generation.beams, "no_repeat_ngram_size": generation.no_repeat_ngram}
    config |= {"max_new_tokens": generation.max_tokens - begun}
    config |= {"min_new_tokens": max(0, generation.min_tokens - begun), "do_sample": False}
    if generation.beams > 1:
        config |= {"length_penalty": generation.length_penalty, "early_stopping": True}
    elif generation.top_p:
        config |= {"do_sample": True, "top_p": generation.top_p, "top_k": 0}
    return GenerationConfig(**config)  # type: ignore[no-untyped-call]


SEQ2SEQ = WriterPart(MODEL, Seq2seqWriter.open)
