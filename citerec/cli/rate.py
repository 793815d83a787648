"""`citerec rate`: people judge texts without knowing who wrote them."""

from pathlib import Path

import click

from citerec.cli.console import notes, output
from citerec.cli.eval_text import named_file, predictions_argument, references_option

_PATH = click.Path(path_type=Path)


@click.group(epilog="Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv")
def rate() -> None:
    """Human evaluation: sheets to rate texts on, blindly, and what the ratings come to."""


@rate.command(epilog="Example: citerec rate sheet lead.jsonl lexrank.jsonl --out sheet.csv")
@predictions_argument
@references_option
@click.option("--out", required=True, type=_PATH, metavar="FILE", help="Name of the sheet, such as sheet.csv.")
@click.option(
    "--texts",
    "tasks",
    type=click.IntRange(1),
    default=25,
    help="Tasks of each data set; what each system wrote for them is rated.",
)
@click.option("--raters", type=click.IntRange(1), default=3, help="How many people rate.")
@click.option(
    "--shared",
    type=click.IntRange(0),
    default=10,
    help="How many of the tasks of each data set go to all of them, to see how well they agree.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Of what is drawn.")
def sheet(
    predictions: tuple[str, ...], tasks_file: Path | None, out: Path, tasks: int, raters: int, shared: int, seed: int
) -> None:
    """Write a sheet for each rater: CSV for any spreadsheet program.

    Readability and consistency with what the authors wrote, from 1 to 5, as in CiteBench. The texts
    of all systems are mixed, and carry no names: who wrote what stands in a key beside the sheets,
    which raters must not see.
    """
    from citerec.evaluation.predictions import read_predictions
    from citerec.evaluation.sheets import write_sheets

    read = read_predictions([named_file(value) for value in predictions], tasks_file)
    *sheets, instructions, key = write_sheets(read, out, tasks=tasks, raters=raters, shared=shared, seed=seed)
    console = output()
    for path in sheets:
        console.print(f"{path}", markup=False, soft_wrap=True)
    console.print(f"{instructions}: for the raters, with their sheets", markup=False, soft_wrap=True)
    console.print(f"{key}: who wrote what; keep it from the raters", markup=False, soft_wrap=True)
    if read.left_out:
        notes().print(f"{read.left_out:,} of {read.asked:,} tasks left out: not every system answered.", style="yellow")
    if without := sum(not task.targets for task in read.tasks):
        notes().print(
            f"{without:,} of {len(read.tasks):,} tasks without a target: consistency with it cannot be rated.",
            style="yellow",
        )


@rate.command(epilog="Example: citerec rate read sheet-anna.csv sheet-ben.csv --key sheet.key.json")
@click.argument("sheets", nargs=-1, required=True, type=_PATH)
@click.option("--key", required=True, type=_PATH, metavar="FILE", help="The key that was written with the sheets.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the intervals.")
@click.option("--resamples", type=click.IntRange(100), default=1000, help="Bootstrap samples of the intervals.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON instead of tables.")
def read(sheets: tuple[Path, ...], key: Path, seed: int, resamples: int, as_json: bool) -> None:
    """Read filled-in SHEETS: means by system, agreement of raters.

    A rater is called what the name of the sheet says: sheet-anna.csv is anna's.
    """
    from citerec.cli.results import show_ratings
    from citerec.evaluation.ratings import read_ratings

    rated = read_ratings(sheets, key, seed=seed, resamples=resamples)
    if as_json:
        import orjson

        click.echo(orjson.dumps(rated.to_json(), option=orjson.OPT_INDENT_2))
    else:
        show_ratings(output(), rated)
