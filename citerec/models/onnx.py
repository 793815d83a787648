"""Models on a CPU without torch: a transformer exported to ONNX, in 32 or 8 bits, cached, run by ONNX Runtime."""

import contextlib
import hashlib
import importlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from pydantic import ValidationError

from citerec.errors import CiterecError, ModelError
from citerec.files.parallel import available_processors
from citerec.files.writing import exchange
from citerec.models.bert import bert_config, reading_of_bert, write_bert
from citerec.models.encoder import Encoder, Reading
from citerec.models.find import find_model, first_line, model_identity
from citerec.models.loading import open_sentence_transformer, takes_cls
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

MODEL, MANIFEST = "model.onnx", "manifest.json"
_READING = "reading.json"  # of an encoder
Run = Callable[[Any, Mapping[str, Any]], Any]
"""Calls a model of torch with tensors by name, and returns its one output."""
Bits = Literal[8, 32]
"""Bits of a weight: 32 give torch's outputs within rounding, 8 are faster."""

_RECIPE = 6  # increased when export or quantisation change: cached models are then rebuilt
_OPSET = 20  # the first with Gelu as one step: before, it was five


class OnnxModel:
    """A transformer, run by ONNX Runtime. Safe to call from several threads.

    Each call uses one thread, so that calls run side by side.

    With 8 bits, activations are scaled by the largest of the batch, so run each text alone: otherwise its output
    depends a little on the others. This costs nothing: one thread per text was as fast as many threads per batch
    (benchmarks/encode.py).

    Raises:
        ModelError: ONNX Runtime is missing, or the file is broken.
    """

    def __init__(self, path: Path) -> None:
        onnxruntime = _package("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            remedy = f"Remove {path.parent}: it is rebuilt."
            raise ModelError(f"the model {path}: {first_line(error)}", remedy) from error

    def run(self, inputs: "Mapping[str, NDArray[np.int64]]") -> "NDArray[np.float32]":
        """The output (rows, …) for token ids and the other inputs, each (rows, length)."""
        output: NDArray[np.float32] = self._session.run(None, dict(inputs))[0]
        return output


def _package(name: str) -> Any:
    """A package of the extra `minilm` or `models`; ONNX Runtime without telemetry (the variable set to 0 allows it)."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        fault = f"ONNX Runtime's models need packages that are missing ({error.name})"
        extra = "models" if name == "onnxscript" else "minilm"
        raise ModelError(fault, f"pip install 'citerec[{extra}]'") from error


def concurrent_calls() -> int:
    """How many calls of `OnnxModel.run` to make at once: OMP_NUM_THREADS, or else one per processor."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else available_processors()


def exported(
    write: Callable[[Path], Mapping[str, bytes]], identity: str, *, inputs: Sequence[str], output: str, bits: Bits
) -> Path:
    """A model as an ONNX file; made once, then kept in the user's cache folder.

    With 8 bits, weights are quantised by channel, activations while it runs (dynamic quantisation).

    Args:
        write: Writes the ONNX file, and returns files to store beside it; called only if none is cached.
        identity: `citerec.models.find.model_identity`.
        inputs: Names of its inputs: integers (rows, length), `attention_mask` among them.
        output: Name of its output.
        bits: Bits of its weights.

    Returns:
        The file, for `OnnxModel`; the files of `write` are beside it.

    Raises:
        ModelError: Packages are missing, the model cannot be exported, or the cache cannot be written.
    """
    import platformdirs

    plan = {"recipe": _RECIPE, "identity": identity, "inputs": list(inputs), "output": output, "bits": bits}
    key = hashlib.sha256(orjson.dumps(plan)).hexdigest()[:32]
    folder = platformdirs.user_cache_path("citerec") / "onnx" / key
    if (folder / MANIFEST).is_file():
        return folder / MODEL
    # A note that this torch cannot export the model: trying takes long.
    failed = folder.with_name(f"{key}.failed-{version('torch') if find_spec('torch') else ''}")
    if failed.is_file():
        raise ModelError(failed.read_text(encoding="utf-8"), f"Use the backend torch; or remove {failed}.")
    packages = {name: _package(name).__version__ for name in ("onnx", "onnxruntime")}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # A crash leaves no half of a model: it is put in its place when it is complete.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as building:
            new_folder = Path(building) / key
            new_folder.mkdir()
            try:
                with _quiet():
                    files = write(new_folder / MODEL)
                    if bits == 8:
                        _quantise(new_folder / MODEL)
            except (CiterecError, OSError):
                raise
            except Exception as error:
                message = f"the model cannot be exported for ONNX Runtime: {first_line(error)}"
                failed.write_text(message, encoding="utf-8")
                raise ModelError(message, "Use the backend torch.") from error
            for name, content in files.items():
                (new_folder / name).write_bytes(content)
            manifest = {"kind": "citerec-onnx", **plan, "citerec": __version__, **packages}
            (new_folder / MANIFEST).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
            exchange(new_folder, folder)  # another process may have been faster
    except OSError as error:
        remedy = "Make room there, or name another cache folder in XDG_CACHE_HOME."
        raise ModelError(f"cannot write the model to {folder.parent}: {error.strerror or error}", remedy) from error
    return folder / MODEL


def export_torch(model: Any, run: Run, path: Path, inputs: Sequence[str], output: str) -> None:
    """Writes a model of torch, in float32 on the CPU, as ONNX; its attention is changed.

    Raises:
        ModelError: A package is missing.
    """
    import torch

    _package("onnxscript")  # torch exports with it

    class CalledByPosition(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *arrays: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = run(self.model, dict(zip(inputs, arrays, strict=True)))
            return result

    for part in model.modules():
        if hasattr(part, "set_attn_implementation"):
            part.set_attn_implementation("eager")  # fused attention would be exported as more steps
    # Any two rows of different length will do. Batch 2 and length 16, so that neither is taken for a constant.
    arrays = {name: torch.ones(2, 16, dtype=torch.int64) for name in inputs}
    arrays["attention_mask"][1, 8:] = 0
    with torch.no_grad():
        torch.onnx.export(
            CalledByPosition().eval(),
            tuple(arrays.values()),
            path,
            input_names=list(inputs),
            output_names=[output],
            dynamic_shapes=(tuple({0: "rows", 1: "length"} for _ in inputs),),  # of the one parameter `*arrays`
            opset_version=_OPSET,
            external_data=True,  # weights that are mapped: in the file itself they would be read, and copied
            dynamo=True,
            verbose=False,
        )


def _quantise(path: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-untyped]

    # The quantiser transposes the weights of a Gemm but keeps the shape that the exporter noted, and then finds its
    # own result broken. Without these notes it infers all shapes itself.
    model = onnx.load(path)
    del model.graph.value_info[:]
    # Seven of the eight bits: on a processor without instructions for 8-bit products (VNNI), sums of two products of
    # full 8 bits overflow their 16 bits, and scores were wrong.
    quantize_dynamic(model, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    path.with_name(f"{path.name}.data").unlink(missing_ok=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides warnings of exporter and quantiser, which do not help the user."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)


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
        source = find_model(model)
        try:
            identity = model_identity(source)
        except ModelError:  # on the hub, and never loaded here
            open_sentence_transformer(model, "cpu")
            identity = model_identity(source)

        def write(path: Path) -> dict[str, bytes]:
            if config := bert_config(Path(source)):
                write_bert(Path(source), config, path)
                reading = reading_of_bert(Path(source), config)
            else:
                opened = open_sentence_transformer(model, "cpu")
                export_torch(opened, _run, path, inputs, output)
                reading = Reading.of(model, opened)
            return {_READING: reading.model_dump_json().encode()}

        pooled = f"{identity} by [CLS]" if takes_cls(model, source) else identity
        inputs, output = ("input_ids", "attention_mask"), "sentence_embedding"
        path = exported(write, pooled, inputs=inputs, output=output, bits=self.bits)
        try:
            reading = Reading.model_validate_json((path.parent / _READING).read_bytes())
        except (OSError, ValidationError) as error:
            remedy = f"Remove {path.parent}: it is rebuilt."
            raise ModelError(f"the model in {path.parent} does not say how it reads", remedy) from error
        self._model = OnnxModel(path)
        self.workers = concurrent_calls()
        return identity, reading

    def vectors(self, ids: "NDArray[np.int64]", mask: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """As for `Encoder`."""
        return self._model.run({"input_ids": ids, "attention_mask": mask})


class OnnxInt8Encoder(OnnxEncoder):
    """The same with 8-bit weights."""

    name = "onnx-int8"
    same_as = None
    bits = 8


def _run(model: "SentenceTransformer", arrays: Mapping[str, Any]) -> Any:
    """Vectors of length one (rows, dimension), from ids and mask (rows, length)."""
    import torch

    return torch.nn.functional.normalize(model(dict(arrays))["sentence_embedding"], dim=1)
