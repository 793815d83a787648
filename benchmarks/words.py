"""Measures the retriever bm25s against Lucene in one run: python benchmarks/words.py [INDEX CONTEXTS [K [ROUNDS]]].

INDEX needs `citerec index encode INDEX --retriever bm25s`; by default data/acm is indexed. Both sides answer the same
contexts under the leak rules, in turns, with one thread and with two; times are medians of the rounds.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from citerec import Recommender
from citerec.contexts.read import read_contexts
from citerec.files.progress import no_progress
from citerec.retrieve.bm25s.build import build_scores
from citerec.retrieve.index import build_index
from citerec.retrieve.run import Run, SearchOptions

ACM = Path(__file__).parents[2] / "shared" / "data" / "acm"
SYSTEMS = ("bm25", "bm25s")
THREADS = (1, 2)


def main() -> None:
    if len(sys.argv) > 2:
        measure(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:5]))
        return
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "acm"
        build_index([ACM], index)
        begun = time.perf_counter()
        made = build_scores(index, no_progress)
        print(f"{made.postings:,} scores of {made.papers:,} papers made in {time.perf_counter() - begun:.0f} s")
        measure(index, ACM / "contexts-dev.jsonl")


def measure(index: Path, contexts: Path, k: int = 100, rounds: int = 5) -> None:
    asked = list(read_contexts(contexts))
    opened = {name: Recommender.open(index, name) for name in SYSTEMS}
    runs = {name: opened[name].search_many(asked, k) for name in SYSTEMS}  # also loads, maps and compiles
    print(f"{len(asked):,} contexts, k = {k}, {rounds} rounds in turns, load {os.getloadavg()[0]:.1f}")
    agree(runs["bm25"], runs["bm25s"], k)
    wall: dict[tuple[str, int], list[float]] = {(name, n): [] for n in THREADS for name in SYSTEMS}
    used: dict[tuple[str, int], list[float]] = {key: [] for key in wall}
    for _ in range(rounds):
        for name, threads in wall:
            begun, began = time.perf_counter(), time.process_time()
            opened[name].search_many(asked, k, options=SearchOptions(threads=threads))
            used[name, threads].append((time.process_time() - began) / len(asked) * 1000)
            wall[name, threads].append(len(asked) / (time.perf_counter() - begun))
    for key, rates in wall.items():
        ratio = statistics.median(ours / theirs for ours, theirs in zip(rates, wall["bm25", key[1]], strict=True))
        spent = statistics.median(used[key])
        print(
            f"{key[0]}, {key[1]} thread(s): {statistics.median(rates):,.0f} queries a second ({min(rates):,.0f} to "
            f"{max(rates):,.0f}), {ratio:.2f} × bm25; {spent:.2f} ms of processor time a query"
        )
    for name in SYSTEMS:
        gains = [two / one for one, two in zip(wall[name, 1], wall[name, 2], strict=True)]
        print(f"{name}: two threads {statistics.median(gains):.2f} × one")
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def agree(lucene: Run, ours: Run, k: int) -> None:
    """Prints how far both find the same."""
    depths = [depth for depth in (10, 100, 1000) if depth <= k]
    for depth in depths:
        pairs = [(lucene.top(one, depth), ours.top(one, depth)) for one in lucene if lucene[one]]
        shared = statistics.mean(len(set(a) & set(b)) / len(a) for a, b in pairs)
        print(f"overlap@{depth} {shared:.4f}; the same list for {sum(a == b for a, b in pairs):,} of {len(pairs):,}")
    both = [(scores[one], ours[name][one]) for name, scores in lucene.items() for one in scores if one in ours[name]]
    print(f"greatest difference of a score: {max(abs(a - b) / a for a, b in both):.1e} of it, n = {len(both):,}")


if __name__ == "__main__":
    main()
