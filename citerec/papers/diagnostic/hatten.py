"""HAtten (Gu, Gao and Hahnloser, ECIR 2022): its network and its training.

Words become paragraphs, paragraphs a vector of length one; both levels are of one shape. Only the upper level knows the
types of paragraphs. Word vectors stay as they are. It learns from triplets, with hard negatives that the model itself
finds again every so often.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from safetensors.torch import save_model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor, nn, optim
from torch.nn.utils.rnn import pad_sequence

from citerec.contexts.provenance import folded
from citerec.contexts.topic import LeakRules, Topic
from citerec.corpus.reading import read_failures
from citerec.corpus.store import PaperStore
from citerec.errors import InputError, SourceError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress
from citerec.files.resume import hash_sample
from citerec.files.writing import Kind
from citerec.models.encoder import Reading, batches_by_length
from citerec.models.find import DEFAULT_ENCODER, find_model, model_identity
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, open_sentence_transformer, torch_device
from citerec.papers.diagnostic.ncn import WEIGHTS, open_network
from citerec.records import Paper
from citerec.settings import Amount, PartSettings, Positive, Share
from citerec.train.groups import Choice, GroupTraining, How, Learner, Schedule, group_training, mean_scores, write_model

HATTEN_DIRECTORY = Kind(name="HAtten model", kind="citerec-hatten", manifest=MANIFEST, names=MODEL_FILES | {MANIFEST})
_TOKENIZER = "tokenizer.json"

_PART = 4096  # documents whose words are looked up at once
_WORDS_AT_ONCE = {"cpu": 8192, "cuda": 131_072}
_ROWS_AT_ONCE = 1024
# The wavelengths of the positions, from 2π to 10,000 · 2π (Vaswani et al. 2017).
_LONGEST_WAVE = 10_000.0

TYPES = ("title", "abstract", "context")
"""The types of paragraphs. A title is of one type, whether of the citing paper or of a candidate."""

Document = list[tuple[int, str]]
"""The paragraphs of a topic or of a paper: the number of the type, and the text."""


class Sizes(PartSettings):
    """The sizes of a network, those of the paper by default.

    Attributes:
        width: Numbers of a word's vector, of each layer, and of the result.
        heads: Heads of each layer and of the pooling; they divide the width.
        feed_forward: Width of the inner layers.
        max_words: The first words of a paragraph that are read.
        dropout: Share of the numbers that are dropped in training.
    """

    width: int = Field(ge=1)
    heads: int = Field(default=8, ge=1)
    feed_forward: int = Field(default=1024, ge=1)
    max_words: int = Field(default=512, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)


class HattenManifest(ModelManifest):
    """`manifest.json` of a model: its sizes, whose word vectors it has, its training, and dev values."""

    kind: Literal["citerec-hatten"] = "citerec-hatten"
    sizes: Sizes
    words: str = ""


def topic_paragraphs(topic: Topic) -> Document:
    """The citing paper's title and abstract, as far as they are known, and the passage without its marker."""
    return _present(topic.citing_title, topic.citing.abstract if topic.citing else None, topic.passage)


def paper_paragraphs(paper: Paper) -> Document:
    """The title and the abstract of a paper, as far as they are known."""
    return _present(paper.title, paper.abstract)


def _present(*texts: str | None) -> Document:
    return [(number, text) for number, text in enumerate(texts) if text]


class Level(nn.Module):
    """A transformer layer, and multi-head pooling (Liu and Lapata, ACL 2019): the attention of one learnt query.

    Each head weighs the places by a linear function of their vectors, and sums its own share of the width.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, heads = sizes.width, sizes.heads
        self.layer = nn.TransformerEncoderLayer(width, heads, sizes.feed_forward, sizes.dropout, batch_first=True)
        self.query = nn.Parameter(torch.randn(width))
        self.pooling = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """(rows, length, width) to (rows, width), of the places where the mask is true."""
        values = self.layer(values, src_key_padding_mask=~mask)
        query = self.query.expand(len(values), 1, -1)
        pooled: Tensor = self.pooling(query, values, values, key_padding_mask=~mask, need_weights=False)[0]
        return pooled[:, 0]


class Hatten(nn.Module):
    """Turns topics and papers into vectors of length one. Safe to call from several threads.

    Args:
        sizes: Its sizes.
        tokenizer: Takes words out of texts.
        words: The vectors of the words, (words, `sizes.width`); by default none yet.

    Attributes:
        dimension: Numbers of a vector.
        max_tokens: How many words of a paragraph it reads.
        identity: Its `model_identity`; empty for one that is trained.

    Raises:
        InputError: The heads do not divide the width.
    """

    identity = ""

    def __init__(self, sizes: Sizes, tokenizer: Tokenizer, words: "NDArray[np.float32] | None" = None) -> None:
        width, heads = sizes.width, sizes.heads
        if width % heads:
            raise InputError(f"{heads} heads do not divide a width of {width}", "Give another number: -c heads=N")
        super().__init__()
        self.sizes, self.dimension, self.max_tokens = sizes, width, sizes.max_words
        self.tokenizer = tokenizer
        tokenizer.enable_truncation(sizes.max_words)
        self.words = nn.Embedding(tokenizer.get_vocab_size(), width).requires_grad_(False)
        if words is not None:
            self.words.weight.copy_(torch.from_numpy(words))
        self.types = nn.Embedding(len(TYPES), width)
        self.lower, self.upper = Level(sizes), Level(sizes)

    @staticmethod
    def open(name: str, *, device: str | None = None) -> "Hatten":
        """Opens a trained model: its folder, also with a digest (`find_model`). Else as `open_network`."""
        folder = Path(find_model(name))

        def make(manifest: HattenManifest) -> Hatten:
            return Hatten(manifest.sizes, Tokenizer.from_file(str(folder / _TOKENIZER)))

        network = open_network(folder, HattenManifest, make, "HAtten", device)
        network.identity = model_identity(str(folder))
        return network

    def save(self, folder: Path) -> None:
        """Writes the tokenizer and the weights into a folder; the word vectors are among the weights."""
        self.tokenizer.save(str(folder / _TOKENIZER))
        save_model(self, str(folder / WEIGHTS))

    def encode_papers(self, papers: Sequence[Paper]) -> NDArray[np.float32]:
        """The vectors of some papers, (papers, dimension)."""
        return self.encode([paper_paragraphs(paper) for paper in papers])

    def encode_topics(self, topics: Sequence[Topic]) -> NDArray[np.float32]:
        """The vectors of some topics, (topics, dimension)."""
        return self.encode([topic_paragraphs(topic) for topic in topics])

    @torch.inference_mode()
    def encode(self, documents: Sequence[Document]) -> NDArray[np.float32]:
        """The vectors of some documents, (documents, dimension). One without a word has a vector too."""
        self.eval()
        parts = [self(part).cpu().numpy() for part in in_parts(documents, _PART)]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *parts])

    def forward(self, documents: Sequence[Document]) -> Tensor:
        """The vectors of some documents, with gradients: for training."""
        device = self.types.weight.device
        texts = [text for document in documents for _, text in document]
        encoded = iter(self.tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        read = [[(number, ids) for number, _ in document if (ids := next(encoded).ids)] for document in documents]
        # A document without any word has the first word of all, as a title.
        tokens = [document or [(0, [0])] for document in read]
        texts_of = [torch.tensor(ids) for document in tokens for _, ids in document]
        paragraphs = torch.empty(len(texts_of), self.dimension, device=device)
        at_once = _WORDS_AT_ONCE.get(device.type, 8192)
        for rows in batches_by_length([*map(len, texts_of)], at_once, _ROWS_AT_ONCE):
            words, mask = (part.to(device) for part in padded([texts_of[row] for row in rows]))
            values = self.words(words) + positions(words.shape[1], self.dimension).to(device)
            paragraphs[rows] = self.lower(values, mask)
        types = torch.tensor([number for document in tokens for number, _ in document], device=device)
        of_documents = list(torch.split(paragraphs + self.types(types), [*map(len, tokens)]))
        return nn.functional.normalize(self.upper(*padded(of_documents)), dim=1)


def padded(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Rows of several lengths as one tensor, (rows, longest, …), and where they are in it, (rows, longest)."""
    mask = [torch.ones(len(row), dtype=torch.bool, device=row.device) for row in rows]
    return pad_sequence(rows, batch_first=True), pad_sequence(mask, batch_first=True)


def positions(length: int, width: int) -> Tensor:
    """Sinusoidal positions, (length, width): sines in the first half, cosines in the second (Vaswani et al. 2017)."""
    half = -(-width // 2)
    angles = torch.arange(length)[:, None] * _LONGEST_WAVE ** (-torch.arange(half) / half)
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :width]


_UNKNOWN = "[UNK]"
_PROGRESS_EVERY = 10_000

Vectors = NDArray[np.float32]


def read_words(name: str, texts: Iterable[str], most: int, on_progress: Progress) -> "tuple[Tokenizer, Vectors]":
    """A tokenizer, and the vector of each of its words, (words, dimension).

    The vectors are scaled to a mean square of 1: positions, which are added to them, have 1/2.

    Args:
        name: A file in GloVe's text format; else an encoder by folder or name, whose token embeddings are taken.
        texts: The texts whose words are wanted; only read for a file, where all other words are left out.
        most: The largest number of words taken from a file, the most frequent of the texts.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read, is not in this format, or has no word of the texts.
        ModelError: There is no such model, or it cannot be loaded.
    """
    is_file = Path(name).is_file()
    tokenizer, vectors = _of_file(Path(name), texts, most, on_progress) if is_file else _of_encoder(name)
    return tokenizer, (vectors / max(float(np.sqrt(np.mean(vectors**2))), 1e-12)).astype(np.float32)


def _of_encoder(name: str) -> "tuple[Tokenizer, Vectors]":
    model = open_sentence_transformer(name, "cpu")
    transformer: Any = model[0]
    tokenizer = Tokenizer.from_str(Reading.of(name, model).tokenizer)
    tokenizer.no_padding()
    vectors = transformer.auto_model.get_input_embeddings().weight.detach().numpy()
    return tokenizer, vectors[: tokenizer.get_vocab_size()]


def _of_file(path: Path, texts: Iterable[str], most: int, on_progress: Progress) -> "tuple[Tokenizer, Vectors]":
    """The words of some texts that a file has, and for all others the mean of their vectors."""
    tokenizer = Tokenizer(models.WordLevel(unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer keeps the most frequent words, of equal ones the first in order.
    trainer = trainers.WordLevelTrainer(vocab_size=most + 1, special_tokens=[_UNKNOWN], show_progress=False)
    tokenizer.train_from_iterator(iter(texts), trainer)
    vector_of = dict(glove_vectors(path, set(tokenizer.get_vocab()) - {_UNKNOWN}, on_progress))
    if not vector_of:
        raise SourceError(f"{path} has none of the words of these texts", "Give word vectors of their language.")
    words = sorted(vector_of)
    tokenizer.model = models.WordLevel({word: at for at, word in enumerate([_UNKNOWN, *words])}, unk_token=_UNKNOWN)
    vectors = np.stack([vector_of[word] for word in words])
    return tokenizer, np.concatenate([vectors.mean(axis=0, keepdims=True), vectors])


def glove_vectors(path: Path, wanted: set[str], on_progress: Progress) -> Iterator[tuple[str, Vectors]]:
    """The vectors of those words of a file that are wanted, in its order; the file is streamed.

    A line is a word and its numbers, between single spaces. A first line with two fields, the head of word2vec's
    format, is passed over.

    Raises:
        SourceError: The file cannot be read, or a line has too few numbers, or what stands there is no number.
    """
    dimension = 0
    try:
        with read_failures(path), path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                # A word with spaces in it, of which some files have a few, is in no text.
                word, *numbers = line.rstrip().rsplit(" ", dimension or -1)
                if number % _PROGRESS_EVERY == 0:
                    on_progress("reading word vectors", number, 0)
                if number == 1 and len(numbers) == 1:
                    continue
                dimension = dimension or len(numbers)
                if word in wanted:
                    yield word, np.array(numbers, dtype=np.float32).reshape(dimension)
    except ValueError as error:
        fault = f"line {number:,} of {path} is not a word and {dimension} numbers"
        raise SourceError(fault, "Give a file in GloVe's text format, whole and unpacked.") from error


METRIC = "recall@10"
DECAY = 1e-5
"""The weight decay of the paper."""

_CUTOFF = 10
_TOPICS_AT_ONCE = 128
_PAPERS_AT_ONCE = 2048
_EXAMPLES_AT_ONCE = 16
# In each row this many papers are drawn for one easy negative: few of them are forbidden.
_TRIES = 16
# Relevance: what is cited, or as alike as it; what the model finds; anything else.
_CITED, _HARD, _EASY = 2, 1, 0

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HattenOptions:
    """How to train a HAtten model; what differs from the paper is said in docs/retrieval.md.

    Attributes:
        words: A file of word vectors in GloVe's text format, or an encoder whose token embeddings are taken.
        vocabulary: How many words of a file are taken, at most.
        heads: Heads of each layer and of the pooling.
        feed_forward: Width of the inner layers.
        max_words: The first words of a paragraph that are read.
        dropout: Share of the numbers that are dropped.
        negatives: Hard negatives for each cited paper.
        easy: Negatives drawn from all papers, for each cited paper.
        candidates: How many of its first hits the hard negatives are drawn from.
        mine_every: Steps after which the papers are encoded anew for the search of hits; 5,000 in the paper.
        pool: How many papers of the index are searched, at most, beside the cited ones.
        graded: Whether a hard negative is to be above an easy one; else both are just not cited.
        margin: Margin of the triplet loss for a step of relevance.
        averaging: Share that the moving average of the weights keeps at each step, once there were many.
        batch: Cited papers per step.
    """

    words: str = DEFAULT_ENCODER
    vocabulary: Positive = 100_000
    heads: Positive = 8
    feed_forward: Positive = 1024
    max_words: Positive = 512
    dropout: Share = 0.1
    negatives: Positive = 3
    easy: Positive = 1
    candidates: Positive = 100
    mine_every: Positive = 500
    pool: Positive = 200_000
    graded: bool = True
    margin: Amount = 0.05
    averaging: Share = 0.999
    batch: Positive = 64


def train_hatten(
    choice: Choice, index: Path, out: Path, options: HattenOptions, schedule: Schedule, **how: Unpack[How]
) -> HattenManifest:
    """Trains a HAtten model, in place of an earlier one at `out`. An interrupted training is resumed.

    Arguments and errors are those of `citerec.train_reranker`; the model itself finds the negatives, so no system is
    needed.

    Raises:
        SourceError: A file of word vectors cannot be used.
        InputError: The heads do not divide the width.
    """
    file = Path(options.words)
    identity = file if file.is_file() else model_identity(find_model(options.words))
    with group_training(HATTEN_DIRECTORY, choice, index, out, options, schedule, (0, 0), identity, **how) as groups:
        needed = {paper_id for side in (groups.train, groups.dev) for group in side for paper_id in group.gold}
        pool = Pool(groups.recommender.store, needed, options.pool, choice.seed)
        tokenizer, words = read_words(options.words, _texts(groups, pool), options.vocabulary, groups.on_progress)
        same = {name: getattr(options, name) for name in ("heads", "feed_forward", "max_words", "dropout")}
        sizes = Sizes(width=words.shape[1], **same)
        torch.manual_seed(schedule.seed)
        learner = _Learner(Hatten(sizes, tokenizer, words).to(torch_device(how.get("device"))), groups, pool, options)
        record = groups.fit(Learner(learner.model, options.batch, groups.examples, learner.losses, learner.evaluate))
        manifest = HattenManifest(
            sizes=sizes,
            words=options.words,
            training=groups.facts(record, "words"),
            dev={METRIC: record.best, f"{METRIC} before": record.values[0]},
        )
        return write_model(HATTEN_DIRECTORY, out, manifest, groups.provenance(options.words), learner.averaged.save)


def _texts(groups: GroupTraining, pool: "Pool") -> Iterator[str]:
    """The texts whose words are taken: of all papers, and of the contexts to learn from."""
    for part in in_parts(pool.ids, _PAPERS_AT_ONCE):
        for paper in groups.recommender.store.papers(part).values():
            yield from (text for text in (paper.title, paper.abstract) if text)
    for group in groups.train:
        yield from (group.context.text, group.context.before, group.context.after)


class Pool:
    """The papers among which a model is trained and measured, with the vectors that it gives them now.

    Papers that have a text: all of a store, or a sample of `most` by the seed; and those that are needed.

    Attributes:
        ids: Their ids, in order.
        rows: The row of each id.
    """

    def __init__(self, store: PaperStore, needed: Collection[str], most: int, seed: int) -> None:
        self._store = store
        with_text = (paper.paper_id for paper in store.all_papers() if paper.title or paper.abstract)
        drawn = heapq.nsmallest(most, with_text, key=lambda paper_id: hash_sample(seed, "pool", paper_id))
        self.ids = sorted({*needed, *drawn})
        self.rows = {paper_id: row for row, paper_id in enumerate(self.ids)}
        years = store.years(self.ids)
        # What has no known year is not known to be newer.
        self._years = np.array([years.get(paper_id) or 0 for paper_id in self.ids], np.int32)
        self._vectors = np.empty((0, 0), np.float32)

    def encode(self, model: Hatten, on_progress: Progress) -> None:
        """Makes the vectors of all papers with a model."""
        vectors: list[Vectors] = []
        for part in in_parts(self.ids, _PAPERS_AT_ONCE):
            on_progress("encoding papers", len(vectors) * _PAPERS_AT_ONCE, len(self.ids))
            papers = self._store.papers(part)
            vectors.append(model.encode_papers([papers[paper_id] for paper_id in part]))
        self._vectors = np.concatenate(vectors)

    def scores(self, model: Hatten, topics: Sequence[Topic], but: Sequence[Collection[str]] = ()) -> Scores:
        """Cosines of some topics with all papers, (topics, papers); -inf for what the leak rules forbid, and for `but`.

        `but` are more papers that are forbidden, for each topic.
        """
        scores: Scores = model.encode_topics(topics) @ self._vectors.T
        for number, topic in enumerate(topics):
            rules = LeakRules().restrict(topic)
            if rules.as_of_year is not None:
                scores[number, self._years > rules.as_of_year] = -np.inf
            forbidden = (*rules.citing_ids, *(but[number] if but else ()))
            scores[number, [self.rows[paper_id] for paper_id in forbidden if paper_id in self.rows]] = -np.inf
        return scores

    def nearest(self, scores: Scores, k: int) -> Rows:
        """The rows of the k best of some scores, best first, (topics, k); -1 where fewer are allowed."""
        best, rows = (one.numpy() for one in torch.from_numpy(scores).topk(min(k, scores.shape[1])))
        return np.where(np.isfinite(best), rows, -1)

    def drawn(self, scores: Scores, count: int, random: np.random.Generator) -> Rows:
        """Rows drawn at random from those that are allowed, (topics, count); -1 where none was found."""
        tries = random.integers(0, len(self.ids), (len(scores), count, _TRIES))
        allowed = np.isfinite(np.take_along_axis(scores[:, None], tries, 2))
        first = np.take_along_axis(tries, allowed.argmax(2)[:, :, None], 2)[:, :, 0]
        return np.where(allowed.any(2), first, -1)


class _Learner:
    """A model, the moving average of its weights, and the groups from which it learns."""

    def __init__(self, learning: Hatten, groups: GroupTraining, pool: Pool, options: HattenOptions) -> None:
        self.learning, self.groups, self.pool, self.options = learning, groups, pool, options
        self._random = np.random.default_rng((self.groups.schedule.seed, 2))
        self._average = optim.swa_utils.AveragedModel(self.learning, avg_fn=self._averaged).requires_grad_(False)
        self.averaged: Any = self._average.module
        self.averaged.words = self.learning.words  # which stay as they are
        # One module, so that a checkpoint holds both.
        self.model = nn.ModuleDict({"now": self.learning, "average": self._average})
        self._age = self.options.mine_every  # steps since the vectors of the pool were made

    def _averaged(self, mean: Tensor, weights: Tensor, steps: Any) -> Tensor:
        """While there are few steps the average keeps less: it would be the beginning otherwise."""
        keeps = min(self.options.averaging, (1 + int(steps)) / (10 + int(steps)))
        return mean.lerp(weights, 1 - keeps)

    def losses(self, examples: Sequence[tuple[int, int]]) -> Iterator[Tensor]:
        self._average.update_parameters(self.learning)
        if self._age >= self.options.mine_every:
            self._encode_pool()
        self._age += 1
        groups = [self.groups.train[number] for number, _ in examples]
        topics = list(self.groups.recommender.topics(group.context for group in groups))
        cited = [[self.pool.rows[group.gold[slot]]] for group, (_, slot) in zip(groups, examples, strict=True)]
        rows = np.hstack([cited, self._negatives(topics, [group.gold for group in groups])])
        # No example's loss depends on the others: part by part, memory does not grow with the batch.
        for begin in range(0, len(examples), _EXAMPLES_AT_ONCE):
            part = slice(begin, begin + _EXAMPLES_AT_ONCE)
            yield self._losses(topics[part], rows[part]).sum() / len(examples)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Recall of the averaged weights on dev, among all papers of the pool under the leak rules."""
        self._encode_pool()
        groups, rankings = list(self.groups.dev), []
        for part in in_parts(groups, _TOPICS_AT_ONCE):
            topics = list(self.groups.recommender.topics(group.context for group in part))
            nearest = self.pool.nearest(self.pool.scores(self.averaged, topics), _CUTOFF)
            rankings += [[self.pool.ids[place] for place in places if place >= 0] for places in nearest.tolist()]
        return round(mean_scores([group.gold for group in groups], rankings, [METRIC])[METRIC], 4), {}

    def _encode_pool(self) -> None:
        self.pool.encode(self.averaged, self.groups.on_progress)
        self._age = 0

    def _negatives(self, topics: Sequence[Topic], gold: Sequence[Sequence[str]]) -> Rows:
        """The negatives of some topics as rows of papers, (topics, negatives): hard ones first, then easy ones; or -1.

        The hard ones are drawn from what the averaged weights find.
        """
        scores = self.pool.scores(self.averaged, topics, gold)
        nearest = self.pool.nearest(scores, self.options.candidates)
        # Hits that are there come first in a random order.
        order = np.argsort(np.where(nearest < 0, 2.0, self._random.random(nearest.shape)), axis=1)
        hard = np.take_along_axis(nearest, order, 1)[:, : self.options.negatives]
        return np.hstack([hard, self.pool.drawn(scores, self.options.easy, self._random)])

    def _losses(self, topics: Sequence[Topic], rows: Rows) -> Tensor:
        """The loss of each example, (examples,), from rows of papers: cited, hard, easy; -1 is none."""
        used, places = np.unique(rows, return_inverse=True)
        ids = [self.pool.ids[row] for row in used.tolist()]  # -1 stands for any paper: it is in no pair
        records = self.groups.recommender.store.papers(ids)
        papers = [paper_paragraphs(records[paper_id]) for paper_id in ids]
        queries = [topic_paragraphs(topic) for topic in topics]
        vectors = self.learning([*queries, *papers])
        chosen = vectors[len(queries) :][torch.from_numpy(places)]
        scores = (vectors[: len(queries), None] * chosen).sum(-1)
        relevance = relevances(queries, papers, places, self.options.easy, graded=self.options.graded)
        relevance[rows < 0] = np.nan
        return triplet_loss(scores, relevance, self.options.margin)


def triplet_loss(scores: Tensor, relevance: Scores, margin: float) -> Tensor:
    """The mean loss of each example over all pairs of papers of which one is more relevant, (examples,).

    Args:
        scores: Cosines, (examples, papers).
        relevance: Steps of relevance, (examples, papers); a paper with NaN is in no pair.
        margin: By how much a paper is to score higher, for each step that it is more relevant.
    """
    levels = torch.from_numpy(relevance).to(scores.device)
    gap = levels[:, :, None] - levels[:, None, :]
    losses = torch.relu(margin * gap - scores[:, :, None] + scores[:, None, :])
    # NaN is neither above nor below anything.
    pairs = gap > 0
    return losses.where(pairs, 0).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)


def relevances(
    queries: Sequence[Document], papers: Sequence[Document], places: Rows, easy: int, *, graded: bool
) -> Scores:
    """How relevant the papers of each example are to its query, (examples, papers), in steps of the margin.

    The cited paper: 2. A hard negative: 1 if `graded`, else 0; or 2, if the Jaccard similarity of its words with those
    of the query is at least that of the cited paper's. A cited paper without a common word says nothing about the
    others. An easy negative: 0.

    Args:
        queries: The paragraphs of the queries.
        papers: The paragraphs of the papers.
        places: The papers of each example as in a step: cited, hard, easy; (examples, papers).
        easy: How many are easy.
        graded: Whether a hard negative is above an easy one.
    """
    first_easy = places.shape[1] - easy
    relevance = np.full(places.shape, _EASY, np.float32)
    relevance[:, 0] = _CITED
    relevance[:, 1:first_easy] = _HARD if graded else _EASY
    words = [_words(paper) for paper in papers]
    for row, own in enumerate(map(_words, queries)):
        others = [words[place] for place in places[row, :first_easy]]
        alike = np.array([len(own & other) / max(1, len(own | other)) for other in others])
        relevance[row, :first_easy][(alike >= alike[0]) & (alike[0] > 0)] = _CITED
    return relevance


def _words(document: Document) -> set[str]:
    return {word for _, text in document for word in folded(text).split()}
