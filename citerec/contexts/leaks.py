"""The leak rules: what an answer to a context must not use. They are implemented only here.

Searches are restricted by `LeakRules.restrict` before they run. Lists from elsewhere (functions, run files, runs in
memory) are checked by `LeakRules.breaches`. Both read the same topics, so the same rules apply to every system.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from citerec.contexts.topic import Topic
from citerec.records import NO_FILTERS, Filters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_NO_LIMIT = 9999  # nothing is newer


class Breaches(NamedTuple):
    """Which rows of a run break a rule, (rows,) each; each row breaks at most one."""

    citing_paper: "npt.NDArray[np.bool_]"
    newer: "npt.NDArray[np.bool_]"


@dataclass(frozen=True, slots=True)
class LeakRules:
    """Which rules apply.

    Attributes:
        exclude_citing: The citing paper is no answer to its own context, and its citing sentences are not searched. It
            is known by its id, DOI or title (`citerec.contexts.topic.topics_of`).
        as_of_year: No paper known to be newer than the citing paper is an answer, and no citing sentence newer than it,
            or of unknown year, is searched. If the year of the citing paper is unknown, nothing counts as newer.
    """

    exclude_citing: bool = True
    as_of_year: bool = True

    def restrict(self, topic: Topic, filters: Filters = NO_FILTERS) -> Filters:
        """Filters that also leave out what the answer to a topic must not use."""
        hidden = topic.citing_names if self.exclude_citing else ()
        years = [filters.as_of_year, topic.citing_year if self.as_of_year else None]
        return replace(
            filters,
            citing_ids=hidden or filters.citing_ids,
            as_of_year=min((year for year in years if year is not None), default=None),
        )

    def permits(self, topic: Topic, paper_id: str, year: int | None) -> bool:
        """Whether a paper of a year may be an answer to a topic."""
        allowed = self.restrict(topic)
        return paper_id not in allowed.citing_ids and (
            year is None or allowed.as_of_year is None or year <= allowed.as_of_year
        )

    def permits_sentence(self, topic: Topic, citing_id: str, year: int | None) -> bool:
        """Whether the citing sentences of a paper of a year may be searched for a topic."""
        allowed = self.restrict(topic)
        return citing_id not in allowed.citing_ids and (
            allowed.as_of_year is None or (year is not None and year <= allowed.as_of_year)
        )

    def breaches(
        self,
        topics: Sequence[Topic],
        rows: "npt.NDArray[np.int32]",
        papers: "npt.NDArray[np.int32]",
        paper_ids: Sequence[str],
        years: "npt.NDArray[np.int32]",
    ) -> Breaches:
        """Which rows of a run break a rule.

        Args:
            topics: The topics that were answered.
            rows: Number of the topic of each row, (rows,).
            papers: Number of the paper of each row, (rows,).
            paper_ids: The papers.
            years: Their years, (papers,); 0 where unknown.
        """
        import numpy as np

        limits = [self.restrict(topic) for topic in topics]
        numbers = {paper_id: number for number, paper_id in enumerate(paper_ids)}
        most = max((len(limit.citing_ids) for limit in limits), default=0)
        hidden = np.full((len(limits), most), -1, np.int32)
        for row, limit in enumerate(limits):
            hidden[row, : len(limit.citing_ids)] = [numbers.get(citing_id, -1) for citing_id in limit.citing_ids]
        citing = (hidden[rows] == papers[:, None]).any(axis=1)
        latest = np.array([_NO_LIMIT if limit.as_of_year is None else limit.as_of_year for limit in limits], np.int32)
        return Breaches(citing, ~citing & (years[papers] > latest[rows]))
