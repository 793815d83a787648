"""What all trainings share: the schedule, the interface of what learns, its record, and the folder of checkpoints."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from citerec.errors import BuildError
from citerec.files.resume import Journal
from citerec.files.writing import alone, beside, remove

if TYPE_CHECKING:
    import torch


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
    optimizer: Literal["adamw", "lion"] = "adamw"
    warm_up: int | None = None


class Learner(Protocol):
    """A model in training."""

    model: Any
    """The torch module."""

    batch: int
    """Examples per step."""

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The value on dev (higher is better), and other results there."""


class LossLearner(Learner, Protocol):
    """A model in training, with its examples and its loss."""

    examples: Any
    """What is learnt from, a sequence; each epoch sees all in another order."""

    def losses(self, examples: Sequence[Any]) -> "Iterable[torch.Tensor]":
        """The loss of a step in parts, which add up to it: each part is no larger than memory allows."""


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """What happened in a training.

    Attributes:
        steps: Steps that were done.
        values: The dev values, by step; step 0 is before training.
        losses: The mean loss between two dev values, by the step of the later.
        best_step: The step of the best dev value, whose weights were kept.
        results: The other results on dev then.
    """

    steps: int
    values: Mapping[int, float]
    losses: Mapping[int, float]
    best_step: int
    results: Mapping[str, float]

    @property
    def best(self) -> float:
        """The best dev value."""
        return self.values[self.best_step]

    def facts(self) -> dict[str, Any]:
        """The fields of a manifest about the training."""
        values, losses = ({str(step): value for step, value in one.items()} for one in (self.values, self.losses))
        return {"steps": self.steps, "best_step": self.best_step, "dev_values": values, "losses": losses}


@contextlib.contextmanager
def checkpoint_directory(out: Path, plan: Mapping[str, Any]) -> Iterator[Path]:
    """Yields the folder of the checkpoints of the model `out`, beside it. It is removed when the model is written.

    What was begun with the same plan is continued; what was begun with another is removed.

    Raises:
        BuildError: Another process trains this model, or the disk is full.
    """
    from safetensors import SafetensorError

    out = out.resolve()
    try:
        with alone(beside(out, "lock"), f"another process trains {out}"):
            folder = Journal(beside(out, "training"), plan).folder
            yield folder
            remove(folder)
    except (OSError, SafetensorError) as error:
        # safetensors has an error of its own for a disk that cannot be written to.
        reason = str(error).partition("I/O error: ")[2] if isinstance(error, SafetensorError) else error.strerror
        raise BuildError(
            f"cannot train {out}: {reason or error}", "Make room, then run the same command: it continues."
        ) from error
