"""Vectors: the three kinds of FAISS index, at the size of data/acm and at a million.

Run it with `python benchmarks/vectors.py --queries QUERIES.npy [--most 1000000]`. The vectors are those of data/acm
(106,338 papers, 384 numbers); a million of them are the real ones and, around each, seeded noise, renormalised. Queries
are the encoded contexts of data/acm dev where an index of it is given (`--index`), else vectors with noise. Recall is
that of the exact 100 nearest. Latency is that of one query after the other on one thread; memory is what the process
grew by while it opened the index and answered them, its own and what it mapped. All kinds are measured in one run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import topic_of
from citerec.groundwork.progress import no_progress
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.kinds import build_faiss, faiss_module, nearest, noisy, open_faiss, parameters, recall_at
from citerec.retrieve.dense.manifest import FaissSettings
from citerec.retrieve.dense.retriever import DenseRetriever

DATA = Path(__file__).parents[2] / "shared" / "data" / "acm"
KINDS = ("flat", "hnsw", "ivfpq")
MEASURED = 300


def multiplied(vectors: NDArray[np.float16], count: int, path: Path) -> None:
    """The vectors themselves, then noise around them until there are so many."""
    random = np.random.default_rng(7)
    with ArrayWriter(path, "<f2", vectors.shape[1:]) as writer:
        while writer.rows < count:
            part = vectors[: min(len(vectors), count - writer.rows)].astype(np.float32)
            if writer.rows:
                part += 0.5 / part.shape[1] ** 0.5 * random.standard_normal(part.shape, dtype=np.float32)
            writer.append(part / np.linalg.norm(part, axis=1, keepdims=True))


def queries_of(index: Path | None, vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    if index is None:
        return noisy(vectors, MEASURED, seed=1)
    retriever = DenseRetriever(index / "dense", None, lambda _: ())
    return retriever.prepare([topic_of(context) for context in read_contexts(DATA / "contexts-dev.jsonl")])


def memory() -> tuple[int, int]:
    """Own and mapped megabytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = {
        name: int(value.split()[0]) // 1000
        for name, _, value in (line.partition(":") for line in lines)
        if "Rss" in name
    }
    return fields["RssAnon"], fields["RssFile"]


def search_alone(folder: Path) -> None:
    """In a process of its own: opens the index, answers queries, tells times and memory as JSON."""
    faiss_module().omp_set_num_threads(1)
    settings = FaissSettings.model_validate_json((folder / "settings.json").read_text())
    vectors, queries = mapped(folder / "vectors.npy"), np.load(folder / "queries.npy")[:MEASURED]
    exact = np.load(folder / "exact.npy")[:MEASURED]
    before = memory()
    index = open_faiss(folder)
    for query in queries[:20]:
        index.search(query[None], 100, params=parameters(settings.kind, settings.probe, 100, None))
    seconds = []
    for query in queries:
        begun = time.perf_counter()
        recall_at(index, settings.kind, settings.probe, vectors, query[None], exact[:1])
        seconds.append(time.perf_counter() - begun)
    after = memory()
    recall = recall_at(index, settings.kind, settings.probe, vectors, queries, exact)
    median, p95 = np.percentile(seconds, [50, 95]) * 1000
    own, mapped_too = (late - early for early, late in zip(before, after, strict=True))
    print(json.dumps({"recall": recall, "median": median, "p95": p95, "own": own, "mapped": mapped_too}))


def measure(folder: Path, count: int, queries: NDArray[np.float32]) -> None:
    vectors = mapped(folder / "vectors.npy")
    np.save(folder / "queries.npy", queries)
    np.save(folder / "exact.npy", nearest(vectors, queries[:MEASURED], 100, no_progress))
    for kind in KINDS:
        begun = time.perf_counter()
        settings = build_faiss(folder, kind, no_progress)
        seconds = time.perf_counter() - begun
        (folder / "settings.json").write_text(settings.model_dump_json())
        command = [sys.executable, __file__, "--alone", str(folder)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        size = (folder / "index.faiss").stat().st_size / 1e6
        print(
            f"| {count:,} | {kind} | {settings.probe or '–'} | {settings.recall:.3f} | {found['recall']:.3f} "
            f"| {found['median']:.2f} | {found['p95']:.2f} | {found['own']} + {found['mapped']} | {size:,.0f} "
            f"| {seconds:,.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, help="an index of data/acm with vectors: encodes the queries")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path, help="where the vectors are written; some 5 GB")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        search_alone(arguments.alone)
        return
    vectors = mapped(DATA / "minilm-l6" / "vectors.npy")
    queries = queries_of(arguments.index, vectors)
    print("| vectors | kind | probe | recall (noise) | recall | median ms | p95 ms | MB own + mapped | MB file | s |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for count in (len(vectors), arguments.most):
        with tempfile.TemporaryDirectory(dir=arguments.work) as work:
            multiplied(vectors, count, Path(work) / "vectors.npy")
            measure(Path(work), count, queries)


if __name__ == "__main__":
    main()
