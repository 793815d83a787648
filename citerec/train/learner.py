"""What is trained, how long and how fast, and what happened: what trainings and the trainer both know."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from citerec.settings import Natural, Positive, Share


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

    learning_rate: Share
    epochs: Positive = 1
    evaluations: Positive = 10
    patience: Positive = 3
    checkpoint_every: Positive = 100
    seed: Natural = 0
    first: bool = False
    decay: Share = 0.01
    optimizer: Literal["adamw", "lion"] = "adamw"
    warm_up: Natural | None = None


class Learner(NamedTuple):
    """A model in training, with its examples and its loss.

    Attributes:
        model: The torch module.
        batch: Examples per step.
        examples: What is learnt from, a sequence; each epoch sees all in another order.
        losses: The loss of a step, from its examples, in parts (torch tensors) that add up to it: each part is no
            larger than memory allows.
        evaluate: The value on dev (higher is better), and other results there.
    """

    model: Any
    batch: int
    examples: Any
    losses: Callable[[Sequence[Any]], Iterable[Any]]
    evaluate: Callable[[], tuple[float, dict[str, float]]]


class TrainingRecord(NamedTuple):
    """What happened in a training.

    Attributes:
        steps: Steps that were done.
        values: The dev values, by step; step 0 is before training.
        best_step: The step of the best dev value, whose weights were kept.
        results: The other results on dev then.
    """

    steps: int
    values: Mapping[int, float]
    best_step: int
    results: Mapping[str, float]

    @property
    def best(self) -> float:
        """The best dev value."""
        return self.values[self.best_step]
