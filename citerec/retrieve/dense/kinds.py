"""FAISS indexes over vectors on disk: flat, HNSW, IVF-PQ; choosing, building and measuring them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from citerec.errors import BuildError
from citerec.groundwork.progress import Progress
from citerec.retrieve.dense.files import mapped
from citerec.retrieve.dense.manifest import FaissSettings, IndexKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Asked = Literal["auto", "flat", "hnsw", "ivfpq"]

FILE_NAME = "index.faiss"
RECALL = 0.97
"""Share of the exact 100 nearest that an index has to find."""

K = 100
"""Number of hits for which `probe` is measured."""

# Numbers (vectors times dimension) up to which a kind is quick enough: benchmarks/vectors.py. A flat search reads all
# of them, 0.09 ms per million; HNSW needs all of them, and its graph, in memory.
_FLAT_NUMBERS = 100e6
_HNSW_NUMBERS = 4e9

_LINKS, _CONSTRUCTION = 32, 100
_PROBES: dict[IndexKind, tuple[int, ...]] = {
    "flat": (0,),
    "hnsw": (64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096),
    "ivfpq": (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096),
}
REFINE = 10
"""IVF-PQ: how many candidates for each hit are rescored with their own vectors."""

_MOST_LISTS = 65_536
_VECTORS_PER_LIST = 64  # FAISS warns under 39, of lists and of codes
_FEWEST_CODED = 39 * 256
_PQ_DIMENSIONS = 8  # numbers per byte of a code
_CHUNK = 16_384
_QUERIES = 300
# Noise as long as the vector: the nearest vectors are then as far away as for real queries (docs/retrieval.md).
_NOISE = 1.0


def faiss_module() -> Any:
    """The module `faiss`, whose type stubs are incomplete; raises BuildError if it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise BuildError("FAISS is not installed", "pip install 'citerec[cpu]', or 'citerec[gpu]'") from error
    return faiss


def choose(asked: Asked, count: int, dimension: int) -> IndexKind:
    """The kind of index for a number of vectors, unless one is given; flat if they are too few to train on."""
    if asked == "ivfpq" and count < _FEWEST_CODED:
        return "flat"
    if asked != "auto":
        return asked
    numbers = count * dimension
    return "flat" if numbers <= _FLAT_NUMBERS else "hnsw" if numbers <= _HNSW_NUMBERS else "ivfpq"


def build_faiss(folder: Path, asked: Asked, on_progress: Progress) -> FaissSettings:
    """Builds `index.faiss` over `vectors.npy`, and finds how far it must search to reach `RECALL`.

    HNSW is built by all processors at once, so its bytes, and one hit in a few hundred, differ between builds. With
    OMP_NUM_THREADS=1 they do not. The other kinds never differ.
    """
    faiss = faiss_module()
    vectors = mapped(folder / "vectors.npy")
    kind = choose(asked, *vectors.shape)
    index, build = _BUILDERS[kind](vectors, on_progress)
    for begin in range(0, len(vectors), _CHUNK):
        index.add(decoded(vectors[begin : begin + _CHUNK]))
        on_progress(f"building {kind}", min(begin + _CHUNK, len(vectors)), len(vectors))
    try:
        faiss.write_index(index, str(folder / FILE_NAME))
    except RuntimeError as error:
        raise BuildError(
            f"FAISS cannot write {folder / FILE_NAME} ({str(error)[-100:]})",
            "Make room, then run the same command: it continues where it stopped.",
        ) from error
    del index
    probe, recall = _probe(open_faiss(folder), kind, vectors, on_progress)
    return FaissSettings(kind=kind, asked=asked, build=build, probe=probe, recall=recall, faiss=faiss.__version__)


def open_faiss(folder: Path) -> Any:
    """The index of a folder, memory-mapped: it is read as it is searched."""
    faiss = faiss_module()
    return faiss.read_index(str(folder / FILE_NAME), faiss.IO_FLAG_MMAP_IFC)


def decoded(halves: "NDArray[np.float16]") -> "NDArray[np.float32]":
    """Vectors (n, dimension) as float32."""
    import numpy as np

    # FAISS decodes with special instructions of the processor: ten times as fast as numpy.
    floats: NDArray[np.float32] = half_precision(halves.shape[1]).sa_decode(np.ascontiguousarray(halves).view(np.uint8))
    return floats


def half_precision(dimension: int) -> Any:
    """An empty flat index of vectors in half precision, by inner product."""
    faiss = faiss_module()
    return faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)


def nearest(
    vectors: "NDArray[np.float16]", queries: "NDArray[np.float32]", k: int, on_progress: Progress
) -> "NDArray[np.int64]":
    """The rows of the k nearest of some queries (n, dimension), exactly: by comparing every vector."""
    import numpy as np

    faiss = faiss_module()
    best = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    for begin in range(0, len(vectors), _CHUNK):
        part = decoded(vectors[begin : begin + _CHUNK])
        flat = on_gpus(faiss.IndexFlatIP(part.shape[1]))
        flat.add(part)
        scores, found = flat.search(queries, min(k, len(part)))
        best, rows = np.hstack([best, scores]), np.hstack([rows, found + begin])
        order = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best, rows = np.take_along_axis(best, order, 1), np.take_along_axis(rows, order, 1)
        on_progress("searching all", min(begin + _CHUNK, len(vectors)), len(vectors))
    return rows


def on_gpus(index: Any) -> Any:
    """An index on all GPUs that FAISS can use (`faiss-gpu-cu12`); itself if there is none."""
    faiss = faiss_module()
    return faiss.index_cpu_to_all_gpus(index) if faiss.get_num_gpus() else index


def parameters(kind: IndexKind, probe: int, k: int, selector: Any) -> Any:
    """FAISS's search parameters: how far to search for k hits, among the rows that a selector allows."""
    faiss = faiss_module()
    if kind == "hnsw":
        return faiss.SearchParametersHNSW(sel=selector, efSearch=-(-probe * max(k, K) // K))
    if kind == "ivfpq":
        return faiss.SearchParametersIVF(sel=selector, nprobe=probe)
    return faiss.SearchParameters(sel=selector)


def noisy(vectors: "NDArray[np.float16]", count: int, seed: int = 0) -> "NDArray[np.float32]":
    """Queries like real ones: vectors drawn at random, each with noise, scaled to length one."""
    import numpy as np

    random = np.random.default_rng(seed)
    rows = np.sort(random.choice(len(vectors), min(count, len(vectors)), replace=False))
    drawn = vectors[rows].astype(np.float32)
    drawn += _NOISE / drawn.shape[1] ** 0.5 * random.standard_normal(drawn.shape, dtype=np.float32)
    normalised: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return normalised


def _flat(vectors: "NDArray[np.float16]", _progress: Progress) -> tuple[Any, dict[str, int]]:
    """float16: half the bytes of float32, and faster to search."""
    return half_precision(vectors.shape[1]), {}


def _hnsw(vectors: "NDArray[np.float16]", _progress: Progress) -> tuple[Any, dict[str, int]]:
    faiss = faiss_module()
    half = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexHNSWSQ(vectors.shape[1], half, _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _CONSTRUCTION
    index.train(decoded(vectors[:1]))  # float16 has nothing to train, but FAISS requires it
    return index, {"M": _LINKS, "efConstruction": _CONSTRUCTION}


def _ivfpq(vectors: "NDArray[np.float16]", on_progress: Progress) -> tuple[Any, dict[str, int]]:
    """Four times the root of the number of vectors as lists, as in FAISS's guide; a byte for 8 numbers."""
    import numpy as np

    faiss = faiss_module()
    count, dimension = vectors.shape
    lists = min(_MOST_LISTS, 2 ** round(np.log2(4 * count**0.5)), count // 39)
    code = next(size for size in range(max(1, dimension // _PQ_DIMENSIONS), 0, -1) if dimension % size == 0)
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFPQ(quantizer, dimension, lists, code, 8, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = 1
    if faiss.get_num_gpus():
        index.clustering_index = on_gpus(faiss.IndexFlatIP(dimension))
    sample = min(count, max(_VECTORS_PER_LIST * lists, 256 * 256))
    rows = np.sort(np.random.default_rng(0).choice(count, sample, replace=False))
    on_progress("training ivfpq", 0, 1)
    index.train(decoded(vectors[rows]))
    on_progress("training ivfpq", 1, 1)
    index.clustering_index = None
    return index, {"lists": lists, "code_bytes": int(index.code_size), "trained_on": sample, "refine": REFINE}


_BUILDERS: dict[IndexKind, Callable[["NDArray[np.float16]", Progress], tuple[Any, dict[str, int]]]] = {
    "flat": _flat,
    "hnsw": _hnsw,
    "ivfpq": _ivfpq,
}


def _probe(index: Any, kind: IndexKind, vectors: "NDArray[np.float16]", on_progress: Progress) -> tuple[int, float]:
    """How far to search to reach `RECALL`, and the recall then; the largest value if it is never reached."""
    if kind == "flat":
        return 0, 1.0
    queries, k = noisy(vectors, _QUERIES), min(K, len(vectors))
    exact = nearest(vectors, queries, k, on_progress)
    recall, lists = 0.0, getattr(index, "nlist", None)
    for probe in _PROBES[kind]:
        recall = recall_at(index, kind, probe, vectors, queries, exact)
        if recall >= RECALL or (lists is not None and probe >= lists):
            break
    return probe, round(recall, 4)


def recall_at(
    index: Any,
    kind: IndexKind,
    probe: int,
    vectors: "NDArray[np.float16]",
    queries: "NDArray[np.float32]",
    exact: "NDArray[np.int64]",
) -> float:
    """Share of the exact nearest rows (queries, k) that an index finds."""
    import numpy as np

    k = exact.shape[1]
    found = 0
    for query, right in zip(queries, exact, strict=True):
        wanted = min(k * REFINE, len(vectors)) if kind == "ivfpq" else k
        rows = index.search(query[None], wanted, params=parameters(kind, probe, k, None))[1][0]
        rows = rows[rows >= 0]
        if kind == "ivfpq":
            scores = decoded(vectors[rows]) @ query
            rows = rows[np.argsort(-scores, kind="stable")[:k]]
        found += len(np.intersect1d(rows, right))
    return found / exact.size if exact.size else 1.0
