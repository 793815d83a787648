"""The candidates of an index: Lucene's, those of the vectors, or both fused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from citerec.contexts.query import Query
from citerec.errors import SettingsError
from citerec.records import Match
from citerec.retrieve.fusion import fuse
from citerec.retrieve.index import LUCENE
from citerec.retrieve.lucene import LuceneRetriever
from citerec.retrieve.protocol import NO_FILTERS, Candidate, Filters
from citerec.settings import RetrievalSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.dense.retriever import DenseRetriever

DENSE = "dense"


class HybridRetriever:
    """Asks the retrievers that the settings name, and fuses what they find. Safe to call from several threads.

    Lucene is always open: it knows filters, orders and reasons.

    Args:
        lucene: Searches words.
        dense: Searches vectors, where the settings want them.
        settings: Which are asked, and how they are fused.
    """

    def __init__(self, lucene: LuceneRetriever, dense: "DenseRetriever | None", settings: RetrievalSettings) -> None:
        self.settings = settings
        self._lucene = lucene
        self._dense = dense

    @classmethod
    def open(cls, index: Path, settings: RetrievalSettings) -> Self:
        """Opens the engines of an index directory.

        Raises:
            IndexUnusableError: An engine cannot open what lies there.
            SettingsError: The settings want vectors, and the index has none.
        """
        lucene = LuceneRetriever(index / LUCENE, settings)
        if DENSE not in settings.retrievers:
            return cls(lucene, None, settings)
        try:
            if not (index / DENSE).is_dir():
                raise SettingsError(f"{index} has no vectors to search", f"Make them: citerec index encode {index}")
            from citerec.retrieve.dense.retriever import DenseRetriever

            return cls(lucene, DenseRetriever(index / DENSE, settings, lucene.matching_ids), settings)
        except BaseException:
            lucene.close()
            raise

    def close(self) -> None:
        """Lets go of the index's files."""
        self._lucene.close()
        if self._dense is not None:
            self._dense.close()

    def vectors_of(self, queries: Sequence[Query]) -> "Sequence[NDArray[np.float32] | None]":
        """A vector for each query, encoded together; None for each where no vectors are searched."""
        return [None] * len(queries) if self._dense is None else list(self._dense.vectors_of(queries))

    def search(
        self,
        query: Query,
        k: int,
        filters: Filters = NO_FILTERS,
        sort: str = "relevance",
        vector: "NDArray[np.float32] | None" = None,
        *,
        explain: bool = False,
    ) -> list[Candidate]:
        """The k best candidates, best first.

        Args:
            query: What to search for.
            k: How many candidates, from 1.
            filters: Which papers may be found; exact.
            sort: One of SORTS. Any other than relevance is Lucene's alone.
            vector: The query's vector (dimension,), where it is known; else it is encoded.
            explain: Whether candidates of several lists are to say what each list gave them.

        Raises:
            QueryError: The query has no word to search for, or too many.
            FilterError: k is under 1, or the order is unknown.
        """
        if self._dense is None or sort != "relevance":
            return self._lucene.search(query, k, filters, sort)
        if vector is None:
            vector = self._dense.vectors_of([query])[0]
        if "lucene" not in self.settings.retrievers:
            return self._dense.search(query, k, filters, vector)
        depth = max(self.settings.fusion.depth, k)
        fusion = self.settings.fusion
        words = self._lucene.search(query, depth, filters)

        def fused(vector: "NDArray[np.float32]", k: int) -> list[Candidate]:
            assert self._dense is not None
            lists = {"lucene": words, "dense": self._dense.search(query, depth, filters, vector)}
            return fuse(lists, fusion, k, explain=explain)

        if fusion.feedback:
            first = [candidate.paper_id for candidate in fused(vector, fusion.feedback)]
            vector = self._dense.nearer(vector, first, fusion.feedback_weight)
        return self._with_cosines(fused(vector, k), vector)

    def _with_cosines(self, candidates: list[Candidate], vector: "NDArray[np.float32]") -> list[Candidate]:
        """Candidates that only Lucene found have a cosine too: rankers ask for it."""
        assert self._dense is not None
        without = [candidate.paper_id for candidate in candidates if DENSE not in candidate.signals]
        if not without:
            return candidates
        cosines = dict(zip(without, self._dense.cosines(vector, without).tolist(), strict=True))
        return [
            replace(candidate, signals={**candidate.signals, DENSE: cosine})
            if (cosine := cosines.get(candidate.paper_id)) is not None and cosine == cosine
            else candidate
            for candidate in candidates
        ]

    def matches_nothing(self, filters: Filters) -> bool:
        """Whether no paper of the index passes the filters."""
        return self._lucene.matches_nothing(filters)

    def explain(self, query: Query, candidate: Candidate) -> tuple[Match, ...]:
        """The words of the query that speak for a candidate, best first; what vectors say stands under no word."""
        return self._lucene.explain(query, candidate)
