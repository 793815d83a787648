"""A model of HAtten with its words: opened, begun, saved; documents become vectors of length one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ValidationError

from citerec.contexts.topic import Topic
from citerec.errors import ModelError, first_fault
from citerec.files.writing import Kind
from citerec.models.find import find_model, model_failures, model_identity
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest, read_model_manifest, torch_device
from citerec.papers.diagnostic.hatten.network import Sizes, Tokens, new_network, vectors_of
from citerec.papers.diagnostic.hatten.paragraphs import Document, paper_paragraphs, topic_paragraphs
from citerec.papers.diagnostic.hatten.words import Words
from citerec.records import Paper

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

KIND = "citerec-hatten"
HATTEN_DIRECTORY = Kind(name="HAtten model", kind=KIND, manifest=MANIFEST, names=MODEL_FILES | {MANIFEST})

_CONFIG, _TOKENIZER, _WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
_WORDS = "word_vectors"
_REMEDY = "Train one: citerec train hatten …"
_PART = 4096


class HattenManifest(ModelManifest):
    """`manifest.json` of a model: whose word vectors it has, its training, and dev values, also those before it."""

    kind: Literal["citerec-hatten"] = "citerec-hatten"
    words: str = ""
    training: Mapping[str, Any] = {}
    dev: Mapping[str, float] = {}


class Hatten:
    """Turns topics and papers into vectors of length one. Safe to call from several threads.

    Attributes:
        identity: Its `model_identity`; empty for one that is trained.
        sizes: Its sizes.
        network: From `new_network`.
    """

    def __init__(self, sizes: Sizes, tokenizer: Any, words: "torch.Tensor", network: Any, identity: str = "") -> None:
        self.sizes = sizes
        self.network = network
        self.identity = identity
        self._tokenizer = tokenizer
        self._words = words

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return self.sizes.width

    @property
    def max_tokens(self) -> int:
        """How many words of a paragraph it reads."""
        return self.sizes.max_words

    @classmethod
    def begin(cls, words: Words, sizes: Sizes, *, seed: int, device: str | None = None) -> Self:
        """A model to train, with weights that follow from the seed.

        Raises:
            InputError: The heads do not divide the width, or torch has no such device.
        """
        import torch

        device = torch_device(device)
        vectors = torch.from_numpy(words.vectors).to(device)
        return cls(sizes, words.tokenizer, vectors, new_network(sizes, seed).to(device))

    @classmethod
    def open(cls, name: str, *, device: str | None = None) -> Self:
        """Opens a trained model.

        Args:
            name: Its folder, also with a digest (`find_model`).
            device: Where torch runs it; by default a GPU if there is one.

        Raises:
            ModelError: There is none, or it is broken or of another version.
        """
        import torch
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        folder = Path(find_model(name))
        if not HATTEN_DIRECTORY.is_at(folder):
            raise ModelError(f"{name} is no HAtten model", _REMEDY)
        read_model_manifest(folder, HattenManifest, "a HAtten model", _REMEDY)
        device = torch_device(device)
        with model_failures(name):
            try:
                sizes = Sizes.model_validate_json((folder / _CONFIG).read_bytes())
            except ValidationError as error:
                raise ModelError(f"{folder / _CONFIG} is broken ({first_fault(error)})", _REMEDY) from None
            network = new_network(sizes, 0)
            # Copies: weights read from a file are aligned as in the file.
            weights = {key: value.clone() for key, value in load_file(folder / _WEIGHTS).items()}
            words: torch.Tensor = weights.pop(_WORDS).to(device)
            network.load_state_dict(weights)
            tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        return cls(sizes, tokenizer, words, network.to(device).eval(), model_identity(str(folder)))

    def save(self, folder: Path, manifest: HattenManifest) -> None:
        """Writes the files of the model into a folder; the word vectors are among the weights."""
        from safetensors.torch import save_file

        weights = {_WORDS: self._words, **self.network.state_dict()}
        save_file({key: value.detach().cpu().contiguous() for key, value in weights.items()}, folder / _WEIGHTS)
        (folder / _CONFIG).write_text(self.sizes.model_dump_json(indent=2) + "\n", encoding="utf-8")
        self._tokenizer.save(str(folder / _TOKENIZER))
        manifest.write(folder)

    def with_network(self, network: Any) -> "Hatten":
        """The same words with another network of the same sizes."""
        return Hatten(self.sizes, self._tokenizer, self._words, network)

    def encode_papers(self, papers: Sequence[Paper]) -> "NDArray[np.float32]":
        """The vectors of some papers, (papers, dimension)."""
        return self.encode([paper_paragraphs(paper) for paper in papers])

    def encode_topics(self, topics: Sequence[Topic]) -> "NDArray[np.float32]":
        """The vectors of some topics, (topics, dimension)."""
        return self.encode([topic_paragraphs(topic) for topic in topics])

    def encode(self, documents: Sequence[Document]) -> "NDArray[np.float32]":
        """The vectors of some documents, (documents, dimension). One without a word has a vector too."""
        import numpy as np
        import torch

        vectors = np.empty((len(documents), self.dimension), np.float32)
        self.network.eval()
        with torch.inference_mode():
            for begin in range(0, len(documents), _PART):
                part = documents[begin : begin + _PART]
                vectors[begin : begin + len(part)] = self.vectors(part).cpu().numpy()
        return vectors

    def vectors(self, documents: Sequence[Document]) -> "torch.Tensor":
        """The vectors of some documents, with gradients: for training."""
        return vectors_of(self.network, self.sizes, self._words, self._tokens(documents))

    def _tokens(self, documents: Sequence[Document]) -> list[Tokens]:
        """The numbers of the words; a document without any has the first word of all, as a title."""
        texts = [text for document in documents for _, text in document]
        encoded = iter(self._tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        found = []
        for document in documents:
            paragraphs = [(number, next(encoded).ids) for number, _ in document]
            found.append([one for one in paragraphs if one[1]] or [(0, [0])])
        return found
