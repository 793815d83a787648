"""Encoders of sentence-transformers: how they are opened, what they read, and how torch runs them."""

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from citerec.errors import ModelError
from citerec.models.encoder import Encoder, Reading
from citerec.models.find import (
    DEFAULT_ENCODER,
    bare_name,
    find_model,
    model_failures,
    model_identity,
    only_local,
    quiet_libraries,
)
from citerec.models.loading import aligned, torch_device

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

# Encoders without modules of sentence-transformers whose authors use the vector of [CLS]; all others use the mean.
# Cohan et al. 2020 (SPECTER), Singh et al. 2023 (SPECTER2; its base alone, without adapters).
_CLS_POOLED = {"allenai/specter", "allenai/specter2", "allenai/specter2_base"}
_BATCH_TOKENS = {"cpu": 2048, "cuda": 65_536}


def open_sentence_transformer(name: str, device: str | None = None) -> "SentenceTransformer":
    """A model of sentence-transformers, by folder, wheel or hub id; safetensors only, no code of its own.

    An encoder without modules of sentence-transformers gets the pooling of its authors if that is [CLS], else the mean
    of its tokens. Raises ModelError if it cannot be found or loaded.
    """
    found = find_model(name)
    device = torch_device(device)
    with model_failures(name, instead=DEFAULT_ENCODER), quiet_libraries():
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        _check_modules(Path(found))
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
    """Whether citerec sets the pooling of an encoder to [CLS], because its own files do not say."""
    return bare_name(name) in _CLS_POOLED and not (Path(found) / "modules.json").is_file()


def _check_modules(folder: Path) -> None:
    """Raises ModelError if a module of a local model is code of its own, or has its weights in a pickle only."""
    listed = folder / "modules.json"
    for module in orjson.loads(listed.read_bytes()) if listed.is_file() else ():
        if not module["type"].startswith("sentence_transformers."):
            raise ModelError(
                f"the model {folder} needs its own code ({module['type']}), which is never run", "Use another."
            )
        inside = folder / module["path"]
        pickles = [*inside.glob("*.bin"), *inside.glob("*.pt")] if inside.is_dir() else []
        if pickles and not any(inside.glob("*.safetensors")):
            raise ModelError(
                f"{pickles[0]} is a pickle, which is never read", "Use a model with weights in model.safetensors."
            )


class TorchEncoder(Encoder):
    """Runs the modules of sentence-transformers: the transformer, pooling, and the modules after it."""

    name = "torch"
    on_gpu = True

    def load(self, model: str, device: str | None) -> tuple[str, Reading]:
        """As for `Encoder`."""
        self._model = open_sentence_transformer(model, device).eval()
        self.batch_tokens = _BATCH_TOKENS.get(self._model.device.type, _BATCH_TOKENS["cpu"])
        return model_identity(find_model(model)), Reading.of(model, self._model)

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]", alone: bool) -> "NDArray[np.float32]":  # noqa: ARG002
        """As for `Encoder`; torch always uses all its threads within a batch."""
        import torch

        device = self._model.device
        # bfloat16 on GPUs, which have tensor cores for it. On a CPU it was not faster: docs/retrieval.md.
        with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            features = {
                "input_ids": torch.from_numpy(ids).to(device),
                "attention_mask": torch.from_numpy(mask).to(device),
            }
            vectors = self._model(features)["sentence_embedding"].float()
        normalised: NDArray[np.float32] = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
        return normalised
