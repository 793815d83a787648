"""`citerec reproduce`: the tables of the papers, published figures beside measured ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import give, note, output, print_json, say
from citerec.cli.options import json_option, path_option
from citerec.files.progress import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from citerec.reproduce.result import Reproduction
    from citerec.reproduce.run import Need


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
    from citerec.reproduce.run import needs, reproduce

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

    from citerec.evaluation import rendering

    console.print(Text(found.title, "bold"), soft_wrap=True)
    for line in found.remarks:
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    for table in found.tables():
        console.print()
        width, console.width = console.width, max(console.width, 100)
        rendering.show(console, table, lambda table=table: table)  # type: ignore[misc]
        console.width = width
    console.print()
    if found.hidden and not found.sample:
        console.print(f"Nothing was measured for {', '.join(found.hidden)}: see --json or --out for their figures.")
    for line in found.explanations():
        console.print(line, style="dim", markup=False, soft_wrap=True)
    if found.outcome.missing:
        console.print("\n[bold]Not measured[/]")
        for one in found.outcome.missing:
            console.print(f"  {one}", markup=False, soft_wrap=True)


def show_list(found: "list[Need]", *, as_json: bool) -> None:
    """Shows all tables, with what each needs and what of that is here."""
    if as_json:
        print_json([one.to_json() for one in found])
        return
    console = output()
    for one in found:
        console.print(f"[bold]{one.recipe.name}[/]  {one.recipe.title}", soft_wrap=True)
        for label, text in one.lines():
            console.print(f"  {label:<6} {text}", style="dim", markup=False, soft_wrap=True)
    say("Run one: citerec reproduce NAME, or with --sample. It says what is missing, and how to get it.")
