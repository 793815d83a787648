"""The rank prior of a cross-encoder: it counts, it is saved, and it is learnt."""

from pathlib import Path

import numpy as np
import pytest
import torch

from citerec.errors import ModelError
from citerec.rerank.cross_encoder import CrossEncoder, Pair, TextOptions
from tests.tiny_models import write_tiny_scibert

OPTIONS = TextOptions(max_tokens=32, rank_prior=True)
PAIR = Pair("", "attention suffices", "to translate well", "")


def at(*ranks: int) -> list[Pair]:
    """The same texts for candidates of some ranks."""
    return [PAIR._replace(rank=rank) for rank in ranks]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scibert(tmp_path_factory.mktemp("models") / "scibert", ["attention suffices to translate well"])


@pytest.fixture
def begun(base: Path) -> CrossEncoder:
    model = CrossEncoder.begin(str(base), OPTIONS, seed=0, device="cpu")
    model.model.eval()
    return model


def test_the_rank_before_counts(begun: CrossEncoder, base: Path) -> None:
    first, second, last, again = begun.scores(at(1, 2, 50, 1))
    assert first == pytest.approx(again, abs=1e-6)
    assert len({round(float(score), 5) for score in (first, second, last)}) == 3
    assert begun.scores([PAIR])[0] == pytest.approx(first, abs=1e-6)
    without = CrossEncoder.begin(str(base), TextOptions(max_tokens=32), seed=0, device="cpu")
    without.model.eval()
    assert np.ptp(without.scores(at(1, 2, 50, 1))) < 1e-6


def test_what_is_saved_is_what_is_opened(begun: CrossEncoder, tmp_path: Path) -> None:
    begun.save(tmp_path, begun.manifest)
    opened = CrossEncoder.open(tmp_path, device="cpu")
    assert opened.scores(at(1, 7, 30)) == pytest.approx(begun.scores(at(1, 7, 30)), abs=1e-6)
    with pytest.raises(ModelError, match="reads the rank before, which it cannot with 8 bits"):
        CrossEncoder.open(tmp_path, backend="onnx-int8")


def test_weights_without_the_gate_are_an_error(begun: CrossEncoder, base: Path, tmp_path: Path) -> None:
    without = CrossEncoder.begin(str(base), TextOptions(max_tokens=32), seed=0, device="cpu")
    without.save(tmp_path, begun.manifest)
    with pytest.raises(ModelError, match="cannot be loaded"):
        CrossEncoder.open(tmp_path, device="cpu")


def test_it_learns_how_much_the_rank_says(begun: CrossEncoder) -> None:
    """The texts are all the same, and the paper of rank 3 is cited."""
    encoded = begun.tokenizer.encode(at(*range(1, 7)))
    optimizer = torch.optim.AdamW(begun.model.parameters(), lr=3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        (-torch.log_softmax(begun.logits(encoded), 0)[2]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert begun.scores(at(*range(1, 7))).argmax() == 2
