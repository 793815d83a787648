"""Charts of results."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from citerec.diagnostics.label import FEW
from citerec.evaluation.rank import OUTCOMES
from citerec.evaluation.report.drawing import FAINT, INK, PARTS, SYSTEM_COLOURS, SYSTEMS, figure, svg
from citerec.evaluation.results import SIGNIFICANT, Comparison, Results, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.02
_ROW = 0.23
# Side and height, in points: names of points that lie close together should not cover each other.
_LABEL_PLACES = ((1, -3), (-1, -3), (1, 6), (-1, 6), (1, -12), (-1, -12))
_BINS = ((1, 1), (2, 3), (4, 10), (11, 30), (31, 100), (101, 1000), (1001, 10**9))


def classes_chart(results: Results, family: str) -> str:
    """Every class of a family, by every metric: means with their intervals, overall means as dotted lines."""
    labels = [label for label in results.families[family].classes if _n(results, family, label)]
    systems = list(results.systems)
    height = 0.9 + len(labels) * max(0.32, _ROW * len(systems))
    drawn = figure(height, len(results.metrics), sharey=True)
    for axes, metric in zip(drawn.axes, results.metrics, strict=True):
        for number, name in enumerate(systems):
            system, colour = results.systems[name], SYSTEMS[number % SYSTEM_COLOURS]
            if (overall := system.overall.values[metric]) is not None:
                axes.axvline(overall, color=colour, linestyle=":", linewidth=1)
            for row, label in enumerate(labels):
                offset = (number - (len(systems) - 1) / 2) * 0.7 / len(systems)
                _point(axes, system.families[family][label], metric, row + offset, colour)
        axes.set_title(metric)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
    first = drawn.axes[0]
    first.set_yticks(range(len(labels)), [_named(results, family, label) for label in labels])
    first.set_ylim(len(labels) - 0.5, -0.5)
    return svg(drawn, f"{results.families[family].title}: {', '.join(results.metrics)} by class")


def _point(axes: "Axes", scores: Scores, metric: str, y: float, colour: str) -> None:
    value, interval = scores.values[metric], scores.ci[metric]
    if value is None:
        return
    if interval is not None:
        axes.plot(interval, (y, y), color=colour, linewidth=1.6, solid_capstyle="round")
    axes.plot([value], [y], marker="o", markersize=5, color=colour, markerfacecolor="none" if scores.few else colour)


def against_chart(results: Results, first: str, second: str) -> str:
    """Two systems: a point for each class, above the line where the second is better, filled where significantly."""
    drawn = figure(3.4, len(results.metrics))
    for axes, metric in zip(drawn.axes, results.metrics, strict=True):
        named = 0
        for comparison in _pair(results, first, second, metric):
            x = _scores(results, first, comparison).values[metric] or 0.0
            y = _scores(results, second, comparison).values[metric] or 0.0
            better = SYSTEMS[list(results.systems).index(second if y > x else first) % SYSTEM_COLOURS]
            sure = comparison.p_holm < SIGNIFICANT
            axes.plot([x], [y], marker="o", markersize=6, color=better, markerfacecolor=better if sure else "none")
            if sure:
                side, height = _LABEL_PLACES[named % len(_LABEL_PLACES)]
                named += 1
                axes.annotate(
                    comparison.label,
                    (x, y),
                    xytext=(6 * side, height),
                    textcoords="offset points",
                    ha="left" if side > 0 else "right",
                    fontsize=8,
                    color=FAINT,
                )
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        limits = max(0.0, min(left, bottom) - _MARGIN), max(right, top) + _MARGIN
        axes.plot(limits, limits, color=FAINT, linewidth=0.8)
        axes.set(xlim=limits, ylim=limits, title=metric, xlabel=first, ylabel=second, aspect="equal")
    return svg(drawn, f"{first} against {second}, class by class")


def ranks_chart(results: Results) -> str:
    """At which ranks the cited papers come: shares by rank, and how the shares add up."""
    from matplotlib.ticker import PercentFormatter

    drawn = figure(2.9, 2)
    bars, curve = drawn.axes
    bins = [(low, min(high, results.k)) for low, high in _BINS if low <= results.k]
    width = 0.8 / len(results.systems)
    for number, (name, system) in enumerate(results.systems.items()):
        whole, colour = sum(system.fates.values()) or 1, SYSTEMS[number % SYSTEM_COLOURS]
        shares = [sum(system.ranks[low - 1 : high]) / whole for low, high in bins]
        bars.bar([place + (number + 0.5) * width - 0.4 for place in range(len(bins))], shares, width, color=colour)
        running, upwards = 0, []
        for count in system.ranks:
            running += count
            upwards.append(running / whole)
        curve.plot(range(1, len(upwards) + 1), upwards, color=colour, label=name, linewidth=1.8)
    bars.set_xticks(range(len(bins)), [str(low) if low == high else f"{low}–{high}" for low, high in bins])
    bars.set(title="share of cited papers at these ranks", xlabel="rank")
    for axes in drawn.axes:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    bars.grid(visible=False, axis="x")
    curve.set_xscale("log")
    ticks = [rank for rank in (1, 3, 10, 30, 100, 300, 1000) if rank <= results.k]
    curve.set_xticks(ticks, [str(tick) for tick in ticks])
    curve.minorticks_off()
    curve.set(title="share of cited papers found until rank", xlabel="rank", ylim=(0, None))
    return svg(drawn, "Ranks of the cited papers")


def fates_chart(results: Results) -> str:
    """What became of the cited papers, system by system."""
    drawn = figure(0.75 + 0.34 * len(results.systems), 1)
    axes = drawn.axes[0]
    for row, system in enumerate(results.systems.values()):
        whole, left = sum(system.fates.values()) or 1, 0.0
        for fate, colour in zip(OUTCOMES, PARTS, strict=False):
            share = system.fates.get(fate, 0) / whole
            axes.barh(row, share, left=left, color=colour, height=0.7)
            if share >= 0.04:
                axes.text(left + share / 2, row, f"{share:.0%}", ha="center", va="center", fontsize=9, color=INK)
            left += share
    axes.set_yticks(range(len(results.systems)), list(results.systems))
    axes.set(xlim=(0, 1), ylim=(len(results.systems) - 0.5, -0.5))
    axes.grid(visible=False)
    axes.xaxis.set_major_formatter("{x:.0%}")
    return svg(drawn, "What became of the cited papers")


def _n(results: Results, family: str, label: str) -> int:
    return max(system.families[family][label].n for system in results.systems.values())


def _named(results: Results, family: str, label: str) -> str:
    return f"{label}  n={_n(results, family, label):,}"


def _pair(results: Results, first: str, second: str, metric: str) -> Sequence[Comparison]:
    return [
        comparison
        for comparison in results.comparisons
        if (comparison.first, comparison.second, comparison.metric) == (first, second, metric)
        and comparison.family in results.families
        and comparison.n >= FEW
    ]


def _scores(results: Results, name: str, comparison: Comparison) -> Scores:
    return results.systems[name].families[comparison.family][comparison.label]
