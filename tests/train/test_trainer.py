"""The trainer: its learning rate, Lion, checkpoints on a disk that cannot be written to, and broken ones."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from citerec.errors import BuildError
from citerec.files.progress import no_progress
from citerec.files.writing import Kind
from citerec.train.groups import Learner, Schedule, TrainingRecord, training
from citerec.train.trainer import Lion
from tests.dense.conftest import full_disk
from tests.training import stop_at

KIND = Kind("line", "line", "manifest.json", frozenset())


def line() -> Learner:
    """Learns that all numbers are 0."""
    model = torch.nn.Linear(500, 500)  # 1 MB of weights, 2 MB of moments

    def losses(examples: Sequence[int]) -> Iterator[torch.Tensor]:
        yield model(torch.ones(len(examples), 500)).square().mean()

    def evaluate() -> tuple[float, dict[str, float]]:
        with torch.inference_mode():
            return -float(model(torch.ones(1, 500)).square().mean()), {}

    return Learner(model, 2, range(8), losses, evaluate)


def train(out: Path, progress: object = no_progress) -> TrainingRecord:
    schedule = Schedule(learning_rate=1e-4, epochs=4, evaluations=2, checkpoint_every=2)
    with training(KIND, out, {}, schedule, [], device="cpu", on_progress=progress) as own:  # type: ignore[arg-type]
        return own.fit(line())


def test_no_room_for_weights_is_one_line(tmp_path: Path) -> None:
    with full_disk(100_000), pytest.raises(BuildError, match=r"cannot train .*model: ") as raised:
        train(tmp_path / "model")
    assert raised.value.remedy == "Make room, then run the same command: it continues."
    assert "\n" not in str(raised.value)
    assert train(tmp_path / "model").steps == 16


def test_a_checkpoint_that_was_not_written_whole_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", stop_at("training", 5))
    checkpoints = sorted((tmp_path / ".model.training").glob("checkpoint-*"))
    assert [path.name for path in checkpoints] == ["checkpoint-2", "checkpoint-4"]
    (checkpoints[1] / "trainer_state.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", stop_at("training", 3))
    assert train(tmp_path / "model").steps == 16


def test_it_moves_as_algorithm_2_of_the_paper() -> None:
    random = np.random.default_rng(1)
    exact, momentum = random.normal(size=(3, 4)), np.zeros((3, 4))
    weights = torch.nn.Parameter(torch.tensor(exact))
    optimizer = Lion([{"params": [weights], "weight_decay": 0.1}], lr=0.01)
    for _ in range(6):
        gradient = random.normal(size=(3, 4))
        moved = np.sign(0.9 * momentum + 0.1 * gradient)
        exact = exact - 0.01 * (moved + 0.1 * exact)
        momentum = 0.99 * momentum + 0.01 * gradient
        weights.grad = torch.tensor(gradient)
        optimizer.step()
        assert weights.detach().numpy() == pytest.approx(exact, abs=1e-12)
