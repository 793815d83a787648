"""Contexts and texts that the page shows as examples."""

import contextlib
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from citerec.errors import CiterecError
from citerec.evaluation.rank import OUTCOMES
from citerec.evaluation.tables import cut
from citerec.index.manifest import open_store
from citerec.write.anchors import anchors_of, cited_in
from citerec.write.tasks import Source

if TYPE_CHECKING:
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


class Piece(NamedTuple):
    """A piece of a text; its kind is "", "citation", or "unknown" for a citation that matches no source."""

    text: str
    kind: str


def side_by_side(results: "Results") -> list[dict[str, Any]]:
    """Tasks drawn at random, with all texts that were written for them; none where results were read back.

    Returns:
        For each `task` its `targets` in pieces, and `cards`: for each system its text in `pieces`, and its value in
        each column that judges (`scores`).
    """
    if results.predictions is None:
        return []
    tasks, systems = results.predictions.tasks, results.predictions.systems
    judging = [number for number, column in enumerate(results.columns) if column.judges]
    found = []
    for place in sorted(
        range(len(tasks)), key=lambda place: _checksum(f"{tasks[place].dataset}\t{tasks[place].task_id}")
    ):
        cards = []
        for name, texts in systems.items():
            unknown = [citation for sentence in texts[place].sentences for citation in sentence.unknown]
            scores = [(results.columns[number], results.scores[name][place, number]) for number in judging]
            pieces = pieces_of(cut(texts[place].text, _LONGEST_TEXT), texts[place].task.sources, unknown)
            cards.append({"system": name, "pieces": pieces, "scores": scores})
        targets = [pieces_of(cut(target, _LONGEST_TEXT), tasks[place].sources) for target in tasks[place].targets]
        found.append({"task": tasks[place], "targets": targets, "cards": cards})
    return found[:MOST]


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
