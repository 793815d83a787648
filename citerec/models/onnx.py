"""Models on a CPU without torch: a transformer exported to ONNX, in 32 or 8 bits, cached, run by ONNX Runtime."""

import contextlib
import hashlib
import io
import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from citerec.errors import CiterecError, ModelError
from citerec.files.parallel import available_processors
from citerec.models.find import first_line
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL, MANIFEST = "model.onnx", "manifest.json"
Exportable = tuple[Any, Mapping[str, bytes]]
"""A module of torch in float32 on the CPU whose `forward(*arrays)` returns one output; files to store beside it."""
Bits = Literal[8, 32]
"""Bits of a weight: 32 give torch's outputs within rounding, 8 are faster."""

_RECIPE = 4  # increased when export or quantisation change: cached models are then rebuilt
_OPSET = 20  # the first with Gelu as one step: before, it was five
_MADE = {8: "one of 8 bits", 32: "one of ONNX Runtime"}


class OnnxModel:
    """A transformer, run by ONNX Runtime. Safe to call from several threads.

    Each call uses one thread, so that calls run side by side; one that is alone may use all (`run`). The number of
    threads does not change the output.

    With 8 bits, activations are scaled by the largest of the batch, so run each text alone: otherwise its output
    depends a little on the others. This costs nothing: one thread per text was as fast as many threads per batch
    (benchmarks/encode.py).

    Raises:
        ModelError: ONNX Runtime is missing, or the file is broken.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = _opened(path, 1)
        self._wide: Any = None  # a session with several threads, which has the weights a second time
        self._lone_calls = 0
        self._alone = threading.Lock()

    def run(self, inputs: "Mapping[str, NDArray[np.int64]]", *, alone: bool = False) -> "NDArray[np.float32]":
        """The output (rows, …) for token ids and the other inputs, each (rows, length).

        With `alone`, `concurrent_calls` threads work on it, unless another such call is running. The first one is not
        worth the opening of a session with threads: most processes have no second.
        """
        arrays = dict(inputs)
        if not (alone and concurrent_calls() > 1 and self._alone.acquire(blocking=False)):
            return self._output(self._session, arrays)
        try:
            self._lone_calls += 1
            if self._lone_calls == 2:
                self._wide = _opened(self._path, concurrent_calls())
            return self._output(self._wide or self._session, arrays)
        finally:
            self._alone.release()

    @staticmethod
    def _output(session: Any, arrays: "dict[str, NDArray[np.int64]]") -> "NDArray[np.float32]":
        output: NDArray[np.float32] = session.run(None, arrays)[0]
        return output


def _opened(path: Path, threads: int) -> Any:
    with _onnx_failures(f"the model {path}", f"Remove {path.parent}: it is rebuilt."):
        onnxruntime = _onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        # Waiting threads sleep, as Lucene and FAISS run beside them.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def concurrent_calls() -> int:
    """How many calls of `OnnxModel.run` to make at once: OMP_NUM_THREADS, or else one per processor."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else available_processors()


def called_by_position(model: Any, inputs: Sequence[str], output: str) -> Any:
    """A model of transformers as a module that takes its inputs by position and returns one of its outputs."""
    import torch

    class Wanted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *arrays: torch.Tensor) -> torch.Tensor:
            wanted: torch.Tensor = self.model(**dict(zip(inputs, arrays, strict=True)))[output]
            return wanted

    return Wanted()


def exported(
    load: Callable[[], Exportable],
    identity: str,
    *,
    inputs: Sequence[str],
    output: str,
    bits: Bits,
    cache: Path | None = None,
) -> Path:
    """A model as an ONNX file; made once, then cached.

    With 8 bits, weights are quantised by channel, activations while it runs (dynamic quantisation).

    Args:
        load: Returns the model; called only if none is cached.
        identity: `citerec.models.find.model_identity`.
        inputs: Names of its inputs: integers (rows, length), `attention_mask` among them.
        output: Name of its output.
        bits: Bits of its weights.
        cache: The cache folder; by default the user's.

    Returns:
        The file, for `OnnxModel`; the files of `load` are beside it.

    Raises:
        ModelError: Packages are missing, the model cannot be exported, or the cache cannot be written.
    """
    import platformdirs

    plan = {"recipe": _RECIPE, "identity": identity, "inputs": list(inputs), "output": output, "bits": bits}
    key = hashlib.sha256(orjson.dumps(plan)).hexdigest()[:32]
    folder = (cache or platformdirs.user_cache_path("citerec") / "onnx") / key
    if not (folder / MANIFEST).is_file():
        if (failed := _failed(folder)).is_file():
            raise ModelError(failed.read_text(encoding="utf-8"), f"Use the backend torch; or remove {failed}.")
        _make(load, folder, plan)
    return folder / MODEL


def _failed(folder: Path) -> Path:
    """A note that this torch cannot export the model: trying takes long."""
    return folder.with_name(f"{folder.name}.failed-{version('torch')}")


def _make(load: Callable[[], Exportable], folder: Path, plan: Mapping[str, Any]) -> None:
    """Exports in a folder beside, the manifest last, then renames it: a crash leaves nothing behind."""
    failures = f"the model cannot be turned into {_MADE[plan['bits']]}", "Use the backend torch."
    with _onnx_failures(*failures):
        runtime = _onnxruntime()
        import onnx
        import onnxscript  # noqa: F401  torch exports with it; imported here for a clear error if it is missing
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as building:
            module, files = load()
            made = Path(building) / folder.name
            made.mkdir()
            whole = Path(building) / "float.onnx"
            try:
                with _onnx_failures(*failures), _quiet():
                    _export(module, whole, plan["inputs"], plan["output"])
                    if plan["bits"] == 8:
                        _quantise(whole, made / MODEL)
                    else:
                        onnx.save(onnx.load(whole), made / MODEL)  # one file: the exporter writes several
            except ModelError as error:
                _failed(folder).write_text(error.message, encoding="utf-8")
                raise
            for name, content in files.items():
                (made / name).write_bytes(content)
            versions = {"citerec": __version__, "onnx": onnx.__version__, "onnxruntime": runtime.__version__}
            manifest = {"kind": "citerec-onnx", **plan, **versions}
            (made / MANIFEST).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
            try:
                made.rename(folder)
            except OSError:
                if not (folder / MANIFEST).is_file():  # else another process was faster
                    raise
    except OSError as error:
        raise ModelError(
            f"cannot write the model to {folder.parent}: {error.strerror or error}",
            "Make room there, or name another cache folder in XDG_CACHE_HOME.",
        ) from error


def _export(module: Any, path: Path, inputs: Sequence[str], output: str) -> None:
    import torch

    # Any two rows of different length will do. Batch 2 and length 16, so that neither is taken for a constant.
    arrays = {name: torch.ones(2, 16, dtype=torch.int64) for name in inputs}
    arrays["attention_mask"][1, 8:] = 0
    with torch.no_grad(), _plain_attention(module):
        torch.onnx.export(
            module.eval(),
            tuple(arrays[name] for name in inputs),
            path,
            input_names=list(inputs),
            output_names=[output],
            dynamic_shapes=(tuple({0: "rows", 1: "length"} for _ in inputs),),  # of the one parameter `*arrays`
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )


@contextlib.contextmanager
def _plain_attention(module: Any) -> Iterator[None]:
    """Uses plain attention: fused attention would be exported as more steps."""
    parts = [part for part in module.modules() if hasattr(part, "set_attn_implementation")]
    before = [part.config._attn_implementation for part in parts]
    for part in parts:
        part.set_attn_implementation("eager")
    try:
        yield
    finally:
        for part, attention in zip(parts, before, strict=True):
            part.set_attn_implementation(attention)


def _onnxruntime() -> Any:
    """The package, without telemetry; to allow it, set the variable to 0."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # type: ignore[import-untyped]

    return onnxruntime


def _quantise(source: Path, target: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-untyped]

    # The quantiser transposes the weights of a Gemm but keeps the shape that the exporter noted, and then finds its
    # own result broken. Without these notes it infers all shapes itself.
    model = onnx.load(source)
    del model.graph.value_info[:]
    onnx.save(model, source)
    # Seven of the eight bits: on a processor without instructions for 8-bit products (VNNI), sums of two products of
    # full 8 bits overflow their 16 bits, and scores were wrong.
    quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides warnings of exporter and quantiser, which do not help the user."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _onnx_failures(what: str, remedy: str) -> Iterator[None]:
    """Turns errors of the exporter and the runtime, which may be many lines long, into a ModelError."""
    try:
        yield
    except (CiterecError, OSError):
        raise
    except ImportError as error:
        raise ModelError(
            f"ONNX Runtime's models need packages that are missing ({error.name})", "pip install 'citerec[onnx]'"
        ) from error
    except Exception as error:
        raise ModelError(f"{what}: {first_line(error)}", remedy) from error
