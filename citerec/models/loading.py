"""How models of transformers are loaded and kept: where they run, which files are theirs, what their manifest says."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from citerec.errors import InputError, ModelError, first_fault
from citerec.groundwork.writing import recover

MANIFEST = "manifest.json"

MODEL_FILES = frozenset(
    {
        "README.md",
        "added_tokens.json",
        "config.json",
        "merges.txt",
        "model.safetensors",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
    }
)
"""What transformers writes for a model and its tokenizer."""

Read = TypeVar("Read", bound=BaseModel)


def torch_device(name: str | None) -> str:
    """Where torch is to run: the device of that name; a GPU where there is one by default.

    Raises:
        InputError: Torch cannot run there.
    """
    import torch

    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:  # torch raises a kind of its own for each way in which a device is missing
        raise InputError(
            f"torch has no device {name!r} here", "Give cpu; or cuda where there is a GPU and torch is built for it."
        ) from error
    return name


def safely(*, local: bool) -> dict[str, Any]:
    """What `from_pretrained` is told of weights: 32 bits, no pickle, no code of the model's own.

    Args:
        local: Whether only this machine's files count.
    """
    import torch

    dtype: torch.dtype = torch.float32
    return {"dtype": dtype, "use_safetensors": True, "local_files_only": local, "trust_remote_code": False}


def read_model_manifest(folder: Path, kind: type[Read], what: str, again: str) -> Read | None:
    """The manifest of a model; None where it was made elsewhere.

    Args:
        folder: The model.
        kind: What the manifest is to be.
        what: What the model is to be, in words.
        again: How it is made anew.

    Raises:
        ModelError: It is broken, or of another version.
    """
    recover(folder)
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ModelError(f"{path} is not of {what} that this citerec reads ({first_fault(error)})", again) from None
