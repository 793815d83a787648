"""Lion moves as its paper says, and may start again from what it keeps."""

import numpy as np
import pytest
import torch

from citerec.train.trainer import Lion


def test_it_moves_as_algorithm_2_of_the_paper() -> None:
    random = np.random.default_rng(1)
    exact, momentum = random.normal(size=(3, 4)), np.zeros((3, 4))
    weights = torch.nn.Parameter(torch.tensor(exact))
    optimizer = Lion([{"params": [weights], "weight_decay": 0.1}], lr=0.01)
    for step in range(6):
        gradient = random.normal(size=(3, 4))
        moved = np.sign(0.9 * momentum + 0.1 * gradient)
        exact = exact - 0.01 * (moved + 0.1 * exact)
        momentum = 0.99 * momentum + 0.01 * gradient
        weights.grad = torch.tensor(gradient)
        if step == 3:
            kept = optimizer.state_dict()
            optimizer = Lion([{"params": [weights], "weight_decay": 0.1}], lr=0.01)
            optimizer.load_state_dict(kept)
        optimizer.step()
        assert weights.detach().numpy() == pytest.approx(exact, abs=1e-12)


def test_it_finds_the_least() -> None:
    weights = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = Lion([weights], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        (weights - torch.tensor([1.0, 1.0])).square().sum().backward()
        optimizer.step()
    assert weights.tolist() == pytest.approx([1.0, 1.0], abs=0.1)
