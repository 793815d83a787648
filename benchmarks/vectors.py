"""Vectors: how they are searched, for the hits that retrievers read, with and without a filter by year.

Run it with `python benchmarks/vectors.py --index INDEX [--most 1000000] [--kinds exact,flat,ivfsq,ivfpq,hnsw]`, with an
index of data/acm that has vectors (106,338 papers, 384 numbers). More of them are the real ones and, around each,
seeded noise, renormalised. Queries are encoded contexts of data/acm dev. Recall is that of the exact k nearest of those
that pass. Kinds take turns in one process, ten queries each, on one thread; times are processor time, scoring
candidates again included. All are searched as retrievers search them, but FAISS at any size.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import topic_of
from citerec.files.progress import no_progress
from citerec.index import vectors as search
from citerec.index.vectors import (
    VALUES,
    DenseManifest,
    SearchKind,
    Vectors,
    blank_vectors,
    build_faiss,
    finish_vectors,
)
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.dense import DenseRetriever, DenseSettings

DATA = Path(__file__).parents[2] / "shared" / "data" / "acm"
KINDS: tuple[SearchKind, ...] = ("exact", "flat", "ivfsq", "ivfpq", "hnsw")
HITS = (10, 100, 1000)
PASSING = (1.0, 0.7, 0.3)
MEASURED, TURN = 60, 10
PART = 16_384


def multiplied(vectors: NDArray[np.float16], count: int, folder: Path) -> None:
    """The vectors themselves, then noise around them until there are so many."""
    random, rows = np.random.default_rng(7), 0
    folder.mkdir()
    values = blank_vectors(folder, count, vectors.shape[1])
    while rows < count:
        part = vectors[: min(len(vectors), count - rows)].astype(np.float32)
        if rows:
            part += 0.5 / part.shape[1] ** 0.5 * random.standard_normal(part.shape, dtype=np.float32)
        for begin in range(0, len(part), PART):
            some = part[begin : begin + PART]
            values[rows + begin : rows + begin + len(some)] = some / np.linalg.norm(some, axis=1, keepdims=True)
        rows += len(part)
    finish_vectors(folder)


def queries_of(index: Path) -> NDArray[np.float32]:
    contexts = list(read_contexts(DATA / "contexts-dev.jsonl"))
    chosen = np.sort(np.random.default_rng(3).choice(len(contexts), MEASURED, replace=False))
    retriever = DenseRetriever.open(OpenIndex.open(index), DenseSettings())
    return retriever.prepare([topic_of(contexts[at]) for at in chosen])


def exactly(vectors: NDArray[np.float16], queries: NDArray[np.float32], passes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows of the nearest that pass, (queries, the most hits)."""
    parts = (vectors[at : at + 16_384].astype(np.float32) for at in range(0, len(vectors), 16_384))
    scores = np.concatenate([queries @ part.T for part in parts], axis=1)
    scores[:, ~passes] = -2
    best: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")[:, : max(HITS)]
    return best


def built(folder: Path, before: DenseManifest, kinds: Iterable[SearchKind]) -> dict[str, Vectors]:
    """The vectors, to be searched in each way, and a line for each."""
    print("| vectors | kind | MB | processor s |\n|---|---|---|---|")
    found: dict[str, Vectors] = {}
    for kind in kinds:
        own = folder.with_name(kind)
        own.mkdir()
        for path in folder.iterdir():
            os.link(path, own / path.name)
        values = np.load(own / VALUES, mmap_mode="r")
        begun = time.process_time()
        if kind != "exact":
            build_faiss(own, values, kind, no_progress)
        seconds = time.process_time() - begun
        size = sum(path.stat().st_size for path in own.iterdir() if path.name != VALUES) / 1e6
        print(f"| {len(values):,} | {kind} | {size:,.0f} | {seconds:,.0f} |", flush=True)
        counts = {"count": len(values), "without_vector": 0, "kind_of_search": kind}
        before.model_copy(update=counts).write(own)
        found[kind] = Vectors(own)
    return found


def measure(
    folder: Path,
    before: DenseManifest,
    kinds: Sequence[SearchKind],
    queries: NDArray[np.float32],
    years: NDArray[np.int32],
) -> None:
    searched = built(folder, before, kinds)
    print(f"\n| passing | k | {' | '.join(f'{kind} ms, recall' for kind in kinds)} | load |")
    print(f"|---|---|{'---|' * len(kinds)}---|")
    values = searched[kinds[0]].values
    for share in PASSING:
        passes = years <= np.quantile(years, share)
        exact = exactly(values, queries, passes)
        for k in HITS:
            times: dict[str, list[float]] = {kind: [] for kind in kinds}
            right = dict.fromkeys(kinds, 0)
            for turn in range(0, len(queries), TURN):
                for kind in kinds:
                    for at in range(turn, min(turn + TURN, len(queries))):
                        begun = time.thread_time()
                        rows, _ = searched[kind].nearest(queries[at], k, None if share == 1 else passes)
                        times[kind].append(time.thread_time() - begun)
                        right[kind] += len(np.intersect1d(rows, exact[at, :k]))
            cells = (f"{np.median(times[kind]) * 1e3:.2f}, {right[kind] / k / len(queries):.3f}" for kind in kinds)
            print(f"| {passes.mean():.0%} | {k:,} | {' | '.join(cells)} | {os.getloadavg()[0]:.1f} |", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True, help="an index of data/acm with vectors")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--kinds", type=lambda names: names.split(","), default=KINDS)
    parser.add_argument("--work", type=Path, help="where the vectors and indexes are written; some 5 GB")
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    search._FEW = 0  # FAISS answers at any size
    index = OpenIndex.open(arguments.index)
    dense, years = Vectors(index.folder / "dense"), index.rows.columns.years
    queries = queries_of(arguments.index)
    for count in sorted({min(len(dense), arguments.most), arguments.most}):
        with tempfile.TemporaryDirectory(dir=arguments.work) as work:
            multiplied(dense.values, count, Path(work) / "made")
            measure(Path(work) / "made", dense.manifest, arguments.kinds, queries, np.resize(years, count))


if __name__ == "__main__":
    main()
