"""An open index, which every retriever gets."""

import difflib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.corpus.values import LAST_YEAR
from citerec.errors import FilterError, JavaError, SearchError
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.candidates import Candidate, Candidates
from citerec.retrieve.describe import histogram
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.rows import PaperRows
from citerec.retrieve.staging import LUCENE, open_store
from citerec.retrieve.steady import read_steadily

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.base import Retriever
    from citerec.retrieve.candidates import Rows
    from citerec.retrieve.columns import PaperColumns
    from citerec.retrieve.lucene import LuceneRetriever

_NAMED_FIELDS = 25
_USUAL_K = 10
_KEPT_RECORDS = 1 << 15  # some 30 MB


class OpenIndex:
    """An index directory, open for searching. Safe to use from several threads.

    It always opens Lucene, because filters and sort orders need it. Without Java, only what needs Lucene fails.

    Attributes:
        holds: What it holds, for errors.
    """

    holds: ClassVar[str] = "papers of the index"

    def __init__(
        self, path: Path, manifest: Manifest, store: PaperStore, lucene: "LuceneRetriever | JavaError"
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.store = store
        self.rows = PaperRows.open(path / LUCENE) if isinstance(lucene, JavaError) else lucene.rows
        if self.rows.columns is None:  # of an older index
            self.rows.columns = self._columns
        self._lucene = lucene
        self._records: dict[str, Paper] = {}
        self._matching_rows = functools.lru_cache(8)(lambda filters: self.lucene.matching_rows(filters))

    @property
    def lucene(self) -> "LuceneRetriever":
        """Searches its words; raises JavaError if there is no Java runtime that can run Lucene."""
        if isinstance(self._lucene, JavaError):
            raise self._lucene
        return self._lucene

    @property
    def explaining(self) -> "Sequence[Retriever]":
        """What says which words of a candidate match, whatever found it."""
        return [self.lucene]

    @property
    def most_hits(self) -> int:
        """How many hits a search has at most."""
        return self.manifest.counts.papers

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

    def _columns(self, rows: "Rows") -> "PaperColumns":
        """What is known of some papers, by their records."""
        from citerec.retrieve.columns import columns_of

        ids = self.rows.paper_ids(rows)
        records = self.records(ids)
        return columns_of(records.get(paper_id) or Paper(paper_id) for paper_id in ids)

    def find(self, words: str, filters: Filters = NO_FILTERS, *, limit: int, offset: int = 0) -> list[str]:
        """A page of a list of papers, as ids: those that share a word, best first; without words all, by id.

        Raises:
            FilterError: A filter is out of range, or names a field that the index lacks.
            QueryError: The words are too many, or only punctuation and stop words.
        """
        import numpy as np

        self.check_filters(filters)
        if words:
            found = self.lucene.search(Topic(words), offset + limit, filters)
            return list(found[offset:].paper_ids())
        rows = np.arange(self.manifest.counts.papers) if filters == NO_FILTERS else self._matching_rows(filters)
        return list(self.rows.paper_ids(rows[offset : offset + limit]))

    def number_of_hits(self, k: int | None) -> int:
        """k, or if it is None the usual number, at most `most_hits`.

        Raises:
            FilterError: k is under 1 or over `most_hits`.
        """
        most = self.most_hits
        if k is None:
            return min(_USUAL_K, most)
        if k < 1:
            raise FilterError(f"-k {k} asks for no paper", "Ask for at least one: -k 10")
        if k > most:
            raise FilterError(f"-k {k:,} is more than the {most:,} {self.holds}", f"Ask for at most -k {most}")
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
            self._check_field(name)

    def _check_field(self, name: str) -> None:
        if self.matches_nothing(Filters(fields=(name,))):
            raise FilterError(f"the index has no field of study {name!r}", self._suggestion(name))

    def matches_nothing(self, filters: Filters) -> bool:
        """Whether no paper passes some filters."""
        return self.lucene.matches_nothing(filters)

    def _suggestion(self, name: str) -> str:
        known = {str(field).casefold(): str(field) for field in histogram(self.store, "fields_of_study")}
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

        from citerec.retrieve.dense.vectors import passing_rows

        try:
            if isinstance(candidates, Candidates):
                found = candidates
            else:
                found = Candidates.of(self._rows_for(candidates), candidates)
        except KeyError as error:
            raise SearchError(
                f"the retriever {name} found {error.args[0]!r}, which is not in the index",
                "It must return ids of the index that it was opened on.",
            ) from None
        if not len(found):
            return found
        found = found.in_order()
        _, firsts = np.unique(found.rows, return_index=True)
        found = found.taken(np.sort(firsts))
        if filters == NO_FILTERS:
            return found
        assert found.papers.columns is not None

        def matching(fields: tuple[str, ...], venues: tuple[str, ...]) -> "Rows":
            return np.flatnonzero(self._in_fields_and_venues(found, Filters(fields=fields, venues=venues)))

        known = found.papers.columns(found.rows)
        passing = passing_rows(filters, known.years, known.citation_counts, matching)
        hidden = [*filters.exclude, *filters.citing_ids]
        passing &= ~np.isin(found.rows, found.papers.rows(hidden))
        return found.taken(np.flatnonzero(passing))

    def _rows_for(self, _candidates: Sequence[Candidate]) -> PaperRows:
        """The papers of which the columns of some candidates are rows."""
        return self.rows

    def _in_fields_and_venues(self, found: Candidates, filters: Filters) -> "NDArray[np.bool_]":
        """Which candidates pass the filters by field of study and venue, (candidates,)."""
        import numpy as np

        return np.isin(found.rows, self._matching_rows(filters))

    def with_same_rows(self, lists: Mapping[str, Candidates]) -> Mapping[str, Candidates]:
        """Several lists, by retriever, as rows of the same papers."""
        return lists

    def ids_of(self, papers: Sequence[Paper]) -> Mapping[str, str]:
        """Ids in the index of papers from elsewhere, by their ids there; those that it lacks are left out."""
        from citerec.retrieve.titles import papers_of_index

        return papers_of_index({paper.paper_id: paper for paper in papers}, self.path, self.store)
