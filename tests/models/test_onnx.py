import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec.errors import ModelError
from citerec.models.encoder import Encoder
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.onnx import OnnxModel, exported
from tests.models.test_encoder import TEXTS

pytestmark = pytest.mark.slow


def kept(model: Any, identity: str) -> Path:
    return exported(
        lambda: (model, {"beside": b"it"}),
        lambda model, arrays: model(**arrays).last_hidden_state,
        identity,
        inputs=("input_ids", "attention_mask"),
        output="last_hidden_state",
        bits=8,
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "citerec" / "onnx"


def test_once_made_it_is_opened_without_torch(minilm_int8: Encoder) -> None:
    program = (
        "import sys; from citerec.models.encoder import Encoder; "
        f"encoder = Encoder.open({DEFAULT_ENCODER!r}, backend='onnx-int8', max_tokens=64); "
        "print(encoder.identity, *encoder.encode(['Graphs'])[0].tolist()); "
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    identity, *vector = ran.stdout.split()
    assert identity == minilm_int8.identity
    np.testing.assert_array_equal(np.array(vector, dtype=np.float32), minilm_int8.encode(["Graphs"])[0])


def test_one_that_does_not_say_how_it_reads(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Encoder.open(str(tiny_bert), backend="onnx-int8")
    (reading,) = tmp_path.rglob("reading.json")
    reading.write_text("{}")
    with pytest.raises(ModelError, match=f"Remove {reading.parent}"):
        Encoder.open(str(tiny_bert), backend="onnx-int8")


def test_what_cannot_be_exported_is_tried_once(tiny_model: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("torch.onnx.export", _fail)
        with pytest.raises(ModelError, match="cannot be exported for ONNX Runtime: exported again"):
            kept(tiny_model, "x")
    (note,) = cache.iterdir()
    with pytest.raises(ModelError, match=re.escape(f"exported again. Use the backend torch; or remove {note}.")):
        kept(tiny_model, "x")
    note.unlink()
    path = kept(tiny_model, "x")
    path.write_bytes(path.read_bytes()[:1000])  # a file that was broken later says what to remove
    with pytest.raises(ModelError, match=f"Remove {path.parent}") as raised:
        OnnxModel(path)
    assert "\n" not in str(raised.value)


def test_32_bits_are_those_of_torch(minilm: Encoder, minilm_onnx: Encoder) -> None:
    np.testing.assert_allclose(minilm_onnx.encode(TEXTS), minilm.encode(TEXTS), atol=2e-6)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_missing_packages(package: str, tiny_model: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=r"pip install 'citerec\[models\]'"):
        kept(tiny_model, "x")


@pytest.fixture
def tiny_model(tiny_bert: Path) -> Any:
    from transformers import BertModel

    return BertModel.from_pretrained(tiny_bert).eval()


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("exported again\nsecond line")
