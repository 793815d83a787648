"""What all commands share that train by gradient: how long, from which seed, where."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import notes

if TYPE_CHECKING:
    from citerec.train.loop import Schedule


def how_long(*, epochs: int, evaluations: int) -> list[Callable[[Any], Any]]:
    """The options of a schedule, but for the learning rate, and of the device.

    Args:
        epochs: Default of `--epochs`.
        evaluations: Default of `--evaluations`.
    """
    return [
        click.option("--epochs", type=click.IntRange(1), default=epochs, help="How often all are seen."),
        click.option("--evaluations", type=click.IntRange(1), default=evaluations, help="Dev values in all."),
        click.option(
            "--patience", type=click.IntRange(1), default=3, help="Dev values without gain after which training stops."
        ),
        click.option("--seed", type=click.IntRange(0), default=0, help="Of all that is drawn."),
        click.option("--device", metavar="NAME", help="Such as cpu or cuda:0.  [default: a GPU where there is one]"),
    ]


def taken(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Some options, taken out of all."""
    return {name: options.pop(name) for name in names}


def schedule_of(options: dict[str, Any], *, first: bool = False) -> "Schedule":
    """The schedule that the options tell, taken out of them.

    Args:
        options: All options.
        first: Whether the model is measured before it learns.
    """
    from citerec.train.loop import Schedule

    return Schedule(first=first, **taken(options, "learning_rate", "epochs", "evaluations", "patience", "seed"))


def say(line: str) -> None:
    """Tells how training goes."""
    notes().print(line, markup=False)
