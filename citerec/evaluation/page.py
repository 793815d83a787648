"""The page of results, of ranked lists or of texts: tables, charts, and examples to read."""

import base64
import contextlib
import functools
import hashlib
import html
import io
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.errors import CiterecError
from citerec.evaluation import tables
from citerec.evaluation.metrics import OUTCOMES
from citerec.evaluation.tables import Block, Table, cut
from citerec.files.text import counted
from citerec.index.manifest import open_store
from citerec.version import __version__
from citerec.write.anchors import anchors_of, cited_in
from citerec.write.tasks import Source

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from citerec.evaluation.results import Results

MOST = 30
_LONGEST_TEXT = 8000


def _checksum(item_id: str) -> int:
    """Puts items in an order by chance, which is the same each time."""
    return zlib.crc32(item_id.encode())


def hardest(results: "Results") -> list[dict[str, Any]]:
    """The contexts of ranked lists where all systems together did worst by the first metric.

    Contexts without a cited paper in the index are left out: no system could find one. Papers have titles if the index
    still exists.

    Returns:
        For each `context_id` its `labels` and its `text`; as `cited` the title and the ranks by system of each paper
        cited there, 0 where it was not found; as `first` the title of the paper that came first, by system.
    """
    ids, ranks = results.items["context"], results.ranks
    scores = np.sum([of_system[:, 0] for of_system in results.scores.values()], axis=0)
    inside = ids[ids.isin(ranks.loc[ranks["outcome"] != OUTCOMES[-1], "context"])]
    chosen = sorted(inside.index, key=lambda place: (scores[place], _checksum(ids[place])))[:MOST]
    of_chosen = ranks[ranks["context"].isin(ids[chosen])]
    first = {name: run[run["rank"] == 1].set_index("context")["paper"] for name, run in results.runs.items()}
    titles = _titles(results, {*of_chosen["paper"], *(paper for one in first.values() for paper in one)})
    return [
        {
            "context_id": ids[place],
            "labels": results.classes.loc[place].dropna().to_dict(),
            "text": results.items["text"][place],
            "cited": [
                (titles.get(paper_id) or paper_id, of_paper.set_index("system")["rank"].to_dict())
                for paper_id, of_paper in of_chosen[of_chosen["context"] == ids[place]].groupby("paper", sort=False)
            ],
            "first": {
                name: titles.get(one[ids[place]]) or one[ids[place]] for name, one in first.items() if ids[place] in one
            },
        }
        for place in chosen
    ]


def _titles(results: "Results", paper_ids: set[str]) -> dict[str, str]:
    """The titles of papers by id; none if there is no such index."""
    try:
        store = open_store(Path(results.record.index.path if results.record.index else ""))
    except CiterecError:
        return {}
    with contextlib.closing(store):
        return {paper_id: paper.title for paper_id, paper in store.papers(paper_ids).items()}


def side_by_side(results: "Results") -> list[dict[str, Any]]:
    """Tasks drawn at random, with all texts that were written for them; none where results were read back.

    Returns:
        For each `task` its `targets` in pieces, and `cards`: for each system its text in `pieces`, and its value in
        each column that judges (`scores`).
    """
    if results.predictions is None:
        return []
    tasks, systems = results.predictions.tasks, results.predictions.systems
    judging = [number for number, column in enumerate(results.columns) if column.better]
    order = [_checksum(f"{task.dataset}\t{task.task_id}") for task in tasks]
    samples = []
    for place in sorted(range(len(tasks)), key=order.__getitem__)[:MOST]:
        cards = []
        for name, texts in systems.items():
            unknown = [citation for sentence in texts[place].sentences for citation in sentence.unknown]
            scores = [(results.columns[number], results.scores[name][place, number]) for number in judging]
            pieces = pieces_of(cut(texts[place].text, _LONGEST_TEXT), texts[place].task.sources, unknown)
            cards.append({"system": name, "pieces": pieces, "scores": scores})
        targets = [pieces_of(cut(target, _LONGEST_TEXT), tasks[place].sources) for target in tasks[place].targets]
        samples.append({"task": tasks[place], "targets": targets, "cards": cards})
    return samples


def pieces_of(text: str, sources: Sequence[Source], unknown: Sequence[str] = ()) -> list[tuple[str, str]]:
    """A text in pieces, each with its kind: "citation", "unknown" for one that matches no source, "" for other text.

    Citations named in `unknown` match no source, whatever their style.
    """
    spans = [(anchor.start, anchor.end) for anchor in anchors_of(text)]
    spans += [match.span() for name in unknown if name for match in re.finditer(re.escape(name), text)]
    pieces, done = [], 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            citation = text[start:end]
            outside = citation in unknown or cited_in(citation, sources).outside
            pieces += [(text[done:start], ""), (citation, "unknown" if outside else "citation")]
            done = end
    return [piece for piece in (*pieces, (text[done:], "")) if piece[0]]


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


@contextlib.contextmanager
def _styled() -> Iterator[None]:
    import matplotlib as mpl
    from matplotlib.rcsetup import cycler

    with mpl.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=tables.SYSTEM_COLOURS)}):
        yield


def _svg(figure: "Figure", title: str) -> str:
    """The `<svg>` element for a page, with a title for screen readers."""
    file = io.StringIO()
    # The warnings are about letters that matplotlib's font lacks; the browser's font has them.
    with warnings.catch_warnings(action="ignore"):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    drawing = file.getvalue().replace(_INK, "currentColor")
    # The page has this rule in its style sheet, the only one that it allows.
    drawing = re.sub(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", drawing, count=1)
    attributes = f'role="img" aria-label="{html.escape(title)}"'
    drawing = drawing[drawing.index("<svg") :]
    return re.sub(
        r'<svg [^>]*(viewBox="[^"]*")[^>]*>', lambda match: f"<svg {match[1]} {attributes}>", drawing, count=1
    )


@_styled()
def means_chart(results: "Results", block: Block) -> str:
    """Means of every system on every group of a block, with their intervals."""
    from matplotlib.figure import Figure

    columns = [column for column in block.columns if results.is_defined([column])][:_MOST_SIDE_BY_SIDE]
    systems = list(results.systems.values())
    groups = [group for group in block.groups if any(system.scores(group).n for system in systems)]
    if not columns or not groups:
        return ""
    height = 0.9 + len(groups) * max(0.32, 0.23 * len(systems))
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes_of = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axes, column in zip(axes_of, columns, strict=True):
        for number, system in enumerate(systems):
            for row, group in enumerate(groups):
                mean, place = system.scores(group).means[column.name], row + (number + 0.5) * 0.7 / len(systems) - 0.35
                if mean.ci is not None:
                    axes.plot([*map(column.shown, mean.ci)], [place, place], color=f"C{number}")
                if mean.value is not None:
                    axes.plot(column.shown(mean.value), place, "o", color=f"C{number}", clip_on=False)
        axes.set(title=column.title, xlim=(0, None))
    axes_of[0].set_yticks(range(len(groups)), [label for _, label in groups])
    axes_of[0].set_ylim(len(groups) - 0.5, -0.5)
    return _svg(figure, f"{block.title}: means of {', '.join(results.systems)}")


@_styled()
def ranks_chart(results: "Results") -> str:
    """The share of cited papers that were found up to each rank."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, 2.9), layout="constrained")
    axes = figure.subplots()
    for number, system in enumerate(results.systems.values()):
        shares = np.cumsum(system.ranks) / max(1, sum(system.outcomes.values()))
        axes.plot(range(1, results.record.k + 1), shares, color=f"C{number}")
    axes.set(title="share of cited papers found up to a rank", xlabel="rank", xscale="log", ylim=(0, None))
    return _svg(figure, "Ranks of the cited papers")


def write_page(results: "Results", path: Path) -> None:
    """Writes the page, a single file that needs no other files."""
    render(path, "page.html.j2", results=results, title=results.record.set.name)


def to_html(table: Table) -> str:
    """A table as an element of a page."""
    return _templates().get_template("table.html.j2").render(table=table)


def render(path: Path, template: str, **content: Any) -> None:
    """Writes a page with its style sheet in it.

    Its Content-Security-Policy allows no scripts, nothing from elsewhere, and no style sheet but its own. Charts set
    their colours in attributes, which can load nothing under this policy.
    """
    style = _templates().get_template("style.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"style-src-elem 'sha256-{digest}'; style-src-attr 'unsafe-inline'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    page = _templates().get_template(template).render(style=style, policy=policy, **content)
    path.write_text(page, encoding="utf-8")


@functools.cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader, strict = PackageLoader("citerec.evaluation"), StrictUndefined
    templates = Environment(loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    templates.globals.update(tables=tables, hardest=hardest, side_by_side=side_by_side, version=__version__)
    templates.globals.update(means_chart=means_chart, ranks_chart=ranks_chart)
    templates.filters.update(table=lambda table: Markup(to_html(table)), counted=counted)
    return templates
