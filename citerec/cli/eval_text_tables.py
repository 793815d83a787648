"""How an evaluation of written texts looks in a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from citerec.evaluation.results import SIGNIFICANT
from citerec.evaluation.texts.charts import shown, titled
from citerec.evaluation.texts.page import said

if TYPE_CHECKING:
    from citerec.evaluation.results import Comparison
    from citerec.evaluation.texts.means import Mean
    from citerec.evaluation.texts.ratings import Rated
    from citerec.evaluation.texts.results import TextResults
    from citerec.texts.metrics.base import Column

_WIDEST = 1000
_SHORT = 6
_BOUND = " †"


def show_text_results(console: Console, results: "TextResults") -> None:
    """All of it: metric by metric with its settings, discourse, marks."""
    tasks, systems = len(results.predictions.tasks), len(results.systems)
    console.print(f"[bold]{tasks:,} task{'' if tasks == 1 else 's'}[/], {systems} system{'' if systems == 1 else 's'}")
    fits = True
    for metric in results.metrics:
        _heading(console, results, metric)
        numbers = [number for number, column in enumerate(results.columns) if column.metric == metric]
        defined = [
            mean[number].value is not None
            for system in results.systems.values()
            for mean in system.means.values()
            for number in numbers
        ]
        if any(defined):
            fits &= _print_scores(console, results, numbers)
        else:
            console.print("not defined for any of these texts", style="dim")
    for metric in results.corpus_metrics:
        _heading(console, results, metric)
        table = _discourse(results, metric)
        console.print(table if _fits(console, table) else _discourse(results, metric, short=True))
    console.print()
    _show_marks(console, results, intervals=fits)


def show_ratings(console: Console, rated: "Rated") -> None:
    """What people's ratings come to: means by system, and agreement."""
    from citerec.evaluation.texts.sheets import SCALES

    groups = list(dict.fromkeys(group for of_system in rated.means.values() for group in of_system))
    table = _table(*(["data set"] if len(groups) > 1 else []), "system", *(f"{scale} (n)" for scale in SCALES))
    for group in groups:
        for place, (name, means) in enumerate(rated.means.items()):
            cells = [
                _figure(mean.value, 2).append(_interval(mean, 2), "dim").append(f"  {mean.n:>3,}", "dim")
                for mean in means[group]
            ]
            shown_group = [Text(group if place == 0 else "")] if len(groups) > 1 else []
            table.add_row(*shown_group, _name(name, name in rated.upper_bounds), *cells)
    console.print(table)
    console.print(
        f"Means from 1 to 5; \\[low high]: 95 % of {rated.resamples:,} bootstrap samples over tasks. n: texts; one "
        "that several people rated counts once.",
        style="dim",
    )
    if rated.upper_bounds:
        console.print("† saw what the authors wrote: an upper bound, not a system.", style="dim")
    console.print("\n[bold]Raters[/]")
    console.print(f"{rated.rated:,} of {rated.texts:,} texts of the key were rated")
    for rater, (done, whole) in rated.raters.items():
        console.print(f"{rater} rated {done:,} of {whole:,} texts", markup=False)
    if not rated.agreements:
        console.print("No text was rated by two raters: how well they agree is not known.")
    for one in rated.agreements:
        kappa = "not defined: both gave all one rating" if one.kappa is None else f"{round(one.kappa, 2) + 0.0:.2f}"
        console.print(
            f"{' and '.join(one.raters)}, {one.scale}: quadratic-weighted kappa {kappa} "
            f"({one.n:,} text{'' if one.n == 1 else 's'})",
            markup=False,
        )


def _heading(console: Console, results: "TextResults", metric: str) -> None:
    settings = " · ".join(f"{name}: {said(value)}" for name, value in results.settings[metric].items())
    console.print()
    console.print(Text(metric, style="bold").append(f"  {settings}", "not bold dim"), soft_wrap=True)


def _print_scores(console: Console, results: "TextResults", numbers: Sequence[int]) -> bool:
    """A metric's table with intervals, or without them where the terminal is too narrow.

    Returns:
        Whether it fitted.
    """
    table = _scores(results, numbers, intervals=True)
    fits = _fits(console, table)
    console.print(table if fits else _scores(results, numbers, intervals=False))
    return fits


def _fits(console: Console, table: Table) -> bool:
    """Whether a table is narrow enough; where there is no terminal, the console is made as wide as it needs."""
    width = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    if not console.is_terminal:
        console.width = max(console.width, width)
    return width <= console.width


def _scores(results: "TextResults", numbers: Sequence[int], *, intervals: bool) -> Table:
    columns = [results.columns[number] for number in numbers]
    several = len(results.groups.names) > 1
    table = _table(*(["data set"] if several else []), "system", "n", *map(titled, columns))
    describes = results.targets if not any(column.judges for column in columns) else None
    for group in results.groups.names:
        for place, (name, system) in enumerate(results.systems.items()):
            means = [system.means[group][number] for number in numbers]
            cells = []
            for number, column, mean in zip(numbers, columns, means, strict=True):
                cell = _cell(mean, column, intervals=intervals)
                if name in results.best(group, number):
                    cell = Text().append("★ ", "yellow").append_text(cell)
                cells.append(cell.append(*_mark(results.against_first(name, group, column.name), column)))
            n = f"{max(mean.n for mean in means):,}"
            table.add_row(
                *([Text(group if place == 0 else "")] if several else []), _name(name, system.upper_bound), n, *cells
            )
        if describes:
            targets = [describes[group][number] for number in numbers]
            cells = [
                _cell(mean, column, intervals=intervals).append("  ")
                for column, mean in zip(columns, targets, strict=True)
            ]
            n = f"{max(mean.n for mean in targets):,}"
            table.add_row(*([""] if several else []), Text("target", "not bold italic"), n, *cells)
    return table


def _cell(mean: "Mean", column: "Column", *, intervals: bool) -> Text:
    cell = _figure(None if mean.value is None else shown(column, mean.value), column.decimals)
    if intervals and mean.ci is not None:
        low, high = (shown(column, bound) for bound in mean.ci)
        digits = max(0, column.decimals - 1)
        cell.append(f" [{low:,.{digits}f} {high:,.{digits}f}]", "dim")
    return cell


def _figure(value: float | None, digits: int) -> Text:
    return Text("–" if value is None else f"{value:,.{digits}f}")


def _interval(mean: "Mean", digits: int) -> str:
    return "" if mean.ci is None else f" [{mean.ci[0]:.{digits}f} {mean.ci[1]:.{digits}f}]"


def _mark(comparison: "Comparison | None", column: "Column") -> tuple[str, str]:
    """Whether a system differs from the first one; what is neither good nor bad has no colour."""
    if comparison is None or comparison.p_holm >= SIGNIFICANT:
        return "  ", ""
    lower = comparison.difference > 0
    worse = lower == (column.better == "higher")
    return " ▼" if lower else " ▲", "" if not column.judges else "red" if worse else "green"


def _name(name: str, upper_bound: bool) -> Text:
    return Text(name + _BOUND, "not bold italic") if upper_bound else Text(name)


def _discourse(results: "TextResults", metric: str, *, short: bool = False) -> Table:
    """Shares of labels and their divergence; short, with the beginnings of the labels only."""
    labels = results.settings[metric]["labels"]
    several = len(results.groups.names) > 1
    headings = (label[:_SHORT] if short else f"{label} ×100" for label in labels)
    table = _table(*(["data set"] if several else []), "system", *headings, "KL")
    for group in results.groups.names:
        found = {name: system.summaries[metric][group] for name, system in results.systems.items()}
        for place, (name, summary) in enumerate(found.items()):
            divergence = summary["kl_divergence"]
            kl = "–" if divergence is None else f"{divergence:.3f}" if isinstance(divergence, float) else divergence
            table.add_row(
                *([Text(group if place == 0 else "")] if several else []),
                _name(name, results.systems[name].upper_bound),
                *(f"{100 * summary['system'].get(label, 0):.1f}" for label in labels),
                kl,
            )
        targets = next(iter(found.values()))["targets"]
        if targets:
            shares = (f"{100 * targets.get(label, 0):.1f}" for label in labels)
            table.add_row(*([""] if several else []), Text("target", "not bold italic"), *shares, "")
    return table


def _show_marks(console: Console, results: "TextResults", *, intervals: bool) -> None:
    if any(column.share for column in results.columns) or results.corpus_metrics:
        console.print("×100: shares in percent; files have them from 0 to 1.", style="dim")
    if any(results.best(group, n) for group in results.groups.names for n in range(len(results.columns))):
        console.print("★ the best system, where higher is better, or several that are equal.", style="dim")
    if any(column.better == "lower" for column in results.columns):
        console.print("↓: lower is better.", style="dim")
    if results.comparisons:
        console.print(
            f"▲ ▼ significantly higher or lower than {results.first}: p < {SIGNIFICANT}, paired randomisation test, "
            "corrected by Holm's method over all pairs of systems and data sets of each column.",
            style="dim",
            markup=False,
        )
    if any(system.upper_bound for system in results.systems.values()):
        console.print(
            "† saw what the authors wrote: an upper bound, not a system; never the best, and not tested.", style="dim"
        )
    if results.targets:
        console.print("target: what the authors wrote, measured alike.", style="dim")
    if not intervals:
        console.print("The terminal is too narrow for intervals: widen it, or pipe the output on.", style="yellow")
    elif results.columns:
        over = "citing papers" if results.citing_known else "tasks: citing papers are not known"
        console.print(f"\\[low high]: 95 % of {results.resamples:,} bootstrap samples over {over}.", style="dim")


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for name in names:
        left = name in ("system", "data set")
        # As a text: labels of taggers may look like markup.
        table.add_column(Text(name), justify="left" if left else "right", no_wrap=not left, overflow="fold")
    return table
