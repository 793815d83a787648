"""Contexts and texts that the page shows as examples."""

import contextlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from citerec.errors import CiterecError
from citerec.evaluation.figures import Figures
from citerec.evaluation.items import Item
from citerec.evaluation.statistics import Floats
from citerec.index.manifest import open_store
from citerec.records import MARKER
from citerec.write.anchors import anchors_of, cited_in
from citerec.write.metrics.base import Column
from citerec.write.tasks import Prediction, Sentence, Source, TextTask

MOST = 30
DIFFER, HARDEST, AT_RANDOM = "systems differ most", "hardest for all", "drawn at random"
_LONGEST_SOURCE = 1500
_LONGEST_TEXT = 8000

_FIRST = 3


@dataclass(frozen=True, slots=True)
class Hard:
    """A hard context, as the page shows it: text before and after the marker, papers cited, papers ranked first.

    Attributes:
        cited: For each cited paper its id, its title, and its rank by system; None where it was not found.
        first: By system, titles of the papers that came first.
    """

    item: Item
    before: str
    after: str
    cited: Sequence[tuple[str, str, Mapping[str, int | None]]]
    first: Mapping[str, Sequence[str]]


def hardest(results: Figures) -> list[Hard]:
    """The contexts of ranked lists where all systems together did worst by the first metric.

    Contexts without a cited paper in the index are left out: no system could find one. Papers have titles if the index
    still exists.
    """
    items = results.items
    scores = sum((scores[:, 0] for scores in items.scores.values()), np.zeros(len(items)))
    best = np.zeros(len(items))
    for ranks in items.ranks.values():
        best = np.maximum(best, np.where(ranks > 0, 1 / np.maximum(ranks, 1), 0.0).max(axis=1, initial=0.0))
    # Many are equally hard. Ties are broken by a checksum of the id, so that the same contexts from all over the file
    # are taken each time.
    order = sorted(
        np.flatnonzero(items.in_index).tolist(),
        key=lambda place: (scores[place], best[place], zlib.crc32(items.ids[place].encode())),
    )
    chosen = [items[place] for place in order[:MOST]]
    numbers = {context_id: number for number, context_id in enumerate(results.context_ids)}
    top = {
        item.context_id: {
            name: [paper_id for paper_id, _ in ranking.hits(numbers[item.context_id])[:_FIRST]]
            for name, ranking in results.rankings.items()
        }
        for item in chosen
    }
    wanted = {paper_id for item in chosen for paper_id in item.cited}
    wanted |= {paper_id for by_system in top.values() for ids in by_system.values() for paper_id in ids}
    titles = _titles(Path(results.index["path"]), wanted)

    found = []
    for item in chosen:
        before, _, after = item.text.partition(MARKER)
        cited = [
            (paper_id, titles.get(paper_id, ""), {name: ranks[slot] or None for name, ranks in item.ranks.items()})
            for slot, paper_id in enumerate(item.cited)
        ]
        first = {name: [titles.get(one) or one for one in ids] for name, ids in top[item.context_id].items()}
        found.append(Hard(item, before, after, cited, first))
    return found


def _titles(index: Path, paper_ids: set[str]) -> dict[str, str]:
    """The titles of papers by id; none if there is no such index."""
    try:
        store = open_store(index)
    except CiterecError:
        return {}
    with contextlib.closing(store):
        return {paper_id: paper.title for paper_id, paper in store.papers(paper_ids).items()}


class Example(NamedTuple):
    """The place of a task among the tasks, and why it was chosen."""

    place: int
    why: str


def examples(results: Figures, most: int = MOST) -> list[Example]:
    """A third where systems differ most, a third where all are worst, and a third at random, against cherry-picking.

    They are chosen by the first column that judges; upper bounds do not count. Ties and random choices depend on a
    checksum of the task's id, so the same examples are chosen each time.
    """
    scores = _judged(results)
    pairs = zip(results.items.labels, results.items.ids, strict=True)
    checksums = [zlib.crc32(f"{labels['dataset']}\t{task_id}".encode()) for labels, task_id in pairs]
    known = [place for place in range(len(checksums)) if scores.size and not np.isnan(scores[place]).any()]
    orders = {AT_RANDOM: sorted(range(len(checksums)), key=lambda place: (checksums[place], place))}
    if known:
        means, spreads = scores.mean(axis=1), np.ptp(scores, axis=1)
        orders = {HARDEST: sorted(known, key=lambda place: (means[place], checksums[place])), **orders}
        if scores.shape[1] > 1 and (spreads[known] > 0).any():
            orders = {DIFFER: sorted(known, key=lambda place: (-spreads[place], checksums[place])), **orders}
    share = -(-most // len(orders))
    chosen: dict[int, str] = {}
    for why, order in orders.items():
        left = [place for place in order if place not in chosen]
        chosen |= dict.fromkeys(left[: min(share, most - len(chosen))], why)
    return [Example(place, why) for place, why in chosen.items()]


def _judged(results: Figures) -> Floats:
    """Tasks × systems: the first column that judges, higher is better; without systems if no column judges."""
    column = next((number for number, column in enumerate(results.columns) if column.judges), None)
    systems = [name for name, system in results.systems.items() if not system.is_oracle] or list(results.systems)
    if column is None:
        return np.empty((len(results.items), 0))
    sign = -1 if results.columns[column].better == "lower" else 1
    return sign * np.stack([results.items.scores[name][:, column] for name in systems], axis=1)


class Piece(NamedTuple):
    """A piece of a text; its kind is "", "citation", or "unknown" for a citation that matches no source."""

    text: str
    kind: str


Parts = Sequence[tuple[Sequence[Piece], Sequence[int]]]
"""A text: pieces up to the end of a sentence, and numbers of the sources behind it."""


@dataclass(frozen=True, slots=True)
class Card:
    """A system's prediction for a task, its citations that match no source, and its value in each column."""

    system: str
    parts: Parts
    unknown: Sequence[str]
    values: Sequence[tuple[Column, float]]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A task with its targets and the predictions of all systems."""

    task: TextTask
    why: str
    sources: Sequence[tuple[str, str]]
    targets: Sequence[Sequence[Piece]]
    cards: Sequence[Card]


def side_by_side(results: Figures) -> list[SideBySide]:
    """The examples with all texts that were written for them; none where results were read back without the texts."""
    if results.predictions is None:
        return []
    found, systems = [], results.predictions.systems
    for place, why in examples(results):
        task = results.predictions.tasks[place]
        sources = [(source.title, cut(source.text, _LONGEST_SOURCE)) for source in task.sources]
        targets = [pieces_of(cut(target, _LONGEST_TEXT), task.sources) for target in task.targets]
        cards = [_card(results, name, texts[place], place) for name, texts in systems.items()]
        found.append(SideBySide(task, why, sources, targets, cards))
    return found


def _card(results: Figures, system: str, prediction: Prediction, place: int) -> Card:
    sources = prediction.task.sources
    text = cut(prediction.text, _LONGEST_TEXT) if prediction.text.strip() else ""
    said_unknown = [name for one in prediction.sentences for name in one.unknown if name in prediction.text]
    values = zip(results.columns, results.items.scores[system][place].tolist(), strict=True)
    return Card(
        system,
        parts_of(text, prediction.sentences, sources),
        list(dict.fromkeys([*sorted(cited_in(prediction.text, sources).outside), *said_unknown])),
        [(column, value) for column, value in values if column.judges],
    )


def pieces_of(text: str, sources: Sequence[Source], unknown: Sequence[str] = ()) -> list[Piece]:
    """A text in pieces: its citations, and the text between them.

    Citations named in `unknown` match no source, whatever their style.
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


def parts_of(text: str, sentences: Sequence[Sentence], sources: Sequence[Source]) -> Parts:
    """The measured text, split after each sentence with attributions or unknown citations.

    Sentences that are not in the text are skipped, and so are numbers of no source.
    """
    anchors = [(anchor.start, anchor.end) for anchor in anchors_of(text)]
    parts: list[tuple[list[Piece], tuple[int, ...]]] = []
    done = searched = 0
    for sentence in sentences:
        # Line breaks may differ.
        pattern = r"\s+".join(map(re.escape, sentence.text.split()))
        if not pattern or not (found := re.compile(pattern).search(text, searched)):
            continue
        # A dot in a citation ends no sentence here.
        end = searched = next((end for start, end in anchors if start < found.end() < end), found.end())
        behind = tuple(number for number in sentence.attributions if 0 <= number < len(sources))
        if behind or sentence.unknown:
            parts.append((pieces_of(text[done:end], sources, sentence.unknown), behind))
            done = end
    return [*parts, (pieces_of(text[done:], sources), ())] if text[done:] else parts


def cut(text: str, longest: int) -> str:
    """A text, cut if it is too long."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"
