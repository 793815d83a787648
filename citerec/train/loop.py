"""The loop in which models learn: AdamW or Lion, linear warm-up and decay, early stopping, checkpoints.

No random state is kept between steps: order, negatives and dropout of a step follow from the seed and its number. So a
checkpoint needs only weights and moments, and no pickle, unlike those of transformers' trainers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from citerec.errors import BuildError
from citerec.files.progress import Note, Progress
from citerec.train.checkpoint import Checkpoint, State

Optimizer = Literal["adamw", "lion"]

_WARM_UP = 0.1  # share of the steps in which the learning rate rises
_CLIP = 1.0  # longest gradient


class Learner(Protocol):
    """A model in training, with its examples."""

    model: Any
    """The torch module."""

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        """The numbers of the examples of each step of an epoch, in an order that follows from seed and epoch."""

    def backward(self, batch: Sequence[int], step: int) -> float:
        """Computes the loss of a step and adds its gradients; returns it."""

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The value on dev (higher is better), and other results there."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to learn.

    Attributes:
        learning_rate: The peak learning rate.
        epochs: How often each example is seen.
        evaluations: Dev values over the whole run.
        patience: Dev values without gain after which training stops.
        checkpoint_every: Steps between two checkpoints; each dev value makes one too.
        seed: Seed of all random choices.
        first: Whether the model is measured before training, and kept if training does not improve it.
        decay: Weight decay; the default is that of LCR and of BERT.
        optimizer: `adamw` or `lion`.
        warm_up: Steps in which the learning rate rises; by default a tenth of all.
    """

    learning_rate: float
    epochs: int = 1
    evaluations: int = 10
    patience: int = 3
    checkpoint_every: int = 100
    seed: int = 0
    first: bool = False
    decay: float = 0.01
    optimizer: Optimizer = "adamw"
    warm_up: int | None = None


def learn(learner: Learner, schedule: Schedule, folder: Path, on_progress: Progress, note: Note) -> State:
    """Trains a model, or resumes its training; it ends with the weights that were best on dev.

    Its checkpoint is in `folder`, which must be of the same training.

    Raises:
        BuildError: The loss is no longer finite.
    """
    import torch

    steps = [batch for epoch in range(schedule.epochs) for batch in learner.batches(epoch)]
    optimizer = _optimizer(learner.model, schedule)
    checkpoint = Checkpoint(folder / "checkpoint")
    state = checkpoint.load(learner.model, optimizer)
    evaluate_every = math.ceil(len(steps) / schedule.evaluations)
    if schedule.first and not state.values:
        _measure(learner, state, note)
        checkpoint.save(learner.model, optimizer, state)
    learner.model.train()
    while state.step < len(steps) and state.without_gain < schedule.patience:
        on_progress("training", state.step, len(steps))
        torch.manual_seed(schedule.seed * 1_000_003 + state.step)
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * _rate(state.step, len(steps), schedule.warm_up)
        optimizer.zero_grad()
        loss = learner.backward(steps[state.step], state.step)
        if not math.isfinite(loss):
            raise BuildError(f"the loss of step {state.step + 1} is {loss}", "Give a lower --learning-rate.")
        torch.nn.utils.clip_grad_norm_(learner.model.parameters(), _CLIP)
        optimizer.step()
        state.step += 1
        state.running = (state.running[0] + loss, state.running[1] + 1)
        if measured := state.step % evaluate_every == 0 or state.step == len(steps):
            _measure(learner, state, note)
            learner.model.train()
        if measured or state.step % schedule.checkpoint_every == 0:
            checkpoint.save(learner.model, optimizer, state)
    on_progress("training", len(steps), len(steps))
    checkpoint.load_best(learner.model)
    learner.model.eval()
    return state


def shuffled(count: int, size: int, seed: tuple[int, int]) -> list[list[int]]:
    """The numbers of some examples in an order that follows from a seed and an epoch, `size` per step."""
    order = np.random.default_rng(seed).permutation(count).tolist()
    return [order[begin : begin + size] for begin in range(0, count, size)]


def _measure(learner: Learner, state: State, note: Note) -> None:
    learner.model.eval()
    value, found = learner.evaluate()
    total, count = state.running
    state.running = (0.0, 0)
    state.values[str(state.step)] = value
    if count:
        state.losses[str(state.step)] = total / count
    if state.best is None or value > state.best:
        state.best, state.best_step, state.found, state.without_gain = value, state.step, found, 0
    else:
        state.without_gain += 1
    loss = f"loss {total / count:.4f}, " if count else ""
    note(f"step {state.step:,}: {loss}dev {value:.4f}{'' if state.without_gain else ', the best so far'}")


def _optimizer(model: Any, schedule: Schedule) -> Any:
    """AdamW or Lion. Biases and the scales of normalisation do not decay, as in BERT."""
    import torch

    from citerec.train.lion import Lion

    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": schedule.decay},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    kind = Lion if schedule.optimizer == "lion" else torch.optim.AdamW
    return kind(groups, lr=schedule.learning_rate)


def _rate(step: int, steps: int, warm_up: int | None) -> float:
    """Share of the learning rate: linear warm-up, then linear decay to 0."""
    warm_up = max(1, round(_WARM_UP * steps)) if warm_up is None else warm_up
    return (step + 1) / warm_up if step < warm_up else (steps - step) / max(1, steps - warm_up)
