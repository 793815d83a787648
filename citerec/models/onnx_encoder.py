"""Encoders by ONNX Runtime, in 32 or 8 bits: once made, they open quickly, without torch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from citerec.errors import ModelError
from citerec.models.base import Backend, Opened, Reading
from citerec.models.find import find_model, model_identity
from citerec.models.onnx import Bits, Exportable, OnnxModel, concurrent_calls, exported
from citerec.models.sentence_transformer import open_sentence_transformer, takes_cls
from citerec.models.static import open_static

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

_READING = "reading.json"


class OnnxNetwork:
    """Runs an encoder, with pooling and the modules after it.

    Each text is run by itself: there is no padding, and no vector depends on other texts.
    """

    batch_tokens = 1

    def __init__(self, path: Path) -> None:
        self._model = OnnxModel(path)
        self.workers = concurrent_calls()

    def vectors(
        self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]", *, alone: bool = False
    ) -> "NDArray[np.float32]":
        """As for `citerec.models.base.Network`."""
        return self._model.run({"input_ids": ids, "attention_mask": mask}, alone=alone)


def _open(name: str, bits: Bits) -> Opened:
    """An encoder, made at the first call and cached for later processes; a static one as it is."""
    if static := open_static(name):
        return static
    found = find_model(name)
    loaded: SentenceTransformer | None = None
    try:
        identity = model_identity(found)
    except ModelError:  # on the hub, and never loaded here
        loaded = open_sentence_transformer(name, "cpu")
        identity = model_identity(found)

    def load() -> Exportable:
        model = loaded or open_sentence_transformer(name, "cpu")
        return _sentence_vectors(name, model), {_READING: Reading.of(name, model).model_dump_json().encode()}

    pooled = f"{identity} by [CLS]" if takes_cls(name, found) else identity
    inputs = ("input_ids", "attention_mask")
    path = exported(load, pooled, inputs=inputs, output="sentence_embedding", bits=bits)
    try:
        reading = Reading.model_validate_json((path.parent / _READING).read_bytes())
    except (OSError, ValidationError) as error:
        raise ModelError(
            f"the model in {path.parent} does not say how it reads", f"Remove {path.parent}: it is rebuilt."
        ) from error
    return Opened(identity, reading, OnnxNetwork(path))


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


ONNX = Backend("onnx", lambda name, _device: _open(name, 32), same_as="torch")
ONNX_INT8 = Backend("onnx-int8", lambda name, _device: _open(name, 8))
