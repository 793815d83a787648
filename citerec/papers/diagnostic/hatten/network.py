"""The network of HAtten: words to paragraphs, paragraphs to a vector of length one.

Both levels are a transformer layer and multi-head pooling (Liu and Lapata, ACL 2019). Only the upper one knows the
types of paragraphs. The word vectors are given; they are not weights of the network.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from citerec.errors import InputError
from citerec.models.batches import batches_by_length
from citerec.papers.diagnostic.hatten.paragraphs import TYPES

if TYPE_CHECKING:
    import torch

_WORDS_AT_ONCE = {"cpu": 8192, "cuda": 131_072}
_ROWS_AT_ONCE = 1024
# The wavelengths of the positions, from 2π to 10,000 · 2π (Vaswani et al. 2017).
_LONGEST_WAVE = 10_000.0

Tokens = list[tuple[int, list[int]]]
"""The paragraphs of a document: the number of the type, and the numbers of the words; at least one of each."""


class Sizes(BaseModel):
    """The sizes of a network, those of the paper by default.

    Attributes:
        word: Numbers of a word's vector. If these are not `width`, a linear layer maps them to it.
        width: Numbers of each layer, and of the result.
        heads: Heads of each layer and of the pooling; they divide the width.
        feed_forward: Width of the inner layers.
        max_words: The first words of a paragraph that are read.
        dropout: Share of the numbers that are dropped in training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    word: int = Field(ge=1)
    width: int = Field(ge=1)
    heads: int = Field(default=8, ge=1)
    feed_forward: int = Field(default=1024, ge=1)
    max_words: int = Field(default=512, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)


def new_network(sizes: Sizes, seed: int) -> "torch.nn.ModuleDict":
    """A network with random weights, which follow from the seed.

    Raises:
        InputError: The heads do not divide the width.
    """
    import torch

    width, heads = sizes.width, sizes.heads
    if width % heads:
        nearest = max(heads, width - width % heads)
        raise InputError(
            f"{heads} heads do not divide a width of {width}", f"Give -c width={nearest}, or another number of heads."
        )
    torch.manual_seed(seed)
    network = torch.nn.ModuleDict({"types": torch.nn.Embedding(len(TYPES), width)})
    if sizes.word != width:
        network["project"] = torch.nn.Linear(sizes.word, width, bias=False)
    for level in ("words", "paragraphs"):
        network[level] = torch.nn.ModuleDict(
            {
                "layer": torch.nn.TransformerEncoderLayer(
                    width, heads, sizes.feed_forward, sizes.dropout, batch_first=True
                ),
                "weights": torch.nn.Linear(width, heads),
                "contents": torch.nn.Linear(width, width),
                "pooled": torch.nn.Linear(width, width),
            }
        )
    return network


def vectors_of(network: Any, sizes: Sizes, words: "torch.Tensor", documents: Sequence[Tokens]) -> "torch.Tensor":
    """The vectors of some documents, (documents, width), each of length one; gradients flow to the network.

    Args:
        network: From `new_network`.
        sizes: Its sizes.
        words: The vectors of the words, (words, `sizes.word`), on the network's device.
        documents: Their words.
    """
    import torch

    texts = [ids[: sizes.max_words] for document in documents for _, ids in document]
    rows: list[int] = []
    parts = []
    for part in batches_by_length(list(map(len, texts)), _WORDS_AT_ONCE.get(words.device.type, 8192), _ROWS_AT_ONCE):
        rows += part
        parts.append(_paragraphs(network, sizes, words, [texts[row] for row in part]))
    order = torch.empty(len(rows), dtype=torch.long)
    order[torch.tensor(rows)] = torch.arange(len(rows))
    paragraphs = torch.cat(parts)[order.to(words.device)]
    types = torch.tensor([number for document in documents for number, _ in document], device=words.device)
    paragraphs = paragraphs + network["types"](types)
    counts = torch.tensor([len(document) for document in documents], device=words.device)
    mask = torch.arange(int(counts.max()), device=words.device) < counts[:, None]
    padded = paragraphs.new_zeros(*mask.shape, sizes.width)
    padded[mask] = paragraphs
    return torch.nn.functional.normalize(_level(network["paragraphs"], sizes, padded, mask), dim=1)


def _paragraphs(network: Any, sizes: Sizes, words: "torch.Tensor", texts: Sequence[list[int]]) -> "torch.Tensor":
    """The vectors of some texts, (texts, width), from the numbers of their words."""
    import torch

    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True).to(words.device)
    lengths = torch.tensor([len(text) for text in texts], device=words.device)
    values = torch.nn.functional.embedding(ids, words)
    if "project" in network:
        values = network["project"](values)
    values = values + positions(ids.shape[1], sizes.width).to(words.device)
    mask = torch.arange(ids.shape[1], device=words.device) < lengths[:, None]
    return _level(network["words"], sizes, values, mask)


def _level(level: Any, sizes: Sizes, values: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
    """A transformer layer and multi-head pooling: (rows, length, width) to (rows, width), where the mask is true."""
    import torch

    values = level["layer"](values, src_key_padding_mask=~mask)
    # A head weighs the places by one number each, and sums its own share of the width.
    weights = level["weights"](values).masked_fill(~mask[..., None], -torch.inf).softmax(1)
    # What the layer gives for padding is not defined.
    shares = level["contents"](values).masked_fill(~mask[..., None], 0).unflatten(2, (sizes.heads, -1))
    pooled: torch.Tensor = level["pooled"](torch.einsum("rlh,rlhs->rhs", weights, shares).flatten(1))
    return pooled


def positions(length: int, width: int) -> "torch.Tensor":
    """Sinusoidal positions, (length, width): sines in the first half, cosines in the second (Vaswani et al. 2017)."""
    import torch

    half = -(-width // 2)
    waves = _LONGEST_WAVE ** (-torch.arange(half) / half)
    angles = torch.arange(length)[:, None] * waves
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :width]
