"""The figures of a datasheet: the corpus as in the benchmark's Figures 1 to 5, the funnel, how full the cells are."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.diagnostics.datasheet import FUNNEL
from citerec.diagnostics.drawing import drawing_style
from citerec.diagnostics.families import sampled_families
from citerec.diagnostics.families.built_in import part_of_speech, parts_of_speech
from citerec.diagnostics.strata import strata

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from citerec.diagnostics.build.record import Record

# Colours of Okabe and Ito, which colour-blind readers can tell apart.
_MAIN, _SECOND, _EMPTY = "#0072B2", "#E69F00", "#D55E00"
_STYLE: Any = {
    "text.parse_math": False,
    "svg.hashsalt": "citerec",
    "svg.fonttype": "none",
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
_WIDTH = 8.0
_MOST_FIELDS = 8  # lines that can still be told apart


def write_figures(folder: Path, record: "Record") -> None:
    """Writes the figures as SVG, the same bytes for the same record."""
    drawings = {
        "funnel": _funnel,
        "cells": _cells,
        "positions": _positions,
        "parts-of-speech": _parts_of_speech,
        "lengths": _lengths,
        "fields": _fields,
        "years": _years,
        "citation-counts": _citation_counts,
    }
    with drawing_style(_STYLE):
        for name, draw in drawings.items():
            if (figure := draw(record)) is not None:
                figure.savefig(folder / f"{name}.svg", format="svg", bbox_inches="tight", metadata={"Date": None})


def _figure(height: float, title: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.subplots()
    axes.set_title(title, loc="left")
    return figure, axes


def _bars(axes: "Axes", values: Mapping[str, float], form: str, *, logarithmic: bool = False) -> None:
    """Horizontal bars, the first on top, each with its value."""
    least = 0.5 if logarithmic else 0  # on a logarithmic axis, a bar of nothing still has its line
    axes.barh(list(values), [max(value, least) for value in values.values()], color=_MAIN)
    most = max(values.values(), default=1) or 1
    if logarithmic:
        axes.set_xscale("log")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    for row, value in enumerate(values.values()):
        end = max(value, least) * 1.1 if logarithmic else value + most * 0.01
        axes.text(end, row, form.format(value), va="center")
    axes.set_xlim(least, most * (8 if logarithmic else 1.15))
    axes.margins(y=0.01)


def _funnel(record: "Record") -> "Figure":
    from matplotlib.ticker import StrMethodFormatter

    steps = {FUNNEL[step]: count for step, count in record.steps().items()}
    figure, axes = _figure(0.6 + 0.36 * len(steps), "From papers to contexts")
    _bars(axes, steps, "{:,}", logarithmic=True)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("how many (logarithmic)")
    return figure


def _cells(record: "Record") -> "Figure | None":
    """For each class, the share of its cells that is full, partly full, and empty."""
    shares: dict[str, Counter[str]] = {}
    for filling in record.filling:
        state = "full" if filling.chosen >= filling.wanted else "partly" if filling.chosen else "empty"
        shares.setdefault(f"{filling.slot.family}: {filling.slot.label}", Counter())[state] += 1
    if not shares:
        return None
    figure, axes = _figure(1.1 + 0.27 * len(shares), "How full the cells of each class are")
    families = list(dict.fromkeys(filling.slot.family for filling in record.filling))
    families.sort(key=sampled_families().index)
    names = sorted(shares, key=lambda name: families.index(name.partition(":")[0]))
    left = [0.0] * len(names)
    for state, colour in (("full", _MAIN), ("partly", _SECOND), ("empty", "#cccccc")):
        counts = [shares[name][state] for name in names]
        if any(counts):
            axes.barh(names, counts, left=left, color=colour, label=state)
        left = [before + count for before, count in zip(left, counts, strict=True)]
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.margins(y=0.01)
    axes.set_xlabel("cells: field × years × citation count")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / (0.27 * len(shares) + 0.5)), ncols=3)
    return figure


def _positions(record: "Record") -> "Figure | None":
    if not record.positions:
        return None
    from citerec.diagnostics.build.record import POSITIONS

    figure, axes = _figure(3, "Place of the citation in the sentence")
    places = range(1, POSITIONS + 1)
    axes.bar([place / POSITIONS for place in places], [record.positions[place] for place in places],
             width=-0.9 / POSITIONS, align="edge", color=_MAIN)  # fmt: skip
    for bound in (strata().location.first_until, strata().location.middle_until):
        axes.axvline(bound, color=_EMPTY, linestyle="--", linewidth=1)
    axes.set_xlabel("word of the marker ÷ words of the sentence (dashed: where first, middle, last begin and end)")
    axes.set_ylabel("usable sentences")
    axes.set_xlim(0, 1)
    return figure


def _parts_of_speech(record: "Record") -> "Figure | None":
    if not any(record.tags.values()):
        return None
    groups: Counter[tuple[str, str | None]] = Counter()
    for side, tags in record.tags.items():
        for tag, count in tags.items():
            groups[side, part_of_speech(tag)] += count
    figure, axes = _figure(3.4, "Part of speech of the words around the citation")
    for at, (side, colour) in enumerate((("before", _MAIN), ("after", _SECOND))):
        places = [place + (at - 0.5) * 0.4 for place in range(len(parts_of_speech()))]
        axes.bar(places, [groups[side, name] for name in parts_of_speech()], width=0.38, color=colour, label=side)
    axes.set_xticks(range(len(parts_of_speech())), parts_of_speech())
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("usable sentences")
    axes.legend(title="the word")
    return figure


def _lengths(record: "Record") -> "Figure | None":
    if not record.lengths:
        return None
    figure, axes = _figure(3, "Length of the sentences")
    axes.bar(list(record.lengths), list(record.lengths.values()), width=0.9, color=_MAIN)
    if record.bounds and (bounds := record.bounds.length):
        for bound in (bounds.low, bounds.high):
            axes.axvline(bound, color=_EMPTY, linestyle="--", linewidth=1)
        axes.set_xlim(0, max(bounds.longest, 1) * 1.1)
    axes.set_xlabel("words (dashed: where medium begins and ends)")
    axes.set_ylabel("usable sentences")
    return figure


def _by_field(record: "Record") -> Counter[str]:
    papers: Counter[str] = Counter()
    for row in record.census:
        if row.field:
            papers[row.field] += row.papers
    return papers


def _fields(record: "Record") -> "Figure":
    papers = dict(_by_field(record).most_common())
    total = sum(papers.values())
    figure, axes = _figure(0.8 + 0.28 * len(papers), "Papers of the corpus by field")
    _bars(axes, {name: 100 * count / total for name, count in papers.items()}, "{:.2f} %")
    axes.axvline(100 * strata().fields.least_share, color=_EMPTY, linestyle="--", linewidth=1)
    axes.set_xlabel("% of the papers whose field is known (dashed: less is low-resource)")
    return figure


def _years(record: "Record") -> "Figure":
    from matplotlib.ticker import MaxNLocator

    fields = [name for name, _ in _by_field(record).most_common(_MOST_FIELDS)]
    first, last = strata().year.groups[0][0], strata().year.groups[-1][1]
    counts: Counter[tuple[str, int]] = Counter()
    for row in record.census:
        if row.field in fields and row.year and first <= row.year <= last + 5:
            counts[str(row.field), row.year] += row.papers
    figure, axes = _figure(3.6, "Papers of the corpus by year, the largest fields")
    years = range(first, max((year for _, year in counts), default=last) + 1)
    for name in fields:
        axes.plot(years, [counts[name, year] for year in years], label=name, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("papers")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _citation_counts(record: "Record") -> "Figure":
    """Citations of all papers of a field ÷ papers of it whose count is known: equation 1 of the benchmark."""
    citations: Counter[str] = Counter()
    papers: Counter[str] = Counter()
    for row in record.census:
        if row.field and row.citation_count is not None:
            citations[row.field] += row.citation_count * row.papers
            papers[row.field] += row.papers
    means = {name: citations[name] / papers[name] for name in papers}
    figure, axes = _figure(0.8 + 0.28 * len(means), "Mean citation count by field")
    _bars(axes, dict(sorted(means.items(), key=lambda item: -item[1])), "{:,.1f}")
    axes.set_xlabel("citations a paper")
    return figure
