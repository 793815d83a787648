import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec.errors import ModelError
from citerec.models.encoder import Encoder, TorchEncoder
from citerec.models.find import DEFAULT_ENCODER, model_identity
from citerec.models.onnx import MODEL, OnnxModel, exported
from tests.models.conftest import save_tiny
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


def test_8_bits_are_near_32(minilm: Encoder, minilm_int8: Encoder) -> None:
    vectors = minilm_int8.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors * minilm.encode(TEXTS)).sum(axis=1).min() > 0.97
    assert minilm_int8.identity == minilm.identity


def test_no_vector_depends_on_the_texts_beside_it(minilm_int8: Encoder) -> None:
    together = minilm_int8.encode(TEXTS)
    np.testing.assert_array_equal(minilm_int8.encode(TEXTS[::-1])[::-1], together)
    np.testing.assert_array_equal(minilm_int8.encode([TEXTS[3]])[0], together[3])


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


def test_how_it_reads_is_kept_with_it(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Encoder.open(str(tiny_bert), backend="onnx-int8").encode(["graphs of the citation"])
    monkeypatch.setattr("citerec.models.onnx.open_sentence_transformer", _fail)
    again = Encoder.open(str(tiny_bert), backend="onnx-int8")
    assert (again.dimension, again.max_tokens) == (32, 64)
    np.testing.assert_array_equal(again.encode(["graphs of the citation"]), made)
    with pytest.raises(ModelError, match="reads 64 tokens, not 65"):
        Encoder.open(str(tiny_bert), backend="onnx-int8", max_tokens=65)


def test_one_that_does_not_say_how_it_reads(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Encoder.open(str(tiny_bert), backend="onnx-int8")
    (reading,) = tmp_path.rglob("reading.json")
    reading.write_text("{}")
    with pytest.raises(ModelError, match=f"Remove {reading.parent}"):
        Encoder.open(str(tiny_bert), backend="onnx-int8")


def test_what_stands_behind_the_transformer_is_honoured(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["graphs of the citation", "we use neural trees in the model"]
    mean = Encoder.open(str(tiny_bert), backend="onnx-int8").encode(texts)
    assert (mean * Encoder.open(str(tiny_bert)).encode(texts)).sum(axis=1).min() > 0.97
    shutil.copytree(tiny_bert, tmp_path / "allenai" / "specter2_base")
    monkeypatch.chdir(tmp_path)
    cls = Encoder.open("allenai/specter2_base", backend="onnx-int8").encode(texts)
    assert (cls * Encoder.open("allenai/specter2_base").encode(texts)).sum(axis=1).min() > 0.97
    assert (cls * mean).sum(axis=1).max() < 0.97


def test_it_is_made_once_and_nothing_is_printed(
    tiny_model: Any, tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    identity = model_identity(str(tiny_bert))
    path = kept(tiny_model, identity)
    OnnxModel(path)
    assert capfd.readouterr() == ("", "")
    assert path.name == MODEL
    assert (path.parent / "beside").read_bytes() == b"it"
    assert sorted(file.name for file in cache.iterdir()) == [path.parent.name]
    monkeypatch.setattr("torch.onnx.export", _fail)
    assert kept(tiny_model, identity) == path
    with pytest.raises(ModelError, match="cannot be exported for ONNX Runtime: exported again"):
        kept(tiny_model, "another")
    left = sorted(file.name for file in cache.iterdir())
    assert path.parent.name in left and len(left) == 2


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


def test_threads_do_not_change_the_output(minilm_onnx: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = np.stack([minilm_onnx.encode([text])[0] for text in TEXTS])
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        encoder = Encoder.open(DEFAULT_ENCODER, backend="onnx", max_tokens=64)
        for _ in range(3):  # the second lone call opens a session with threads
            np.testing.assert_array_equal([encoder.encode([text])[0] for text in TEXTS], alone)
        with ThreadPoolExecutor(4) as pool:
            np.testing.assert_array_equal(list(pool.map(encoder.encode, [[text] for text in TEXTS])), alone[:, None])
        np.testing.assert_array_equal(encoder.encode(TEXTS), alone)


def test_queries_of_many_papers_run_without_torch(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citerec.models.encoder.has_gpu", lambda: False)
    texts = ["graphs of the citation"]
    Encoder.open(str(tiny_bert), backend="onnx")
    monkeypatch.setattr("citerec.models.onnx.open_sentence_transformer", _fail)
    monkeypatch.setattr("citerec.models.encoder.open_sentence_transformer", _fail)
    quick = Encoder.open_for_queries(str(tiny_bert), "torch", 2000)
    with pytest.raises(RuntimeError, match="exported again"):
        Encoder.open_for_queries(str(tiny_bert), "torch", 1999)
    monkeypatch.undo()
    np.testing.assert_allclose(quick.encode(texts), Encoder.open(str(tiny_bert)).encode(texts), atol=2e-6)


@pytest.mark.parametrize("gpu", [False, True])
def test_queries_fall_back_to_the_backend_of_the_papers(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, gpu: bool
) -> None:
    monkeypatch.setattr("citerec.models.encoder.has_gpu", lambda: gpu)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if not gpu:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    encoder = Encoder.open_for_queries(str(tiny_bert), "torch", 5000)
    assert isinstance(encoder, TorchEncoder)
    np.testing.assert_array_equal(
        encoder.encode(["graphs"]), Encoder.open(str(tiny_bert), backend="torch").encode(["graphs"])
    )
    assert not list(tmp_path.iterdir())


def test_a_stopped_export_leaves_nothing(tiny_model: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("onnxruntime.quantization.quantize_dynamic", stop)
    with pytest.raises(KeyboardInterrupt):
        kept(tiny_model, "x")
    assert list(cache.iterdir()) == []


def test_a_classifier_of_pairs(tmp_path: Path, cache: Path) -> None:
    import torch
    from transformers import BertForSequenceClassification

    folder = save_tiny(BertForSequenceClassification, tmp_path / "pairs", num_labels=1)
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    names = ("input_ids", "attention_mask", "token_type_ids")
    path = exported(
        lambda: (model, {}),
        lambda model, arrays: model(**arrays).logits,
        model_identity(str(folder)),
        inputs=names,
        output="logits",
        bits=8,
    )
    random = np.random.default_rng(0)
    ids = random.integers(5, 20, (3, 11))
    mask = np.ones_like(ids)
    mask[1, 7:] = 0
    types = (np.arange(11) > 5).astype(np.int64) * np.ones_like(ids)
    arrays = dict(zip(names, (ids, mask, types), strict=True))
    with torch.no_grad():
        expected = model(**{name: torch.from_numpy(array) for name, array in arrays.items()}).logits.numpy()
    logits = OnnxModel(path).run(arrays)
    assert logits.shape == (3, 1)
    np.testing.assert_allclose(logits, expected, atol=0.02)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_missing_packages(package: str, tiny_model: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=r"pip install 'citerec\[models\]'"):
        kept(tiny_model, "x")


def test_a_cache_that_cannot_be_written(tiny_model: Any, cache: Path) -> None:
    cache.parent.write_text("")
    with pytest.raises(ModelError, match="XDG_CACHE_HOME"):
        kept(tiny_model, "x")


@pytest.fixture
def tiny_model(tiny_bert: Path) -> Any:
    from transformers import BertModel

    return BertModel.from_pretrained(tiny_bert).eval()


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("exported again\nsecond line")
