"""Checkpoints: on a disk that cannot be written to, and broken ones."""

import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from citerec.errors import BuildError
from citerec.files.progress import no_note, no_progress
from citerec.train.base import Schedule, TrainingRecord, checkpoint_directory
from citerec.train.trainer import learn
from tests.training import stop_at


class Line:
    """Learns that all numbers are 0."""

    batch = 2
    examples = range(8)

    def __init__(self) -> None:
        self.model = torch.nn.Linear(500, 500)  # 1 MB of weights, 2 MB of moments

    def losses(self, examples: Sequence[int]) -> Iterator[torch.Tensor]:
        yield self.model(torch.ones(len(examples), 500)).square().mean()

    def evaluate(self) -> tuple[float, dict[str, float]]:
        with torch.inference_mode():
            return -float(self.model(torch.ones(1, 500)).square().mean()), {}


def train(out: Path, progress: object = no_progress) -> TrainingRecord:
    schedule = Schedule(learning_rate=1e-4, epochs=4, evaluations=2, checkpoint_every=2)
    with checkpoint_directory(out, {}) as folder:
        return learn(Line(), schedule, folder, progress, no_note)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [100_000, 1_200_000])
def test_no_room_for_weights_or_moments_is_one_line(tmp_path: Path, limit: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(BuildError, match=r"cannot train .*model: ") as raised:
            train(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.remedy == "Make room, then run the same command: it continues."
    assert "\n" not in str(raised.value)
    assert train(tmp_path / "model").steps == 16


def test_a_broken_checkpoint_is_said(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", stop_at("training", 5))
    checkpoints = sorted((tmp_path / ".model.training").glob("checkpoint-*"))
    assert [path.name for path in checkpoints] == ["checkpoint-2", "checkpoint-4"]
    # What was not written whole is not used.
    (checkpoints[1] / "complete").unlink()
    (checkpoints[1] / "trainer_state.json").write_bytes(b"{")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", stop_at("training", 3))
    (checkpoints[0] / "model.safetensors").write_bytes(b"x")
    with pytest.raises(BuildError, match=r"the checkpoint .*checkpoint-2 is broken") as raised:
        train(tmp_path / "model")
    assert raised.value.remedy == "Remove it, and train again."
