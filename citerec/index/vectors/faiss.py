"""FAISS indexes over vectors on disk, made by one factory string: for a million vectors and more, or when asked for."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.errors import BuildError, IndexUnusableError
from citerec.files.progress import Progress
from citerec.index.vectors.manifest import Asked, DenseManifest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE_NAME = "index.faiss"

# Fewer vectors are compared one by one: by numpy in 7 ms for 100,000 of 384 numbers. Beyond, IVF-SQ needs a byte for
# each number in memory, IVF-PQ an eighth.
_EXACT_COUNT, _CODED_NUMBERS = 1_000_000, 4e9
_MOST_LISTS, _VECTORS_PER_LIST = 65_536, 64  # FAISS warns under 39, of lists and of codes
_FEWEST: dict[Asked, int] = {"ivfsq": 39 * 4, "ivfpq": 39 * 256}
_FACTORIES: dict[Asked, Callable[[int, int], str]] = {
    "flat": lambda _count, _dimension: "SQfp16",
    "ivfsq": lambda count, _dimension: f"IVF{_lists(2 * count**0.5, count)},SQ8",
    "ivfpq": lambda count, dimension: f"IVF{_lists(4 * count**0.5, count)},PQ{_code_bytes(dimension)}",
    "hnsw": lambda _count, _dimension: "HNSW32_SQfp16",
}
_PROBES: dict[Asked, int] = {"ivfsq": 96, "ivfpq": 128, "hnsw": 128}
"""nprobe of IVF, efSearch of HNSW for a hundred hits: for recall 0.99 on data/acm (all-MiniLM-L6-v2)."""

_REFINED: dict[Asked, float] = {"ivfsq": 1.25, "ivfpq": 10}
"""How many candidates for each hit are scored again with their own vectors, where the index holds codes."""

_WIDEST = 16
_CHUNK = 16_384
_USUAL = 100


def faiss_module() -> Any:
    """The module `faiss`, whose type stubs are incomplete; raises BuildError if it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise BuildError("FAISS is not installed", "pip install 'citerec[cpu]', or 'citerec[gpu]'") from error
    return faiss


def choose(asked: Asked, count: int, dimension: int) -> Asked:
    """How so many vectors are searched, unless it is asked for; exactly if they are too few to train an index on."""
    if count < _FEWEST.get(asked, 0):
        return "exact"
    if asked != "auto":
        return asked
    if count < _EXACT_COUNT:
        return "exact"
    return "ivfsq" if count * dimension <= _CODED_NUMBERS else "ivfpq"


def build_faiss(folder: Path, vectors: "NDArray[np.float16]", kind: Asked, on_progress: Progress) -> None:
    """Builds `index.faiss` in a folder over vectors, (n, dimension). Zero vectors are in it: searches leave them out.

    HNSW is built by all processors at once, so its bytes, and one hit in a few hundred, differ between builds.
    """
    import numpy as np

    faiss = faiss_module()
    count, dimension = vectors.shape
    index = faiss.index_factory(dimension, _FACTORIES[kind](count, dimension), faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        on_progress(f"training {kind}", 0, 1)
        wanted = max(_VECTORS_PER_LIST * getattr(index, "nlist", 1), 256 * 256)
        rows = np.sort(np.random.default_rng(0).choice(count, min(count, wanted), replace=False))
        if faiss.get_num_gpus():
            faiss.extract_index_ivf(index).clustering_index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(dimension))
        index.train(vectors[rows].astype(np.float32))
    for begin in range(0, count, _CHUNK):
        index.add(vectors[begin : begin + _CHUNK].astype(np.float32))
        on_progress(f"building {kind}", min(begin + _CHUNK, count), count)
    try:
        faiss.write_index(index, str(folder / FILE_NAME))
    except RuntimeError as error:
        raise BuildError(
            f"FAISS cannot write {folder / FILE_NAME} ({str(error)[-100:]})",
            "Make room, then run the same command: it continues where it stopped.",
        ) from error


class FaissIndex:
    """The FAISS index of a folder, memory-mapped. Safe to use from several threads.

    Raises:
        IndexUnusableError: It is missing or damaged, or not over these vectors.
    """

    def __init__(self, folder: Path, manifest: DenseManifest, rows: int, probe: int | None) -> None:
        faiss, path = faiss_module(), folder / FILE_NAME
        try:
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexUnusableError(f"{path} cannot be read", DenseManifest.remedy(folder)) from error
        if self._index.ntotal != rows or self._index.d != manifest.dimension:
            raise IndexUnusableError(f"{path} is not over these vectors", DenseManifest.remedy(folder))
        self._kind = manifest.kind_of_search
        self._probe = probe or _PROBES.get(self._kind, 0)

    def candidates(self, vector: "NDArray[np.float32]", k: int, mask: "NDArray[np.bool_]") -> "NDArray[np.int64]":
        """Rows that pass a mask, among them the k nearest of a vector (dimension,), if the search goes far enough."""
        import numpy as np

        faiss = faiss_module()
        passing = int(np.count_nonzero(mask))
        wanted = min(math.ceil(k * _REFINED.get(self._kind, 1)), passing)
        bits = np.packbits(mask, bitorder="little")
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # a setting of this thread of Python: idle threads of OpenMP keep processors busy
        try:
            rows = self._index.search(
                vector[None],
                wanted,
                params=self._parameters(k, passing / max(1, len(mask)), faiss.IDSelectorBitmap(bits)),
            )[1][0]
        finally:
            faiss.omp_set_num_threads(threads)
        found: NDArray[np.int64] = rows[rows >= 0]
        return found

    def _parameters(self, k: int, share: float, selector: Any) -> Any:
        """FAISS's search parameters: the fewer rows pass, the farther it searches."""
        faiss = faiss_module()
        if self._kind == "hnsw":
            wider = math.ceil(self._probe * max(k, _USUAL) / _USUAL / max(share, 1 / _WIDEST))
            return faiss.SearchParametersHNSW(sel=selector, efSearch=wider)
        if self._kind in _REFINED:
            probe = math.ceil(self._probe * min(_WIDEST, (1 / share) ** 0.5))
            return faiss.SearchParametersIVF(sel=selector, nprobe=min(self._index.nlist, probe))
        return faiss.SearchParameters(sel=selector)


def _lists(wanted: float, count: int) -> int:
    """A power of two near a number of lists, unless the vectors are too few to learn so many from."""
    return int(min(_MOST_LISTS, 2 ** round(math.log2(wanted)), count // 39))


def _code_bytes(dimension: int) -> int:
    """The bytes of a code: one for about 8 numbers, of which each has as many."""
    return next(size for size in range(max(1, dimension // 8), 0, -1) if dimension % size == 0)
