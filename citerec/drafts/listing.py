"""The papers that are shown for a place of a draft: those of the author's own bibliography come first."""

from collections.abc import Iterable
from typing import NamedTuple

from citerec.drafts.bibliography import Bibliography
from citerec.records import Hit, Paper

FITTING = 5
"""Papers of the bibliography come first if they are among so many that the system ranks highest."""


class Listed(NamedTuple):
    """A paper that is shown.

    Attributes:
        hit: What the search found; its rank and score stay those of the system.
        key: Its key in the bibliography; None if that lacks the paper and its other editions.
        paper: The edition to cite: the one that the bibliography has, or else that of the hit.
        comes_first: Whether it stands before others because the bibliography has it.
    """

    hit: Hit
    key: str | None
    paper: Paper
    comes_first: bool


def listed(hits: Iterable[Hit], bibliography: Bibliography, *, own_first: bool = True) -> list[Listed]:
    """The hits in the order in which an author sees them.

    Those papers of the bibliography come first that are among the best `FITTING`, in the system's order; then all
    others, in that order. No hit is left out, none is added, and the order does not depend on how many are shown.

    Args:
        hits: The hits that are shown, best first.
        bibliography: The author's own.
        own_first: Whether its papers come first; otherwise they only have their keys.
    """
    papers = [_listed(hit, bibliography, own_first) for hit in hits]
    return sorted(papers, key=lambda one: not one.comes_first)


def _listed(hit: Hit, bibliography: Bibliography, own_first: bool) -> Listed:
    for paper in (hit.paper, *hit.also):
        if key := bibliography.key_of(paper):
            return Listed(hit, key, paper, own_first and hit.rank <= FITTING)
    return Listed(hit, None, hit.paper, False)
