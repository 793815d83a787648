"""Encoders: texts into vectors of length one. A backend that runs them is a subclass of `Encoder`."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict

from citerec.errors import ModelError
from citerec.files.registry import Registry
from citerec.models.find import find_model, first_line, model_identity
from citerec.models.loading import ModelManifest, open_sentence_transformer
from citerec.records import Paper

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_PART = 8192  # texts tokenised at once: enough to find others of similar length, few enough for memory
_ROWS = _KEPT = 1024
_BATCH_TOKENS = {"cpu": 2048, "cuda": 65_536}
# Turning a model into another form takes some ten seconds, once: not worth it for a handful of papers.
_MANY = 2000


class Reading(BaseModel):
    """How an encoder reads texts; `tokenizer` is its `tokenizer.json`.

    Attributes:
        max_tokens: How many tokens of a text it reads, special ones included, as set by its authors.
        limit: The largest number of tokens it could read; None if unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimension: int
    max_tokens: int
    limit: int | None
    truncation_side: Literal["left", "right"]
    tokenizer: str

    @classmethod
    def of(cls, name: str, model: "SentenceTransformer") -> "Reading":
        """How a model reads. Raises ModelError if it has no tokenizer that several threads can use."""
        from tokenizers import Tokenizer

        backend = getattr(model.tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise ModelError(f"the model {name!r} has no tokenizer.json", "Use another model, or save it with one.")
        limit = getattr(model.config, "max_position_embeddings", None)
        return cls(
            dimension=int(model.get_embedding_dimension() or 0),
            max_tokens=int(model.get_max_seq_length() or limit or 512),
            limit=limit,
            truncation_side=model.tokenizer.truncation_side,
            tokenizer=backend.to_str(),
        )


class Encoder(ABC):
    """Turns texts into vectors of length one. Safe to call from several threads. Use `open` to open one.

    A backend loads a model and computes vectors. It is a subclass in a file of this package, or an entry point of
    `citerec.encoder_backends`; it imports heavy packages in its methods.

    Args:
        model: The name of a model, as for `find_model`.
        device: Where torch runs it.
        max_tokens: How many tokens of a text it reads; by default as set by its authors.

    Attributes:
        name: The name of the backend, as in `-c backend=NAME`.
        same_as: The backend whose vectors these are, within rounding: it may encode the queries for papers that the
            other has encoded.
        on_gpu: Whether it uses a GPU if there is one.
        batch_tokens: Tokens of a batch at most, padding included: `batches_by_length`.
        workers: How many batches run at once.
        identity: The `model_identity` of its model.
        dimension: Numbers of a vector.
        max_tokens: How many tokens of a text it reads, special ones included.

    Raises:
        ModelError: The model cannot be found or loaded, or cannot read so many tokens, or they are too few.
    """

    name: ClassVar[str]
    same_as: ClassVar[str | None] = None
    on_gpu: ClassVar[bool] = False
    batch_tokens: int
    workers: int = 1

    def __init__(self, model: str, device: str | None = None, max_tokens: int | None = None) -> None:
        from tokenizers import Tokenizer

        self.identity, reading = self.load(model, device)
        length = max_tokens or reading.max_tokens
        if reading.limit is not None and length > reading.limit:
            fault = f"the model {model!r} reads {reading.limit} tokens, not {length}"
            raise ModelError(fault, f"Give at most {reading.limit}.")
        self._tokenizer = Tokenizer.from_str(reading.tokenizer)
        if length <= (special := self._tokenizer.num_special_tokens_to_add(is_pair=False)):
            raise ModelError(f"{length} tokens leave no room for a text", f"Give more than {special}.")
        self._tokenizer.enable_truncation(length, direction=reading.truncation_side)
        self._tokenizer.no_padding()
        self.dimension, self.max_tokens = reading.dimension, length
        self._kept: dict[str, NDArray[np.float32]] = {}

    @abstractmethod
    def load(self, model: str, device: str | None) -> tuple[str, Reading]:
        """Loads a model, and returns its `model_identity` and how it reads; raises ModelError if it cannot."""

    @abstractmethod
    def vectors(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors (rows, dimension) of length one, from token ids (rows, length) where the mask is 1.

        Several threads call it.
        """

    @staticmethod
    def open(
        name: str, *, backend: str = "torch", device: str | None = None, max_tokens: int | None = None
    ) -> "Encoder":
        """Loads an encoder; a static one is run by numpy, whatever the backend.

        Args:
            name: A folder or a name, as for `find_model`.
            backend: One of `ENCODERS`: `torch`; `onnx`, the same vectors on the CPU, or `onnx-int8`, 8-bit weights,
                which are made at the first call and then opened without torch.
            device: Where torch runs it, such as `cpu` or `cuda:0`; by default the best available.
            max_tokens: How many tokens of a text it reads; by default as set by its authors.

        Raises:
            InputError: There is no such backend.
            ModelError: It cannot be found or loaded, or cannot read so many tokens.
        """
        runs = ENCODERS[backend]
        return (StaticEncoder if is_static(name) else runs)(name, device, max_tokens)

    @staticmethod
    def open_for_queries(name: str, backend: str, papers: int, *, max_tokens: int | None = None) -> "Encoder":
        """Loads the encoder of queries for some papers, which `backend` has encoded.

        For 2,000 papers and more that is a backend with the same vectors that starts sooner, and needs less time for a
        sentence, if it can be used; else `backend`. Other arguments and errors are those of `open`.
        """
        if papers >= _MANY:
            for quick in [other for other, part in ENCODERS.items() if part.same_as == backend]:
                with contextlib.suppress(ModelError):
                    return Encoder.open(name, backend=quick, max_tokens=max_tokens)
        return Encoder.open(name, backend=backend, max_tokens=max_tokens)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of some texts, texts × dimension, each row of length one. An empty text has a vector too."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for begin in range(0, len(texts), _PART):
            self._encode_part(texts[begin : begin + _PART], vectors[begin : begin + _PART])
        return vectors

    def encode_again(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `encode`, for texts that may have been encoded just before: the vectors of the last are kept."""
        kept = self._kept
        new = [text for text in dict.fromkeys(texts) if text not in kept]
        kept.update(zip(new, self.encode(new), strict=True))
        if len(kept) > _KEPT:
            self._kept = {}  # other threads go on with the old ones
        return np.array([kept[text] for text in texts]).reshape(len(texts), self.dimension)

    def encode_papers(self, papers: Sequence[Paper]) -> NDArray[np.float32]:
        """The vectors of some papers, each as one text, `paper_text`."""
        return self.encode([paper_text(paper) for paper in papers])

    def _encode_part(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        encoded = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        batches = list(batches_by_length([len(ids) for ids in encoded], self.batch_tokens, _ROWS))

        def work(rows: list[int]) -> None:
            vectors[rows] = self.vectors(*padded([encoded[row] for row in rows]))

        if min(self.workers, len(batches)) <= 1:
            list(map(work, batches))
            return
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(work, batches))  # Ctrl-C does not wait for batches that have not begun


def padded(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids and mask, (rows, longest). Padding is masked, so its ids do not matter."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(max(1, lengths.max())) < lengths[:, None]).astype(np.int64)
    ids = np.zeros_like(mask)
    ids[mask == 1] = [token for row in rows for token in row]
    return ids, mask


class TorchEncoder(Encoder):
    """Runs the modules of sentence-transformers: the transformer, pooling, and the modules after it."""

    name = "torch"
    on_gpu = True

    def load(self, model: str, device: str | None) -> tuple[str, Reading]:
        """As for `Encoder`."""
        self._model = open_sentence_transformer(model, device).eval()
        self.batch_tokens = _BATCH_TOKENS.get(self._model.device.type, _BATCH_TOKENS["cpu"])
        return model_identity(find_model(model)), Reading.of(model, self._model)

    def vectors(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """As for `Encoder`; torch always uses all its threads within a batch."""
        import torch

        device = self._model.device
        # In 32 bits on GPUs too: in bfloat16 the vector of a text depends on the batch in which it is.
        with torch.inference_mode():
            arrays = {"input_ids": ids, "attention_mask": mask}
            features = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
            vectors = self._model(features)["sentence_embedding"].float()
        normalised: NDArray[np.float32] = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
        return normalised


ENCODERS: Registry[type[Encoder]] = Registry(
    "encoder backend",
    {
        "torch": "citerec.models.encoder:TorchEncoder",
        "onnx": "citerec.models.onnx:OnnxEncoder",
        "onnx-int8": "citerec.models.onnx:OnnxInt8Encoder",
    },
)

BackendName = Annotated[str, AfterValidator(lambda name: ENCODERS[name].name)]
"""The name of a backend, in settings."""


def batches_by_length(lengths: Sequence[int], max_tokens: int, max_rows: int) -> Iterator[list[int]]:
    """The positions of texts in batches, longest first, so that too little memory fails at once.

    Args:
        lengths: The length of each text, in tokens.
        max_tokens: Rows of a batch times its longest text, at most. A longer text is its own batch.
        max_rows: Texts in a batch, at most.

    Yields:
        Positions in `lengths`; each is in one batch, those of equal length in their order.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    begin = 0
    while begin < len(order):
        rows = max(1, min(max_rows, max_tokens // max(1, lengths[order[begin]])))
        yield order[begin : begin + rows]
        begin += rows


WEIGHTS, TABLE, SCALES = "model.safetensors", "embedding.weight", "scales"
_MAX_TOKENS = 512  # it could read any number


class StaticManifest(ModelManifest):
    """`manifest.json` of a static encoder that citerec trained.

    Attributes:
        teacher: The model whose vectors it learnt, as the manifest of those vectors has it, and its identity.
        training: Papers, options and values of the training.
        dev: Mean cosine with the teacher's vectors of papers that were held out; `BY_TITLES`, `BY_MODEL`.
    """

    kind: Literal["citerec-static-encoder"] = "citerec-static-encoder"
    teacher: dict[str, Any]


BY_TITLES, BY_MODEL = "found by title", "found by title, by the model"
"""Shares of papers held out that are among the first ten for their title, by a static encoder and by its teacher."""


class StaticEncoder(Encoder):
    """Means of rows of a table (tokens, dimension). A text without a token has the mean of the whole table.

    Its files are in the form of sentence-transformers (`StaticEmbedding`); a table of bytes has the scales of its rows
    beside it.
    """

    batch_tokens = 16_384

    def load(self, model: str, device: str | None) -> tuple[str, Reading]:  # noqa: ARG002  numpy runs it
        """As for `Encoder`."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        folder = Path(find_model(model))
        try:
            tokenizer = without_special_tokens((folder / "tokenizer.json").read_bytes())
            arrays = load_file(folder / WEIGHTS)
            self._table, dimension = arrays[TABLE], arrays[TABLE].shape[1]
            self._scales = arrays.get(SCALES, np.ones(len(self._table), np.float32))[:, None]
            if len(self._scales) != len(self._table):
                raise ValueError(f"{len(self._scales)} scales for {len(self._table)} tokens")
        except (OSError, ValueError, LookupError, SafetensorError) as error:
            fault = f"the static encoder {model!r} is broken: {first_line(error)}"
            raise ModelError(fault, "Train it again.") from error
        return model_identity(str(folder)), Reading(
            dimension=dimension, max_tokens=_MAX_TOKENS, limit=None, truncation_side="right", tokenizer=tokenizer
        )

    def vectors(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """As for `Encoder`; one thread is enough."""
        counts = mask.sum(axis=1).tolist()
        sums = np.stack([self._sum(row[:count]) for row, count in zip(ids, counts, strict=True)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        if len(without := np.flatnonzero(lengths == 0)):
            sums[without] = self._sum(np.arange(len(self._table)))
        vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    def _sum(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """The sum of the vectors of some tokens, (dimension,)."""
        sums: NDArray[np.float32] = (self._table[tokens] * self._scales[tokens]).sum(axis=0)
        return sums


def coded(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Vectors, (rows, dimension), as codes of a byte for each number, and a scale for each row; zeros have scale 0."""
    scales = np.abs(vectors).max(axis=1, initial=0) / np.float32(127)
    codes = np.divide(vectors, scales[:, None], out=np.zeros_like(vectors), where=scales[:, None] > 0)
    return np.rint(codes).astype(np.int8), scales


def write_table(folder: Path, table: NDArray[np.float32]) -> None:
    """Puts a table, (tokens, dimension), as codes of a byte, in the place of that of a folder."""
    from safetensors.numpy import save_file

    codes, scales = coded(table)
    save_file({TABLE: codes, SCALES: scales}, folder / WEIGHTS)


def without_special_tokens(tokenizer: str | bytes) -> str:
    """A `tokenizer.json` that puts no [CLS] and no padding around a text: a static encoder has no use for them."""
    return orjson.dumps({**orjson.loads(tokenizer), "post_processor": None, "padding": None}).decode()


def is_static(name: str) -> bool:
    """Whether a model has one module, which has a vector for each token, and perhaps normalisation."""
    folder = Path(find_model(name))
    is_table = modules_of(folder) in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"])
    return is_table and (folder / WEIGHTS).is_file()


def modules_of(folder: Path) -> list[str]:
    """The modules of an encoder in the form of sentence-transformers: "Transformer", "Pooling"; empty of others."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return [str(one["type"]).rpartition(".")[2] for one in orjson.loads((folder / "modules.json").read_bytes())]
    return []


def paper_text(paper: Paper) -> str:
    """The text of a paper that is encoded: its title, and its abstract if it has one. Without a text, no vector."""
    return ". ".join(filter(None, (paper.title, paper.abstract)))


class PaperEncoder(Protocol):
    """Makes the vectors of papers of its `dimension`; it reads titles and abstracts, so many tokens at most."""

    identity: str
    dimension: int
    max_tokens: int

    def encode_papers(self, papers: Sequence[Paper], /) -> NDArray[np.float32]:
        """The vectors of some papers, (papers, dimension), each of length one."""
