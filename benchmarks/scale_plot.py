"""The plot of `simulate_scale.py`: hours of each scenario, and where the hours of the first one go."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
# Stages have colours of their own (Paul Tol's): the same colour would suggest the same thing in both halves.
STAGES = ("#332288", "#88CCEE", "#44AA99", "#DDCC77", "#CC6677", "#AA4499")
STYLE: Any = {
    "svg.hashsalt": "citerec",  # the same bytes for the same figures
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def draw(found: Mapping[str, Any], titles: Mapping[str, str], path: Path) -> None:
    """Writes the plot; the ending of the path says in which format."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12, 5.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _hours(left, found)
        _shares(right, next(iter(found.values()))["machines"])
        first = next(iter(found))
        left.set_title("Hours of the whole pipeline (simulated)", loc="left")
        right.set_title(f"Where they go: {titles[first]}", loc="left")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _hours(axes: "Axes", found: Mapping[str, Any]) -> None:
    counts = [row["machines"] for row in next(iter(found.values()))["machines"]]
    ideal = next(iter(found.values()))["hours_of_one"]
    axes.plot(
        counts, [ideal / count for count in counts], color="#888888", linestyle=":", label="one machine's hours / N"
    )
    for (name, scenario), colour in zip(found.items(), COLOURS, strict=False):
        hours = [row["hours"] for row in scenario["machines"]]
        # Failures and parts are variants of one system: dashed, so that lines below them show.
        style = "--" if name.startswith("cpu-") else "-"
        means = [one["mean"] for one in hours]
        axes.plot(counts, means, color=colour, linestyle=style, marker="o", markersize=3.5, label=name)
        axes.fill_between(
            counts, [one["low"] for one in hours], [one["high"] for one in hours], color=colour, alpha=0.2, linewidth=0
        )
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xticks(counts)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("machines")
    axes.set_ylabel("hours")
    axes.legend()


def _shares(axes: "Axes", rows: list[Mapping[str, Any]]) -> None:
    places = [str(row["machines"]) for row in rows]
    below = [0.0] * len(rows)
    for name, colour in zip(rows[0]["stages"], STAGES, strict=False):
        shares = [row["stages"][name]["hours"] / row["hours"]["mean"] for row in rows]
        axes.bar(places, shares, bottom=below, color=colour, width=0.85, label=name)
        below = [before + share for before, share in zip(below, shares, strict=True)]
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 1)
    axes.set_xlabel("machines")
    axes.set_ylabel("share of the hours")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), reverse=True)
