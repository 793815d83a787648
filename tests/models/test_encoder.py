import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec.errors import ModelError
from citerec.models.encoder import Encoder
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


def test_vectors_are_those_of_sentence_transformers(minilm: Encoder) -> None:
    plain = open_sentence_transformer(DEFAULT_ENCODER, "cpu")
    plain.max_seq_length = 64
    expected = plain.encode(TEXTS, normalize_embeddings=True)
    vectors = minilm.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), minilm.dimension) == (len(TEXTS), 384)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(minilm.encode(TEXTS[::-1])[::-1], vectors, atol=1e-5)
    np.testing.assert_array_equal(vectors[2], vectors[4])
    assert minilm.encode([]).shape == (0, 384)
    assert minilm.identity == model_identity(find_model(DEFAULT_ENCODER)) and minilm.max_tokens == 64
    assert Encoder.open(DEFAULT_ENCODER, device="cpu").max_tokens == 256  # what its authors set


def test_it_reads_no_more_than_max_tokens(minilm: Encoder) -> None:
    begin = "graphs " * 62  # with [CLS] and [SEP] 64 tokens
    first, second, third = minilm.encode([begin + "trees", begin + "music", "graphs " * 61 + "trees"])
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert np.abs(first - third).max() > 1e-4


@pytest.mark.parametrize(("max_tokens", "said"), [(65, "reads 64 tokens, not 65"), (2, "leave no room")])
def test_a_length_that_cannot_be(tiny_bert: Path, max_tokens: int, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Encoder.open(str(tiny_bert), max_tokens=max_tokens)


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["minilm", "minilm_int8"])
def test_several_callers_at_once(fixture: str, request: pytest.FixtureRequest) -> None:
    encoder: Encoder = request.getfixturevalue(fixture)
    expected = encoder.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(encoder.encode, [TEXTS] * 4):
            np.testing.assert_allclose(result, expected, atol=1e-5)


def test_an_encoder_without_modules_takes_the_mean_of_its_tokens(tiny_bert: Path) -> None:
    states, _ = _states(tiny_bert, "graphs of the citation")
    mean = states.mean(axis=0)
    vector = Encoder.open(str(tiny_bert)).encode(["graphs of the citation"])[0]
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_specter_takes_the_vector_of_cls(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(tiny_bert, tmp_path / "allenai" / "specter2_base")
    monkeypatch.chdir(tmp_path)
    states, _ = _states(tiny_bert, "graphs of the citation")
    vector = Encoder.open("allenai/specter2_base").encode(["graphs of the citation"])[0]
    np.testing.assert_allclose(vector, states[0] / np.linalg.norm(states[0]), atol=1e-5)


def _states(folder: Path, text: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0].numpy(), tokens
