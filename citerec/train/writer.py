"""Training writers: an encoder-decoder or a causal model learns to write the texts that authors wrote."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from citerec.contexts.learnt import Learnt, learnt_by_part
from citerec.errors import InputError
from citerec.files.hashing import digest_of
from citerec.files.progress import no_note
from citerec.models.find import find_model, model_identity
from citerec.models.loading import MANIFEST, read_model_manifest
from citerec.models.text_models import Encoded, TextModel
from citerec.settings import Positive
from citerec.train.base import How, Schedule, Training, training, write_model
from citerec.train.groups import Choice
from citerec.version import __version__
from citerec.write.metrics.rouge import KINDS, rouge
from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask, subjects, task_digests
from citerec.write.writers import seq2seq
from citerec.write.writers.base import Kind
from citerec.write.writers.seq2seq import WRITER_DIRECTORY, Generation, WriterManifest, as_citation, encode_task

if TYPE_CHECKING:
    import torch

DEFAULT_BASE = "allenai/led-base-16384"


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How to train a writer.

    Attributes:
        base: The encoder-decoder or causal model to start from: a folder or a name on the hub.
        writes: The kind of text that it writes.
        batch: Targets per step; gradients are accumulated over as many at once as memory allows.
        max_input_tokens: How many tokens it reads; by default as in the recipe for this kind of model.
        max_target_tokens: How many tokens of a target it learns; the same default.
        dev_metric: The measure on dev by which the best weights are chosen: ROUGE of greedy predictions.
        as_citations: Whether it learns "This paper REF" if a target begins with "We", as known to models trained on
            citation texts (Mao et al. 2022, section 4.1).
        preset: One of `seq2seq.PRESETS`: how it writes and reads, in place of the recipe for its family.
        lengthen: Whether an LED, PRIMERA or MPT that has room for fewer tokens is lengthened.
        query_separator: Whether PRIMERA gets the token `<query-doc-sep>` (Docekal et al. 2024, section 6.1.4).
    """

    base: str = DEFAULT_BASE
    writes: Kind = "citation"
    batch: Positive = 16
    max_input_tokens: Positive | None = None
    max_target_tokens: Positive | None = None
    as_citations: bool = False
    dev_metric: Literal["rougeL", "rouge1", "rouge2"] = "rougeL"
    preset: str | None = None
    lengthen: bool = False
    query_separator: bool = False


def train_writer(
    choice: Choice, out: Path, options: WriterOptions, schedule: Schedule, **how: Unpack[How]
) -> WriterManifest:
    """Trains a writer, in place of an earlier one at `out`. An interrupted training is resumed.

    If no step improves the base on dev, the result is the base. The base is always measured first, even without
    `first` in the schedule. Arguments are those of `citerec.train_reranker`.

    Raises:
        ModelError: There is no such base, or it cannot read or write so many tokens.
        SourceError: A file of tasks cannot be read.
        InputError: A record is not a task with a target, or one side is empty, or something else is at `out`,
            or there is no such device.
        BuildError: The loss is no longer finite, or another process trains this writer, or the disk is full.
    """
    schedule = replace(schedule, first=True)
    plan = _plan(choice, options, schedule)
    with training(WRITER_DIRECTORY, out, options, schedule, plan, **how) as own:
        train, dev = choice.sides(_with_target, lambda task: list(map(str, subjects(task))), attrgetter("task_id"))
        model = TextModel.open(options.base, device=how.get("device"))
        learner = _Learner(model, options, train, dev, own)
        record = own.fit(learner)
        facts: dict[str, Any] = {"limit": choice.limit, "examples": len(learner.examples), "dev_tasks": len(dev)}
        facts |= {"precision": model.precision, "plan": digest_of(plan)}
        manifest = WriterManifest(
            citerec=__version__,
            base=options.base,
            base_identity=model.identity,
            writes=options.writes,
            generation=learner.generation,
            training=choice.facts("tasks", "papers") | facts | own.facts(record, "base", "writes"),
            dev={**record.results, f"{options.dev_metric} before": record.values[0]},
        )
        learnt, tuned_on = (frozenset(one for task in side for one in task_digests(task)) for side in (train, dev))
        return write_model(
            WRITER_DIRECTORY, out, manifest, Learnt(learnt, tuned_on) | learnt_by_part(options.base), model.save
        )


def train_seeds(
    choice: Choice,
    out: Path,
    options: WriterOptions,
    schedule: Schedule,
    seeds: Sequence[int],
    **how: Unpack[How],
) -> dict[int, WriterManifest]:
    """Trains a writer for each seed, in `out/seed-N`; what is done already with these settings is kept.

    The seed sets the order of the examples and what is dropped out. Which tasks are learnt from, and which are
    measured on, depends on the seed of `choice`, and is the same for all.

    Raises:
        InputError: `out` is a writer itself.
        BuildError, ModelError, SourceError: As `train_writer`.
    """
    if (out / MANIFEST).exists():
        raise InputError(f"{out} is a writer: seeds need a folder of their own", "Give another --out.")
    manifests = {}
    for seed in seeds:
        folder, own = out / f"seed-{seed}", replace(schedule, seed=seed, first=True)
        manifest = read_model_manifest(folder, WriterManifest, "a writer", f"Remove {folder}, and train it again.")
        if manifest is None or manifest.training.get("plan") != digest_of(_plan(choice, options, own)):
            how.get("note", no_note)(f"seed {seed}:")
            manifest = train_writer(choice, folder, options, own, **how)
        manifests[seed] = manifest
    return manifests


def _plan(choice: Choice, options: WriterOptions, schedule: Schedule) -> dict[str, Any]:
    """Everything that a writer depends on, but the device."""
    plan = {"citerec": __version__, "options": asdict(options), "schedule": asdict(schedule)}
    return choice.plan() | plan | {"base": model_identity(find_model(options.base))}


def _with_target(path: Path) -> Iterator[TextTask]:
    """The tasks of a file, each with its targets that are not blank."""
    for task in read_tasks(path):
        targets = tuple(filter(str.strip, task.targets))
        if not targets:
            raise InputError(f"{path}: the task {task.task_id} has no target", "Give tasks with what authors wrote.")
        yield replace(task, targets=targets)


class _Learner:
    """A model, and the tasks from which it learns.

    Attributes:
        examples: The tasks, each with one of its targets.
        generation: How the trained writer writes.
    """

    def __init__(
        self,
        writer: TextModel,
        options: WriterOptions,
        train: Sequence[TextTask],
        dev: Sequence[TextTask],
        own: Training,
    ) -> None:
        self.model, self.batch, self.generation = writer.model, options.batch, _generation(writer, options)
        self._writer, self._options, self._dev, self._own = writer, options, dev, own
        self.examples = [(task, target) for task in train for target in task.targets]

    def losses(self, examples: Sequence[tuple[TextTask, str]]) -> "Iterator[torch.Tensor]":
        pairs = []
        for task, target in examples:
            text = as_citation(target) if self._options.as_citations else target
            wanted = self._writer.encode_text(text, self.generation.max_tokens)
            pairs.append((list(self._read(task).ids), list(wanted.ids)))
        return (loss * share for loss, share in self._writer.losses(pairs))

    def evaluate(self) -> tuple[float, dict[str, float]]:
        texts = seq2seq.write_texts(
            self._writer,
            list(map(self._read, self._dev)),
            replace(self.generation, beams=1, top_p=None),  # greedy: n beams would take n times as long
            lambda done: self._own.on_progress("measuring", done, len(self._dev)),
        )
        values = np.mean([_best_rouge(text, task.targets) for text, task in zip(texts, self._dev, strict=True)], axis=0)
        results = {kind: round(float(value), 4) for kind, value in zip(KINDS, values, strict=True)}
        return results[self._options.dev_metric], results

    def _read(self, task: TextTask) -> Encoded:
        """The input of a task as token ids."""
        return encode_task(self._writer, task, self.generation.max_input_tokens, self._options.writes)


def _generation(model: TextModel, options: WriterOptions) -> Generation:
    """The settings with which the trained writer writes: those of the recipe, with the lengths that it learns.

    The model is changed as the options say.
    """
    if options.lengthen:
        model.lengthen(options.max_input_tokens or 0, options.max_target_tokens or 0)
    if options.query_separator:
        model.add_query_separator()
    default = seq2seq.recipe(model.family, options.writes, options.preset)
    limits = {"max_input_tokens": options.max_input_tokens, "max_tokens": options.max_target_tokens}
    lengths = {name: length for name, length in limits.items() if length is not None}
    least = min(default.min_tokens, lengths.get("max_tokens", model.max_output_tokens or default.min_tokens))
    generation = seq2seq.fitted(model, default, {**lengths, "min_tokens": least})
    seq2seq.check_room(model, generation)
    model.global_attention = generation.global_attention
    return replace(generation, post_processing="ref") if options.as_citations else generation


def _best_rouge(text: str, targets: Sequence[str]) -> list[float]:
    """F1 by kind without stemming, each the best over the targets."""
    scores = [rouge(text, target) for target in targets]
    return [max(score[kind].f1 for score in scores) for kind in KINDS]
