"""`citerec train transfer`: writers trained on each data set, tested on each."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import note, output, print_json, say
from citerec.cli.learning import pop, seeds_of
from citerec.cli.options import json_option, path_option
from citerec.cli.train_writer import writer, writer_schedule
from citerec.evaluation.rendering import show, to_csv
from citerec.files.progress import progress_bar

_SETS: dict[str, Any] = {"metavar": "NAME=FILE", "multiple": True}


@click.command(
    epilog="Example: citerec train transfer --train lu=lu/train.jsonl --train xing=xing/train.jsonl "
    "--test lu=lu/test.jsonl --test xing=xing/test.jsonl --out transfer --seeds 22,42,55"
)
@click.option("--train", "train_sets", required=True, help="Tasks to learn from, and their name.", **_SETS)
@click.option("--dev", "dev_sets", help="Tasks to measure on while training on that set; as of train writer.", **_SETS)
@click.option("--test", "test_sets", required=True, help="Tasks to write for, and their name.", **_SETS)
@click.option(
    "--kind",
    "kinds",
    metavar="NAME=KIND",
    multiple=True,
    help="Kind of text of a set to test on, such as news=xsum.  [default: as --writes]",
)
@click.option(
    "--option",
    "assignments_of_writer",
    metavar="KEY=VALUE",
    multiple=True,
    help="How the trained writers write, such as beams=4; may be repeated. Keys: docs/writing.md.",
)
@click.option("--metrics", default="rouge", help="Metrics to measure, as of eval-text.")
@click.option("--metric", default="rougeL", help="The column that the printed matrix shows.")
@path_option("--out", required=True, metavar="FOLDER", help="Models, predictions, and matrix.json.")
@json_option
def transfer(
    train_sets: tuple[str, ...],
    dev_sets: tuple[str, ...],
    test_sets: tuple[str, ...],
    kinds: tuple[str, ...],
    assignments_of_writer: tuple[str, ...],
    metrics: str,
    metric: str,
    out: Path,
    device: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a writer on each data set, and test it on each: the matrix of transfer.

    The other options are those of train writer. Repeat the command to resume an interrupted run; what
    is done is kept. Tasks that a writer learned from are left out of its test set for all writers.
    """
    from citerec.files.writing import write_failures, write_json, writing_file
    from citerec.generate.writers.base import assignments
    from citerec.texts.metrics.base import open_metrics
    from citerec.train.groups import Choice
    from citerec.train.transfer import Transfer, measure_transfer, train_and_write
    from citerec.train.writer import WriterOptions

    learnt, dev, tested = (_named(values) for values in (train_sets, dev_sets, test_sets))
    if unknown := [name for name in dev if name not in learnt]:
        raise click.UsageError(f"--dev {unknown[0]}: there is no --train of this name")
    seeds = seeds_of(options)
    shared = pop(options, "dev_share", "dev_limit", "limit")
    plan = Transfer(
        {name: Choice(path, dev.get(name), seed=options["seed"], **shared) for name, path in learnt.items()},
        tested,
        seeds or (options["seed"],),
        _pairs(kinds),
        assignments(assignments_of_writer),
    )
    opened, of_corpus = open_metrics([name.strip() for name in metrics.split(",") if name.strip()])
    if of_corpus:
        raise click.UsageError(f"--metrics {of_corpus[0].name} looks at all texts together: a matrix has means")
    if metric not in (known := [column.name for one in opened for column in one.columns]):
        raise click.UsageError(f"--metric {metric!r} is not {', '.join(known)}")
    schedule = writer_schedule(options)
    with progress_bar() as on_progress:
        told: dict[str, Any] = {"device": device, "on_progress": on_progress, "note": note}
        train_and_write(plan, out, WriterOptions(**options), schedule, **told)
        matrix = measure_transfer(plan, out, opened, on_progress=on_progress)
    with write_failures(out):
        write_json(out / "matrix.json", matrix.to_json())
        with writing_file(out / "matrix.csv") as partial:
            partial.write_text(to_csv(matrix.table(metric)), encoding="utf-8")
    if as_json:
        print_json(matrix.to_json())
        return
    show(output(), matrix.table(metric))
    compared = ", ".join(f"{test} {number:,} of {asked:,}" for test, (number, asked) in matrix.tasks.items())
    say(f"Mean over {len(matrix.seeds)} seeds ± standard deviation. Tasks that no writer learned from: {compared}.")


def _named(values: tuple[str, ...]) -> dict[str, Path]:
    return {name: Path(path) for name, path in _pairs(values).items()}


def _pairs(values: tuple[str, ...]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for given in values:
        name, separator, value = given.partition("=")
        if not separator or not name or not value or name in pairs:
            raise click.UsageError(f"{given!r} is not NAME=VALUE with a name of its own")
        pairs[name] = value
    return pairs


_OWN = {parameter.name for parameter in transfer.params}
transfer.params += [one for one in writer.params if one.name not in (*_OWN, "tasks", "dev")]
