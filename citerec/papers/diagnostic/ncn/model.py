"""A trained NCN: vocabularies, network and manifest; how it reads contexts and papers, and what titles cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import LEARNT
from citerec.contexts.topic import Topic
from citerec.errors import ModelError
from citerec.files.writing import Kind
from citerec.models.find import first_line
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest, torch_device
from citerec.papers.diagnostic.ncn.network import Memory, Network, Sizes
from citerec.papers.diagnostic.ncn.words import END, UNKNOWN, Rows, Vocabularies, names_of, rows_of, words_of
from citerec.records import Paper

if TYPE_CHECKING:
    import torch

KIND = "citerec-ncn"
VOCABULARY = "vocabulary.json"
WEIGHTS = "model.safetensors"

NCN_DIRECTORY = Kind(name="NCN", kind=KIND, manifest=MANIFEST, names=frozenset({MANIFEST, LEARNT, VOCABULARY, WEIGHTS}))

Total = Literal["sum", "mean"]
"""Whether the cross-entropy of a title is that of all its words together, as in the paper, or of a word on average."""

_TITLES_AT_ONCE = 256
_AGAIN = "Train it again: citerec train ncn …"


class Manifest(ModelManifest):
    """`manifest.json` of a trained NCN.

    `weight` is the weight of its score, against 1 for the previous score; both are standardised. `total` says what the
    score is of; both were chosen on dev.
    """

    kind: Literal["citerec-ncn"] = "citerec-ncn"
    sizes: Sizes = Sizes()
    weight: float = 1.0
    total: Total = "sum"
    training: Mapping[str, Any] = {}
    dev: Mapping[str, float] = {}


class Costs(NamedTuple):
    """What titles cost to write: the cross-entropy of all words, in nats, and how many words, each (titles,)."""

    nats: npt.NDArray[np.float32]
    words: npt.NDArray[np.int64]

    def scores(self, total: Total) -> npt.NDArray[np.float32]:
        """Higher is better: minus the cross-entropy."""
        return np.negative(self.nats if total == "sum" else self.nats / self.words.astype(np.float32))


class Ncn:
    """The neural citation network. Use `open` to open a trained one, or `begin` to train one."""

    def __init__(self, network: Network, words: Vocabularies, manifest: Manifest) -> None:
        self.network = network
        self.words = words
        self.manifest = manifest

    @classmethod
    def begin(cls, sizes: Sizes, words: Vocabularies, *, seed: int, device: str | None = None) -> Self:
        """A network to train, initialised with the seed; on a GPU if there is one and no other device is named."""
        network = Network(sizes, words.sizes, seed)
        network.module.to(torch_device(device))
        return cls(network, words, Manifest(sizes=sizes))

    @classmethod
    def open(cls, folder: str | Path, *, device: str | None = None) -> Self:
        """Opens a trained network.

        Args:
            folder: Its folder.
            device: Where it runs; by default a GPU if there is one.

        Raises:
            ModelError: There is none, or it is broken, or of another version.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_model

        folder = Path(folder)
        manifest = read_model_manifest(folder, Manifest, "an NCN", _AGAIN)
        if manifest is None:
            raise ModelError(f"{folder} holds no NCN", "Train one: citerec train ncn …")
        try:
            words = Vocabularies.read(folder / VOCABULARY)
            network = Network(manifest.sizes, words.sizes)
            load_model(network.module, folder / WEIGHTS)
        except (OSError, SafetensorError, RuntimeError, ValueError, TypeError, KeyError) as error:
            raise ModelError(f"the NCN {folder} is damaged: {first_line(error)}", _AGAIN) from error
        network.module.to(torch_device(device)).eval()
        return cls(network, words, manifest)

    def save(self, folder: Path, manifest: Manifest) -> None:
        """Writes weights, vocabularies and the manifest into a folder."""
        from safetensors.torch import save_model

        save_model(self.network.module, str(folder / WEIGHTS))
        self.words.write(folder / VOCABULARY)
        manifest.write(folder)

    def remember(self, topics: Sequence[Topic]) -> list[Memory]:
        """What the encoders make of some contexts and of their citing authors, a row for each context."""
        sizes = self.manifest.sizes
        passages = [self.words.texts.ids(words_of(topic.passage)[: sizes.context_words]) for topic in topics]
        context = self.network.encode("context", "texts", rows_of(passages, max(sizes.context_widths)))
        citing = [topic.citing.authors if topic.citing else () for topic in topics]
        return [context, self.network.encode("citing", "authors", self._authors(citing))]

    def cross_entropies(self, memories: Sequence[Memory], papers: Sequence[Paper]) -> "tuple[torch.Tensor, Rows]":
        """The cross-entropy of each word of titles, (papers, words), and the titles, each with its end.

        Args:
            memories: What `remember` returned, a row for each paper.
            papers: Papers, of which titles and authors are read.
        """
        titles = self._titles(papers)
        cited = self.network.encode("cited", "authors", self._authors([paper.authors for paper in papers]))
        return self.network.write([*memories, cited], titles), titles

    def costs(self, topic: Topic, papers: Sequence[Paper]) -> Costs:
        """What the titles of some candidates cost after a context, which is encoded once.

        A paper without a word in its title costs as much as the longest title whose words are guessed blindly.
        """
        import torch

        blind = float(np.log(len(self.words.titles)))
        found = []
        with torch.inference_mode():
            memories = self.remember([topic])
            for begin in range(0, len(papers), _TITLES_AT_ONCE):
                part = papers[begin : begin + _TITLES_AT_ONCE]
                losses, titles = self.cross_entropies([_repeated(one, len(part)) for one in memories], part)
                nats = losses.sum(1).cpu().numpy()
                # An unknown word costs more the more words it may be; else titles of unknown words would be cheap.
                nats += self.words.titles.spread * (titles.ids == UNKNOWN).sum(1).astype(np.float32)
                lengths = titles.lengths.copy()
                empty = lengths == 1
                lengths[empty] = self.manifest.sizes.title_words + 1
                nats[empty] = blind * lengths[empty]
                found.append(Costs(nats, lengths))
        if not found:
            return Costs(np.zeros(0, np.float32), np.zeros(0, np.int64))
        return Costs(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _titles(self, papers: Sequence[Paper]) -> Rows:
        longest = self.manifest.sizes.title_words
        return rows_of([[*self.words.titles.ids(words_of(paper.title)[:longest]), END] for paper in papers])

    def _authors(self, authors: Sequence[Sequence[str]]) -> Rows:
        sizes = self.manifest.sizes
        names = [self.words.authors.ids(names_of(some[: sizes.authors])) for some in authors]
        return rows_of(names, max(sizes.author_widths))


def _repeated(memory: Memory, times: int) -> Memory:
    """One row as many rows."""
    return Memory(memory.values.expand(times, -1, -1), memory.known.expand(times))
