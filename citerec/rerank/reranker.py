"""What every reranker takes and gives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from citerec.contexts.query import Query
from citerec.corpus.store import PaperStore
from citerec.records import Context, Paper
from citerec.retrieve.protocol import Candidate


@dataclass(frozen=True, slots=True)
class Asked:
    """A context, what is searched for it, and its citing paper where the index has it."""

    context: Context
    query: Query
    citing: Paper | None

    @property
    def citing_year(self) -> int | None:
        """The year of the citing paper, as the context or else the index has it."""
        known = self.context.citing_year
        return known if known is not None or self.citing is None else self.citing.year


class Reranker(Protocol):
    """Ranks candidates anew. Safe to call from several threads; ties go by paper id.

    Attributes:
        depth: How many candidates it ranks; those beyond stay behind, in their order.
        reads_citances: Whether it wants the citing sentences that the search found.
    """

    @property
    def depth(self) -> int:
        """How many candidates it ranks."""

    @property
    def reads_citances(self) -> bool:
        """Whether it wants citing sentences."""

    def rerank(
        self,
        asked: Asked,
        candidates: Sequence[Candidate],
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: bool = False,
    ) -> list[Candidate]:
        """Candidates in their new order, with new scores.

        Args:
            asked: What they were found for.
            candidates: Best first.
            papers: The records of the first `depth` of them.
            citances: The citing sentences that speak for them, found under the leak rules, by paper id.
            explain: Whether each of the first `depth` is to say what its score is made of.
        """


def in_new_order(ranked: Iterable[Candidate], rest: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by their new scores, ties by paper id; the rest behind them, in the order that they have.

    Args:
        ranked: Those that were scored anew, at least one.
        rest: The others. Their scores are of another scale: only their order is kept.
    """
    ordered = sorted(ranked, key=lambda candidate: (-candidate.score, candidate.paper_id.encode()))
    lowest = ordered[-1].score
    return ordered + [replace(candidate, score=lowest - place) for place, candidate in enumerate(rest, 1)]


def citance_texts(store: PaperStore, candidates: Iterable[Candidate]) -> dict[str, str]:
    """What others wrote when they cited some candidates: what the search found for each, by paper id."""
    return {
        candidate.paper_id: store.citances(candidate.paper_id, candidate.citance.citing_id)[candidate.citance.position]
        for candidate in candidates
        if candidate.citance
    }
