"""The frame of the papers' trainings on contexts; transformers' Trainer trains."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from citerec.contexts.learnt import LEARNT
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.writing import Kind
from citerec.systems import Recipe
from citerec.train.base import LossLearner, Schedule, TrainingRecord
from citerec.train.groups import Choice, GroupTraining, group_training
from citerec.train.trainer import LossTrainer


class Pupil(LossLearner, Protocol):
    """A model in training that can be written."""

    @property
    def base(self) -> str | None:
        """What it starts from, by a name whose provenance may be known."""

    def write(self, folder: Path, record: TrainingRecord) -> Any:
        """Writes the model with its best weights and its manifest into a folder; returns the manifest."""


def train_on_contexts(
    begin: Callable[[GroupTraining], Pupil],
    directory: Kind,
    choice: Choice,
    index: Path,
    out: Path,
    options: Any,
    schedule: Schedule,
    system: Recipe | None = None,
    *,
    depth: int = 0,
    identity: str = "",
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> Any:
    """Trains a model, in place of an earlier one at `out`. An interrupted training is resumed.

    Args:
        begin: Makes the model, and what it learns, of the contexts.
        directory: What its folder holds.
        choice: Which contexts to learn from, and which to measure on.
        index: The index that holds the cited papers.
        out: The folder of the model.
        options: What to learn, and how; a dataclass.
        schedule: How long, and how fast.
        system: The system that finds candidates for dev, if there is a depth.
        depth: How many candidates it finds.
        identity: The identity of what the model starts from, where its name does not say.
        device: Where it is trained; by default a GPU if there is one.
        on_progress: Called as the work goes on.
        note: Called with a line about each dev value.

    Returns:
        The manifest.
    """
    directory.check_place(out)
    system = system if depth else Recipe.load("bm25")  # which is not asked, but has the records
    place = (choice, index, system, out, options, schedule, depth, device, on_progress)
    with group_training(*place, negatives=False, identity=identity) as groups:
        pupil = begin(groups)
        record = LossTrainer(pupil, schedule, groups.folder, on_progress, note).fit()
        with directory.writing(out) as partial:
            groups.learnt(pupil.base).write(partial / LEARNT)
            return pupil.write(partial, record)
