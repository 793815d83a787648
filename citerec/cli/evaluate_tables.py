"""How results look in a terminal."""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from citerec.cli.console import contexts
from citerec.evaluation.results import OVERALL, SIGNIFICANT

if TYPE_CHECKING:
    from citerec.evaluation.results import Comparison, Results, Scores

_WIDEST = 1000
_INTERVAL_WIDTH = len(" [.33 .41]")


def show_results(console: Console, results: "Results") -> None:
    """All of it: every family with its classes, robustness, cost, what was lost, rules."""
    of_set, index = results.set, results.index
    about = f"{contexts(of_set['counted'])}, asked of {index['papers']:,} papers ({escape(index['path'])})"
    apart = "laid side by side, on different contexts"
    console.print(f"[bold]{escape(of_set['name'])}[/]  {about if of_set['alike'] else apart}", soft_wrap=True)
    fits = _print_fitting(console, functools.partial(_overall, results))
    for family in results.families:
        console.print()
        info = results.families[family]
        held = f"  held constant: {'; '.join(info.conditions)}" if info.conditions else ""
        console.print(Text(info.title, style="bold").append(f" ({family})", "default").append(held, "dim"))
        fits &= _print_fitting(console, functools.partial(_family, results, family))
    _show_marks(console, results, intervals=fits)
    if results.families:
        console.print("\n[bold]Robustness[/]")
        console.print(_robustness(results))
    console.print("\n[bold]Where the cited papers were[/]")
    console.print(_fates(results))
    if any(system.cost for system in results.systems.values()):
        console.print("\n[bold]Cost[/]")
        _print_fitting(console, lambda _: _cost(results))
        if sum(system.cost is not None for system in results.systems.values()) > 1:
            console.print(
                "Order matters: the first one pays most of Java's warm-up, later ones hold the memory of those before.",
                style="dim",
            )
    console.print()
    _show_rules(console, results)


def _print_fitting(console: Console, table_with: Callable[[bool], Table]) -> bool:
    """A table with intervals, or without them where the terminal is too narrow; nothing is narrow in a pipe.

    Returns:
        Whether it fitted.
    """
    table = table_with(True)
    width = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    if not console.is_terminal:
        console.width = max(console.width, width)
    console.print(table if width <= console.width else table_with(False))
    return width <= console.width


def _overall(results: "Results", intervals: bool) -> Table:
    table = _table("system", "n", *results.metrics)
    for name, system in results.systems.items():
        table.add_row(
            name, f"{system.overall.n:,}", *_cells(results, name, OVERALL, OVERALL, system.overall, intervals)
        )
    return table


def _family(results: "Results", family: str, intervals: bool) -> Table:
    several = len(results.systems) > 1
    table = _table("class", *(["system"] if several else []), "n", *results.metrics)
    for label in results.families[family].classes:
        for number, (name, system) in enumerate(results.systems.items()):
            scores = system.families[family][label]
            n = f"{scores.n:,}{'*' if scores.few else ' '}"
            cells = _cells(results, name, family, label, scores, intervals)
            # One n for all, unless results of other contexts are laid beside.
            shown = n if number == 0 or not results.set["alike"] else ""
            table.add_row(escape(label) if number == 0 else "", *([name] if several else []), shown, *cells)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column(first, style="bold", min_width=14, overflow="fold")
    for name in others:
        table.add_column(name, justify="left" if name == "system" else "right", no_wrap=name != "system")
    return table


def _cells(results: "Results", system: str, family: str, label: str, scores: "Scores", intervals: bool) -> list[Text]:
    """Each metric with its interval, and a mark where the system differs from the first one."""
    cells = []
    for metric in results.metrics:
        value, interval = scores.values[metric], scores.ci[metric]
        text = Text("–" if value is None else f"{value:.3f}")
        if intervals:
            shown = f" [{_short(interval[0])} {_short(interval[1])}]" if interval else " " * _INTERVAL_WIDTH
            text.append(shown, "dim")
        if len(results.systems) > 1:
            text.append(*_mark(_against_first(results, system, family, label, metric)))
        cells.append(text)
    return cells


def _against_first(results: "Results", system: str, family: str, label: str, metric: str) -> "Comparison | None":
    first = next(iter(results.systems))
    wanted = (first, system, family, label, metric)
    return next((c for c in results.comparisons if (c.first, c.second, c.family, c.label, c.metric) == wanted), None)


def _short(bound: float) -> str:
    """In three places as far as that goes: ".05", "1.0", "3.4"."""
    return f"{bound:.1f}" if round(bound, 2) >= 1 else f"{bound:.2f}".removeprefix("0")


def _mark(comparison: "Comparison | None") -> tuple[str, str]:
    if comparison is None or comparison.p_holm >= SIGNIFICANT:
        return "  ", ""
    return (" ▼", "red") if comparison.difference > 0 else (" ▲", "green")


def _show_marks(console: Console, results: "Results", *, intervals: bool) -> None:
    rows = list(results.rows())
    if any(scores.few for _, family, _, scores in rows if family != OVERALL):
        console.print("* fewer than 30 contexts: says little.", style="yellow")
    if results.comparisons:
        console.print(
            f"▲ ▼ better or worse than {escape(next(iter(results.systems)))}, significantly: p < {SIGNIFICANT}, "
            "paired randomisation test, corrected by Holm's method over the classes of each metric.",
            style="dim",
        )
    if not intervals:
        console.print("The terminal is too narrow for intervals: widen it, or pipe the output on.", style="yellow")
    if not intervals or not results.set["alike"]:
        return
    over = "citing papers" if results.set["citing_papers_known"] else "contexts: citing papers are not known"
    console.print(f"\\[low high]: 95 % of {results.resamples:,} bootstrap samples over {over}.", style="dim")


def _robustness(results: "Results") -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for name in ("system", "metric", "worst class", "best class"):
        table.add_column(name, overflow="fold")
    for name in ("spread", "drop"):
        table.add_column(name, justify="right")
    for name, system in results.systems.items():
        for line in system.robustness:
            table.add_row(
                name,
                line.metric,
                escape(f"{line.worst_family}: {line.worst_class} {line.worst:.3f}"),
                escape(f"{line.best_family}: {line.best_class} {line.best:.3f}"),
                f"{line.spread:.3f}",
                f"{line.drop:.3f}",
            )
    return table


def _fates(results: "Results") -> Table:
    fates = [fate for fate in _FATES if any(system.fates.get(fate) for system in results.systems.values())]
    table = _table("system", *(_FATES[fate].format(k=results.k, first=min(10, results.k)) for fate in fates))
    for name, system in results.systems.items():
        whole = sum(system.fates.values()) or 1
        table.add_row(name, *(f"{system.fates[fate]:,} ({system.fates[fate] / whole:.0%})" for fate in fates))
    return table


_FATES = {
    "found": "first {first}",
    "ranked badly": "11 to {k}",
    "not retrieved": "not retrieved",
    "newer than the citing paper": "newer",
    "not in the index": "not in index",
}


def _cost(results: "Results") -> Table:
    table = _table("system", "wall", "CPU", "queries/s", "latency", "95 %", "peak memory", "index", "GPU")
    for name, system in results.systems.items():
        cost = system.cost
        if cost is None:
            table.add_row(name, *["–"] * 8)
            continue
        table.add_row(
            name,
            f"{cost.wall_seconds:.2f} s",
            f"{cost.cpu_seconds:.2f} s",
            f"{cost.queries_per_second:,.0f}",
            "–" if cost.latency_median_ms is None else f"{cost.latency_median_ms:.1f} ms",
            "–" if cost.latency_p95_ms is None else f"{cost.latency_p95_ms:.1f} ms",
            _size(cost.peak_memory_bytes),
            _size(cost.index_bytes),
            "none"
            if cost.gpu_memory_bytes is None
            else f"{_size(cost.gpu_memory_bytes)}, {cost.gpu_use_percent:.0f} %",
        )
    return table


def _show_rules(console: Console, results: "Results") -> None:
    rules, of_set = results.rules, results.set
    said = [
        "citing paper left out" if rules["exclude_citing"] else "citing paper NOT left out",
        _about_years(rules["as_of_year"], of_set),
        f"first {results.k} hits count",
    ]
    overlap = of_set.get("training_overlap", {"contexts": 0})  # older results have none
    if overlap["contexts"]:
        left_out = "left out" if overlap["left_out"] else "NOT left out"
        said.append(f"{contexts(overlap['contexts'])} from training {left_out}")
    console.print(f"rules: {'; '.join(said)}", style="dim", soft_wrap=True)
    if of_set["outside"]:
        counted = "counted as zero" if rules["missing"] == "zero" else "left out"
        console.print(f"No cited paper is in the index for {contexts(of_set['outside'])}: {counted} (--missing).")
    for name, system in results.systems.items():
        if system.without_hit:
            console.print(f"{escape(name)} found nothing for {contexts(system.without_hit)}, which counts as zero.")
        citing, newer = system.removed["citing_paper"], system.removed["newer"]
        if citing or newer:
            console.print(
                f"{escape(name)} broke the rules: {citing:,} lines with the citing paper and {newer:,} with newer "
                "papers were removed before scoring.",
                style="yellow",
            )


def _about_years(as_of_year: bool, of_set: Mapping[str, Any]) -> str:
    if not as_of_year:
        return "newer papers NOT left out"
    unknown = of_set["without_citing_year"]
    if unknown == of_set["contexts"]:
        return "newer papers left out (but no citing year is known)"
    return "newer papers left out" + (f" (citing year unknown for {contexts(unknown)})" if unknown else "")


def _size(number: int) -> str:
    return f"{number / 1e6:,.0f} MB" if number >= 1e6 else f"{number / 1e3:,.0f} kB"
