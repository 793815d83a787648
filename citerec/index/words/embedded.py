"""The engine without Java: BM25 by numpy over memory-mapped files."""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.contexts.topic import Topic, clean
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.base import ABSTRACT, CITANCES, PAPERS, TEXT, TITLE, Engine, Layout, WordSettings
from citerec.index.candidates import Candidates
from citerec.index.columns import places_in
from citerec.index.hits import DEPTH, ExplainedWords, Hits, added_up
from citerec.index.rows import sentences_of
from citerec.index.words.analysis import analysis_of, term_weights
from citerec.index.words.postings import Bm25, Postings, PostingsWriter, best_rows
from citerec.index.words.texts import no_word
from citerec.records import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.opened import OpenIndex

    Floats = NDArray[np.float32]

_PART = 20_000  # texts whose postings are made in memory
_YEARS = 64
_ROUNDING = 1e-6


class Embedded(Engine):
    """BM25 by numpy, without Java: for an index of up to some millions of papers."""

    name = "embedded"
    FOLDER = "words"

    @classmethod
    def write(
        cls, folder: Path, _before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        folder = folder / cls.FOLDER
        names = (TEXT, TITLE, ABSTRACT) if layout.abstract_field else (TEXT, TITLE)
        writers, done = {name: PostingsWriter(folder / name) for name in names}, 0
        for papers in in_parts(store.all_papers(), _PART):
            both = analysis_of([*(one.title for one in papers), *(one.abstract or "" for one in papers)])
            title, abstract = both.split(len(papers))
            pieces = {TEXT: (title, abstract), TITLE: (title,), ABSTRACT: (abstract,)}
            for name, writer in writers.items():
                writer.append(*pieces[name])
            done += len(papers)
            on_progress("indexing papers", done, counts.papers)
        for writer in writers.values():
            writer.finish()
        if counts.citances:
            writer, done = PostingsWriter(folder / CITANCES), 0
            for part in in_parts(itertools.chain.from_iterable(sentences_of(store)), _PART):
                writer.append(analysis_of([clean(one.text) for one in part]))
                done += len(part)
                on_progress("indexing citing sentences", done, counts.citances)
            writer.finish()
        return ""

    @classmethod
    def open(cls, index: "OpenIndex", settings: WordSettings) -> "EmbeddedWords":
        return EmbeddedWords(index, settings)


class EmbeddedWords(ExplainedWords):
    """The words of an index, by numpy. Every citing sentence is scored, and masked by its own year and citing paper."""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        super().__init__(index, settings)
        folder = index.folder / Embedded.FOLDER
        bm25 = Bm25(settings.bm25.k1, settings.bm25.b)

        def opened(name: str) -> Postings:
            if name not in index.parts:
                index.parts[name] = Postings(folder / name)
            postings: Postings = index.parts[name]
            return postings.with_parameters(bm25)

        self._postings = {name: opened(name) for name in self._fields[PAPERS]}
        self._sentences = _Sentences(opened(CITANCES), index) if self._adds_citances else None
        if any(postings.count != len(self._rows) for postings in self._postings.values()):
            raise IndexUnusableError(f"{folder} is damaged: its files are of other papers", "Build the index again.")

    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        import numpy as np

        terms = term_weights(self.settings, topic)
        if not terms:
            raise no_word(topic)
        scores = np.zeros(len(self._rows), np.float32)
        for name, weight in self._fields[PAPERS].items():
            self._postings[name].add(scores, terms, weight)
        passing = self._filter.passing(filters)
        scores *= passing
        if sort == "relevance" and self._sentences is not None:
            return self._sentences.added_up(scores, passing, terms, k, self.settings, filters)
        if sort == "relevance":
            rows = best_rows(scores, k)
        else:
            rows = np.flatnonzero(scores)
            rows = rows[self._filter.in_order(sort, rows, scores[rows])][:k]
        found = scores[rows].astype(np.float64)
        return Candidates(self._rows, rows, found, {"bm25": found})

    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> "NDArray[np.float64]":
        if kind == PAPERS:
            return self._postings[field].scores_of(self._rows.rows(keys), terms).astype(float)
        assert self._sentences is not None
        return self._sentences.scores_of(keys, terms).astype(float)


class _Sentences:
    """The citing sentences of an index, scored."""

    def __init__(self, postings: Postings, index: "OpenIndex") -> None:
        import numpy as np

        assert index.rows.citing is not None
        self._postings, self._papers, self._citing = postings, index.rows, index.rows.citing
        begins = self._citing.sentence_begins[self._citing.begins]
        self._cited = np.flatnonzero(np.diff(begins))
        self._begins, self._firsts, self._counts = begins, begins[self._cited], np.diff(begins)[self._cited]
        self._known = functools.lru_cache(_YEARS)(self._known_in)
        if postings.count != int(begins[-1]):
            raise IndexUnusableError("the citing sentences are of other papers", "Build the index again.")

    def scores_of(self, keys: Sequence[str], terms: Sequence[str]) -> "Floats":
        """The scores of some terms in some sentences, (keys, terms)."""
        import numpy as np

        cited, citing, positions = zip(*(key.split(" ") for key in keys), strict=True)
        said = zip(self._papers.rows(cited).tolist(), citing, map(int, positions), strict=True)
        rows = [self._citing.sentence_row(row, citing_id, position) for row, citing_id, position in said]
        return self._postings.scores_of(np.array(rows, np.int64), terms)

    def added_up(
        self,
        words: "Floats",
        passing: "NDArray[np.bool_]",
        terms: dict[str, float],
        k: int,
        settings: WordSettings,
        filters: Filters,
    ) -> Candidates:
        """The k best papers by words and sentences.

        Args:
            words: The scores of the papers' own words, (papers,); 0 for papers that do not pass the filters.
            passing: Which papers pass them, (papers,).
            terms: The terms of the topic, with their weights.
            k: How many papers.
            settings: The weight and the decay of the sentences.
            filters: The filters.
        """
        import numpy as np

        weight, decay = settings.weights.citances, settings.citance_decay
        scores = np.zeros(self._postings.count, np.float32)
        self._postings.add(scores, terms)
        scores *= self._known(filters.as_of_year)
        if filters.citing_ids:
            sentence_begins = self._citing.sentence_begins
            for pair in np.flatnonzero(~self._citing.known(Filters(citing_ids=filters.citing_ids))):
                scores[sentence_begins[pair] : sentence_begins[pair + 1]] = 0
        best = np.maximum.reduceat(scores, self._firsts) * passing[self._cited]
        # A paper scores at least its best sentence, and at most as if all of its sentences were as good.
        most = (1 - decay**self._counts) / (1 - decay) if decay < 1 else self._counts
        least = words.copy()
        least[self._cited] += np.float32(weight) * best
        first = best_rows(least, k)
        bound = 0
        if len(first) == k:
            bound = least[first[-1]] * (1 - _ROUNDING)  # so that the first do not depend on k
            first = np.flatnonzero(least >= bound)
        reached = (best > 0) & (words[self._cited] + weight * best * most >= bound)
        cited = self._cited[reached]
        rows = np.union1d(cited, first)
        rows = rows[words[rows] > 0]
        _, said = places_in(self._begins, cited)
        said = said[scores[said] > 0]
        said = said[np.lexsort((said, -scores[said]))]
        top = best_rows(scores, DEPTH)
        return added_up(
            self._papers,
            Hits(rows, words[rows].astype(np.float64)),
            Hits(np.searchsorted(self._begins, said, "right") - 1, scores[said].astype(np.float64), said),
            (weight, decay),
            lambda hit: self._citing.sentence(int(said[hit])),
            float(scores[top[-1]]) if len(top) else 0.0,
        )[:k]

    def _known_in(self, year: int | None) -> "NDArray[np.bool_]":
        """Which sentences may be known in a year, (sentences,)."""
        import numpy as np

        return np.repeat(self._citing.known(Filters(as_of_year=year)), np.diff(self._citing.sentence_begins))
