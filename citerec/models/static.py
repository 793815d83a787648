"""Static encoders: a text's vector is the mean of its tokens' vectors. They run by numpy, without torch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from citerec.contexts.learnt import LEARNT
from citerec.errors import ModelError
from citerec.files.writing import Kind
from citerec.models.base import Opened, Reading
from citerec.models.find import find_model, first_line, model_identity
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KIND = "citerec-static-encoder"
WEIGHTS, TABLE = "model.safetensors", "embedding.weight"
STATIC_DIRECTORY = Kind(
    name="static encoder",
    kind=KIND,
    manifest=MANIFEST,
    names=frozenset({MANIFEST, LEARNT, WEIGHTS, "tokenizer.json", "modules.json", "config_sentence_transformers.json"}),
)
_MAX_TOKENS = 512  # it could read any number


class StaticManifest(ModelManifest):
    """`manifest.json` of a static encoder that citerec trained.

    Attributes:
        teacher: The model whose vectors it learnt, as the manifest of those vectors has it, and its identity.
        training: Papers, options and values of the training.
        dev: Mean cosine with the teacher's vectors of papers that were held out.
    """

    kind: Literal["citerec-static-encoder"] = "citerec-static-encoder"
    teacher: dict[str, Any]
    training: dict[str, Any]
    dev: dict[str, float]


class StaticNetwork:
    """Means of rows of a table (tokens, dimension). A text without a token has the mean of the whole table."""

    batch_tokens = 16_384
    workers = 1

    def __init__(self, table: "NDArray[np.float32]") -> None:
        self._table = table
        self._none = table.mean(axis=0)

    def vectors(
        self,
        ids: "NDArray[np.int64]",
        mask: "NDArray[np.int64]",
        *,
        alone: bool = False,  # noqa: ARG002  one thread is enough
    ) -> "NDArray[np.float32]":
        """As for `citerec.models.base.Network`."""
        import numpy as np

        counts = mask.sum(axis=1).tolist()
        sums = np.stack([self._table[row[:count]].sum(axis=0) for row, count in zip(ids, counts, strict=True)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        sums[lengths[:, 0] == 0] = self._none
        vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors


def open_static(name: str) -> Opened | None:
    """A static encoder in the form of sentence-transformers (`StaticEmbedding`); None if the model is another.

    Raises:
        ModelError: It cannot be found, or its files are broken.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(find_model(name))
    if not _is_static(folder):
        return None
    try:
        tokenizer = without_special_tokens((folder / "tokenizer.json").read_bytes())
        table = load_file(folder / WEIGHTS)[TABLE]
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"the static encoder {name!r} is broken: {first_line(error)}", "Train it again.") from error
    reading = Reading(
        dimension=table.shape[1], max_tokens=_MAX_TOKENS, limit=None, truncation_side="right", tokenizer=tokenizer
    )
    return Opened(model_identity(str(folder)), reading, StaticNetwork(table.astype("float32", copy=False)))


def without_special_tokens(tokenizer: str | bytes) -> str:
    """A `tokenizer.json` that puts no [CLS] and no padding around a text: a static encoder has no use for them."""
    return orjson.dumps({**orjson.loads(tokenizer), "post_processor": None, "padding": None}).decode()


def learnt_from(name: str, model: str, identity: str | None) -> bool:
    """Whether a static encoder learnt the vectors of a model, so that it may encode queries for them.

    Args:
        name: The folder of the static encoder.
        model: The model's name, as in the manifest of vectors.
        identity: The model's identity there; None for given vectors.
    """
    manifest = read_model_manifest(Path(find_model(name)), StaticManifest, "a static encoder", "Train it again.")
    return manifest is not None and manifest.teacher == {"model": model, "identity": identity}


def _is_static(folder: Path) -> bool:
    """Whether a folder holds one module, which has a vector for each token, and perhaps normalisation."""
    try:
        modules = [str(one["type"]).rpartition(".")[2] for one in orjson.loads((folder / "modules.json").read_bytes())]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return modules in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]) and (folder / WEIGHTS).is_file()
