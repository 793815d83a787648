"""Checkpoints on a disk that cannot be written to."""

import resource
from pathlib import Path

import pytest
import torch

from citerec.errors import BuildError
from citerec.train.checkpoint import Checkpoint, State, checkpoint_directory


@pytest.mark.parametrize("limit", [100_000, 1_200_000])
def test_no_room_for_weights_or_moments_is_one_line(tmp_path: Path, limit: int) -> None:
    model = torch.nn.Linear(500, 500)  # 1 MB of weights, 2 MB of moments
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 500)).sum().backward()
    optimizer.step()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(BuildError, match=r"cannot train .*model: File too large") as raised:  # noqa: SIM117
            with checkpoint_directory(tmp_path / "model", {}) as folder:
                Checkpoint(folder / "last").save(model, optimizer, State())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.remedy.startswith("Make room")
    with checkpoint_directory(tmp_path / "model", {}) as folder:
        checkpoint = Checkpoint(folder / "last")
        checkpoint.save(model, optimizer, State(step=1, best_step=1))
        assert checkpoint.load(model, optimizer).step == 1
