"""Results in a terminal, of ranked lists and of texts."""

import importlib
from pathlib import Path

from rich.console import Console
from rich.text import Text

from citerec.cli.console import give, note, output
from citerec.evaluation import tables
from citerec.evaluation.results import RESULTS, Results
from citerec.evaluation.tables import seeds_table, show
from citerec.files.text import counted


def check_place(out: Path) -> None:
    """Before hours of work: results may be written there, and the package that draws their page is installed."""
    importlib.import_module("matplotlib")
    RESULTS.check_place(out)


def write_and_show(results: Results, out: Path | None, form: str) -> None:
    """Writes results to a folder, if one is given, and shows them."""
    try:  # write first: the reader of the output may close it (`| head`)
        if out is not None:
            results.write(out)
    finally:  # if writing fails, the results are still shown
        give(form, None, json=results.to_json, table=lambda: show_results(output(), results))
        for line in results.record.notes:
            note(line, "yellow")
    if out is not None:
        note(f"{out}: tables, meta.json, results.csv, scores.csv, and a page to read: {out}/report.html")


def show_results(console: Console, results: Results) -> None:
    """Shows results: scores by family or metric, and for ranked lists robustness, outcomes, cost, rules."""
    record = results.record
    if record.index:
        about = (
            f"  {counted(len(results.items), 'context')}, against {record.index.papers:,} papers ({record.index.path})"
        )
        console.print(Text(record.set.name, "bold").append(about, "not bold"), soft_wrap=True)
        show(console, tables.overall_table(results), whole=True)
    else:
        console.print(
            Text("\n".join(filter(None, [tables.title_of(results), tables.preset_text(results)]))), soft_wrap=True
        )
    for block in tables.blocks(results):
        _head(console, block.title + f" ({block.name})" * (block.name != block.title), block.about)
        if results.is_defined(block.columns):
            show(console, tables.block_table(results, block), whole=True)
        else:
            console.print("not defined for any of these texts", style="dim")
    for metric in results.corpus_metrics:
        _head(console, metric, tables.settings_text(record.settings[metric]))
        show(console, tables.corpus_table(results, metric), whole=True)
    for title, table in (
        ("", seeds_table),
        ("Robustness", tables.robustness_table),
        ("Outcomes of the cited papers", tables.outcomes_table),
        ("Confidence", tables.reliability_table),
        ("Cost", tables.cost_table),
    ):
        if (made := table(results)).rows and (title == "" or not results.of_texts):
            _head(console, title, "")
            show(console, made, whole=True)
    console.print()
    for line in (*tables.legend(results), *(() if results.of_texts else tables.rules_text(results))):
        console.print(line, style="dim", markup=False, soft_wrap=True)


def _head(console: Console, title: str, about: str) -> None:
    line = Text(f"\n{title}", "bold").append(f"  {about}" if about else "", "not bold dim")
    console.print(line, soft_wrap=True)
