"""The vectors of the papers of an index: given, from the cache or encoded; and the search among them.

A row is that of the paper. Beside the vectors in half precision there are codes of a byte for each number, with a scale
for each row: these are compared with the code of a query, and the best rows are scored again with their own vectors. A
paper without a vector has zeros, and is never found. A FAISS index is made by one factory string: for a million vectors
and more, or when asked for.

Papers are encoded part by part: a part is encoded wholly in one place, and any of them may come first. What was encoded
for an index is kept by content. A vector stands under the key of what made it (the part of the index, the model with
its version, the backend, how much of a text it reads) and the digest of its text. So an interrupted run goes on,
unchanged texts are not encoded again, and an index is brought up to date.
"""

import contextlib
import functools
import hashlib
import itertools
import math
import os
import platform
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import orjson
import simsimd
from numpy.typing import NDArray

from citerec.corpus.reading import BadRecord, RecordError, parsed, raw_lines, read_id
from citerec.errors import BuildError, IndexUnusableError, InputError, ModelError, SourceError
from citerec.files.parallel import HERE, Parallelism, available_processors, in_parts, outcomes_of
from citerec.files.progress import Progress, Rejected
from citerec.files.resume import digest_of
from citerec.index.columns import COLUMNS, Mask, PaperRows, Rows, mapped, places_of_best, rows_of, writing_arrays
from citerec.index.manifest import CACHE, DENSE, FILE_NAME, FolderManifest, checksums
from citerec.models.encoder import ENCODERS, Encoder, PaperEncoder, coded, paper_text
from citerec.models.find import usual_encoder
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.settings import Positive
from citerec.version import __version__

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]

SearchKind = Literal["auto", "exact", "flat", "ivfsq", "ivfpq", "hnsw"]
"""How vectors are searched: all are compared, or the kind of a FAISS index; `auto` is one of them by their number."""


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
    asked: SearchKind
    kind_of_search: SearchKind

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
_AGAIN = 120  # of the nearest by their codes are scored again: codes may order near ones otherwise
_FEW = 50_000
"""Where so few rows pass, all are compared, whatever index there is."""

_DIGITS = 6  # a sum in float32 differs in the seventh digit by where a row lies: equal vectors must score the same


def blank_vectors(folder: Path, rows: int, dimension: int) -> NDArray[np.float16]:
    """The vectors of a folder as zeros, memory-mapped, to be written; `finish_vectors` does the rest.

    Their room on the disk is taken now: where it ends later, a process with a map would be killed.
    """
    with writing_arrays(folder) as append:
        for begin in range(0, rows or 1, _BLOCK):
            append(vectors=np.zeros((min(_BLOCK, rows - begin), dimension), np.float16))
    return np.asarray(np.load(folder / VALUES, mmap_mode="r+"))


def finish_vectors(folder: Path) -> int:
    """Writes the codes and scales of a folder of vectors; returns how many of these are not zero."""
    values, count = mapped(folder / VALUES), 0
    with writing_arrays(folder) as append:
        for begin in range(0, len(values) or 1, _BLOCK):
            codes, scales = coded(values[begin : begin + _BLOCK].astype(np.float32))
            append(codes=codes, scales=scales)
            count += int(np.count_nonzero(scales))
    return count


class Vectors:
    """The memory-mapped vectors of a folder. Safe to use from several threads.

    Attributes:
        path: The folder.
        manifest: What made them.
        values: The vectors, float16, (papers, dimension), each of length one or zero.
        has_vector: Which papers have a vector, (papers,).

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
        self.has_vector: Mask = self._scales > 0
        shape = (self.manifest.count + self.manifest.without_vector, self.manifest.dimension)
        if not self.values.shape == self._codes.shape == shape == (len(self._scales), shape[1]):
            fault = f"{path} is damaged: its files have other numbers of rows than its manifest, {shape[0]:,}"
            raise IndexUnusableError(fault, again)
        is_exact = self.manifest.kind_of_search == "exact"
        self._index = None if is_exact else FaissIndex(path, self.manifest, len(self), probe)

    def __len__(self) -> int:
        return len(self.values)

    def search(self, vector: Floats, k: int, filters: Filters, papers: PaperRows) -> tuple[Rows, Scores]:
        """As `nearest`, among the papers that pass filters."""
        return self.nearest(vector, k, None if filters == NO_FILTERS else papers.passing(filters))

    def nearest(self, vector: Floats, k: int, mask: Mask | None = None) -> tuple[Rows, Scores]:
        """The rows and cosines of the k nearest of a vector (dimension,), nearest first; ties in order of row.

        Args:
            vector: The vector, of length one.
            k: How many, at most.
            mask: Which papers may be found, (papers,); all by default.
        """
        allowed = self.has_vector if mask is None else self.has_vector & mask
        rows: Rows = np.flatnonzero(allowed)
        if self._index is not None and len(rows) > _FEW:
            candidates = self._index.candidates(vector, k + _AGAIN, allowed)
            # Under a narrow filter FAISS may find fewer than there are.
            rows = candidates if len(candidates) >= k else rows
        if len(rows) > max(k, _AGAIN):
            # Rows that are gathered take twice as long as rows that follow each other.
            most = 2 * len(rows) > len(self)
            products = self.products(vector)[rows] if most else self.products(vector, rows)
            rows = rows[places_of_best(products, max(k, _AGAIN))]
        scores = self.scores(vector, rows)
        best = np.lexsort((rows, -scores))[:k]
        return rows[best], scores[best]

    def scores(self, vector: Floats, rows: Rows) -> Scores:
        """The cosines of a vector (dimension,) with some rows, (rows,); NaN for papers without a vector.

        Those of the nearest 120 are exact to float16, the others to about 0.001: they are those of the codes.
        """
        products = self.products(vector, rows)
        nearest = places_of_best(products, _AGAIN)
        products[nearest] = _dot(self.values[rows[nearest]], vector)
        return np.where(self.has_vector[rows], products.astype(np.float64).round(_DIGITS), np.nan)

    def of(self, rows: Rows) -> tuple[Mask, Floats]:
        """Which of some papers have a vector, (rows,), and the vectors of these, (vectors, dimension).

        The row of a paper that the index lacks is -1.
        """
        has_vector = (rows >= 0) & self.has_vector[rows] if len(self) else np.zeros(len(rows), bool)
        return has_vector, self.values[rows[has_vector]].astype(np.float32)

    def products(self, vector: Floats, rows: Rows | None = None) -> Floats:
        """About the cosines of a vector (dimension,) with some rows, by default all, (rows,): those of the codes."""
        (code,), (scale,) = coded(vector[None])
        count = len(self) if rows is None else len(rows)
        products = np.empty(count, np.float32)
        for begin in range(0, count, _BLOCK):
            part = slice(begin, begin + _BLOCK) if rows is None else rows[begin : begin + _BLOCK]
            products[begin : begin + _BLOCK] = np.asarray(simsimd.dot(self._codes[part], code))
            products[begin : begin + _BLOCK] *= self._scales[part] * scale
        return products


def _dot(vectors: NDArray[np.float16], vector: Floats) -> Floats:
    """The dot products of some vectors with one, (vectors,)."""
    # `@` would wake the threads of BLAS for each block: on a busy machine they take ten times as long.
    return np.vecdot(vectors.astype(np.float32), vector)  # type: ignore[no-any-return]


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


def choose(kind: SearchKind, count: int, dimension: int) -> SearchKind:
    """How so many vectors are searched, unless it is asked for; exactly if they are too few to train an index on."""
    if kind == "auto" and count >= _EXACT_COUNT:
        return "ivfsq" if count * dimension <= _CODED_NUMBERS else "ivfpq"
    return "exact" if kind not in KINDS or count < KINDS[kind].fewest else kind


def build_faiss(folder: Path, vectors: NDArray[np.float16], kind: SearchKind, on_progress: Progress) -> None:
    """Builds `index.faiss` in a folder over vectors, (n, dimension). Zero vectors are in it: searches leave them out.

    HNSW is built by all processors at once, so its bytes, and one hit in a few hundred, differ between builds.
    """
    import faiss

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
        remedy = "Make room, then run the same command: it continues where it stopped."
        raise BuildError(f"FAISS cannot write {folder / FAISS} ({str(error)[-100:]})", remedy) from error


class FaissIndex:
    """The FAISS index of a folder, memory-mapped. Safe to use from several threads.

    Raises:
        IndexUnusableError: It is missing or damaged, or not over these vectors.
    """

    def __init__(self, folder: Path, manifest: DenseManifest, rows: int, probe: int | None) -> None:
        import faiss

        path, remedy = folder / FAISS, f"Make them: {encode_command(folder)}"
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
        import faiss

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


_ARRAYS = ("ids.npy", "vectors.npy")
_BATCH = 4096
# float16 keeps three digits: vectors this near to length one were normalised before, and are used unchanged.
_NORMALISED = 2e-3
_FORMS = "Give a folder with vectors.npy and ids.npy, or S2AG's embeddings-specter_v2 (JSON Lines): docs/retrieval.md."

_Batch = tuple[list[tuple[str, Any]], float]
"""Ids of papers with their vectors, empty where a record has none; and the share of the source that was read."""


def find_given(paths: Sequence[Path]) -> list[Path]:
    """The sources of vectors below some paths: folders of arrays, shards of JSON Lines.

    Raises:
        SourceError: A path has none.
    """
    all_sources: list[Path] = []
    for path in paths:
        is_whole = path.is_file() or all((path / name).is_file() for name in _ARRAYS)
        sources = [path] if is_whole else sorted(file for file in path.glob("[!.]*") if file.is_file())
        if not sources:
            raise SourceError(f"{path} {'holds no vectors' if path.exists() else 'does not exist'}", _FORMS)
        all_sources += sources
    return all_sources


def dimension_of(sources: Sequence[Path]) -> int:
    """The dimension of the first vector; SourceError if there is none."""
    batches = itertools.chain.from_iterable(map(_batches, sources))
    lengths = (len(vector) for pairs, _ in batches for _, vector in pairs)
    if not (dimension := next(filter(None, lengths), 0)):
        raise SourceError(f"{sources[0]} holds no vector", _FORMS)
    return dimension


def _batches(source: Path) -> Iterator[_Batch]:
    """The vectors of a folder of arrays, or of a shard of JSON Lines."""
    if source.is_dir():
        ids, vectors = _arrays(source)
        for begin in range(0, len(ids), _BATCH):
            part = slice(begin, begin + _BATCH)
            texts = np.char.decode(ids[part], "utf-8", "replace") if ids.dtype.kind == "S" else ids[part].astype(str)
            yield list(zip(texts.tolist(), vectors[part], strict=True)), min(1.0, part.stop / len(ids))
        return
    size = max(1, source.stat().st_size)
    for lines in in_parts(raw_lines(source), _BATCH):
        records = [parsed(raw, _vector) for _, raw, _ in lines]
        yield [("", []) if isinstance(one, BadRecord) else one for one in records], lines[-1][2] / size


def _arrays(source: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        ids, vectors = (np.load(source / name, mmap_mode="r", allow_pickle=False) for name in _ARRAYS)
    except (OSError, ValueError, EOFError) as error:
        raise SourceError(f"{source}: its arrays cannot be read ({error})".replace("\n", " "), _FORMS) from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or ids.shape != vectors.shape[:1] or ids.dtype.kind not in "iuSU":
        fault = f"{source}: vectors.npy is {vectors.dtype} {vectors.shape} and ids.npy {ids.dtype} {ids.shape}"
        remedy = "vectors.npy must hold floats, (papers, dimension), and ids.npy an id for each of its rows."
        raise SourceError(fault, remedy)
    return ids, vectors


def _vector(record: Mapping[str, Any]) -> tuple[str, list[float]]:
    """Id and vector of a record; the vector is a list, or JSON in a string.

    Raises:
        RecordError: It has none.
    """
    paper_id, vector = read_id(record, "corpusid"), record.get("vector")
    values = orjson.loads(vector) if isinstance(vector, str) else vector
    if not isinstance(values, list) or not values or not all(isinstance(value, float | int) for value in values):
        raise RecordError("no vector")
    return paper_id, values


def _usable(pairs: list[tuple[str, Any]], dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """The ids and vectors that have the dimension, are finite and not zero; scaled to length one."""
    fitting = [pair for pair in pairs if len(pair[1]) == dimension]
    vectors = np.array([vector for _, vector in fitting], np.float32).reshape(len(fitting), dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    good = np.isfinite(lengths) & (lengths > 0)
    scale = np.where(np.abs(lengths - 1) < _NORMALISED, 1.0, lengths)[good]
    return [fitting[at][0] for at in np.flatnonzero(good)], (vectors[good] / scale[:, None]).astype(np.float32)


GIVEN = "given.npy"
"""Which rows have a vector that was given, in a folder with such vectors."""

# Other models give unrelated vectors; other rounding, and somewhat different texts, give nearly the same.
_SAME = 0.9
_COMPARED, _SAMPLED = 16, 1000

# Rows of a part. A kill costs each worker half a minute on a slow processor; in smaller parts, fewer texts have similar
# lengths: of abstracts, torch reads 0.4 % more padding than in parts of 4,096.
_PART = 1024
_SCHEMA = """
PRAGMA auto_vacuum=FULL;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS vectors (
  part TEXT NOT NULL, key TEXT NOT NULL, name BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (part, key, name));
CREATE TEMP TABLE asked (name BLOB PRIMARY KEY) WITHOUT ROWID;
"""


def text_encoder(options: "DenseOptions") -> PaperEncoder:
    """The encoder that options name; errors as for `Encoder.open`."""
    return Encoder.open(options.model, backend=options.backend, max_tokens=options.max_tokens)


@dataclass(frozen=True, slots=True)
class DenseOptions:
    """How vectors are made and searched.

    Attributes:
        model: The encoder of the papers, and later of the queries: a folder, or a name; by default the `usual_encoder`
            of so many papers.
        vectors: Vectors that were made elsewhere by that model, in place of encoding: docs/formats.md.
        kind: How they are searched: `exact`, all are compared, or the kind of a FAISS index; `auto` chooses by
            their number.
        max_tokens: How many tokens of a text are read; None for the number that the model's authors set.
        backend: What runs the encoder; by default torch, or what is best for the `usual_encoder`.
        max_bad: Share of unusable given vectors, 0 to 1, above which the work stops; it changes no vector.
        previous: A folder of vectors, some of them given by the same model. These are used again, beside `vectors`;
            if there are none of these, other papers are encoded, if the model is there and makes such vectors.
        open_encoder: Opens the encoder: a function of a module.
    """

    model: str = ""
    vectors: tuple[Path, ...] = ()
    kind: SearchKind = "auto"
    max_tokens: Positive | None = 192
    backend: str = ""
    max_bad: float = field(default=0.05, compare=False)
    previous: Path | None = None
    open_encoder: "Callable[[DenseOptions], PaperEncoder]" = text_encoder

    def for_papers(self, papers: int) -> Self:
        """The same with a backend, and with an encoder for so many papers if none is named.

        Raises:
            InputError: Vectors are given, but not the model that made them.
        """
        if self.vectors and not self.model:
            raise InputError("vectors are given without their model", "Name it: it has to encode the queries.")
        model, backend = (self.model, "torch") if self.model else usual_encoder(papers)
        return replace(self, model=model, backend=self.backend or backend)


def name_of(paper: Paper) -> bytes:
    """The name of the vector of a paper's text: 16 bytes of its BLAKE2 digest."""
    return hashlib.blake2b(paper_text(paper).encode("utf-8", "surrogatepass"), digest_size=16).digest()


class VectorCache:
    """The vectors of one part of an index, such as `dense`. For one process at a time, but any number of its threads.

    Args:
        path: The file.
        part: The name of the part.
        key: What makes the vectors that are asked for and put in.
    """

    def __init__(self, path: Path, part: str, key: str) -> None:
        self._of = part, key
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def put(self, names: Sequence[bytes], vectors: NDArray[np.float16]) -> None:
        """Keeps some vectors, (names, dimension)."""
        rows = ((*self._of, name, vector.tobytes()) for name, vector in zip(names, vectors, strict=True))
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def get(self, names: Iterable[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """The vectors of some names, by name; those that are not kept are left out."""
        vectors: dict[bytes, NDArray[np.float16]] = {}
        query = "SELECT vector FROM vectors WHERE part = ? AND key = ? AND name = ?"
        with self._lock, self._connection:
            for name in names:
                self._connection.execute("INSERT OR IGNORE INTO asked VALUES (?)", (name,))
                for (vector,) in self._connection.execute(query, (*self._of, name)):
                    vectors[name] = np.frombuffer(vector, np.float16)
        return vectors

    def drop_others(self) -> None:
        """Removes the vectors of the part for which nobody has asked since the cache was opened."""
        others = "part = ? AND (key != ? OR name NOT IN (SELECT name FROM asked))"
        with self._lock, self._connection:
            self._connection.execute(f"DELETE FROM vectors WHERE {others}", self._of)


class VectorBuild(NamedTuple):
    """Makes the vectors of all papers of a store in a folder, and what searches them.

    Attributes:
        folder: The folder in the next generation of an index, whose columns are there; it is made anew.
        texts: The papers, in order of id; or what else gets a vector, with its text as the title.
        fingerprint: Of the store.
        options: The encoder, or given vectors, and how they are searched.
        on_progress: Called as the work goes on.
        ids: The file with the ids of the papers, in order, among the columns; or of what else gets a vector.
        parallelism: Where papers are encoded: here, where an encoder uses all processors or the GPU, or elsewhere.
    """

    folder: Path
    texts: Callable[[], Iterator[Paper]]
    fingerprint: str
    options: DenseOptions
    on_progress: Progress
    ids: str = "ids.npy"
    parallelism: Parallelism = HERE

    def make(self) -> DenseManifest:
        """Makes them.

        Raises:
            ModelError: The model cannot be found or loaded.
            SourceError: Given vectors are missing or broken, or no paper has a text.
            BuildError: Too many given vectors cannot be used.
        """
        folder, options = self.folder, self.options
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
        folder.mkdir()
        row_ids = mapped(folder.parent / COLUMNS / self.ids)
        encoder: PaperEncoder | None
        if is_given := bool(options.vectors or options.previous):
            values, has_given, faults = self._taken(row_ids)
            encoder = None if options.vectors else self._encoder_of(values, has_given)
        else:
            encoder, has_given, faults = options.open_encoder(options), np.zeros(len(row_ids), bool), {}
            values = blank_vectors(folder, len(row_ids), encoder.dimension)
        self._encode(encoder, values, has_given)
        if not (count := finish_vectors(folder)):
            raise SourceError("no paper has a text to encode", "Give papers with titles or abstracts.")
        kind = choose(options.kind, *values.shape)
        if kind != "exact":
            build_faiss(folder, values, kind, self.on_progress)
        made_by = None if is_given else encoder
        manifest = DenseManifest(
            citerec=__version__,
            model=_lasting(options.model),
            identity=made_by.identity if made_by else None,
            backend=options.backend,
            max_tokens=made_by.max_tokens if made_by else None,
            dimension=values.shape[1],
            count=count,
            without_vector=len(values) - count,
            given=is_given,
            faults=faults,
            store=self.fingerprint,
            asked=options.kind,
            kind_of_search=kind,
            checksums=checksums(folder),
        )
        manifest.write(folder)
        return manifest

    def _taken(self, ids: NDArray[np.bytes_]) -> tuple[NDArray[np.float16], Mask, dict[str, int]]:
        """The vectors that are given, (papers, dimension), which rows have one, and how many were not used, by reason.

        Those that were given for a generation before come first.
        """
        options, before = self.options, self.options.previous
        sources, has_given = find_given(options.vectors), np.zeros(len(ids), bool)
        dimension = DenseManifest.read(before).dimension if before else dimension_of(sources)
        values = blank_vectors(self.folder, len(ids), dimension)
        if before:
            old_ids, old_values = mapped(before.parent / COLUMNS / "ids.npy"), mapped(before / VALUES)
            for part in in_parts(np.flatnonzero(mapped(before / GIVEN)), _PART):
                rows = rows_of(ids, (key.decode() for key in old_ids[part].tolist()))
                values[rows[rows >= 0]] = old_values[part][rows >= 0]
                has_given[rows[rows >= 0]] = True
        faults = self._take(sources, ids, values, has_given) if sources else {}
        np.save(self.folder / GIVEN, has_given)
        return values, has_given, faults

    def _take(
        self, sources: Sequence[Path], ids: NDArray[np.bytes_], values: NDArray[np.float16], has_given: Mask
    ) -> dict[str, int]:
        """Puts the vectors of some sources into their rows; of several of a paper the last one counts.

        Returns:
            How many were not used, by reason.

        Raises:
            SourceError: A source cannot be read, or holds no vector of a paper.
            BuildError: Too many vectors cannot be used.
        """
        dimension, elsewhere, taken = values.shape[1], 0, 0
        rejected = Rejected(self.options.max_bad, f"vectors of dimension {dimension}")
        for number, source in enumerate(sources):
            for pairs, share in _batches(source):
                names, vectors = _usable(pairs, dimension)
                rows = rows_of(ids, names)
                has_row = rows >= 0
                values[rows[has_row]] = vectors[has_row]
                has_given[rows[has_row]] = True
                taken, elsewhere = taken + int(has_row.sum()), elsewhere + int((~has_row).sum())
                rejected.add(len(rows), len(pairs) - len(rows), f"in {source}")
                rejected.check(1.0)
                self.on_progress("taking vectors", number + share, len(sources))
        rejected.check()
        if not taken:
            fault = f"none of the {elsewhere:,} vectors belongs to a paper of the index"
            raise SourceError(fault, "Do their ids come from the same corpus?")
        faults = {"of papers not in the index": elsewhere, "not finite, zero or of another dimension": rejected.bad}
        return {reason: count for reason, count in faults.items() if count}

    def _lacking(self, has_given: Mask) -> Iterator[tuple[int, Paper]]:
        """The papers with a text that are to be encoded, and their rows."""
        return ((row, paper) for row, paper in enumerate(self.texts()) if not has_given[row] and paper_text(paper))

    def _encoder_of(self, values: NDArray[np.float16], has_given: Mask) -> PaperEncoder | None:
        """The encoder that made given vectors, if papers lack one.

        None if none does, or it cannot be opened, or makes other vectors of the first papers.
        """
        if next(self._lacking(has_given), None) is None:
            return None
        try:
            encoder = self.options.open_encoder(self.options)
        except (ModelError, BuildError):
            return None
        sample = ((row, paper) for row, paper in itertools.islice(enumerate(self.texts()), _SAMPLED) if has_given[row])
        some = dict(itertools.islice(sample, _COMPARED))
        if encoder.dimension != values.shape[1] or not some:
            return None
        cosines = np.sum(values[list(some)].astype(np.float32) * encoder.encode_papers(list(some.values())), axis=1)
        return encoder if np.mean(cosines) >= _SAME else None

    def _encode(self, encoder: PaperEncoder | None, values: NDArray[np.float16], has_given: Mask) -> None:
        """Puts the vectors that an encoder makes into their rows; None makes none. The cache loses all others."""
        key = digest_of([encoder.identity, self.options.backend, str(encoder.max_tokens)])[:16] if encoder else ""
        with contextlib.closing(VectorCache(self.folder.parents[1] / CACHE, self.folder.name, key)) as cache:
            if encoder is not None:
                self._fill(cache, encoder, (paper for _, paper in self._lacking(has_given)), len(values))
                for part in in_parts(self._lacking(has_given), _PART):
                    vectors = cache.get(name_of(paper) for _, paper in part)
                    for row, paper in part:
                        values[row] = vectors[name_of(paper)]
            cache.drop_others()

    def _fill(self, cache: VectorCache, encoder: PaperEncoder, papers: Iterable[Paper], whole: int) -> None:
        """Encodes those of some papers, about `whole`, whose vectors the cache lacks, part by part."""
        known_count = 0

        def lacking() -> Iterator[Paper]:
            nonlocal known_count
            for part in in_parts(papers, _PART):
                by_name = {name_of(paper): paper for paper in part}  # equal texts have one vector
                new = by_name.keys() - cache.get(by_name).keys()
                known_count += len(part) - len(new)
                yield from (paper for name, paper in by_name.items() if name in new)

        opened: Callable[[], PaperEncoder] = lambda: encoder  # noqa: E731
        if self.parallelism != HERE:
            identity, threads = encoder.identity, threads_for(self.parallelism)
            opened = functools.partial(_opened, self.options, identity, threads)
        # Texts of similar length are encoded together.
        parts = (sorted(part, key=lambda one: -len(paper_text(one))) for part in in_parts(lacking(), _PART))
        work, gpus, encoded = functools.partial(_encoded, opened), int(ENCODERS[self.options.backend].on_gpu), 0
        with contextlib.closing(outcomes_of(work, parts, self.parallelism, gpus=gpus)) as outcomes:
            for _, (names, vectors) in outcomes:
                cache.put(names, vectors)
                encoded += len(names)
                self.on_progress("encoding", min(known_count + encoded, whole), whole)


def renewal(previous: Path, options: DenseOptions | None = None) -> DenseOptions:
    """The options that update vectors: those they were made with, or those that are asked for.

    Raises:
        IndexUnusableError: The vectors cannot be used.
        InputError: Vectors are given, and those before were encoded by the same model.
    """
    manifest = DenseManifest.read(previous)
    if options is None:
        max_tokens, backend = manifest.max_tokens, manifest.backend
        options = DenseOptions(manifest.model, kind=manifest.asked, max_tokens=max_tokens, backend=backend)
    if _lasting(options.model) != manifest.model:
        return options
    if options.vectors and not manifest.given:
        remedy = "Leave --vectors out: new papers are encoded as the rest was."
        raise InputError(f"the vectors of {previous.parent.parent} were encoded from its texts by this model", remedy)
    return replace(options, previous=previous if manifest.given else None)


def _lasting(model: str) -> str:
    """The model's name, valid from any working directory."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model


def threads_for(parallelism: Parallelism) -> int:
    """How many threads each process has: those of one machine share its processors. Ray sees to that by itself."""
    processes = parallelism if isinstance(parallelism, int) else available_processors()
    return max(1, available_processors() // processes)


@functools.lru_cache(maxsize=1)
def _opened(options: DenseOptions, identity: str, threads: int) -> PaperEncoder:
    """The encoder in another process, kept for all parts; a ModelError if it is not the one with an identity."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch is imported
    encoder = options.open_encoder(options)
    if encoder.identity != identity:
        remedy = "Install the same model on all machines."
        raise ModelError(f"the model {options.model!r} on {platform.node()} is another one than here", remedy)
    return encoder


def _encoded(opened: Callable[[], PaperEncoder], papers: Sequence[Paper]) -> tuple[list[bytes], NDArray[np.float16]]:
    """The names and the vectors of the papers of a part, (papers, dimension)."""
    return [*map(name_of, papers)], opened().encode_papers(papers).astype(np.float16)
