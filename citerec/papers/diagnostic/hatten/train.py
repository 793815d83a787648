"""Training HAtten (Gu et al. 2022): triplets, with hard negatives that the model itself finds, anew every so often."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.contexts.learnt import LEARNT, folded
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.models.find import DEFAULT_ENCODER
from citerec.papers.diagnostic.hatten.encoder import HATTEN_DIRECTORY, Hatten, HattenManifest
from citerec.papers.diagnostic.hatten.network import Sizes
from citerec.papers.diagnostic.hatten.paragraphs import Document, paper_paragraphs, topic_paragraphs
from citerec.papers.diagnostic.hatten.pool import Pool, Rows
from citerec.papers.diagnostic.hatten.words import identity_of_words, read_words
from citerec.systems import Recipe
from citerec.train.base import Schedule
from citerec.train.groups import Choice, Groups, GroupTraining, group_training
from citerec.train.reranker import metrics_of
from citerec.version import __version__

if TYPE_CHECKING:
    import torch

METRIC = "recall@10"
DECAY = 1e-5
"""The weight decay of the paper."""

_CUTOFF = 10
_TOPICS_AT_ONCE = 128
_PAPERS_AT_ONCE = 2048
_EXAMPLES_AT_ONCE = 16
# Relevance: what is cited, or as alike as it; what the model finds; anything else.
_CITED, _HARD, _EASY = 2, 1, 0


@dataclass(frozen=True, slots=True)
class HattenOptions:
    """How to train a HAtten model; what differs from the paper is said in docs/retrieval.md.

    Attributes:
        words: A file of word vectors in GloVe's text format, or an encoder whose token embeddings are taken.
        vocabulary: How many words of a file are taken, at most.
        width: Numbers of a vector; by default as many as a word has.
        heads: Heads of each layer and of the pooling.
        feed_forward: Width of the inner layers.
        max_words: The first words of a paragraph that are read.
        dropout: Share of the numbers that are dropped.
        negatives: Hard negatives for each cited paper.
        easy: Negatives drawn from all papers, for each cited paper.
        candidates: How many of its first hits the hard negatives are drawn from.
        mine_every: Steps after which the papers are encoded anew for the search of hits; 5,000 in the paper.
        pool: How many papers of the index are searched, at most, beside the cited ones.
        alike: Whether a hard negative that shares as many words with the topic as the cited paper counts as relevant.
        graded: Whether a hard negative is to be above an easy one; else both are just not cited.
        margin: Margin of the triplet loss for a step of relevance.
        averaging: Share that the moving average of the weights keeps at each step, once there were many.
        batch: Cited papers per step.
    """

    words: str = DEFAULT_ENCODER
    vocabulary: int = 100_000
    width: int | None = None
    heads: int = 8
    feed_forward: int = 1024
    max_words: int = 512
    dropout: float = 0.1
    negatives: int = 3
    easy: int = 1
    candidates: int = 100
    mine_every: int = 500
    pool: int = 200_000
    alike: bool = True
    graded: bool = True
    margin: float = 0.05
    averaging: float = 0.999
    batch: int = 64


def train_hatten(
    choice: Choice,
    index: Path,
    out: Path,
    options: HattenOptions,
    schedule: Schedule,
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> HattenManifest:
    """Trains a HAtten model, in place of an earlier one at `out`. An interrupted training is resumed.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        index: The index with the cited papers.
        out: The directory of the model.
        options: What to learn, and how.
        schedule: How long, and how fast.
        device: Where it is trained; by default a GPU if there is one.
        on_progress: Called as the work goes on.
        note: Called with a line about each dev value.

    Raises:
        ModelError: There is no such encoder to take words from.
        SourceError: A file of contexts or of word vectors cannot be used.
        InputError: A line is not a context, or no cited paper is in the index, or something else is at `out`, or the
            heads do not divide the width.
        BuildError: The loss is no longer finite, or another process trains this model, or the disk is full.
    """
    from citerec.train.trainer import LossTrainer

    HATTEN_DIRECTORY.check_place(out)
    # Words find nothing here: the recommender has the records.
    system, identity = Recipe.load("bm25"), identity_of_words(options.words)
    with group_training(
        choice, index, system, out, options, schedule, 0, device, on_progress, identity=identity
    ) as groups:
        store = groups.recommender.store
        needed = {paper_id for side in (groups.train, groups.dev) for group in side for paper_id in group.gold}
        pool = Pool.of(store, needed, options.pool, choice.seed)
        words = read_words(options.words, _texts(store, pool, groups.train), options.vocabulary, on_progress)
        word = words.vectors.shape[1]
        same = {name: getattr(options, name) for name in ("heads", "feed_forward", "max_words", "dropout")}
        sizes = Sizes(word=word, width=options.width or word, **same)
        learner = _Learner(Hatten.begin(words, sizes, seed=schedule.seed, device=device), groups, pool, options)
        record = LossTrainer(learner, schedule, groups.folder, on_progress, note).fit()
        manifest = HattenManifest(
            citerec=__version__,
            words=options.words,
            training=groups.facts(record, "words"),
            dev={METRIC: record.best, f"{METRIC} before": record.values[0]},
        )
        with HATTEN_DIRECTORY.writing(out) as partial:
            groups.learnt(options.words).write(partial / LEARNT)
            learner.averaged.save(partial, manifest)
    return manifest


def _texts(store: PaperStore, pool: Pool, groups: Groups) -> Iterator[str]:
    """The texts whose words are taken: of all papers, and of the contexts to learn from."""
    for begin in range(0, len(pool.ids), _PAPERS_AT_ONCE):
        for paper in store.papers(pool.ids[begin : begin + _PAPERS_AT_ONCE]).values():
            yield from (text for text in (paper.title, paper.abstract) if text)
    for group in groups:
        yield from (group.context.text, group.context.before, group.context.after)


@dataclass
class _Learner:
    """A model, the moving average of its weights, and the groups from which it learns."""

    learning: Hatten
    groups: GroupTraining
    pool: Pool
    options: HattenOptions

    def __post_init__(self) -> None:
        from torch import nn, optim

        self.batch = self.options.batch
        self.examples = self.groups.examples
        self._random = np.random.default_rng((self.groups.schedule.seed, 2))
        now = self.learning.network
        self._average = optim.swa_utils.AveragedModel(now, avg_fn=self._averaged).requires_grad_(False)
        self.averaged = self.learning.with_network(self._average.module)
        # One module, so that a checkpoint holds both.
        self.model = nn.ModuleDict({"now": now, "average": self._average})
        self._age = self.options.mine_every  # steps since the vectors of the pool were made

    def _averaged(self, mean: "torch.Tensor", weights: "torch.Tensor", steps: Any) -> "torch.Tensor":
        """While there are few steps the average keeps less: it would be the beginning otherwise."""
        keeps = min(self.options.averaging, (1 + int(steps)) / (10 + int(steps)))
        return mean.lerp(weights, 1 - keeps)

    def losses(self, examples: Sequence[tuple[int, int]]) -> "Iterator[torch.Tensor]":
        self._average.update_parameters(self.learning.network)
        if self._age >= self.options.mine_every:
            self._encode_pool()
        self._age += 1
        groups = [self.groups.train[number] for number, _ in examples]
        topics = list(self.groups.recommender.topics(group.context for group in groups))
        cited = [[self.pool.rows[group.gold[slot]]] for group, (_, slot) in zip(groups, examples, strict=True)]
        negatives = self._negatives(topics, [group.gold for group in groups])
        rows = np.hstack([np.array(cited, np.int32), negatives])
        # No example's loss depends on the others: part by part, memory does not grow with the batch.
        for begin in range(0, len(examples), _EXAMPLES_AT_ONCE):
            part = slice(begin, begin + _EXAMPLES_AT_ONCE)
            yield self._losses(topics[part], rows[part]).sum() / len(examples)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Recall of the averaged weights on dev, among all papers of the pool under the leak rules."""
        self._encode_pool()
        groups, rankings = list(self.groups.dev), []
        for begin in range(0, len(groups), _TOPICS_AT_ONCE):
            part = groups[begin : begin + _TOPICS_AT_ONCE]
            topics = list(self.groups.recommender.topics(group.context for group in part))
            nearest = self.pool.nearest(self.pool.scores(self.averaged.encode_topics(topics), topics), _CUTOFF)
            rankings += [[self.pool.ids[place] for place in places if place >= 0] for places in nearest.tolist()]
        return metrics_of(groups, rankings, [METRIC])[METRIC], {}

    def _encode_pool(self) -> None:
        self.pool.encode(self.averaged, self.groups.on_progress)
        self._age = 0

    def _negatives(self, topics: Sequence[Topic], gold: Sequence[Sequence[str]]) -> Rows:
        """The negatives of some topics as rows of papers, (topics, negatives): hard ones first, then easy ones.

        The hard ones are drawn from what the averaged weights find; if there are too few, the rest is -1.
        """
        scores = self.pool.scores(self.averaged.encode_topics(topics), topics, gold)
        nearest = self.pool.nearest(scores, self.options.candidates)
        # Hits that are there come first in a random order.
        order = np.argsort(np.where(nearest < 0, 2.0, self._random.random(nearest.shape)), axis=1)
        hard = np.take_along_axis(nearest, order, 1)[:, : self.options.negatives]
        easy = self.pool.drawn(np.isfinite(scores), self.options.easy, self._random)
        width = self.options.negatives - hard.shape[1]
        return np.hstack([np.pad(hard, ((0, 0), (0, width)), constant_values=-1), easy])

    def _losses(self, topics: Sequence[Topic], rows: Rows) -> "torch.Tensor":
        """The loss of each example, (examples,), from rows of papers: cited, hard, easy; -1 is none."""
        import torch

        used = np.unique(rows[rows >= 0])
        ids = [self.pool.ids[row] for row in used.tolist()]
        records = self.groups.recommender.store.papers(ids)
        papers = [paper_paragraphs(records[paper_id]) for paper_id in ids]
        queries = [topic_paragraphs(topic) for topic in topics]
        vectors = self.learning.vectors([*queries, *papers])
        places = np.searchsorted(used, np.maximum(rows, used[0]))
        chosen = vectors[len(queries) :][torch.from_numpy(places).to(vectors.device)]
        scores = (vectors[: len(queries), None] * chosen).sum(-1)
        relevance = relevances(queries, papers, places, self.options)
        relevance[rows < 0] = np.nan
        return triplet_loss(scores, relevance, self.options.margin)


def triplet_loss(scores: "torch.Tensor", relevance: np.ndarray[Any, Any], margin: float) -> "torch.Tensor":
    """The mean loss of each example over all pairs of papers of which one is more relevant, (examples,).

    Args:
        scores: Cosines, (examples, papers).
        relevance: Steps of relevance, (examples, papers); a paper with NaN is in no pair.
        margin: By how much a paper is to score higher, for each step that it is more relevant.
    """
    import torch

    levels = torch.from_numpy(relevance).to(scores.device)
    gap = levels[:, :, None] - levels[:, None, :]
    losses = torch.relu(margin * gap - scores[:, :, None] + scores[:, None, :])
    # NaN is neither above nor below anything.
    pairs = gap > 0
    return losses.where(pairs, 0).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)


def relevances(
    queries: Sequence[Document], papers: Sequence[Document], places: np.ndarray[Any, Any], options: HattenOptions
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """How relevant the papers of each example are to its query, (examples, papers), in steps of the margin.

    The cited paper: 2. A hard negative: 1 if `graded` is set, else 0; or 2, if `alike` is set and the Jaccard
    similarity of its words with those of the query is at least that of the cited paper's. A cited paper without a
    common word says nothing about the others. An easy negative: 0.

    Args:
        queries: The paragraphs of the queries.
        papers: The paragraphs of the papers.
        places: The papers of each example as in a step: cited, hard, easy; (examples, papers).
        options: How many are hard, and whether the similarity counts.
    """
    relevance = np.full(places.shape, _EASY, np.float32)
    relevance[:, 0] = _CITED
    relevance[:, 1 : 1 + options.negatives] = _HARD if options.graded else _EASY
    if options.alike:
        words = [_words(paper) for paper in papers]
        for row, query in enumerate(queries):
            own = _words(query)
            others = [words[place] for place in places[row, : 1 + options.negatives]]
            alike = [len(own & other) / max(1, len(own | other)) for other in others]
            for column, similarity in enumerate(alike):
                if similarity >= alike[0] > 0:
                    relevance[row, column] = _CITED
    return relevance


def _words(document: Document) -> set[str]:
    return {word for _, text in document for word in folded(text).split()}
