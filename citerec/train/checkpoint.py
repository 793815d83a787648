"""Checkpoints: the state of training in safetensors and JSON, so that a resumed run gives the same result.

They are kept in a checkpoint directory beside the model, which is removed when the model is written.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from citerec.errors import BuildError
from citerec.files.resume import Journal
from citerec.files.writing import alone, beside, exchange, link, recover, remove
from citerec.models.find import first_line

_STATE = "state.json"
_MODEL = "model.safetensors"
_OPTIMIZER = "optimizer.safetensors"
_BEST = "best.safetensors"


@dataclass(slots=True)
class State:
    """The state of training. `best` is the best dev value, after `best_step`; `found` has the other results then.

    `without_gain` counts the dev values since the best one. `losses` are the means between two dev values, by the step
    of the later; `running` has their sum and count since the last dev value.
    """

    step: int = 0
    best: float | None = None
    best_step: int = 0
    found: dict[str, float] = field(default_factory=dict)
    without_gain: int = 0
    values: dict[str, float] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    running: tuple[float, int] = (0.0, 0)

    def facts(self) -> dict[str, Any]:
        """The fields of a manifest about the state."""
        return {"steps": self.step, "best_step": self.best_step, "dev_values": self.values, "losses": self.losses}


_STATES = TypeAdapter(State)


class Checkpoint:
    """The checkpoint of one training, a folder: weights and moments as they are, and the weights that were best on dev.

    Args:
        folder: The folder, which is made by `save`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        recover(folder)

    def save(self, model: Any, optimizer: Any, state: State) -> None:
        """Writes a checkpoint whole, in place of the earlier one."""
        from safetensors.torch import save_file, save_model

        partial = beside(self._folder, "writing")
        remove(partial)
        partial.mkdir(parents=True)
        save_model(model, str(partial / _MODEL))
        moments = {
            f"{parameter}.{name}": value
            for parameter, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }
        save_file(moments, partial / _OPTIMIZER)
        best = partial / _MODEL if state.best_step == state.step else self._folder / _BEST
        if best.exists():  # until something was measured, nothing is best
            link(best, partial / _BEST)
        (partial / _STATE).write_bytes(orjson.dumps(asdict(state)))
        exchange(partial, self._folder)

    def load(self, model: Any, optimizer: Any) -> State:
        """Loads the checkpoint into model and optimizer; returns a fresh state if there is none.

        Raises:
            BuildError: It is broken.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file, load_model

        if not self._folder.is_dir():
            return State()
        try:
            load_model(model, self._folder / _MODEL)
            moments: dict[int, dict[str, Any]] = {}
            for key, value in load_file(self._folder / _OPTIMIZER).items():
                parameter, _, name = key.partition(".")
                moments.setdefault(int(parameter), {})[name] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": moments, "param_groups": groups})
            return _STATES.validate_json((self._folder / _STATE).read_bytes(), strict=True)
        except (SafetensorError, RuntimeError, ValueError, KeyError, OSError) as error:
            raise BuildError(
                f"the checkpoint {self._folder} is broken ({first_line(error)})", "Remove it, and train again."
            ) from error

    def load_best(self, model: Any) -> None:
        """Loads the weights that were best on dev into the model."""
        from safetensors.torch import load_model

        load_model(model, self._folder / _BEST)


@contextlib.contextmanager
def checkpoint_directory(out: Path, plan: Mapping[str, Any]) -> Iterator[Path]:
    """Yields the checkpoint directory of the model `out`. A training of the same plan is resumed; others are removed.

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
