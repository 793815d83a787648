"""What every retriever takes and gives."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from citerec.contexts.query import Query
from citerec.records import Match, Reason


@dataclass(frozen=True, slots=True)
class Filters:
    """Which papers may be found. All hold at once; each is exact.

    Attributes:
        year_from: Published in this year or later. A paper without a year does not pass.
        year_to: Published in this year or earlier. A paper without a year does not pass.
        fields: Of one of these fields of study, whatever the case of the letters.
        venues: Published in a venue that has the words of one of these, side by side.
        min_citations: Cited at least so often; a paper of unknown count does not pass.
        exclude: None of these papers.
        citing_id: The paper that cites: neither it nor what it wrote about others is searched.
        as_of_year: Nothing known to be newer, and no citing sentence newer or of unknown year.
    """

    year_from: int | None = None
    year_to: int | None = None
    fields: tuple[str, ...] = ()
    venues: tuple[str, ...] = ()
    min_citations: int | None = None
    exclude: tuple[str, ...] = ()
    citing_id: str | None = None
    as_of_year: int | None = None


NO_FILTERS = Filters()
"""Every paper may be found."""


class CitanceKey(NamedTuple):
    """Which citing sentence speaks most for a candidate, and what it adds to the score."""

    citing_id: str
    position: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A paper found, by its id.

    Attributes:
        paper_id: The paper.
        score: Higher is better; comparable within one list only.
        citance: The citing sentence that speaks most for it, if one does.
        signals: What each step said of it, by the names in `SIGNALS`; a signal that is not there was not found.
        reasons: What its score is made of, strongest first, where that was asked for.
    """

    paper_id: str
    score: float
    citance: CitanceKey | None = None
    signals: Mapping[str, float] = field(default_factory=dict, hash=False, compare=False)
    reasons: tuple[Reason, ...] = field(default=(), hash=False, compare=False)


SIGNALS = {
    "bm25": "BM25 of title and abstract",
    "citance": "BM25 of the best citing sentence",
    "citance_2": "BM25 of the second best citing sentence",
    "citances": "BM25 of all citing sentences found, summed",
    "citances_found": "how many citing sentences were found",
    "dense": "cosine of the vectors",
    "fused": "score of the fused lists",
    "ltr": "score of the learnt ranker",
    "cross_encoder": "score of the cross-encoder",
}
"""What a candidate's signals are called, and what they mean."""


class Retriever(Protocol):
    """Finds candidates. Safe to call from several threads; ties break by paper id."""

    def search(self, query: Query, k: int, filters: Filters) -> list[Candidate]:
        """The k best candidates, best first."""

    def search_many(
        self, queries: Iterable[tuple[Query, Filters]], k: int, threads: int, latencies: list[float] | None = None
    ) -> Iterator[list[Candidate]]:
        """Answers many queries, in order, several at once; notes the seconds that each took, in no order."""

    def explain(self, query: Query, candidate: Candidate) -> tuple[Match, ...]:
        """The words of the query that speak for a candidate, best first."""
