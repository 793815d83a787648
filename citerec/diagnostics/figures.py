"""The figures of a datasheet: the corpus as in the benchmark's Figures 1 to 5, the funnel, how full the cells are."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from citerec.diagnostics.bounds import Bounds, Census, strata
from citerec.diagnostics.datasheet import FUNNEL, state_of
from citerec.diagnostics.drawing import drawing_style
from citerec.diagnostics.families import part_of_speech, parts_of_speech, sampled_families

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.container import BarContainer

# Colours of Okabe and Ito, which colour-blind readers can tell apart; the third is for what is empty.
_COLOURS = ["#0072B2", "#E69F00", "#cccccc"]
_MOST_FIELDS = 8  # lines that can still be told apart
_STYLE: Any = {
    "text.parse_math": False,
    "svg.hashsalt": "citerec",
    "svg.fonttype": "none",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_POSITIONS = "SELECT ((20 * position + length - 1) / length - 0.5) / 20 AS x, COUNT(*) FROM sentences GROUP BY 1"
_LENGTHS = "SELECT length AS x, COUNT(*) FROM sentences GROUP BY 1"
_TAGS = """
SELECT part_of_speech(tag_before) AS tag, COUNT(*) AS before, 0 AS after FROM sentences GROUP BY 1
UNION ALL SELECT part_of_speech(tag_after), 0, COUNT(*) FROM sentences GROUP BY 1
"""


def write_figures(
    folder: Path,
    tables: sqlite3.Connection,
    funnel: Mapping[str, int],
    cells: Sequence[Mapping[str, Any]],
    census: Census,
    bounds: Bounds,
) -> None:
    """Writes the figures as SVG, the same bytes for the same tables.

    Args:
        folder: Where to write them.
        tables: The tables of a build: its `sentences`.
        funnel: How many were left after each step.
        cells: The rows of cells.csv.
        census: How many papers there are of each field, year and citation count.
        bounds: The bounds of the classes.
    """
    import pandas as pd

    tables.create_function("part_of_speech", 1, part_of_speech)
    papers = pd.DataFrame([(*key, number) for key, number in census.items()], columns=["field", "year", "count", "n"])
    by_field = papers.groupby("field").n.sum().sort_values(ascending=False)
    shares = 100 * by_field / by_field.sum()
    # Citations of all papers of a field ÷ papers of it whose count is known: equation 1 of the benchmark.
    known = papers.dropna(subset=["field", "count"])
    means = (known["count"] * known.n).groupby(known.field).sum() / known.groupby("field").n.sum()
    first, last = strata()["year"]["groups"][0][0], strata()["year"]["groups"][-1][1]
    recent = papers[papers.field.isin(by_field.index[:_MOST_FIELDS]) & papers.year.between(first, last + 5)]
    by_year = recent.pivot_table("n", "year", "field", "sum", fill_value=0)
    tags = pd.read_sql(_TAGS, tables).groupby("tag").sum().reindex(parts_of_speech(), fill_value=0)
    steps = pd.Series({FUNNEL[step]: count for step, count in funnel.items()})
    length, middle = bounds.length, strata()["location"].values()
    positions, lengths = (pd.read_sql(query, tables, "x") for query in (_POSITIONS, _LENGTHS))
    places = {name: place for place, name in enumerate(sampled_families())}
    ordered = sorted(cells, key=lambda row: places[row["family"]])
    names = pd.Series([f"{row['family']}: {row['class']}" for row in ordered], dtype=object)
    states = pd.crosstab(names, pd.Series([state_of(row) for row in ordered], dtype=object))
    states = states.reindex(names.unique()).reindex(columns=["full", "partly", "empty"], fill_value=0)
    with drawing_style(_STYLE):
        _draw(folder / "funnel.svg", steps, "barh", "From papers to contexts", form="{:,.0f}", logx=True)
        _draw(folder / "cells.svg", states, "barh", "How full the cells of each class are", stacked=True)
        _draw(folder / "positions.svg", positions, "area", "Place of the marker ÷ words of the sentence", middle)
        if tags.to_numpy().any():
            _draw(folder / "parts-of-speech.svg", tags, "bar", "Parts of speech around the citation")
        medium = (length.low, length.high) if length else ()
        _draw(folder / "lengths.svg", lengths, "area", "Words of the sentence", medium)
        least = 100 * strata()["field"]["least_share"]
        _draw(folder / "fields.svg", shares, "barh", "Papers by field, %", [least], form="{:.2f}")
        _draw(folder / "years.svg", by_year, "line", "Papers by year, the largest fields")
        means = means.sort_values(ascending=False)
        _draw(folder / "citation-counts.svg", means, "barh", "Citations a paper, by field", form="{:,.1f}")


def _draw(
    path: Path,
    data: "pd.DataFrame | pd.Series[float]",
    kind: str,
    title: str,
    marks: Iterable[float] = (),
    *,
    form: str = "",
    **options: Any,
) -> None:
    """Draws a figure of a kind that pandas knows, with dashed lines at the bounds of classes, or values at the bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1 + 0.27 * len(data) if kind == "barh" else 3.2))
    axes = figure.subplots()
    columns = 1 if data.ndim == 1 else data.shape[1]
    colours = _COLOURS[:columns] if columns <= len(_COLOURS) else None
    data.rename_axis(None).plot(kind=kind, ax=axes, title=title, color=colours, legend=False, **options)
    for mark in marks:
        axes.axvline(mark, color="black", linestyle="--", linewidth=1)
    if columns > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    if form:
        axes.bar_label(cast("BarContainer", axes.containers[0]), fmt=form, padding=3)
        axes.xaxis.set_visible(False)
    if kind == "barh":
        axes.invert_yaxis()
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
