"""The engine without Java: BM25 by numpy over memory-mapped files."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import Topic, clean
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.arrays import Mask, places_in
from citerec.index.base import ABSTRACT, CITANCES, PAPERS, TEXT, TITLE, WORDS, Layout, Words, WordSettings
from citerec.index.candidates import Candidates, Floats
from citerec.index.columns import sentences_of
from citerec.index.hits import DEPTH, Hits, added_up
from citerec.index.words.analysis import analysis_of, no_word, term_weights
from citerec.index.words.postings import Bm25, Postings, PostingsWriter, best_rows
from citerec.records import Filters

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex

_PART = 20_000  # texts whose postings are made in memory
_YEARS = 64
_ROUNDING = 1e-6


class EmbeddedWords(Words):
    """BM25 by numpy, without Java: for an index of up to some millions of papers.

    Every citing sentence is scored, and masked by its own year and citing paper.
    """

    name = "embedded"

    @classmethod
    def write(
        cls, folder: Path, _before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        writers, done = {name: PostingsWriter(folder / WORDS / name) for name in layout.fields[PAPERS]}, 0
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
            writer, done = PostingsWriter(folder / WORDS / CITANCES), 0
            for part in in_parts(itertools.chain.from_iterable(sentences_of(store)), _PART):
                writer.append(analysis_of([clean(one.text) for one in part]))
                done += len(part)
                on_progress("indexing citing sentences", done, counts.citances)
            writer.finish()
        return ""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        super().__init__(index, settings)
        folder, names = index.folder / WORDS, [*self._fields[PAPERS], *[CITANCES] * self._adds_citances]
        for name in names:
            if name not in index.parts:
                index.parts[name] = Postings(folder / name)
        bm25 = Bm25(settings.bm25.k1, settings.bm25.b)
        self._postings: dict[str, Postings] = {name: index.parts[name].with_parameters(bm25) for name in names}
        counts = dict.fromkeys(names, len(self._rows))
        if self._adds_citances:
            assert index.rows.citing is not None
            self._citing = index.rows.citing
            self._begins = self._citing.sentence_begins[self._citing.begins]  # of the sentences about each paper
            self._cited = np.flatnonzero(np.diff(self._begins))
            self._firsts, self._counts = self._begins[self._cited], np.diff(self._begins)[self._cited]
            self._known = functools.lru_cache(_YEARS)(self._known_in)
            counts[CITANCES] = int(self._begins[-1])
        if any(self._postings[name].count != counts[name] for name in names):
            raise IndexUnusableError(f"{folder} is damaged: its files are of other papers", "Build the index again.")

    def _known_in(self, year: int | None) -> Mask:
        """Which sentences may be known in a year, (sentences,)."""
        return np.repeat(self._citing.known(Filters(as_of_year=year)), np.diff(self._citing.sentence_begins))

    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        terms = term_weights(self.settings, topic)
        if not terms:
            raise no_word(topic)
        scores = np.zeros(len(self._rows), np.float32)
        for name, weight in self._fields[PAPERS].items():
            self._postings[name].add(scores, terms, weight)
        passing = self._filter.passing(filters)
        scores *= passing
        if sort == "relevance" and self._adds_citances:
            return self._with_sentences(scores, passing, terms, k, filters)
        if sort == "relevance":
            rows = best_rows(scores, k)
        else:
            rows = np.flatnonzero(scores)
            rows = rows[self._filter.in_order(sort, rows, scores[rows])][:k]
        found = scores[rows].astype(np.float64)
        return Candidates(self._rows, rows, found, {"bm25": found})

    def _with_sentences(
        self, words: NDArray[np.float32], passing: Mask, terms: Mapping[str, float], k: int, filters: Filters
    ) -> Candidates:
        """The k best papers by words and sentences.

        Args:
            words: The scores of the papers' own words, (papers,); 0 for papers that do not pass the filters.
            passing: Which papers pass them, (papers,).
            terms: The terms of the topic, with their weights.
            k: How many papers.
            filters: The filters.
        """
        weight, decay = self.settings.weights.citances, self.settings.citance_decay
        scores = np.zeros(int(self._begins[-1]), np.float32)
        self._postings[CITANCES].add(scores, terms)
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
        rows = np.union1d(self._cited[reached], first)
        rows = rows[words[rows] > 0]
        _, said = places_in(self._begins, self._cited[reached])
        said = said[scores[said] > 0]
        said = said[np.lexsort((said, -scores[said]))]
        top = best_rows(scores, DEPTH)
        return added_up(
            self._rows,
            Hits(rows, words[rows].astype(np.float64), rows),
            Hits(np.searchsorted(self._begins, said, "right") - 1, scores[said].astype(np.float64), said),
            (weight, decay),
            lambda hit: self._citing.sentence(int(said[hit])),
            float(scores[top[-1]]) if len(top) else 0.0,
        )[:k]

    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> Floats:
        if kind == PAPERS:
            return self._postings[field].scores_of(self._rows.rows(keys), terms).astype(float)
        cited, citing, positions = zip(*(key.split(" ") for key in keys), strict=True)
        said = zip(self._rows.rows(cited).tolist(), citing, map(int, positions), strict=True)
        rows = np.array([self._citing.sentence_row(*one) for one in said], np.int64)
        return self._postings[CITANCES].scores_of(rows, terms).astype(float)
