"""An open index, which every retriever gets."""

import contextlib
import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from citerec.contexts.topic import Topic
from citerec.corpus.matching import LEAST_ALIKE, alike, similarity
from citerec.corpus.reading import LAST_YEAR
from citerec.corpus.store import PaperStore
from citerec.errors import FilterError, JavaError, QueryError, SearchError, ServiceError
from citerec.index.base import ENGINES, Engine
from citerec.index.columns import PaperRows
from citerec.index.manifest import Manifest, generation_of, open_store, opened
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.base import Candidate, Candidates
from citerec.retrieve.words import Weights, WordSettings, WordsRetriever

_NAMED_FIELDS = 25
_USUAL_K = 10
_KEPT_RECORDS = 1 << 15  # some 30 MB


class OpenIndex:
    """An index directory, open for searching. Safe to use from several threads.

    Attributes:
        holds: What it holds, for errors.
        path: The directory.
        folder: The folder of its generation, whose files it has opened.
        manifest: Its manifest.
        store: The records of its papers.
        rows: The ids of its papers, what is known of them, and which pass filters.
        most_hits: How many hits a search has at most.
    """

    holds: ClassVar[str] = "papers of the index"

    def __init__(self, path: Path, manifest: Manifest, store: PaperStore, settings: WordSettings) -> None:
        self.path, self.folder = path, generation_of(path)
        self.manifest = manifest
        self.store = store
        self.rows, self.most_hits = PaperRows.open(self.folder), manifest.counts.papers
        self._settings = settings
        self._records: dict[str, Paper] = {}

    @functools.cached_property
    def engine(self) -> Engine:
        """What searches its words.

        Raises:
            JavaError: It is Lucene, and there is no Java runtime that can run it.
            ServiceError: It is Qdrant, and its server cannot be reached.
        """
        return ENGINES[self.manifest.engine](self.folder, self.manifest, self.rows)

    @functools.cached_property
    def words(self) -> WordsRetriever | None:
        """Its words, searched with the settings of the system; None if there are none. Errors as for `engine`."""
        return WordsRetriever(self, self._settings)

    @classmethod
    def open(cls, index: str | Path, settings: WordSettings | None = None) -> Self:
        """Opens an index directory; its words are searched with the given settings, by default the usual ones.

        Raises:
            IndexUnusableError: There is none, or it is half built, broken, or of another version.
        """
        path = Path(index)
        return opened(path, lambda: cls._open(path, settings or WordSettings()), cls.close)

    @classmethod
    def _open(cls, path: Path, settings: WordSettings) -> Self:
        manifest, store = Manifest.read(path), open_store(path)
        try:
            index = cls(path, manifest, store, settings)
            with contextlib.suppress(JavaError, ServiceError):  # what does not need the words works without them
                _ = index.engine  # all files are of the generation that is current now
        except BaseException:
            store.close()
            raise
        return index

    def close(self) -> None:
        """Closes the index's files."""
        if "engine" in vars(self):
            self.engine.close()
        self.store.close()

    def records(self, paper_ids: Sequence[str]) -> dict[str, Paper]:
        """Records without texts, by id. Many contexts find the same papers: these are read once."""
        cache = self._records
        records = {paper_id: cache[paper_id] for paper_id in paper_ids if paper_id in cache}
        if missing := [paper_id for paper_id in paper_ids if paper_id not in records]:
            read = self.store.papers(missing, texts=False)
            if len(self._records) > _KEPT_RECORDS:
                self._records = {}  # a new one: other threads go on with the old one
            self._records.update(read)
            records |= read
        return records

    def find(self, words: str, filters: Filters = NO_FILTERS, *, limit: int, offset: int = 0) -> list[str]:
        """A page of a list of papers, as ids: those that share a word, best first; without words all, by id.

        Raises:
            FilterError: A filter is out of range, or names a field that the index lacks.
            QueryError: The words are too many, or only punctuation and stop words.
        """
        self.check_filters(filters)
        if words and self.words is not None:
            hits = self.words.search(Topic(words), offset + limit, filters)
            return list(hits[offset:].paper_ids())
        rows = np.flatnonzero(self.rows.passing(filters))
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
            remedy = f"Exchange them: --year-from {high} --year-to {low}"
            raise FilterError(f"the years {low} to {high} are reversed", remedy)
        if filters.min_citations is not None and not 0 <= filters.min_citations < 2**31:
            raise FilterError(f"--min-citations {filters.min_citations} is out of range", "Give a number from 0.")
        for name in filters.fields:
            if self.matches_nothing(Filters(fields=(name,))):
                raise FilterError(f"the index has no field of study {name!r}", self._field_near(name))

    def matches_nothing(self, filters: Filters) -> bool:
        """Whether no paper passes some filters."""
        return not self.rows.passing(filters).any()

    def _field_near(self, name: str) -> str:
        """What to write in place of a field of study that no paper has."""
        fields = {field.casefold(): field for field in self.rows.names["fields"]}
        if not fields:
            return "Its papers name no fields at all: leave --field out."
        if near := difflib.get_close_matches(name.casefold(), fields, n=1):
            return f"Did you mean {fields[near[0]]!r}?"
        return f"It has: {', '.join(list(fields.values())[:_NAMED_FIELDS])}."

    def permitted(self, name: str, candidates: Sequence[Candidate], filters: Filters) -> Candidates:
        """The candidates of a retriever that pass the filters, each once, best first, ties by paper id.

        Raises:
            SearchError: A candidate is not a paper of the index.
        """
        try:
            if not isinstance(candidates, Candidates):
                candidates = Candidates.of(self._rows_for(candidates), candidates)
        except KeyError as error:
            raise SearchError(
                f"the retriever {name} found {error.args[0]!r}, which is not in the index",
                "It must return ids of the index that it was opened on.",
            ) from None
        hits = candidates.in_order()
        _, firsts = np.unique(hits.rows, return_index=True)
        hits = hits.taken(np.sort(firsts))
        if filters == NO_FILTERS:
            return hits
        return hits.taken(np.flatnonzero(hits.papers.passing(filters)[hits.rows]))

    def _rows_for(self, _candidates: Sequence[Candidate]) -> PaperRows:
        """The papers of which the columns of some candidates are rows."""
        return self.rows

    def with_same_rows(self, lists: Mapping[str, Candidates]) -> Mapping[str, Candidates]:
        """Several lists, by retriever, as rows of the same papers."""
        return lists

    def ids_of(self, papers: Sequence[Paper]) -> Mapping[str, str]:
        """Ids in the index of papers from elsewhere, by their ids there; those that it lacks are left out."""
        return papers_of_index({paper.paper_id: paper for paper in papers}, self)


CANDIDATES = 20
"""Papers of the index that are compared with an entry: the best by BM25 of their titles."""

Search = Callable[[str], Sequence[str]]
"""Ids of the papers whose titles share most with a text, best first."""


def title_words(index: OpenIndex) -> WordsRetriever:
    """What searches the titles of an index alone."""
    return WordsRetriever(index, WordSettings(weights=Weights(text=0, title=1, abstract=0, citances=0)))


def title_search(index: OpenIndex) -> Search:
    """A search for titles in an index."""
    words = title_words(index)

    def search(text: str) -> list[str]:
        try:
            return list(words.search(Topic(text), CANDIDATES, NO_FILTERS).paper_ids())
        except QueryError:
            return []  # no word in it

    return search


def papers_of_index(entries: Mapping[str, Paper], index: OpenIndex) -> dict[str, str]:
    """Ids in an index of records from elsewhere, by their keys there; those that the index lacks are left out.

    An entry is the paper whose id is its key, or which has its DOI, or its title, a shared author and nearly its
    year (`citerec.corpus.matching`). An entry without a title is an id.
    """
    own = index.store.papers(entries)
    ids: dict[str, str] = {}
    search = title_search(index)
    for key, entry in entries.items():
        same_id = own.get(key)
        if same_id and (not entry.title or similarity(entry.title, same_id.title) >= LEAST_ALIKE):
            ids[key] = key
        elif entry.title and (paper_id := nearest(entry.title, partial(alike, entry), search, index.store)):
            ids[key] = paper_id
    return ids


def nearest(text: str, rate: Callable[[Paper], float], search: Search, store: PaperStore) -> str | None:
    """The id of the paper that is rated highest among those that a search finds for a text; None if all are 0."""
    ids = search(text)
    papers = store.papers(ids, texts=False)
    scored = [(rate(papers[paper_id]), paper_id) for paper_id in ids if paper_id in papers]
    score, paper_id = max(scored, key=lambda each: each[0], default=(0.0, ""))  # the first of several
    return paper_id if score else None
