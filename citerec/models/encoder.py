"""Encoders: texts into vectors of length one."""

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from citerec.errors import ModelError
from citerec.models.base import ENCODERS, Network
from citerec.models.batches import batches_by_length
from citerec.models.loading import has_gpu
from citerec.models.static import learnt_from, open_static

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

_PART = 8192  # texts tokenised at once: enough to find others of similar length, few enough for memory
_ROWS = 1024
# Turning a model into another form takes some ten seconds, once: not worth it for a handful of papers.
_MANY = 2000


class Encoder:
    """Turns texts into vectors of length one. Safe to call from several threads.

    Attributes:
        identity: Its `model_identity`.
        max_tokens: How many tokens of a text it reads, special ones included.
    """

    def __init__(self, name: str, identity: str, dimension: int, tokenizer: "Tokenizer", network: Network) -> None:
        self.name = name
        self.identity = identity
        self.dimension = dimension
        self.max_tokens = int((tokenizer.truncation or {})["max_length"])
        self._tokenizer = tokenizer
        self._network = network

    @classmethod
    def open(
        cls, name: str, *, backend: str = "torch", device: str | None = None, max_tokens: int | None = None
    ) -> Self:
        """Loads an encoder.

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
        identity, reading, network = ENCODERS[backend].open(name, device)
        return cls(name, identity, reading.dimension, reading.cutting(name, max_tokens), network)

    @classmethod
    def open_for_queries(cls, name: str, backend: str, papers: int, *, max_tokens: int | None = None) -> Self:
        """Loads the encoder of queries for some papers, which `backend` has encoded.

        For 2,000 papers and more that is a backend with the same vectors that needs less time for a sentence, if it
        can be used, and there is no GPU; else `backend`. Other arguments and errors are those of `open`.
        """
        if papers >= _MANY and not has_gpu():
            for quick in [other for other, part in ENCODERS.items() if part.same_as == backend]:
                with contextlib.suppress(ModelError):
                    return cls.open(name, backend=quick, max_tokens=max_tokens)
        return cls.open(name, backend=backend, max_tokens=max_tokens)

    @classmethod
    def open_static(cls, name: str, model: str, identity: str | None) -> Self:
        """Loads a static encoder of queries for vectors that a model made, with that model's identity.

        Args:
            name: The folder of the static encoder.
            model: The model, as in the manifest of the vectors.
            identity: Its identity there; None for given vectors.

        Raises:
            ModelError: It cannot be loaded, or learnt other vectors.
        """
        opened = open_static(name)
        if opened is None or not learnt_from(name, model, identity):
            raise ModelError(
                f"{name!r} is no static encoder that learnt the vectors of {model}", "Make one: citerec train static"
            )
        reading = opened.reading
        return cls(name, identity or opened.identity, reading.dimension, reading.cutting(name, None), opened.network)

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of some texts, texts × dimension, each row of length one. An empty text has a vector too."""
        import numpy as np

        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for begin in range(0, len(texts), _PART):
            self._encode_part(texts[begin : begin + _PART], vectors[begin : begin + _PART])
        return vectors

    def _encode_part(self, texts: Sequence[str], vectors: "NDArray[np.float32]") -> None:
        encoded = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        network = self._network

        def work(rows: list[int]) -> None:
            ids, mask = _padded([encoded[row] for row in rows])
            vectors[rows] = network.vectors(ids, mask, alone=len(batches) == 1)

        batches = list(batches_by_length([len(ids) for ids in encoded], network.batch_tokens, _ROWS))
        if min(network.workers, len(batches)) <= 1:
            list(map(work, batches))
            return
        with ThreadPoolExecutor(network.workers) as pool:
            try:
                list(pool.map(work, batches))
            except BaseException:
                pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for batches that have not begun
                raise


def _padded(rows: Sequence[Sequence[int]]) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Token ids and mask, (rows, longest). Padding is masked, so its ids do not matter."""
    import numpy as np

    longest = max(1, max(map(len, rows)))
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, values in enumerate(rows):
        ids[row, : len(values)] = values
        mask[row, : len(values)] = 1
    return ids, mask
