"""What all trainings share: what is learnt from and measured on, the schedule, checkpoints, the folder; and groups.

A group is a context, the papers it cites, and other papers that the search finds.
"""

import contextlib
import functools
import heapq
import importlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack

import numpy as np
from pydantic import BaseModel

from citerec.contexts.provenance import PROVENANCE, Provenance, provenance_of_part
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic
from citerec.corpus.reading import read_failures
from citerec.errors import BuildError, InputError
from citerec.evaluation.metrics import NOT_FOUND, measure, parse_metrics
from citerec.files.progress import Note, Progress, no_note, no_progress, told
from citerec.files.resume import Journal, file_digest, hash_sample
from citerec.files.writing import Kind, alone, beside, remove
from citerec.models.loading import ModelManifest, torch_device
from citerec.recommend import Recommender
from citerec.records import Context, Paper
from citerec.retrieve.base import Candidate
from citerec.settings import Natural, Positive, Share
from citerec.systems import Recipe, default_system
from citerec.version import __version__

Manifest = TypeVar("Manifest", bound=ModelManifest)
REPEATABLE = {"deterministic": True, "force_row_wise": True, "n_jobs": 1, "verbose": -1}
"""Parameters of LightGBM with which it learns the same each time. With more jobs, little data take ten times the
processor time."""


read_cited = functools.partial(read_contexts, cited=True)
"""Reads contexts that say which papers they cite."""


def citing_paper(context: Context) -> str:
    """The key of a context's citing paper; a context without one counts as its own paper."""
    kinds = {"id": context.citing_id, "key": context.citing_key, "context": context.context_id}
    return next(f"{kind}\0{name}" for kind, name in kinds.items() if name)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which contexts or tasks to learn from, and which to measure on while learning.

    Attributes:
        path: A file of contexts with cited papers or, for a writer, of tasks with targets.
        dev: Another file to measure on; by default a share of the (citing) papers of `path` is held out.
        dev_share: The share of the citing papers that is held out, 0 to 1.
        dev_limit: The largest number of contexts or tasks to measure on.
        limit: The largest number to learn from, sampled by the seed; by default all.
        seed: Seed of the samples.
    """

    path: Path
    dev: Path | None = None
    dev_share: Share = 0.1
    dev_limit: Positive = 300
    limit: Positive | None = None
    seed: Natural = 0

    def facts(self, what: str = "contexts", papers: str = "citing papers") -> dict[str, Any]:
        """The fields of a manifest about the choice."""
        return {what: self.path.name, "dev": self.dev.name if self.dev else f"{papers} held out of {self.path.name}"}

    def draw(self, limit: int, items: Iterable[Any]) -> list[Any]:
        """At most `limit` of some contexts or tasks, sampled by the seed and their ids."""

        def number(item: Any) -> int:
            return hash_sample(self.seed, getattr(item, "context_id", None) or item.task_id)

        return heapq.nsmallest(limit, items, key=number)

    def sides(
        self,
        read: Callable[[Path], Iterable[Any]] = read_cited,
        papers: Callable[[Any], Sequence[str]] = lambda context: [citing_paper(context)],
    ) -> tuple[list[Any], list[Any]]:
        """What to learn from, and what to measure on. No paper is on both sides.

        Args:
            read: Reads a file, by default of contexts.
            papers: The keys of the papers that an item is about, one at least; by the first it is held out.

        Raises:
            SourceError, InputError: As `read`.
            InputError: One side is empty.
        """
        items = list(read(self.path))
        held = (item for item in items if hash_sample(self.seed, papers(item)[0]) < self.dev_share * 2**64)
        dev = list(read(self.dev) if self.dev else held)
        held_out = {paper for item in dev for paper in papers(item)}
        train = [item for item in items if held_out.isdisjoint(papers(item))]
        if not (train and dev):
            fault = f"no paper of {self.path} is left to {'measure on' if train else 'learn from'}"
            raise InputError(fault, "Change dev_share, or give --dev FILE with other papers.")
        if self.limit is not None:
            train = self.draw(self.limit, train)
        return train, self.draw(self.dev_limit, dev)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to learn.

    Attributes:
        learning_rate: The peak learning rate.
        epochs: How often each example is seen.
        evaluations: Dev values over the whole run.
        patience: Dev values without gain after which training stops.
        checkpoint_every: Steps between two checkpoints; each dev value makes one too.
        seed: Seed of all random choices.
        first: Whether the model is measured before training, and kept if training does not improve it.
        decay: Weight decay; the default is that of LCR and of BERT.
        optimizer: `adamw` or `lion`.
        warm_up: Steps in which the learning rate rises; by default a tenth of all.
    """

    learning_rate: Share
    epochs: Positive = 1
    evaluations: Positive = 10
    patience: Positive = 3
    checkpoint_every: Positive = 100
    seed: Natural = 0
    first: bool = False
    decay: Share = 0.01
    optimizer: Literal["adamw", "lion"] = "adamw"
    warm_up: Natural | None = None


class Learner(NamedTuple):
    """A model in training, with its examples and its loss.

    Attributes:
        model: The torch module.
        batch: Examples per step.
        examples: What is learnt from, a sequence; each epoch sees all in another order.
        losses: The loss of a step, from its examples, in parts (torch tensors) that add up to it: each part is no
            larger than memory allows.
        evaluate: The value on dev (higher is better), and other results there.
    """

    model: Any
    batch: int
    examples: Any
    losses: Callable[[Sequence[Any]], Iterable[Any]]
    evaluate: Callable[[], tuple[float, dict[str, float]]]


class TrainingRecord(NamedTuple):
    """What happened in a training.

    Attributes:
        steps: Steps that were done.
        values: The dev values, by step; step 0 is before training.
        best_step: The step of the best dev value, whose weights were kept.
        results: The other results on dev then.
    """

    steps: int
    values: Mapping[int, float]
    best_step: int
    results: Mapping[str, float]

    @property
    def best(self) -> float:
        """The best dev value."""
        return self.values[self.best_step]


class How(TypedDict, total=False):
    """What every function that trains takes besides.

    `device` is where it is trained, by default a GPU if there is one; `on_progress` is called as the work goes on,
    `note` with a line about each dev value.
    """

    device: str | None
    on_progress: Progress
    note: Note


class HowFound(How, total=False):
    """What the functions take besides that train on candidates.

    `system` finds them, without its rerankers; by default the best that the index supports.
    """

    system: Recipe | None


@dataclass(frozen=True)
class Training:
    """A training under way.

    Attributes:
        options: What is learnt, and how: a dataclass.
        schedule: How long, and how fast.
        folder: Where its checkpoints are.
        device: Where it is trained.
        on_progress: Called as the work goes on.
        note: Called with a line about each dev value.
    """

    options: Any
    schedule: Schedule
    folder: Path
    device: str
    on_progress: Progress
    note: Note

    def fit(self, learner: Learner) -> TrainingRecord:
        """Trains a model, or continues its training; it ends with the weights that were best on dev.

        Raises:
            BuildError: The loss is no longer finite.
        """
        from citerec.train.trainer import LossTrainer

        return LossTrainer(learner, self).fit()

    def facts(self, record: TrainingRecord, *but: str) -> dict[str, Any]:
        """The manifest's fields about the training; `but` are options that are not among them."""
        options = {name: value for name, value in asdict(self.options).items() if name not in but}
        values = {str(step): value for step, value in record.values.items()}
        steps = {"steps": record.steps, "best_step": record.best_step, "dev_values": values}
        return {**options, **asdict(self.schedule), **steps}


def plan_of(*parts: Any) -> Any:
    """Everything that a training depends on, as JSON: parts and the version of citerec; of files it has the digests.

    Raises:
        SourceError: A file cannot be read.
    """

    def as_json(value: Any) -> Any:
        if not isinstance(value, Path):
            return value.model_dump() if isinstance(value, BaseModel) else asdict(value)
        with read_failures(value):
            return file_digest(value)

    return json.loads(json.dumps((__version__, *parts), default=as_json))


@contextlib.contextmanager
def training(
    kind: Kind, out: Path, options: Any, schedule: Schedule, plan: Sequence[Any], **how: Unpack[How]
) -> Iterator[Training]:
    """Begins a training of the model `out`, or continues one that was stopped; its checkpoints lie beside `out`.

    What was begun with the same plan is continued; what was begun with another is removed. `plan` is what the result
    depends on besides options, schedule and device: JSON values, dataclasses, settings, files.

    Raises:
        InputError: Something else is at `out`, or there is no such device.
        SourceError: A file of the plan cannot be read.
        BuildError: Another process trains this model, or the disk is full.
    """
    from safetensors import SafetensorError

    importlib.import_module("citerec.train.trainer")  # an ImportError names what is missing of the extra `train`
    kind.check_place(out)
    out = out.resolve()
    device = torch_device(how.get("device"))
    # Devices differ in precision.
    whole = {"plan": plan_of(options, schedule, *plan), "device": device.partition(":")[0]}
    watchers = how.get("on_progress", no_progress), how.get("note", no_note)
    try:
        with alone(beside(out, "lock"), f"another process trains {out}"):
            folder = Journal(beside(out, "training"), whole).folder
            yield Training(options, schedule, folder, device, *watchers)
            remove(folder)
    except (OSError, SafetensorError) as error:
        remedy = "Make room, then run the same command: it continues."
        raise BuildError(f"cannot train {out}: {error}", remedy) from error


def write_model(
    kind: Kind, out: Path, manifest: Manifest, provenance: Provenance, save: Callable[[Path], object]
) -> Manifest:
    """Writes a trained model, in place of an earlier one at `out`; returns its manifest, with the version of citerec.

    Args:
        kind: Its kind.
        out: Its folder.
        manifest: Its manifest.
        provenance: What it learnt from.
        save: Writes its other files into a folder.

    Raises:
        InputError: Something else is at `out`.
        BuildError: The disk is full.
    """
    manifest = manifest.model_copy(update={"citerec": __version__})
    with kind.writing(out) as folder:
        save(folder)
        provenance.write(folder / PROVENANCE)
        manifest.write(folder)
    return manifest


class Group(NamedTuple):
    """A context with its candidates, best first, under the leak rules: never the citing paper, nor anything newer.

    `gold` are the cited papers that are in the index, without the citing paper.
    """

    context: Context
    gold: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    def negatives(self, but: Iterable[str] = ()) -> list[str]:
        """The ids of the candidates that are not cited, and not in `but`."""
        out = {*self.gold, *but}
        return [candidate.paper_id for candidate in self.candidates if candidate.paper_id not in out]


def mine_groups(
    choice: Choice, recommender: Recommender, depths: tuple[int, int], on_progress: Progress
) -> list[list[Group]]:
    """The groups to learn from and those to measure on; contexts that cite nothing of the index are left out.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        recommender: Finds candidates.
        depths: How many candidates each context to learn from gets, and each to measure on; with 0 it is not searched.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: A file cannot be read.
        InputError: A line is not a context with cited papers, or no cited paper of a side is in the index.
    """
    sides = []
    for name, contexts, depth in zip(("train", "dev"), choice.sides(), depths, strict=True):
        in_index = recommender.store.years(paper_id for context in contexts for paper_id in context.cited_ids)
        topics, k = recommender.topics(contexts), min(depth, recommender.manifest.counts.papers)
        searched: Any = recommender.candidates(topics, k) if k else ((topic, ()) for topic in topics)
        groups = []
        for topic, candidates in told(searched, f"searching, {name}", on_progress, len(contexts)):
            context = replace(topic.context, cited_before=None)
            gold = tuple(one for one in context.cited_ids if one in in_index and one != context.citing_id)
            group = Group(context, gold, tuple(Candidate(one.paper_id, one.score, one.citance) for one in candidates))
            if gold and (group.negatives() or not k):
                groups.append(group)
        if not groups:
            fault = f"no context of {choice.path} for {name} cites a paper of {recommender.path}, with others beside it"
            raise InputError(fault, "Give an index that holds the cited papers: cited_ids must be its paper ids.")
        sides.append(groups)
    return sides


@dataclass(frozen=True)
class GroupTraining(Training):
    """A training on groups.

    Attributes:
        choice: Which contexts are learnt from, and which are measured on.
        recommender: Finds candidates, and has the records of papers.
        train: The groups to learn from.
        dev: The groups to measure on.
    """

    choice: Choice
    recommender: Recommender
    train: Sequence[Group]
    dev: Sequence[Group]

    @property
    def examples(self) -> list[tuple[int, int]]:
        """The number of a group and the place of one of its cited papers, for each paper that a context cites."""
        return [(number, slot) for number, group in enumerate(self.train) for slot in range(len(group.gold))]

    def read(self, groups: Iterable[Group]) -> Iterator[tuple[Topic, list[Paper]]]:
        """The topics of some groups, each with the records of its cited papers."""
        for group in groups:
            (topic,) = self.recommender.topics([group.context])
            papers = self.recommender.store.papers(group.gold)
            yield topic, [papers[paper_id] for paper_id in group.gold]

    def provenance(self, base: str | None = None) -> Provenance:
        """What the model learns from: the contexts of the groups, and what its base and the searched parts did."""
        contexts = ([group.context for group in side] for side in (self.train, self.dev))
        own = Provenance.of(*contexts) | self.recommender.provenance
        return own | provenance_of_part(base) if base else own

    def facts(self, record: TrainingRecord, *but: str) -> dict[str, Any]:
        """The manifest's fields about the training; `but` are options that are not among them."""
        facts = self.choice.facts() | {"groups": len(self.train), "dev_groups": len(self.dev)}
        searched = {"index": self.recommender.manifest.fingerprint, "retrieval": self.recommender.recipe.changes()}
        return facts | searched | super().facts(record, *but)


@contextlib.contextmanager
def group_training(
    kind: Kind,
    choice: Choice,
    index: Path,
    out: Path,
    options: Any,
    schedule: Schedule,
    depths: tuple[int, int],
    identity: Any = None,
    system: Recipe | None = None,
    **how: Unpack[How],
) -> Iterator[GroupTraining]:
    """Begins or continues the training of the model `out`, on groups that are mined first.

    Args:
        kind: The kind of model.
        choice: Which contexts to learn from, and which to measure on.
        index: The index that is searched.
        out: The model.
        options: How to train it, a dataclass.
        schedule: How long, and how fast.
        depths: How many candidates each context to learn from gets, and each to measure on.
        identity: The identity of what it starts from, where its name does not say; or its file.
        system: The system that finds candidates, without its rerankers; by default the best that the index supports.
            A ranker that has learnt from these contexts would order their candidates unlike those of other contexts.
        how: The device, and what is called as the work goes on.

    Raises:
        BuildError, InputError: As `training`.
        InputError, SourceError: As `mine_groups`.
    """
    # Where nothing is searched, only the records count.
    recipe = (system or Recipe.load(default_system(index) if any(depths) else "bm25")).without_rerankers()
    with Recommender.open(index, recipe) as recommender:
        plan = (choice, recommender.manifest.fingerprint, recommender.recipe.to_json(), identity)
        with training(kind, out, options, schedule, plan, **how) as own:
            train, dev = mine_groups(choice, recommender, depths, own.on_progress)
            yield GroupTraining(**vars(own), choice=choice, recommender=recommender, train=train, dev=dev)


def mean_scores(
    gold: Sequence[Collection[Any]], rankings: Sequence[Iterable[Any]], metrics: Sequence[str], k: int = 10
) -> dict[str, float]:
    """Metrics of the first k of some rankings of papers; `gold` are the cited ones of each, and one has some."""
    ranks = np.full((len(gold), max(map(len, gold))), -1, np.int32)
    for row, cited, ranking in zip(ranks, gold, rankings, strict=True):
        places = {paper: rank for rank, paper in enumerate(ranking, 1)}
        row[: len(cited)] = [places.get(paper, NOT_FOUND) for paper in cited]
    return dict(zip(metrics, measure(parse_metrics(metrics, k), ranks, k).mean(axis=0).tolist(), strict=True))
