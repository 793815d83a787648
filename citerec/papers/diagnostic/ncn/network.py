"""The network of NCN: time-delay encoders, and a decoder with attention that writes the cited title.

Ebesu and Fang (SIGIR 2017). No layer mixes the rows of a batch: features are laid out row by row, and nothing is
normalised over the batch. The inputs are not reversed: for convolutions with max-pooling that only mirrors the filters.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from citerec.papers.diagnostic.ncn.words import BEGIN, PADDING, Rows

if TYPE_CHECKING:
    import torch

_WORDS_AT_ONCE = 1024  # rows of the output layer at once: each has a number for every word of the vocabulary


class Sizes(BaseModel):
    """The sizes of a network, those of the original by default.

    Attributes:
        embedding: Numbers of a word's vector.
        hidden: Numbers of the decoder's state.
        filters: Filters of each width.
        context_widths: Widths, in words, of the filters over the context.
        author_widths: Widths, in authors, of the filters over citing and cited authors.
        context_words: The first words of a context that are read.
        title_words: The first words of a title that are written.
        authors: The first authors of a paper that are read.
        vocabulary: Words of each vocabulary, at most.
        dropout: Share of the numbers of words' vectors that are dropped in training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedding: int = Field(default=64, ge=1)
    hidden: int = Field(default=64, ge=1)
    filters: int = Field(default=64, ge=1)
    context_widths: tuple[int, ...] = (4, 4, 5)
    author_widths: tuple[int, ...] = (1, 2)
    context_words: int = Field(default=32, ge=1)
    title_words: int = Field(default=17, ge=1)
    authors: int = Field(default=5, ge=1)
    vocabulary: int = Field(default=20_000, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)


PRESETS: Mapping[str, Sizes] = {
    "original": Sizes(),
    "port": Sizes(
        embedding=128,
        hidden=256,
        filters=256,
        context_widths=(4, 4, 5, 6, 7),
        context_words=100,
        title_words=30,
        dropout=0.2,
    ),
}
"""The sizes of the authors' own code (TensorFlow), and of its port to PyTorch (timoklein/neural_citation)."""


class Memory(NamedTuple):
    """What encoders made of some texts: `values` (rows, widths, filters); `known` (rows,), False for an empty text."""

    values: "torch.Tensor"
    known: "torch.Tensor"


class Network:
    """The layers, and how they are called.

    Args:
        sizes: Its sizes.
        words: How many words each vocabulary has.
        seed: Seed of the initial weights; None if weights will be loaded.

    Attributes:
        module: The layers, as a torch module.
    """

    def __init__(self, sizes: Sizes, words: Mapping[str, int], seed: int | None = None) -> None:
        import torch
        from torch import nn

        if seed is not None:
            torch.manual_seed(seed)
        self.sizes = sizes
        width, hidden, filters = sizes.embedding, sizes.hidden, sizes.filters
        self.module: Any = nn.ModuleDict(
            {
                **{kind: nn.Embedding(number, width, padding_idx=PADDING) for kind, number in words.items()},
                "context": _encoder(sizes, sizes.context_widths),
                "citing": _encoder(sizes, sizes.author_widths),
                "cited": _encoder(sizes, sizes.author_widths),
                "attended": nn.Linear(filters, hidden),
                "query": nn.Linear(hidden, hidden, bias=False),
                "energy": nn.Linear(hidden, 1, bias=False),
                "cell": nn.GRUCell(width + filters, hidden),
                "readout": nn.Linear(hidden + filters + width, hidden),
                "output": nn.Linear(hidden, words["titles"]),
            }
        )

    @property
    def device(self) -> "torch.device":
        """Where the weights are."""
        found: torch.device = self.module["output"].weight.device
        return found

    def encode(self, side: str, kind: str, rows: Rows) -> Memory:
        """Encodes texts.

        Args:
            side: Which encoder: `context`, `citing` or `cited`.
            kind: The vocabulary of the texts.
            rows: The texts, padded to at least the widest filter.
        """
        import torch

        encoder = self.module[side]
        ids, lengths = (torch.from_numpy(array).to(self.device) for array in rows)
        embedded = self._embedded(kind, ids).transpose(1, 2)
        pooled = []
        for layer in encoder["filters"]:
            found = torch.relu(layer(embedded))  # rows, filters, windows
            # A text shorter than the filter has one window. Windows beyond the text do not count, however long
            # the other texts of the batch are.
            windows = (lengths - layer.kernel_size[0] + 1).clamp(min=1)
            beyond = torch.arange(found.shape[2], device=self.device) >= windows[:, None]
            pooled.append(found.masked_fill(beyond[:, None], 0).amax(2))
        features = torch.tanh(encoder["mix"](torch.cat(pooled, 1)))
        return Memory(features.view(len(ids), len(pooled), -1), lengths > 0)

    def write(self, memories: "list[Memory]", titles: Rows) -> "torch.Tensor":
        """The cross-entropy of each word of some titles, (titles, longest title), 0 behind the end of a title.

        Args:
            memories: What is attended to: of each encoder, one row for each title. The first one always counts, the
                others where their texts are known.
            titles: The words to be written, at least one each.
        """
        import torch

        module = self.module
        ids, lengths = (torch.from_numpy(array).to(self.device) for array in titles)
        values = torch.cat([memory.values for memory in memories], 1)
        known = torch.cat([memory.known[:, None].expand(memory.values.shape[:2]) for memory in memories], 1)
        known[:, : memories[0].values.shape[1]] = True
        keys = module["attended"](values)
        before = torch.cat([torch.full_like(ids[:, :1], BEGIN), ids[:, :-1]], 1)
        embedded = self._embedded("titles", before)
        hidden = values.new_zeros(len(ids), self.sizes.hidden)
        states = []
        for step in range(ids.shape[1]):
            energy = module["energy"](torch.tanh(keys + module["query"](hidden)[:, None])).squeeze(2)
            weights = torch.softmax(energy.masked_fill(~known, -torch.inf), 1)
            read = (weights[:, :, None] * values).sum(1)
            hidden = module["cell"](torch.cat([embedded[:, step], read], 1), hidden)
            states.append(torch.cat([hidden, read, embedded[:, step]], 1))
        within = torch.arange(ids.shape[1], device=self.device) < lengths[:, None]
        losses = values.new_zeros(ids.shape)
        losses[within] = self._cross_entropies(torch.stack(states, 1)[within], ids[within])
        return losses

    def _cross_entropies(self, states: "torch.Tensor", words: "torch.Tensor") -> "torch.Tensor":
        """The cross-entropy of each word after its state, (words,)."""
        import torch

        readout = torch.tanh(self.module["readout"](states))
        parts = zip(torch.split(readout, _WORDS_AT_ONCE), torch.split(words, _WORDS_AT_ONCE), strict=True)
        return torch.cat(
            [
                torch.nn.functional.cross_entropy(self.module["output"](part), wanted, reduction="none")
                for part, wanted in parts
            ]
        )

    def _embedded(self, kind: str, ids: "torch.Tensor") -> "torch.Tensor":
        import torch

        return torch.nn.functional.dropout(self.module[kind](ids), self.sizes.dropout, self.module.training)


def _encoder(sizes: Sizes, widths: tuple[int, ...]) -> Any:
    """A time-delay encoder: a convolution for each width, and a layer over the features of all."""
    from torch import nn

    filters = nn.ModuleList([nn.Conv1d(sizes.embedding, sizes.filters, width) for width in widths])
    features = len(widths) * sizes.filters
    return nn.ModuleDict({"filters": filters, "mix": nn.Linear(features, features)})
