"""What every backend of encoders must do."""

import numpy as np
import pytest

from citerec.errors import InputError, ModelError
from citerec.models.encoder import ENCODERS, Encoder
from citerec.models.find import DEFAULT_ENCODER

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_backend_keeps_the_contract(name: str) -> None:
    encoder = Encoder.open(DEFAULT_ENCODER, backend=name, device="cpu", max_tokens=32)
    texts = ["We cut trees.", "", "Saws are sharp, and trees fall. " * 20]
    vectors = encoder.encode(texts)
    assert vectors.shape == (3, encoder.dimension) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors, encoder.encode(texts))
    assert encoder.encode([]).shape == (0, encoder.dimension)
    assert encoder.max_tokens == 32 and encoder.name == name
    torch = Encoder.open(DEFAULT_ENCODER, device="cpu", max_tokens=32)
    assert encoder.identity == torch.identity
    assert (vectors * torch.encode(texts)).sum(axis=1).min() > 0.95
    with pytest.raises(ModelError, match="leave no room for a text"):
        Encoder.open(DEFAULT_ENCODER, backend=name, max_tokens=2)
    with pytest.raises(ModelError, match="there is no model folder"):
        Encoder.open("./nowhere", backend=name)


def test_another_name_is_told_those_that_there_are() -> None:
    with pytest.raises(InputError, match=r"there is no encoder backend 'onx'.* Choose: torch, onnx, onnx-int8"):
        Encoder.open(DEFAULT_ENCODER, backend="onx")
