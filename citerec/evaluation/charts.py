"""Charts of results."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from citerec.diagnostics.label import FEW
from citerec.evaluation.drawing import FAINT, INK, PARTS, SYSTEMS, figure, svg
from citerec.evaluation.figures import ALL, SIGNIFICANT, Figures, Group
from citerec.evaluation.rank import OUTCOMES
from citerec.evaluation.tables import SYSTEM_COLOURS, Block
from citerec.records import EVENTS
from citerec.write.metrics.base import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.02
_ROW = 0.23
_MOST_SIDE_BY_SIDE = 4
_ROOM = 0.04  # shares above this have room for their figure
# Of the names of points: places, as side and height, and sizes, all in points. The chart is about as wide as `_SIDE`.
_LABEL_PLACES = ((1, -3), (-1, -3), (1, 6), (-1, 6), (1, -12), (-1, -12))
_SIDE, _LETTER, _LABEL_HEIGHT, _RADIUS, _GAP = 190, 4.6, 8, 4, 6
_BINS = ((1, 1), (2, 3), (4, 10), (11, 30), (31, 100), (101, 1000), (1001, 10**9))


def means_chart(results: Figures, block: Block) -> str:
    """Means of every system on every group of a block, with their intervals.

    Dotted lines show a system's mean over all contexts, or the targets. Hollow points: few contexts, or upper bounds.
    """
    columns = [column for column in block.columns if results.is_defined([column])]
    if results.of_texts:
        columns = columns[:_MOST_SIDE_BY_SIDE]
    groups = [group for group in block.groups if _n(results, group) or results.of_texts]
    if not columns or not groups:
        return ""
    drawn = figure(0.9 + len(groups) * max(0.32, _ROW * len(results.systems)), len(columns), sharey=True)
    for axes, column in zip(drawn.axes, columns, strict=True):
        for row, group in enumerate(groups):
            for number in range(len(results.systems)):
                _point(axes, results, number, group, column, row)
            _target(axes, results, group, column, row)
        if not results.of_texts:
            for number, system in enumerate(results.systems.values()):
                if (value := system.overall.means[column.name].value) is not None:
                    axes.axvline(value, color=SYSTEMS[number % SYSTEM_COLOURS], linestyle=":", linewidth=1)
        axes.set_title(column.title)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
    first = drawn.axes[0]
    labels = [label if results.of_texts else f"{label}  n={_n(results, (name, label)):,}" for name, label in groups]
    first.set_yticks(range(len(groups)), labels)
    first.set_ylim(len(groups) - 0.5, -0.5)
    names = f"means of {', '.join(results.systems)}" if results.of_texts else f"{', '.join(results.metrics)} by class"
    return svg(drawn, f"{block.title}: {names}")


def _n(results: Figures, group: Group) -> int:
    return max(system.scores(group).n for system in results.systems.values())


def _point(axes: "Axes", results: Figures, number: int, group: Group, column: Column, row: int) -> None:
    systems = list(results.systems.values())
    scores, colour = systems[number].scores(group), SYSTEMS[number % SYSTEM_COLOURS]
    mean = scores.means[column.name]
    if mean.value is None:
        return
    y = row + (number - (len(systems) - 1) / 2) * 0.7 / len(systems)
    if mean.ci is not None:
        axes.plot([*map(column.shown, mean.ci)], (y, y), color=colour, linewidth=1.6, solid_capstyle="round")
    hollow = systems[number].is_oracle if results.of_texts else scores.few
    # Half of a point at 0 would be cut off.
    axes.plot(
        [column.shown(mean.value)], [y], "o", markersize=5, color=colour, clip_on=False,
        markerfacecolor="none" if hollow else colour,
    )  # fmt: skip


def _target(axes: "Axes", results: Figures, group: Group, column: Column, row: int) -> None:
    value = results.targets.scores(group).means[column.name].value if results.targets else None
    if value is not None:
        x = column.shown(value)
        axes.plot([x, x], (row - 0.45, row + 0.45), color=INK, linestyle=":", linewidth=1.2)


def against_chart(results: Figures, first: str, second: str) -> str:
    """Two systems: a point for each class, above the line if the second is better, filled if significant."""
    drawn = figure(3.4, len(results.columns))
    for axes, column in zip(drawn.axes, results.columns, strict=True):
        named: list[tuple[str, float, float]] = []
        for one in results.comparisons:
            wanted = (one.first, one.second, one.metric) == (first, second, column.name)
            if not wanted or (one.family, one.label) == ALL or one.n < FEW:
                continue
            x, y = (results.mean(name, (one.family, one.label), column).value or 0.0 for name in (first, second))
            better = SYSTEMS[list(results.systems).index(second if y > x else first) % SYSTEM_COLOURS]
            sure = one.p_holm < SIGNIFICANT
            axes.plot([x], [y], marker="o", markersize=6, color=better, markerfacecolor=better if sure else "none")
            if sure:
                named.append((one.label, x, y))
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        limits = max(0.0, min(left, bottom) - _MARGIN), max(right, top) + _MARGIN
        axes.plot(limits, limits, color=FAINT, linewidth=0.8)
        for (label, x, y), (side, height) in zip(named, label_places(named, *limits), strict=True):
            axes.annotate(
                label, (x, y), xytext=(_GAP * side, height), textcoords="offset points", fontsize=8, color=FAINT,
                ha="left" if side > 0 else "right",
            )  # fmt: skip
        axes.set(xlim=limits, ylim=limits, title=column.title, xlabel=first, ylabel=second, aspect="equal")
    return svg(drawn, f"{first} against {second}, class by class")


def label_places(named: Sequence[tuple[str, float, float]], low: float, high: float) -> list[tuple[int, int]]:
    """Where the names of points stand: side and height, so that they overlap names, points and the edges least.

    Args:
        named: Names and positions of the points.
        low: Where both axes begin.
        high: Where they end.
    """
    spots = [((x - low) / (high - low) * _SIDE, (y - low) / (high - low) * _SIDE) for _, x, y in named]
    taken = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in spots]
    places = []
    for (label, _, _), (x, y) in zip(named, spots, strict=True):
        width = _LETTER * len(label)
        boxes = {}
        for side, height in _LABEL_PLACES:
            left, bottom = x + _GAP if side > 0 else x - _GAP - width, y + height
            boxes[side, height] = left, bottom, left + width, bottom + _LABEL_HEIGHT
        place = min(boxes, key=lambda place: _crossed(boxes[place], taken))
        places.append(place)
        taken.append(boxes[place])
    return places


def _crossed(box: tuple[float, ...], others: Sequence[tuple[float, ...]]) -> int:
    """How many others a box overlaps, as left, bottom, right and top; one more if it leaves the chart."""
    left, bottom, right, top = box
    crossed = sum(left < other[2] and other[0] < right and bottom < other[3] and other[1] < top for other in others)
    return crossed + (left < 0 or right > _SIDE)


def ranks_chart(results: Figures) -> str:
    """The share of cited papers at each range of ranks, and the cumulative share."""
    from matplotlib.ticker import PercentFormatter

    drawn = figure(2.9, 2)
    bars, curve = drawn.axes
    bins = [(low, min(high, results.k)) for low, high in _BINS if low <= results.k]
    width = 0.8 / len(results.systems)
    for number, (name, system) in enumerate(results.systems.items()):
        whole, colour = sum(system.outcomes.values()) or 1, SYSTEMS[number % SYSTEM_COLOURS]
        shares = [sum(system.ranks[low - 1 : high]) / whole for low, high in bins]
        bars.bar([place + (number + 0.5) * width - 0.4 for place in range(len(bins))], shares, width, color=colour)
        upwards = [found / whole for found in itertools.accumulate(system.ranks)]
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
    curve.set(title="share of cited papers found up to a rank", xlabel="rank", ylim=(0, None))
    return svg(drawn, "Ranks of the cited papers")


def reliability_chart(results: Figures) -> str:
    """The share of right answers by stated probability, event by event; on the line, the probabilities are right."""
    drawn = figure(3.6, len(EVENTS))
    for axes, (event, title) in zip(drawn.axes, EVENTS.items(), strict=True):
        axes.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8)
        for number, system in enumerate(results.systems.values()):
            if (one := system.reliability.get(event)) is None:
                continue
            colour = SYSTEMS[number % SYSTEM_COLOURS]
            line = [of_bin.stated for of_bin in one.bins], [of_bin.right for of_bin in one.bins]
            axes.plot(*line, color=colour, linewidth=1)
            for of_bin in one.bins:
                axes.plot(
                    [of_bin.stated], [of_bin.right], "o", markersize=5, color=colour, clip_on=False,
                    markerfacecolor="none" if of_bin.n < FEW else colour,
                )  # fmt: skip
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set(title=title, xlabel="stated probability", ylabel="share right")
    return svg(drawn, "Stated probability and share of right answers")


def outcomes_chart(results: Figures) -> str:
    """The outcomes of the cited papers, by system."""
    shares = {
        name: {outcome: n / (sum(system.outcomes.values()) or 1) for outcome, n in system.outcomes.items()}
        for name, system in results.systems.items()
    }
    return shares_chart(shares, OUTCOMES, "Outcomes of the cited papers")


def shares_chart(shares: Mapping[str, Mapping[str, float]], labels: Sequence[str], title: str) -> str:
    """Shares that add up to 1, by name and label: a stacked bar for each name, labels in the order given."""
    drawn = figure(0.75 + 0.34 * len(shares), 1)
    axes = drawn.axes[0]
    for row, of_one in enumerate(shares.values()):
        left = 0.0
        for number, label in enumerate(labels):
            share = of_one.get(label, 0.0)
            axes.barh(row, share, left=left, color=PARTS[number % len(PARTS)], height=0.7)
            if share >= _ROOM:
                axes.text(left + share / 2, row, f"{share:.0%}", ha="center", va="center", fontsize=9, color=INK)
            left += share
    axes.set_yticks(range(len(shares)), list(shares))
    axes.set(xlim=(0, 1), ylim=(len(shares) - 0.5, -0.5))
    axes.grid(visible=False)
    axes.xaxis.set_major_formatter("{x:.0%}")
    return svg(drawn, title)
