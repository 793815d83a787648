"""The page of results, of ranked lists or of texts: tables, charts, and examples to read."""

import base64
import hashlib
import html
import io
import itertools
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.diagnostics.sets import drawing_style
from citerec.evaluation import examples, seeds, tables
from citerec.evaluation.rendering import Table, to_html
from citerec.evaluation.statistics import Group
from citerec.evaluation.tables import SYSTEM_COLOURS, Block
from citerec.files.text import counted
from citerec.version import __version__
from citerec.write.metrics.base import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from citerec.evaluation.results import Results

SYSTEMS = ("#4a7fe0", "#d9722c", "#2b9c69", "#b05fca", "#d94f70", "#8f8a1c", "#1a96a8", "#a3714a")
"""Colours of systems, which are legible in both modes."""

_INK = "#010203"  # becomes the colour of the page's text
_STYLE: Any = {
    "text.parse_math": False,  # a $ in the name of a class is a $
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "citerec",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.2,
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(("grid.color", "text.color", "axes.labelcolor", "axes.edgecolor"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
}
_WIDTH = 9.6
_MOST_SIDE_BY_SIDE = 4
_BINS = ((1, 1), (2, 3), (4, 10), (11, 30), (31, 100), (101, 1000), (1001, 10**9))


_styled = drawing_style(_STYLE)


def _axes(height: float, columns: int, **options: Any) -> "Sequence[Axes]":
    """Columns of axes, together as wide as the page and of a height in inches; options go to `subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes: Sequence[Axes] = figure.subplots(1, columns, squeeze=False, **options)[0]
    return axes


def _svg(axes: "Sequence[Axes]", title: str) -> str:
    """The `<svg>` element for a page, with a title for screen readers."""
    file = io.StringIO()
    # The warnings are about letters that matplotlib's font lacks; the browser's font has them.
    with warnings.catch_warnings(action="ignore"):
        figure = axes[0].get_figure(root=True)
        assert figure is not None
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    drawing = file.getvalue().replace(_INK, "currentColor")
    # The page has this rule in its style sheet, the only one that it allows.
    drawing = re.sub(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", drawing, count=1)
    attributes = f'role="img" aria-label="{html.escape(title)}"'
    drawing = drawing[drawing.index("<svg") :]
    return re.sub(
        r'<svg [^>]*(viewBox="[^"]*")[^>]*>', lambda found: f"<svg {found[1]} {attributes}>", drawing, count=1
    )


def _colour(number: int) -> str:
    return SYSTEMS[number % SYSTEM_COLOURS]


def _dot(axes: "Axes", x: float, y: float, colour: str, *, hollow: bool) -> None:
    # Half of a point at an edge would be cut off.
    axes.plot([x], [y], "o", markersize=5, color=colour, clip_on=False, markerfacecolor="none" if hollow else colour)


@_styled
def means_chart(results: "Results", block: Block) -> str:
    """Means of every system on every group of a block, with their intervals.

    Dotted lines show a system's mean over all contexts, or the targets. Hollow points: few contexts, or upper bounds.
    """
    columns = [column for column in block.columns if results.is_defined([column])]
    columns = columns[:_MOST_SIDE_BY_SIDE] if results.of_texts else columns
    n = {group: max(system.scores(group).n for system in results.systems.values()) for group in block.groups}
    groups = [group for group in block.groups if n[group]]
    if not columns or not groups:
        return ""
    names = f"means of {', '.join(results.systems)}" if results.of_texts else f"{', '.join(results.metrics)} by class"
    height = 0.9 + len(groups) * max(0.32, 0.23 * len(results.systems))
    axes_of = _axes(height, len(columns), sharey=True)
    for axes, column in zip(axes_of, columns, strict=True):
        for row, group in enumerate(groups):
            _means(axes, results, group, column, row)
        for number, system in enumerate(() if results.of_texts else results.systems.values()):
            overall = system.overall.means[column.name].value or 0.0
            axes.axvline(overall, color=_colour(number), linestyle=":", linewidth=1)
        axes.set_title(column.title)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
    labels = [group[1] if results.of_texts else f"{group[1]}  n={n[group]:,}" for group in groups]
    axes_of[0].set_yticks(range(len(groups)), labels)
    axes_of[0].set_ylim(len(groups) - 0.5, -0.5)
    return _svg(axes_of, f"{block.title}: {names}")


def _means(axes: "Axes", results: "Results", group: Group, column: Column, row: int) -> None:
    """A row of a chart: points with intervals, and a line for the target."""
    whole = len(results.systems)
    for number, system in enumerate(results.systems.values()):
        scores = system.scores(group)
        mean, y = scores.means[column.name], row + (number - (whole - 1) / 2) * 0.7 / whole
        if mean.ci is not None:
            axes.plot([*map(column.shown, mean.ci)], (y, y), color=_colour(number), linewidth=1.6)
        if mean.value is not None:
            hollow = system.is_oracle if results.of_texts else scores.few
            _dot(axes, column.shown(mean.value), y, _colour(number), hollow=hollow)
    targets = results.summary.targets
    if targets and (value := targets.scores(group).means[column.name].value) is not None:
        axes.plot([column.shown(value)] * 2, (row - 0.45, row + 0.45), color=_INK, linestyle=":", linewidth=1.2)


@_styled
def ranks_chart(results: "Results") -> str:
    """The share of cited papers at each range of ranks, and the cumulative share."""
    k = results.record.k
    bins = [(low, min(high, k)) for low, high in _BINS if low <= k]
    width = 0.8 / len(results.systems)
    bars, curve = _axes(2.9, 2)
    for number, system in enumerate(results.systems.values()):
        whole, places = (
            sum(system.outcomes.values()) or 1,
            [(number + 0.5) * width - 0.4 + at for at in range(len(bins))],
        )
        shares = [sum(system.ranks[low - 1 : high]) / whole for low, high in bins]
        bars.bar(places, shares, width, color=_colour(number))
        upwards = [found / whole for found in itertools.accumulate(system.ranks)]
        curve.plot(range(1, k + 1), upwards, color=_colour(number), linewidth=1.8)
    bars.set_xticks(range(len(bins)), [str(low) if low == high else f"{low}–{high}" for low, high in bins])
    bars.set(title="share of cited papers at these ranks", xlabel="rank")
    bars.grid(visible=False, axis="x")
    curve.set_xscale("log")
    ticks = [rank for rank in (1, 3, 10, 30, 100, 300, 1000) if rank <= k]
    curve.set_xticks(ticks, [str(tick) for tick in ticks])
    curve.minorticks_off()
    curve.set(title="share of cited papers found up to a rank", xlabel="rank", ylim=(0, None))
    for axes in (bars, curve):
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    return _svg([bars], "Ranks of the cited papers")


if TYPE_CHECKING:
    from citerec.evaluation.results import Results


def write_page(results: "Results", path: Path) -> None:
    """Writes the page, a single file that needs no other files."""
    _write(path, "page.html.j2", results=results, title=results.record.set.name)


def write_tables_page(
    path: Path,
    title: str,
    shown: Sequence[Table],
    *,
    notes: Sequence[str] = (),
    lines: Sequence[str] = (),
    missing: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
) -> None:
    """Writes a page of tables: first `notes`, then the tables, what explains them, what is missing, and `links`."""
    content = {"notes": notes, "lines": lines, "missing": missing, "links": links}
    _write(path, "tables.html.j2", title=title, shown=shown, **content)


def _write(path: Path, template: str, **content: Any) -> None:
    """Writes a page with its style sheet in it.

    Its Content-Security-Policy allows no scripts, nothing from elsewhere, and no style sheet but its own. Charts set
    their colours in attributes, which can load nothing under this policy.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader, strict = PackageLoader("citerec.evaluation"), StrictUndefined
    templates = Environment(loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    templates.globals.update(tables=tables, examples=examples, seeds=seeds, version=__version__)
    templates.globals.update(means_chart=means_chart, ranks_chart=ranks_chart, colours=SYSTEMS)
    templates.filters.update(table=lambda table: Markup(to_html(table)), counted=counted)
    style = templates.get_template("style.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"style-src-elem 'sha256-{digest}'; style-src-attr 'unsafe-inline'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    page = templates.get_template(template).render(style=style, policy=policy, **content)
    path.write_text(page, encoding="utf-8")
