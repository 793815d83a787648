"""Models of transformers that write: encoder-decoders (LED, BART, PEGASUS, PRIMERA), and causal ones (OPT, GPT-2)."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from citerec.errors import ModelError
from citerec.models.batches import batches_by_length
from citerec.models.find import find_model, model_identity, quiet_libraries
from citerec.models.loading import (
    forget_habits,
    is_causal,
    load_pretrained,
    position_limit,
    save_pretrained,
    torch_device,
)
from citerec.records import MARKER

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig

_DOCUMENT_END = "<doc-sep>"
_QUERY_END = "<query-doc-sep>"
_UNLIMITED = 1_000_000  # a tokenizer without a set length reports more than this
_FIRST = ("max_encoder_position_embeddings", "max_position_embeddings", "n_positions")
_LAST = ("max_decoder_position_embeddings", "max_position_embeddings", "n_positions")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
# Tokens, padding included, whose activations are held at once, and texts: on a CPU and on a GPU.
_LEARNT_AT_ONCE = ((8192, 8), (32768, 64))
IGNORED = -100
"""The label that torch's cross-entropy ignores."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The token ids of a text, special ones included, and whether it was truncated."""

    ids: tuple[int, ...]
    cut: bool


class TextModel(ABC):
    """A model that writes, with its tokenizer. Use `open` to open one.

    Attributes:
        name: Its name, or its folder.
        identity: Its `model_identity`.
        model: The model of transformers.
        family: `led`, `primera`, `bart`, `pegasus`, `causal`, or another model type of transformers.
        max_input_tokens: How many tokens it reads, special ones included; None for any number.
        max_output_tokens: How many tokens it writes; None for any number.
    """

    family: str
    max_input_tokens: int | None
    max_output_tokens: int | None

    def __init__(self, name: str, identity: str, model: Any, tokenizer: Any) -> None:
        self.name, self.identity, self.model, self.tokenizer = name, identity, model, tokenizer
        forget_habits(model)

    @classmethod
    def open(cls, name: str, *, device: str | None = None) -> Self:
        """Loads a model from a folder, or by a name on the hub such as `allenai/led-base-16384`, by default on a GPU.

        `TextModel.open` loads either kind, a subclass only its own.

        Raises:
            InputError: There is no such device.
            ModelError: It cannot be found or loaded, or is of another kind.
        """
        place = torch_device(device)
        kind: Any = cls if cls is not TextModel else CausalModel if is_causal(name) else Seq2seqModel
        model, tokenizer = load_pretrained(name, kind.loaded_as, check=lambda config: kind.check(name, config))
        found: Self = kind(name, model_identity(find_model(name)), model.to(place).eval(), tokenizer)
        return found

    @property
    def device(self) -> str:
        """`cpu` or `cuda`."""
        return str(self.model.device.type)

    @property
    def precision(self) -> str:
        """The precision of computing: `bfloat16` on a GPU, else `float32`. Texts and weights may differ."""
        return "bfloat16" if self.device == "cuda" else "float32"

    def autocast(self) -> Any:
        """Uses bfloat16 on a GPU, which has the range of 32 bits: in float16 PEGASUS did not learn (CiteSum)."""
        import torch

        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16")

    @abstractmethod
    def encode_text(self, text: str, max_tokens: int) -> Encoded:
        """A text with its special tokens, truncated at its end if it is too long."""

    @abstractmethod
    def prompt(self, text: str) -> tuple[int, ...]:
        """The ids with which the written text begins, so that it begins with `text`."""

    @abstractmethod
    def gold_prompt(self, target: str, tokens: int) -> tuple[int, ...]:
        """The same with the first tokens of a target."""

    @abstractmethod
    def lengthen(self, max_input_tokens: int, max_output_tokens: int) -> None:
        """Gives it room for more tokens; ModelError if its kind cannot be lengthened."""

    @abstractmethod
    def loss(self, batch: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Mean cross-entropy of the tokens of some targets, each given its input and those before it."""

    @abstractmethod
    def generate(
        self,
        batch: Sequence[Sequence[int]],
        config: "GenerationConfig",
        prompts: Sequence[Sequence[int]],
        processors: Sequence[Any] = (),
    ) -> list[Sequence[int]]:
        """The texts that it writes for some inputs, as token ids; each begins with its prompt, all as long.

        Args:
            batch: The inputs.
            config: The arguments of transformers' own `generate`.
            prompts: Of each text.
            processors: Of transformers, for the scores of tokens.
        """

    def losses(self, pairs: Sequence[tuple[list[int], list[int]]]) -> "Iterator[tuple[torch.Tensor, float]]":
        """The losses of some inputs and targets, as many at once as memory allows, each with its share of tokens."""
        whole = sum(len(target) for _, target in pairs)
        lengths = [len(read) + len(target) for read, target in pairs]
        tokens, rows_at_once = _LEARNT_AT_ONCE[self.device == "cuda"]
        for rows in batches_by_length(lengths, tokens, rows_at_once):
            targets = [pairs[row][1] for row in rows]
            yield self.loss([pairs[row][0] for row in rows], targets), sum(map(len, targets)) / whole

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some token ids, without special ones."""
        text = str(self.tokenizer.decode(list(ids), skip_special_tokens=True))
        return text.replace("<n>", "\n").strip()  # PEGASUS's line end

    def save(self, folder: Any) -> None:
        """Writes transformers' files into a folder."""
        save_pretrained(self.model, self.tokenizer, folder)


class Seq2seqModel(TextModel):
    """An encoder-decoder.

    Attributes:
        global_attention: Whether LED and PRIMERA read some tokens with global attention.
    """

    loaded_as = "AutoModelForSeq2SeqLM"
    global_attention = True

    def __init__(self, name: str, identity: str, model: Any, tokenizer: Any) -> None:
        super().__init__(name, identity, model, tokenizer)
        self._document_end, self._query_end = self._separator(_DOCUMENT_END), self._separator(_QUERY_END)
        kind = str(model.config.model_type)
        self.family = "primera" if kind == "led" and self._document_end is not None else kind
        self._measure()

    @staticmethod
    def check(name: str, config: Any) -> None:
        """Raises a ModelError for a model of another kind."""
        if not config.is_encoder_decoder:
            raise ModelError(
                f"{name} is not an encoder-decoder: it cannot write",
                "Use LED, BART, PEGASUS or PRIMERA, or a causal model.",
            )

    @property
    def mask(self) -> str:
        """The token that stands for something left out; citerec's marker if the model has none."""
        return str(self.tokenizer.mask_token or MARKER)

    @property
    def separates_query(self) -> bool:
        """Whether it has a token between what the text is for and the documents, as PRIMERA of OARelatedWork."""
        return self._query_end is not None

    def lengthen(self, max_input_tokens: int, max_output_tokens: int) -> None:
        """Gives LED or PRIMERA room for more tokens: its positions are copied, one set after another.

        So were LED's own made from BART's (Beltagy et al. 2020), and PRIMERA's 8,192 (Docekal et al. 2024, 6.1.4).

        Raises:
            ModelError: It is another kind of model.
        """
        import torch

        if self.model.config.model_type != "led":
            raise ModelError(f"{self.name} is neither LED nor PRIMERA: it cannot be lengthened", "Give fewer tokens.")
        sides = (
            (self.model.get_encoder(), _FIRST, max_input_tokens),
            (self.model.get_decoder(), _LAST, max_output_tokens),
        )
        for side, (name, *_), tokens in sides:
            places = side.embed_positions
            if tokens > (count := len(places.weight)):
                places.weight = torch.nn.Parameter(places.weight.data[torch.arange(tokens) % count])
                places.num_embeddings = tokens
                setattr(self.model.config, name, tokens)
        self.tokenizer.model_max_length = max(self.tokenizer.model_max_length, max_input_tokens)
        self._measure()

    def add_query_separator(self) -> None:
        """Gives PRIMERA the token `<query-doc-sep>`, which begins as a copy of `<doc-sep>`.

        Raises:
            ModelError: It has no `<doc-sep>`.
        """
        if self._document_end is None:
            raise ModelError(f"{self.name} has no {_DOCUMENT_END} and reads one text", "Use PRIMERA.")
        if self._query_end is None:
            self.tokenizer.add_tokens([_QUERY_END], special_tokens=True)
            self._query_end = self._separator(_QUERY_END)
            with quiet_libraries():
                self.model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            rows = self.model.get_input_embeddings().weight.data
            rows[self._query_end] = rows[self._document_end]

    def _separator(self, token: str) -> int | None:
        number = self.tokenizer.convert_tokens_to_ids(token)
        return None if number in (None, self.tokenizer.unk_token_id) else int(number)

    def _measure(self) -> None:
        config, longest = self.model.config, self.tokenizer.model_max_length
        self.max_input_tokens = _least(position_limit(config, _FIRST), longest if longest < _UNLIMITED else None)
        self.max_output_tokens = position_limit(config, _LAST)

    def encode(self, documents: Sequence[str], max_tokens: int, query: Sequence[str] = ()) -> Encoded:
        """The tokens of some documents as the model reads them: at most `max_tokens` in all.

        PRIMERA truncates each document to an equal share, and puts a special token after it (Xiao et al. 2022); the
        `query` has a share too, and another token after it. Other models read all as one text, truncated at its end
        (Funkquist et al. 2023), and have no query apart.
        """
        if self._document_end is None:
            return self.encode_text(" ".join([*query, *documents]), max_tokens)
        parts = [(" ".join(query), self._query_end)] if query else []
        parts += [(document, self._document_end) for document in documents]
        share = max(1, (max_tokens - 2) // max(1, len(parts)) - 1)
        ids = [self.tokenizer.bos_token_id]
        cut = False
        for text, end in parts:
            encoded = self.encode_text(text, share + 2)
            ids += [*encoded.ids[1:-1], end]
            cut |= encoded.cut
        # More documents than tokens: the last ones are left out.
        cut |= len(ids) >= max_tokens
        return Encoded((*ids[: max_tokens - 1], self.tokenizer.eos_token_id), cut)

    def encode_text(self, text: str, max_tokens: int) -> Encoded:
        """A text with its special tokens, truncated at its end if it is too long."""
        found = self.tokenizer([text], truncation=True, max_length=max_tokens)
        return Encoded(tuple(found["input_ids"][0]), bool(found.encodings[0].overflowing))

    def prompt(self, text: str) -> tuple[int, ...]:
        """The ids with which the decoder begins, so that the text it writes begins with `text`; at least one."""
        start = self.model.generation_config.decoder_start_token_id
        if not text:
            return (start,)
        ids = tuple(self.tokenizer([text])["input_ids"][0])
        # As in training: all but the end of the text.
        return (start, *(ids[:-1] if ids[-1] == self.tokenizer.eos_token_id else ids))

    def gold_prompt(self, target: str, tokens: int) -> tuple[int, ...]:
        """The same with the first tokens of a target."""
        ids = self.prompt(target)
        first = next((place for place, one in enumerate(ids) if one not in self.tokenizer.all_special_ids), len(ids))
        return ids[: first + tokens]

    def tensors(self, batch: Sequence[Sequence[int]]) -> "dict[str, torch.Tensor]":
        """Inputs of the encoder, texts × longest, on the model's device.

        LED reads the first token with global attention (Beltagy et al. 2020), PRIMERA also the tokens after documents
        (Xiao et al. 2022); none if `global_attention` is off.
        """
        import torch

        ids = self._padded(batch, self.tokenizer.pad_token_id)
        lengths = torch.tensor([len(row) for row in batch])
        tensors = {"input_ids": ids, "attention_mask": (torch.arange(ids.shape[1]) < lengths[:, None]).long()}
        if self.global_attention and self.model.config.model_type == "led":
            everywhere = torch.zeros_like(ids)
            everywhere[:, 0] = 1
            if self._document_end is not None:
                everywhere[ids == self._document_end] = 1
            if self._query_end is not None:
                everywhere[ids == self._query_end] = 1
            tensors["global_attention_mask"] = everywhere
        return {name: tensor.to(self.model.device) for name, tensor in tensors.items()}

    def loss(self, batch: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Mean cross-entropy of the tokens of some targets, each given those before it."""
        import torch

        labels = self._padded(targets, IGNORED).to(self.model.device)
        with self.autocast():
            loss: torch.Tensor = self.model(**self.tensors(batch), labels=labels).loss
        return loss.float()

    def likelihoods(self, batch: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """The mean log-probability of the tokens of each target, each given its input and the tokens before it."""
        import torch

        labels = self._padded(targets, IGNORED).to(self.model.device)
        real = labels != IGNORED
        with torch.inference_mode(), self.autocast():
            logits = self.model(**self.tensors(batch), labels=labels).logits
        scores = logits.float().log_softmax(-1).gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
        means: list[float] = (scores.masked_fill(~real, 0).double().sum(dim=1) / real.sum(dim=1)).tolist()
        return means

    def generate(
        self,
        batch: Sequence[Sequence[int]],
        config: "GenerationConfig",
        prompts: Sequence[Sequence[int]],
        processors: Sequence[Any] = (),
    ) -> list[Sequence[int]]:
        """The texts that the model writes for some inputs, as token ids; each begins with its prompt, all as long."""
        import torch

        with torch.inference_mode(), self.autocast(), quiet_libraries():
            begun = torch.tensor([list(prompt) for prompt in prompts], device=self.model.device)
            written = self.model.generate(
                **self.tensors(batch),
                generation_config=config,
                decoder_input_ids=begun,
                logits_processor=list(processors) or None,
            )
        rows: list[Sequence[int]] = written.tolist()
        return rows

    def _padded(self, rows: Sequence[Sequence[int]], value: int) -> "torch.Tensor":
        import torch

        return torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=value
        )


class CausalModel(TextModel):
    """A causal language model, which goes on from a text. Safe to call from several threads.

    Names are `facebook/galactica-125m`, or those of any other one: `facebook/opt-125m`, `openai-community/gpt2`. What
    it reads and writes has room *together*.

    Attributes:
        end: The token that ends a text; None if the model has none.
        pad: The token that fills up batches.
    """

    loaded_as = "AutoModelForCausalLM"
    family = "causal"

    def __init__(self, name: str, identity: str, model: Any, tokenizer: Any) -> None:
        super().__init__(name, identity, model, tokenizer)
        self.max_input_tokens = self.max_output_tokens = position_limit(model.config, _POSITIONS)
        ends = model.generation_config.eos_token_id
        self.end: int | None = ends[0] if isinstance(ends, list) else ends
        self.pad = next(number for number in (tokenizer.pad_token_id, self.end, 0) if isinstance(number, int))
        self.turn = threading.RLock()

    @staticmethod
    def check(name: str, config: Any) -> None:
        """Raises a ModelError for a model of another kind."""
        kinds = config.architectures or ()
        if config.is_encoder_decoder or not any("CausalLM" in kind or "LMHead" in kind for kind in kinds):
            raise ModelError(
                f"{name} is no causal language model", "Use one that continues texts, such as Galactica or GPT-2."
            )

    def last_tokens(self, text: str, max_tokens: int) -> tuple[int, ...]:
        """The tokens of a text to go on from, at least one; only the last `max_tokens` of a longer text."""
        first = self._ids("", special=True)  # what the tokenizer puts before a text, such as OPT's </s>
        room = max(1, max_tokens - len(first))
        return (*first, *self._ids(text)[-room:]) or (self.pad,)

    def continuation(self, text: str, after: str = "") -> tuple[int, ...]:
        """The tokens of a text that goes on from `after`, the end of a prompt: words may be cut otherwise there."""
        before, whole = self._ids(after), self._ids(after + text)
        return whole[len(before) :] if whole[: len(before)] == before else self._ids(text)

    def lengthen(self, max_input_tokens: int, max_output_tokens: int) -> None:
        """Gives MPT room for more tokens, to read and to write: its attention knows distances only (ALiBi).

        Raises:
            ModelError: It is another kind of model.
        """
        config = self.model.config
        if config.model_type != "mpt":
            raise ModelError(f"{self.name} is not MPT: it cannot be lengthened", "Give fewer tokens.")
        config.max_seq_len = max(config.max_seq_len, max_input_tokens + max_output_tokens)
        self.max_input_tokens = self.max_output_tokens = config.max_seq_len

    def encode_prompt(self, text: str, last: str, max_tokens: int) -> Encoded:
        """The tokens of a prompt, at most `max_tokens`; what is too long is cut before its `last` part."""
        ids, end = (*self._ids("", special=True), *self._ids(text)), self.continuation(last, text)
        room = max(0, max_tokens - len(end))
        return Encoded((*ids[:room], *end)[:max_tokens], len(ids) > room)

    def encode_text(self, text: str, max_tokens: int) -> Encoded:
        """The tokens of a text to learn, with the end of text, truncated if it is too long."""
        ids, end = self.continuation(text), self.end
        room = max_tokens - (end is not None)
        return Encoded((*ids[:room], *(() if end is None else (end,))), len(ids) > room)

    def prompt(self, text: str) -> tuple[int, ...]:
        """The tokens with which a text begins; none if it may begin in any way."""
        return self.continuation(text) if text else ()

    def gold_prompt(self, target: str, tokens: int) -> tuple[int, ...]:
        """The first tokens of a target."""
        return self.prompt(target)[:tokens]

    def generate(
        self,
        batch: Sequence[Sequence[int]],
        config: "GenerationConfig",
        prompts: Sequence[Sequence[int]],
        processors: Sequence[Any] = (),
    ) -> list[Sequence[int]]:
        """The texts that go on from some inputs, as token ids; each begins with its prompt, all as long."""
        rows = [[*ids, *prompt] for ids, prompt in zip(batch, prompts, strict=True)]
        written = self.written(rows, config, processors)
        return [[*prompt, *ids] for prompt, ids in zip(prompts, written, strict=True)]

    def loss(self, batch: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Mean cross-entropy of the tokens of some targets, each given its prompt and those before it."""
        import torch

        longest = max(len(read) + len(target) for read, target in zip(batch, targets, strict=True))
        shape = (len(batch), longest)
        ids, labels, mask = torch.full(shape, self.pad), torch.full(shape, IGNORED), torch.zeros(shape).long()
        for row, (read, target) in enumerate(zip(batch, targets, strict=True)):
            whole = len(read) + len(target)
            ids[row, :whole] = torch.tensor([*read, *target])
            labels[row, len(read) : whole] = torch.tensor(target)
            mask[row, :whole] = 1
        place = self.model.device
        with self.autocast():
            loss: torch.Tensor = self.model(
                input_ids=ids.to(place), attention_mask=mask.to(place), labels=labels.to(place), use_cache=False
            ).loss
        return loss.float()

    def written(
        self, prompts: Sequence[Sequence[int]], config: Any, processors: Sequence[Any] = ()
    ) -> list[Sequence[int]]:
        """What transformers writes after some prompts, each up to its end, in one batch. Padding before is masked."""
        import torch

        longest = max(map(len, prompts))
        ids = torch.tensor([[self.pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        device = self.model.device
        config.pad_token_id = self.pad
        if config.eos_token_id is None:
            config.eos_token_id = self.end
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        with self.turn, torch.inference_mode(), self.autocast(), quiet_libraries():
            written = self.model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                generation_config=config,
                logits_processor=list(processors) or None,
            )
        return [_up_to_end(row, ends) for row in written[:, longest:].tolist()]

    def _ids(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"])


def _up_to_end(row: Sequence[int], ends: Sequence[int]) -> Sequence[int]:
    """The tokens of a row up to its first end, which is included."""
    return row[: next((place + 1 for place, token in enumerate(row) if token in ends), len(row))]


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
