"""Papers by their authors: those whom the sentence names, and those of the citing paper, who often cite themselves."""

from collections.abc import Collection

import numpy as np

from citerec.contexts.topic import Topic, names_before
from citerec.index.columns import Mask, Rows, hashes_of
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Candidates, Retriever, check_asked
from citerec.settings import PartSettings, Weight


class AuthorSettings(PartSettings):
    """What papers score for their authors.

    Attributes:
        named: For those whose last names stand right before the marker; less, the more papers have them.
        own: For two authors of the citing paper, if it is known; half of it for one.
    """

    named: Weight = 1.0
    own: Weight = 0.5


class AuthorRetriever(Retriever):
    """Finds papers of the authors whom the sentence names right before its marker, and of those of the citing paper.

    Which of them fits the sentence is for the other lists to say. Its scores mean the same for all topics, so a fusion
    takes them as they are.
    """

    name = "authors"
    label = "authors"
    Settings = AuthorSettings
    filters_itself = True

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None) -> Candidates:
        """The k best papers; none where no author is named or known."""
        check_asked(topic, k)
        passing, names = self.index.rows.passing(filters), names_before(topic)
        named, counts = self._papers(1, names, passing)
        shares = counts / max(len(names), 1)
        of_named = self.settings.named * shares / (1 + np.log10(max((shares == shares.max(initial=0)).sum(), 1)))
        own, counts = self._papers(0, topic.citing_authors, passing)
        of_own = self.settings.own * np.minimum(counts, 2) / 2
        rows, places = np.unique(np.concatenate([named, own]), return_inverse=True)
        scores = np.bincount(places, np.concatenate([of_named, of_own]), len(rows)).astype(float)
        rows, scores = rows[scores > 0], scores[scores > 0]
        return Candidates(self.index.rows, rows, scores, {self.name: scores}, are_shares=True).in_order()[:k]

    def _papers(self, column: int, names: Collection[str], passing: Mask) -> tuple[Rows, Rows]:
        """The papers that pass and have authors of some names, and how many of these each has, (papers,) both."""
        columns = self.index.rows.columns
        places = np.flatnonzero(np.isin(columns.authors[:, column], hashes_of(names)))
        rows = np.searchsorted(columns.author_begins, places, "right") - 1
        rows, counts = np.unique(rows[passing[rows]], return_counts=True)
        return rows, counts
