"""An index that is open: what every retriever gets."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from citerec.corpus.store import PaperStore
from citerec.errors import SearchError
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.base import Candidate
from citerec.retrieve.index import open_store, recover
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.staging import LUCENE

if TYPE_CHECKING:
    from citerec.retrieve.lucene import LuceneRetriever


class OpenIndex:
    """An index directory, open for searching. Safe to use from several threads.

    Attributes:
        path: Where it lies.
        manifest: What it holds.
        store: The records of its papers.
        lucene: Its words: always open, since Lucene knows filters and orders.
    """

    def __init__(self, path: Path, manifest: Manifest, store: PaperStore, lucene: "LuceneRetriever") -> None:
        self.path = path
        self.manifest = manifest
        self.store = store
        self.lucene = lucene
        self._ids_of = functools.lru_cache(8)(lambda filters: frozenset(lucene.matching_ids(filters)))

    @classmethod
    def open(cls, index: str | Path, lucene_settings: Any = None) -> Self:
        """Opens an index directory.

        Args:
            index: The directory.
            lucene_settings: How words are searched: `citerec.retrieve.lucene.LuceneSettings`.

        Raises:
            IndexUnusableError: There is none, or it is half built, broken, or of another version.
            JavaError: There is no Java to run Lucene on.
        """
        from citerec.retrieve.lucene import LuceneRetriever

        path = Path(index)
        recover(path)
        manifest = Manifest.read(path)
        store = open_store(path)
        try:
            return cls(path, manifest, store, LuceneRetriever(path / LUCENE, lucene_settings))
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Lets go of the index's files."""
        self.lucene.close()
        self.store.close()

    def permitted(self, name: str, candidates: Sequence[Candidate], filters: Filters) -> list[Candidate]:
        """Those candidates of a retriever that pass the filters, each once, best first, ties by paper id.

        Args:
            name: The retriever, for an error.
            candidates: What it found, in any order.
            filters: Which papers may be found; the leak rules are among them.

        Raises:
            SearchError: A candidate is no paper of the index.
        """
        papers = self.store.papers({candidate.paper_id for candidate in candidates})
        for candidate in candidates:
            if candidate.paper_id not in papers:
                raise SearchError(
                    f"the retriever {name} found {candidate.paper_id!r}, which is not in the index",
                    "It must give ids of the index that it was opened on.",
                )
        ordered = sorted(candidates, key=lambda one: (-one.score, one.paper_id.encode()))
        best = {candidate.paper_id: candidate for candidate in reversed(ordered)}
        allowed = {paper_id for paper_id, paper in papers.items() if self._passes(paper, filters)}
        return [one for one in ordered if one is best[one.paper_id] and one.paper_id in allowed]

    def _passes(self, paper: Paper, filters: Filters) -> bool:
        if filters == NO_FILTERS:
            return True
        if paper.paper_id in (*filters.exclude, filters.citing_id):
            return False
        if filters.as_of_year is not None and paper.year is not None and paper.year > filters.as_of_year:
            return False
        low, high = filters.year_from, filters.year_to
        if (low is not None or high is not None) and (
            paper.year is None or paper.year < (low or 0) or (high is not None and paper.year > high)
        ):
            return False
        known = -1 if paper.citation_count is None else paper.citation_count
        if filters.min_citations is not None and known < filters.min_citations:
            return False
        if filters.fields or filters.venues:
            return paper.paper_id in self._ids_of(Filters(fields=filters.fields, venues=filters.venues))
        return True
