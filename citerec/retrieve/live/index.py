"""What takes the place of an index where systems ask web services only."""

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from citerec.corpus.store import SqliteStore, changes_of
from citerec.index.columns import PaperRows, columns_of
from citerec.index.filters import passing
from citerec.index.manifest import IndexCounts, Manifest
from citerec.index.words.analysis import terms_of
from citerec.records import Filters, Paper
from citerec.retrieve.candidates import Candidate, Candidates
from citerec.retrieve.opened import OpenIndex
from citerec.sources.look_up import live_folder
from citerec.version import __version__


class LiveIndex(OpenIndex):
    """The papers that services have listed so far, in memory. Safe to use from several threads.

    The papers are not known before they are listed. So the rows of an answer are the ranks of its ids among its own
    papers, not among all papers of an index.
    """

    holds: ClassVar[str] = "papers that a service lists at most"

    def __init__(self) -> None:
        self.path = self.folder = live_folder()
        self.manifest = Manifest(
            citerec=__version__,
            engine="",
            fingerprint="",
            counts=IndexCounts(*[0] * len(fields(IndexCounts))),
            sources=[],
            checksums={},
        )
        self.store = SqliteStore(Path(":memory:"))
        self.rows = _rows({})
        self._records = {}
        self._lock = threading.Lock()

    @functools.cached_property
    def words(self) -> None:
        """Nothing: retrievers explain what they found themselves."""
        return None

    @property
    def most_hits(self) -> int:
        """How many papers services list for one query."""
        return 1000

    def close(self) -> None:
        """Forgets the papers."""
        self.store.close()

    def ids_of(self, papers: Sequence[Paper]) -> Mapping[str, str]:
        """Takes in papers from elsewhere; their ids stay."""
        with self._lock:
            self.store.write(changes_of(papers))
        return {paper.paper_id: paper.paper_id for paper in papers}

    def matches_nothing(self, _filters: Filters) -> bool:
        """False: nobody knows."""
        return False

    def with_same_rows(self, lists: Mapping[str, Candidates]) -> Mapping[str, Candidates]:
        """Several lists, by retriever, as rows of all their papers."""
        ids = {name: found.paper_ids() for name, found in lists.items()}
        rows = self._rows_of([paper_id for each in ids.values() for paper_id in each])
        return {name: replace(found, papers=rows, rows=rows.rows(ids[name])) for name, found in lists.items()}

    def _rows_for(self, candidates: Sequence[Candidate]) -> PaperRows:
        return self._rows_of([candidate.paper_id for candidate in candidates])

    def _rows_of(self, paper_ids: Sequence[str]) -> PaperRows:
        return _rows(self.store.papers(dict.fromkeys(paper_ids)))

    def _passing(self, found: Candidates, filters: Filters) -> NDArray[np.bool_]:
        venues = {paper.venue for paper in self.records(found.paper_ids()).values() if paper.venue}
        mask = passing(filters, found.papers.known.of(found.rows), {name: terms_of(name) for name in venues})
        hidden = {*filters.exclude, *filters.citing_ids}
        mask &= np.array([paper_id not in hidden for paper_id in found.paper_ids()], bool)
        return mask


def _rows(papers: Mapping[str, Paper]) -> PaperRows:
    ids = sorted(papers, key=str.encode)
    known = columns_of(papers[paper_id] for paper_id in ids)
    return PaperRows(np.array([paper_id.encode() for paper_id in ids], np.bytes_), known)
