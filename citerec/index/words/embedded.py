"""The engine without Java: BM25 by numpy over memory-mapped files."""

import functools
import itertools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import clean
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress
from citerec.files.resume import read_json
from citerec.files.writing import write_json
from citerec.index import base
from citerec.index.columns import (
    Mask,
    Rows,
    begins_of,
    mapped,
    places_in,
    places_of,
    places_of_best,
    sentences_of,
    writing_arrays,
)
from citerec.index.manifest import Layout
from citerec.index.words.analysis import Analysis, analysis_of, hash_of, term_weights
from citerec.records import Filters

Floats = NDArray[np.float32]

SCORES, ROWS, BEGINS = "data.csc.index", "indices.csc.index", "indptr.csc.index"
VOCABULARY, PARAMETERS, TERMS, LENGTHS = "vocab.index.json", "params.index.json", "terms", "lengths"

_MERGED = 1 << 20  # postings that are merged at once
_MOST_TIMES = 2**16 - 1
_POSTING = np.dtype([("row", "<i4"), ("times", "<u2")])
_KEPT = 64  # masks of years, and norms for other parameters


K1, B = 1.2, 0.75
"""The parameters of BM25 of the scores in files."""
Parameters = tuple[float, float]


def norms_of(lengths: NDArray[np.int32], k1: float = K1, b: float = B) -> Floats:
    """What times of a term are weighed against in texts of some lengths: `k1 · (1 − b + b · length / mean)`.

    The mean is that of the texts that have a term at all.
    """
    mean = float(lengths.sum(dtype=np.int64)) / _having(lengths)
    return (k1 * (1 - b + b * lengths / (mean or 1.0))).astype(np.float32)


def _having(lengths: NDArray[np.int32]) -> int:
    """How many texts have a term at all, at least 1."""
    return max(1, int(np.count_nonzero(lengths)))


def inverse_frequency(count: NDArray[Any] | int, having: int) -> Floats:
    """How much a term of `count` of `having` texts tells, as in Lucene: `ln(1 + (N − df + 0.5) / (df + 0.5))`."""
    return np.log1p((having - count + 0.5) / (count + 0.5)).astype(np.float32)


class Postings:
    """The scores of the terms of a field, memory-mapped. Safe to use from several threads.

    Scores for other parameters are made from those in the files when they are asked for, which takes longer.

    Args:
        folder: The folder of the files.
        count: How many texts there are to be.

    Raises:
        IndexUnusableError: The files do not fit together, or are of another number of texts.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._terms: NDArray[np.uint64] = mapped(folder / f"{TERMS}.npy")
        self._begins: Rows = mapped(folder / f"{BEGINS}.npy")
        self._rows: NDArray[np.int32] = mapped(folder / f"{ROWS}.npy")
        self._scores: Floats = mapped(folder / f"{SCORES}.npy")
        self._lengths: NDArray[np.int32] = mapped(folder / f"{LENGTHS}.npy")
        sizes = {len(self._rows), len(self._scores), *self._begins[-1:]}
        counts = {count, len(self._lengths), (read_json(folder / PARAMETERS) or {}).get("num_docs")}
        if len(self._begins) != len(self._terms) + 1 or len(sizes) > 1 or len(counts) > 1:
            raise IndexUnusableError(f"{folder} is damaged: its files do not fit together", "Build the index again.")
        self._norms = functools.lru_cache(_KEPT)(functools.partial(norms_of, self._lengths))

    @functools.cached_property
    def _having(self) -> int:
        return _having(self._lengths)

    def _places(self, terms: Sequence[str]) -> tuple[Rows, Rows]:
        """Which of some terms the vocabulary has, and their places in it."""
        places = places_of(self._terms, np.array([*map(hash_of, terms)], np.uint64))
        known = np.flatnonzero(places >= 0)
        return known, places[known]

    def _scored(self, scores: Floats, rows: NDArray[Any], having: Any, bm25: Parameters) -> Floats:
        """The scores of texts at some rows for a term that so many have, from those in the files."""
        if bm25 == (K1, B):
            return scores
        built, wanted = self._norms(K1, B)[rows], self._norms(*bm25)[rows]
        weight = inverse_frequency(having, self._having)
        times = np.rint(scores * built / (weight - scores))
        return np.asarray(weight * times / (times + wanted), np.float32)

    def add(self, scores: Floats, terms: Mapping[str, float], weight: float = 1.0, bm25: Parameters = (K1, B)) -> None:
        """Adds to the scores of all texts, (texts,), those of some terms, each with its weight."""
        weights = [*terms.values()]
        for at, place in zip(*map(np.ndarray.tolist, self._places([*terms])), strict=True):
            begin, end = self._begins[place : place + 2].tolist()
            rows = self._rows[begin:end]
            of_rows = self._scored(self._scores[begin:end], rows, end - begin, bm25)
            np.add.at(scores, rows, of_rows * np.float32(weight * weights[at]))

    def scores_of(self, rows: Rows, terms: Sequence[str], bm25: Parameters) -> Floats:
        """The scores of some terms in some texts, (rows, terms); 0 where a text lacks the term."""
        table = np.zeros((len(rows), len(terms)), np.float32)
        known, places = self._places(terms)
        begins, ends = self._begins[places], self._begins[places + 1]
        low, high = (np.tile(one, (len(rows), 1)) for one in (begins, ends))
        while (searched := low < high).any():  # in the lists of all terms at once: a list has few of the texts
            middle = (low + high) // 2
            below = self._rows[np.where(searched, middle, 0)] < rows[:, None]
            low, high = np.where(searched & below, middle + 1, low), np.where(searched & ~below, middle, high)
        at, of = np.nonzero((low < ends) & (self._rows[np.minimum(low, len(self._rows) - 1)] == rows[:, None]))
        table[at, known[of]] = self._scored(self._scores[low[at, of]], rows[at], (ends - begins)[of], bm25)
        return table


def best_rows(scores: Floats, k: int) -> Rows:
    """The rows of the k best scores above 0, best first; of equal scores the first row comes first."""
    rows = places_of_best(scores, k)
    rows = rows[scores[rows] > 0]
    return rows[np.lexsort((rows, -scores[rows]))][:k]


class PostingsWriter:
    """Writes the postings of a field, of texts that are given in parts.

    Memory grows with a part, and by a number for each term of each part.

    Args:
        folder: Where to; it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._work = folder, folder / ".parts"
        self._work.mkdir(parents=True)
        self._postings = (self._work / "postings").open("w+b")
        # Each term once, in order of `_new`; these numbers of terms; and the same numbers sorted.
        self._spelled = (self._work / "terms.txt").open("w+", encoding="utf-8", newline="\n")
        self._terms = np.zeros(0, np.uint64)
        self._new = [self._terms]
        # Of each part the numbers of its terms, in order; where the postings of each begin, and those of the last end.
        self._parts: list[tuple[NDArray[np.uint64], Rows]] = []
        self._lengths = [np.zeros(0, np.int32)]
        self._written = self._count = 0

    def append(self, texts: Analysis, count: int) -> None:
        """Adds the next `count` texts."""
        keys, times = np.unique(texts.places.astype(np.int64) << 32 | texts.texts, return_counts=True)
        places, firsts = np.unique(keys >> 32, return_index=True)
        numbers = texts.numbers[places]
        self._parts.append((numbers, self._written + np.append(firsts, len(keys))))
        is_new = places_of(self._terms, numbers) < 0
        self._spelled.writelines(f"{texts.terms[place]}\n" for place in places[is_new].tolist())
        self._new.append(numbers[is_new])
        self._terms = np.sort(np.concatenate([self._terms, numbers[is_new]]), kind="stable")  # merges two runs
        postings = np.empty(len(keys), _POSTING)
        postings["row"] = (keys & 0xFFFFFFFF) + self._count
        postings["times"] = np.minimum(times, _MOST_TIMES)
        self._postings.write(postings.tobytes())
        self._lengths.append(np.bincount(texts.texts, minlength=count).astype(np.int32))
        self._written, self._count = self._written + len(keys), self._count + count

    def finish(self) -> None:
        """Merges the parts, a range of terms at a time, and writes what `Postings` and bm25s read."""
        terms, lengths = self._terms, np.concatenate(self._lengths)
        parts = [(np.searchsorted(terms, numbers), begins) for numbers, begins in self._parts]
        counts = np.zeros(len(terms), np.int64)
        for places, of_part in parts:
            counts[places] += np.diff(of_part)
        begins = begins_of(counts)
        weights, norms = inverse_frequency(counts, _having(lengths)), norms_of(lengths)
        with self._postings, writing_arrays(self._folder) as append:
            append(**{LENGTHS: lengths, TERMS: terms, BEGINS: begins})
            append(**{SCORES: weights[:0], ROWS: lengths[:0]})  # also where no text has a word
            for first, last in _ranges(begins):
                owners, postings = [], []
                for places, of_part in parts:
                    begin, end = places.searchsorted((first, last))
                    owners.append(places[begin:end].repeat(np.diff(of_part[begin : end + 1])))
                    # Read, not mapped: pages of a map would count as memory of this process until its end.
                    self._postings.seek(int(of_part[begin]) * _POSTING.itemsize)
                    postings.append(np.fromfile(self._postings, _POSTING, of_part[end] - of_part[begin]))
                of_terms, entries = np.concatenate(owners), np.concatenate(postings)
                order = np.argsort(of_terms, kind="stable")  # parts are in order of row
                of_terms, entries = of_terms[order], entries[order]
                tf = entries["times"].astype(np.float32)
                append(**{SCORES: weights[of_terms] * tf / (tf + norms[entries["row"]]), ROWS: entries["row"]})
        with self._spelled as lines, (self._folder / VOCABULARY).open("w", encoding="utf-8") as file:
            lines.seek(0)
            file.write("{")
            places_of_new = (terms.searchsorted(numbers).tolist() for numbers in self._new)
            for at, place in enumerate(itertools.chain.from_iterable(places_of_new)):
                term = json.dumps(next(lines).rstrip("\n"), ensure_ascii=False)
                file.write(f",{term}:{place}" if at else f"{term}:{place}")
            file.write("}")
        params: dict[str, Any] = {"method": "lucene", "idf_method": "lucene", "dtype": "float32", "int_dtype": "int32"}
        params |= {"k1": K1, "b": B, "delta": 0.5, "num_docs": self._count}
        write_json(self._folder / PARAMETERS, params)
        shutil.rmtree(self._work)


def _ranges(begins: Rows) -> Iterator[tuple[int, int]]:
    """Ranges of terms with at most so many postings as are merged at once; a more frequent term is one by itself."""
    first, last = 0, len(begins) - 1
    while first < last:
        end = int(np.searchsorted(begins, begins[first] + _MERGED, "right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end


_PART = 20_000  # texts whose postings are made in memory
_ROUNDING = 1e-6


class EmbeddedWords(base.Engine):
    """BM25 by numpy, without Java: for an index of up to some millions of papers.

    Every citing sentence is scored, and masked by its own year and citing paper.
    """

    name = "embedded"

    @classmethod
    def write(cls, folder: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress) -> None:
        """As `Engine.write`."""
        writers = {name: PostingsWriter(folder / base.WORDS / name) for name in base.fields_of(layout, base.PAPERS)}
        for number, papers in enumerate(in_parts(store.all_papers(), _PART)):
            on_progress("indexing papers", number * _PART, counts.papers)
            both = analysis_of([*(one.title for one in papers), *(one.abstract or "" for one in papers)])
            of_titles, papers_of = both.texts < len(papers), both.texts % len(papers)
            words: dict[str, Any] = {base.TEXT: slice(None), base.TITLE: of_titles, base.ABSTRACT: ~of_titles}
            for name, writer in writers.items():
                kept = words[name]
                writer.append(both._replace(places=both.places[kept], texts=papers_of[kept]), len(papers))
        if counts.citances:
            writers[base.CITANCES] = PostingsWriter(folder / base.WORDS / base.CITANCES)
            sentences = itertools.chain.from_iterable(sentences_of(store))
            for number, part in enumerate(in_parts(sentences, _PART)):
                on_progress("indexing citing sentences", number * _PART, counts.citances)
                writers[base.CITANCES].append(analysis_of([clean(one.text) for one in part]), len(part))
        for writer in writers.values():
            writer.finish()

    def __init__(self, *index: Any) -> None:
        super().__init__(*index)
        count, fields = len(self._rows), base.fields_of(self._manifest, base.PAPERS)
        self._postings = {name: Postings(self._folder / name, count) for name in fields}
        if citing := self._rows.citing:
            self._citing = citing
            self._begins = citing.sentence_begins[citing.begins]  # of the sentences about each paper
            self._postings[base.CITANCE] = Postings(self._folder / base.CITANCES, int(self._begins[-1]))
            self._cited = np.flatnonzero(np.diff(self._begins))
            self._firsts, self._counts = self._begins[self._cited], np.diff(self._begins)[self._cited]
        self._mask = functools.lru_cache(_KEPT)(self._mask_in)

    def _mask_in(self, year: int | None) -> Mask:
        """Which sentences may be known in a year, (sentences,)."""
        return np.repeat(self._citing.mask(Filters(as_of_year=year)), np.diff(self._citing.sentence_begins))

    def search(self, query: base.Query, k: int, filters: Filters) -> base.SearchHits | None:
        """As `Engine.search`."""
        terms = term_weights(query.texts)
        if not terms:
            return None
        scores = np.zeros(len(self._rows), np.float32)
        for name, weight in query.fields.items():
            self._postings[name].add(scores, terms, weight, query.bm25)
        passing = self._rows.passing(filters)
        scores *= passing
        if query.citances:
            return self._with_sentences(scores, passing, terms, query, k, filters)
        rows = best_rows(scores, k)
        return base.SearchHits(base.Hits(rows, scores[rows].astype(np.float64), rows))

    def _with_sentences(
        self, words: Floats, passing: Mask, terms: Mapping[str, float], query: base.Query, k: int, filters: Filters
    ) -> base.SearchHits:
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
        self._postings[base.CITANCE].add(scores, terms, bm25=query.bm25)
        scores *= self._mask(filters.as_of_year)
        if filters.citing_ids:
            sentence_begins = self._citing.sentence_begins
            for pair in np.flatnonzero(~self._citing.mask(Filters(citing_ids=filters.citing_ids))):
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
        papers = base.Hits(rows, words[rows].astype(np.float64), rows)
        cited = np.searchsorted(self._begins, said, "right") - 1
        sentences = base.Hits(cited, scores[said].astype(np.float64), said)
        return base.SearchHits(papers, sentences, float(scores[top[-1]]) if len(top) else 0.0)

    def sentence(self, document: Any) -> tuple[str, int]:
        """As `Engine.sentence`."""
        return self._citing.sentence(int(document))

    def term_scores(self, query: base.Query, field: str, terms: Sequence[str], keys: Sequence[base.Key]) -> base.Floats:
        """As `Engine.term_scores`."""
        rows = self._rows.rows([key[0] for key in keys])
        if field == base.CITANCE:
            places = zip(rows.tolist(), keys, strict=True)
            rows = np.array([self._citing.sentence_row(row, key[1], int(key[2])) for row, key in places], np.int64)
        return self._postings[field].scores_of(rows, terms, query.bm25).astype(float)
