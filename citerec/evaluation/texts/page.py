"""The page of an evaluation of written texts: tables, charts, and texts side by side."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.evaluation.report.drawing import PART_COLOURS, SYSTEM_COLOURS
from citerec.evaluation.results import OVERALL, SIGNIFICANT
from citerec.evaluation.texts.charts import metric_chart, shares_chart, shown, titled
from citerec.evaluation.texts.predictions import ReadFile
from citerec.evaluation.texts.results import TextResults
from citerec.evaluation.texts.telling import Telling, telling
from citerec.texts.anchors import anchors_of, cited_in
from citerec.texts.metrics.base import Column
from citerec.texts.tasks import Sentence, Source, TextTask, Written
from citerec.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST_SOURCE = 1500
_LONGEST_TEXT = 8000
_LONGEST_SETTING = 200


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
        parts: The text: pieces up to the end of a sentence, and numbers of the sources that it was drawn from.
        unknown: Citations that stand for no source.
        values: Columns with the values of this text.
    """

    system: str
    parts: Sequence[tuple[Sequence[Piece], Sequence[int]]]
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


def pieces_of(text: str, sources: Sequence[Source], unknown: Sequence[str] = ()) -> list[Piece]:
    """A text in pieces: its citations, and what stands between them.

    Args:
        text: The text.
        sources: What it could be written from.
        unknown: Citations in it that are known to stand for no source, as they are written, whatever their style.
    """
    spans = [(anchor.start, anchor.end) for anchor in anchors_of(text)]
    spans += [found.span() for name in unknown if name for found in re.finditer(re.escape(name), text)]
    pieces, done = [], 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            pieces.append(Piece(text[done:start], ""))
            citation = text[start:end]
            outside = citation in unknown or cited_in(citation, sources).outside
            pieces.append(Piece(citation, "unknown" if outside else "citation"))
            done = end
    return [piece for piece in (*pieces, Piece(text[done:], "")) if piece.text]


def parts_of(
    text: str, sentences: Sequence[Sentence], sources: Sequence[Source]
) -> list[tuple[list[Piece], tuple[int, ...]]]:
    """A text parted after each sentence of which something is said.

    Args:
        text: What was measured: it is all there, and nothing else.
        sentences: Its sentences in order; one that the text does not have is passed over, as are numbers of no source.
        sources: What it could be written from.

    Returns:
        Pieces, and numbers of the sources that their last sentence was drawn from.
    """
    anchors = [(anchor.start, anchor.end) for anchor in anchors_of(text)]
    parts: list[tuple[list[Piece], tuple[int, ...]]] = []
    done = searched = 0
    for sentence in sentences:
        # Lines may be broken elsewhere.
        pattern = r"\s+".join(map(re.escape, sentence.text.split()))
        if not pattern or not (found := re.compile(pattern).search(text, searched)):
            continue
        # A dot in a citation ends no sentence here.
        end = searched = next((end for start, end in anchors if start < found.end() < end), found.end())
        drawn = tuple(number for number in sentence.drawn_from if 0 <= number < len(sources))
        if drawn or sentence.unknown:
            parts.append((pieces_of(text[done:end], sources, sentence.unknown), drawn))
            done = end
    return [*parts, (pieces_of(text[done:], sources), ())] if text[done:] else parts


def said(value: Any) -> str:
    """A setting in words."""
    if value is None:
        return "none"
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
    text = _cut(written.text, _LONGEST_TEXT) if written.text.strip() else ""
    said_unknown = [name for one in written.sentences for name in one.unknown if name in written.text]
    values = zip(results.columns, results.scores[system][place].tolist(), strict=True)
    return Card(
        system,
        parts_of(text, written.sentences, sources),
        list(dict.fromkeys([*sorted(cited_in(written.text, sources).outside), *said_unknown])),
        [(column, value) for column, value in values if column.judges],
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


def _file(file: ReadFile) -> str:
    return f"{file.name} ({file.bytes:,} bytes, sha256 {file.sha256[:12]}…)"


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
    templates.filters.update(
        value=_value,
        titled=titled,
        said=said,
        cut=lambda text: _cut(text, _LONGEST_SETTING),
        file=_file,
        number=lambda value: f"{value:,}",
    )
    return templates


def _value(value: float | None, column: Column, fewer: int = 0) -> str:
    digits = max(0, column.decimals - fewer)
    return "–" if value is None or np.isnan(value) else f"{shown(column, value):,.{digits}f}"
