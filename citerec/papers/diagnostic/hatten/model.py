"""The network of HAtten: words to paragraphs, paragraphs to a vector of length one; both levels are of one shape.

Gu, Gao and Hahnloser (ECIR 2022). Only the upper level knows the types of paragraphs. Word vectors stay as they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from citerec.contexts.topic import Topic
from citerec.errors import InputError, SourceError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress
from citerec.files.writing import Kind
from citerec.models.encoder import Reading, batches_by_length
from citerec.models.find import find_model, model_identity
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, open_sentence_transformer
from citerec.papers.diagnostic.networks import open_network, save_network
from citerec.records import Paper

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


class Sizes(BaseModel):
    """The sizes of a network, those of the paper by default.

    Attributes:
        width: Numbers of a word's vector, of each layer, and of the result.
        heads: Heads of each layer and of the pooling; they divide the width.
        feed_forward: Width of the inner layers.
        max_words: The first words of a paragraph that are read.
        dropout: Share of the numbers that are dropped in training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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

        network, _ = open_network(folder, HattenManifest, make, "HAtten", device)
        network.identity = model_identity(str(folder))
        return network

    def save(self, folder: Path, manifest: HattenManifest) -> None:
        """Writes the files of the model into a folder; the word vectors are among the weights."""
        self.tokenizer.save(str(folder / _TOKENIZER))
        save_network(self, manifest, folder)

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
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer keeps the most frequent words, of equal ones the first in order.
    trainer = trainers.WordLevelTrainer(vocab_size=most + 1, special_tokens=[_UNKNOWN], show_progress=False)
    tokenizer.train_from_iterator(iter(texts), trainer)
    found = dict(glove_vectors(path, set(tokenizer.get_vocab()) - {_UNKNOWN}, on_progress))
    if not found:
        raise SourceError(f"{path} has none of the words of these texts", "Give word vectors of their language.")
    words = sorted(found)
    tokenizer.model = models.WordLevel({word: at for at, word in enumerate([_UNKNOWN, *words])}, unk_token=_UNKNOWN)
    vectors = np.stack([found[word] for word in words])
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
        with path.open(encoding="utf-8", errors="replace") as file:
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
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}", "Give a readable file.") from error
    except ValueError as error:
        fault = f"line {number:,} of {path} is not a word and {dimension} numbers"
        raise SourceError(fault, "Give a file in GloVe's text format, whole and unpacked.") from error
