"""What every reranker takes and gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from citerec.contexts.query import Query
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
