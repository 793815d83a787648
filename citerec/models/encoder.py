"""Encoders: texts into vectors of length one."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Self

from citerec.errors import ModelError
from citerec.models.batches import batches_by_length
from citerec.models.find import DEFAULT_ENCODER, find_model, model_failures, model_identity, only_local, quiet_libraries
from citerec.models.loading import torch_device

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

Backend = Literal["torch", "onnx-int8"]

# Encoders without modules of sentence-transformers whose authors take the vector of [CLS]; any other's is the mean.
# Cohan et al. 2020 (SPECTER), Singh et al. 2023 (SPECTER2; its base alone, without adapters).
_CLS_POOLED = {"allenai/specter", "allenai/specter2", "allenai/specter2_base"}
_PART = 8192  # texts tokenised at once: enough to find others of like length, little enough for memory
_CPU_BATCH_TOKENS = 2048
_GPU_BATCH_TOKENS = 65_536
_ROWS = 1024


class Network(Protocol):
    """What makes vectors of token ids. Safe to call from several threads."""

    batch_tokens: int  # what a batch may cost, padding included: `batches_by_length`
    workers: int  # how many batches run at once

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """Vectors (rows, dimension) of length one, of ids (rows, length) where the mask is 1."""


class Encoder:
    """Turns texts into vectors of length one. Safe to call from several threads.

    Attributes:
        name: What the model was asked for by.
        identity: What tells it from another: `model_identity`.
        dimension: Of its vectors.
        max_tokens: How much of a text it reads, special tokens included.
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
        cls, name: str, *, backend: Backend = "torch", device: str | None = None, max_tokens: int | None = None
    ) -> Self:
        """Loads an encoder.

        Args:
            name: A folder, or a name: `find_model`.
            backend: `torch`, or `onnx-int8`: 8-bit weights on the CPU.
            device: Where torch runs it, such as `cpu` or `cuda:0`; the best there is if not said.
            max_tokens: How much of a text it reads; what its authors set if not said.

        Raises:
            ModelError: It cannot be found or loaded, or reads less than that.
        """
        found = find_model(name)
        model = open_sentence_transformer(name, "cpu" if backend == "onnx-int8" else device)
        tokenizer = _tokenizer(name, model, max_tokens)
        identity = model_identity(found)
        network: Network = _TorchNetwork(model) if backend == "torch" else _OnnxNetwork(name, identity, model)
        return cls(name, identity, int(model.get_embedding_dimension() or 0), tokenizer, network)

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of some texts, in their order.

        Returns:
            An array (texts, dimension), each row of length one. An empty text has a vector too.
        """
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
            vectors[rows] = network.vectors(ids, mask)

        batches = list(batches_by_length([len(ids) for ids in encoded], network.batch_tokens, _ROWS))
        if min(network.workers, len(batches)) <= 1:
            for rows in batches:
                work(rows)
            return
        with ThreadPoolExecutor(network.workers) as pool:
            try:
                for _ in pool.map(work, batches):
                    pass
            except BaseException:
                pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for what was not begun
                raise


class _TorchNetwork:
    """Runs the modules of sentence-transformers: the transformer, pooling, and what its authors put behind it."""

    workers = 1  # torch has threads of its own within a batch

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model = model.eval()
        self._on_gpu = model.device.type == "cuda"
        self.batch_tokens = _GPU_BATCH_TOKENS if self._on_gpu else _CPU_BATCH_TOKENS

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]") -> "NDArray[np.float32]":
        import torch

        device = self._model.device
        # bfloat16 where there are tensor cores for it. On a CPU it was no quicker: docs/retrieval.md.
        with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16, enabled=self._on_gpu):
            features = {
                "input_ids": torch.from_numpy(ids).to(device),
                "attention_mask": torch.from_numpy(mask).to(device),
            }
            vectors = self._model(features)["sentence_embedding"].float()
        normalised: NDArray[np.float32] = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
        return normalised


class _OnnxNetwork:
    """Runs the transformer in 8 bits, and what sentence-transformers has behind it as it is.

    Each text is run alone: nothing is padded, and no vector depends on which texts stand beside it.
    """

    batch_tokens = 1

    def __init__(self, name: str, identity: str, model: "SentenceTransformer") -> None:
        import torch

        from citerec.models.onnx import OnnxModel, quantised

        transformer, *self._behind = model.eval()
        if getattr(transformer, "module_output_name", None) != "token_embeddings":
            raise ModelError(f"the model {name!r} gives no vectors of tokens", "Use the backend torch.")
        self._transformer = OnnxModel(quantised(transformer.model, identity))
        self.workers = torch.get_num_threads()  # follows OMP_NUM_THREADS and the processors allowed

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]") -> "NDArray[np.float32]":
        import torch

        tokens = self._transformer.run({"input_ids": ids, "attention_mask": mask})
        with torch.inference_mode():
            features = {"token_embeddings": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(mask)}
            for module in self._behind:
                features = module(features)
            vectors = torch.nn.functional.normalize(features["sentence_embedding"], dim=1)
        normalised: NDArray[np.float32] = vectors.numpy()
        return normalised


def open_sentence_transformer(name: str, device: str | None = None) -> "SentenceTransformer":
    """A model as sentence-transformers knows it, by folder, wheel or hub id; safetensors only, no code of its own.

    An encoder without modules of sentence-transformers gets the pooling of its authors where that is [CLS], the mean
    of its tokens else.

    Raises:
        ModelError: It cannot be found or loaded.
    """
    found = find_model(name)
    device = torch_device(device)
    with model_failures(name, instead=DEFAULT_ENCODER), quiet_libraries():
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        model = SentenceTransformer(
            found,
            device=device,
            trust_remote_code=False,
            local_files_only=only_local(found),
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        )
        if name in _CLS_POOLED and not (Path(found) / "modules.json").is_file():
            model[1] = Pooling(int(model.get_embedding_dimension() or 0), "cls")
    return model


def _tokenizer(name: str, model: "SentenceTransformer", max_tokens: int | None) -> "Tokenizer":
    """The tokenizer alone, cutting at so many tokens: it serves several threads, which its wrapper does not."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"the model {name!r} has no tokenizer.json", "Take one that has, or save it with one.")
    limit = getattr(model.config, "max_position_embeddings", None)
    length = max_tokens or model.get_max_seq_length() or limit or 512
    if limit is not None and length > limit:
        raise ModelError(f"the model {name!r} reads {limit} tokens, not {length}", f"Give at most {limit}.")
    tokenizer = Tokenizer.from_str(backend.to_str())
    if length <= (special := tokenizer.num_special_tokens_to_add(is_pair=False)):
        raise ModelError(f"{length} tokens leave no room for a text", f"Give more than {special}.")
    tokenizer.enable_truncation(int(length), direction=model.tokenizer.truncation_side)
    tokenizer.no_padding()
    return tokenizer


def _padded(rows: Sequence[Sequence[int]]) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Token ids and mask, (rows, longest). What is padded is masked: any id will do there."""
    import numpy as np

    longest = max(1, max(map(len, rows)))
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, values in enumerate(rows):
        ids[row, : len(values)] = values
        mask[row, : len(values)] = 1
    return ids, mask
