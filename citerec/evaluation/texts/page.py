"""The page of an evaluation of written texts: tables, charts, and texts side by side."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.evaluation.report.drawing import PART_COLOURS, SYSTEM_COLOURS
from citerec.evaluation.results import OVERALL, SIGNIFICANT
from citerec.evaluation.texts.charts import metric_chart, shares_chart, shown, titled
from citerec.evaluation.texts.results import Column, TextResults
from citerec.evaluation.texts.telling import Telling, telling
from citerec.texts.anchors import anchors_of, cited_in
from citerec.texts.tasks import Source, TextTask, Written
from citerec.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST_SOURCE = 1500
_LONGEST_TEXT = 8000


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text: plain, or a citation.

    Attributes:
        text: As it is written.
        kind: "", "citation", or "unknown" where no source stands behind it.
    """

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Card:
    """What one system wrote for a task.

    Attributes:
        system: The system.
        sentences: Pieces of each sentence, and numbers of the sources that it was drawn from.
        unknown: Citations that stand for no source.
        values: Columns with the values of this text.
    """

    system: str
    sentences: Sequence[tuple[Sequence[Piece], Sequence[int]]]
    unknown: Sequence[str]
    values: Sequence[tuple[Column, float]]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A task with what authors and systems wrote for it."""

    task: TextTask
    why: str
    sources: Sequence[tuple[str, str]]
    targets: Sequence[Sequence[Piece]]
    cards: Sequence[Card]


def write_page(results: TextResults, path: Path) -> None:
    """Writes the page: one file, which needs nothing else.

    Args:
        results: What it shows.
        path: Where to.
    """
    pairs = itertools.combinations([name for name, system in results.systems.items() if not system.upper_bound], 2)
    page = (
        _templates()
        .get_template("texts.html.j2")
        .render(
            results=results,
            version=__version__,
            overall=OVERALL,
            significant=SIGNIFICANT,
            colours=SYSTEM_COLOURS,
            part_colours=PART_COLOURS,
            metrics={name: metric_chart(results, name) for name in results.metrics},
            discourse={name: _distributions(results, name) for name in results.corpus_metrics},
            pairs=list(pairs),
            side_by_side=[_side_by_side(results, one) for one in telling(results)],
        )
    )
    path.write_text(page, encoding="utf-8")


def pieces_of(text: str, sources: Sequence[Source]) -> list[Piece]:
    """A text in pieces: its citations, and what stands between them."""
    pieces, done = [], 0
    for anchor in anchors_of(text):
        pieces.append(Piece(text[done : anchor.start], ""))
        citation = text[anchor.start : anchor.end]
        pieces.append(Piece(citation, "unknown" if cited_in(citation, sources).outside else "citation"))
        done = anchor.end
    return [piece for piece in (*pieces, Piece(text[done:], "")) if piece.text]


def said(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {said(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _side_by_side(results: TextResults, one: Telling) -> SideBySide:
    task = results.predictions.tasks[one.place]
    return SideBySide(
        task=task,
        why=one.why,
        sources=[(source.title, _cut(source.text, _LONGEST_SOURCE)) for source in task.sources],
        targets=[pieces_of(_cut(target, _LONGEST_TEXT), task.sources) for target in task.targets],
        cards=[
            _card(results, name, texts[one.place], one.place) for name, texts in results.predictions.systems.items()
        ],
    )


def _card(results: TextResults, system: str, written: Written, place: int) -> Card:
    sources = written.task.sources
    if written.sentences:
        sentences = [(pieces_of(one.text, sources), one.drawn_from) for one in written.sentences]
        unknown = [citation for one in written.sentences for citation in one.unknown]
    else:
        sentences = [(pieces_of(_cut(written.text, _LONGEST_TEXT), sources), ())]
        unknown = sorted(cited_in(written.text, sources).outside)
    values = zip(results.columns, results.scores[system][place].tolist(), strict=True)
    return Card(
        system, sentences, list(dict.fromkeys(unknown)), [(column, value) for column, value in values if column.judges]
    )


def _distributions(results: TextResults, metric: str) -> Sequence[tuple[str, str, Mapping[str, Mapping[str, Any]]]]:
    """For each group its name, a chart of shares, and what was found by system."""
    labels = results.settings[metric]["labels"]
    found = []
    for group in results.groups.names:
        by_system = {name: system.summaries[metric][group] for name, system in results.systems.items()}
        targets = next(iter(by_system.values()))["targets"]
        shares = {"target": targets} if targets else {}
        shares |= {name: summary["system"] for name, summary in by_system.items()}
        found.append((group, shares_chart(shares, labels, f"{metric}: shares of labels, {group}"), by_system))
    return found


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"


def _templates() -> "Environment":
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    # The style sheet is that of the report of `citerec eval`.
    loaders = [PackageLoader("citerec.evaluation.texts"), PackageLoader("citerec.evaluation.report")]
    templates = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(value=_value, titled=titled, said=said, number=lambda value: f"{value:,}")
    return templates


def _value(value: float | None, column: Column, digits: int = 2) -> str:
    return "–" if value is None or np.isnan(value) else f"{shown(column, value):,.{digits}f}"
