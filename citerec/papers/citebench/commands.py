"""The commands of CiteBench: `data citebench`, `rate …` and `train transfer`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import give, note, output, print_json, say, show_counts
from citerec.cli.eval_text import named_file, predictions_argument, references_option
from citerec.cli.learning import pop, seeds_of
from citerec.cli.options import PATH, json_option, max_bad, number, path_option, resamples, seed
from citerec.cli.train import writer, writer_schedule
from citerec.evaluation.rendering import show, to_csv
from citerec.files.progress import progress_bar


@click.command(epilog="Example: citerec data citebench multi_xscience/test.json --out lu-test.jsonl")
@click.argument("files", nargs=-1, required=True, type=PATH)
@path_option("--out", required=True, help="The file to write, JSON Lines.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["aburaed", "chen", "lu", "xing"]),
    help="Format of the files; by default it is recognised.",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="Convert as CiteBench's own scripts do, to compare with its scores: docs/text-data.md.",
)
@click.option(
    "--context/--no-context",
    default=True,
    help="Keep the citing abstract and the text before and after; CiteBench's default files have neither.",
)
@max_bad("unreadable records")
def citebench(files: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Make one file in CiteBench's format of FILES of its four source data sets.

    These are AbuRa'ed (text pairs), Chen (Delve, S2ORC), Lu (Multi-XScience) and Xing. Citations become
    [0], [1], … in order of first mention. Only unreadable records are left out.
    """
    from citerec.papers.citebench.sources import unify

    with progress_bar() as on_progress:
        unified = unify(files, out, **options, on_progress=on_progress)
    say(f"{out} written. Citation texts, by data set:")
    show_counts(unified.tasks)
    if unified.quarantine:
        note(f"Records set aside: {unified.bad:,}. See {unified.quarantine}")


@click.group(epilog="Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv")
def rate() -> None:
    """Human evaluation: sheets for blind ratings of texts, and the results of the ratings."""


@rate.command(epilog="Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv")
@predictions_argument
@references_option
@path_option("--out", required=True, metavar="FILE", help="Name of the sheet, such as sheet.csv.")
@number("--texts", 25, "Tasks of each data set; the texts of all systems for them are rated.")
@number("--raters", 3, "How many people rate.")
@number("--shared", 10, "How many tasks of each data set all raters get, to see how well they agree.", least=0)
@seed
def sheet(predictions: tuple[str, ...], tasks_file: Path | None, out: Path, texts: int, **options: Any) -> None:
    """Write a sheet for each rater: CSV for any spreadsheet program.

    Raters score readability and consistency with what the authors wrote, from 1 to 5, as in CiteBench.
    The texts of all systems are mixed and carry no names. A key beside the sheets says who wrote what;
    raters must not see it.
    """
    from citerec.evaluation.predictions import read_predictions
    from citerec.papers.citebench.sheets import write_sheets

    read = read_predictions([named_file(value) for value in predictions], tasks_file)
    *sheets, instructions, key = write_sheets(read, out, tasks=texts, **options)
    for path in sheets:
        say(str(path))
    say(f"{instructions}: for the raters, with their sheets")
    say(f"{key}: who wrote what; keep it from the raters")
    if read.left_out:
        why = "not every system answered, or one learned from them"
        note(f"{read.left_out:,} of {read.asked:,} tasks left out: {why}.", "yellow")
    if without := sum(not task.targets for task in read.tasks):
        note(
            f"{without:,} of {len(read.tasks):,} tasks without a target: consistency with it cannot be rated.", "yellow"
        )


@rate.command(
    epilog="Example: citerec rate correlate sheet-anna.csv --key sheet.key.json --results results/sample",
)
@click.argument("sheets", nargs=-1, required=True, type=PATH)
@path_option("--key", required=True, metavar="FILE", help="The key that was written with the sheets.")
@path_option(
    "--results", "folder", required=True, metavar="FOLDER", help="Results of eval-text for the texts of the sheets."
)
@seed
@resamples
@json_option
def correlate(sheets: tuple[Path, ...], key: Path, folder: Path, seed: int, resamples: int, as_json: bool) -> None:
    """Correlate metrics with the ratings of filled-in SHEETS, over texts and over systems.

    Pearson's r, Spearman's rho and Kendall's tau-b of each metric of the results with each scale.
    """
    from citerec.evaluation.results import Results
    from citerec.papers.citebench import correlation_tables as tables

    correlated = tables.correlate(sheets, key, Results.read(folder), seed=seed, resamples=resamples)
    give(correlated, tables.show_correlations, as_json=as_json)


@rate.command(epilog="Example: citerec rate read sheet-anna.csv sheet-ben.csv --key sheet.key.json")
@click.argument("sheets", nargs=-1, required=True, type=PATH)
@path_option("--key", required=True, metavar="FILE", help="The key that was written with the sheets.")
@seed
@resamples
@json_option
def read(sheets: tuple[Path, ...], key: Path, seed: int, resamples: int, as_json: bool) -> None:
    """Read filled-in SHEETS: means by system, agreement of raters.

    The name of a sheet names its rater: sheet-anna.csv is anna's.
    """
    from citerec.papers.citebench import rating_tables as tables

    rated = tables.read_ratings(sheets, key, seed=seed, resamples=resamples)
    give(rated, tables.show_ratings, as_json=as_json)


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
    from citerec.papers.citebench.transfer import Transfer, measure_transfer, train_and_write
    from citerec.train.groups import Choice
    from citerec.train.writer import WriterOptions
    from citerec.write.metrics.base import open_metrics
    from citerec.write.writers.base import assignments

    train, dev, test = (
        {name: Path(path) for name, path in _pairs(values).items()} for values in (train_sets, dev_sets, test_sets)
    )
    if unknown := [name for name in dev if name not in train]:
        raise click.UsageError(f"--dev {unknown[0]}: there is no --train of this name")
    seeds = seeds_of(options)
    shared = pop(options, "dev_share", "dev_limit", "limit")
    plan = Transfer(
        {name: Choice(path, dev.get(name), seed=options["seed"], **shared) for name, path in train.items()},
        test,
        seeds or (options["seed"],),
        _pairs(kinds),
        assignments(assignments_of_writer),
    )
    text_metrics, of_corpus = open_metrics([name.strip() for name in metrics.split(",") if name.strip()])
    if of_corpus:
        raise click.UsageError(f"--metrics {of_corpus[0].name} looks at all texts together: a matrix has means")
    if metric not in (columns := [column.name for one in text_metrics for column in one.columns]):
        raise click.UsageError(f"--metric {metric!r} is not {', '.join(columns)}")
    schedule = writer_schedule(options)
    with progress_bar() as on_progress:
        to_write = WriterOptions(**options)
        train_and_write(plan, out, to_write, schedule, device=device, on_progress=on_progress, note=note)
        matrix = measure_transfer(plan, out, text_metrics, on_progress=on_progress)
    with write_failures(out):
        write_json(out / "matrix.json", matrix.to_json())
        with writing_file(out / "matrix.csv") as partial:
            partial.write_text(to_csv(matrix.table(metric)), encoding="utf-8")
    if as_json:
        print_json(matrix.to_json())
        return
    show(output(), matrix.table(metric))
    compared = ", ".join(f"{test} {n['compared']:,} of {n['asked']:,}" for test, n in matrix.tasks.items())
    say(f"Mean over {len(matrix.seeds)} seeds ± standard deviation. Tasks that no writer learned from: {compared}.")


def _pairs(values: tuple[str, ...]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for pair in values:
        name, _, value = pair.partition("=")
        if not name or not value or name in pairs:
            raise click.UsageError(f"{pair!r} is not NAME=VALUE with a name of its own")
        pairs[name] = value
    return pairs


_OWN = {parameter.name for parameter in transfer.params}
transfer.params += [one for one in writer.params if one.name not in (*_OWN, "tasks", "dev")]
