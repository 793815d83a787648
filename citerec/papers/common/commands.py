"""The commands that several papers share: `data …` and `reproduce`, entry points of `citerec.commands`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.commands import Commands
from citerec.cli.console import give, note, note_set_aside, output, print_json, say, show_counts
from citerec.cli.eval_text import named_file
from citerec.cli.options import index_option, json_option, path_option, reading, seed, share
from citerec.evaluation.rendering import show as show_table
from citerec.evaluation.rendering import to_csv
from citerec.files.progress import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from citerec.papers.common.pair_sets import Plan
    from citerec.papers.common.reproduce.run import Reproduction

of_full_texts = [
    index_option("Index with the abstracts"),
    path_option("--out", required=True, help="The folder to make, or to replace."),
    share("--validation", 0.05, "Share of the papers in the validation split."),
    share("--test", 0.05, "Share of the papers in the test split."),
    seed,
    *reading("unreadable records"),
]


@click.group(
    cls=Commands,
    prefix="data.",
    epilog="Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum",
)
def data() -> None:
    """Build data sets to train and to measure writers on."""


@click.command(
    epilog="Example: citerec data statistics train=scitldr/train.jsonl dev=scitldr/dev.jsonl --over 512,1024"
)
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE…")
@click.option(
    "--over",
    default="1024,4096,16384",
    metavar="LIST",
    help="Numbers of tokens: the shares of longer inputs and targets are given.",
)
@click.option(
    "--tokenizer",
    metavar="NAME|FOLDER",
    help="Count this model's tokens, special ones included.  [default: what stands between white space]",
)
@click.option(
    "--near",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.9,
    help="Cosine of TF-IDF vectors above which two inputs are nearly the same. 0: leave this out.",
)
@path_option("--against", metavar="FILE", help="Tasks that a model learnt from: how many are near to one of them?")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
def statistics(files: tuple[str, ...], over: str, near: float, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Describe data sets: files of tasks for write batch, train writer and eval-text.

    Prints sizes, lengths, compression, novelty, shares of long texts, and tasks of nearly the same
    input.
    """
    from citerec.papers.common.statistics import statistics_table, task_statistics

    limits = [part.strip() for part in over.split(",") if part.strip()]
    if not all(limit.isascii() and limit.isdecimal() for limit in limits):
        raise click.UsageError(f"--over {over!r} is no list of numbers such as 1024,4096")
    with progress_bar() as on_progress:
        found = task_statistics(
            _named(files), over=list(map(int, limits)), near=near or None, on_progress=on_progress, **options
        )
    if as_json:
        print_json(found)
    elif as_csv:
        click.echo(to_csv(statistics_table(found)), nl=False)
    else:
        show_table(output(), statistics_table(found))


def _named(values: tuple[str, ...]) -> dict[str, Path]:
    """Files by the names given to them, or else by their own without endings."""
    files: dict[str, Path] = {}
    for given, path in map(named_file, values):
        name = given or re.sub(r"\.(jsonl?|gz)\b", "", path.name)
        if name in files:
            raise click.UsageError(f"two files have the name {name}: give them others, NAME=FILE")
        files[name] = path
    return files


def build(sources: tuple[Path, ...], plan: "Plan", options: dict[str, Any]) -> None:
    """Builds a data set from full texts with the options of its command, and says what came of it."""
    from citerec.papers.common.pair_sets import Splitting, build_pairs

    index, out = options.pop("index"), options.pop("out")
    by_full_texts = options.pop("by_full_texts", False)
    splitting = Splitting(options.pop("validation"), options.pop("test"), options.pop("seed"), by_full_texts)
    with progress_bar() as on_progress:
        built = build_pairs(sources, index, out, plan, splitting, on_progress=on_progress, **options)
    splits = ", ".join(f"{split} {count:,}" for split, count in built.splits.items())
    say(f"{out} written: {splits}.")
    show_counts(built.steps)
    if built.outcomes:
        output().print("\nSentences that cite, left out:", style="dim")
        show_counts(built.outcomes)
    note_set_aside(built)


@click.command(epilog="Example: citerec reproduce citebench-3 --sample")
@click.argument("name", metavar="NAME|list")
@click.option("--sample", is_flag=True, help="Measure a small sample instead of the table's data; titles say so.")
@path_option(
    "--data",
    metavar="FOLDER",
    help="The data folder.  [default: the variable CITEREC_DATA, else ./data, else ../shared/data]",
)
@click.option(
    "--writer",
    "writers",
    multiple=True,
    metavar="ROW=NAME|FOLDER",
    help="Fill a row with a writer or checkpoint of yours; several for one row are runs of it. For ranked lists, a "
    "system.",
)
@path_option("--index", metavar="FOLDER", help="For ranked lists: the index.  [default: that of the demo set]")
@click.option("--device", metavar="NAME", help="Device of models: cuda:0.  [default: a GPU if there is one]")
@path_option("--out", metavar="FOLDER", help="Write JSON, CSV and a page here; a stopped run is continued.")
@json_option
def reproduce(name: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Measure a table of a paper, and show published figures beside measured ones.

    NAME is a table, such as citebench-3; `list` shows all of them, what each needs, and what of that is
    here. Rows that cannot be measured here keep their published figures, and the output says what is
    missing and how to get it. Nothing is downloaded.
    """
    from citerec.papers.common.reproduce.run import needs, reproduce

    if name == "list":
        show_list(needs(options["data"]), as_json=as_json)
        return
    with progress_bar() as on_progress:
        found = reproduce(name, out=out, **options, on_progress=on_progress)
    give(found, show, as_json=as_json)
    if out is not None:
        note(f"{out}: reproduction.json, table.csv, and a page to read: {out}/report.html")


def show(console: "Console", found: "Reproduction") -> None:
    """Shows the tables, what is missing, and the settings."""
    from rich.text import Text

    console.print(Text(found.title, "bold"), soft_wrap=True)
    for line in found.remarks:
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    for table in found.tables():
        console.print()
        width, console.width = console.width, max(console.width, 100)
        show_table(console, table, lambda table=table: table)  # type: ignore[misc]
        console.width = width
    console.print()
    if found.hidden and not found.outcome.sampled:
        console.print(f"Nothing was measured for {', '.join(found.hidden)}: see --json or --out for their figures.")
    for line in found.explanations():
        console.print(line, style="dim", markup=False, soft_wrap=True)
    if found.outcome.missing:
        console.print("\n[bold]Not measured[/]")
        for one in found.outcome.missing:
            console.print(f"  {one}", markup=False, soft_wrap=True)


def show_list(tables: list[dict[str, Any]], *, as_json: bool) -> None:
    """Shows all tables, with what each needs and what of that is here."""
    from citerec.papers.common.reproduce.run import needs_in_words

    if as_json:
        print_json(tables)
        return
    console = output()
    for need in tables:
        console.print(f"[bold]{need['name']}[/]  {need['title']}", soft_wrap=True)
        for label, text in needs_in_words(need):
            console.print(f"  {label:<6} {text}", style="dim", markup=False, soft_wrap=True)
    say("Run one: citerec reproduce NAME, or with --sample. It says what is missing, and how to get it.")
