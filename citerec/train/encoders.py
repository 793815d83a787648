"""Training an encoder (multiple negatives ranking, Henderson et al. 2017) or a cross-encoder (LCR, Gu et al. 2022).

Hard negatives are mined: they come from the candidates of the index on which the model will work.
"""

import contextlib
import importlib.util
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.provenance import PROVENANCE, Provenance, digests_of, provenance_of_part
from citerec.contexts.topic import clean, topic_of
from citerec.errors import InputError, ModelError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress, no_progress, told
from citerec.files.writing import Kind
from citerec.index.columns import COLUMNS, begins_of, mapped, rows_of
from citerec.index.manifest import DENSE, generation_of, open_store, trained_of
from citerec.index.vectors import DenseManifest, Vectors, has_vectors
from citerec.models.encoder import (
    BY_MODEL,
    BY_TITLES,
    WEIGHTS,
    Encoder,
    StaticManifest,
    batches_by_length,
    is_static,
    paper_text,
    without_special_tokens,
    write_table,
)
from citerec.models.find import DEFAULT_ENCODER, SHIPPED_ENCODER, local_folder
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, load_tokenizer, open_sentence_transformer
from citerec.records import Context, Paper
from citerec.rerank import cross_encoder
from citerec.rerank.base import citance_texts, standardised
from citerec.rerank.cross_encoder import MODEL_DIRECTORY, CrossEncoder, Pair, Scores, TextOptions, pair_of
from citerec.retrieve.dense import QUERIES, manifest_of_static
from citerec.settings import Amount, Positive, Share
from citerec.train import groups as shared
from citerec.train.groups import Choice, Group, GroupTraining, How, Learner, Schedule, Training, group_training

WEIGHTS_TRIED = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0)
"""Weights of the reranker's score that are tried on dev."""

METRICS = ("mrr@10", "recall@10")

# Tokens, padding included, whose activations are held at once.
_TOKENS_AT_ONCE = {"cpu": 16384, "cuda": 65536}


@dataclass(frozen=True, slots=True)
class RerankerOptions:
    """How to train a cross-encoder.

    Attributes:
        base: The encoder to start from.
        text: How its texts are made.
        loss: `softmax` over the cited paper and its negatives, or `triplet` on scores from 0 to 1.
        negatives: Negatives for each cited paper, drawn again in each epoch.
        candidates: How many first candidates the negatives are drawn from.
        depth: How many candidates it ranks on dev.
        batch: Cited papers per step.
        margin: Margin of the triplet loss; 0.1 in LCR.
    """

    base: str = cross_encoder.DEFAULT_BASE
    text: TextOptions = field(default_factory=TextOptions)
    loss: Literal["softmax", "triplet"] = "softmax"
    negatives: Positive = 9
    candidates: Positive = 100
    depth: Positive = 50
    batch: Positive = 8
    margin: Amount = 0.1


def train_reranker(
    choice: Choice, index: Path, out: Path, options: RerankerOptions, schedule: Schedule, **how: Unpack[shared.HowFound]
) -> cross_encoder.Manifest:
    """Trains a cross-encoder, in place of an earlier one at `out`. An interrupted training is resumed.

    Args:
        choice: Which contexts to learn from, and which to measure on.
        index: The index to search for candidates.
        out: The directory of the model.
        options: What to learn, and how.
        schedule: How long, and how fast.
        how: `system`, which finds candidates, without its rerankers, by default the best that the index supports;
            `device`, where it is trained, by default a GPU if there is one; `on_progress`, called as the work goes
            on; `note`, called with a line about each dev value.

    Raises:
        ModelError: There is no such base, or it cannot be trained.
        SourceError: A file of contexts cannot be read.
        InputError: A line is not a context, or no cited paper is in the index, or something else is at `out`.
        BuildError: The loss is no longer finite, or another process trains this model, or the disk is full.
    """
    reader = CrossEncoder.begin(options.base, options.text, seed=schedule.seed, device=how.get("device"))
    depths = options.candidates, options.candidates
    with group_training(MODEL_DIRECTORY, choice, index, out, options, schedule, depths, **how) as groups:
        record = groups.fit(_cross_encoder_learner(reader, groups, options))
        dev = dict(record.results)
        fields = {"weight": dev.pop("weight"), "training": groups.facts(record, "base", "text"), "dev": dev}
        manifest = reader.manifest.model_copy(update=fields)
        provenance = groups.provenance(options.base)
        return shared.write_model(
            MODEL_DIRECTORY, out, manifest, provenance, lambda folder: reader.save(folder, manifest)
        )


def _cross_encoder_learner(reader: CrossEncoder, groups: GroupTraining, options: RerankerOptions) -> Learner:
    """A cross-encoder, and the groups from which it learns."""
    random, store = np.random.default_rng((groups.schedule.seed, 1)), groups.recommender.store

    def pairs_of(group: Group, paper_ids: Sequence[str]) -> list[Pair]:
        """The context of a group with some papers; the rank of a cited paper that was not found is the last."""
        (topic,) = groups.recommender.topics([group.context])
        papers = store.papers(paper_ids)
        citances = citance_texts(store, (one for one in group.candidates if one.paper_id in papers))
        ranks = {candidate.paper_id: rank for rank, candidate in enumerate(group.candidates, 1)}
        last = len(group.candidates) + 1
        return [pair_of(topic, papers[one], citances.get(one), options.text, ranks.get(one, last)) for one in paper_ids]

    def drawn(number: int, slot: int) -> list[Pair]:
        """A cited paper and its negatives with their context, the cited paper first."""
        group = groups.train[number]
        negatives = random.permutation(group.negatives())[: options.negatives].tolist()
        return pairs_of(group, [group.gold[slot], *negatives])

    def loss(logits: Any) -> Any:
        """The loss of one group, whose first pair is the cited paper."""
        if options.loss == "softmax":
            return -logits.log_softmax(0)[0]
        scores = logits.sigmoid()
        return (options.margin - scores[0] + scores[1:]).relu().mean()

    def losses(examples: Sequence[tuple[int, int]]) -> Iterator[Any]:
        encoded = [reader.tokenizer.encode(drawn(number, slot)) for number, slot in examples]
        tokens = [len(group) * max(len(pair.ids) for pair in group) for group in encoded]
        for part in batches_by_length(tokens, _TOKENS_AT_ONCE.get(reader.model.device.type, 16384), len(encoded)):
            logits: Any = reader.logits([pair for number in part for pair in encoded[number]])
            yield sum(map(loss, logits.split([len(encoded[number]) for number in part]))) / len(encoded)

    def evaluate() -> tuple[float, dict[str, float]]:
        """The best mrr@10 on dev over the weights of the cross-encoder's score, and results with the best weight."""
        measured = []
        for group in told(groups.dev, "measuring", groups.on_progress, len(groups.dev)):
            paper_ids = [candidate.paper_id for candidate in group.candidates[: options.depth]]
            measured.append((group, reader.scores(pairs_of(group, paper_ids))))
        return tuned(measured)

    return Learner(reader.model, options.batch, groups.examples, losses, evaluate)


def tuned(measured: Sequence[tuple[Group, Scores]]) -> tuple[float, dict[str, float]]:
    """The best mrr@10 on dev over the weights of a reranker's score, and results with the best weight.

    Args:
        measured: Dev groups, each with the scores of its first candidates.

    Returns:
        The best value with any weight but 0: a model that does not help yet may still be improving, and with weight 0
        this would not show. Then the best weight as `weight`, the metrics with it, and those `before`, without the
        reranker.
    """
    values = {weight: metrics_at(measured, weight) for weight in WEIGHTS_TRIED}
    weight = max(WEIGHTS_TRIED, key=lambda weight: (values[weight]["mrr@10"], -weight))
    before = {f"{metric} before": value for metric, value in values[0.0].items()}
    best = max(values[weight]["mrr@10"] for weight in WEIGHTS_TRIED[1:])
    return best, {"weight": weight, **values[weight], **before}


def metrics_at(measured: Sequence[tuple[Group, Scores]], weight: float) -> dict[str, float]:
    """The metrics on dev with some weight of the reranker's score."""
    rankings = []
    for group, scores in measured:
        ids = np.array([candidate.paper_id.encode() for candidate in group.candidates])
        own = standardised([candidate.score for candidate in group.candidates[: len(scores)]])
        read = np.lexsort((ids[: len(scores)], -(own + weight * standardised(scores))))
        rankings.append([paper_id.decode() for paper_id in (*ids[read], *ids[len(scores) :])])
    means = shared.mean_scores([group.gold for group, _ in measured], rankings, METRICS)
    return {metric: round(mean, 4) for metric, mean in means.items()}


# Other files of sentence-transformers, and a folder for each module.
_FILES = {"config_sentence_transformers.json", "modules.json", "sentence_bert_config.json"}
_MODULES = {"1_Pooling", "2_Dense", "2_Normalize", "3_Normalize"}
ENCODER_DIRECTORY = Kind("trained encoder", "citerec-encoder", MANIFEST, MODEL_FILES | {MANIFEST} | _FILES | _MODULES)

METRIC = "recall@10"
_POOL_DEPTH = 10
_ROWS_AT_ONCE = {"cpu": 16, "cuda": 64}


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How to train an encoder.

    Attributes:
        base: The model to start from, as for `citerec.models.find.find_model`.
        max_tokens: How many tokens of a text it reads; by default as set by its authors.
        negatives: Hard negatives for each cited paper, drawn again in each epoch.
        candidates: How many first candidates the negatives are drawn from.
        batch: Cited papers per step: each is a negative for the others' contexts.
    """

    base: str = DEFAULT_ENCODER
    max_tokens: Positive | None = None
    negatives: Positive = 1
    candidates: Positive = 100
    batch: Positive = 32


class EncoderManifest(ModelManifest):
    """`manifest.json` of a trained encoder: its base, its training, and dev values, including the base's."""

    kind: Literal["citerec-encoder"] = "citerec-encoder"
    base: str


def train_encoder(
    choice: Choice, index: Path, out: Path, options: EncoderOptions, schedule: Schedule, **how: Unpack[shared.HowFound]
) -> EncoderManifest:
    """Trains an encoder (a folder of sentence-transformers), in place of an earlier one at `out`.

    If no step improves the base on dev, the result is the base: it is always measured first. Arguments and errors are
    those of `citerec.train_reranker`.
    """
    schedule = replace(schedule, first=True)
    model = open_sentence_transformer(options.base, how.get("device"))
    if options.max_tokens:
        model.max_seq_length = options.max_tokens
    depths = options.candidates, options.candidates
    with group_training(ENCODER_DIRECTORY, choice, index, out, options, schedule, depths, **how) as groups:
        record = groups.fit(_encoder_learner(model, groups, options))
        dev = {METRIC: record.best, f"{METRIC} before": record.values[0]}
        manifest = EncoderManifest(base=options.base, training=groups.facts(record, "base"), dev=dev)
        return shared.write_model(ENCODER_DIRECTORY, out, manifest, groups.provenance(options.base), _saved(model))


def _saved(model: Any) -> Callable[[Path], None]:
    """Writes the files of sentence-transformers into a folder."""
    return lambda folder: model.save_pretrained(str(folder), create_model_card=False)


def _encoder_learner(model: Any, groups: GroupTraining, options: EncoderOptions) -> Learner:
    """An encoder, and the groups from which it learns. Its examples are batches, so that a step has one."""
    from datasets import Dataset
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
    from sentence_transformers.util import batch_to_device

    device, store, seed = model.device, groups.recommender.store, groups.schedule.seed
    rows_at_once = _ROWS_AT_ONCE.get(device.type, 16)
    # With cached gradients memory does not grow with the batch (Gao et al. 2021).
    loss = CachedMultipleNegativesRankingLoss(model, mini_batch_size=rows_at_once)
    random, examples = np.random.default_rng((seed, 1)), groups.examples
    gold = [groups.train[number].gold for number, _ in examples]
    # No two contexts of a batch cite the same paper, which would be its own negative. Rows have one length, so some
    # papers stand there twice.
    cited = Dataset.from_list([{str(at): one[at % len(one)] for at in range(max(map(len, gold)))} for one in gold])
    sampler = NoDuplicatesBatchSampler(cited, batch_size=options.batch, drop_last=False, seed=seed)

    def texts_of(batch: Sequence[tuple[int, int]]) -> Iterator[list[str]]:
        """The texts of each example of a batch: the context, the paper that it cites, and hard negatives."""
        drawn_from = [(groups.train[number], slot) for number, slot in batch]
        cited = {paper_id for group, _ in drawn_from for paper_id in group.gold}
        for group, slot in drawn_from:
            negatives = random.permutation(group.negatives(cited) or group.negatives())
            # If there are too few, some are used twice.
            paper_ids: list[str] = [group.gold[slot], *np.resize(negatives, options.negatives).tolist()]
            papers = store.papers(paper_ids)
            yield [topic_of(group.context).passage, *(paper_text(papers[paper_id]) for paper_id in paper_ids)]

    def losses(batches: Sequence[list[tuple[int, int]]]) -> Iterator[Any]:
        """The loss of a batch, by sentence-transformers: it reads columns of texts."""
        import torch

        columns = zip(*texts_of(batches[0]), strict=True)
        inputs = [batch_to_device(model.preprocess(list(column)), device) for column in columns]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            yield loss(inputs, None)

    def evaluate() -> tuple[float, dict[str, float]]:
        """Recall on dev, in a pool of the cited papers and the first candidates of each context."""
        first = (candidate.paper_id for group in groups.dev for candidate in group.candidates[:_POOL_DEPTH])
        pool = np.array(sorted({*first, *(paper_id for group in groups.dev for paper_id in group.gold)}))
        papers = list(map(store.papers(pool.tolist()).__getitem__, pool.tolist()))
        contexts, vectors = (
            model.encode(texts, batch_size=rows_at_once, normalize_embeddings=True, show_progress_bar=False)
            for texts in ([topic_of(group.context).passage for group in groups.dev], list(map(paper_text, papers)))
        )
        similarities = contexts @ vectors.T
        # The leak rules of the search.
        newest = np.array([group.context.citing_year or np.inf for group in groups.dev])[:, None]
        citing = np.array([group.context.citing_id or "" for group in groups.dev])[:, None]
        similarities[(np.array([paper.year or 0 for paper in papers]) > newest) | (citing == pool)] = -np.inf
        rankings = pool[np.argsort(-similarities, axis=1, kind="stable")].tolist()
        return round(shared.mean_scores([group.gold for group in groups.dev], rankings, [METRIC])[METRIC], 4), {}

    batches = [[examples[row] for row in batch] for batch in sampler]
    return Learner(model, 1, batches, losses, evaluate)


_STATIC_FILES = {MANIFEST, PROVENANCE, WEIGHTS, "tokenizer.json", "modules.json", "config_sentence_transformers.json"}
STATIC_DIRECTORY = Kind("static encoder", "citerec-static-encoder", MANIFEST, frozenset(_STATIC_FILES))
_PART = 4096
_DEV = 2000  # papers held out, at most a tenth
# A citing sentence and the sentences around it have some 12 to 60 tokens.
_SHORT, _LONG = 12, 60
_TEMPERATURE = 0.05
_PASSAGES = 0.5  # share of the papers of which a passage is paired with the rest; of the others it is the title
_UNKNOWN = "[UNK]"
_MANY = 20_000
"""Vectors from which a static encoder of queries is learnt."""
_FIRST, _ROUNDING = 10, 1e-5
_SAMPLE = 20_000  # papers that tell which dimensions are kept

STATIC_SCHEDULE = Schedule(learning_rate=3e-3, epochs=3, evaluations=5)
"""How long and how fast a static encoder learns by default."""

Tokens = NDArray[np.int32]

FOUND = "found"
"""Share of papers held out that are nearest to their own vector."""


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """How to train a static encoder.

    Attributes:
        base: The model whose tokenizer it gets, as for `find_model`.
        vocabulary: Tokens of a tokenizer of its own (WordPiece), which it learns from the papers, in place of `base`'s.
        max_tokens: How many tokens of a paper it learns from.
        cut: Share of the papers of a step of which only a passage is read: it learns to place it where the whole
            paper is, and so what queries need.
        contrast: Weight of the loss that tells a paper from the others of its step.
        pairs: Weight of the loss that brings what belongs together near: a passage of a paper and the rest of it, its
            title and its abstract, a citing sentence of the index and the paper that it cites.
        batch: Papers of a step.
        limit: Papers to learn from, and citing sentences, at most.
        dimension: Numbers of a vector that are kept, in a byte each; by default those of the index, in full.
    """

    base: str = DEFAULT_ENCODER
    vocabulary: Positive | None = None
    max_tokens: Positive = 192
    cut: Share = 0.5
    contrast: Amount = 0.3
    pairs: Amount = 0.3
    batch: Positive = 1024
    limit: Positive = 500_000
    dimension: Positive | None = None


def train_static(
    index: Path, out: Path, options: StaticOptions, schedule: Schedule, **how: Unpack[How]
) -> StaticManifest:
    """Trains a static encoder on the vectors of an index (`dense`), in place of an earlier one at `out`.

    A training that was stopped is resumed. `how` is as for `citerec.train_reranker`.

    Raises:
        InputError: Something else is at `out`, or the index has too few vectors.
        ModelError: The tokenizer cannot be loaded.
        BuildError: Another process trains it, or the disk is full.
    """
    vectors = Vectors(generation_of(index) / DENSE)
    of, schedule = vectors.manifest, replace(schedule, decay=0.0)
    with shared.training(STATIC_DIRECTORY, out, options, schedule, [of.checksums], **how) as own:
        from sentence_transformers import SentenceTransformer

        learner = _StaticLearner(index, vectors, own)
        record = own.fit(Learner(learner.model, options.batch, learner.examples, learner.losses, learner.evaluate))
        papers = {"papers": len(learner.rows), "tokens": sum(map(len, learner.texts)), "sentences": learner.sentences}
        manifest = StaticManifest(
            teacher={"model": of.model, "identity": of.identity},
            training=papers | own.facts(record),
            dev={FOUND: record.best, **record.results, **learner.by_titles(vectors)},
        )
        encoder = SentenceTransformer(modules=[learner.model], device="cpu")

        def save(folder: Path) -> None:
            _saved(encoder)(folder)
            if options.dimension:
                write_table(folder, learner.compressed(options.dimension))

        return shared.write_model(
            STATIC_DIRECTORY, out, manifest, learner.provenance | provenance_of_part(local_folder(of.model)), save
        )


def train_queries(index: Path, on_progress: Progress = no_progress, *, least: int = _MANY) -> bool:
    """Makes a static encoder of the queries of an index (`encoder_of_queries`), where it is of use.

    It is where no static encoder made the vectors, they are `least` or more, none has learnt them yet, most papers have
    abstracts, and the packages that train it are installed. It learns from titles and abstracts only, with the
    tokenizer of the model that made the vectors, if that is here. Returns whether it was made.
    """
    if not has_vectors(folder := generation_of(index) / DENSE) or not importlib.util.find_spec("sentence_transformers"):
        return False
    of, out = DenseManifest.read(folder), trained_of(index, QUERIES)
    if of.count < least or is_static(of.model) or manifest_of_static(out, of):
        return False
    with contextlib.closing(open_store(index)) as store:
        counts = store.counts()
    # Vectors of titles alone are found by titles however it is, so nothing would show what sentences lose by it.
    if 2 * counts.with_abstract < counts.papers:
        return False
    base = of.model
    try:
        load_tokenizer(base)
    except ModelError:
        base = SHIPPED_ENCODER
    train_static(index, out, StaticOptions(base, pairs=0), STATIC_SCHEDULE, on_progress=on_progress)
    return True


class _StaticLearner:
    """The vectors of tokens, and the papers from which they are learnt.

    Attributes:
        rows: The rows of the papers.
        texts: The tokens of each.
        sentences: How many citing sentences are learnt from.
        provenance: That of the sentences.
    """

    def __init__(self, index: Path, vectors: Vectors, own: Training) -> None:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        self.options, self._values, self._seed = own.options, vectors.values, own.schedule.seed
        self._random = np.random.default_rng((self._seed, 1))
        rows = np.random.default_rng(self._seed).permutation(np.flatnonzero(vectors.has_vector))
        self.rows = np.sort(rows[: self.options.limit])
        if len(self.rows) < 2:
            fault = f"{index} has vectors of {len(self.rows)} papers: too few to learn from"
            raise InputError(fault, "Give a larger index.")
        self.texts, self._titles = list[Tokens](), list[int]()  # and how many tokens the title of each has
        self._held_out_titles: dict[str, int] = {}  # with the numbers of their papers
        numbers = {row: number for number, row in enumerate(self.rows.tolist())}

        def papers() -> Iterator[Paper]:
            return (paper for row, paper in enumerate(store.all_papers()) if row in numbers)

        order = np.random.default_rng((self._seed, 2)).permutation(len(self.rows))
        dev = max(1, min(_DEV, len(self.rows) // 10))
        self._dev, self.examples = order[:dev].tolist(), order[dev:].tolist()
        held_out = {*self._dev}

        def tokens(texts: Sequence[str]) -> list[Tokens]:
            encoded = tokenizer.encode_batch_fast(texts)
            return [np.array(one.ids[: self.options.max_tokens], np.int32) for one in encoded]

        with contextlib.closing(open_store(index)) as store:
            tokenizer = self._tokenizer(map(paper_text, papers()))
            for part in in_parts(papers(), _PART):
                own.on_progress("reading", len(self.texts), len(numbers))
                self.texts += tokens([paper_text(paper) for paper in part])
                self._titles += map(len, tokens([paper.title for paper in part]))
                places = enumerate(part, len(self.texts) - len(part))
                self._held_out_titles |= {paper.title: at for at, paper in places if paper.title and at in held_out}
            ids = mapped(generation_of(index) / COLUMNS / "ids.npy")
            self._about: list[tuple[int, Tokens]] = []  # the number of the paper that each sentence cites, its tokens
            digests, most = set[str](), self.options.limit if self.options.pairs else 0
            for sentences in in_parts(itertools.islice(store.searchable_citances(), most), _PART):
                rows = rows_of(ids, (one.cited.paper_id for one in sentences)).tolist()
                texts = tokens([clean(one.text) for one in sentences])
                for number, text, one in zip(map(numbers.get, rows), texts, sentences, strict=True):
                    if number is not None and number not in held_out:
                        self._about.append((number, text))
                        digests.update(digests_of(Context(text=one.text, citing_id=one.citing_id)))
        self.sentences, self.provenance = len(self._about), Provenance(frozenset(digests))
        self.model = StaticEmbedding(tokenizer, embedding_weights=self._begin(tokenizer.get_vocab_size()))
        self.model.to(own.device)

    def _tokenizer(self, texts: Iterator[str]) -> Any:
        """The tokenizer of the base, or one that is learnt from some texts; without tokens around a text."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

        if self.options.vocabulary is None:
            base = load_tokenizer(self.options.base).backend_tokenizer
            tokenizer = Tokenizer.from_str(without_special_tokens(base.to_str()))
            tokenizer.no_truncation()
            return tokenizer
        tokenizer = Tokenizer(models.WordPiece(unk_token=_UNKNOWN))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        tokenizer.train_from_iterator(
            texts, trainers.WordPieceTrainer(vocab_size=self.options.vocabulary, special_tokens=[_UNKNOWN])
        )
        return tokenizer

    def _begin(self, count: int) -> NDArray[np.float32]:
        """Vectors of tokens to begin with: by how much the papers with a token differ from all.

        They are shorter if the token is frequent: times a/(a + p), where p is its share of all tokens and a is 0.001
        (Arora et al. 2017).
        """
        sums = np.zeros((count, self._values.shape[1]), np.float32)
        seen = np.zeros(count, np.int64)
        for number in self.examples:
            unique = np.unique(self.texts[number])
            sums[unique] += self._targets(number)
            seen[unique] += 1
        mean = self._targets(self.examples[:_PART]).mean(axis=0)
        tokens = np.concatenate(self.texts)
        share = np.bincount(tokens, minlength=count) / len(tokens)
        # With three papers more, at the mean, a token that occurs once says little. The mean itself is added to all.
        own = (sums - seen[:, None] * mean) / (seen[:, None] + 3)
        return np.asarray((own + 0.1 * mean) * (1e-3 / (1e-3 + share))[:, None], np.float32)

    def losses(self, examples: Sequence[int]) -> Iterator[Any]:
        """One minus the cosine with the vector of the paper, and the contrast with the vectors of the others."""
        vectors, targets = self._vectors(examples, self._random)
        loss = 1 - (vectors * targets).sum(dim=1).mean() + self.options.contrast * _contrast(vectors, targets)
        if self.options.pairs and (pairs := list(self._pairs(examples))):
            texts, others = map(self._encoded, zip(*pairs, strict=True))
            loss += self.options.pairs * _contrast(texts, others)
        yield loss

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The share of dev papers, some cut as in training, that are nearest to their own vectors; their cosine."""
        import torch

        with torch.inference_mode():
            vectors, targets = self._vectors(self._dev, np.random.default_rng((self._seed, 3)))
            own = (vectors * targets).sum(dim=1)
            nearest = (own >= (vectors @ targets.T).max(dim=1).values - 1e-6).float().mean()
        return round(float(nearest), 4), {"cosine": round(float(own.mean()), 4)}

    def by_titles(self, vectors: Vectors) -> dict[str, float]:
        """The share of papers held out whose vectors are among the ten nearest of all to their titles: `BY_TITLES`.

        Titles are encoded by this encoder, and by the model of the vectors if it can be loaded here. 0 if none of these
        papers has a title.
        """
        import torch

        if not self._held_out_titles:
            return {BY_TITLES: 0.0}
        of, titles, numbers = vectors.manifest, [*self._held_out_titles], [*self._held_out_titles.values()]
        with torch.inference_mode():
            by_itself = self._encoded([self.texts[at][: self._titles[at]] for at in numbers]).cpu().numpy()
        queries = {BY_TITLES: by_itself}
        with contextlib.suppress(ModelError):
            model = Encoder.open_for_queries(of.model, of.backend, of.count, max_tokens=of.max_tokens)
            queries[BY_MODEL] = model.encode(titles)
        own = {name: (of_titles * self._targets(numbers)).sum(axis=1) for name, of_titles in queries.items()}
        nearer = {name: np.zeros(len(titles)) for name in queries}
        for begin in range(0, len(self._values), _PART):
            block = np.asarray(self._values[begin : begin + _PART], np.float32).T
            for name, of_titles in queries.items():
                nearer[name] += (of_titles @ block > own[name][:, None] + _ROUNDING).sum(axis=1)
        return {name: round(float((count < _FIRST).mean()), 4) for name, count in nearer.items()}

    def _vectors(self, numbers: Sequence[int], random: np.random.Generator) -> tuple[Any, Any]:
        """The vectors that the encoder makes of some papers, and those that it should make, of length one."""
        import torch

        own = self._encoded([self._text(number, random) for number in numbers])
        return own, torch.from_numpy(self._targets(numbers)).to(own.device)

    def _encoded(self, texts: Sequence[Tokens]) -> Any:
        """The vectors of some texts, of length one."""
        import torch

        offsets = torch.from_numpy(begins_of([len(text) for text in texts])[:-1])
        tokens, device = torch.from_numpy(np.concatenate(texts).astype(np.int64)), self.model.embedding.weight.device
        read = self.model({"input_ids": tokens.to(device), "offsets": offsets.to(device)})["sentence_embedding"]
        return torch.nn.functional.normalize(read, dim=1)

    def _pairs(self, numbers: Sequence[int]) -> Iterator[tuple[Tokens, Tokens]]:
        """Texts that belong together: of each paper a title or a passage, and the rest; citing sentences, and papers.

        So many citing sentences are drawn that as many are in all steps together as there are; of a paper one.
        """
        for number in numbers:
            tokens = self.texts[number]
            first, last = 0, self._titles[number]
            if self._random.random() < _PASSAGES:
                first, last = self._passage(tokens, self._random)
            if 0 < last - first < len(tokens):
                yield tokens[first:last], np.concatenate([tokens[:first], tokens[last:]])
        most = math.ceil(len(self._about) * len(numbers) / len(self.examples))
        drawn = self._random.integers(0, len(self._about), most) if most else ()
        for number, sentence in dict(self._about[place] for place in drawn).items():
            if len(sentence) and len(self.texts[number]):
                yield sentence, self.texts[number]

    def compressed(self, dimension: int) -> NDArray[np.float32]:
        """The table in the dimensions in which papers differ most, (tokens, dimension)."""
        import torch

        with torch.inference_mode():
            table = self.model.embedding.weight.float().cpu().numpy()
            sample = self._encoded([self.texts[number] for number in self.examples[:_SAMPLE]]).cpu().numpy()
        _, axes = np.linalg.eigh(sample.T @ sample)  # by how much of the vectors is on each, least first
        return np.asarray(table @ axes[:, -dimension:], np.float32)

    def _text(self, number: int, random: np.random.Generator) -> Tokens:
        """The tokens of a paper, or of a passage of it."""
        tokens = self.texts[number]
        return tokens if random.random() >= self.options.cut else tokens[slice(*self._passage(tokens, random))]

    def _passage(self, tokens: Tokens, random: np.random.Generator) -> tuple[int, int]:
        """Where a passage of a text begins and ends; all of a short text."""
        length = int(random.integers(_SHORT, _LONG + 1))
        begin = int(random.integers(0, max(0, len(tokens) - length) + 1))
        return begin, begin + length

    def _targets(self, numbers: int | Sequence[int]) -> NDArray[np.float32]:
        return np.asarray(self._values[self.rows[numbers]], np.float32)


def _contrast(vectors: Any, targets: Any) -> Any:
    """The loss that tells the target of each vector from those of the others."""
    return -(vectors @ targets.T / _TEMPERATURE).log_softmax(dim=1).diagonal().mean()
