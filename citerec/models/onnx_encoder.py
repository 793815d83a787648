"""Encoders by ONNX Runtime, in 32 or 8 bits: once made, they open quickly, without torch."""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ValidationError

from citerec.errors import ModelError
from citerec.models.encoder import Encoder, Reading
from citerec.models.find import find_model, model_identity
from citerec.models.onnx import Bits, Exportable, OnnxModel, concurrent_calls, exported
from citerec.models.sentence_transformer import open_sentence_transformer, takes_cls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

_READING = "reading.json"


class OnnxEncoder(Encoder):
    """Runs an encoder, with pooling and the modules after it; it is made at the first call and cached.

    Each text is run by itself: there is no padding, and no vector depends on other texts.
    """

    name = "onnx"
    same_as: ClassVar[str | None] = "torch"
    batch_tokens = 1
    bits: ClassVar[Bits] = 32

    def load(self, model: str, device: str | None) -> tuple[str, Reading]:  # noqa: ARG002  it runs on the CPU
        """As for `Encoder`."""
        found = find_model(model)
        try:
            identity = model_identity(found)
        except ModelError:  # on the hub, and never loaded here
            open_sentence_transformer(model, "cpu")
            identity = model_identity(found)

        def exportable() -> Exportable:
            opened = open_sentence_transformer(model, "cpu")
            return _sentence_vectors(model, opened), {_READING: Reading.of(model, opened).model_dump_json().encode()}

        pooled = f"{identity} by [CLS]" if takes_cls(model, found) else identity
        inputs = ("input_ids", "attention_mask")
        path = exported(exportable, pooled, inputs=inputs, output="sentence_embedding", bits=self.bits)
        try:
            reading = Reading.model_validate_json((path.parent / _READING).read_bytes())
        except (OSError, ValidationError) as error:
            raise ModelError(
                f"the model in {path.parent} does not say how it reads", f"Remove {path.parent}: it is rebuilt."
            ) from error
        self._model = OnnxModel(path)
        self.workers = concurrent_calls()
        return identity, reading

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]", alone: bool) -> "NDArray[np.float32]":
        """As for `Encoder`."""
        return self._model.run({"input_ids": ids, "attention_mask": mask}, alone=alone)


class OnnxInt8Encoder(OnnxEncoder):
    """The same with 8-bit weights."""

    name = "onnx-int8"
    same_as = None
    bits = 8


def _sentence_vectors(name: str, model: "SentenceTransformer") -> Any:
    """A module of torch: vectors of length one (rows, dimension), from ids and mask (rows, length)."""
    import torch

    transformer, *behind = model.eval()
    if getattr(transformer, "module_output_name", None) != "token_embeddings":
        raise ModelError(f"the model {name!r} gives no vectors of tokens", "Use the backend torch.")

    class SentenceVectors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer: Any = transformer.model
            self.behind = torch.nn.ModuleList(behind)

        def forward(self, *arrays: torch.Tensor) -> torch.Tensor:
            ids, mask = arrays
            tokens = self.transformer(input_ids=ids, attention_mask=mask)["last_hidden_state"]
            features = {"token_embeddings": tokens, "attention_mask": mask}
            for module in self.behind:
                features = module(features)
            return torch.nn.functional.normalize(features["sentence_embedding"], dim=1)

    return SentenceVectors()
