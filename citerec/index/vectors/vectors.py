"""The vectors of the papers of an index on disk, and the search among them: exact, or by a FAISS index over them.

A row is that of the paper. Beside the vectors in half precision there are codes of a byte for each number, with a scale
for each row: these are compared, and the best rows are scored again with their own vectors. A paper without a vector
has zeros, and is never found. A FAISS index is made by one factory string: for a million vectors and more, or when
asked for.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from citerec.errors import BuildError, IndexUnusableError
from citerec.files.progress import Progress
from citerec.index.columns import ArrayWriter, Mask, Rows, mapped
from citerec.index.filters import PaperFilter
from citerec.index.manifest import DENSE, FILE_NAME, FolderManifest
from citerec.records import NO_FILTERS, Filters

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]

Asked = Literal["auto", "exact", "flat", "ivfsq", "ivfpq", "hnsw"]
"""How vectors are searched: by numpy, or the kind of a FAISS index; `auto` is one of them by their number."""


class DenseManifest(FolderManifest):
    """`manifest.json` of a folder of vectors of papers.

    Attributes:
        store: Fingerprint of the paper store for which they were made.
        model: The encoder of queries, by the name that the user gave.
        identity: The `model_identity` of that model; None if the vectors were given.
        max_tokens: How many tokens of a text were read; None if the vectors were given.
        count: How many papers have a vector.
        without_vector: How many have none.
        given: Whether the vectors were given, not encoded here.
        faults: Counts of faults of given vectors, by reason.
        asked: How they are to be searched; `auto` if their number decides.
        kind_of_search: How they are searched.
    """

    kind: Literal["citerec-vectors"] = "citerec-vectors"
    version: Literal[2] = 2
    store: str
    model: str
    identity: str | None
    backend: str
    max_tokens: int | None
    dimension: int
    count: int
    without_vector: int
    given: bool
    faults: dict[str, int]
    asked: Asked
    kind_of_search: Asked

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of a folder.

        Raises:
            IndexUnusableError: It is missing, broken, or of another version.
        """
        remedy = f"Make them: {encode_command(folder)}"
        if not has_vectors(folder):
            raise IndexUnusableError(f"{folder.parent.parent} has no vectors", remedy)
        return cls.of(folder, remedy)


def encode_command(folder: Path, model: str | None = None) -> str:
    """The command that makes the vectors of a folder of an index, whose name is that of their retriever.

    Only `dense` has a default model; `profile` takes that of `dense`.
    """
    retriever = "" if folder.name == DENSE else f" --retriever {folder.name}"
    needed = model or ("FOLDER" if retriever else "")
    named = f" --model {needed}" if needed and folder.name != "profile" else ""
    return f"citerec index encode {folder.parent.parent}{retriever}{named}"


def has_vectors(folder: Path) -> bool:
    """Whether a folder holds finished vectors, of any version."""
    return (folder / FILE_NAME).is_file()


VALUES, CODES, SCALES = "vectors.npy", "codes.npy", "scales.npy"

_BLOCK = 2048
_AGAIN = 120  # candidates beyond those wanted that are scored again: codes may order near ones otherwise
_FEW = 50_000
"""Where so few rows pass, all are compared, whatever index there is."""

_DIGITS = 6  # a sum in float32 differs in the seventh digit by where a row lies: equal vectors must score the same
_ROUNDING = 1e-6
_BYTE = 127


def blank_vectors(folder: Path, rows: int, dimension: int) -> NDArray[np.float16]:
    """The vectors of a folder as zeros, memory-mapped, to be written; `finish_vectors` does the rest.

    Their room on the disk is taken now: where it ends later, a process with a map would be killed.
    """
    with ArrayWriter(folder / VALUES, "<f2", (dimension,)) as writer:
        for begin in range(0, rows, _BLOCK):
            writer.append(np.zeros((min(_BLOCK, rows - begin), dimension), np.float16))
    return np.asarray(np.load(folder / VALUES, mmap_mode="r+"))


def finish_vectors(folder: Path) -> int:
    """Writes the codes and scales of a folder of vectors; returns how many of these are not zero."""
    values, count = mapped(folder / VALUES), 0
    with ArrayWriter(folder / CODES, "i1", values.shape[1:]) as codes, ArrayWriter(folder / SCALES, "<f4") as scales:
        for begin in range(0, len(values), _BLOCK):
            floats = values[begin : begin + _BLOCK].astype(np.float32)
            scale = np.abs(floats).max(axis=1, initial=0)[:, None] / _BYTE
            codes.append(np.rint(np.divide(floats, scale, out=np.zeros_like(floats), where=scale > 0)))
            scales.append(scale[:, 0])
            count += int(np.count_nonzero(scale))
    return count


class Vectors:
    """The memory-mapped vectors of a folder. Safe to use from several threads.

    Attributes:
        path: The folder.
        manifest: What made them.
        values: The vectors, float16, (papers, dimension), each of length one or zero.
        known: Which papers have a vector, (papers,).

    Raises:
        IndexUnusableError: The folder is half made, or its files do not fit together.
    """

    def __init__(self, path: Path, probe: int | None = None) -> None:
        self.path = path
        self.manifest = DenseManifest.read(path)
        again = f"Make the vectors again: {encode_command(path)}"
        self.values: NDArray[np.float16] = mapped(path / VALUES, again)
        self._codes: NDArray[np.int8] = mapped(path / CODES, again)
        self._scales: Floats = mapped(path / SCALES, again)
        self.known: Mask = self._scales > 0
        shape = (self.manifest.count + self.manifest.without_vector, self.manifest.dimension)
        if not self.values.shape == self._codes.shape == shape == (len(self._scales), shape[1]):
            raise IndexUnusableError(
                f"{path} is damaged: its files have other numbers of rows than its manifest, {shape[0]:,}", again
            )
        is_exact = self.manifest.kind_of_search == "exact"
        self._index = None if is_exact else FaissIndex(path, self.manifest, len(self), probe)

    def __len__(self) -> int:
        return len(self.values)

    def search(self, vector: Floats, k: int, filters: Filters, papers: PaperFilter) -> tuple[Rows, Scores]:
        """As `nearest`, among the papers that pass filters."""
        return self.nearest(vector, k, None if filters == NO_FILTERS else papers.passing(filters))

    def nearest(self, vector: Floats, k: int, mask: Mask | None = None) -> tuple[Rows, Scores]:
        """The rows and cosines of the k nearest of a vector (dimension,), nearest first; ties in order of row.

        Args:
            vector: The vector, of length one.
            k: How many, at most.
            mask: Which papers may be found, (papers,); all by default.
        """
        allowed = self.known if mask is None else self.known & mask
        passing, wanted = np.flatnonzero(allowed), k + _AGAIN
        rows: Rows = passing[:0]
        if self._index is not None and len(passing) > _FEW:
            rows = self._index.candidates(vector, wanted, allowed)
        if len(rows) < min(k, len(passing)):  # under a narrow filter FAISS may find fewer than there are
            rows = passing
            if len(passing) > wanted:
                # Rows that are gathered take twice as long as rows that follow each other.
                most = 2 * len(passing) > len(self)
                products = self.products(vector)[passing] if most else self.products(vector, passing)
                rows = passing[places_of_best(products, wanted)]
        scores = self.scores(vector, rows)
        best = np.lexsort((rows, -scores))[:k]
        return rows[best], scores[best]

    def scores(self, vector: Floats, rows: Rows) -> Scores:
        """The cosines of a vector (dimension,) with some rows, (rows,); NaN for papers without a vector."""
        products = _dot(self.values[rows], vector).astype(np.float64)
        return np.where(self.known[rows], products.round(_DIGITS), np.nan)

    def of(self, rows: Rows) -> tuple[Mask, Floats]:
        """Which of some papers have a vector, (rows,), and the vectors of these, (known, dimension).

        The row of a paper that the index lacks is -1.
        """
        known = (rows >= 0) & self.known[rows] if len(self) else np.zeros(len(rows), bool)
        return known, self.values[rows[known]].astype(np.float32)

    def products(self, vector: Floats, rows: Rows | None = None) -> Floats:
        """About the cosines of a vector (dimension,) with some rows, by default all, (rows,): those of the codes."""
        count = len(self) if rows is None else len(rows)
        found = np.empty(count, np.float32)
        for begin in range(0, count, _BLOCK):
            part = slice(begin, begin + _BLOCK) if rows is None else rows[begin : begin + _BLOCK]
            found[begin : begin + _BLOCK] = _dot(self._codes[part], vector) * self._scales[part]
        return found


def _dot(vectors: NDArray[np.float16 | np.int8], vector: Floats) -> Floats:
    """The dot products of some vectors with one, (vectors,)."""
    # `@` would wake the threads of BLAS for each block: on a busy machine they take ten times as long.
    return np.vecdot(vectors.astype(np.float32), vector)  # type: ignore[no-any-return]


def places_of_best(scores: Floats, k: int) -> Rows:
    """The places of the k best of some scores, and of all that equal the last of them, in order: ties are no chance."""
    bound = np.partition(scores, -k)[-k]
    return np.flatnonzero(scores >= bound - _ROUNDING)


FAISS = "index.faiss"


class Kind(NamedTuple):
    """A kind of FAISS index.

    Attributes:
        factory: FAISS's description of an index over so many vectors of a dimension.
        fewest: Vectors that it needs to be trained; FAISS warns under 39, of lists and of codes.
        probe: nprobe of IVF, efSearch of HNSW for a hundred hits: for recall 0.99 on data/acm (all-MiniLM-L6-v2).
        refined: How many candidates for each hit are scored again with their own vectors; 0 if it holds no codes.
    """

    factory: Callable[[int, int], str]
    fewest: int = 0
    probe: int = 0
    refined: float = 0


def _lists(wanted: float, count: int) -> int:
    """A power of two near a number of lists, unless the vectors are too few to learn so many from."""
    return int(min(_MOST_LISTS, 2 ** round(math.log2(wanted)), count // 39))


def _code_bytes(dimension: int) -> int:
    """The bytes of a code: one for about 8 numbers, of which each has as many."""
    return next(size for size in range(max(1, dimension // 8), 0, -1) if dimension % size == 0)


KINDS: dict[str, Kind] = {
    "flat": Kind(lambda _count, _dimension: "SQfp16"),
    "ivfsq": Kind(lambda count, _: f"IVF{_lists(2 * count**0.5, count)},SQ8", 39 * 4, 96, 1.25),
    "ivfpq": Kind(lambda count, size: f"IVF{_lists(4 * count**0.5, count)},PQ{_code_bytes(size)}", 39 * 256, 128, 10),
    "hnsw": Kind(lambda _count, _dimension: "HNSW32_SQfp16", 0, 128),
}
# Fewer vectors are compared one by one: by numpy in 7 ms for 100,000 of 384 numbers. Beyond, IVF-SQ needs a byte for
# each number in memory, IVF-PQ an eighth.
_EXACT_COUNT, _CODED_NUMBERS = 1_000_000, 4e9
_MOST_LISTS, _VECTORS_PER_LIST = 65_536, 64
_WIDEST, _USUAL, _CHUNK = 16, 100, 16_384


def choose(asked: Asked, count: int, dimension: int) -> Asked:
    """How so many vectors are searched, unless it is asked for; exactly if they are too few to train an index on."""
    if asked == "auto" and count >= _EXACT_COUNT:
        return "ivfsq" if count * dimension <= _CODED_NUMBERS else "ivfpq"
    return "exact" if asked not in KINDS or count < KINDS[asked].fewest else asked


def faiss_module() -> Any:
    """The module `faiss`, whose type stubs are incomplete; raises BuildError if it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise BuildError("FAISS is not installed", "pip install 'citerec[cpu]', or 'citerec[gpu]'") from error
    return faiss


def build_faiss(folder: Path, vectors: NDArray[np.float16], kind: Asked, on_progress: Progress) -> None:
    """Builds `index.faiss` in a folder over vectors, (n, dimension). Zero vectors are in it: searches leave them out.

    HNSW is built by all processors at once, so its bytes, and one hit in a few hundred, differ between builds.
    """
    faiss = faiss_module()
    count, dimension = vectors.shape
    index = faiss.index_factory(dimension, KINDS[kind].factory(count, dimension), faiss.METRIC_INNER_PRODUCT)
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
        faiss.write_index(index, str(folder / FAISS))
    except RuntimeError as error:
        raise BuildError(
            f"FAISS cannot write {folder / FAISS} ({str(error)[-100:]})",
            "Make room, then run the same command: it continues where it stopped.",
        ) from error


class FaissIndex:
    """The FAISS index of a folder, memory-mapped. Safe to use from several threads.

    Raises:
        IndexUnusableError: It is missing or damaged, or not over these vectors.
    """

    def __init__(self, folder: Path, manifest: DenseManifest, rows: int, probe: int | None) -> None:
        faiss, path, remedy = faiss_module(), folder / FAISS, f"Make them: {encode_command(folder)}"
        try:
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexUnusableError(f"{path} cannot be read", remedy) from error
        if self._index.ntotal != rows or self._index.d != manifest.dimension:
            raise IndexUnusableError(f"{path} is not over these vectors", remedy)
        self._kind = KINDS[manifest.kind_of_search]
        self._probe = probe or self._kind.probe

    def candidates(self, vector: Floats, k: int, mask: Mask) -> Rows:
        """Rows that pass a mask, among them the k nearest of a vector (dimension,), if the search goes far enough.

        The fewer rows pass, the farther it searches.
        """
        faiss = faiss_module()
        passing = int(np.count_nonzero(mask))
        share = passing / max(1, len(mask))
        wanted = min(math.ceil(k * (self._kind.refined or 1)), passing)
        bits = np.packbits(mask, bitorder="little")
        parameters = {"sel": faiss.IDSelectorBitmap(bits)}
        of_kind = faiss.SearchParameters
        if self._kind.refined:
            probe = math.ceil(self._probe * min(_WIDEST, (1 / share) ** 0.5))
            of_kind, parameters["nprobe"] = faiss.SearchParametersIVF, min(self._index.nlist, probe)
        elif self._kind.probe:
            wider = math.ceil(self._probe * max(k, _USUAL) / _USUAL / max(share, 1 / _WIDEST))
            of_kind, parameters["efSearch"] = faiss.SearchParametersHNSW, wider
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # a setting of this thread of Python: idle threads of OpenMP keep processors busy
        try:
            rows: Rows = self._index.search(vector[None], wanted, params=of_kind(**parameters))[1][0]
        finally:
            faiss.omp_set_num_threads(threads)
        return rows[rows >= 0]
