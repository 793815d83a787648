"""The commands of CiteBench: `data citebench`, `rate …` and `train transfer`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from citerec.cli import options
from citerec.cli.console import counts_table, give, note, say
from citerec.cli.learning import WRITER_DEFAULTS, Hyper, Limit, Seeds, seeds_of
from citerec.errors import UsageError
from citerec.files.progress import progress_bar
from citerec.files.text import names_in


def citebench(
    files: tuple[Path, ...], /, *, out: options.Out, as_published: bool = False, max_bad: options.MaxBad = 0.05
) -> None:
    """Make one file in CiteBench's format of FILES of its four source data sets.

    These are AbuRa'ed (text pairs), Chen (Delve, S2ORC), Lu (Multi-XScience) and Xing. Citations become
    [0], [1], and so on, in order of first mention. Only unreadable records are left out.

    Example: citerec data citebench multi_xscience/test.json --out lu-test.jsonl

    Args:
        files: Files of the data sets.
        out: The file to write, JSON Lines.
        as_published: Convert as CiteBench's own scripts do, to compare with its scores: docs/papers.md.
    """
    from citerec.corpus.reading import quarantine_of
    from citerec.papers.citebench.sources import unify

    with progress_bar() as on_progress:
        tasks, bad = unify(files, out, as_published=as_published, max_bad=max_bad, on_progress=on_progress)
    say(f"{out} written. Citation texts, by data set:", counts_table(tasks))
    if bad:
        note(f"Records set aside: {bad:,}. See {quarantine_of(out)}")


rate = App(
    "rate",
    help="Rate texts by hand: sheets for blind ratings, and their results.\n\n"
    "Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv",
)
_Key = Annotated[Path, Parameter(name="--key", metavar="FILE", help="The key that was written with the sheets.")]
_Sheets = Annotated[tuple[Path, ...], Parameter(help="Sheets with their ratings.")]


@rate.command
def sheet(
    predictions: options.Predictions,
    /,
    *,
    out: options.Out,
    texts: options.Count = 25,
    raters: options.Count = 3,
    shared: options.Natural = 10,
    seed: options.Seed = 0,
) -> None:
    """Write a sheet for each rater: CSV for any spreadsheet program.

    Raters score readability and consistency with what the authors wrote, from 1 to 5, as in CiteBench.
    The texts of all systems are mixed and carry no names. A key beside the sheets says who wrote what;
    raters must not see it.

    Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv

    Args:
        out: Name of the sheets, such as sheet.csv.
        texts: Tasks of each data set; the texts of all systems for them are rated.
        raters: How many people rate.
        shared: How many tasks of each data set all raters get, to see how well they agree.
    """
    from citerec.evaluation.texts import read_predictions
    from citerec.papers.citebench.rating import write_sheets

    read = read_predictions([options.named_file(value) for value in predictions])
    *sheets, instructions, key = write_sheets(read, out, tasks=texts, raters=raters, shared=shared, seed=seed)
    for path in (*sheets, f"{instructions}: for the raters", f"{key}: who wrote what; keep it from the raters"):
        say(str(path))
    if read.left_out:
        note(f"{read.left_out:,} of {read.total:,} tasks left out: not every system answered, or one learned from them")


@rate.command
def correlate(
    sheets: _Sheets,
    /,
    *,
    key: _Key,
    folder: Annotated[Path, Parameter(name="--results", metavar="FOLDER")],
    form: options.Format = "table",
) -> None:
    """Correlate metrics with the ratings of filled-in SHEETS, over texts and over systems.

    Pearson's r, Spearman's rho and Kendall's tau-b of each metric of the results with each scale.

    Example: citerec rate correlate sheet-anna.csv --key sheet.key.json --results results/sample

    Args:
        folder: Results of eval-text for the texts of the sheets.
    """
    from citerec.evaluation.results import Results
    from citerec.papers.citebench import rating

    correlations = rating.correlate(sheets, key, Results.read(folder))
    give(form, None, correlations, [rating.correlation_table(correlations)])


@rate.command
def read(sheets: _Sheets, /, *, key: _Key, form: options.Format = "table") -> None:
    """Read filled-in SHEETS: means by system, agreement of raters.

    The name of a sheet names its rater: sheet-anna.csv is anna's.

    Example: citerec rate read sheet-anna.csv sheet-ben.csv --key sheet.key.json
    """
    from citerec.papers.citebench import rating

    ratings = rating.read_ratings(sheets, key)

    give(form, None, ratings, rating.ratings_tables(ratings))


_Set = tuple[str, ...]


def transfer(
    *,
    train_sets: Annotated[_Set, Parameter(name="--train", metavar="NAME=FILE")],
    dev_sets: Annotated[_Set, Parameter(name="--dev", metavar="NAME=FILE")] = (),
    test_sets: Annotated[_Set, Parameter(name="--test", metavar="NAME=FILE")],
    base: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None,
    metrics: str = "rouge",
    metric: str = "rougeL",
    limit: Limit = None,
    seeds: Seeds = None,
    out: options.Out,
    hyper: Hyper = Hyper(),
    form: options.Format = "table",
) -> None:
    """Train a writer on each data set, and test it on each: the matrix of transfer.

    Repeat the command to resume an interrupted run; what is done is kept. Tasks that a writer learned from are left
    out of its test set for all writers.

    Example: citerec train transfer --train lu=lu/train.jsonl --train xing=xing/train.jsonl
    --test lu=lu/test.jsonl --test xing=xing/test.jsonl --out transfer --seeds 22,42,55

    Args:
        train_sets: Tasks to learn from, and their name.
        dev_sets: Tasks to measure on while training on that set; as of train writer.
        test_sets: Tasks to write for, and their name.
        base: The model to start from.  [default: that of train writer]
        metrics: Metrics to measure, as of eval-text.
        metric: The column that the printed matrix shows.
        out: Models, predictions, and matrix.json.
    """
    from citerec.files.writing import write_failures, write_json
    from citerec.papers.citebench.transfer import measure_transfer, transfer_table
    from citerec.train.groups import Choice, Schedule
    from citerec.train.writer import DEFAULT_BASE, WriterOptions
    from citerec.write.metrics import open_metrics

    train, dev, test = (options.named_paths(values, "NAME=FILE") for values in (train_sets, dev_sets, test_sets))
    if unknown := [name for name in dev if name not in train]:
        raise UsageError(f"--dev {unknown[0]}: there is no --train of this name")
    settings = hyper.settings(Choice, WriterOptions, **WRITER_DEFAULTS)
    choices = {name: settings.of(Choice, path=path, dev=dev.get(name), limit=limit) for name, path in train.items()}
    writer = settings.of(WriterOptions, base=base or DEFAULT_BASE)
    of_seeds = seeds_of(seeds) or (settings.of(Schedule).seed,)
    text_metrics, of_corpus = open_metrics(names_in(metrics))
    if of_corpus:
        raise UsageError(f"--metrics {of_corpus[0].name} looks at all texts together: a matrix has means")
    columns = {column.name: column for one in text_metrics for column in one.columns}
    if metric not in columns:
        raise UsageError(f"--metric {metric!r} is not {', '.join(columns)}")
    matrix = hyper.train(measure_transfer, settings, (choices, test), out, writer, seeds=of_seeds, metrics=text_metrics)
    with write_failures(out):
        write_json(out / "matrix.json", matrix)
    give(form, None, matrix, [transfer_table(matrix, columns[metric])])
