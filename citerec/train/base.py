"""What all trainings share: the schedule, the interface of what learns, its record, checkpoints, and the folder."""

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar

from pydantic import TypeAdapter

from citerec.contexts.provenance import LEARNT, Learnt
from citerec.errors import BuildError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import Journal
from citerec.files.writing import Kind, alone, beside, remove
from citerec.models.loading import ModelManifest, torch_device
from citerec.settings import Natural, Positive, Share
from citerec.version import __version__

if TYPE_CHECKING:
    import torch

Manifest = TypeVar("Manifest", bound=ModelManifest)


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


class Learner(Protocol):
    """A model in training, with its examples and its loss."""

    model: Any
    """The torch module."""

    batch: int
    """Examples per step."""

    examples: Any
    """What is learnt from, a sequence; each epoch sees all in another order."""

    def losses(self, examples: Sequence[Any]) -> "Iterable[torch.Tensor]":
        """The loss of a step in parts, which add up to it: each part is no larger than memory allows."""

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The value on dev (higher is better), and other results there."""


@dataclass(frozen=True, slots=True)
class TrainingRecord:
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

    def facts(self) -> dict[str, Any]:
        """The fields of a manifest about the training."""
        values = {str(step): value for step, value in self.values.items()}
        return {"steps": self.steps, "best_step": self.best_step, "dev_values": values}


class How(TypedDict, total=False):
    """What every function that trains takes besides.

    `device` is where it is trained, by default a GPU if there is one; `on_progress` is called as the work goes on,
    `note` with a line about each dev value.
    """

    device: str | None
    on_progress: Progress
    note: Note


@dataclass(frozen=True)
class Training:
    """A training under way.

    Attributes:
        options: What is learnt, and how: a dataclass.
        schedule: How long, and how fast.
        folder: Where its checkpoints are.
        on_progress: Called as the work goes on.
        note: Called with a line about each dev value.
    """

    options: Any
    schedule: Schedule
    folder: Path
    on_progress: Progress
    note: Note

    def fit(self, learner: Learner) -> TrainingRecord:
        """Trains a model, or continues its training; it ends with the weights that were best on dev.

        Raises:
            BuildError: The loss is no longer finite.
        """
        from citerec.train.trainer import LossTrainer

        return LossTrainer(learner, self.schedule, self.folder, self.on_progress, self.note).fit()

    def facts(self, record: TrainingRecord, *but: str) -> dict[str, Any]:
        """The manifest's fields about the training; `but` are options that are not among them."""
        options = {name: value for name, value in asdict(self.options).items() if name not in but}
        return {**options, **asdict(self.schedule), **record.facts()}


@contextlib.contextmanager
def training(
    kind: Kind,
    out: Path,
    options: Any,
    schedule: Schedule,
    plan: Mapping[str, Any],
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> Iterator[Training]:
    """Begins a training of the model `out`, or continues one that was stopped; its checkpoints lie beside `out`.

    What was begun with the same plan is continued; what was begun with another is removed. `plan` is what the result
    depends on besides options, schedule and device.

    Raises:
        InputError: Something else is at `out`, or there is no such device.
        BuildError: Another process trains this model, or the disk is full.
    """
    from safetensors import SafetensorError

    importlib.import_module("citerec.train.trainer")  # an ImportError names what is missing of the extra `train`
    kind.check_place(out)
    out = out.resolve()
    whole = {
        **plan,
        "options": TypeAdapter(Any).dump_python(options, mode="json"),
        "schedule": asdict(schedule),
        "device": torch_device(device).partition(":")[0],  # devices differ in precision
    }
    try:
        with alone(beside(out, "lock"), f"another process trains {out}"):
            folder = Journal(beside(out, "training"), whole).folder
            yield Training(options, schedule, folder, on_progress, note)
            remove(folder)
    except (OSError, SafetensorError) as error:
        remedy = "Make room, then run the same command: it continues."
        raise BuildError(f"cannot train {out}: {error}", remedy) from error


def write_model(kind: Kind, out: Path, manifest: Manifest, learnt: Learnt, save: Callable[[Path], object]) -> Manifest:
    """Writes a trained model, in place of an earlier one at `out`; returns its manifest, with the version of citerec.

    Args:
        kind: Its kind.
        out: Its folder.
        manifest: Its manifest.
        learnt: What it learnt from.
        save: Writes its other files into a folder.

    Raises:
        InputError: Something else is at `out`.
        BuildError: The disk is full.
    """
    manifest = manifest.model_copy(update={"citerec": __version__})
    with kind.writing(out) as folder:
        save(folder)
        learnt.write(folder / LEARNT)
        manifest.write(folder)
    return manifest
