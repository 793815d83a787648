"""Results in a terminal, of ranked lists and of texts."""

import functools
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from citerec.cli.console import give, note, output
from citerec.errors import CiterecError
from citerec.evaluation.rendering import show, show_lines
from citerec.evaluation.results import RESULTS
from citerec.evaluation.seeds import by_seed, seeds_table
from citerec.evaluation.tables import (
    block_table,
    blocks,
    cost_table,
    discourse_table,
    legend,
    outcomes_table,
    overall_table,
    preset_text,
    reliability_table,
    robustness_table,
    rules_text,
    settings_text,
    summary_table,
    title_of,
)
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.evaluation.results import Results


def check_place(out: Path) -> None:
    """Before hours of work: results may be written there, and the package that draws their page is installed."""
    importlib.import_module("matplotlib")
    RESULTS.check_place(out)


def write_and_show(results: "Results", out: Path | None, form: str) -> None:
    """Writes results to a folder, if one is given, and shows them."""
    failed: CiterecError | None = None
    if out is not None:
        # Write first: the reader of the output may close it (`| head`). If writing fails, the results are still shown.
        try:
            results.write(out)
        except CiterecError as error:
            failed = error
    give(form, None, json=results.to_json, table=lambda: show_results(output(), results))
    for line in results.record.notes:
        note(line, "yellow")
    if failed is not None:
        raise failed
    if out is not None:
        note(f"{out}: tables, meta.json, results.csv, scores.csv, and a page to read: {out}/report.html")


def show_results(console: Console, results: "Results") -> None:
    """Shows results: scores by family or metric, and for ranked lists robustness, outcomes, cost, rules."""
    fits = True
    if results.of_texts:
        console.print(Text(title_of(results)))
        if preset := preset_text(results):
            console.print(Text(preset, "dim"), soft_wrap=True)
    else:
        index = results.record.index
        against = f", against {index.papers:,} papers ({index.path})" if index else ""
        about = f"{counted(len(results.items), 'context')}{against}"
        console.print(Text(results.record.set.name, "bold").append(f"  {about}", "not bold"), soft_wrap=True)
        fits = show(console, overall_table(results), lambda: overall_table(results, None))
    for block in blocks(results):
        console.print()
        heading = Text(block.title, "bold").append("" if results.of_texts else f" ({block.name})", "not bold")
        console.print(heading.append(f"  {block.about}" if block.about else "", "not bold dim"), soft_wrap=True)
        if results.is_defined(block.columns):
            narrower = functools.partial(block_table, results, block, None)
            fits &= show(console, block_table(results, block), narrower)
        else:
            console.print("not defined for any of these texts", style="dim")
    for metric in results.corpus_metrics:
        console.print()
        about = settings_text(results.record.settings[metric])
        console.print(Text(metric, "bold").append(f"  {about}", "not bold dim"), soft_wrap=True)
        if metric in results.discourse_metrics:
            narrower = functools.partial(discourse_table, results, metric, narrow=True)
            show(console, discourse_table(results, metric), narrower)
        else:
            show(console, summary_table(results, metric))
    if by_seed(results.systems):
        console.print()
        show(console, seeds_table(results))
    if results.of_texts:
        console.print()
    show_lines(console, legend(results, "short" if fits else None))
    if not results.of_texts:
        _show_ranked(console, results)


def _show_ranked(console: Console, results: "Results") -> None:
    if results.families:
        console.print("\n[bold]Robustness[/]")
        show(console, robustness_table(results))
    console.print("\n[bold]Outcomes of the cited papers[/]")
    show(console, outcomes_table(results))
    if any(system.reliability for system in results.systems.values()):
        console.print("\n[bold]Confidence[/]")
        show(console, reliability_table(results))
    measured = sum(system.cost is not None for system in results.systems.values())
    if measured:
        console.print("\n[bold]Cost[/]")
        show(console, cost_table(results), functools.partial(cost_table, results))
    if measured > 1:
        console.print(
            "Order matters: the first system pays most of Java's warm-up; memory includes that of earlier systems.",
            style="dim",
        )
    console.print()
    show_lines(console, rules_text(results), soft_wrap=True)
