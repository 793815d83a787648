"""Static encoders: a text's vector is the mean of its tokens' vectors. They run by numpy, without torch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from citerec.errors import ModelError
from citerec.models.encoder import Encoder, Reading
from citerec.models.find import find_model, first_line, model_identity
from citerec.models.loading import ModelManifest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS, TABLE = "model.safetensors", "embedding.weight"
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


class StaticEncoder(Encoder):
    """Means of rows of a table (tokens, dimension). A text without a token has the mean of the whole table.

    Its files are in the form of sentence-transformers (`StaticEmbedding`).
    """

    batch_tokens = 16_384

    def load(self, model: str, device: str | None) -> tuple[str, Reading]:  # noqa: ARG002  numpy runs it
        """As for `Encoder`."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        folder = Path(find_model(model))
        try:
            tokenizer = without_special_tokens((folder / "tokenizer.json").read_bytes())
            self._table = load_file(folder / WEIGHTS)[TABLE].astype("float32", copy=False)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            fault = f"the static encoder {model!r} is broken: {first_line(error)}"
            raise ModelError(fault, "Train it again.") from error
        self._mean = self._table.mean(axis=0)
        dimension = self._table.shape[1]
        return model_identity(str(folder)), Reading(
            dimension=dimension, max_tokens=_MAX_TOKENS, limit=None, truncation_side="right", tokenizer=tokenizer
        )

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """As for `Encoder`; one thread is enough."""
        import numpy as np

        counts = mask.sum(axis=1).tolist()
        sums = np.stack([self._table[row[:count]].sum(axis=0) for row, count in zip(ids, counts, strict=True)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        sums[lengths[:, 0] == 0] = self._mean
        vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors


def without_special_tokens(tokenizer: str | bytes) -> str:
    """A `tokenizer.json` that puts no [CLS] and no padding around a text: a static encoder has no use for them."""
    return orjson.dumps({**orjson.loads(tokenizer), "post_processor": None, "padding": None}).decode()


def is_static(name: str) -> bool:
    """Whether a model has one module, which has a vector for each token, and perhaps normalisation."""
    folder = Path(find_model(name))
    try:
        modules = [str(one["type"]).rpartition(".")[2] for one in orjson.loads((folder / "modules.json").read_bytes())]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return modules in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]) and (folder / WEIGHTS).is_file()
