"""`citerec rate`: people judge texts without knowing who wrote them."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import give, note, say
from citerec.cli.eval_text import named_file, predictions_argument, references_option
from citerec.cli.options import PATH, json_option, number, path_option, resamples, seed


@click.group(epilog="Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv")
def rate() -> None:
    """Human evaluation: sheets for blind ratings of texts, and the results of the ratings."""


@rate.command(epilog="Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv")
@predictions_argument
@references_option
@path_option("--out", required=True, metavar="FILE", help="Name of the sheet, such as sheet.csv.")
@click.option(
    "--texts",
    "tasks",
    type=click.IntRange(1),
    default=25,
    help="Tasks of each data set; the texts of all systems for them are rated.",
)
@number("--raters", 3, "How many people rate.")
@number("--shared", 10, "How many tasks of each data set all raters get, to see how well they agree.", least=0)
@seed
def sheet(predictions: tuple[str, ...], tasks_file: Path | None, out: Path, **options: Any) -> None:
    """Write a sheet for each rater: CSV for any spreadsheet program.

    Raters score readability and consistency with what the authors wrote, from 1 to 5, as in CiteBench.
    The texts of all systems are mixed and carry no names. A key beside the sheets says who wrote what;
    raters must not see it.
    """
    from citerec.evaluation.predictions import read_predictions
    from citerec.evaluation.sheets import write_sheets

    read = read_predictions([named_file(value) for value in predictions], tasks_file)
    *sheets, instructions, key = write_sheets(read, out, **options)
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
    from citerec.cli.results import show_correlations
    from citerec.evaluation import correlation
    from citerec.evaluation.results import Results

    found = correlation.correlate(sheets, key, Results.read(folder), seed=seed, resamples=resamples)
    give(found, show_correlations, as_json=as_json)


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
    from citerec.cli.results import show_ratings
    from citerec.evaluation.ratings import read_ratings

    rated = read_ratings(sheets, key, seed=seed, resamples=resamples)
    give(rated, show_ratings, as_json=as_json)
