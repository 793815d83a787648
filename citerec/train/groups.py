"""What is learnt from and measured on, and the groups of encoders and rerankers.

A group is a context, the papers it cites, and other papers that the search finds.
"""

import contextlib
import functools
import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.callouts import find_callouts
from citerec.contexts.provenance import Learnt, digest, folded, learnt_by_part
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest, hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import Kind
from citerec.index.manifest import open_store
from citerec.recommend import Recommender
from citerec.records import MARKER, NO_FILTERS, Context, Filters, Paper
from citerec.rerank.ltr import FeatureRows, features_of
from citerec.retrieve.base import Candidate, Candidates, Retriever
from citerec.retrieve.opened import OpenIndex
from citerec.retrieve.words import WordSettings, WordsRetriever
from citerec.settings import Natural, Positive, Share
from citerec.systems import Recipe, default_system
from citerec.train.base import How, Schedule, Training, TrainingRecord, training

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
    dev_share: Share = 0.1
    dev_limit: Positive = 300
    limit: Positive | None = None
    seed: Natural = 0

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

    def draw(
        self, limit: int, items: Iterable[Item], name: Callable[[Any], str] = attrgetter("context_id")
    ) -> list[Item]:
        """At most `limit` of some items, sampled by the seed and their names: of contexts, their ids."""
        return heapq.nsmallest(limit, items, key=lambda item: hash_sample(self.seed, name(item)))

    def sides(
        self,
        read: Callable[[Path], Iterable[Item]],
        papers: Callable[[Item], Sequence[str]],
        name: Callable[[Item], str] = attrgetter("context_id"),
    ) -> tuple[list[Item], list[Item]]:
        """What to learn from, and what to measure on. No paper is on both sides.

        Args:
            read: Reads a file.
            papers: The keys of the papers that an item is about, one at least; by the first it is held out.
            name: The name of an item, for samples.

        Raises:
            SourceError, InputError: As `read`.
            InputError: One side is empty.
        """
        measured: list[Item] = []
        for item in read(self.dev or self.path):
            if self.dev or hash_sample(self.seed, papers(item)[0]) < self.dev_share * 2**64:
                measured.append(item)
        held_out = {paper for item in measured for paper in papers(item)}
        learnt = [item for item in read(self.path) if held_out.isdisjoint(papers(item))]
        if not (learnt and measured):
            fault = f"no paper of {self.path} is left to {'measure on' if learnt else 'learn from'}"
            raise InputError(fault, "Change dev_share, or give --dev FILE with other papers.")
        if self.limit is not None:
            learnt = self.draw(self.limit, learnt, name)
        return learnt, self.draw(self.dev_limit, measured, name)


def choose(
    choice: Choice, read: Callable[[Path], Iterable[Context]] | None = None
) -> tuple[list[Context], list[Context]]:
    """The contexts to learn from, and the contexts to measure on; `Choice.sides`, by citing paper."""
    read = read or functools.partial(read_contexts, cited=True)
    return choice.sides(read, lambda context: [citing_paper(context)])


def citing_paper(context: Context) -> str:
    """The key of a context's citing paper; a context without one counts as its own paper."""
    if context.citing_id:
        return f"id\0{context.citing_id}"
    return f"key\0{context.citing_key}" if context.citing_key else f"context\0{context.context_id}"


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


def mine_groups(
    choice: Choice, recommender: Recommender, k: int, on_progress: Progress, *, negatives: bool = True
) -> tuple[list[Group], list[Group]]:
    """The groups to learn from and those to measure on; contexts that cite nothing of the index are left out.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        recommender: Finds candidates.
        k: How many candidates each context gets.
        on_progress: Called as the work goes on.
        negatives: Whether the contexts to learn from get candidates too; without, they are not searched.

    Raises:
        SourceError: A file cannot be read.
        InputError: A line is not a context with cited papers, or no cited paper of a side is in the index.
    """
    k = min(k, recommender.manifest.counts.papers)
    sides: dict[str, list[Group]] = {"train": [], "dev": []}
    for (name, groups), contexts, depth in zip(sides.items(), choose(choice), (k if negatives else 0, k), strict=True):
        topics = recommender.topics(contexts)
        searched = recommender.candidates(topics, depth) if depth else ((topic, None) for topic in topics)
        for done, (topic, candidates) in enumerate(searched):
            if done % PROGRESS_EVERY == 0:
                on_progress(f"searching, {name}", done, len(contexts))
            if group := _group(topic.context, candidates, recommender.store):
                groups.append(group)
        if not groups:
            fault = f"no context of {choice.path} for {name} cites a paper of {recommender.path}, with others beside it"
            raise InputError(fault, "Give an index that holds the cited papers: cited_ids must be its paper ids.")
    return sides["train"], sides["dev"]


def _group(context: Context, candidates: Sequence[Candidate] | None, store: PaperStore) -> Group | None:
    """A group, None if it cannot be used; `candidates` is None if nothing was searched."""
    known = store.years(context.cited_ids)
    gold = tuple(paper_id for paper_id in context.cited_ids if paper_id in known and paper_id != context.citing_id)
    if not gold or (candidates is not None and all(candidate.paper_id in gold for candidate in candidates)):
        return None
    kept = tuple(Candidate(one.paper_id, one.score, one.citance) for one in candidates or ())
    return Group(replace(context, cited_before=None), gold, kept)


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

    def read(self, groups: Sequence[Group], doing: str = "") -> Iterator[tuple[Topic, list[Paper]]]:
        """The topics of some groups, each with the records of its cited papers; `doing` says what to tell of it."""
        for done, group in enumerate(groups):
            if doing and done % PROGRESS_EVERY == 0:
                self.on_progress(doing, done, len(groups))
            (topic,) = self.recommender.topics([group.context])
            papers = self.recommender.store.papers(group.gold)
            yield topic, [papers[paper_id] for paper_id in group.gold]

    def learnt(self, base: str | None = None) -> Learnt:
        """What the model learns from: the contexts of the groups, and what its base and the searched parts did."""
        contexts = ((group.context for group in side) for side in (self.train, self.dev))
        own = Learnt.of(*contexts) | self.recommender.learnt
        return own | learnt_by_part(base) if base else own

    def facts(self, record: TrainingRecord, *but: str) -> dict[str, Any]:
        """The manifest's fields about the training; `but` are options that are not among them."""
        return {
            **self.choice.facts(),
            "groups": len(self.train),
            "dev_groups": len(self.dev),
            "index": self.recommender.manifest.fingerprint,
            "retrieval": self.recommender.recipe.changes(),
            **super().facts(record, *but),
        }


@contextlib.contextmanager
def group_training(
    kind: Kind,
    choice: Choice,
    index: Path,
    system: Recipe | None,
    out: Path,
    options: Any,
    schedule: Schedule,
    k: int,
    *,
    negatives: bool = True,
    identity: str = "",
    **how: Unpack[How],
) -> Iterator[GroupTraining]:
    """Begins or continues the training of the model `out`, on groups that are mined first.

    Args:
        kind: The kind of model.
        choice: Which contexts to learn from, and which to measure on.
        index: The index that is searched.
        system: The system that finds candidates, without its rerankers; by default the best that the index supports.
            A ranker that has learnt from these contexts would order their candidates unlike those of other contexts.
        out: The model.
        options: How to train it, a dataclass.
        schedule: How long, and how fast.
        k: How many candidates each context gets.
        negatives: Whether the contexts to learn from get candidates too.
        identity: The identity of what it starts from, where its name does not say.
        how: The device, and what is called as the work goes on.

    Raises:
        BuildError, InputError: As `training`.
        InputError, SourceError: As `mine_groups`.
    """
    recipe = (system or Recipe.load(default_system(index))).without_rerankers()
    with Recommender.open(index, recipe) as recommender:
        plan = {
            **choice.plan(),
            "index": recommender.manifest.fingerprint,
            "settings": recommender.recipe.to_json(),
            "identity": identity,
        }
        with training(kind, out, options, schedule, plan, **how) as own:
            train, dev = mine_groups(choice, recommender, k, own.on_progress, negatives=negatives)
            yield GroupTraining(**vars(own), choice=choice, recommender=recommender, train=train, dev=dev)


def digest_of_file(path: Path) -> str:
    """The digest of a file that is learnt from; raises SourceError if it cannot be read."""
    try:
        return file_digest(path)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}", "Give a readable file.") from error


OWN = "the citing sentences of the index"
"""What a manifest calls them."""

LEAST = 500
"""Citing sentences under which a ranker is not learnt from an index: docs/train.md has the figures."""

_SPARE = 4  # sentences read for each that is asked for: some have no cited paper among the candidates

_MIX = 0x9E3779B97F4A7C15  # of splitmix64: rows that differ by one get unlike numbers


class View(NamedTuple):
    """A way to see contexts: whether their draft is known, and for which share of the papers citances are withheld."""

    in_draft: bool
    withheld: float


_BY_CITATIONS = ("draft_cocited", "draft_coupled")  # signals that an index without citing sentences lacks
_PLAIN, _HALF, _IN_DRAFT = View(False, 0.0), View(False, 0.5), View(True, 0.0)
_WITHOUT, _IN_DRAFT_WITHOUT = View(False, 1.0), View(True, 1.0)

# The views of the first context, of the second, and so on, in turns.
_OF_INDEX_WITHOUT_CITANCES = ((_PLAIN, _IN_DRAFT),)
_OF_INDEX = (_PLAIN, _HALF), (_PLAIN, _IN_DRAFT)
_PORTABLE = (_WITHOUT, _IN_DRAFT_WITHOUT, _PLAIN), (_WITHOUT, _IN_DRAFT_WITHOUT, _HALF)


class Example(NamedTuple):
    """A context in one view.

    Attributes:
        features: Of its candidates, (candidates, len(FEATURES)).
        cited: 1 for each cited one, (candidates,); one at least.
    """

    features: FeatureRows
    cited: NDArray[np.int8]


def examples_of(
    recommender: Recommender,
    contexts: Sequence[Context],
    depth: int,
    seed: int,
    *,
    portable: bool,
    doing: str = "searching",
    on_progress: Progress = no_progress,
) -> list[Example]:
    """The examples of some contexts; those whose cited papers are not among the candidates are left out.

    Args:
        recommender: Finds candidates, with the retriever `words`.
        contexts: Contexts with cited papers.
        depth: How many candidates each gets.
        seed: Seed of what is withheld, and of drafts.
        portable: Whether the ranker is for other indexes, which may have no citances at all.
        doing: What is being done, for `on_progress`.
        on_progress: Called as the work goes on.
    """
    turns: tuple[tuple[View, ...], ...] = _OF_INDEX_WITHOUT_CITANCES
    if recommender.manifest.counts.citances:
        turns = _PORTABLE if portable else _OF_INDEX
    seen = defaultdict[View, list[Context]](list)
    for views, context, draft in zip(itertools.cycle(turns), contexts, drafted(contexts, seed)):
        for view in views:
            if (one := draft if view.in_draft else replace(context, cited_before=None)) is not None:
                seen[view].append(one)
    k, whole, done = min(depth, recommender.manifest.counts.papers), sum(map(len, seen.values())), itertools.count()
    examples = []
    for view in sorted(seen):

        def changed(retriever: Retriever, share: float = view.withheld) -> Retriever:
            if share and isinstance(retriever, WordsRetriever):
                return WithheldCitances(retriever.index, retriever.settings, share, seed)
            return retriever

        system = recommender.with_retrievers(changed)
        for topic, candidates in system.candidates(system.topics(seen[view]), k):
            on_progress(doing, next(done), whole)
            cited = np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)).astype(np.int8)
            if cited.any():
                uncited = hidden(topic, candidates.rows, view.withheld, seed)
                by_citations = {name: np.where(uncited, np.nan, candidates.signal(name)) for name in _BY_CITATIONS}
                candidates = replace(candidates, signals={**candidates.signals, **by_citations})
                examples.append(Example(features_of(topic, candidates, uncited), cited))
    return examples


class WithheldCitances(WordsRetriever):
    """A retriever of words whose citing sentences are withheld for a share of the papers, other ones for each context.

    Args:
        index: The index.
        settings: How they are searched.
        share: The share of the papers.
        seed: Seed of the choice.
    """

    def __init__(self, index: OpenIndex, settings: WordSettings, share: float = 0.5, seed: int = 0) -> None:
        super().__init__(index, settings)
        self._share, self._seed = share, seed

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None, *, sort: str = "relevance"
    ) -> Candidates:
        """The candidates of the retriever, without what is withheld."""
        candidates = super().search(topic, k, filters, sort=sort)
        if "citance" not in candidates.signals:
            return candidates
        without = hidden(topic, candidates.rows, self._share, self._seed)
        rest = replace(
            candidates,
            scores=np.where(without, candidates.signals["bm25"], candidates.scores),
            signals={
                name: np.where(without, np.nan, values) if name.startswith("citance") else values
                for name, values in candidates.signals.items()
            },
            citances=tuple(replace(one, keys=np.where(without, -1, one.keys)) for one in candidates.citances),
        )
        return rest.taken(np.flatnonzero(~np.isnan(rest.scores))).in_order()


def hidden(topic: Topic, rows: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """For which papers the citing sentences are withheld from a context, (rows,)."""
    number = np.uint64(hash_sample(seed, topic.context.context_id))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + number) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
    return (mixed >> np.uint64(32)).astype(np.float64) < share * 2.0**32


def drafted(contexts: Sequence[Context], seed: int) -> Iterator[Context | None]:
    """Each context as if it stood in a draft that cites some of what its paper cites elsewhere; None if nothing.

    Contexts that say what the same text cited before stay as they are. For the others some of the other contexts of
    their citing paper are drawn, in an order that depends on the seed only.
    """
    of_paper = defaultdict(list)
    for context in contexts:
        of_paper[citing_paper(context)].append(context)
    for context in contexts:
        if context.cited_before is not None:
            yield context
            continue
        others = [one for one in of_paper[citing_paper(context)] if one.context_id != context.context_id]
        others.sort(key=lambda one: hash_sample(seed, context.context_id, one.context_id))
        some = others[: hash_sample(seed, "draft", context.context_id) % (len(others) + 1)]
        before = tuple(paper_id for one in some for paper_id in one.cited_ids)
        yield replace(context, cited_before=before) if before else None


def own_contexts(index: Path, limit: int | None, seed: int) -> list[Context]:
    """The citing sentences of an index as contexts, in order of citing paper.

    A sentence that cites several papers is one context. Of many, those of a sample of citing papers are taken.

    Raises:
        InputError: There are too few.
    """
    contexts: dict[tuple[str, str], Context] = {}
    with contextlib.closing(open_store(index)) as store:
        sentences = store.counts().citances
        share = 1.0 if limit is None else min(1.0, _SPARE * limit / max(sentences, 1))
        for one in store.searchable_citances():
            if hash_sample(seed, "own", one.citing_id) >= share * 2**64 or one.cited.paper_id == one.citing_id:
                continue
            if (text := marked(one.text, one.cited.year)) is None:
                continue
            key = one.citing_id, digest("text", folded(text))
            own = contexts.get(key) or Context(
                text=text, context_id="-".join(key), citing_id=one.citing_id, citing_year=one.citing_year
            )
            contexts[key] = replace(own, cited_ids=tuple(dict.fromkeys((*own.cited_ids, one.cited.paper_id))))
    if len(contexts) < share * LEAST:
        raise InputError(
            f"too few of the {sentences:,} citing sentences of the index show their citation: {LEAST} are needed",
            "Add some with `citerec index add INDEX --citances FILE`, or give contexts: --contexts FILE. The default "
            "system needs neither.",
        )
    return [contexts[key] for key in sorted(contexts)]


def marked(text: str, year: int | None) -> str | None:
    """A citing sentence with `<REF>` in place of its citation of a paper: the sentences of S2AG have none.

    It is the only citation of the sentence, or the only one with the year of the paper; None if neither can be told.
    """
    if MARKER in text:
        return text if text.count(MARKER) == 1 else None
    citations = find_callouts(text)
    if len(citations) > 1:
        citations = [one for one in citations if str(year) in text[one.start : one.end]]
    return f"{text[: citations[0].start]}{MARKER}{text[citations[0].end :]}" if len(citations) == 1 else None
