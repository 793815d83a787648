"""Encoders of sentence-transformers: how they are opened, what they read, and how torch runs them."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from citerec.errors import ModelError
from citerec.models.find import DEFAULT_ENCODER, find_model, model_failures, model_identity, only_local, quiet_libraries
from citerec.models.loading import aligned, torch_device

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

# Encoders without modules of sentence-transformers whose authors take the vector of [CLS]; any other's is the mean.
# Cohan et al. 2020 (SPECTER), Singh et al. 2023 (SPECTER2; its base alone, without adapters).
_CLS_POOLED = {"allenai/specter", "allenai/specter2", "allenai/specter2_base"}
_CPU_BATCH_TOKENS = 2048
_GPU_BATCH_TOKENS = 65_536


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
        if takes_cls(name, found):
            model[1] = Pooling(int(model.get_embedding_dimension() or 0), "cls")
    aligned(model)
    return model


def takes_cls(name: str, found: str) -> bool:
    """Whether an encoder gets the pooling by [CLS] from us, for its own files say nothing of pooling."""
    return name in _CLS_POOLED and not (Path(found) / "modules.json").is_file()


class Reading(BaseModel):
    """How an encoder reads texts.

    Attributes:
        dimension: Of its vectors.
        max_tokens: How much of a text it reads, special tokens included, as its authors set it.
        limit: How much it could read; None where nothing says so.
        truncation_side: Where a longer text is cut.
        tokenizer: Its `tokenizer.json`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimension: int
    max_tokens: int
    limit: int | None
    truncation_side: Literal["left", "right"]
    tokenizer: str

    @classmethod
    def of(cls, name: str, model: "SentenceTransformer") -> "Reading":
        """How a model reads.

        Raises:
            ModelError: It has no tokenizer that serves several threads: its wrapper does not.
        """
        from tokenizers import Tokenizer

        backend = getattr(model.tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise ModelError(f"the model {name!r} has no tokenizer.json", "Take one that has, or save it with one.")
        limit = getattr(model.config, "max_position_embeddings", None)
        return cls(
            dimension=int(model.get_embedding_dimension() or 0),
            max_tokens=int(model.get_max_seq_length() or limit or 512),
            limit=limit,
            truncation_side=model.tokenizer.truncation_side,
            tokenizer=backend.to_str(),
        )

    def cutting(self, name: str, max_tokens: int | None) -> "Tokenizer":
        """The tokenizer, cutting at so many tokens.

        Args:
            name: What the user calls the model.
            max_tokens: How much of a text is read; what its authors set by default.

        Raises:
            ModelError: The model cannot read so many, or they leave no room for a text.
        """
        from tokenizers import Tokenizer

        length = max_tokens or self.max_tokens
        if self.limit is not None and length > self.limit:
            raise ModelError(
                f"the model {name!r} reads {self.limit} tokens, not {length}", f"Give at most {self.limit}."
            )
        tokenizer = Tokenizer.from_str(self.tokenizer)
        if length <= (special := tokenizer.num_special_tokens_to_add(is_pair=False)):
            raise ModelError(f"{length} tokens leave no room for a text", f"Give more than {special}.")
        tokenizer.enable_truncation(length, direction=self.truncation_side)
        tokenizer.no_padding()
        return tokenizer


class TorchNetwork:
    """Runs the modules of sentence-transformers: the transformer, pooling, and what its authors put behind it."""

    workers = 1  # torch has threads of its own within a batch

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model = model.eval()
        self._on_gpu = model.device.type == "cuda"
        self.batch_tokens = _GPU_BATCH_TOKENS if self._on_gpu else _CPU_BATCH_TOKENS

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """As of `citerec.models.encoder.Network`."""
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


def open_torch_encoder(name: str, device: str | None = None) -> tuple[str, Reading, TorchNetwork]:
    """An encoder that torch runs.

    Returns:
        What tells the model from another (`model_identity`), how it reads, and what runs it.

    Raises:
        ModelError: It cannot be found or loaded.
    """
    model = open_sentence_transformer(name, device)
    return model_identity(find_model(name)), Reading.of(name, model), TorchNetwork(model)
