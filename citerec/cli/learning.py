"""Shared by the commands that train by gradient descent."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from citerec.cli.console import note, say
from citerec.cli.options import Option, number, path_option, seed, share
from citerec.files.progress import progress_bar

if TYPE_CHECKING:
    from citerec.train.base import Schedule
    from citerec.train.groups import Choice

Manifest = TypeVar("Manifest")


def dev_options(what: str, held_out: str, limit: int) -> list[Option]:
    """`--dev`, `--dev-share` and `--dev-limit`.

    Args:
        what: Name of the examples, such as "Contexts".
        held_out: The papers that are held out for measuring.
        limit: Default of `--dev-limit`.
    """
    return [
        path_option(
            "--dev",
            help=f"{what} to measure on while training. The model does not learn from their {held_out}. Results on "
            "them are biased afterwards.",
        ),
        share("--dev-share", 0.1, f"Without --dev: share of the {held_out} that is held out to measure on."),
        number("--dev-limit", limit, f"{what} to measure on, at most."),
    ]


def base(default: str, what: str) -> Option:
    """`--base`."""
    return click.option("--base", default=default, help=f"The model to start from: {what}, a folder or a name.")


def learning_rate(default: float, help: str) -> Option:
    """`--learning-rate`."""
    return click.option("--learning-rate", type=click.FloatRange(0, 1, min_open=True), default=default, help=help)


def schedule_options(*, epochs: int, evaluations: int) -> list[Option]:
    """The options of a schedule, except the learning rate, and of the device.

    Args:
        epochs: Default of `--epochs`.
        evaluations: Default of `--evaluations`.
    """
    return [
        number("--epochs", epochs, "How often all examples are seen."),
        number("--evaluations", evaluations, "How often to measure on dev in all."),
        number("--patience", 3, "Stop after this many measurements on dev without gain."),
        seed,
        click.option("--device", metavar="NAME", help="Such as cpu or cuda:0.  [default: a GPU if there is one]"),
    ]


seeds_option = click.option(
    "--seeds",
    metavar="LIST",
    help="Train with each of these in place of --seed, in --out/seed-N: 22,42,55. --seed still draws the samples.",
)


def seeds_of(options: dict[str, Any]) -> tuple[int, ...]:
    """The seeds of `--seeds`, taken out of the options; none if it is not given."""
    given = options.pop("seeds") or ""
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if not all(part.isascii() and part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise click.UsageError(f"--seeds {given!r} is no list of different seeds such as 22,42,55")
    return tuple(map(int, parts))


def pop(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Removes some options and returns them."""
    return {name: options.pop(name) for name in names}


def schedule_of(options: dict[str, Any], **fixed: Any) -> "Schedule":
    """The schedule that the options set, taken out of them.

    Args:
        options: All options.
        fixed: Other fields of the schedule.
    """
    from citerec.train.base import Schedule

    return Schedule(**fixed, **pop(options, "learning_rate", "epochs", "evaluations", "patience", "seed"))


def trained(train: Callable[..., Manifest], *arguments: Any, device: str | None) -> Manifest:
    """Calls a function that trains and returns its result; progress and notes go to standard error."""
    with progress_bar() as on_progress:
        return train(*arguments, device=device, on_progress=on_progress, note=note)


def tell_dev(out: Path, manifest: Any, value: str, dev: str) -> None:
    """Prints how well a model does on dev, after and before training."""
    say(f"{out} trained: {value} {manifest.dev[value]:.3f} on {dev}, {manifest.dev[f'{value} before']:.3f} before.")
    if not manifest.training["best_step"]:
        note("Training did not help: the base model is kept. More examples or more epochs may help.")


contexts_option = path_option("--contexts", required=True, help="Contexts with cited papers, JSON Lines.")
contexts_dev_options = dev_options("Contexts", "citing papers", 300)


def candidates_of(default: str, what: str) -> Option:
    """`--system`."""
    return click.option("--system", default=default, metavar="NAME|FILE", help=what)


def limit_option(default: int | None) -> Option:
    """`--limit`."""
    return number("--limit", default, "Contexts to learn from, at most; sampled by the seed.")


def choice_of(options: dict[str, Any], of: str = "contexts") -> "Choice":
    """What to learn from and to measure on, taken out of the options.

    Args:
        options: All options.
        of: The option that names the file: `contexts` or `tasks`.
    """
    from citerec.train.groups import Choice

    return Choice(options.pop(of), seed=options["seed"], **pop(options, "dev", "dev_share", "dev_limit", "limit"))


def tell_weighted(out: Path, manifest: Any) -> None:
    """Prints how well a reranker does on dev, after and before training, and the weight of its score."""
    before, after = manifest.dev["mrr@10 before"], manifest.dev["mrr@10"]
    say(
        f"{out} trained: mrr@10 {after:.3f} on {manifest.training['dev_groups']:,} dev contexts, {before:.3f} "
        f"without it; weight {manifest.weight:g}."
    )
    if not manifest.weight:
        note("It did not help: its weight is 0. More contexts or epochs, or other options, may help.")


def recipe_of(system: str | None) -> Any:
    """The recipe of a system, if one is named."""
    from citerec.systems import Recipe

    return Recipe.load(system) if system else None
