"""Networks of the papers on disk: weights in safetensors beside one manifest."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_model

from citerec.errors import CiterecError, ModelError
from citerec.models.find import first_line
from citerec.models.loading import ModelManifest, read_model_manifest, torch_device

WEIGHTS = "model.safetensors"

Network = TypeVar("Network", bound=torch.nn.Module)
Manifest = TypeVar("Manifest", bound=ModelManifest)


def open_network(
    folder: Path, kind: type[Manifest], make: Callable[[Manifest], Network], name: str, device: str | None
) -> tuple[Network, Manifest]:
    """A network that was saved, and its manifest.

    Args:
        folder: Its folder.
        kind: The class of its manifest.
        make: Makes a network of the sizes in the manifest.
        name: Its name, as in `citerec train`.
        device: Where it runs; by default a GPU if there is one.

    Raises:
        ModelError: There is none, or it is broken, or of another version.
    """
    again = f"Train it again: citerec train {name.lower()} …"
    manifest = read_model_manifest(folder, kind, name, again)
    if manifest is None:
        raise ModelError(f"{folder} holds no {name}", f"Train one: citerec train {name.lower()} …")
    try:
        network = make(manifest)
        load_model(network, folder / WEIGHTS)
    except CiterecError:
        raise
    except Exception as error:  # the libraries raise nearly every kind
        raise ModelError(f"the {name} {folder} is damaged: {first_line(error)}", again) from error
    return network.to(torch_device(device)).eval(), manifest
