"""An open index, which every retriever gets."""

import difflib
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from citerec.corpus.store import PaperStore
from citerec.corpus.values import LAST_YEAR
from citerec.errors import FilterError, JavaError, SearchError
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.candidates import Candidate, Candidates
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.rows import PaperRows
from citerec.retrieve.staging import LUCENE, open_store
from citerec.retrieve.steady import read_steadily

if TYPE_CHECKING:
    from citerec.retrieve.lucene import LuceneRetriever

_NAMED_FIELDS = 25
_USUAL_K = 10
_KEPT_RECORDS = 1 << 15  # some 30 MB


class OpenIndex:
    """An index directory, open for searching. Safe to use from several threads.

    It always opens Lucene, because filters and sort orders need it. Without Java, only what needs Lucene fails.
    """

    def __init__(
        self, path: Path, manifest: Manifest, store: PaperStore, lucene: "LuceneRetriever | JavaError"
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.store = store
        self.rows = PaperRows.open(path / LUCENE) if isinstance(lucene, JavaError) else lucene.rows
        self._lucene = lucene
        self._records: dict[str, Paper] = {}
        self._matching_rows = functools.lru_cache(8)(lambda filters: self.lucene.matching_rows(filters))

    @property
    def lucene(self) -> "LuceneRetriever":
        """Searches its words; raises JavaError if there is no Java runtime that can run Lucene."""
        if isinstance(self._lucene, JavaError):
            raise self._lucene
        return self._lucene

    @classmethod
    def open(cls, index: str | Path, lucene_settings: Any = None) -> Self:
        """Opens an index directory; words are searched with the settings of the retriever `lucene`.

        Raises:
            IndexUnusableError: There is none, or it is half built, broken, or of another version.
        """
        path = Path(index)
        return read_steadily(path, lambda: cls._open(path, lucene_settings), cls.close)

    @classmethod
    def _open(cls, path: Path, lucene_settings: Any) -> Self:
        from citerec.retrieve.lucene import LuceneRetriever

        manifest = Manifest.read(path)
        store = open_store(path)
        try:
            try:
                lucene: LuceneRetriever | JavaError = LuceneRetriever(path / LUCENE, lucene_settings)
            except JavaError as error:
                lucene = error
            return cls(path, manifest, store, lucene)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Closes the index's files."""
        if not isinstance(self._lucene, JavaError):
            self._lucene.close()
        self.store.close()

    def records(self, paper_ids: Sequence[str]) -> dict[str, Paper]:
        """Records without texts, by id. Many contexts find the same papers: these are read once."""
        known = self._records
        found = {paper_id: known[paper_id] for paper_id in paper_ids if paper_id in known}
        if missing := [paper_id for paper_id in paper_ids if paper_id not in found]:
            read = self.store.papers(missing, texts=False)
            if len(self._records) > _KEPT_RECORDS:
                self._records = {}  # a new one: other threads go on with the old one
            self._records.update(read)
            found |= read
        return found

    def number_of_hits(self, k: int | None) -> int:
        """k, or if it is None the usual number, at most the number of papers of the index.

        Raises:
            FilterError: k is under 1 or over the number of papers.
        """
        papers = self.manifest.counts.papers
        if k is None:
            return min(_USUAL_K, papers)
        if k < 1:
            raise FilterError(f"-k {k} asks for no paper", "Ask for at least one: -k 10")
        if k > papers:
            raise FilterError(
                f"-k {k:,} is more than the {papers:,} papers of the index", f"Ask for at most -k {papers}"
            )
        return k

    def check_filters(self, filters: Filters) -> None:
        """Checks that the filters make sense, and name fields of study that the index has.

        Raises:
            FilterError: A range is reversed, a number is negative, or a field is unknown.
        """
        low, high = filters.year_from, filters.year_to
        for year in (low, high):
            if year is not None and not 0 <= year <= LAST_YEAR:
                raise FilterError(f"{year} is not a year", "Give years such as 1998.")
        if low is not None and high is not None and low > high:
            raise FilterError(f"the years {low} to {high} are reversed", f"Write --year-from {high} --year-to {low}")
        if filters.min_citations is not None and not 0 <= filters.min_citations < 2**31:
            raise FilterError(f"--min-citations {filters.min_citations} is out of range", "Give a number from 0.")
        for name in filters.fields:
            if self.lucene.matches_nothing(Filters(fields=(name,))):
                raise FilterError(f"the index has no field of study {name!r}", self._suggestion(name))

    def _suggestion(self, name: str) -> str:
        known = {str(field).casefold(): str(field) for field in self.store.histogram("fields_of_study")}
        if not known:
            return "Its papers name no fields at all: leave --field out."
        near = difflib.get_close_matches(name.casefold(), known, n=1)
        if near:
            return f"Did you mean {known[near[0]]!r}?"
        return f"It has: {', '.join(list(known.values())[:_NAMED_FIELDS])}."

    def permitted(self, name: str, candidates: Sequence[Candidate], filters: Filters) -> Candidates:
        """The candidates of a retriever that pass the filters, each once, best first, ties by paper id.

        Raises:
            SearchError: A candidate is not a paper of the index.
        """
        import numpy as np

        try:
            found = Candidates.of(self.rows, candidates).in_order()
        except KeyError as error:
            raise SearchError(
                f"the retriever {name} found {error.args[0]!r}, which is not in the index",
                "It must return ids of the index that it was opened on.",
            ) from None
        _, firsts = np.unique(found.rows, return_index=True)
        found = found.taken(np.sort(firsts))
        if filters == NO_FILTERS:
            return found
        papers = self.records(found.paper_ids())
        passes = np.array([self._passes(papers[paper_id], filters) for paper_id in found.paper_ids()], bool)
        if filters.fields or filters.venues:
            passes &= np.isin(found.rows, self._matching_rows(Filters(fields=filters.fields, venues=filters.venues)))
        return found.taken(np.flatnonzero(passes))

    @staticmethod
    def _passes(paper: Paper, filters: Filters) -> bool:
        """Whether a paper passes all filters but those by field of study and venue."""
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
        return filters.min_citations is None or known >= filters.min_citations
