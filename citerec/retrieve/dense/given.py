"""Vectors that were made elsewhere: arrays with ids, or the `embeddings-specter_v2` of S2AG (docs/storage.md).

They come in any order and are put into place by a binary search for their id. They are neither sorted nor held in
memory: a memory-mapped array has a row for every paper of the store, and is compacted at the end.
"""

import contextlib
import errno
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from citerec.corpus.json_lines import BadRecord, RecordError, parsed, raw_lines
from citerec.corpus.values import read_id
from citerec.errors import BuildError, SourceError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.files.rejected import Rejected
from citerec.files.resume import Journal
from citerec.retrieve.dense.files import ArrayWriter, mapped, rows_of
from citerec.retrieve.dense.listing import COLUMNS, Texts, list_papers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH = 4096
_COMMIT_BATCHES = 16
_SOON = 1000
# float16 keeps three digits: vectors this near to length one were normalised before, and are used unchanged.
_NORMALISED = 2e-3
_FORMS = "Give a folder with vectors.npy and ids.npy, or S2AG's embeddings-specter_v2 (JSON Lines): docs/storage.md."


@dataclass(slots=True)
class _Batch:
    """Vectors with their ids; those that cannot be used are counted by reason."""

    ids: list[str]
    vectors: "NDArray[np.float32]"
    faults: Counter[str]
    position: int
    read: float


@dataclass(frozen=True, slots=True)
class Given:
    """The dimension, how many papers got no vector, and how many vectors were not used, by reason."""

    dimension: int
    left_out: int
    faults: dict[str, int]


def find_given(paths: Sequence[Path]) -> list[Path]:
    """The sources of vectors below some paths: folders of arrays, shards of JSON Lines.

    Raises:
        SourceError: A path has none.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir() and (path / "vectors.npy").is_file() and (path / "ids.npy").is_file():
            found.append(path)
        elif path.is_dir():
            shards = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
            if not shards:
                raise SourceError(f"{path} holds no vectors", _FORMS)
            found += shards
        elif path.is_file():
            found.append(path)
        else:
            raise SourceError(f"{path} does not exist", _FORMS)
    return found


def arrange_given(
    folder: Path,
    texts: Texts,
    sources: Sequence[Path],
    max_bad: float,
    papers: int,
    journal: Journal,
    on_progress: Progress,
) -> Given:
    """Writes ids and vectors of those of some papers for which a vector is given; resumes an interrupted run.

    Of several vectors of a paper the last one counts. Too many of them unusable stop the work (`max_bad`, 0 to 1).

    Raises:
        SourceError: A source cannot be read, or holds no vector of a paper of the store.
        BuildError: Too many vectors cannot be used.
    """
    whole = folder / "given"
    if journal.get("arranged") is None:
        if journal.get("listed") is None:
            whole.mkdir(exist_ok=True)
            list_papers(whole, texts, lambda _: True, papers, on_progress)
            journal.note(listed=True)
        _scatter(whole, sources, max_bad, journal, on_progress)
        journal.note(arranged=_draw_together(whole, folder, on_progress))
    shutil.rmtree(whole, ignore_errors=True)
    dimension, left_out = journal.get("arranged")
    return Given(dimension, left_out, dict(journal.get("faults")))


def _scatter(whole: Path, sources: Sequence[Path], max_bad: float, journal: Journal, on_progress: Progress) -> None:
    """Puts every vector into the row of its paper."""
    import numpy as np

    ids = mapped(whole / "ids.npy")
    first, after = journal.get("position") or (0, 0)
    tally = Counter(journal.get("faults") or {})
    used = int(journal.get("used") or 0)
    dimension = journal.get("dimension") or _dimension(sources)
    rows: Any = _opened(whole / "rows.npy", (len(ids), dimension), "<f2", fresh=journal.get("dimension") is None)
    present: Any = _opened(whole / "present.npy", (len(ids),), "|b1", fresh=journal.get("dimension") is None)
    journal.note(dimension=dimension)

    def commit(number: int, position: int) -> None:
        rows.flush()
        present.flush()
        journal.note(position=(number, position), faults=dict(tally), used=used)

    for number in range(first, len(sources)):
        source = sources[number]
        batches = _array_batches if source.is_dir() else _line_batches
        for count, batch in enumerate(batches(source, dimension, after if number == first else 0), 1):
            at = rows_of(ids, batch.ids)
            known = at >= 0
            rows[at[known]] = batch.vectors[known]
            present[at[known]] = True
            used += int(known.sum())
            tally += batch.faults
            tally["of papers not in the index"] += int(np.count_nonzero(~known))
            _stop_if_mostly_bad(source, tally, used, max_bad, at_end=False)
            if count % _COMMIT_BATCHES == 0:
                commit(number, batch.position)
            on_progress("taking vectors", number + batch.read, len(sources))
        commit(number + 1, 0)
    _stop_if_mostly_bad(sources[-1], tally, used, max_bad, at_end=True)
    if not used:
        raise SourceError(
            f"none of the {tally['of papers not in the index']:,} vectors belongs to a paper of the index",
            "Do their ids come from the same corpus?",
        )


def _draw_together(whole: Path, folder: Path, on_progress: Progress) -> tuple[int, int]:
    """Writes the rows that have a vector, in order; returns their dimension, and how many papers have none."""
    import numpy as np

    present, rows, ids = mapped(whole / "present.npy"), mapped(whole / "rows.npy"), mapped(whole / "ids.npy")
    dimension = rows.shape[1]
    arrays: dict[str, tuple[NDArray[Any], Any, tuple[int, ...]]] = {
        "ids.npy": (ids, ids.dtype, ()),
        "vectors.npy": (rows, "<f2", (dimension,)),
    }
    arrays |= {name: (mapped(whole / name), dtype, ()) for name, dtype in COLUMNS.items()}
    with contextlib.ExitStack() as stack:
        writers = {
            name: stack.enter_context(ArrayWriter(folder / name, dtype, row))
            for name, (_, dtype, row) in arrays.items()
        }
        for begin in range(0, len(present), _BATCH):
            part = slice(begin, begin + _BATCH)
            kept = np.asarray(present[part])
            for name, (array, _, _) in arrays.items():
                writers[name].append(array[part][kept])
            on_progress("arranging", min(begin + _BATCH, len(present)), len(present))
    return dimension, int(len(present) - np.count_nonzero(present))


def _opened(path: Path, shape: tuple[int, ...], dtype: str, *, fresh: bool) -> Any:
    """A memory-mapped array to write to."""
    import numpy as np

    if not fresh:
        return np.load(path, mmap_mode="r+", allow_pickle=False)
    try:
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        _reserve(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        raise BuildError(
            f"no space left for {path}, which needs {size:,} bytes; nothing else was touched",
            "Make room, then run the same command: it continues where it stopped.",
        ) from error
    return array


def _reserve(path: Path) -> None:
    """Reserves the space of a file: writing to a mapped file on a full disk would kill the process by a signal."""
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except (AttributeError, OSError) as error:
            # Not every system can reserve space.
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise


def _stop_if_mostly_bad(source: Path, tally: Counter[str], used: int, max_bad: float, *, at_end: bool) -> None:
    bad = sum(count for reason, count in tally.items() if reason != "of papers not in the index")
    whole = used + tally.total()
    listed = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tally.items()) if count)
    rejected = Rejected(max_bad, f"vectors of {source} ({listed})")
    rejected.add(whole - bad, bad)
    rejected.check(None if at_end else 1.0)


def _dimension(sources: Sequence[Path]) -> int:
    """The dimension of the first vector."""
    for source in sources:
        if source.is_dir():
            return int(_arrays(source)[1].shape[1])
        for _, raw, _ in raw_lines(source):
            found = parsed(raw, _vector)
            if not isinstance(found, BadRecord):
                return len(found[1])
    raise SourceError(f"{sources[0]} holds no vector", _FORMS)


def _arrays(source: Path) -> "tuple[NDArray[Any], NDArray[Any]]":
    import numpy as np

    try:
        names = ("ids.npy", "vectors.npy")
        ids, vectors = (np.load(source / name, mmap_mode="r", allow_pickle=False) for name in names)
    except (OSError, ValueError, EOFError) as error:
        raise SourceError(f"{source}: its arrays cannot be read ({error})".replace("\n", " "), _FORMS) from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or ids.shape != vectors.shape[:1] or ids.dtype.kind not in "iuSU":
        raise SourceError(
            f"{source}: vectors.npy is {vectors.dtype} {vectors.shape} and ids.npy {ids.dtype} {ids.shape}",
            "vectors.npy must hold floats, (papers, dimension), and ids.npy an id for each of its rows.",
        )
    return ids, vectors


def _array_batches(source: Path, dimension: int, after: int) -> Iterator[_Batch]:
    import numpy as np

    ids, vectors = _arrays(source)
    for begin in range(after, len(ids), _BATCH):
        end = min(begin + _BATCH, len(ids))
        names = ids[begin:end].astype("U").tolist() if ids.dtype.kind in "iu" else ids[begin:end].tolist()
        names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in names]
        faults: Counter[str] = Counter()
        part = np.asarray(vectors[begin:end], dtype=np.float32)
        if vectors.shape[1] != dimension:
            faults[_other_dimension(dimension)] = end - begin
            names, part = [], np.empty((0, dimension), dtype=np.float32)
        yield _Batch(*_usable(names, part, faults), faults, end, end / len(ids))


def _line_batches(source: Path, dimension: int, after: int) -> Iterator[_Batch]:
    import numpy as np

    size = max(1, source.stat().st_size)
    lines = itertools.dropwhile(lambda line: line[0] <= after, raw_lines(source))
    for part in in_parts(lines, _BATCH):
        ids: list[str] = []
        rows: list[list[float]] = []
        faults: Counter[str] = Counter()
        for _, raw, _ in part:
            found = parsed(raw, _vector)
            if isinstance(found, BadRecord):
                faults["unreadable"] += 1
                continue
            paper_id, vector = found
            if len(vector) == dimension:
                ids.append(paper_id)
                rows.append(vector)
            else:
                faults[_other_dimension(dimension)] += 1
        vectors = np.array(rows, dtype=np.float32).reshape(len(rows), dimension)
        number, _, read = part[-1]
        yield _Batch(*_usable(ids, vectors, faults), faults, number, read / size)


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


def _usable(
    ids: list[str], vectors: "NDArray[np.float32]", faults: "Counter[str]"
) -> "tuple[list[str], NDArray[np.float32]]":
    """Vectors that are finite and not zero, scaled to length one; the others are counted."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    finite, zero = np.isfinite(lengths), lengths == 0
    faults["not finite"] += int(np.count_nonzero(~finite))
    faults["zero"] += int(np.count_nonzero(zero))
    good = finite & ~zero
    scale = np.where(np.abs(lengths - 1) < _NORMALISED, 1.0, lengths)[good]
    return [ids[at] for at in np.flatnonzero(good)], (vectors[good] / scale[:, None]).astype(np.float32)


def _other_dimension(dimension: int) -> str:
    return f"not of dimension {dimension}"
