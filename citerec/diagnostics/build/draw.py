"""Drawing cited papers: field, years, citation count, and in each such cell more papers than are needed."""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from citerec.corpus.store import PaperStore
from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.strata import strata
from citerec.files.hashing import hash_sample
from citerec.files.parts import in_parts
from citerec.records import Paper

T = TypeVar("T")
_PART = 1000


class Cell(NamedTuple):
    """Papers of one field, of some years, cited about as often (Maharjan 3.2.1, steps 1 to 3)."""

    field: str
    years: str
    citation_count: str


@dataclass(slots=True)
class Draw:
    """The papers of every cell, in the order in which they are drawn.

    Attributes:
        cited: Papers that a given text cites.
        known: Those of them that the corpus has.
        eligible: Those of them that have a title, authors and a venue, and are in a cell.
        papers: For each cell the papers that could ever be drawn, in order.
        sizes: For each cell how many eligible papers it has.
    """

    cited: int = 0
    known: int = 0
    eligible: int = 0
    papers: dict[Cell, list[str]] = field(default_factory=dict)
    sizes: Counter[Cell] = field(default_factory=Counter)


def cell_of(paper: Paper, bounds: Bounds) -> Cell | None:
    """The cell of a paper; None if it is in none, or lacks metadata that a usable citation needs.

    A usable citation is of a paper whose title, authors and venue are known (Maharjan 3.2.2, step 2).
    """
    if not (paper.title and paper.authors and paper.venue and paper.fields_of_study and bounds.citation_count):
        return None
    years = strata().year.group_of(paper.year)
    group = bounds.citation_count.group_of(paper.fields_of_study[0], years, paper.citation_count)
    return Cell(paper.fields_of_study[0], years, group) if years and group else None


def draw_papers(cited: Iterable[str], store: PaperStore, bounds: Bounds, most: Mapping[str, int], seed: int) -> Draw:
    """Draws from the papers that some text cites. Memory grows with the papers drawn, not with those cited.

    `most` is by field how many papers of a cell could ever be drawn. The seed decides the sample.
    """
    draw = Draw()
    heaps: dict[Cell, list[tuple[int, str]]] = {}
    for part in in_parts(cited, _PART):
        draw.cited += len(part)
        papers = store.papers(part)
        draw.known += len(papers)
        for paper_id, paper in papers.items():
            cell = cell_of(paper, bounds)
            if cell is None or not most.get(cell.field):
                continue
            draw.eligible += 1
            draw.sizes[cell] += 1
            heap = heaps.setdefault(cell, [])
            entry = (-hash_sample(seed, paper_id, between="\t"), paper_id)
            if len(heap) < most[cell.field]:
                heapq.heappush(heap, entry)
            else:
                heapq.heappushpop(heap, entry)
    draw.papers = {cell: [paper_id for _, paper_id in sorted(heaps[cell], reverse=True)] for cell in sorted(heaps)}
    return draw
