"""FAISS indexes over vectors on disk: flat, IVF-SQ, IVF-PQ, HNSW; choosing, building and measuring them."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from citerec.errors import BuildError
from citerec.files.progress import Progress
from citerec.retrieve.dense.files import mapped
from citerec.retrieve.dense.manifest import FaissSettings, IndexKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Asked = Literal["auto", "flat", "ivfsq", "ivfpq", "hnsw"]

FILE_NAME = "index.faiss"
RECALL = 0.99
"""Share of the exact 100 nearest that an index has to find."""

K = 100
"""Number of hits for which `probe` is measured."""

# Numbers (vectors times dimension) up to which a kind is chosen: benchmarks/vectors.py. A flat search reads all of
# them, 0.12 to 0.15 ms per million, and is exact. Beyond, IVF-SQ is faster for the thousand hits that a hybrid reads, 4
# times at 150 million. HNSW is not: it must search as far as there are hits to find, and farther under a filter; it
# wins only for few hits. IVF-SQ needs a byte for each number in memory, IVF-PQ an eighth.
_FLAT_NUMBERS = 50e6
_CODED_NUMBERS = 4e9

_LINKS, _CONSTRUCTION = 32, 100
_LISTS_PROBED = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
_PROBES: dict[IndexKind, tuple[int, ...]] = {
    "flat": (0,),
    "ivfsq": _LISTS_PROBED,
    "ivfpq": _LISTS_PROBED,
    "hnsw": (64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096),
}
REFINE: dict[IndexKind, float] = {"ivfsq": 1.25, "ivfpq": 10}
"""How many candidates for each hit are scored again with their own vectors, where the index holds codes.

For 8 bits 1.1 was enough (MiniLM, data/acm), and 1.25 too if one number of each vector is ten times as large.
"""

_MOST_LISTS = 65_536
_VECTORS_PER_LIST = 64  # FAISS warns under 39, of lists and of codes
_FEWEST: dict[str, int | float] = {"ivfsq": 39 * 4, "ivfpq": 39 * 256}
_PQ_DIMENSIONS = 8  # numbers per byte of a code
_BYTE = 127
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
    if asked in _FEWEST and count < _FEWEST[asked]:
        return "flat"
    if asked != "auto":
        return asked
    numbers = count * dimension
    return "flat" if numbers <= _FLAT_NUMBERS else "ivfsq" if numbers <= _CODED_NUMBERS else "ivfpq"


def build_faiss(folder: Path, asked: Asked, on_progress: Progress) -> FaissSettings:
    """Builds `index.faiss` over `vectors.npy`, and finds how far it must search to reach `RECALL`.

    HNSW is built by all processors at once, so its bytes, and one hit in a few hundred, differ between builds. With
    OMP_NUM_THREADS=1 they do not. The other kinds, and so all that `auto` chooses, do not differ.
    """
    faiss = faiss_module()
    vectors = mapped(folder / "vectors.npy")
    kind = choose(asked, *vectors.shape)
    index, build, coded = _BUILDERS[kind](vectors, on_progress)
    for begin in range(0, len(vectors), _CHUNK):
        index.add(coded(decoded(vectors[begin : begin + _CHUNK])))
        on_progress(f"building {kind}", min(begin + _CHUNK, len(vectors)), len(vectors))
    _write(index, folder)
    del index
    probe, recall = _probe(open_faiss(folder), kind, vectors, on_progress)
    return FaissSettings(kind=kind, asked=asked, build=build, probe=probe, recall=recall, faiss=faiss.__version__)


def _write(index: Any, folder: Path) -> None:
    try:
        faiss_module().write_index(index, str(folder / FILE_NAME))
    except RuntimeError as error:
        raise BuildError(
            f"FAISS cannot write {folder / FILE_NAME} ({str(error)[-100:]})",
            "Make room, then run the same command: it continues where it stopped.",
        ) from error


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


def search_one(
    index: Any, vector: "NDArray[np.float32]", k: int, parameters: Any = None
) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """The rows and the scores of the k nearest of one vector (dimension,), nearest first; fewer if fewer are found.

    In one thread: there is nothing to share out, and idle threads of OpenMP keep processors from other searches.
    """
    faiss = faiss_module()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # a setting of this thread of Python
    try:
        scores, rows = index.search(vector[None], k, params=parameters)
    finally:
        faiss.omp_set_num_threads(threads)
    return rows[0][rows[0] >= 0], scores[0][rows[0] >= 0]


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
    if kind in REFINE:
        return faiss.SearchParametersIVF(sel=selector, nprobe=probe)
    return faiss.SearchParameters(sel=selector)


def to_search(kind: IndexKind, query: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """A query (dimension,) as an index takes it: IVF-SQ compares bytes with bytes, so the query is rounded too."""
    largest = float(abs(query).max()) if kind == "ivfsq" else 0.0
    return _in_bytes(query, _BYTE / largest) if largest else query


def candidates(kind: IndexKind, k: int) -> int:
    """How many rows an index is asked for, if k are wanted."""
    return math.ceil(REFINE.get(kind, 1) * k)


def noisy(vectors: "NDArray[np.float16]", count: int, seed: int = 0) -> "NDArray[np.float32]":
    """Queries like real ones: vectors drawn at random, each with noise, scaled to length one."""
    import numpy as np

    random = np.random.default_rng(seed)
    rows = np.sort(random.choice(len(vectors), min(count, len(vectors)), replace=False))
    drawn = vectors[rows].astype(np.float32)
    drawn += _NOISE / drawn.shape[1] ** 0.5 * random.standard_normal(drawn.shape, dtype=np.float32)
    normalised: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return normalised


_Floats: TypeAlias = "NDArray[np.float32]"
_Begun = tuple[Any, dict[str, int | float], Callable[[_Floats], _Floats]]
"""A trained, empty index; the parameters of its build; and what makes of vectors the numbers that it takes."""


def _unchanged(vectors: _Floats) -> _Floats:
    return vectors


def _flat(vectors: "NDArray[np.float16]", _progress: Progress) -> _Begun:
    """float16: half the bytes of float32, and faster to search."""
    return half_precision(vectors.shape[1]), {}, _unchanged


def _hnsw(vectors: "NDArray[np.float16]", _progress: Progress) -> _Begun:
    faiss = faiss_module()
    half = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexHNSWSQ(vectors.shape[1], half, _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _CONSTRUCTION
    index.train(decoded(vectors[:1]))  # float16 has nothing to train, but FAISS requires it
    return index, {"M": _LINKS, "efConstruction": _CONSTRUCTION}, _unchanged


def _in_bytes(vectors: "NDArray[np.float32]", scale: float) -> "NDArray[np.float32]":
    """Whole numbers from -127 to 127."""
    import numpy as np

    rounded: NDArray[np.float32] = np.clip(np.rint(vectors * np.float32(scale)), -_BYTE, _BYTE)
    return rounded


def _ivfsq(vectors: "NDArray[np.float16]", on_progress: Progress) -> _Begun:
    """A byte for each number, in twice the root of the number of vectors as lists; more did not find more in less time.

    One scale serves all numbers. It is that of the largest number of the sample; larger ones are cut.
    """
    faiss = faiss_module()
    count, dimension = vectors.shape
    lists = _LISTS["ivfsq"](count)
    eight = faiss.ScalarQuantizer.QT_8bit_direct_signed
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFScalarQuantizer(quantizer, dimension, lists, eight, faiss.METRIC_INNER_PRODUCT, False)
    sample = decoded(_sample(vectors, _VECTORS_PER_LIST * lists))
    scale = _BYTE / max(float(abs(sample).max()), 1e-6)
    _train(index, sample, on_progress, "ivfsq")
    build = {"lists": lists, "code_bytes": dimension, "trained_on": len(sample), "scale": scale}
    return index, build, lambda part: _in_bytes(part, scale)


def _lists(wanted: float, count: int) -> int:
    """A power of two near a number of lists, unless the vectors are too few to learn so many from."""
    return int(min(_MOST_LISTS, 2 ** round(math.log2(wanted)), count // 39))


def _sample(vectors: "NDArray[np.float16]", count: int) -> "NDArray[np.float16]":
    import numpy as np

    rows = np.sort(np.random.default_rng(0).choice(len(vectors), min(count, len(vectors)), replace=False))
    return vectors[rows]


def _train(index: Any, sample: "NDArray[np.float32]", on_progress: Progress, name: IndexKind) -> None:
    """Learns lists, and codes if the kind has any, the lists on GPUs if there are some."""
    faiss = faiss_module()
    index.cp.seed = 1
    if faiss.get_num_gpus():
        index.clustering_index = on_gpus(faiss.IndexFlatIP(index.d))
    on_progress(f"training {name}", 0, 1)
    index.train(sample)
    on_progress(f"training {name}", 1, 1)
    index.clustering_index = None


def _ivfpq(vectors: "NDArray[np.float16]", on_progress: Progress) -> _Begun:
    """Four times the root of the number of vectors as lists, as in FAISS's guide; a byte for 8 numbers."""
    faiss = faiss_module()
    count, dimension = vectors.shape
    lists = _LISTS["ivfpq"](count)
    code = next(size for size in range(max(1, dimension // _PQ_DIMENSIONS), 0, -1) if dimension % size == 0)
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFPQ(quantizer, dimension, lists, code, 8, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.seed = 1
    sample = decoded(_sample(vectors, max(_VECTORS_PER_LIST * lists, 256 * 256)))
    _train(index, sample, on_progress, "ivfpq")
    refine = int(REFINE["ivfpq"])
    build: dict[str, int | float] = {
        "lists": lists,
        "code_bytes": int(index.code_size),
        "trained_on": len(sample),
        "refine": refine,
    }
    return index, build, _unchanged


_LISTS: dict[str, Callable[[int], int]] = {
    "ivfsq": lambda count: _lists(2 * count**0.5, count),
    "ivfpq": lambda count: _lists(4 * count**0.5, count),
}
"""How many lists an index of so many vectors has."""

_BUILDERS: dict[IndexKind, Callable[["NDArray[np.float16]", Progress], _Begun]] = {
    "flat": _flat,
    "ivfsq": _ivfsq,
    "ivfpq": _ivfpq,
    "hnsw": _hnsw,
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
        wanted = min(candidates(kind, k), len(vectors))
        rows = index.search(to_search(kind, query)[None], wanted, params=parameters(kind, probe, k, None))[1][0]
        rows = rows[rows >= 0]
        if kind in REFINE:
            scores = decoded(vectors[rows]) @ query
            rows = rows[np.argsort(-scores, kind="stable")[:k]]
        found += len(np.intersect1d(rows, right))
    return found / exact.size if exact.size else 1.0
