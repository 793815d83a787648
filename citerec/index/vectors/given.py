"""Vectors that were made elsewhere: arrays with ids, or the `embeddings-specter_v2` of S2AG (docs/storage.md)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from citerec.corpus.json_lines import BadRecord, RecordError, parsed, raw_lines
from citerec.corpus.values import read_id
from citerec.errors import SourceError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.files.rejected import Rejected
from citerec.index.arrays import rows_of
from citerec.index.vectors.cache import VectorCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH = 4096
# float16 keeps three digits: vectors this near to length one were normalised before, and are used unchanged.
_NORMALISED = 2e-3
_FORMS = "Give a folder with vectors.npy and ids.npy, or S2AG's embeddings-specter_v2 (JSON Lines): docs/storage.md."


@dataclass(slots=True)
class _Batch:
    """Vectors with their ids; those that cannot be used are counted by reason."""

    ids: list[str]
    vectors: "NDArray[np.float32]"
    faults: Counter[str]
    read: float


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


def take_given(
    cache: VectorCache,
    key: str,
    ids: "NDArray[np.bytes_]",
    sources: Sequence[Path],
    dimension: int,
    max_bad: float,
    on_progress: Progress,
) -> "tuple[dict[str, int], NDArray[np.bool_]]":
    """Puts the given vectors of some papers into a cache. Of several vectors of a paper the last one counts.

    Args:
        cache: The cache.
        key: The key of given vectors.
        ids: The ids of the papers, sorted.
        sources: Where the vectors are: `find_given`.
        dimension: The numbers of a vector; those with others are not used.
        max_bad: The share of unusable vectors, 0 to 1, above which the work stops.
        on_progress: Called as the work goes on.

    Returns:
        How many vectors were not used, by reason; and which papers have one now, (papers,).

    Raises:
        SourceError: A source cannot be read, or holds no vector of a paper.
        BuildError: Too many vectors cannot be used.
    """
    import numpy as np

    tally: Counter[str] = Counter()
    used, taken = 0, np.zeros(len(ids), bool)
    for number, source in enumerate(sources):
        for batch in (_array_batches if source.is_dir() else _line_batches)(source, dimension):
            rows = rows_of(ids, batch.ids)
            known = np.flatnonzero(rows >= 0)
            taken[rows[known]] = True
            names = [batch.ids[at].encode() for at in known.tolist()]
            cache.put(key, names, batch.vectors[known].astype(np.float16))
            used += len(names)
            tally += batch.faults
            tally["of papers not in the index"] += len(batch.ids) - len(names)
            _stop_if_mostly_bad(source, tally, used, max_bad, at_end=False)
            on_progress("taking vectors", number + batch.read, len(sources))
    _stop_if_mostly_bad(sources[-1], tally, used, max_bad, at_end=True)
    if not used:
        raise SourceError(
            f"none of the {tally['of papers not in the index']:,} vectors belongs to a paper of the index",
            "Do their ids come from the same corpus?",
        )
    return {reason: count for reason, count in sorted(tally.items()) if count}, taken


def _stop_if_mostly_bad(source: Path, tally: Counter[str], used: int, max_bad: float, *, at_end: bool) -> None:
    bad = sum(count for reason, count in tally.items() if reason != "of papers not in the index")
    whole = used + tally.total()
    listed = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tally.items()) if count)
    rejected = Rejected(max_bad, f"vectors of {source} ({listed})")
    rejected.add(whole - bad, bad)
    rejected.check(None if at_end else 1.0)


def dimension_of(sources: Sequence[Path]) -> int:
    """The dimension of the first vector; SourceError if there is none."""
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


def _array_batches(source: Path, dimension: int) -> Iterator[_Batch]:
    import numpy as np

    ids, vectors = _arrays(source)
    for begin in range(0, len(ids), _BATCH):
        end = min(begin + _BATCH, len(ids))
        names = ids[begin:end].astype("U").tolist() if ids.dtype.kind in "iu" else ids[begin:end].tolist()
        names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in names]
        faults: Counter[str] = Counter()
        part = np.asarray(vectors[begin:end], dtype=np.float32)
        if vectors.shape[1] != dimension:
            faults[_other_dimension(dimension)] = end - begin
            names, part = [], np.empty((0, dimension), dtype=np.float32)
        yield _Batch(*_usable(names, part, faults), faults, end / len(ids))


def _line_batches(source: Path, dimension: int) -> Iterator[_Batch]:
    import numpy as np

    size = max(1, source.stat().st_size)
    for part in in_parts(raw_lines(source), _BATCH):
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
        yield _Batch(*_usable(ids, vectors, faults), faults, part[-1][2] / size)


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
