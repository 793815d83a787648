"""Measures the systems on Qdrant against those on Lucene and FAISS, on dev contexts of data/acm.

python benchmarks/qdrant.py [PAPERS [FOLDER]]: 5,000 papers by default, or 0 for all of them: every paper that a dev
context cites, and others chosen by a hash of their ids. It pushes to the real engine within this process
(qdrant-edge-py). What it measures of a cluster is one thing: idf by shard, with four shards by a hash of the id.
"""

import gzip
import hashlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
from qdrant_client import models

from citerec import Context, Recommender
from citerec.contexts.read import read_contexts
from citerec.evaluation.statistics import intervals, total
from citerec.files.progress import no_progress
from citerec.retrieve.dense.build import DenseOptions
from citerec.retrieve.index import BuildOptions, build_index
from citerec.retrieve.qdrant.edge import EdgeClient
from citerec.retrieve.qdrant.manifest import stated_at
from citerec.retrieve.qdrant.push import PushOptions, push_index
from citerec.retrieve.qdrant.upload import _quantization
from citerec.retrieve.run import Run, SearchOptions

ACM = Path(__file__).parents[2] / "shared" / "data" / "acm"
CONTEXTS = ACM / "contexts-dev.jsonl"
PAIRS = [("bm25", "qdrant-bm25"), ("dense", "qdrant-dense"), ("hybrid", "qdrant-hybrid")]
SHARDS = 4


def main() -> None:
    papers = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(temporary)
        index = folder / "index"
        if not index.exists():
            source, vectors = subset(folder / "acm", papers) if papers else (ACM, ACM / "minilm-l6")
            dense = DenseOptions(model="all-MiniLM-L6-v2", vectors=(vectors,))
            build_index([source / "papers", source / "abstracts"], index, BuildOptions(dense=dense))
        asked = list(read_contexts(CONTEXTS))
        for quantization in ("none", "int8", "binary"):
            begun, began = time.perf_counter(), time.process_time()
            options = PushOptions(quantization=quantization, anew=True)  # type: ignore[arg-type]
            made = push_index(index, f"edge:{folder}/engine/acm", options, no_progress)
            print(
                f"{quantization}: {made.stated.papers:,} papers pushed in {time.perf_counter() - begun:.0f} s "
                f"({time.process_time() - began:.0f} s of processor time), {made.stated.collisions} collisions"
            )
            if quantization == "none":
                for here, there in PAIRS:
                    measure(index, here, there, asked)
            with with_graph(index):
                for here, there in PAIRS[1:] if quantization == "none" else PAIRS[1:2]:
                    measure(index, here, there, asked)
        by_shard(index, asked)


def subset(out: Path, count: int) -> tuple[Path, Path]:
    """Some papers of data/acm, with their abstracts and vectors."""
    ids = [str(one) for one in np.load(ACM / "minilm-l6" / "ids.npy").tolist()]
    cited = {paper_id for context in read_contexts(CONTEXTS) for paper_id in context.cited_ids} & set(ids)
    others = sorted(set(ids) - cited, key=lambda one: hashlib.blake2b(one.encode()).digest())
    kept = cited | set(others[: max(0, count - len(cited))])
    for kind in ("papers", "abstracts"):
        (out / kind).mkdir(parents=True)
        with gzip.open(out / kind / f"{kind}-00000.jsonl.gz", "wb") as file:
            for shard in sorted((ACM / kind).iterdir()):
                lines = gzip.decompress(shard.read_bytes()).splitlines(keepends=True)
                file.writelines(line for line in lines if str(orjson.loads(line)["corpusid"]) in kept)
    rows = [row for row, paper_id in enumerate(ids) if paper_id in kept]
    (out / "vectors").mkdir()
    for name in ("vectors", "ids"):
        values = np.load(ACM / "minilm-l6" / f"{name}.npy", mmap_mode="r")
        np.save(out / "vectors" / f"{name}.npy", values[rows])
    return out, out / "vectors"


@contextmanager
def with_graph(index: Path) -> Iterator[None]:
    """Has the engine build graphs of vectors and quantise these, which it does by itself only above 10 MB."""
    with Recommender.open(index, "qdrant-dense") as opened:
        client: Any = opened._retrievers[0]._connection.client  # type: ignore[attr-defined]
        edge, begun = client._edge, time.perf_counter()
        stated = stated_at(opened._retrievers[0]._connection)  # type: ignore[attr-defined]
        assert stated is not None
        assert stated.dense is not None
        size, quantized = stated.dense.dimension, _quantization(stated.quantization)
        params = models.VectorParams(size=size, distance=models.Distance.DOT, quantization_config=quantized)
        config = edge.EdgeConfig(
            vectors={"dense": client._dense(params)},
            sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=100),
        )
        for name, one in client._state["collections"].items():
            client._shard(name).close()
            path = client._folder / f"shard-{one['number']}"
            client._shards[name] = shard = edge.EdgeShard.load(str(path), config)
            done = shard.optimize()
            print(f"  a graph and quantised vectors made: {done}, {time.perf_counter() - begun:.0f} s; {shard.info()}")
        yield


def searched(opened: Recommender, asked: list[Context]) -> tuple[Run, list[float]]:
    latencies: list[float] = []
    opened.search_many(asked[:20], 100)  # loads models
    return opened.search_many(asked, 100, options=SearchOptions(threads=1, latencies=latencies)), latencies


def measure(index: Path, here: str, there: str, asked: list[Context]) -> None:
    """Prints how far two systems find the same, and what the difference does to the figures."""
    runs, times = [], []
    for name in (here, there):
        with Recommender.open(index, name) as opened:
            run, latencies = searched(opened, asked)
            runs.append(run)
            times.append(statistics.median(latencies) * 1000)
    report(here, there, runs, asked)
    print(f"    median of a search, one thread: {times[0]:.1f} ms and {times[1]:.1f} ms")


def report(here: str, there: str, runs: list[Run], asked: list[Context]) -> None:
    ours, theirs = runs
    answered = [one for one in ours if ours[one]]
    shares = [len({*ours.top(one)} & {*theirs.top(one)}) / len(ours.top(one)) for one in answered]
    same = sum(ours.top(one) == theirs.top(one) for one in answered)
    both = [(score, theirs[one][key]) for one in answered for key, score in ours[one].items() if key in theirs[one]]
    far = max(abs(a - b) / max(abs(a), 1e-9) for a, b in both)
    print(
        f"  {there} against {here}, n = {len(answered)}: overlap@10 {statistics.mean(shares):.4f}, the same ten in the "
        f"same order for {same}, scores differ by {far:.1e} at most"
    )
    papers = {one.citing_id or one.citing_key or one.context_id: 0 for one in asked}
    numbers = {key: number for number, key in enumerate(papers)}
    clusters = np.array([numbers[one.citing_id or one.citing_key or one.context_id] for one in asked], np.int32)
    for name, of in (("recall@10", recall), ("mrr@10", reciprocal)):
        scores = np.array([[of(run.top(one.context_id), one.cited_ids) for run in runs] for one in asked])
        gap = scores[:, 1:] - scores[:, :1]
        low, high = intervals(total(gap, clusters, np.ones((len(asked), 1), bool)), 0)[0, 0]
        means = scores.mean(axis=0)
        print(f"    {name} {means[0]:.4f} and {means[1]:.4f}, difference {gap.mean():+.4f} [{low:+.4f} {high:+.4f}]")


def recall(found: list[str], cited: tuple[str, ...]) -> float:
    return len({*found} & {*cited}) / len(cited)


def reciprocal(found: list[str], cited: tuple[str, ...]) -> float:
    return next((1 / rank for rank, one in enumerate(found, 1) if one in cited), 0.0)


class ByShard:
    """The points of a collection over several shards, each with an idf of its own, as in a cluster."""

    def __init__(self, client: EdgeClient, name: str, folder: Path) -> None:
        edge, whole = client._edge, client._shard(name)
        self._client, self._edge = client, edge
        words = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        self._shards = []
        for number in range(SHARDS):
            (path := folder / f"part-{number}").mkdir(parents=True)
            self._shards.append(edge.EdgeShard.create(str(path), edge.EdgeConfig(sparse_vectors={"words": words})))
        offset = None
        while True:
            request = edge.ScrollRequest(offset=offset, limit=1000, with_payload=True, with_vector=["words"])
            records, offset = whole.scroll(request)
            for number, shard in enumerate(self._shards):
                mine = [one for one in records if int(str(one.id).replace("-", ""), 16) % SHARDS == number]
                points = [edge.Point(one.id, one.vector, one.payload) for one in mine]
                shard.update(edge.UpdateOperation.upsert_points(points))
            if offset is None:
                break

    def query_points(self, _name: str, **asked: Any) -> Any:
        """The best of all shards."""
        found = []
        for shard in self._shards:
            with self._instead(shard):
                found += self._client.query_points("", **asked).points
        return SimpleNamespace(points=sorted(found, key=lambda one: -one.score)[: asked["limit"]])

    @contextmanager
    def _instead(self, shard: Any) -> Iterator[None]:
        before, self._client._shard = self._client._shard, lambda _name: shard  # type: ignore[method-assign]
        try:
            yield
        finally:
            self._client._shard = before  # type: ignore[method-assign]


def by_shard(index: Path, asked: list[Context]) -> None:
    """Prints what an idf by shard does to BM25."""
    with tempfile.TemporaryDirectory() as folder, Recommender.open(index, "qdrant-bm25") as opened:
        ours, _ = searched(opened, asked)
        connection: Any = opened._retrievers[0]._connection  # type: ignore[attr-defined]
        connection.client = ByShard(connection.client, connection.address.name, Path(folder))
        theirs, _ = searched(opened, asked)
        report("one shard", f"{SHARDS} shards, an idf in each", [ours, theirs], asked)


if __name__ == "__main__":
    main()
