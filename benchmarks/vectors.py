"""Vectors: the kinds of FAISS index, for the hits that retrievers read, with and without a filter by year.

Run it with `python benchmarks/vectors.py --index INDEX [--most 1000000] [--kinds flat,ivfsq,ivfpq,hnsw]`, with an index
of data/acm that has vectors (106,338 papers, 384 numbers). More of them are the real ones and, around each, seeded
noise, renormalised. Queries are encoded contexts of data/acm dev. Recall is that of the exact k nearest of those that
pass. Kinds take turns in one process, ten queries each, on one thread; times are processor time, scoring candidates
again included. A kind searches as far as its build found, and farther under a filter, as the retriever does; but the
retriever leaves a graph unused where it would take longer than all vectors.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import topic_of
from citerec.files.progress import no_progress
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.kinds import (
    REFINE,
    Asked,
    build_faiss,
    candidates,
    decoded,
    faiss_module,
    open_faiss,
    parameters,
    to_search,
)
from citerec.retrieve.dense.manifest import FaissSettings
from citerec.retrieve.dense.retriever import DenseRetriever

DATA = Path(__file__).parents[2] / "shared" / "data" / "acm"
KINDS: tuple[Asked, ...] = ("flat", "ivfsq", "ivfpq", "hnsw")
HITS = (10, 100, 1000)
PASSING = (1.0, 0.7, 0.3)
MEASURED, TURN = 60, 10

Searched = tuple[Any, FaissSettings]


def multiplied(vectors: NDArray[np.float16], count: int, path: Path) -> None:
    """The vectors themselves, then noise around them until there are so many."""
    random = np.random.default_rng(7)
    with ArrayWriter(path, "<f2", vectors.shape[1:]) as writer:
        while writer.rows < count:
            part = vectors[: min(len(vectors), count - writer.rows)].astype(np.float32)
            if writer.rows:
                part += 0.5 / part.shape[1] ** 0.5 * random.standard_normal(part.shape, dtype=np.float32)
            writer.append(part / np.linalg.norm(part, axis=1, keepdims=True))


def queries_of(index: Path) -> NDArray[np.float32]:
    contexts = list(read_contexts(DATA / "contexts-dev.jsonl"))
    chosen = np.sort(np.random.default_rng(3).choice(len(contexts), MEASURED, replace=False))
    retriever = DenseRetriever(index / "dense", None, lambda _: ())
    return retriever.prepare([topic_of(contexts[at]) for at in chosen])


def exactly(vectors: NDArray[np.float16], queries: NDArray[np.float32], passes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows of the nearest that pass, (queries, the most hits)."""
    scores = np.concatenate(
        [queries @ decoded(vectors[at : at + 16_384]).T for at in range(0, len(vectors), 16_384)], axis=1
    )
    scores[:, ~passes] = -2
    best: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")[:, : max(HITS)]
    return best


def answer(
    searched: Searched, vectors: NDArray[np.float16], query: NDArray[np.float32], k: int, share: float, selector: Any
) -> NDArray[np.int64]:
    index, settings = searched
    wider = math.ceil(settings.probe / (share**0.5 if settings.kind in REFINE else share))
    found = parameters(settings.kind, wider, k, selector)
    rows: NDArray[np.int64] = index.search(
        to_search(settings.kind, query)[None], candidates(settings.kind, k), params=found
    )[1][0]
    rows = rows[rows >= 0]
    if settings.kind not in REFINE:
        return rows
    return rows[np.argsort(-(decoded(vectors[rows]) @ query), kind="stable")[:k]]


def built(folder: Path, kinds: Iterable[Asked]) -> dict[str, Searched]:
    """An index of each kind, and a line for its build."""
    print("| vectors | kind | probe | recall@100 (noise) | MB | processor s, to find the probe too |")
    print("|---|---|---|---|---|---|")
    indexes: dict[str, Searched] = {}
    count = len(mapped(folder / "vectors.npy"))
    for kind in kinds:
        own = folder / kind
        own.mkdir()
        os.link(folder / "vectors.npy", own / "vectors.npy")
        begun = time.process_time()
        settings = build_faiss(own, kind, no_progress)
        seconds, size = time.process_time() - begun, (own / "index.faiss").stat().st_size / 1e6
        print(
            f"| {count:,} | {kind} | {settings.probe or '–'} | {settings.recall:.3f} | {size:,.0f} | {seconds:,.0f} |",
            flush=True,
        )
        indexes[kind] = open_faiss(own), settings
    return indexes


def measure(folder: Path, kinds: Sequence[Asked], queries: NDArray[np.float32], years: NDArray[np.int32]) -> None:
    indexes, vectors = built(folder, kinds), mapped(folder / "vectors.npy")
    print(f"\n| passing | k | {' | '.join(f'{kind} ms, recall' for kind in kinds)} | load |")
    print(f"|---|---|{'---|' * len(kinds)}---|")
    for share in PASSING:
        passes = years <= np.quantile(years, share)
        selector = None if share == 1 else faiss_module().IDSelectorBitmap(np.packbits(passes, bitorder="little"))
        exact = exactly(vectors, queries, passes)
        for k in HITS:
            times: dict[str, list[float]] = {kind: [] for kind in kinds}
            right = dict.fromkeys(kinds, 0)
            for turn in range(0, len(queries), TURN):
                for kind in kinds:
                    for at in range(turn, min(turn + TURN, len(queries))):
                        begun = time.thread_time()
                        rows = answer(indexes[kind], vectors, queries[at], k, passes.mean(), selector)
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
    faiss_module().omp_set_num_threads(1)
    vectors, years = (mapped(arguments.index / "dense" / name) for name in ("vectors.npy", "years.npy"))
    queries = queries_of(arguments.index)
    for count in sorted({len(vectors), arguments.most}):
        with tempfile.TemporaryDirectory(dir=arguments.work) as work:
            multiplied(vectors, count, Path(work) / "vectors.npy")
            measure(Path(work), arguments.kinds, queries, np.resize(years, count))


if __name__ == "__main__":
    main()
