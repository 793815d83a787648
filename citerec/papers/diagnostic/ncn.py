"""The neural citation network (Ebesu and Fang, SIGIR 2017): time-delay encoders, a decoder with attention, training.

It learns to write the titles of cited papers. No layer mixes the rows of a batch: features are laid out row by row, and
nothing is normalised over the batch. The inputs are not reversed: for convolutions with max-pooling that only mirrors
the filters.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, Unpack

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, Field, TypeAdapter
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from citerec.contexts.provenance import PROVENANCE
from citerec.contexts.topic import Topic
from citerec.errors import CiterecError, InputError, ModelError
from citerec.files.progress import told
from citerec.files.writing import Kind
from citerec.index.columns import words_in
from citerec.models.find import first_line
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest, torch_device
from citerec.records import Paper
from citerec.settings import PartSettings, Positive
from citerec.train.encoders import tuned
from citerec.train.groups import Choice, GroupTraining, HowFound, Learner, Schedule, group_training, write_model

VOCABULARY = "vocabulary.json"
WEIGHTS = "model.safetensors"
NCN_DIRECTORY = Kind("NCN", "citerec-ncn", MANIFEST, frozenset({MANIFEST, PROVENANCE, VOCABULARY, WEIGHTS}))

Network = TypeVar("Network", bound=nn.Module)
Read = TypeVar("Read", bound=ModelManifest)

KINDS = ("texts", "titles", "authors")
"""The vocabularies, by name."""
_END = "</s>"
_SPECIAL = ("<pad>", "<unk>", "<s>", _END)
PADDING, UNKNOWN, BEGIN, END = range(4)

_TITLES_AT_ONCE = 64  # each of their words has a number for every word of the vocabulary


class Sizes(PartSettings):
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


class Vocabulary(BaseModel):
    """The words that a model knows.

    Attributes:
        words: The known words.
        left_out: How many different words of the training data it does not know.
    """

    words: tuple[str, ...]
    left_out: int

    @classmethod
    def of(cls, counts: Counter[str], size: int) -> Self:
        """The most frequent words, at most `size`; ties by the word itself.

        A word that occurs once is left out: so there are unknown words to learn from.
        """
        words = sorted((word for word, count in counts.items() if count > 1), key=lambda word: (-counts[word], word))
        return cls(words=tuple(words[:size]), left_out=len(counts) - len(words[:size]))


_VOCABULARIES = TypeAdapter(dict[Literal["texts", "titles", "authors"], Vocabulary])


class Manifest(ModelManifest):
    """`manifest.json` of a trained NCN.

    `weight` is the weight of its score, against 1 for the previous score; both are standardised. It was chosen on dev.
    """

    kind: Literal["citerec-ncn"] = "citerec-ncn"
    sizes: Sizes = Sizes()
    weight: float = 1.0


Memory = tuple[Tensor, Tensor]
"""What encoders made of some texts, (rows, widths, filters), and what of it is attended, (rows, widths)."""


class TimeDelay(nn.Module):
    """A time-delay encoder: a convolution for each width, and a layer over the features of all."""

    def __init__(self, sizes: Sizes, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.widths = widths
        self.filters = nn.ModuleList([nn.Conv1d(sizes.embedding, sizes.filters, width) for width in widths])
        self.mix = nn.Linear(len(widths) * sizes.filters, len(widths) * sizes.filters)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        """Features (rows, widths, filters) of texts (rows, longest, embedding), which are padded behind."""
        pooled = []
        for layer, width in zip(self.filters, self.widths, strict=True):
            windows = torch.relu(layer(embedded.transpose(1, 2)))  # rows, filters, windows
            # A text shorter than the filter has one window. Windows beyond the text do not count, however long the
            # other texts of the batch are.
            last = (lengths - width).clamp(min=0)[:, None]
            beyond = torch.arange(windows.shape[2], device=lengths.device) > last
            pooled.append(windows.masked_fill(beyond[:, None], 0).amax(2))
        return torch.tanh(self.mix(torch.cat(pooled, 1))).view(len(embedded), len(pooled), -1)


def open_network(
    folder: Path, kind: type[Read], make: Callable[[Read], Network], name: str, device: str | None
) -> Network:
    """A network that was saved: weights in safetensors beside one manifest.

    Args:
        folder: Its folder.
        kind: The class of its manifest.
        make: Makes a network of the sizes in the manifest.
        name: Its name, as in `citerec train`.
        device: Where it runs; by default a GPU if there is one.

    Raises:
        ModelError: There is none, or it is broken, or of another version.
    """
    again = f"Train it again: citerec train {name.lower()} …"
    manifest = read_model_manifest(folder, kind, name, again)
    if manifest is None:
        raise ModelError(f"{folder} holds no {name}", f"Train one: citerec train {name.lower()} …")
    try:
        network = make(manifest)
        load_model(network, folder / WEIGHTS)
    except CiterecError:
        raise
    except Exception as error:  # the libraries raise nearly every kind
        raise ModelError(f"the {name} {folder} is damaged: {first_line(error)}", again) from error
    return network.to(torch_device(device)).eval()


class Ncn(nn.Module):
    """The neural citation network. Use `open` to open a trained one.

    Args:
        manifest: Its manifest, with its sizes.
        words: Its vocabularies: words of contexts, words of titles, and authors.
    """

    def __init__(self, manifest: Manifest, words: Mapping[Any, Vocabulary]) -> None:
        super().__init__()
        self.manifest, self.words = manifest, words
        self.sizes = sizes = manifest.sizes
        self._ids = {kind: {one: at for at, one in enumerate((*_SPECIAL, *words[kind].words))} for kind in KINDS}
        width, hidden, filters = sizes.embedding, sizes.hidden, sizes.filters
        self.embedding = nn.ModuleDict(
            {kind: nn.Embedding(len(ids), width, padding_idx=PADDING) for kind, ids in self._ids.items()}
        )
        self.dropout = nn.Dropout(sizes.dropout)
        self.context = TimeDelay(sizes, sizes.context_widths)
        self.citing, self.cited = (TimeDelay(sizes, sizes.author_widths) for _ in range(2))
        self.attended = nn.Linear(filters, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)
        self.cell = nn.GRUCell(width + filters, hidden)
        self.readout = nn.Linear(hidden + filters + width, hidden)
        self.output = nn.Linear(hidden, len(self._ids["titles"]))

    @staticmethod
    def open(folder: str | Path, *, device: str | None = None) -> "Ncn":
        """Opens a trained network; arguments and errors are those of `open_network`."""

        def make(manifest: Manifest) -> Ncn:
            return Ncn(manifest, _VOCABULARIES.validate_json((Path(folder) / VOCABULARY).read_bytes()))

        return open_network(Path(folder), Manifest, make, "NCN", device)

    def save(self, folder: Path) -> None:
        """Writes weights and vocabularies into a folder."""
        (folder / VOCABULARY).write_bytes(_VOCABULARIES.dump_json(dict(self.words)))
        save_model(self, str(folder / WEIGHTS))

    def read(self, topics: Sequence[Topic]) -> list[Memory]:
        """What the encoders make of some contexts and of their citing authors, a row for each context."""
        passages = [words_in(topic.passage)[: self.sizes.context_words] for topic in topics]
        context, mask = self._encoded(self.context, "texts", passages)
        citing = self._of_authors(self.citing, [topic.citing_authors for topic in topics])
        return [(context, torch.ones_like(mask)), citing]

    def forward(self, memories: Sequence[Memory], papers: Sequence[Paper]) -> tuple[Tensor, Tensor]:
        """The cross-entropy of each word of titles, (papers, words), and the titles as numbers, each with its end.

        Args:
            memories: What `read` returned, a row for each paper.
            papers: Papers, of which titles and authors are read.
        """
        cited = self._of_authors(self.cited, [paper.authors for paper in papers])
        values, mask = (torch.cat(parts, 1) for parts in zip(*memories, cited, strict=True))
        ids = self._numbers("titles", [[*words_in(one.title)[: self.sizes.title_words], _END] for one in papers])
        embedded = self.dropout(self.embedding["titles"](nn.functional.pad(ids[:, :-1], (1, 0), value=BEGIN)))
        keys, hidden, states = self.attended(values), values.new_zeros(len(ids), self.sizes.hidden), []
        for step in range(ids.shape[1]):
            energy = self.energy(torch.tanh(keys + self.query(hidden)[:, None]))
            weights = energy.masked_fill(~mask[:, :, None], -torch.inf).softmax(1)
            attended = (weights * values).sum(1)
            hidden = self.cell(torch.cat([embedded[:, step], attended], 1), hidden)
            states.append(torch.cat([hidden, attended, embedded[:, step]], 1))
        within = ids != PADDING
        words = self.output(torch.tanh(self.readout(torch.stack(states, 1)[within])))
        losses = values.new_zeros(ids.shape)
        losses[within] = nn.functional.cross_entropy(words, ids[within], reduction="none")
        return losses, ids

    @torch.inference_mode()
    def scores(self, topic: Topic, papers: Sequence[Paper]) -> npt.NDArray[np.float32]:
        """Minus the cross-entropy of the titles of some candidates after a context, which is encoded once.

        A paper without a word in its title costs as much as the longest title whose words are guessed blindly.
        """
        # An unknown word costs more the more words it may be; else titles of unknown words would be cheap.
        spread = math.log(max(1, self.words["titles"].left_out))
        blind = math.log(len(self._ids["titles"])) * (self.sizes.title_words + 1)
        scores, memories = np.zeros(len(papers), np.float32), self.read([topic])
        for begin in range(0, len(papers), _TITLES_AT_ONCE):
            part = papers[begin : begin + _TITLES_AT_ONCE]
            copies = [(values.expand(len(part), -1, -1), mask.expand(len(part), -1)) for values, mask in memories]
            losses, ids = self(copies, part)
            nats = losses.sum(1) + spread * (ids == UNKNOWN).sum(1)
            is_empty = (ids != PADDING).sum(1) == 1
            scores[begin : begin + len(part)] = -nats.masked_fill(is_empty, blind).cpu().numpy()
        return scores

    def _of_authors(self, encoder: TimeDelay, authors: Sequence[Sequence[str]]) -> Memory:
        return self._encoded(encoder, "authors", [names_of(some[: self.sizes.authors]) for some in authors])

    def _encoded(self, encoder: TimeDelay, kind: str, texts: Sequence[Sequence[str]]) -> Memory:
        ids = self._numbers(kind, texts, max(encoder.widths))
        lengths = (ids != PADDING).sum(1)
        values = encoder(self.dropout(self.embedding[kind](ids)), lengths)
        return values, (lengths > 0)[:, None].expand(values.shape[:2])

    def _numbers(self, kind: str, texts: Sequence[Sequence[str]], least: int = 1) -> Tensor:
        """The numbers of the words of some texts, (texts, longest), with room for at least `least` in each."""
        longest, ids = max([least, *map(len, texts)]), self._ids[kind]
        rows = [[ids.get(word, UNKNOWN) for word in text] + [PADDING] * (longest - len(text)) for text in texts]
        return torch.tensor(rows, dtype=torch.long, device=self.output.weight.device)


def names_of(authors: Iterable[str]) -> list[str]:
    """Authors by first initial and last name, in lower case, as in NCN's data."""
    return [f"{words[0][0]} {words[-1]}" if len(words) > 1 else words[0] for words in map(words_in, authors) if words]


@dataclass(frozen=True, slots=True)
class NcnOptions:
    """How to train NCN.

    Attributes:
        sizes: The sizes of the network.
        depth: How many candidates it ranks on dev.
        batch: Cited papers per step.
    """

    sizes: Sizes = field(default_factory=Sizes)
    depth: Positive = 256
    batch: Positive = 64


def train_ncn(
    choice: Choice, index: Path, out: Path, options: NcnOptions, schedule: Schedule, **how: Unpack[HowFound]
) -> Manifest:
    """Trains an NCN, in place of an earlier one at `out`. An interrupted training is resumed.

    It learns the titles of cited papers word by word, and the best weights are kept by mrr@10 on dev, where it ranks
    the candidates of `system`. Optimiser and schedule are those of our other models, not Adam at a constant rate.
    Arguments and errors are those of `citerec.train_reranker`.
    """
    depths = (0, options.depth)
    with group_training(NCN_DIRECTORY, choice, index, out, options, schedule, depths, **how) as groups:
        examples, words = _survey(groups, options.sizes.vocabulary)
        if not examples:
            fault = f"no paper that {choice.path} cites has a title in {groups.recommender.path}"
            raise InputError(fault, "Give other contexts.")
        torch.manual_seed(schedule.seed)
        model = Ncn(Manifest(sizes=options.sizes), words).to(torch_device(how.get("device")))
        record = groups.fit(_learner(model, groups, examples))
        dev = dict(record.results)
        manifest = Manifest(
            sizes=options.sizes,
            weight=dev.pop("weight"),
            training={**groups.facts(record, "sizes"), "words": {kind: len(words[kind].words) for kind in KINDS}},
            dev=dev,
        )
        return write_model(NCN_DIRECTORY, out, manifest, groups.provenance(), model.save)


def _survey(groups: GroupTraining, size: int) -> tuple[list[tuple[int, int]], dict[str, Vocabulary]]:
    """The examples, and the words of all: an example is the number of a group and of one of its cited papers.

    A cited paper without a word in its title is no example.
    """
    examples: list[tuple[int, int]] = []
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    counted = told(groups.train, "counting words", groups.on_progress, len(groups.train))
    for number, (topic, cited) in enumerate(groups.read(counted)):
        counts["texts"].update(words_in(topic.passage))
        counts["authors"].update(names_of(topic.citing_authors))
        for slot, paper in enumerate(cited):
            counts["authors"].update(names_of(paper.authors))
            if title := words_in(paper.title):
                counts["titles"].update(title)
                examples.append((number, slot))
    return examples, {kind: Vocabulary.of(words, size) for kind, words in counts.items()}


def _learner(model: Ncn, groups: GroupTraining, examples: Sequence[tuple[int, int]]) -> Learner:
    """An NCN, and the cited papers whose titles it learns to write."""

    def losses(examples: Sequence[tuple[int, int]]) -> Iterator[torch.Tensor]:
        topics, papers = zip(*groups.read([groups.train[number] for number, _ in examples]), strict=True)
        cited = [of_group[slot] for (_, slot), of_group in zip(examples, papers, strict=True)]
        losses, titles = model(model.read(topics), cited)
        yield losses.sum() / (titles != PADDING).sum()

    def evaluate() -> tuple[float, dict[str, float]]:
        """The best mrr@10 on dev over weights, and results with the best weight."""
        scores = []
        measured = told(groups.dev, "measuring", groups.on_progress, len(groups.dev))
        for group, (topic, _) in zip(groups.dev, groups.read(measured), strict=True):
            papers = groups.recommender.store.papers(one.paper_id for one in group.candidates)
            scores.append((group, model.scores(topic, [papers[one.paper_id] for one in group.candidates])))
        return tuned(scores)

    return Learner(model, groups.options.batch, examples, losses, evaluate)
