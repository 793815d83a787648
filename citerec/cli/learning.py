"""What the commands that train share: where examples come from, hyper-parameters, and what is said at the end."""

import importlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from citerec.cli.console import note, say
from citerec.cli.options import Count, IndexPath, Model, Settings, Tuning, option_group
from citerec.errors import UsageError
from citerec.files.progress import progress_bar
from citerec.files.text import names_in

Manifest = TypeVar("Manifest")

_MADE = "The model to make, or to replace: a folder."
Out = Annotated[Path, Parameter(name=("--out", "-o"), help=_MADE)]
OutOfIndex = Annotated[Path | None, Parameter(name=("--out", "-o"), help=f"{_MADE}  [default: into the index itself]")]
Base = Annotated[Model, Parameter(help="The model to start from.")]
_FINDER = "The system that finds candidates: a recipe or a built-in one.  [default: as recommend]"
Finder = Annotated[str | None, Parameter(name="--system", metavar="NAME|FILE", help=_FINDER)]
_DEV = """Examples to measure on while training. The model does not learn from their papers. Results on them are
biased afterwards.  [default: a share of the papers is held out]"""
Dev = Annotated[Path | None, Parameter(name="--dev", help=_DEV)]
_LIMIT = "Examples to learn from, at most; sampled by the seed."
Limit = Annotated[Count | None, Parameter(name="--limit", help=_LIMIT)]
_SEEDS = "Train with each of these seeds, in --out/seed-N: 22,42,55. The setting seed still draws the samples."
Seeds = Annotated[str | None, Parameter(name="--seeds", metavar="LIST", help=_SEEDS)]
WRITER_DEFAULTS: dict[str, Any] = {"dev_limit": 100, "epochs": 3, "evaluations": 6, "learning_rate": 5e-5}
"""Defaults of those settings that trainings of writers change."""
_OWN = ("base", "dev", "first", "model", "path", "words", "writes")


@dataclass(frozen=True)
class Device:
    """Where a model is trained.

    Attributes:
        device: Such as cpu, or cuda:1; by default a GPU if there is one.
    """

    device: str | None = None


@option_group
class Hyper(Tuning):
    """Hyper-parameters, which are settings.

    Attributes:
        assignments: Change one hyper-parameter, such as epochs=5; may be repeated. A wrong KEY shows which there are.
        config: A TOML file of hyper-parameters; -c wins over it.
    """

    def settings(self, *kinds: type, own: Collection[str] = (), **defaults: Any) -> Settings:
        """The hyper-parameters of some kinds of options, beside those of the schedule; `Tuning.settings`."""
        from citerec.train.groups import Schedule

        return Tuning.settings(self, *kinds, Schedule, Device, own=(*_OWN, *own), **defaults)

    def train(
        self, fit: Callable[..., Manifest], settings: Settings, what: Iterable[Any], out: Path, options: Any, **own: Any
    ) -> Manifest:
        """Calls a function that trains, and returns its result; progress and notes go to standard error.

        It takes what is learnt from, a folder, options, the schedule, and its `own` arguments.
        """
        from citerec.train.groups import Schedule

        importlib.import_module("citerec.train.trainer")  # before any work: an error names the extra `train`
        with progress_bar() as on_progress:
            how = {"device": settings.of(Device).device, "on_progress": on_progress, "note": note}
            return fit(*what, out, options, settings.of(Schedule), **own, **how)


@option_group
class FromContexts(Hyper):
    """Contexts to learn from, the index that has the papers they cite, and hyper-parameters.

    Attributes:
        contexts: Contexts with cited papers, JSON Lines.
    """

    contexts: Path
    dev: Dev = None
    limit: Limit = None
    index: IndexPath = None

    @property
    def place(self) -> Path:
        """The index."""
        from citerec.index.manifest import find_index

        return find_index(self.index)

    def learn(self, fit: Callable[..., Manifest], settings: Settings, out: Path, options: Any, **own: Any) -> Manifest:
        """Calls a function that trains on the contexts; see `train`."""
        from citerec.train.groups import Choice

        choice = settings.of(Choice, path=self.contexts, dev=self.dev, limit=self.limit)
        return self.train(fit, settings, (choice, self.place), out, options, **own)


def seeds_of(seeds: str | None) -> tuple[int, ...]:
    """The seeds of `--seeds`; none if it is not given."""
    parts = names_in(seeds or "")
    if not all(part.isascii() and part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise UsageError(f"--seeds {seeds!r} is no list of different seeds such as 22,42,55")
    return tuple(map(int, parts))


def recipe_of(system: str | None) -> Any:
    """The recipe of a system, if one is named."""
    from citerec.systems import Recipe

    return Recipe.load(system) if system else None


def tell(out: Path, manifest: Any, metric: str = "mrr@10") -> None:
    """Prints how well a model does on dev, after and before training; of a reranker, its weight too."""
    facts, weight = manifest.training, getattr(manifest, "weight", None)
    dev = f"{facts['dev_tasks']:,} dev tasks" if "dev_tasks" in facts else f"{facts['dev_groups']:,} dev contexts"
    weighted = "" if weight is None else f"; weight {weight:g}"
    before, after = manifest.dev[f"{metric} before"], manifest.dev[metric]
    say(f"{out} trained: {metric} {after:.3f} on {dev}, {before:.3f} before{weighted}.")
    if not (facts["best_step"] if weight is None else weight):
        note("Training did not help. More examples or epochs, or other hyper-parameters, may help.")
