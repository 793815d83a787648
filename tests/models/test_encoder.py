"""Encoders: vectors of sentence-transformers from every backend, batches within a budget, exports that are kept."""

import itertools
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from transformers import AutoModel, AutoTokenizer

from citerec.errors import InputError, ModelError
from citerec.models.encoder import ENCODERS, Encoder, batches_by_length
from citerec.models.find import DEFAULT_ENCODER, find_model, model_identity
from citerec.models.loading import open_sentence_transformer

TEXTS = [
    "Citation recommendation finds papers to cite.",
    "",
    "Graphs",
    "We parse sentences into trees with a neural model. " * 20,
    "Graphs",
    "naïve café – 北京 ∑",
    *(f"Text number {number} is about " + "retrieval " * (number % 7) for number in range(25)),
]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return Encoder.open(DEFAULT_ENCODER, device="cpu", max_tokens=64)


def test_vectors_are_those_of_sentence_transformers_and_read_no_more_than_max_tokens(minilm: Encoder) -> None:
    plain = open_sentence_transformer(DEFAULT_ENCODER, "cpu")
    plain.max_seq_length = 64
    vectors = minilm.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), minilm.dimension) == (len(TEXTS), 384)
    np.testing.assert_allclose(vectors, plain.encode(TEXTS, normalize_embeddings=True), atol=1e-5)
    np.testing.assert_allclose(minilm.encode(TEXTS[::-1])[::-1], vectors, atol=1e-5)
    assert minilm.identity == model_identity(find_model(DEFAULT_ENCODER)) and minilm.max_tokens == 64
    assert Encoder.open(DEFAULT_ENCODER, device="cpu").max_tokens == 256  # what its authors set
    begin = "graphs " * 62  # with [CLS] and [SEP] 64 tokens
    first, second, third = minilm.encode([begin + "trees", begin + "music", "graphs " * 61 + "trees"])
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert np.abs(first - third).max() > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_backend_keeps_the_contract(name: str, minilm: Encoder) -> None:
    encoder = Encoder.open(DEFAULT_ENCODER, backend=name, device="cpu", max_tokens=64)
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors, encoder.encode(TEXTS))
    assert encoder.encode([]).shape == (0, encoder.dimension)
    assert (encoder.identity, encoder.max_tokens, encoder.name) == (minilm.identity, 64, name)
    assert (vectors * minilm.encode(TEXTS)).sum(axis=1).min() > (0.95 if name == "onnx-int8" else 0.999999)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(encoder.encode, [TEXTS] * 4):
            np.testing.assert_allclose(result, vectors, atol=1e-5)
    with pytest.raises(ModelError, match="leave no room for a text"):
        Encoder.open(DEFAULT_ENCODER, backend=name, max_tokens=2)
    with pytest.raises(ModelError, match="there is no model folder"):
        Encoder.open("./nowhere", backend=name)
    with pytest.raises(InputError, match=r"there is no encoder backend 'onx'.* Choose: torch, onnx, onnx-int8"):
        Encoder.open(DEFAULT_ENCODER, backend="onx")


def test_an_encoder_without_modules_takes_the_mean_of_its_tokens_and_specter_that_of_cls(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = AutoTokenizer.from_pretrained(tiny_bert)("graphs of the citation", return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(tiny_bert).eval()(**tokens).last_hidden_state[0].numpy()
    shutil.copytree(tiny_bert, tmp_path / "allenai" / "specter2_base")
    monkeypatch.chdir(tmp_path)
    for name, expected in ((str(tiny_bert), states.mean(axis=0)), ("allenai/specter2_base", states[0])):
        vector = Encoder.open(name).encode(["graphs of the citation"])[0]
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    with pytest.raises(ModelError, match="reads 512 tokens, not 513"):
        Encoder.open(str(tiny_bert), max_tokens=513)


@given(st.lists(st.integers(0, 600), max_size=200), st.integers(1, 5000), st.integers(1, 64))
def test_each_text_once_within_the_budget_longest_first(lengths: list[int], max_tokens: int, max_rows: int) -> None:
    batches = list(batches_by_length(lengths, max_tokens, max_rows))
    order = [position for batch in batches for position in batch]
    assert order == sorted(range(len(lengths)), key=lambda position: -lengths[position])
    longest = [max(lengths[position] for position in batch) for batch in batches]
    for batch, most in zip(batches, longest, strict=True):
        assert len(batch) <= max_rows and (len(batch) == 1 or len(batch) * most <= max_tokens)
    for (batch, _), most in zip(itertools.pairwise(batches), longest, strict=False):
        assert len(batch) == max_rows or (len(batch) + 1) * most > max_tokens, "it could take the next text"


@pytest.mark.slow
def test_once_exported_it_opens_without_torch_and_an_export_that_fails_or_is_damaged_says_what_to_do(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("exported again\nsecond line")

    def refused(message: str) -> None:
        with pytest.raises(ModelError, match=message) as raised:
            Encoder.open(str(tiny_bert), backend="onnx-int8")
        assert "\n" not in str(raised.value)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxscript", None)
        refused(r"pip install 'citerec\[models\]'")
    with monkeypatch.context() as patch:
        patch.setattr("torch.onnx.export", fail)
        refused("cannot be exported for ONNX Runtime: exported again")
    (note,) = (tmp_path / "citerec" / "onnx").iterdir()
    refused(re.escape(f"Use the backend torch; or remove {note}."))  # it is not tried again
    note.unlink()
    expected = Encoder.open(str(tiny_bert), backend="onnx-int8").encode(["Graphs"])[0]
    program = (
        "import sys; from citerec.models.encoder import Encoder; "
        f"print(*Encoder.open({str(tiny_bert)!r}, backend='onnx-int8').encode(['Graphs'])[0].tolist()); "
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    np.testing.assert_array_equal(np.array(ran.stdout.split(), dtype=np.float32), expected)
    (model,) = tmp_path.rglob("*.onnx")
    model.write_bytes(model.read_bytes()[:1000])
    refused(f"Remove {model.parent}")
