"""Measures the embedded engine of words against the package bm25s: python benchmarks/words.py [SIZE…].

A query is a sentence of data/acm dev, without filters, over title and abstract as one field and over titles, with the
engine's weights. bm25s opens the same files, so texts and terms are the same; it has the backend numpy, and answers
with one call a field and its top-k, without adding the fields up. The two take turns query by query; times are medians
of processor time, with the analysis of the query. The papers are those of data/acm (a size of 0), or as
many as are asked for, some of them made by noise as in benchmarks/growth.py.
"""

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import growth
import numpy as np

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic, topic_of
from citerec.index.build import build_index
from citerec.index.words.analysis import term_weights
from citerec.records import NO_FILTERS
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.words import WordSettings

ACM = Path(__file__).parents[2] / "shared" / "data" / "acm"
FIELDS = ("contents", "title")


def peer(index: OpenIndex, settings: WordSettings, k: int) -> Callable[[Topic], dict[str, Any]]:
    """A search by bm25s over the files of an index: rows and scores of each field."""
    words = index.folder / "words"
    opened = {name: bm25s.BM25.load(words / name, mmap=True) for name in FIELDS}

    def search(topic: Topic) -> dict[str, Any]:
        # A term weighs as often as the sentence has it.
        terms = [term for term, times in term_weights(settings.weighted(topic)).items() for _ in range(round(times))]
        return {
            name: one.retrieve([terms], k=k, backend_selection="numpy", show_progress=False, n_threads=0)
            for name, one in opened.items()
        }

    return search


def measure(folder: Path, k: int, most: int) -> None:
    topics = [*map(topic_of, itertools.islice(read_contexts(ACM / "contexts-dev.jsonl"), most))]
    settings = WordSettings(neighbours=0, near=0)  # bm25s weighs all words alike
    index = OpenIndex.open(folder, settings)
    ours, theirs = index.words, peer(index, settings, k)
    assert ours is not None
    agree(ours, theirs, topics[:20])
    sides: dict[str, Callable[[Topic], Any]] = {
        "citerec": lambda topic: ours.search(topic, k, NO_FILTERS),
        "bm25s": theirs,
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number, topic in enumerate(topics):
        for name in [*sides][:: 1 if number % 2 else -1]:
            begun = time.process_time()
            sides[name](topic)
            times[name].append(1000 * (time.process_time() - begun))
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    print(
        f"{len(index.rows):,} papers, {len(topics)} queries, k = {k}: "
        + ", ".join(f"{name} {spent:.2f} ms" for name, spent in medians.items())
        + f"; {medians['citerec'] / medians['bm25s']:.2f} × bm25s; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    index.close()


def agree(ours: Any, theirs: Callable[[Topic], dict[str, Any]], topics: list[Topic]) -> None:
    """Checks that both score alike: a paper's score is the weighted sum of its scores in the fields."""
    settings = ours.settings
    weights = dict(zip(FIELDS, (settings.weights.text, settings.weights.title), strict=True))
    for topic in topics:
        found, lists = ours.search(topic, 10, NO_FILTERS), theirs(topic)
        for row, score in zip(found.rows.tolist(), found.scores.tolist(), strict=True):
            parts = [
                weights[name] * float(one.scores[0][np.flatnonzero(one.documents[0] == row)].sum())
                for name, one in lists.items()
            ]
            is_whole = all(row in one.documents[0] for one in lists.values())
            assert not is_whole or abs(sum(parts) - score) < 1e-3 * score, (topic, row, parts, score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000, 0], help="numbers of papers; 0: data/acm")
    parser.add_argument("-k", type=int, default=1000, help="hits of a query, as fusion reads them")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--work", type=Path, help="where indexes are written")
    arguments = parser.parse_args()
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
            sources = ACM
            if size:
                growth.write_sources(sources := Path(folder) / "sources", itertools.islice(growth.papers(), size))
            build_index([sources], Path(folder) / "index")
            measure(Path(folder) / "index", arguments.k, arguments.queries)


if __name__ == "__main__":
    main()
