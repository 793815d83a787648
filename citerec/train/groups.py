"""Training groups of rerankers and encoders: a context, the papers it cites, and other papers that the search finds."""

import contextlib
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter

from citerec.contexts.learnt import Learnt, learnt_by_part
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic
from citerec.corpus.json_lines import whole_lines
from citerec.corpus.store import PaperStore
from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest, hash_sample
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.models.loading import torch_device
from citerec.recommend import Recommender
from citerec.records import Context, Paper
from citerec.retrieve.candidates import Candidate
from citerec.systems import Recipe, default_system
from citerec.train.base import Schedule, TrainingRecord, checkpoint_directory

PROGRESS_EVERY = 50

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which contexts or tasks to learn from, and which to measure on while learning.

    Attributes:
        path: A file of contexts with cited papers or, for a writer, of tasks with targets.
        dev: Another file to measure on; by default a share of the (citing) papers of `path` is held out.
        dev_share: That share.
        dev_limit: The largest number of contexts or tasks to measure on.
        limit: The largest number to learn from, sampled by the seed; by default all.
        seed: Seed of the samples.
    """

    path: Path
    dev: Path | None = None
    dev_share: float = 0.1
    dev_limit: int = 300
    limit: int | None = None
    seed: int = 0

    def facts(self, what: str = "contexts", papers: str = "citing papers") -> dict[str, Any]:
        """The fields of a manifest about the choice."""
        return {what: self.path.name, "dev": self.dev.name if self.dev else f"{papers} held out of {self.path.name}"}

    def plan(self) -> dict[str, Any]:
        """Everything about the choice that the result depends on.

        Raises:
            SourceError: A file cannot be read.
        """
        return {
            "source": digest_of_file(self.path),
            "dev": digest_of_file(self.dev) if self.dev else None,
            "choice": [self.dev_share, self.dev_limit, self.limit, self.seed],
        }

    def holds_out(self, *names: str) -> bool:
        """Whether a paper is held out; this depends only on seed and paper."""
        return hash_sample(self.seed, *names) < self.dev_share * 2**64

    def draw(
        self, limit: int, items: Iterable[Item], name: Callable[[Any], str] = attrgetter("context_id")
    ) -> list[Item]:
        """At most `limit` of some items, sampled by the seed and their names: of contexts, their ids."""
        return heapq.nsmallest(limit, items, key=lambda item: hash_sample(self.seed, name(item)))


@dataclass(frozen=True, slots=True)
class Group:
    """A context with its candidates, best first, under the leak rules: never the citing paper, nor anything newer.

    `gold` are the cited papers that are in the index, without the citing paper.
    """

    context: Context
    gold: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    def positive(self, paper_id: str) -> Candidate:
        """A cited paper as the search found it, or without score and citance."""
        found = (candidate for candidate in self.candidates if candidate.paper_id == paper_id)
        return next(found, Candidate(paper_id, 0.0))

    def negatives(self, but: Iterable[str] = ()) -> list[Candidate]:
        """The candidates that are not cited, and not in `but`."""
        out = {*self.gold, *but}
        return [candidate for candidate in self.candidates if candidate.paper_id not in out]


_GROUPS: TypeAdapter[Group | None] = TypeAdapter(Group | None)


class Groups:
    """The groups of a file, JSON Lines; each is read when needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        begin, starts = 0, []
        with path.open("rb") as file:
            for line in file:
                if line != b"null\n":
                    starts.append(begin)
                begin += len(line)
        self._starts = np.array(starts, np.int64)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Group:
        with self._path.open("rb") as file:
            file.seek(self._starts[number])
            group = _GROUPS.validate_json(file.readline())
        assert group is not None
        return group

    def __iter__(self) -> Iterator[Group]:
        return (self[number] for number in range(len(self)))


def choose(choice: Choice) -> tuple[Callable[[], Iterator[Context]], int, list[Context]]:
    """The contexts to learn from, their number, and the contexts to measure on. No citing paper is on both sides.

    Raises:
        SourceError: A file cannot be read.
        InputError: A line is not a context with cited papers, or one side is empty.
    """
    measured_on = {citing_paper(context) for context in read_contexts(choice.dev, cited=True)} if choice.dev else set()

    def is_held_out(context: Context) -> bool:
        paper = citing_paper(context)
        return paper in measured_on if choice.dev else choice.holds_out(*paper)

    def to_learn_from() -> Iterator[Context]:
        return (one for one in read_contexts(choice.path, cited=True) if not is_held_out(one))

    of_dev = read_contexts(choice.dev or choice.path, cited=True)
    dev = choice.draw(choice.dev_limit, of_dev if choice.dev else filter(is_held_out, of_dev))
    if not dev:
        raise InputError(f"no citing paper of {choice.path} was held out", "Raise dev_share, or give --dev FILE.")
    drawn = None if choice.limit is None else choice.draw(choice.limit, to_learn_from())
    chosen = to_learn_from if drawn is None else lambda: iter(drawn)
    number = sum(1 for _ in chosen())
    if not number:
        raise InputError(
            f"{choice.path} leaves nothing to learn from: all its citing papers are held out",
            "Give other contexts to --dev, or lower dev_share.",
        )
    return chosen, number, dev


def mine_groups(
    choice: Choice, recommender: Recommender, k: int, folder: Path, on_progress: Progress, *, negatives: bool = True
) -> tuple[Groups, Groups]:
    """The groups to learn from and those to measure on, written to a folder; an interrupted run is resumed.

    To resume it, the contexts must be the same, in the same order. A context that cannot be used becomes a null.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        recommender: Finds candidates.
        k: How many candidates each context gets.
        folder: Where the groups are written.
        on_progress: Called as the work goes on.
        negatives: Whether the contexts to learn from get candidates too; without, they are not searched.

    Raises:
        SourceError: A file cannot be read.
        InputError: A line is not a context with cited papers, or no cited paper of a side is in the index.
    """
    chosen, number, dev = choose(choice)
    k = min(k, recommender.manifest.counts.papers)
    mined = []
    sides = (("train", chosen(), number, k if negatives else 0), ("dev", iter(dev), len(dev), k))
    for name, contexts, whole, depth in sides:
        path = folder / f"{name}.jsonl"
        done = whole_lines(path)
        with path.open("ab") as file:
            topics = recommender.topics(itertools.islice(contexts, done, None))
            searched = recommender.candidates(topics, depth) if depth else ((topic, None) for topic in topics)
            for at, (topic, candidates) in enumerate(searched, done + 1):
                group = _group(topic.context, candidates, recommender.store)
                file.write(_GROUPS.dump_json(group, exclude_defaults=True) + b"\n")
                if at % PROGRESS_EVERY == 0:
                    on_progress(f"searching, {name}", at, whole)
        groups = Groups(path)
        if not len(groups):
            raise InputError(
                f"no context to {'learn from' if name == 'train' else 'measure on'} cites a paper of "
                f"{recommender.path}{', with others found beside it' if depth else ''}",
                "Give an index that holds the cited papers: cited_ids must be its paper ids.",
            )
        mined.append(groups)
    return mined[0], mined[1]


@dataclass(frozen=True)
class GroupTraining:
    """A training on groups.

    Attributes:
        choice: Which contexts are learnt from, and which are measured on.
        recommender: Finds candidates, and has the records of papers.
        options: How the model is trained, a dataclass.
        schedule: How long, and how fast.
        folder: Where its checkpoints are.
        train: The groups to learn from.
        dev: The groups to measure on.
        on_progress: Called as the work goes on.
    """

    choice: Choice
    recommender: Recommender
    options: Any
    schedule: Schedule
    folder: Path
    train: Groups
    dev: Groups
    on_progress: Progress

    @property
    def examples(self) -> list[tuple[int, int]]:
        """The number of a group and the place of one of its cited papers, for each paper that a context cites."""
        return [(number, slot) for number, group in enumerate(self.train) for slot in range(len(group.gold))]

    def read(self, groups: Groups | Sequence[Group], doing: str = "") -> Iterator[tuple[Topic, list[Paper]]]:
        """The topics of some groups, each with the records of its cited papers; `doing` says what to tell of it."""
        done = 0
        for part in in_parts(groups, PROGRESS_EVERY):
            topics = self.recommender.topics(group.context for group in part)
            papers = self.recommender.store.papers({paper_id for group in part for paper_id in group.gold})
            for group, topic in zip(part, topics, strict=True):
                if doing:
                    self.on_progress(doing, done, len(groups))
                yield topic, [papers[paper_id] for paper_id in group.gold]
                done += 1

    def learnt(self, base: str | None = None) -> Learnt:
        """What the model learns from: the contexts of the groups, and what its base and the searched parts did."""
        contexts = ((group.context for group in side) for side in (self.train, self.dev))
        own = Learnt.of(*contexts) | self.recommender.learnt
        return own | learnt_by_part(base) if base else own

    def facts(self, record: TrainingRecord, *but: str) -> dict[str, Any]:
        """The manifest's fields about the training; `but` are options that are not among them."""
        options = {name: value for name, value in asdict(self.options).items() if name not in but}
        return {
            **self.choice.facts(),
            "groups": len(self.train),
            "dev_groups": len(self.dev),
            "index": self.recommender.manifest.fingerprint,
            "retrieval": self.recommender.recipe.changes(),
            **options,
            **asdict(self.schedule),
            **record.facts(),
        }


@contextlib.contextmanager
def group_training(
    choice: Choice,
    index: Path,
    system: Recipe | None,
    out: Path,
    options: Any,
    schedule: Schedule,
    k: int,
    device: str | None,
    on_progress: Progress,
    *,
    negatives: bool = True,
    identity: str = "",
) -> Iterator[GroupTraining]:
    """Begins or continues the training of the model `out`: its groups are mined into the folder of its checkpoints.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        index: The index that is searched.
        system: The system that finds candidates, without its rerankers; by default the best that the index supports.
            A ranker that has learnt from these contexts would order their candidates unlike those of other contexts.
        out: The model.
        options: How to train it, a dataclass.
        schedule: How long, and how fast.
        k: How many candidates each context gets.
        device: Where it is trained.
        on_progress: Called as the work goes on.
        negatives: Whether the contexts to learn from get candidates too.
        identity: The identity of what it starts from, where its name does not say.

    Raises:
        BuildError: Another process trains this model, or the disk is full.
        InputError, SourceError: As `mine_groups`.
    """
    recipe = (system or Recipe.load(default_system(index))).without_rerankers()
    with Recommender.open(index, recipe) as recommender:
        plan = {
            **choice.plan(),
            "index": recommender.manifest.fingerprint,
            "settings": recommender.recipe.to_json(),
            "options": TypeAdapter(Any).dump_python(asdict(options), mode="json"),
            "schedule": asdict(schedule),
            "device": torch_device(device).partition(":")[0],  # devices differ in precision
            "identity": identity,
        }
        with checkpoint_directory(out, plan) as folder:
            train, dev = mine_groups(choice, recommender, k, folder, on_progress, negatives=negatives)
            yield GroupTraining(choice, recommender, options, schedule, folder, train, dev, on_progress)


def citing_paper(context: Context) -> tuple[str, str]:
    """The key of a context's citing paper; a context without one counts as its own paper."""
    if context.citing_id:
        return "id", context.citing_id
    return ("key", context.citing_key) if context.citing_key else ("context", context.context_id)


def _group(context: Context, candidates: Sequence[Candidate] | None, store: PaperStore) -> Group | None:
    """A group, None if it cannot be used; `candidates` is None if nothing was searched."""
    gold = [paper_id for paper_id in context.cited_ids if paper_id != context.citing_id]
    known = store.years(gold)
    gold = [paper_id for paper_id in gold if paper_id in known]
    if not gold or (candidates is not None and all(candidate.paper_id in gold for candidate in candidates)):
        return None
    kept = (Candidate(one.paper_id, one.score, one.citance) for one in candidates or ())
    return Group(replace(context, cited_before=None), tuple(gold), tuple(kept))


def digest_of_file(path: Path) -> str:
    """The digest of a file that is learnt from; raises SourceError if it cannot be read."""
    try:
        return file_digest(path)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}", "Give a readable file.") from error
