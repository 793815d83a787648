"""Charts of an evaluation of written texts."""

from collections.abc import Mapping, Sequence

from citerec.evaluation.report.drawing import FAINT, INK, PARTS, SYSTEM_COLOURS, SYSTEMS, figure, svg
from citerec.evaluation.texts.results import TextResults
from citerec.texts.metrics.base import Column

_ROW = 0.23
_MOST_SIDE_BY_SIDE = 4
_WRITTEN = 0.06  # shares above this have room for their figure


def metric_chart(results: TextResults, metric: str) -> str:
    """Means of every system with their intervals, data set by data set; a dotted line is what authors wrote."""
    columns = [(number, column) for number, column in enumerate(results.columns) if column.metric == metric]
    columns = [one for one in columns if _defined(results, one[0])][:_MOST_SIDE_BY_SIDE]
    if not columns:
        return ""
    groups, systems = results.groups.names, list(results.systems)
    drawn = figure(0.8 + len(groups) * max(0.32, _ROW * len(systems)), len(columns), sharey=True)
    for axes, (number, column) in zip(drawn.axes, columns, strict=True):
        for row, group in enumerate(groups):
            for place, name in enumerate(systems):
                mean = results.systems[name].means[group][number]
                y = row + (place - (len(systems) - 1) / 2) * 0.7 / len(systems)
                colour = SYSTEMS[place % SYSTEM_COLOURS]
                if mean.value is None:
                    continue
                if mean.ci is not None:
                    bounds = [shown(column, bound) for bound in mean.ci]
                    axes.plot(bounds, (y, y), color=colour, linewidth=1.6, solid_capstyle="round")
                filled = "none" if results.systems[name].upper_bound else colour
                point = shown(column, mean.value)
                # Half of a point at 0 would be cut off.
                axes.plot([point], [y], "o", markersize=5, color=colour, markerfacecolor=filled, clip_on=False)
            target = results.targets[group][number].value if results.targets else None
            if target is not None:
                where = shown(column, target)
                axes.plot([where, where], (row - 0.45, row + 0.45), color=INK, linestyle=":", linewidth=1.2)
        axes.set_title(titled(column))
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
    first = drawn.axes[0]
    first.set_yticks(range(len(groups)), list(groups))
    first.set_ylim(len(groups) - 0.5, -0.5)
    return svg(drawn, f"{metric}: means of {', '.join(systems)}")


def shares_chart(shares: Mapping[str, Mapping[str, float]], labels: Sequence[str], title: str) -> str:
    """Shares that add up to 1, as one bar for each of those that they are of.

    Args:
        shares: By whom, then by label.
        labels: In the order in which they are drawn.
        title: What the chart shows.
    """
    drawn = figure(0.75 + 0.34 * len(shares), 1)
    axes = drawn.axes[0]
    for row, of_one in enumerate(shares.values()):
        left = 0.0
        for number, label in enumerate(labels):
            share = of_one.get(label, 0.0)
            axes.barh(row, share, left=left, color=PARTS[number % len(PARTS)], height=0.7)
            if share >= _WRITTEN:
                axes.text(left + share / 2, row, f"{share:.0%}", ha="center", va="center", fontsize=9, color=INK)
            left += share
    axes.set_yticks(range(len(shares)), list(shares))
    axes.set(xlim=(0, 1), ylim=(len(shares) - 0.5, -0.5))
    axes.grid(visible=False)
    axes.tick_params(color=FAINT)
    axes.xaxis.set_major_formatter("{x:.0%}")
    return svg(drawn, title)


def shown(column: Column, value: float) -> float:
    """A value as tables and charts show it: shares ×100."""
    return 100 * value if column.share else value


def titled(column: Column) -> str:
    """The name of a column, what it is shown in, and ↓ where lower is better."""
    return column.name + " ×100" * column.share + " ↓" * (column.better == "lower")


def _defined(results: TextResults, column: int) -> bool:
    return any(mean[column].value is not None for system in results.systems.values() for mean in system.means.values())
