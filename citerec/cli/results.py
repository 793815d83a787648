"""Results in a terminal, of ranked lists and of texts."""

import functools
import importlib
from pathlib import Path

from rich.console import Console
from rich.text import Text

from citerec.cli.console import give, note, output
from citerec.evaluation import tables
from citerec.evaluation.rendering import show, show_lines
from citerec.evaluation.results import RESULTS, Results
from citerec.evaluation.seeds import by_seed, seeds_table
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

    def head(title: str, about: str) -> None:
        console.print()
        console.print(Text(title, "bold").append(f"  {about}" if about else "", "not bold dim"), soft_wrap=True)

    fits, record = True, results.record
    if results.of_texts:
        console.print(Text(tables.title_of(results)))
        if preset := tables.preset_text(results):
            console.print(Text(preset, "dim"), soft_wrap=True)
    else:
        against = f", against {record.index.papers:,} papers ({record.index.path})" if record.index else ""
        about = f"  {counted(len(results.items), 'context')}{against}"
        console.print(Text(record.set.name, "bold").append(about, "not bold"), soft_wrap=True)
        fits = show(console, tables.overall_table(results), lambda: tables.overall_table(results, None))
    for block in tables.blocks(results):
        head(block.title if results.of_texts else f"{block.title} ({block.name})", block.about)
        if results.is_defined(block.columns):
            narrower = functools.partial(tables.block_table, results, block, None)
            fits &= show(console, tables.block_table(results, block), narrower)
        else:
            console.print("not defined for any of these texts", style="dim")
    for metric in results.corpus_metrics:
        head(metric, tables.settings_text(record.settings[metric]))
        if metric in results.discourse_metrics:
            narrower = functools.partial(tables.discourse_table, results, metric, narrow=True)
            show(console, tables.discourse_table(results, metric), narrower)
        else:
            show(console, tables.summary_table(results, metric))
    if by_seed(results.systems):
        console.print()
        show(console, seeds_table(results))
    if results.of_texts:
        console.print()
    show_lines(console, tables.legend(results, "short" if fits else None))
    if not results.of_texts:
        _show_ranked(console, results)


def _show_ranked(console: Console, results: Results) -> None:
    measured = sum(system.cost is not None for system in results.systems.values())
    stated = any(system.reliability for system in results.systems.values())
    for title, is_there, table in (
        ("Robustness", results.families, tables.robustness_table),
        ("Outcomes of the cited papers", True, tables.outcomes_table),
        ("Confidence", stated, tables.reliability_table),
        ("Cost", measured, tables.cost_table),
    ):
        if is_there:
            console.print(f"\n[bold]{title}[/]")
            show(console, table(results), functools.partial(table, results))
    console.print()
    show_lines(console, tables.rules_text(results), soft_wrap=True)
