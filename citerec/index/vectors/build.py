"""Making the vectors of the papers of an index: given, from the cache, or encoded.

Papers are encoded part by part: a part is encoded wholly in one place, and any of them may come first. What was encoded
for an index is kept by content, so nothing dear is done twice. A vector stands under the key of what made it (the part
of the index, the model with its version, the backend, how much of a text it reads) and the digest of its text. So an
interrupted run goes on, unchanged texts are not encoded again, and an index is brought up to date.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import platform
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from citerec.corpus.json_lines import BadRecord, RecordError, parsed, raw_lines, read_id
from citerec.errors import BuildError, InputError, ModelError, SourceError
from citerec.files.hashing import digest_of
from citerec.files.parallel import HERE, Parallelism, available_processors, in_parts, outcomes_of
from citerec.files.progress import Progress, Rejected
from citerec.index.columns import COLUMNS, Mask, mapped, rows_of
from citerec.index.manifest import checksum
from citerec.index.vectors.vectors import (
    VALUES,
    Asked,
    DenseManifest,
    Floats,
    blank_vectors,
    build_faiss,
    choose,
    finish_vectors,
)
from citerec.models.encoder import ENCODERS, Encoder
from citerec.records import Paper
from citerec.settings import Positive
from citerec.version import __version__

_ARRAYS = ("ids.npy", "vectors.npy")
_BATCH = 4096
# float16 keeps three digits: vectors this near to length one were normalised before, and are used unchanged.
_NORMALISED = 2e-3
_FORMS = "Give a folder with vectors.npy and ids.npy, or S2AG's embeddings-specter_v2 (JSON Lines): docs/retrieval.md."

_Batch = tuple[list[str], Any, int, float]
"""Ids of papers, their vectors, how many records had none, and the share of the source that was read."""


def find_given(paths: Sequence[Path]) -> list[Path]:
    """The sources of vectors below some paths: folders of arrays, shards of JSON Lines.

    Raises:
        SourceError: A path has none.
    """
    found: list[Path] = []
    for path in paths:
        is_whole = path.is_file() or all((path / name).is_file() for name in _ARRAYS)
        sources = [path] if is_whole else sorted(file for file in path.glob("[!.]*") if file.is_file())
        if not sources:
            raise SourceError(f"{path} {'holds no vectors' if path.exists() else 'does not exist'}", _FORMS)
        found += sources
    return found


def dimension_of(sources: Sequence[Path]) -> int:
    """The dimension of the first vector; SourceError if there is none."""
    for source in sources:
        for _, vectors, _, _ in _batches(source):
            if len(vectors):
                return len(vectors[0])
    raise SourceError(f"{sources[0]} holds no vector", _FORMS)


def take_given(
    values: NDArray[np.float16], ids: NDArray[np.bytes_], sources: Sequence[Path], max_bad: float, on_progress: Progress
) -> tuple[dict[str, int], Mask]:
    """Puts the given vectors of some papers into their rows. Of several vectors of a paper the last one counts.

    Args:
        values: Where to, (papers, dimension); vectors of another dimension are not used.
        ids: The ids of the papers, sorted.
        sources: Where the vectors are: `find_given`.
        max_bad: The share of unusable vectors, 0 to 1, above which the work stops.
        on_progress: Called as the work goes on.

    Returns:
        How many vectors were not used, by reason; and which papers have one now, (papers,).

    Raises:
        SourceError: A source cannot be read, or holds no vector of a paper.
        BuildError: Too many vectors cannot be used.
    """
    rejected, elsewhere, taken = (
        Rejected(max_bad, f"vectors of dimension {values.shape[1]}"),
        0,
        np.zeros(len(values), bool),
    )
    for number, source in enumerate(sources):
        for batch in _batches(source):
            names, vectors = _usable(batch, values.shape[1])
            rows = rows_of(ids, names)
            known = rows >= 0
            values[rows[known]] = vectors[known]
            taken[rows[known]] = True
            elsewhere += int(np.count_nonzero(~known))
            rejected.add(len(rows), len(batch[0]) + batch[2] - len(rows), f"in {source}")
            rejected.check(1.0)
            on_progress("taking vectors", number + batch[-1], len(sources))
    rejected.check()
    if not taken.any():
        raise SourceError(
            f"none of the {elsewhere:,} vectors belongs to a paper of the index",
            "Do their ids come from the same corpus?",
        )
    faults = {"of papers not in the index": elsewhere, "not finite, zero or of another dimension": rejected.bad}
    return {reason: count for reason, count in faults.items() if count}, taken


def _batches(source: Path) -> Iterator[_Batch]:
    """The vectors of a folder of arrays, or of a shard of JSON Lines."""
    if source.is_dir():
        ids, vectors = _arrays(source)
        for begin in range(0, len(ids), _BATCH):
            part = slice(begin, begin + _BATCH)
            texts = np.char.decode(ids[part], "utf-8", "replace") if ids.dtype.kind == "S" else ids[part].astype(str)
            yield texts.tolist(), vectors[part], 0, min(1.0, part.stop / len(ids))
        return
    size = max(1, source.stat().st_size)
    for lines in in_parts(raw_lines(source), _BATCH):
        records = [parsed(raw, _vector) for _, raw, _ in lines]
        readable = [record for record in records if not isinstance(record, BadRecord)]
        names = [paper_id for paper_id, _ in readable]
        yield names, [vector for _, vector in readable], len(records) - len(names), lines[-1][2] / size


def _arrays(source: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        ids, vectors = (np.load(source / name, mmap_mode="r", allow_pickle=False) for name in _ARRAYS)
    except (OSError, ValueError, EOFError) as error:
        raise SourceError(f"{source}: its arrays cannot be read ({error})".replace("\n", " "), _FORMS) from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or ids.shape != vectors.shape[:1] or ids.dtype.kind not in "iuSU":
        raise SourceError(
            f"{source}: vectors.npy is {vectors.dtype} {vectors.shape} and ids.npy {ids.dtype} {ids.shape}",
            "vectors.npy must hold floats, (papers, dimension), and ids.npy an id for each of its rows.",
        )
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


def _usable(batch: _Batch, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """The ids and vectors that have the dimension, are finite and not zero; scaled to length one."""
    fitting = [(paper_id, vector) for paper_id, vector in zip(*batch[:2], strict=True) if len(vector) == dimension]
    vectors = np.array([vector for _, vector in fitting], np.float32).reshape(len(fitting), dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    good = np.isfinite(lengths) & (lengths > 0)
    scale = np.where(np.abs(lengths - 1) < _NORMALISED, 1.0, lengths)[good]
    return [fitting[at][0] for at in np.flatnonzero(good)], (vectors[good] / scale[:, None]).astype(np.float32)


CACHE = "vectors.sqlite"
"""The file with what was encoded for an index, beside its generations."""

GIVEN = "given.npy"
"""Which rows have a vector that was given, in a folder with such vectors."""

# Other models give unrelated vectors; other rounding, and somewhat different texts, give nearly the same.
_SAME = 0.9
_COMPARED, _SAMPLED = 16, 1000

# Rows of a part. A kill costs each worker half a minute on a slow processor; in smaller parts, fewer texts have similar
# lengths: of abstracts, torch reads 0.4 % more padding than in parts of 4,096.
_PART = 1024
_ASKED_AT_ONCE = 500
_SCHEMA = """
PRAGMA auto_vacuum=FULL;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS vectors (
  part TEXT NOT NULL, key TEXT NOT NULL, name BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (part, key, name));
CREATE TEMP TABLE asked (name BLOB PRIMARY KEY) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class DenseOptions:
    """How vectors are made and searched.

    Attributes:
        model: The encoder of the papers, and later of the queries: a folder, or a name.
        vectors: Vectors that were made elsewhere by that model, in place of encoding: docs/formats.md.
        kind: How they are searched: `exact` by numpy, or the kind of a FAISS index; `auto` chooses by their number.
        max_tokens: How many tokens of a text are read; None for the number that the model's authors set.
        max_bad: Share of unusable given vectors, 0 to 1, above which the work stops.
        given: A folder of vectors of which some were given by the same model. These are used again, beside `vectors`;
            if there are none of these, other papers are encoded, if the model is there and makes such vectors.
    """

    model: str
    vectors: tuple[Path, ...] = ()
    kind: Asked = "auto"
    max_tokens: Positive | None = 192
    backend: str = "torch"
    max_bad: float = 0.05
    given: Path | None = None


class PaperEncoder(Protocol):
    """Makes the vectors of papers of its `dimension`; it reads titles and abstracts, so many tokens at most."""

    identity: str
    dimension: int
    max_tokens: int

    def encode_papers(self, papers: Sequence[Paper], /) -> Floats:
        """The vectors of some papers, (papers, dimension), each of length one."""


class TextEncoder:
    """An encoder of texts, for papers: each is one text, `paper_text`."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity, self.dimension, self.max_tokens = encoder.identity, encoder.dimension, encoder.max_tokens

    @classmethod
    def open(cls, options: DenseOptions) -> Self:
        """Opens the encoder that some options name; errors as for `Encoder.open`."""
        return cls(Encoder.open(options.model, backend=options.backend, max_tokens=options.max_tokens))

    def encode_papers(self, papers: Sequence[Paper]) -> Floats:
        """As for `PaperEncoder`."""
        return self._encoder.encode([paper_text(paper) for paper in papers])


OpenEncoder = Callable[[DenseOptions], PaperEncoder]
"""Opens the encoder that some options name: a function of a module, or a method of a class."""


def paper_text(paper: Paper) -> str:
    """The text of a paper that is encoded: its title, and its abstract if it has one. Without a text, no vector."""
    return ". ".join(filter(None, (paper.title, paper.abstract)))


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
        found: dict[bytes, NDArray[np.float16]] = {}
        with self._lock, self._connection:
            for some in in_parts(names, _ASKED_AT_ONCE):
                self._connection.executemany("INSERT OR IGNORE INTO asked VALUES (?)", ((name,) for name in some))
                marks = ",".join("?" * len(some))
                query = f"SELECT name, vector FROM vectors WHERE part = ? AND key = ? AND name IN ({marks})"
                for name, vector in self._connection.execute(query, (*self._of, *some)):
                    found[name] = np.frombuffer(vector, np.float16)
        return found

    def drop_others(self) -> None:
        """Removes the vectors of the part for which nobody has asked since the cache was opened."""
        others = "part = ?1 AND (key != ?2 OR name NOT IN (SELECT name FROM asked))"
        with self._lock, self._connection:
            self._connection.execute(f"DELETE FROM vectors WHERE {others}", self._of)


@dataclass(frozen=True, slots=True)
class VectorBuild:
    """Makes the vectors of all papers of a store in a folder, and what searches them.

    Attributes:
        folder: The folder in the next generation of an index, whose columns are there; it is made anew.
        texts: The papers, in order of id; or what else gets a vector, with its text as the title.
        fingerprint: Of the store.
        options: The encoder, or given vectors, and how they are searched.
        on_progress: Called as the work goes on.
        ids: The file with the ids of the papers, in order, among the columns; or of what else gets a vector.
        open_encoder: Opens the encoder.
        parallelism: Where papers are encoded: here, where an encoder uses all processors or the GPU, or elsewhere.
    """

    folder: Path
    texts: Callable[[], Iterator[Paper]]
    fingerprint: str
    options: DenseOptions
    on_progress: Progress
    ids: str = "ids.npy"
    open_encoder: OpenEncoder = TextEncoder.open
    parallelism: Parallelism = HERE

    def make(self) -> DenseManifest:
        """Makes them.

        Raises:
            ModelError: The model cannot be found or loaded.
            SourceError: Given vectors are missing or broken, or no paper has a text.
            BuildError: Too many given vectors cannot be used, or FAISS is not installed.
        """
        folder, options = self.folder, self.options
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
        folder.mkdir()
        row_ids = mapped(folder.parent / COLUMNS / self.ids)
        encoder: PaperEncoder | None
        if is_given := bool(options.vectors or options.given):
            values, has_given, faults = self._taken(row_ids)
            encoder = None if options.vectors else self._encoder_of(values, has_given)
        else:
            encoder, has_given, faults = self.open_encoder(options), np.zeros(len(row_ids), bool), {}
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
            checksums={path.name: checksum(path) for path in sorted(folder.iterdir())},
        )
        manifest.write(folder)
        return manifest

    def _taken(self, ids: NDArray[np.bytes_]) -> tuple[NDArray[np.float16], Mask, dict[str, int]]:
        """The vectors that are given, (papers, dimension), which rows have one, and how many were not used, by reason.

        Those that were given for a generation before come first.
        """
        options, before = self.options, self.options.given
        sources, has_given = find_given(options.vectors), np.zeros(len(ids), bool)
        faults: dict[str, int] = {}
        dimension = DenseManifest.read(before).dimension if before else dimension_of(sources)
        values = blank_vectors(self.folder, len(ids), dimension)
        if before:
            old_ids, old_values = mapped(before.parent / COLUMNS / "ids.npy"), mapped(before / VALUES)
            for part in in_parts(np.flatnonzero(mapped(before / GIVEN)), _PART):
                rows = rows_of(ids, (key.decode() for key in old_ids[part].tolist()))
                values[rows[rows >= 0]] = old_values[part][rows >= 0]
                has_given[rows[rows >= 0]] = True
        if sources:
            faults, taken = take_given(values, ids, sources, options.max_bad, self.on_progress)
            has_given |= taken
        np.save(self.folder / GIVEN, has_given)
        return values, has_given, faults

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
            encoder = self.open_encoder(self.options)
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
            opened = functools.partial(_opened, self.options, self.open_encoder, identity, threads)
        # Texts of similar length are encoded together.
        parts = (sorted(part, key=lambda one: -len(paper_text(one))) for part in in_parts(lacking(), _PART))
        work, gpus, encoded = functools.partial(_encoded, opened), int(ENCODERS[self.options.backend].on_gpu), 0
        with contextlib.closing(outcomes_of(work, parts, self.parallelism, gpus=gpus)) as outcomes:
            for _, (names, vectors) in outcomes:
                cache.put(names, vectors)
                encoded += len(names)
                self.on_progress("encoding", min(known_count + encoded, whole), whole)


def renewal(previous: Path, asked: DenseOptions | None = None) -> DenseOptions:
    """The options that update vectors: those they were made with, or those that are asked for.

    Raises:
        IndexUnusableError: The vectors cannot be used.
        InputError: Vectors are given, and those before were encoded by the same model.
    """
    manifest = DenseManifest.read(previous)
    if asked is None:
        max_tokens, backend = manifest.max_tokens, manifest.backend
        asked = DenseOptions(manifest.model, kind=manifest.asked, max_tokens=max_tokens, backend=backend)
    if _lasting(asked.model) != manifest.model:
        return asked
    if asked.vectors and not manifest.given:
        raise InputError(
            f"the vectors of {previous.parent.parent} were encoded from its texts by this model",
            "Leave --vectors out: new papers are encoded as the rest was.",
        )
    return replace(asked, given=previous if manifest.given else None)


def _lasting(model: str) -> str:
    """The model's name, valid from any working directory."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model


def threads_for(parallelism: Parallelism) -> int:
    """How many threads each process has: those of one machine share its processors. Ray sees to that by itself."""
    processes = parallelism if isinstance(parallelism, int) else available_processors()
    return max(1, available_processors() // processes)


@functools.lru_cache(maxsize=1)
def _opened(options: DenseOptions, open_encoder: OpenEncoder, identity: str, threads: int) -> PaperEncoder:
    """The encoder in another process, kept for all parts; a ModelError if it is not the one with an identity."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch is imported
    encoder = open_encoder(options)
    if encoder.identity != identity:
        raise ModelError(
            f"the model {options.model!r} on {platform.node()} is another one than here",
            "Install the same model on all machines.",
        )
    return encoder


def _encoded(opened: Callable[[], PaperEncoder], papers: Sequence[Paper]) -> tuple[list[bytes], NDArray[np.float16]]:
    """The names and the vectors of the papers of a part, (papers, dimension)."""
    return [*map(name_of, papers)], opened().encode_papers(papers).astype(np.float16)
