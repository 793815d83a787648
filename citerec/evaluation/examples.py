"""Contexts and texts that the page shows as examples."""

import contextlib
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from citerec.errors import CiterecError
from citerec.evaluation.statistics import DATASET, Floats
from citerec.evaluation.tables import cut
from citerec.index.manifest import open_store
from citerec.records import MARKER
from citerec.write.anchors import anchors_of, cited_in
from citerec.write.tasks import Prediction, Sentence, Source

if TYPE_CHECKING:
    from citerec.evaluation.results import Results

MOST = 30
DIFFER, HARDEST, AT_RANDOM = "systems differ most", "hardest for all", "drawn at random"
_LONGEST_SOURCE = 1500
_LONGEST_TEXT = 8000
_FIRST = 3


def hardest(results: "Results") -> list[dict[str, Any]]:
    """The contexts of ranked lists where all systems together did worst by the first metric.

    Contexts without a cited paper in the index are left out: no system could find one. Papers have titles if the index
    still exists.

    Returns:
        For each `context_id` its `labels`, the text `before` and `after` the marker; as `cited` the id, the title and
        the ranks by system of each paper cited there, 0 where it was not found; as `first` by system the titles of the
        papers that came first.
    """
    ids, ranks = results.items["context"], results.ranks
    scores = sum((scores[:, 0] for scores in results.scores.values()), np.zeros(len(ids)))
    found = ranks[ranks["rank"] > 0].groupby("context")["rank"].min()
    best = (1 / ids.map(found)).fillna(0.0)
    inside = ids.isin(ranks.loc[ranks["outcome"] != "not in the index", "context"])
    # Many are equally hard. Ties are broken by a checksum of the id, so that the same contexts from all over the file
    # are taken each time.
    order = sorted(ids[inside].index, key=lambda place: (scores[place], best[place], zlib.crc32(ids[place].encode())))
    chosen = {ids[place]: place for place in order[:MOST]}
    first: dict[str, dict[str, list[str]]] = {context_id: {} for context_id in chosen}
    for name, run in results.runs.items():
        shown = run[(run["rank"] <= _FIRST) & run["context"].isin(list(chosen))]
        for context_id, paper_id in zip(shown["context"], shown["paper"], strict=True):
            first[context_id].setdefault(name, []).append(paper_id)
    of_chosen = ranks[ranks["context"].isin(list(chosen))]
    came_first = (paper_id for papers in first.values() for of_system in papers.values() for paper_id in of_system)
    index = results.record.index
    titles = _titles(Path(index.path if index else ""), {*of_chosen["paper"], *came_first})
    cited = {
        context_id: [
            (paper_id, titles.get(paper_id, ""), of_paper.set_index("system")["rank"].to_dict())
            for paper_id, of_paper in of_context.groupby("paper", sort=False)
        ]
        for context_id, of_context in of_chosen.groupby("context")
    }
    return [
        {
            "context_id": context_id,
            "labels": results.classes.loc[place].dropna().to_dict(),
            **dict(zip(("before", "marker", "after"), results.items["text"][place].partition(MARKER), strict=True)),
            "cited": cited[context_id],
            "first": {name: [titles.get(one) or one for one in papers] for name, papers in first[context_id].items()},
        }
        for context_id, place in chosen.items()
    ]


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


def examples(results: "Results", most: int = MOST) -> list[Example]:
    """A third where systems differ most, a third where all are worst, and a third at random, against cherry-picking.

    They are chosen by the first column that judges; upper bounds do not count. Ties and random choices depend on a
    checksum of the task's id, so the same examples are chosen each time.
    """
    scores = _judged(results)
    pairs = zip(results.classes[DATASET], results.items["context"], strict=True)
    checksums = [zlib.crc32(f"{dataset}\t{task_id}".encode()) for dataset, task_id in pairs]
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


def _judged(results: "Results") -> Floats:
    """Tasks × systems: the first column that judges, higher is better; without systems if no column judges."""
    column = next((number for number, column in enumerate(results.columns) if column.judges), None)
    systems = [name for name, system in results.systems.items() if not system.is_oracle] or list(results.systems)
    if column is None:
        return np.empty((len(results.items), 0))
    sign = -1 if results.columns[column].better == "lower" else 1
    return sign * np.stack([results.scores[name][:, column] for name in systems], axis=1)


class Piece(NamedTuple):
    """A piece of a text; its kind is "", "citation", or "unknown" for a citation that matches no source."""

    text: str
    kind: str


Parts = Sequence[tuple[Sequence[Piece], Sequence[int]]]
"""A text: pieces up to the end of a sentence, and numbers of the sources behind it."""


def side_by_side(results: "Results") -> list[dict[str, Any]]:
    """The examples with all texts that were written for them; none where results were read back without the texts.

    Returns:
        For each `task` the reason `why` it was chosen, titles and texts of its `sources`, its `targets` in pieces, and
        `cards`: for each system its text in `parts`, its `unknown` citations, and its value in each column (`scores`).
    """
    if results.predictions is None:
        return []
    found = []
    for place, why in examples(results):
        task, systems = results.predictions.tasks[place], results.predictions.systems
        sources = [(source.title, cut(source.text, _LONGEST_SOURCE)) for source in task.sources]
        targets = [pieces_of(cut(target, _LONGEST_TEXT), task.sources) for target in task.targets]
        cards = [_card(results, name, texts[place], place) for name, texts in systems.items()]
        found.append({"task": task, "why": why, "sources": sources, "targets": targets, "cards": cards})
    return found


def _card(results: "Results", system: str, prediction: Prediction, place: int) -> dict[str, Any]:
    sources = prediction.task.sources
    text = cut(prediction.text, _LONGEST_TEXT) if prediction.text.strip() else ""
    said_unknown = [name for one in prediction.sentences for name in one.unknown if name in prediction.text]
    scores = zip(results.columns, results.scores[system][place].tolist(), strict=True)
    return {
        "system": system,
        "parts": parts_of(text, prediction.sentences, sources),
        "unknown": list(dict.fromkeys([*sorted(cited_in(prediction.text, sources).outside), *said_unknown])),
        "scores": [(column, value) for column, value in scores if column.judges],
    }


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
