"""Writers that were trained: encoder-decoders such as LED, BART, PEGASUS and PRIMERA."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal, Self

from citerec.contexts.learnt import learnt_by_part
from citerec.errors import InputError, ModelError, WriterError
from citerec.generate.check import traced
from citerec.generate.writers.base import SEQ2SEQ, WRITERS, Kind, Writer, WriterPart, check_names
from citerec.generate.writers.generation import Generation, processed, recipe
from citerec.groundwork.directories import Kind as DirectoryKind
from citerec.models.batches import batches_by_length
from citerec.models.find import find_model
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, read_model_manifest
from citerec.models.seq2seq import Encoded, Seq2seqModel
from citerec.texts.tasks import Prediction, TextTask
from citerec.texts.write import input_of

# Tokens read at once, padding and beams included, and texts written at once.
_TOKENS_AT_ONCE = {"cpu": 16384, "cuda": 262_144}
_ROWS_AT_ONCE = {"cpu": 8, "cuda": 64}


class WriterManifest(ModelManifest):
    """`manifest.json` of a trained writer.

    Attributes:
        base: The model with which training began, by the name given.
        base_identity: Its `model_identity`.
        writes: The kind of text that it learnt to write.
        generation: How it writes by default.
        training: How it was trained.
        dev: Its scores on the dev tasks, and those of the base.
    """

    kind: Literal["citerec-writer"] = "citerec-writer"
    citerec: str
    base: str
    base_identity: str
    writes: Kind
    generation: Generation
    training: dict[str, Any]
    dev: dict[str, float]


WRITER_DIRECTORY = DirectoryKind(
    name="trained writer",
    kind=WriterManifest.model_fields["kind"].default,
    manifest=MANIFEST,
    names=MODEL_FILES | {MANIFEST, "generation_config.json", "sentencepiece.bpe.model", "spiece.model"},
)


class Seq2seqWriter(Writer):
    """Writes with an encoder-decoder. To open one, use `open`.

    Attributes:
        name: The model by the name given, or the name of its folder.
        generation: How it writes.
        read: How many tasks it has read so far.
        cut: How many of them were too long, and were cut at the end.

    Raises:
        ModelError: The model cannot read or write so many tokens.
    """

    def __init__(self, model: Seq2seqModel, kind: Kind, generation: Generation) -> None:
        for option, limit in (("max_input_tokens", model.max_input_tokens), ("max_tokens", model.max_output_tokens)):
            if limit is not None and getattr(generation, option) > limit:
                raise ModelError(
                    f"{model.name} has room for {limit} tokens, {option} is {getattr(generation, option)}",
                    f"Give at most {limit}.",
                )
        if len(model.prompt(generation.prompt or "")) >= generation.max_tokens:
            raise ModelError(f"the prompt is longer than {generation.max_tokens} tokens", "Raise max_tokens.")
        self.name = Path(model.name).name if Path(model.name).is_dir() else model.name
        self.generation = generation
        self.settings = {
            "writer": self.name,
            "model": model.identity,
            "family": model.family,
            "kind": kind,
            **asdict(generation),
            "precision": model.precision,
        }
        self.read = self.cut = 0
        self._model = model

    @classmethod
    def open(
        cls,
        name: str,
        *,
        task: Kind = "citation",
        device: str | None = None,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Self:
        """Opens a writer: one from `citerec train writer`, or a model of transformers.

        It writes as it was trained for this task, else as published for its family, as far as the model can.

        Args:
            name: A folder, or a name on the hub such as `allenai/led-base-16384`.
            task: The kind of text.
            device: The device that torch uses; by default a GPU if there is one.
            options: Changes to its `Generation`; values may be strings: `Generation.changed`.
            more: Options by keyword.

        Raises:
            ModelError: It cannot be found or loaded, does not write, or has no room for so many tokens.
            InputError: An option or the device is unknown, or a value is out of its range.
        """
        changes = {**(options or {}), **more}
        check_names(changes, [option.name for option in fields(Generation)], "a seq2seq writer")
        model = Seq2seqModel.open(name, device=device)
        folder, again = Path(find_model(name)), "Train it again: citerec train writer …"
        manifest = read_model_manifest(folder, WriterManifest, "a writer", again)
        if manifest and manifest.writes == task:
            generation = manifest.generation
        else:
            generation = recipe(model.family, task).within(model.max_input_tokens, model.max_output_tokens)
        writer = cls(model, task, generation.changed(changes))
        writer.learnt = learnt_by_part(folder)
        return writer

    @property
    def remark(self) -> str:
        """How many inputs were too long, and cut."""
        tokens = self.generation.max_input_tokens
        return f"{self.cut:,} of {self.read:,} inputs of this run were cut to {tokens:,} tokens." if self.cut else ""

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order, a batch at a time; a WriterError if a batch does not fit on the GPU."""
        remaining = iter(tasks)
        while part := list(itertools.islice(remaining, _rows(self._model, self.generation))):
            inputs = [encode_task(self._model, task, self.generation.max_input_tokens) for task in part]
            self.read += len(inputs)
            self.cut += sum(one.cut for one in inputs)
            for task, text in zip(part, write_texts(self._model, inputs, self.generation), strict=True):
                yield traced(task, text, self.name)


def encode_task(model: Seq2seqModel, task: TextTask, max_tokens: int) -> Encoded:
    """The input of a model for a task: all of CiteBench's input, in its order."""
    return model.encode([text for text in input_of(task) if text], max_tokens)


def write_texts(
    model: Seq2seqModel,
    inputs: Sequence[Encoded],
    generation: Generation,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> list[str]:
    """The texts that a model, not in training mode, writes for inputs of `encode_task`, in their order.

    Calls `on_progress` with the number of texts so far. A WriterError if the GPU has too little memory.
    """
    import torch

    config, prompt = generation_config(generation), model.prompt(generation.prompt or "")
    texts = [""] * len(inputs)
    tokens = _TOKENS_AT_ONCE.get(model.device, 16384) // generation.beams
    done = 0
    for rows in batches_by_length([len(one.ids) for one in inputs], tokens, _rows(model, generation)):
        try:
            written = model.generate([inputs[row].ids for row in rows], config, prompt)
        except torch.OutOfMemoryError as error:
            raise WriterError(
                f"{len(rows)} texts at once do not fit into the memory of the GPU",
                "Give fewer max_input_tokens or beams, or --device cpu.",
            ) from error
        for row, ids in zip(rows, written, strict=True):
            texts[row] = processed(model.decode(ids), generation.post_processing)
        done += len(rows)
        on_progress(done)
    return texts


def _rows(model: Seq2seqModel, generation: Generation) -> int:
    return max(1, _ROWS_AT_ONCE.get(model.device, 8) // generation.beams)


def generation_config(generation: Generation) -> Any:
    """The generation settings for transformers."""
    from transformers import GenerationConfig

    of_beams = {"length_penalty": generation.length_penalty, "early_stopping": generation.early_stopping}
    return GenerationConfig(  # type: ignore[no-untyped-call]
        max_length=generation.max_tokens,
        min_length=generation.min_tokens,
        num_beams=generation.beams,
        do_sample=False,
        no_repeat_ngram_size=generation.no_repeat_ngram,
        **(of_beams if generation.beams > 1 else {}),
    )


def _open(name: str, kind: Kind, device: str | None = None, options: Mapping[str, Any] | None = None) -> Seq2seqWriter:
    if name == SEQ2SEQ:
        remedy = "Name one instead: a folder, or a name such as facebook/bart-large."
        raise InputError("seq2seq needs a model", remedy)
    return Seq2seqWriter.open(name, task=kind, device=device, options=options)


WRITERS.register(WriterPart(SEQ2SEQ, _open, order=110))
