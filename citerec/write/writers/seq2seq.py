"""Models of transformers as writers: encoder-decoders such as LED and PRIMERA, and causal models such as MPT.

A `Generation` says how a model writes: its lengths, beams and post-processing. The published recipes stand here.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from citerec.contexts.learnt import learnt_by_part
from citerec.errors import InputError, ModelError, WriterError
from citerec.files.parallel import in_parts
from citerec.files.writing import Kind as DirectoryKind
from citerec.models.encoder import batches_by_length
from citerec.models.find import find_model
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, read_model_manifest
from citerec.models.text_models import Encoded, TextModel
from citerec.write.anchors import traced
from citerec.write.task_files import input_of
from citerec.write.tasks import PREFIX, PROMPT, Prediction, TextTask
from citerec.write.writers.base import MODEL, Kind, Writer, WriterPart, check_names, checked
from citerec.write.writers.chat import plain_prompt, prompt_digest
from citerec.write.writers.extractive import targets_of

# Tokens read at once, padding and beams included, and texts written at once.
_TOKENS_AT_ONCE = {"cpu": 16384, "cuda": 262_144}
_ROWS_AT_ONCE = {"cpu": 8, "cuda": 64}

PostProcessing = Literal["ref"]
_MOST = 10_000_000  # more than any model reads or writes
_MOST_PENALTY = 10  # the power to which lengths are raised: with much more, it overflows


@dataclass(frozen=True, slots=True)
class Generation:
    """How a model writes. Lengths are in its own tokens, special ones and the prompt included.

    An InputError if two values contradict each other; `changed` also checks the range of each.

    Attributes:
        max_input_tokens: How much it reads.
        min_tokens, max_tokens: How much it writes.
        beams: Beams of beam search; 1 is greedy.
        length_penalty: With several beams: the greater, the longer the texts.
        no_repeat_ngram: How many tokens in a row may not occur twice; 0 for no limit.
        early_stopping: Whether to end as soon as there are as many complete texts as beams.
        prompt: The beginning of each text: "This paper" (CiTES).
        gold_prompt: How many of the target's first tokens each text begins with, in place of a prompt: an upper bound,
            for it shows the target to the model (3 in CiTES, Mao et al. 2022, section 4.1). 0 for none.
        post_processing: `ref` replaces a leading REF by "This paper" and removes all others (CiTES).
        global_attention: Whether LED and PRIMERA read some tokens with global attention.
        top_p: Draw each token from the likeliest ones that together have this probability (nucleus sampling), in place
            of a beam search; None for that.
        temperature: What the logits are divided by before a token is drawn.
        seed: Seed of what is drawn.
    """

    max_input_tokens: Annotated[int, Field(ge=8, le=_MOST)]
    min_tokens: Annotated[int, Field(ge=0, le=_MOST)]
    max_tokens: Annotated[int, Field(ge=2, le=_MOST)]
    beams: Annotated[int, Field(ge=1, le=_MOST)]
    length_penalty: Annotated[float, Field(ge=-_MOST_PENALTY, le=_MOST_PENALTY)]
    no_repeat_ngram: Annotated[int, Field(ge=0, le=_MOST)]
    early_stopping: bool
    prompt: str | None = None
    post_processing: PostProcessing | None = None
    global_attention: bool = True
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    gold_prompt: Annotated[int, Field(ge=0, le=_MOST)] = 0

    def __post_init__(self) -> None:
        if self.prompt and self.gold_prompt:
            raise InputError(f"a text begins with {self.prompt!r} or as its target does", "Leave one of them out.")
        if self.top_p is not None and self.beams > 1:
            raise InputError(f"top_p draws one text, beams is {self.beams}", "Give beams=1, or top_p= to search.")
        if self.min_tokens > self.max_tokens:
            raise InputError(f"min_tokens is {self.min_tokens}, max_tokens {self.max_tokens}", "Give less, or more.")

    def changed(self, changes: Mapping[str, Any]) -> "Generation":
        """The same with some options changed; values may be strings, an empty one is None: no prompt. See `checked`."""
        values = {name: None if value == "" else value for name, value in changes.items()}
        return checked(Generation, {**asdict(self), **values}, "a seq2seq writer")

    def within(self, max_input_tokens: int | None, max_output_tokens: int | None) -> "Generation":
        """The same, limited to the lengths that a model allows."""
        read = min(self.max_input_tokens, max_input_tokens or self.max_input_tokens)
        most = min(self.max_tokens, max_output_tokens or self.max_tokens)
        return replace(self, max_input_tokens=read, max_tokens=most, min_tokens=min(self.min_tokens, most))


_FAMILIES: Mapping[str, Generation] = {
    # Funkquist et al. 2023 (CiteBench), appendix A.2.
    "led": Generation(4096, 0, 1024, beams=2, length_penalty=2.0, no_repeat_ngram=3, early_stopping=True),
    # As BART's authors write XSum, whose summaries are one sentence long (fairseq's examples/bart): 6 beams, length
    # penalty 1, no trigram twice. As much as it can, in and out: ours.
    "bart": Generation(1024, 0, 1024, beams=6, length_penalty=1.0, no_repeat_ngram=3, early_stopping=True),
    # 8 beams, as PEGASUS's authors (Zhang et al. 2020); the rest: ours.
    "pegasus": Generation(1024, 0, 1024, beams=8, length_penalty=0.8, no_repeat_ngram=0, early_stopping=True),
    # Docekal et al. 2024 (OARelatedWork), section 6.1.4: 8,192 tokens in, 2,048 out, 4 beams. The rest as LED, but no
    # preference for long texts: ours.
    "primera": Generation(8192, 0, 2048, beams=4, length_penalty=1.0, no_repeat_ngram=3, early_stopping=True),
    # Docekal et al. 2024, section 6.1.5, MPT-7b: 18,200 tokens in all, nucleus sampling with p = 0.85. As much to write
    # as PRIMERA: ours.
    "causal": Generation(
        16_152, 0, 2048, beams=1, length_penalty=1.0, no_repeat_ngram=0, early_stopping=False, top_p=0.85
    ),
}
# An encoder-decoder of a kind for which there is no recipe: ours.
_OTHER = Generation(1024, 0, 512, beams=4, length_penalty=1.0, no_repeat_ngram=3, early_stopping=True)

# As the authors' code has it, where it differs from the papers.
PRESETS: Mapping[str, Generation] = {
    # UKPLab/citebench, src/rel_work/train.py and test.py: no global attention, at least 10 tokens.
    "citebench": replace(_FAMILIES["led"], min_tokens=10, global_attention=False),
    # morningmoni/CiteSum, script/*.sh: greedy. The lengths are those for SciTLDR (script/test_tldr.sh).
    "citesum": replace(_FAMILIES["bart"], beams=1, min_tokens=10, max_tokens=45),
}

# Mao et al. 2022 (CiteSum): a TLDR has 10 to 45 tokens. XSum and Gigaword: as in script/test_xsum.sh and
# script/test_gigaword.sh of their code.
_LENGTHS: Mapping[Kind, Mapping[str, Any]] = {
    "tldr": {"min_tokens": 10, "max_tokens": 45},
    "xsum": {"min_tokens": 11, "max_tokens": 62, "beams": 4},
    "gigaword": {"min_tokens": 4, "max_tokens": 24, "beams": 32},
}


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
    generation, lengths = _FAMILIES.get(family, _OTHER), dict(_LENGTHS.get(kind, {}))
    if generation.top_p is not None:  # one text is drawn
        lengths.pop("beams", None)
    return replace(generation, **lengths)


def processed(text: str, processing: PostProcessing | None) -> str:
    """A model's text after post-processing (Mao et al. 2022, section 4.1)."""
    if processing == "ref":
        text = re.sub(r"^\s*REF\b", "This paper", text)
        text = re.sub(r"\s*\bREF\b", "", text)
    return text.strip()


def as_citation(target: str) -> str:
    """A TLDR in the style of citation texts, for models that learnt these: "We show" becomes "This paper REF show".

    Mao et al. 2022, section 4.1: for few-shot training targets, not for those that are measured.
    """
    return re.sub(r"^\s*We\b", "This paper REF", target)


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


WRITER_DIRECTORY = DirectoryKind(
    name="trained writer",
    kind=WriterManifest.model_fields["kind"].default,
    manifest=MANIFEST,
    names=MODEL_FILES
    | {MANIFEST, "chat_template.jinja", "generation_config.json", "sentencepiece.bpe.model", "spiece.model"}
    | {"tokenizer.model"},
)


class Seq2seqWriter(Writer):
    """Writes with an encoder-decoder or a causal model. To open one, use `open`.

    Attributes:
        name: The model by the name given, or the name of its folder.
        generation: How it writes.
        read: How many tasks it has read so far.
        cut: How many of them were too long, and were cut at the end.

    Raises:
        ModelError: The model cannot read or write so many tokens.
    """

    def __init__(self, model: TextModel, kind: Kind, generation: Generation) -> None:
        check_room(model, generation)
        self.name = _name_of(Path(model.name)) if Path(model.name).is_dir() else model.name
        self.generation = generation
        self.settings = {
            "writer": self.name,
            "model": model.identity,
            "family": model.family,
            "kind": kind,
            **asdict(generation),
            "precision": model.precision,
            **({"instructions": prompt_digest(kind)} if model.is_causal else {}),
        }
        self.is_oracle = generation.gold_prompt > 0
        self.read = self.cut = 0
        self._model = model
        self._kind: Kind = kind
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
        if name == MODEL:
            remedy = "Name one instead: a folder, or a name such as facebook/bart-large."
            raise InputError("seq2seq needs a model", remedy)
        changes = dict(options or {})
        preset = changes.pop("preset", None)
        check_names(Generation, changes, "a seq2seq writer")  # before the model is loaded
        model = TextModel.open(name, device=device)
        folder, again = Path(find_model(name)), "Train it again: citerec train writer …"
        manifest = read_model_manifest(folder, WriterManifest, "a writer", again)
        if manifest and manifest.writes == kind and not preset:
            generation = manifest.generation.changed(changes)
        else:
            generation = fitted(model, recipe(model.family, kind, preset), changes)
        writer = cls(model, kind, generation)
        writer.learnt = learnt_by_part(folder)
        return writer

    @property
    def remark(self) -> str:
        """How many inputs were too long, and cut."""
        tokens = self.generation.max_input_tokens
        return f"{self.cut:,} of {self.read:,} inputs of this run were cut to {tokens:,} tokens." if self.cut else ""

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order, a batch at a time; a WriterError if a batch does not fit on the GPU."""
        for part in in_parts(tasks, _rows(self._model, self.generation)):
            inputs = [encode_task(self._model, task, self.generation.max_input_tokens, self._kind) for task in part]
            self.read += len(inputs)
            self.cut += sum(one.cut for one in inputs)
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
    limit = model.max_input_tokens
    if not model.is_causal or limit is None:
        return generation.within(limit, model.max_output_tokens).changed(changes)
    most = None if "max_tokens" in changes else max(2, limit // 4)
    generation = generation.within(None, most).changed(changes)
    left = None if "max_input_tokens" in changes else max(8, limit - generation.max_tokens)
    return generation.within(left, None)


def check_room(model: TextModel, generation: Generation) -> None:
    """Raises a ModelError if a model cannot read or write so many tokens."""
    read, written, room = generation.max_input_tokens, generation.max_tokens, model.max_input_tokens
    needs = [("max_input_tokens is", read, room), ("max_tokens is", written, model.max_output_tokens)]
    if model.is_causal:
        needs.append(("max_input_tokens and max_tokens together are", read + written, room))
    for what, tokens, limit in needs:
        if limit is not None and tokens > limit:
            raise ModelError(f"{model.name} has room for {limit} tokens, {what} {tokens}", f"Give at most {limit}.")
    if len(model.prompt(generation.prompt or "")) + generation.gold_prompt >= written:
        raise ModelError(f"the prompt is longer than {written} tokens", "Raise max_tokens.")


def encode_task(model: TextModel, task: TextTask, max_tokens: int, kind: Kind = "citation") -> Encoded:
    """The input of a model for a task.

    Encoder-decoders read all of CiteBench's input, in its order; with a token after the query, what is known of the
    citing paper first. Causal models read the prompt of the chat writer as one text. A prefix of the task comes first.
    """
    given = [str(task.extra[PREFIX])] if PREFIX in task.extra else []
    if model.is_causal:
        text, last = plain_prompt(task, kind)
        return model.encode_prompt(" ".join([*given, text]), last, max_tokens)
    if model.query_end is not None:
        documents = [source.text for source in task.sources if source.text]
        return model.encode(documents, max_tokens, [*given, *input_of(replace(task, sources=()))])
    return model.encode([text for text in (*given, *input_of(task)) if text], max_tokens)


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
    with the number of texts so far. A WriterError if the GPU has too little memory.
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
            read = [inputs[row].ids for row in rows]
            processors = []
            if generation.top_p:
                processors.append(nucleus(read, generation.top_p, generation.temperature, generation.seed))
            try:
                written = model.generate(read, config, [prompts[row] for row in rows], processors)
            except torch.OutOfMemoryError as error:
                raise WriterError(
                    f"{len(rows)} texts at once do not fit into the memory of the GPU",
                    "Give fewer max_input_tokens or beams, or set CUDA_VISIBLE_DEVICES= to use no GPU.",
                ) from error
            for row, ids in zip(rows, written, strict=True):
                texts[row] = processed(model.decode(ids), generation.post_processing)
            done += len(rows)
            on_progress(done)
    return texts


def _rows(model: TextModel, generation: Generation) -> int:
    return max(1, _ROWS_AT_ONCE.get(model.device, 8) // generation.beams)


def nucleus(prompts: Sequence[Sequence[int]], top_p: float, temperature: float, seed: int) -> Callable[..., Any]:
    """The logits processor for transformers that draws each token from the likeliest ones (Holtzman et al., ICLR 2020).

    These are the fewest whose probabilities sum up to `top_p`, after the logits are divided by `temperature`. What is
    drawn for a prompt depends on the seed, the prompt and the model alone, not on the rest of its batch: use it with
    greedy search, since only the drawn token is left to choose.
    """
    import numpy as np
    import torch

    digests = [hashlib.blake2b(np.array([seed, *ids], np.int64).tobytes(), digest_size=8).digest() for ids in prompts]
    draws = [np.random.default_rng(int.from_bytes(digest, "big")) for digest in digests]

    def drawn_only(_input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        sure, tokens = (scores.double() / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
        reached = sure.cumsum(-1)
        # The first token whose sum reaches `top_p` is the last that counts.
        last = (reached < top_p).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
        drawn = torch.tensor([[draw.random()] for draw in draws], dtype=reached.dtype, device=scores.device)
        places = torch.searchsorted(reached, drawn * reached.gather(-1, last), right=True).clamp(max=last)
        return torch.full_like(scores, -torch.inf).scatter(-1, tokens.gather(-1, places), 0.0)

    return drawn_only


def generation_config(generation: Generation, begun: int) -> Any:
    """The generation settings for transformers, for texts of which so many tokens are given."""
    from transformers import GenerationConfig

    of_beams = {"length_penalty": generation.length_penalty, "early_stopping": generation.early_stopping}
    return GenerationConfig(  # type: ignore[no-untyped-call]
        num_beams=generation.beams,
        do_sample=False,  # with top_p, a processor draws
        no_repeat_ngram_size=generation.no_repeat_ngram,
        max_new_tokens=generation.max_tokens - begun,
        min_new_tokens=max(0, generation.min_tokens - begun),
        **(of_beams if generation.beams > 1 else {}),
    )


SEQ2SEQ = WriterPart(MODEL, Seq2seqWriter.open)
