"""Encoding: abstracts a second, what 8 bits gain, and what they cost in recall.

Run it with `python benchmarks/encode.py [--documents 10000] [--pool 20000]`. The documents are papers of data/arxiv,
title and abstract, 192 tokens of each, encoded by all-MiniLM-L6-v2: by `SentenceTransformer.encode` as it comes (the
peer), by our encoder on torch, and by ONNX Runtime in 32 and in 8 bits. All take turns in one run, a tenth of the
documents at a time, so that whatever else the machine does meets all alike. Before that, sentences of data/acm dev are
encoded one at a time: what a query costs (`--queries`).

The cost of 8 bits is measured on data/acm dev under the leak rules, by exact search: with 8-bit queries against the
given float vectors, and with 8-bit documents too. Encoding the whole pool takes long, so that is done on a part of it:
every cited and every citing paper, and others drawn by a seed. `--pool 0` takes all.
"""

import argparse
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import topic_of
from citerec.index.build import build_index
from citerec.index.manifest import open_store
from citerec.models.encoder import Encoder, paper_text
from citerec.models.find import DEFAULT_ENCODER
from citerec.models.loading import open_sentence_transformer
from citerec.records import Context

DATA = Path(__file__).parents[2] / "shared" / "data"
MAX_TOKENS = 192
TURNS = 10

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def speeds(encoders: dict[str, Encode], texts: Sequence[str]) -> None:
    seconds, processor = dict.fromkeys(encoders, 0.0), dict.fromkeys(encoders, 0.0)
    cosines: dict[str, list[float]] = {name: [] for name in encoders}
    for turn in range(TURNS):
        part = texts[turn::TURNS]
        order = list(encoders)[turn % len(encoders) :] + list(encoders)[: turn % len(encoders)]
        vectors = {}
        for name in order:
            begun = time.perf_counter(), time.process_time()
            vectors[name] = encoders[name](part)
            seconds[name] += time.perf_counter() - begun[0]
            processor[name] += time.process_time() - begun[1]
        peer = vectors[next(iter(encoders))]
        for name in encoders:
            cosines[name] += (vectors[name] * peer).sum(axis=1).tolist()
    slowest, dearest = (times[next(iter(encoders))] for times in (seconds, processor))
    print(
        "| encoder | documents/s | ratio | documents a processor-second | ratio | mean cosine with the peer's | least |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, spent in seconds.items():
        mean, least = np.mean(cosines[name]), min(cosines[name])
        print(
            f"| {name} | {len(texts) / spent:.1f} | {slowest / spent:.2f} | {len(texts) / processor[name]:.1f} "
            f"| {dearest / processor[name]:.2f} | {mean:.4f} | {least:.4f} |",
            flush=True,
        )


def one_by_one(encoders: dict[str, Encode], texts: Sequence[str]) -> None:
    """What it costs to encode one text: the encoders take turns, text by text."""
    wall: dict[str, list[float]] = {name: [] for name in encoders}
    processor: dict[str, list[float]] = {name: [] for name in encoders}
    for text in texts[:3]:  # libraries prepare at the first calls
        for encode in encoders.values():
            encode([text])
    for turn, text in enumerate(texts):
        for name in [*list(encoders)[turn % len(encoders) :], *list(encoders)[: turn % len(encoders)]]:
            begun = time.perf_counter(), time.process_time()
            encoders[name]([text])
            wall[name].append(1000 * (time.perf_counter() - begun[0]))
            processor[name].append(1000 * (time.process_time() - begun[1]))
    load, threads = os.getloadavg()[0], os.environ.get("OMP_NUM_THREADS", "as many as processors")
    print(f"\n{len(texts)} sentences one by one; load {load:.1f}; threads: {threads}")
    print("| encoder | median ms | median ms of processor time | quickest tenth |\n|---|---|---|---|")
    for name in encoders:
        tenth = np.percentile(processor[name], 10)
        print(f"| {name} | {np.median(wall[name]):.1f} | {np.median(processor[name]):.1f} | {tenth:.1f} |", flush=True)


def recalls(
    contexts: Sequence[Context],
    queries: NDArray[np.float32],
    pool: NDArray[np.float32],
    ids: Sequence[str],
    years: NDArray[np.int64],
) -> tuple[float, float]:
    """Recall@10 and @100 of exact search under the leak rules."""
    rows = {paper_id: row for row, paper_id in enumerate(ids)}
    at: dict[int, list[float]] = {10: [], 100: []}
    for context, query in zip(contexts, queries, strict=True):
        scores = pool @ query
        scores[years > (context.citing_year or 9999)] = -2
        if context.citing_id in rows:
            scores[rows[context.citing_id]] = -2
        order = np.lexsort((np.arange(len(scores)), -scores))[:100]
        gold = {rows[paper_id] for paper_id in context.cited_ids if paper_id in rows}
        for k, found in at.items():
            found.append(len(gold & set(order[:k].tolist())) / max(1, len(context.cited_ids)))
    return float(np.mean(at[10])), float(np.mean(at[100]))


def cost_of_8_bits(exact: Encoder, quick: Encoder, pool_size: int, index: Path) -> None:
    contexts = list(read_contexts(DATA / "acm" / "contexts-dev.jsonl"))
    ids = np.load(DATA / "acm" / "minilm-l6" / "ids.npy").astype(str)
    needed = {paper_id for context in contexts for paper_id in (*context.cited_ids, context.citing_id)}
    kept = np.isin(ids, list(filter(None, needed)))
    if pool_size:
        others = np.random.default_rng(0).permutation(np.flatnonzero(~kept))
        kept[others[: max(0, pool_size - kept.sum())]] = True
    else:
        kept[:] = True
    given = np.load(DATA / "acm" / "minilm-l6" / "vectors.npy", mmap_mode="r")
    with contextlib.closing(open_store(index)) as store:
        years = store.years(ids.tolist())
        whole_years = np.array([years[paper_id] or 0 for paper_id in ids])
        of_pool = {paper.paper_id: paper_text(paper) for paper in store.all_papers()}
    texts = [of_pool[paper_id] for paper_id in ids[kept]]
    passages = [topic_of(context).passage for context in contexts]
    float_queries, quick_queries = exact.encode(passages), quick.encode(passages)
    whole, part = np.asarray(given, np.float32), np.asarray(given[kept], np.float32)
    quick_part = quick.encode(texts)
    print("\n| queries | documents | pool | recall@10 | recall@100 |\n|---|---|---|---|---|")
    for queries, documents, pool, chosen, vectors in (
        ("float32", "float16, given", len(ids), slice(None), whole),
        ("int8", "float16, given", len(ids), slice(None), whole),
        ("float32", "float16, given", int(kept.sum()), kept, part),
        ("int8", "int8", int(kept.sum()), kept, quick_part),
    ):
        encoded = float_queries if queries == "float32" else quick_queries
        found = recalls(contexts, encoded, vectors, ids[chosen].tolist(), whole_years[chosen])
        print(f"| {queries} | {documents} | {pool:,} | {found[0]:.3f} | {found[1]:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000, help="papers; 0 for the sentences alone")
    parser.add_argument("--pool", type=int, default=20_000, help="papers of data/acm in 8 bits; 0 for all")
    parser.add_argument("--queries", type=int, default=200, help="sentences of data/acm dev, encoded one by one")
    parser.add_argument("--work", type=Path, help="where an index is built")
    arguments = parser.parse_args()
    peer = open_sentence_transformer(DEFAULT_ENCODER, "cpu")
    peer.max_seq_length = MAX_TOKENS
    ours = Encoder.open(DEFAULT_ENCODER, device="cpu", max_tokens=MAX_TOKENS)
    quick = Encoder.open(DEFAULT_ENCODER, backend="onnx-int8", max_tokens=MAX_TOKENS)
    encoders: dict[str, Encode] = {
        "sentence-transformers, float32": lambda texts: np.asarray(
            peer.encode(list(texts), normalize_embeddings=True, show_progress_bar=False), np.float32
        ),
        "citerec, float32": ours.encode,
        "citerec, ONNX Runtime, float32": Encoder.open(DEFAULT_ENCODER, backend="onnx", max_tokens=MAX_TOKENS).encode,
        "citerec, int8": quick.encode,
    }
    contexts = list(read_contexts(DATA / "acm" / "contexts-dev.jsonl"))
    one_by_one(encoders, [topic_of(context).passage for context in contexts[: arguments.queries]])
    if not arguments.documents:
        return
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        for name in ("arxiv", "acm"):
            build_index([DATA / name], Path(work) / name)
        with contextlib.closing(open_store(Path(work) / "arxiv")) as store:
            texts = [paper_text(paper) for paper in itertools.islice(store.all_papers(), arguments.documents)]
        speeds(encoders, texts)
        cost_of_8_bits(ours, quick, arguments.pool, Path(work) / "acm")


if __name__ == "__main__":
    main()
