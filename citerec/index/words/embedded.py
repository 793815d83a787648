"""The engine without Java: BM25 by numpy over memory-mapped files."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import clean
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index import base
from citerec.index.arrays import Mask, places_in
from citerec.index.columns import sentences_of
from citerec.index.manifest import Layout
from citerec.index.words.analysis import analysis_of, term_weights
from citerec.index.words.postings import Postings, PostingsWriter, best_rows
from citerec.records import Filters

_PART = 20_000  # texts whose postings are made in memory
_KEPT = 64  # masks of years, and postings with other parameters
_ROUNDING = 1e-6


class EmbeddedWords(base.Engine):
    """BM25 by numpy, without Java: for an index of up to some millions of papers.

    Every citing sentence is scored, and masked by its own year and citing paper.
    """

    name = "embedded"

    @classmethod
    def write(
        cls, folder: Path, _before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> None:
        writers = {name: PostingsWriter(folder / base.WORDS / name) for name in base.fields_of(layout, base.PAPERS)}
        for number, papers in enumerate(in_parts(store.all_papers(), _PART)):
            on_progress("indexing papers", number * _PART, counts.papers)
            both = analysis_of([*(one.title for one in papers), *(one.abstract or "" for one in papers)])
            title, abstract = both.split(len(papers))
            pieces = {base.TEXT: (title, abstract), base.TITLE: (title,), base.ABSTRACT: (abstract,)}
            for name, writer in writers.items():
                writer.append(*pieces[name])
        if counts.citances:
            writers[base.CITANCES] = PostingsWriter(folder / base.WORDS / base.CITANCES)
            sentences = itertools.chain.from_iterable(sentences_of(store))
            for number, part in enumerate(in_parts(sentences, _PART)):
                on_progress("indexing citing sentences", number * _PART, counts.citances)
                writers[base.CITANCES].append(analysis_of([clean(one.text) for one in part]))
        for writer in writers.values():
            writer.finish()

    def __init__(self, *index: Any) -> None:
        super().__init__(*index)
        self._postings = {name: Postings(self._folder / name) for name in base.fields_of(self._manifest, base.PAPERS)}
        counts = dict.fromkeys(self._postings, len(self._rows))
        if citing := self._rows.citing:
            self._postings[base.CITANCES] = Postings(self._folder / base.CITANCES)
            self._citing = citing
            self._begins = citing.sentence_begins[citing.begins]  # of the sentences about each paper
            self._cited = np.flatnonzero(np.diff(self._begins))
            self._firsts, self._counts = self._begins[self._cited], np.diff(self._begins)[self._cited]
            counts[base.CITANCES] = int(self._begins[-1])
        if any(self._postings[name].count != count for name, count in counts.items()):
            raise IndexUnusableError(
                f"{self._folder} is damaged: its files are of other papers", "Build the index again."
            )
        self._known = functools.lru_cache(_KEPT)(self._known_in)
        self._of_field = functools.lru_cache(_KEPT)(lambda name, k1, b: self._postings[name].with_parameters(k1, b))

    def _known_in(self, year: int | None) -> Mask:
        """Which sentences may be known in a year, (sentences,)."""
        return np.repeat(self._citing.known(Filters(as_of_year=year)), np.diff(self._citing.sentence_begins))

    def search(self, query: base.Query, k: int, filters: Filters) -> base.Found | None:
        """As `Engine.search`."""
        terms = term_weights(query.texts)
        if not terms:
            return None
        scores = np.zeros(len(self._rows), np.float32)
        for name, weight in query.fields.items():
            self._of_field(name, *query.bm25).add(scores, terms, weight)
        passing = self._papers.passing(filters)
        scores *= passing
        if query.citances:
            return self._with_sentences(scores, passing, terms, query, k, filters)
        rows = best_rows(scores, k)
        return base.Found(base.Hits(rows, scores[rows].astype(np.float64), rows))

    def _with_sentences(
        self,
        words: NDArray[np.float32],
        passing: Mask,
        terms: Mapping[str, float],
        query: base.Query,
        k: int,
        filters: Filters,
    ) -> base.Found:
        """What the k best papers by words and sentences need.

        Args:
            words: The scores of the papers' own words, (papers,); 0 for papers that do not pass the filters.
            passing: Which papers pass them, (papers,).
            terms: The terms of the query, with their weights.
            query: The weights of sentences.
            k: How many papers.
            filters: The filters.
        """
        weight, decay = query.citances, query.decay
        scores = np.zeros(int(self._begins[-1]), np.float32)
        self._of_field(base.CITANCES, *query.bm25).add(scores, terms)
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
        top = best_rows(scores, base.DEPTH)
        return base.Found(
            base.Hits(rows, words[rows].astype(np.float64), rows),
            base.Hits(np.searchsorted(self._begins, said, "right") - 1, scores[said].astype(np.float64), said),
            float(scores[top[-1]]) if len(top) else 0.0,
        )

    def sentence(self, document: Any) -> tuple[str, int]:
        """As `Engine.sentence`."""
        return self._citing.sentence(int(document))

    def term_scores(
        self, query: base.Query, kind: str, field: str, terms: Sequence[str], keys: Sequence[base.Key]
    ) -> base.Floats:
        """As `Engine.term_scores`."""
        rows = self._rows.rows([key[0] for key in keys])
        if kind == base.CITANCES:
            places = zip(rows.tolist(), keys, strict=True)
            rows = np.array([self._citing.sentence_row(row, key[1], int(key[2])) for row, key in places], np.int64)
        name = base.CITANCES if kind == base.CITANCES else field
        return self._of_field(name, *query.bm25).scores_of(rows, terms).astype(float)
