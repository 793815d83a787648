"""Backends that run encoders, and their registry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict

from citerec.errors import ModelError
from citerec.files.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer


class Network(Protocol):
    """Computes vectors from token ids. Safe to call from several threads."""

    batch_tokens: int  # tokens of a batch at most, padding included: `batches_by_length`
    workers: int  # how many batches run at once

    def vectors(
        self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]", *, alone: bool = False
    ) -> "NDArray[np.float32]":
        """Vectors (rows, dimension) of length one, from ids (rows, length) where the mask is 1.

        `alone` says that the caller has no other batch to run, so that this one may use all threads.
        """


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

    def cutting(self, name: str, max_tokens: int | None) -> "Tokenizer":
        """The tokenizer, truncating at `max_tokens`; by default as set by the model's authors.

        Raises:
            ModelError: The model cannot read so many tokens, or they leave no room for a text.
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


class Opened(NamedTuple):
    """An open encoder: its `model_identity`, how it reads, and the network that runs it."""

    identity: str
    reading: Reading
    network: Network


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend that can run encoders. It is one file of this package, or an entry point of `citerec.encoder_backends`.

    Attributes:
        name: As in `--backend`.
        open: Opens an encoder by its name, optionally on a torch device; raises ModelError if it cannot. Heavy packages
            are imported inside.
        same_as: The backend whose vectors these are, within rounding: it may encode the queries for papers that the
            other has encoded.
        on_gpu: Whether it uses a GPU if there is one.
    """

    name: str
    open: Callable[[str, str | None], Opened]
    same_as: str | None = None
    on_gpu: bool = False


ENCODERS: Registry[Backend] = Registry(
    "encoder backend",
    {
        "torch": "citerec.models.sentence_transformer:TORCH",
        "onnx": "citerec.models.onnx_encoder:ONNX",
        "onnx-int8": "citerec.models.onnx_encoder:ONNX_INT8",
    },
)

BackendName = Annotated[str, AfterValidator(lambda name: ENCODERS[name].name)]
"""The name of a backend, in settings."""
