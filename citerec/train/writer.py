"""Training writers: an encoder-decoder or a causal model learns to write the texts that authors wrote."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from citerec.contexts.learnt import LEARNT, Learnt, learnt_by_part
from citerec.errors import InputError
from citerec.files.hashing import digest_of
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.models.find import find_model, model_identity
from citerec.models.loading import MANIFEST, read_model_manifest
from citerec.models.text_models import Encoded, TextModel
from citerec.train.base import Schedule, checkpoint_directory
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
_PROGRESS_EVERY = 100


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How to train a writer.

    Attributes:
        base: The encoder-decoder or causal model to start from: a folder or a name on the hub.
        writes: The kind of text that it writes.
        batch: Targets per step; gradients are accumulated over as many at once as memory allows.
        max_input_tokens: How many tokens it reads; by default as in the recipe for this kind of model.
        max_target_tokens: How many tokens of a target it learns; the same default.
        value: The measure on dev: `rouge` for ROUGE of greedy predictions, or `loss`, which is quicker.
        dev_metric: The kind of ROUGE by which the best weights are chosen.
        as_citations: Whether it learns "This paper REF" if a target begins with "We", as known to models trained on
            citation texts (Mao et al. 2022, section 4.1).
        preset: One of `seq2seq.PRESETS`: how it writes and reads, in place of the recipe for its family.
        lengthen: Whether an LED, PRIMERA or MPT that has room for fewer tokens is lengthened.
        query_separator: Whether PRIMERA gets the token `<query-doc-sep>` (Docekal et al. 2024, section 6.1.4).
    """

    base: str = DEFAULT_BASE
    writes: Kind = "citation"
    batch: int = 16
    max_input_tokens: int | None = None
    max_target_tokens: int | None = None
    value: Literal["rouge", "loss"] = "rouge"
    as_citations: bool = False
    dev_metric: Literal["rougeL", "rouge1", "rouge2"] = "rougeL"
    preset: str | None = None
    lengthen: bool = False
    query_separator: bool = False

    @property
    def metric(self) -> str:
        """The name of the dev value."""
        return "loss" if self.value == "loss" else self.dev_metric


def train_writer(
    choice: Choice,
    out: Path,
    options: WriterOptions,
    schedule: Schedule,
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
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
    from citerec.train.trainer import LossTrainer

    WRITER_DIRECTORY.check_place(out)
    schedule = replace(schedule, first=True)
    plan = _plan(choice, options, schedule)
    dev, to_learn_from = _sides(choice)
    learnt_from: set[str] = set()
    model = TextModel.open(options.base, device=device)
    generation = _generation(model, options)

    def noted(tasks: Iterable[TextTask]) -> Iterator[TextTask]:
        for number, task in enumerate(tasks, 1):
            learnt_from.update(task_digests(task))
            yield task
            if number % _PROGRESS_EVERY == 0:
                on_progress("reading tasks", number, 0)

    # Training is not resumed on a device of another precision.
    with checkpoint_directory(out, {**plan, "device": model.device}) as folder:
        encoded = _encoded(noted(to_learn_from), model, generation, options)
        train = _Examples(folder / "train.int32", ((read, target) for read, targets in encoded for target in targets))
        if not len(train):
            raise InputError(
                f"{choice.path} leaves nothing to learn from: all its papers are held out",
                "Give other tasks to --dev, or lower dev_share.",
            )
        if train.cut:
            note(f"{train.cut:,} of {len(train):,} inputs or targets are too long: their ends are not read")
        learner = _Learner(model, train, dev, generation, options, on_progress)
        record = LossTrainer(learner, schedule, folder, on_progress, note).fit()
        before = -record.values[0] if options.value == "loss" else record.values[0]
        facts: dict[str, Any] = {"limit": choice.limit, "examples": len(train), "cut": train.cut, "dev_tasks": len(dev)}
        facts |= {"precision": model.precision, "plan": digest_of(plan)}
        settings = {name: value for name, value in asdict(options).items() if name not in ("base", "writes")}
        manifest = WriterManifest(
            citerec=__version__,
            base=options.base,
            base_identity=model.identity,
            writes=options.writes,
            generation=generation,
            training=choice.facts("tasks", "papers") | facts | settings | asdict(schedule) | record.facts(),
            dev={**record.results, f"{options.metric} before": round(before, 4)},
        )
        learnt = Learnt(frozenset(learnt_from), frozenset(one for task in dev for one in task_digests(task)))
        with WRITER_DIRECTORY.writing(out) as partial:
            model.save(partial)
            (learnt | learnt_by_part(options.base)).write(partial / LEARNT)
            manifest.write(partial)
    return manifest


def train_seeds(
    choice: Choice,
    out: Path,
    options: WriterOptions,
    schedule: Schedule,
    seeds: Sequence[int],
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> dict[int, WriterManifest]:
    """Trains a writer for each seed, in `out/seed-N`; what is done already with these settings is kept.

    The seed sets the order of the examples and what is dropped out. Which tasks are learnt from, and which are
    measured on, depends on the seed of `choice`, and is the same for all.

    Raises:
        InputError: No seed is given, or one twice, or `out` is a writer itself.
        BuildError, ModelError, SourceError: As `train_writer`.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"the seeds are {', '.join(map(str, seeds)) or 'none'}", "Give some, each once: 22,42,55.")
    if (out / MANIFEST).exists():
        raise InputError(f"{out} is a writer: seeds need a folder of their own", "Give another --out.")
    manifests = {}
    for seed in seeds:
        folder, own = out / f"seed-{seed}", replace(schedule, seed=seed, first=True)
        manifest = read_model_manifest(folder, WriterManifest, "a writer", f"Remove {folder}, and train it again.")
        if manifest is None or manifest.training.get("plan") != digest_of(_plan(choice, options, own)):
            note(f"seed {seed}:")
            manifest = train_writer(choice, folder, options, own, device=device, on_progress=on_progress, note=note)
        manifests[seed] = manifest
    return manifests


def _plan(choice: Choice, options: WriterOptions, schedule: Schedule) -> dict[str, Any]:
    """Everything that a writer depends on, but the device."""
    return {
        **choice.plan(),
        "citerec": __version__,
        "options": asdict(options),
        "schedule": asdict(schedule),
        "base": model_identity(find_model(options.base)),
    }


class _Examples:
    """Inputs and targets as token ids in a memory-mapped file: a training set need not fit into memory.

    Attributes:
        cut: How many inputs or targets were truncated.
    """

    def __init__(self, path: Path, pairs: Iterable[tuple[Encoded, Encoded]]) -> None:
        lengths, self.cut = [0], 0
        with path.open("wb") as file:
            for pair in pairs:
                self.cut += any(side.cut for side in pair)
                lengths += [len(side.ids) for side in pair]
                file.writelines(np.array(side.ids, np.int32).tobytes() for side in pair)
        self._ends = np.cumsum(lengths)
        self._ids = np.memmap(path, np.int32, "r") if len(self) else np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._ends) // 2

    def __getitem__(self, number: int) -> tuple[list[int], list[int]]:
        begin, middle, end = self._ends[2 * number : 2 * number + 3]
        return self._ids[begin:middle].tolist(), self._ids[middle:end].tolist()


@dataclass
class _Learner:
    """A model, and the tasks from which it learns."""

    writer: TextModel
    examples: _Examples
    dev: Sequence[TextTask]
    generation: Generation
    options: WriterOptions
    on_progress: Progress

    def __post_init__(self) -> None:
        self.model, self.batch = self.writer.model, self.options.batch
        self._pairs = list(_encoded(self.dev, self.writer, self.generation, self.options))

    def losses(self, examples: Sequence[tuple[list[int], list[int]]]) -> "Iterator[torch.Tensor]":
        return (loss * share for loss, share in self.writer.losses(examples))

    def evaluate(self) -> tuple[float, dict[str, float]]:
        if self.options.value == "loss":
            import torch

            pairs = [(list(read.ids), list(target.ids)) for read, targets in self._pairs for target in targets]
            with torch.inference_mode():
                loss = sum(loss.item() * share for loss, share in self.writer.losses(pairs))
            return -loss, {"loss": round(loss, 4)}
        texts = seq2seq.write_texts(
            self.writer,
            [read for read, _ in self._pairs],
            replace(self.generation, beams=1, top_p=None),  # greedy: n beams would take n times as long
            lambda done: self.on_progress("measuring", done, len(self.dev)),
        )
        values = np.mean([_best_rouge(text, task.targets) for text, task in zip(texts, self.dev, strict=True)], axis=0)
        results = {kind: round(float(value), 4) for kind, value in zip(KINDS, values, strict=True)}
        return results[self.options.dev_metric], results


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


def _with_target(path: Path) -> Iterator[TextTask]:
    """The tasks of a file, each with its targets that are not blank."""
    for task in read_tasks(path):
        targets = tuple(target for target in task.targets if target.strip())
        if not targets:
            raise InputError(f"{path}: the task {task.task_id} has no target", "Give tasks with what authors wrote.")
        yield replace(task, targets=targets)


def _sides(choice: Choice) -> tuple[list[TextTask], Iterable[TextTask]]:
    """The tasks to measure on, and those to learn from: none is about the same papers as a held-out task."""
    held_out: set[int] = set()

    def to_measure_on() -> Iterator[TextTask]:
        for task in _with_target(choice.dev or choice.path):
            about = subjects(task)
            if choice.dev or choice.holds_out(str(about[0])):
                held_out.update(about)
                yield task

    dev = choice.draw(choice.dev_limit, to_measure_on(), lambda task: task.task_id)
    if not dev:
        raise InputError(f"no paper of {choice.path} was held out", "Raise dev_share, or give --dev FILE.")
    left = (task for task in _with_target(choice.path) if held_out.isdisjoint(subjects(task)))
    return dev, left if choice.limit is None else choice.draw(choice.limit, left, lambda task: task.task_id)


def _encoded(
    tasks: Iterable[TextTask], model: TextModel, generation: Generation, options: WriterOptions
) -> Iterator[tuple[Encoded, list[Encoded]]]:
    """The input of each task, and its targets, as token ids."""
    for task in tasks:
        targets = map(as_citation, task.targets) if options.as_citations else task.targets
        encoded = [model.encode_text(target, generation.max_tokens) for target in targets]
        yield encode_task(model, task, generation.max_input_tokens, options.writes), encoded


def _best_rouge(text: str, targets: Sequence[str]) -> list[float]:
    """F1 by kind without stemming, each the best over the targets."""
    scores = [rouge(text, target) for target in targets]
    return [max(score[kind].f1 for score in scores) for kind in KINDS]
