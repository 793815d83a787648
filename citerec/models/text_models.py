"""Models of transformers that write: encoder-decoders (LED, BART, PEGASUS, PRIMERA), and causal ones (OPT, GPT-2)."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from citerec.errors import ModelError
from citerec.models.encoder import batches_by_length
from citerec.models.find import find_model, model_identity, quiet_libraries
from citerec.models.loading import load_pretrained, save_pretrained, torch_device
from citerec.records import MARKER

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig

ModelKind = Literal["encoder-decoder", "causal model"]

_CLASSES: dict[ModelKind, str] = {"encoder-decoder": "AutoModelForSeq2SeqLM", "causal model": "AutoModelForCausalLM"}
_EXAMPLES = {"encoder-decoder": "LED, BART, PEGASUS or PRIMERA", "causal model": "Galactica, OPT or GPT-2"}
_DOCUMENT_END = "<doc-sep>"
_QUERY_END = "<query-doc-sep>"
_UNLIMITED = 1_000_000  # a tokenizer without a set length reports more than this
# Where configurations have the limits of length.
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
_READ, _WRITTEN = "max_encoder_position_embeddings", "max_decoder_position_embeddings"
# What is kept of a model's generation config: not its lengths and beams, which the caller sets.
_SPECIAL_TOKENS = ("decoder_start", "bos", "eos", "pad", "forced_bos", "forced_eos")
# Tokens, padding included, whose activations are held at once, and texts: on a CPU and on a GPU.
_LEARNT_AT_ONCE = ((8192, 8), (32768, 64))
IGNORED = -100
"""The label that torch's cross-entropy ignores."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The token ids of a text, special ones included, and whether it was truncated."""

    ids: tuple[int, ...]
    cut: bool


class TextModel:
    """A model that writes, with its tokenizer: an encoder-decoder, or a causal language model. Use `open` to open one.

    An encoder-decoder reads an input and writes a text. A causal model goes on from its input: what it reads and what
    it writes have room *together*. Safe to call from several threads.

    Attributes:
        name: Its name, or its folder.
        identity: Its `model_identity`.
        model: The model of transformers.
        is_causal: Whether it is a causal language model.
        family: `led`, `primera`, `bart`, `pegasus`, `causal`, or another model type of transformers.
        max_input_tokens: How many tokens it reads, special ones included; None for any number.
        max_output_tokens: How many tokens it writes; None for any number.
        global_attention: Whether LED and PRIMERA read some tokens with global attention.
        document_end: The token of PRIMERA after a document; None if it has none.
        query_end: The token between what the text is for and the documents, as PRIMERA of OARelatedWork has it.
        end: The token that ends a text, if the model has one.
        pad: The token that fills up batches.
        turn: Held while the model writes.
    """

    max_input_tokens: int | None
    max_output_tokens: int | None

    def __init__(self, name: str, identity: str, model: Any, tokenizer: Any) -> None:
        from transformers import GenerationConfig

        self.name, self.identity, self.model, self.tokenizer = name, identity, model, tokenizer
        self.is_causal = not model.config.is_encoder_decoder
        self.global_attention = True
        self.turn = threading.RLock()
        own = model.generation_config
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            **{f"{token}_token_id": getattr(own, f"{token}_token_id", None) for token in _SPECIAL_TOKENS}
        )
        ends = model.generation_config.eos_token_id
        self.end = [ends] if isinstance(ends, int) else list(ends or ())[:1]
        self.pad = next(number for number in (tokenizer.pad_token_id, *self.end, 0) if isinstance(number, int))
        self.document_end, self.query_end = self._token(_DOCUMENT_END), self._token(_QUERY_END)
        kind = "causal" if self.is_causal else str(model.config.model_type)
        self.family = "primera" if kind == "led" and self.document_end is not None else kind
        self._measure()

    @classmethod
    def open(cls, name: str, *, kinds: Sequence[ModelKind] = tuple(_CLASSES), device: str | None = None) -> Self:
        """Loads a model from a folder, or by a name on the hub such as `allenai/led-base-16384`, by default on a GPU.

        Raises:
            InputError: There is no such device.
            ModelError: It cannot be found or loaded, or is of another kind.
        """

        def class_of(config: Any) -> str:
            kind: ModelKind = "encoder-decoder" if config.is_encoder_decoder else "causal model"
            writes = any("CausalLM" in one or "LMHead" in one for one in config.architectures or ())
            if kind not in kinds or not (config.is_encoder_decoder or writes):
                examples = " or ".join(_EXAMPLES[one] for one in kinds)
                raise ModelError(f"{name} is no {' or '.join(kinds)}", f"Use one such as {examples}.")
            return _CLASSES[kind]

        place = torch_device(device)
        model, tokenizer = load_pretrained(name, class_of)
        return cls(name, model_identity(find_model(name)), model.to(place).eval(), tokenizer)

    @property
    def device(self) -> str:
        """`cpu` or `cuda`."""
        return str(self.model.device.type)

    @property
    def precision(self) -> str:
        """The precision of computing: `bfloat16` on a GPU, else `float32`. Texts and weights may differ."""
        return "bfloat16" if self.device == "cuda" else "float32"

    @property
    def mask(self) -> str:
        """The token that stands for something left out; citerec's marker if the model has none."""
        return str(self.tokenizer.mask_token or MARKER)

    def autocast(self) -> Any:
        """Uses bfloat16 on a GPU, which has the range of 32 bits: in float16 PEGASUS did not learn (CiteSum)."""
        import torch

        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16")

    def lengthen(self, max_input_tokens: int, max_output_tokens: int) -> None:
        """Gives LED, PRIMERA or MPT room for more tokens.

        Positions of LED and PRIMERA are copied, one set after another: so were LED's own made from BART's (Beltagy et
        al. 2020), and PRIMERA's 8,192 (Docekal et al. 2024, 6.1.4). The attention of MPT knows distances only (ALiBi).

        Raises:
            ModelError: It is another kind of model.
        """
        import torch

        config = self.model.config
        if config.model_type not in ("led", "mpt"):
            raise ModelError(f"{self.name} is not LED, PRIMERA or MPT: it cannot be lengthened", "Give fewer tokens.")
        if config.model_type == "mpt":
            config.max_seq_len = max(config.max_seq_len, max_input_tokens + max_output_tokens)
        else:
            sides = (
                (self.model.get_encoder(), _READ, max_input_tokens),
                (self.model.get_decoder(), _WRITTEN, max_output_tokens),
            )
            for side, option, tokens in sides:
                places = side.embed_positions
                if tokens > (count := len(places.weight)):
                    places.weight = torch.nn.Parameter(places.weight.data[torch.arange(tokens) % count])
                    places.num_embeddings = tokens
                    setattr(config, option, tokens)
            self.tokenizer.model_max_length = max(self.tokenizer.model_max_length, max_input_tokens)
        self._measure()

    def add_query_separator(self) -> None:
        """Gives PRIMERA the token `<query-doc-sep>`, which begins as a copy of `<doc-sep>`.

        Raises:
            ModelError: It has no `<doc-sep>`.
        """
        if self.document_end is None:
            raise ModelError(f"{self.name} has no {_DOCUMENT_END} and reads one text", "Use PRIMERA.")
        if self.query_end is None:
            self.tokenizer.add_tokens([_QUERY_END], special_tokens=True)
            self.query_end = self._token(_QUERY_END)
            with quiet_libraries():
                self.model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            rows = self.model.get_input_embeddings().weight.data
            rows[self.query_end] = rows[self.document_end]

    def _token(self, text: str) -> int | None:
        number = self.tokenizer.convert_tokens_to_ids(text)
        return None if number in (None, self.tokenizer.unk_token_id) else int(number)

    def _measure(self) -> None:
        """Sets how many tokens it reads and writes."""

        def limit(*options: str) -> int | None:
            values = (getattr(self.model.config, option, None) for option in options)
            return next((int(value) for value in values if value), None)

        self.max_input_tokens, self.max_output_tokens = limit(_READ, *_POSITIONS), limit(_WRITTEN, *_POSITIONS)
        longest = self.tokenizer.model_max_length
        if not self.is_causal and longest < _UNLIMITED:
            self.max_input_tokens = min(longest, self.max_input_tokens or longest)

    def encode(self, documents: Sequence[str], max_tokens: int, query: Sequence[str] = ()) -> Encoded:
        """The tokens of some documents as an encoder-decoder reads them: at most `max_tokens` in all.

        PRIMERA truncates each document to an equal share, and puts a special token after it (Xiao et al. 2022); the
        `query` has a share too, and another token after it. Other models read all as one text, truncated at its end
        (Funkquist et al. 2023), and have no query apart.
        """
        if self.document_end is None:
            return self.encode_text(" ".join([*query, *documents]), max_tokens)
        parts = [(" ".join(query), self.query_end)] if query else []
        parts += [(document, self.document_end) for document in documents]
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

    def encode_prompt(self, text: str, last: str, max_tokens: int) -> Encoded:
        """The tokens of a causal model's prompt, at most `max_tokens`; one too long is cut before its `last` part."""
        ids, end = (*self._ids("", special=True), *self._ids(text)), self.continuation(last, text)
        room = max(0, max_tokens - len(end))
        return Encoded((*ids[:room], *end)[:max_tokens], len(ids) > room)

    def encode_text(self, text: str, max_tokens: int) -> Encoded:
        """The tokens of a text to read or to learn, truncated at its end if it is too long.

        An encoder-decoder's have all special tokens, a causal model's the end of text.
        """
        if not self.is_causal:
            encoding = self.tokenizer([text], truncation=True, max_length=max_tokens)
            return Encoded(tuple(encoding["input_ids"][0]), bool(encoding.encodings[0].overflowing))
        ids, room = self._ids(text), max_tokens - len(self.end)
        return Encoded((*ids[:room], *self.end), len(ids) > room)

    def last_tokens(self, text: str, max_tokens: int) -> tuple[int, ...]:
        """The tokens of a text to go on from, at least one; only the last `max_tokens` of a longer text."""
        first = self._ids("", special=True)  # what the tokenizer puts before a text, such as OPT's </s>
        room = max(1, max_tokens - len(first))
        return (*first, *self._ids(text)[-room:]) or (self.pad,)

    def continuation(self, text: str, after: str = "") -> tuple[int, ...]:
        """The tokens of a text that goes on from `after`, the end of a prompt: words may be cut otherwise there."""
        before, whole = self._ids(after), self._ids(after + text)
        return whole[len(before) :] if whole[: len(before)] == before else self._ids(text)

    def _ids(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"])

    def prompt(self, text: str) -> tuple[int, ...]:
        """The ids with which a text begins that begins with `text`; an encoder-decoder has one at least."""
        if self.is_causal:
            return self._ids(text)
        start = self.model.generation_config.decoder_start_token_id
        if not text:
            return (start,)
        ids = tuple(self.tokenizer([text])["input_ids"][0])
        # As in training: all but the end of the text.
        return (start, *(ids[:-1] if ids[-1] == self.tokenizer.eos_token_id else ids))

    def gold_prompt(self, target: str, tokens: int) -> tuple[int, ...]:
        """The same with the first tokens of a target."""
        ids = self.prompt(target)
        special = () if self.is_causal else self.tokenizer.all_special_ids
        first = next((place for place, one in enumerate(ids) if one not in special), len(ids))
        return ids[: first + tokens]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some token ids, without special ones."""
        text = str(self.tokenizer.decode(list(ids), skip_special_tokens=True))
        return text.replace("<n>", "\n").strip()  # PEGASUS's line end

    def tensors(self, batch: Sequence[Sequence[int]], *, pad_before: bool = False) -> "dict[str, torch.Tensor]":
        """Inputs of the model, texts × longest, on its device.

        LED reads the first token with global attention (Beltagy et al. 2020), PRIMERA also the tokens after documents
        (Xiao et al. 2022); none if `global_attention` is off.
        """
        import torch

        ids = self.padded(batch, self.pad, before=pad_before)
        real = self.padded([[1] * len(row) for row in batch], 0, before=pad_before)
        tensors = {"input_ids": ids, "attention_mask": real}
        if self.global_attention and self.model.config.model_type == "led":
            everywhere = torch.zeros_like(ids)
            everywhere[:, 0] = 1
            for end in (self.document_end, self.query_end):
                if end is not None:
                    everywhere[ids == end] = 1
            tensors["global_attention_mask"] = everywhere
        return tensors

    def padded(self, rows: Sequence[Sequence[int]], value: int, *, before: bool = False) -> "torch.Tensor":
        """Rows of numbers, filled up to the longest by a value, on the model's device."""
        import torch

        longest = max(map(len, rows))
        fillers = [[value] * (longest - len(row)) for row in rows]
        filled = [[*fill, *row] if before else [*row, *fill] for row, fill in zip(rows, fillers, strict=True)]
        return torch.tensor(filled, dtype=torch.long, device=self.model.device)

    def loss(self, batch: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Mean cross-entropy of the tokens of some targets, each given its input and those before it."""
        if self.is_causal:
            pairs = list(zip(batch, targets, strict=True))
            batch = [[*read, *target] for read, target in pairs]
            targets = [[*[IGNORED] * len(read), *target] for read, target in pairs]
        labels = self.padded(targets, IGNORED)
        with self.autocast():
            loss: torch.Tensor = self.model(**self.tensors(batch), labels=labels, use_cache=False).loss
        return loss.float()

    def losses(self, pairs: Sequence[tuple[list[int], list[int]]]) -> "Iterator[tuple[torch.Tensor, float]]":
        """The losses of some inputs and targets, as many at once as memory allows, each with its share of tokens."""
        whole = sum(len(target) for _, target in pairs)
        lengths = [len(read) + len(target) for read, target in pairs]
        tokens, rows_at_once = _LEARNT_AT_ONCE[self.device == "cuda"]
        for rows in batches_by_length(lengths, tokens, rows_at_once):
            targets = [pairs[row][1] for row in rows]
            yield self.loss([pairs[row][0] for row in rows], targets), sum(map(len, targets)) / whole

    def generate(
        self,
        batch: Sequence[Sequence[int]],
        config: "GenerationConfig",
        prompts: Sequence[Sequence[int]],
        processors: Sequence[Any] = (),
    ) -> list[list[int]]:
        """The texts that it writes for some inputs, as token ids; each begins with its prompt.

        Args:
            batch: The inputs.
            config: The arguments of transformers' own `generate`.
            prompts: Of each text; all have the same length.
            processors: Of transformers, for the scores of tokens.
        """
        import torch

        if self.is_causal:
            begun = [[*ids, *prompt] for ids, prompt in zip(batch, prompts, strict=True)]
            inputs = self.tensors(begun, pad_before=True)
            config.pad_token_id = self.pad
            config.eos_token_id = config.eos_token_id or self.end or None
        else:
            inputs = {**self.tensors(batch), "decoder_input_ids": self.padded(prompts, self.pad)}
        with self.turn, torch.inference_mode(), self.autocast(), quiet_libraries():
            written: list[list[int]] = self.model.generate(
                **inputs, generation_config=config, logits_processor=list(processors) or None
            ).tolist()
        if self.is_causal:
            prompt_length = len(prompts[0])
            begin = inputs["input_ids"].shape[1] - prompt_length
            return [_up_to_end(row[begin:], prompt_length, config.eos_token_id or ()) for row in written]
        return written

    def save(self, folder: Any) -> None:
        """Writes transformers' files into a folder."""
        save_pretrained(self.model, self.tokenizer, folder)


def _up_to_end(row: list[int], prompt_length: int, ends: Sequence[int]) -> list[int]:
    """The tokens of a row up to its first end after those that were given; the end is included."""
    return row[: next((at + 1 for at in range(prompt_length, len(row)) if row[at] in ends), len(row))]
